//! What a layer of a network does with a chunk of examples.
//!
//! A chunk is worked through twice. Forward and backward leave, for every layer, its input and the error of its output; from these
//! each layer says how long the gradient of each example is. Only then is it known by how much each example is scaled down, and
//! each layer adds its scaled gradients up. No layer lets one example see another.

use crate::data::Shape;
use paygo_matrix::Existing;
use std::fmt::Debug;

/// One tensor of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name, such as `1.weight`.
    pub name: String,
    /// Its shape, as stored: row after row.
    pub shape: Vec<usize>,
    /// How it is drawn at the start.
    pub start: Start,
}

/// How parameters are drawn at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// All zero.
    Zeros,
    /// All one.
    Ones,
    /// Normal, of variance 2 over the number of inputs that a unit has.
    Scaled {
        /// The number of inputs.
        inputs: usize,
    },
}

impl Tensor {
    /// How many numbers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn new(name: &str, shape: &[usize], start: Start) -> Self {
        Self { name: name.to_owned(), shape: shape.to_vec(), start }
    }
}

/// A layer of a network. Activations are stored example after example.
///
/// # Contract
/// What happens to an example depends on that example and the parameters alone.
pub trait Layer: Debug + Send + Sync {
    /// The shape of an example's output.
    fn output(&self) -> Shape;

    /// Its parameters, in the order in which they are stored.
    fn parameters(&self) -> Vec<Tensor>;

    /// Parameters are clipped layer by layer, if one wishes: how many such layers this is; a residual block has several.
    fn groups(&self) -> usize {
        usize::from(!self.parameters().is_empty())
    }

    /// The layer as one that works where its input lies, if it can.
    fn in_place(&self) -> Option<&dyn InPlace> {
        None
    }

    /// Whether it looks at its own output after forward. If not, the next layer may work where that lies.
    fn looks_at_its_output(&self) -> bool {
        false
    }

    /// How many numbers it keeps between forward and the adding of gradients, for this many examples.
    fn memory(&self, rows: usize) -> usize;

    /// Writes the output of each example.
    fn forward(&self, rows: usize, parameters: &[f32], input: &[f32], output: &mut [f32], memory: &mut [f32]);

    /// From the error of the output, the error of the input, if it is asked for.
    fn backward(&self, rows: usize, parameters: &[f32], pass: Pass<'_>, error_of_input: Option<&mut [f32]>);

    /// Writes the squared ℓ2 norm of each example's gradient, for each of [`Layer::groups`] in turn: upper bounds but for
    /// [`crate::gradient::NORM_MARGIN`].
    fn squared_norms(&self, rows: usize, pass: Pass<'_>, norms: &mut [f64]);

    /// Adds the gradients up, each scaled by its factor (one for each group and example; 0 leaves it out, also where it is no number), or
    /// as they are; and their sum replaces, or is added to, what is there. Uses the errors up.
    fn add_gradients(&self, rows: usize, pass: Pass<'_>, factors: Option<&[f32]>, sum: &mut [f32], mode: Existing);
}

/// A layer without parameters that writes its output over its input, and needs only the output to go back.
pub trait InPlace {
    /// From the input to the output.
    fn forward(&self, numbers: &mut [f32]);

    /// From the error of the output to the error of the input.
    fn backward(&self, output: &[f32], error: &mut [f32]);
}

/// What a layer has of a chunk after forward.
#[derive(Debug)]
pub struct Pass<'a> {
    /// Its input.
    pub input: &'a [f32],
    /// `‖x‖²` of each example's input, where it is known.
    pub squared_norms_of_input: Option<&'a [f64]>,
    /// Its output.
    pub output: &'a [f32],
    /// The error of its output.
    pub error: &'a mut [f32],
    /// What it keeps.
    pub memory: &'a mut [f32],
}
