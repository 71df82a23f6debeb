//! The short way to bring a model: the gradient of one example.

use super::{Chunk, Existing, Findings, MissingGradient, Model, Tensor};
use crate::data::Shape;
use crate::vector::{add_rows, add_scaled_rows, squared_norm};

/// A loss and its gradient, one example at a time.
///
/// # Contract
/// They depend on the example and the parameters alone.
pub trait Gradient: Send + Sync {
    /// The shape of an input.
    fn input(&self) -> Shape;

    /// How many classes there are.
    fn classes(&self) -> usize;

    /// The parameters.
    fn tensors(&self) -> Vec<Tensor>;

    /// The loss, and the class that is predicted.
    fn loss(&self, parameters: &[f32], input: &[f32], label: u32) -> (f32, u32);

    /// Writes the gradient of the loss: every number of it, zeros too.
    fn gradient(&self, parameters: &[f32], input: &[f32], label: u32, gradient: &mut [f32]);
}

/// A model from a [`Gradient`]. Slower than layers that never write a gradient down, and nothing else is needed.
///
/// ```
/// use paygo_training::data::Shape;
/// use paygo_training::model::{Gradient, Model, OneByOne, Start, Tensor};
/// /// Logistic regression without a constant.
/// struct Logistic;
/// impl Gradient for Logistic {
///     fn input(&self) -> Shape { Shape::vector(2) }
///     fn classes(&self) -> usize { 2 }
///     fn tensors(&self) -> Vec<Tensor> {
///         vec![Tensor { name: "weight".into(), shape: vec![2], start: Start::Zeros }]
///     }
///     fn loss(&self, w: &[f32], x: &[f32], label: u32) -> (f32, u32) {
///         let z = w[0] * x[0] + w[1] * x[1];
///         let margin = if label == 1 { z } else { -z };
///         ((-margin).exp().ln_1p(), u32::from(z > 0.0))
///     }
///     fn gradient(&self, w: &[f32], x: &[f32], label: u32, gradient: &mut [f32]) {
///         let z = w[0] * x[0] + w[1] * x[1];
///         let error = 1.0 / (1.0 + (-z).exp()) - if label == 1 { 1.0 } else { 0.0 };
///         gradient.copy_from_slice(&[error * x[0], error * x[1]]);
///     }
/// }
/// assert_eq!(OneByOne::new(Logistic).parameters(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct OneByOne<G> {
    gradient: G,
    tensors: Vec<Tensor>,
}

/// What a number is before a gradient is written: a NaN that no arithmetic makes.
const UNWRITTEN: u32 = 0x7fd3_19a7;

impl<G: Gradient> OneByOne<G> {
    /// The model of this gradient.
    pub fn new(gradient: G) -> Self {
        Self { tensors: gradient.tensors(), gradient }
    }
}

impl<G: Gradient> Model for OneByOne<G> {
    fn input(&self) -> Shape {
        self.gradient.input()
    }

    fn classes(&self) -> usize {
        self.gradient.classes()
    }

    fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    fn groups(&self) -> usize {
        1
    }

    fn memory(&self, rows: usize) -> usize {
        rows * self.parameters()
    }

    fn predict(&self, parameters: &[f32], chunk: Chunk<'_>, _memory: &mut [f32], findings: &mut Findings) {
        findings.clear();
        for (input, &label) in chunk.inputs.chunks_exact(self.input().len()).zip(chunk.labels) {
            let (loss, predicted) = self.gradient.loss(parameters, input, label);
            findings.losses.push(loss);
            findings.correct.push(predicted == label);
        }
    }

    fn examine(
        &self,
        parameters: &[f32],
        chunk: Chunk<'_>,
        memory: &mut [f32],
        findings: &mut Findings,
    ) -> Result<(), MissingGradient> {
        self.predict(parameters, chunk, memory, findings);
        memory.fill(f32::from_bits(UNWRITTEN));
        let inputs = chunk.inputs.chunks_exact(self.input().len()).zip(chunk.labels);
        for ((input, &label), gradient) in inputs.zip(memory.chunks_exact_mut(self.parameters())) {
            self.gradient.gradient(parameters, input, label, gradient);
            let mut start = 0;
            for tensor in &self.tensors {
                let end = start + tensor.len();
                if gradient[start..end].iter().any(|number| number.to_bits() == UNWRITTEN) {
                    return Err(MissingGradient { tensor: tensor.name.clone() });
                }
                start = end;
            }
        }
        Ok(())
    }

    fn squared_norms(&self, _chunk: Chunk<'_>, memory: &mut [f32], norms: &mut [f64]) {
        for (gradient, norm) in memory.chunks_exact(self.parameters()).zip(norms) {
            *norm = squared_norm(gradient);
        }
    }

    fn add_gradients(
        &self,
        _chunk: Chunk<'_>,
        memory: &mut [f32],
        factors: Option<&[f32]>,
        sum: &mut [f32],
        mode: Existing,
    ) {
        match factors {
            Some(factors) => add_scaled_rows(sum, memory, factors, mode),
            None => add_rows(sum, memory, mode),
        }
    }
}
