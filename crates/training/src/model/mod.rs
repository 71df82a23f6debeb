//! Models: what is learned, and how long each example's gradient is.
//!
//! | read | for |
//! | --- | --- |
//! | [`Model`] | what training needs of a model; implement it to bring your own |
//! | [`OneByOne`] | the short way to bring your own: the gradient of one example |
//! | [`Network`] | layers and a softmax |
//! | [`known`] | networks that papers use |
//! | [`Layer`] | [`Linear`], [`Convolution`], [`Activation`], [`Pool`], [`Normalization`], [`Residual`], [`Sequence`], [`Reference`] |

mod activation;
mod convolution;
mod independence;
pub mod known;
mod layer;
mod linear;
mod network;
mod normalization;
mod one_by_one;
mod pool;
mod reference;
mod sequence;

pub use activation::{Activation, Function};
pub use convolution::Convolution;
pub(crate) use independence::examples_are_independent;
pub use layer::{InPlace, Layer, Pass, Start, Tensor};
pub use linear::Linear;
pub use network::Network;
pub use normalization::Normalization;
pub use one_by_one::{Gradient, OneByOne};
pub use paygo_matrix::{Existing, RowsKnowEachOther, check_rows};
pub use pool::{Kind, Pool};
pub use reference::Reference;
pub use sequence::{Residual, Sequence};

use crate::data::Shape;

/// Some examples, side by side.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// Input after input.
    pub inputs: &'a [f32],
    /// Their labels.
    pub labels: &'a [u32],
    /// `‖x‖²` of each input, where it is known. Clipping rests on it, so only [`crate::data::Examples`] says it.
    pub(crate) squared_norms: Option<&'a [f64]>,
}

impl<'a> Chunk<'a> {
    /// Input after input, and their labels.
    #[must_use]
    pub const fn new(inputs: &'a [f32], labels: &'a [u32]) -> Self {
        Self { inputs, labels, squared_norms: None }
    }
}

/// What was found about each example of a chunk. It depends on the data.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The loss.
    pub losses: Vec<f32>,
    /// Whether the label was predicted.
    pub correct: Vec<bool>,
}

impl Findings {
    pub(crate) fn clear(&mut self) {
        self.losses.clear();
        self.correct.clear();
    }
}

/// A model that did not say what a gradient is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model wrote no gradient for all of {tensor}; it must write zeros where it has none")]
pub struct MissingGradient {
    /// Which tensor.
    pub tensor: String,
}

/// What training needs of a model. All parameters are one vector of numbers, tensor after tensor.
///
/// A chunk of examples is worked through in two passes, because by how much an example is scaled down is known only when its whole
/// gradient is: [`Model::examine`] goes forward and backward, [`Model::squared_norms`] says how long each gradient is, and
/// [`Model::add_gradients`] adds the scaled gradients up. In between, everything is kept in `memory`, a slice of
/// [`Model::memory`] numbers with any content.
///
/// # Contract
/// What is found about an example, and its gradient, depend on that example and the parameters alone: no batch normalization. A squared
/// norm is not below the real one by more than the relative [`crate::gradient::NORM_MARGIN`], and it is not finite where a number in the
/// memory that the gradient is made of is not. What has the factor 0 adds nothing, also where its gradient is no number. Privacy rests on
/// all of it.
pub trait Model: Send + Sync {
    /// The shape of an input.
    fn input(&self) -> Shape;

    /// How many classes it tells apart.
    fn classes(&self) -> usize;

    /// Its parameters.
    fn tensors(&self) -> &[Tensor];

    /// Into how many layers the parameters are divided for clipping layer by layer.
    fn groups(&self) -> usize;

    /// How many numbers it keeps for a chunk of this many examples.
    fn memory(&self, rows: usize) -> usize;

    /// Losses and predictions.
    fn predict(&self, parameters: &[f32], chunk: Chunk<'_>, memory: &mut [f32], findings: &mut Findings);

    /// Losses, predictions, and what the next two need.
    ///
    /// # Errors
    /// [`MissingGradient`]: a gradient that is missing is not a gradient of zero.
    fn examine(
        &self,
        parameters: &[f32],
        chunk: Chunk<'_>,
        memory: &mut [f32],
        findings: &mut Findings,
    ) -> Result<(), MissingGradient>;

    /// The squared ℓ2 norm of each example's gradient in each group: `norms[group · rows + row]`.
    fn squared_norms(&self, chunk: Chunk<'_>, memory: &mut [f32], norms: &mut [f64]);

    /// Adds up `factors[group · rows + row]` times each gradient, or each as it is; their sum replaces, or is added to, what is there.
    /// Uses the memory up.
    fn add_gradients(
        &self,
        chunk: Chunk<'_>,
        memory: &mut [f32],
        factors: Option<&[f32]>,
        sum: &mut [f32],
        mode: Existing,
    );

    /// How many parameters there are.
    fn parameters(&self) -> usize {
        self.tensors().iter().map(Tensor::len).sum()
    }
}
