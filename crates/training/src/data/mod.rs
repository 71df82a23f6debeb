//! Examples to learn from: inputs and labels, checked once.

use crate::model::Chunk;
use std::fmt;

pub mod cifar;
pub mod csv;
mod file;
pub mod generate;
pub mod idx;
mod random;
pub mod rows;
pub mod schema;
pub mod sets;

pub use file::LoadError;

/// The shape of one input: `height × width` positions with `channels` numbers each, the channels of a position side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of positions; 1 for a plain vector.
    pub height: usize,
    /// Positions in a row; 1 for a plain vector.
    pub width: usize,
    /// Numbers at a position.
    pub channels: usize,
}

impl Shape {
    /// A plain vector.
    #[must_use]
    pub const fn vector(length: usize) -> Self {
        Self { height: 1, width: 1, channels: length }
    }

    /// How many numbers.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// `28x28x1`, or `105` for a vector.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.height, self.width) {
            (1, 1) => write!(f, "{}", self.channels),
            (height, width) => write!(f, "{height}x{width}x{}", self.channels),
        }
    }
}

/// Inputs of one shape and their labels. Position in here is identity: what is decided about an example is decided by its
/// position, so taking one away must leave a gap (zero-out) or the others where they are.
#[derive(Clone, PartialEq)]
pub struct Examples {
    shape: Shape,
    classes: usize,
    inputs: Vec<f32>,
    labels: Vec<u32>,
    /// `‖x‖²` of each input: every gradient of a linear first layer wants it.
    squared_norms: Vec<f64>,
}

/// Examples that cannot be learned from. Says where, never what: the values are somebody's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadExamples {
    /// Inputs and labels do not belong together.
    #[error("{inputs} numbers are not {labels} inputs of shape {shape}")]
    Length {
        /// How many numbers.
        inputs: usize,
        /// How many labels.
        labels: usize,
        /// The shape of an input.
        shape: Shape,
    },
    /// NaN or infinity in an input.
    #[error("example {0} has an input that is not a finite number")]
    NotFinite(usize),
    /// A label beyond the classes.
    #[error("example {index} has a label that is not one of the {classes} classes")]
    Label {
        /// Which example.
        index: usize,
        /// How many classes there are.
        classes: usize,
    },
    /// No inputs, or fewer than two classes.
    #[error("expected inputs of at least one number and at least two classes; given shape {0} and {1} classes")]
    Nothing(Shape, usize),
}

impl Examples {
    /// Checks that every input is finite and every label below `classes`.
    ///
    /// # Errors
    /// [`BadExamples`].
    pub fn new(shape: Shape, classes: usize, inputs: Vec<f32>, labels: Vec<u32>) -> Result<Self, BadExamples> {
        if shape.is_empty() || classes < 2 {
            return Err(BadExamples::Nothing(shape, classes));
        }
        if labels.len().checked_mul(shape.len()) != Some(inputs.len()) {
            return Err(BadExamples::Length { inputs: inputs.len(), labels: labels.len(), shape });
        }
        if let Some(at) = inputs.iter().position(|x| !x.is_finite()) {
            return Err(BadExamples::NotFinite(at / shape.len()));
        }
        if let Some(index) = labels.iter().position(|&label| label as usize >= classes) {
            return Err(BadExamples::Label { index, classes });
        }
        let mut squared_norms = vec![0.0; labels.len()];
        paygo_matrix::squared_norms(&inputs, shape.len(), |index, norm| squared_norms[index] = norm);
        Ok(Self { shape, classes, inputs, labels, squared_norms })
    }

    /// How many. Public only where the neighbor relation keeps the number of examples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The shape of every input.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// Labels are below this.
    #[must_use]
    pub const fn classes(&self) -> usize {
        self.classes
    }

    /// One input.
    ///
    /// # Panics
    /// When there is no such example.
    #[must_use]
    pub fn input(&self, index: usize) -> &[f32] {
        &self.inputs[index * self.shape.len()..][..self.shape.len()]
    }

    /// Inputs side by side.
    ///
    /// # Panics
    /// When one of them is not there.
    #[must_use]
    pub fn inputs(&self, range: std::ops::Range<usize>) -> &[f32] {
        &self.inputs[range.start * self.shape.len()..range.end * self.shape.len()]
    }

    /// One label.
    ///
    /// # Panics
    /// When there is no such example.
    #[must_use]
    pub fn label(&self, index: usize) -> u32 {
        self.labels[index]
    }

    /// All labels.
    #[must_use]
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Those in a range, side by side.
    pub(crate) fn chunk(&self, range: std::ops::Range<usize>) -> Chunk<'_> {
        let (inputs, labels) = (self.inputs(range.clone()), &self.labels[range.clone()]);
        Chunk { inputs, labels, squared_norms: Some(&self.squared_norms[range]) }
    }

    /// A number that other examples, or these in another order, hardly ever have. It depends on the data.
    pub(crate) fn digest(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        self.inputs.iter().for_each(|x| hasher.update(&x.to_le_bytes()));
        self.labels.iter().for_each(|label| hasher.update(&label.to_le_bytes()));
        hasher.finalize()
    }

    /// `‖x‖²` of an input.
    pub(crate) fn squared_norm(&self, index: usize) -> f64 {
        self.squared_norms[index]
    }

    /// These examples, in this order.
    ///
    /// # Panics
    /// When one is not there.
    #[must_use]
    pub fn select(&self, indices: &[usize]) -> Self {
        let inputs = indices.iter().flat_map(|&index| self.input(index)).copied().collect();
        let labels = indices.iter().map(|&index| self.label(index)).collect();
        let squared_norms = indices.iter().map(|&index| self.squared_norms[index]).collect();
        Self { shape: self.shape, classes: self.classes, inputs, labels, squared_norms }
    }

    /// The same labels with other inputs, one for each example.
    ///
    /// # Errors
    /// [`BadExamples`].
    pub fn with_inputs(&self, shape: Shape, inputs: Vec<f32>) -> Result<Self, BadExamples> {
        Self::new(shape, self.classes, inputs, self.labels.clone())
    }
}

/// Shapes only: the values are somebody's.
impl fmt::Debug for Examples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Examples({} of shape {}, {} classes)", self.len(), self.shape, self.classes)
    }
}

/// Examples that are public: the only kind that may steer anything without being charged.
#[derive(Clone, Debug, PartialEq)]
pub struct Public(Examples);

impl Public {
    /// Declares that these examples are public, and nobody of the private ones is among them.
    #[must_use]
    pub const fn declare(examples: Examples) -> Self {
        Self(examples)
    }

    /// The examples.
    #[must_use]
    pub const fn examples(&self) -> &Examples {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_learned_from_is_refused() {
        let shape = Shape::vector(2);
        let new = |inputs: &[f32], labels: &[u32]| Examples::new(shape, 3, inputs.to_vec(), labels.to_vec());
        assert_eq!(new(&[1.0, 2.0, 3.0, 4.0], &[0, 2]).expect("examples").input(1), [3.0, 4.0]);
        assert_eq!(new(&[1.0, f32::NAN], &[0]), Err(BadExamples::NotFinite(0)));
        assert_eq!(new(&[1.0, 2.0, 0.0, f32::INFINITY], &[0, 1]), Err(BadExamples::NotFinite(1)));
        assert_eq!(new(&[1.0, 2.0], &[3]), Err(BadExamples::Label { index: 0, classes: 3 }));
        assert!(matches!(new(&[1.0], &[0]), Err(BadExamples::Length { .. })));
        assert!(matches!(Examples::new(Shape::vector(0), 2, vec![], vec![]), Err(BadExamples::Nothing(..))));
        assert!(matches!(Examples::new(shape, 1, vec![], vec![]), Err(BadExamples::Nothing(..))));
    }
}
