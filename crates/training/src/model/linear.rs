//! A linear layer: `y = x·W + b`.

use super::layer::{Layer, Pass, Start, Tensor};
use crate::data::Shape;
use crate::vector::{add_rows, add_scaled_rows, fill_rows, scale_rows, silence_rows, write_scaled_rows};
use paygo_matrix::{Existing, View, multiply, squared_norms};

/// Every output is a weighted sum of all inputs, and a constant.
///
/// An example's gradient is `xᵀ·e`, so its norm is `‖x‖·‖e‖` and need not be written down: clipping scales the rows of
/// `x` or `e` before one product.
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

    /// The inputs once more, scaled, where they are shorter than the errors.
    fn memory(&self, rows: usize) -> usize {
        if self.inputs < self.outputs { rows * self.inputs } else { 0 }
    }

    fn forward(&self, rows: usize, parameters: &[f32], input: &[f32], output: &mut [f32], _memory: &mut [f32]) {
        fill_rows(output, &parameters[self.inputs * self.outputs..]);
        multiply(output, Existing::Add, View::new(input, rows, self.inputs), self.weights(parameters));
    }

    fn backward(&self, rows: usize, parameters: &[f32], pass: Pass<'_>, error_of_input: Option<&mut [f32]>) {
        if let Some(target) = error_of_input {
            let error = View::new(pass.error, rows, self.outputs);
            multiply(target, Existing::Replace, error, self.weights(parameters).transposed());
        }
    }

    fn squared_norms(&self, _rows: usize, pass: Pass<'_>, norms: &mut [f64]) {
        squared_norms(pass.error, self.outputs, |row, of_error| norms[row] = of_error);
        // The constant is an input of 1.
        match pass.squared_norms_of_input {
            Some(of_inputs) => norms.iter_mut().zip(of_inputs).for_each(|(norm, of_input)| *norm *= of_input + 1.0),
            None => squared_norms(pass.input, self.inputs, |row, of_input| norms[row] *= of_input + 1.0),
        }
    }

    fn add_gradients(&self, rows: usize, pass: Pass<'_>, factors: Option<&[f32]>, sum: &mut [f32], mode: Existing) {
        let (weights, constants) = sum.split_at_mut(self.inputs * self.outputs);
        // Either side of the product may be scaled: the shorter.
        let mut input = pass.input;
        match factors {
            Some(factors) if self.inputs < self.outputs => {
                write_scaled_rows(pass.memory, input, factors);
                input = pass.memory;
                silence_rows(pass.error, self.outputs, factors);
                add_scaled_rows(constants, pass.error, factors, mode);
            }
            Some(factors) => {
                scale_rows(pass.error, self.outputs, factors);
                add_rows(constants, pass.error, mode);
            }
            None => add_rows(constants, pass.error, mode),
        }
        let input = View::new(input, rows, self.inputs).transposed();
        multiply(weights, mode, input, View::new(pass.error, rows, self.outputs));
    }
}
