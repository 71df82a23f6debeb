//! A linear layer: `y = x·W + b`.

use super::layer::{Layer, Pass, Start, Tensor};
use crate::data::Shape;
use crate::vector::{add_rows, fill_rows, scale_rows, squared_norm};
use paygo_matrix::{Target, View, multiply};

/// Every output is a weighted sum of all inputs, and a constant.
///
/// An example's gradient is `xᵀ·e`, so its norm is `‖x‖·‖e‖` and need not be written down: clipping scales the rows of `e` before
/// one product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    inputs: usize,
    outputs: usize,
}

impl Linear {
    /// # Panics
    /// When one of them is 0.
    #[must_use]
    pub const fn new(inputs: usize, outputs: usize) -> Self {
        assert!(inputs > 0 && outputs > 0, "a linear layer has inputs and outputs");
        Self { inputs, outputs }
    }

    fn weights<'a>(&self, parameters: &'a [f32]) -> View<'a> {
        View::new(&parameters[..self.inputs * self.outputs], self.inputs, self.outputs)
    }
}

impl Layer for Linear {
    fn output(&self) -> Shape {
        Shape::vector(self.outputs)
    }

    fn parameters(&self) -> Vec<Tensor> {
        vec![
            Tensor::new("weight", &[self.inputs, self.outputs], Start::Scaled { inputs: self.inputs }),
            Tensor::new("bias", &[self.outputs], Start::Zeros),
        ]
    }

    fn memory(&self, _rows: usize) -> usize {
        0
    }

    fn forward(&self, rows: usize, parameters: &[f32], input: &[f32], output: &mut [f32], _memory: &mut [f32]) {
        fill_rows(output, &parameters[self.inputs * self.outputs..]);
        multiply(output, Target::Add, View::new(input, rows, self.inputs), self.weights(parameters));
    }

    fn backward(&self, rows: usize, parameters: &[f32], pass: Pass<'_>, error_of_input: Option<&mut [f32]>) {
        if let Some(target) = error_of_input {
            let error = View::new(pass.error, rows, self.outputs);
            multiply(target, Target::Replace, error, self.weights(parameters).transposed());
        }
    }

    fn squared_norms(&self, _rows: usize, pass: Pass<'_>, norms: &mut [f64]) {
        let (inputs, errors) = (pass.input.chunks_exact(self.inputs), pass.error.chunks_exact(self.outputs));
        for ((input, error), norm) in inputs.zip(errors).zip(norms) {
            // The constant is an input of 1.
            *norm = (squared_norm(input) + 1.0) * squared_norm(error);
        }
    }

    fn add_gradients(&self, rows: usize, pass: Pass<'_>, factors: Option<&[f32]>, sum: &mut [f32], mode: Target) {
        if let Some(factors) = factors {
            scale_rows(pass.error, self.outputs, factors);
        }
        let (weights, constants) = sum.split_at_mut(self.inputs * self.outputs);
        let input = View::new(pass.input, rows, self.inputs).transposed();
        multiply(weights, mode, input, View::new(pass.error, rows, self.outputs));
        add_rows(constants, pass.error, mode);
    }
}
