//! Activations: a function of each number.

use super::layer::{InPlace, Layer, Pass, Tensor};
use crate::data::Shape;
use crate::vector::{tanh, vectorized};
use paygo_matrix::Existing;

/// A function of each number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    function: Function,
    shape: Shape,
}

/// Which function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// `max(x, 0)`.
    Relu,
    /// The hyperbolic tangent: bounded, which keeps gradients short (Papernot et al. 2021).
    Tanh,
}

impl Activation {
    /// The function, at every number of this shape.
    #[must_use]
    pub const fn new(function: Function, shape: Shape) -> Self {
        Self { function, shape }
    }
}

impl InPlace for Activation {
    fn forward(&self, numbers: &mut [f32]) {
        match self.function {
            Function::Relu => vectorized(
                #[inline(always)]
                || {
                    for x in numbers {
                        // Keeps a NaN, which `max` would hide. (A choice between a number and what is there already would become
                        // a store under a mask, which is slow.)
                        *x = if x.is_nan() { f32::NAN } else { x.max(0.0) };
                    }
                },
            ),
            Function::Tanh => vectorized(
                #[inline(always)]
                || {
                    for x in numbers {
                        *x = tanh(*x);
                    }
                },
            ),
        }
    }

    fn backward(&self, output: &[f32], error: &mut [f32]) {
        let numbers = error.iter_mut().zip(output);
        match self.function {
            Function::Relu => vectorized(
                #[inline(always)]
                || {
                    for (error, &y) in numbers {
                        *error *= if y <= 0.0 { 0.0 } else { 1.0 };
                    }
                },
            ),
            Function::Tanh => vectorized(
                #[inline(always)]
                || {
                    for (error, &y) in numbers {
                        *error *= 1.0 - y * y;
                    }
                },
            ),
        }
    }
}

impl Layer for Activation {
    fn output(&self) -> Shape {
        self.shape
    }

    fn parameters(&self) -> Vec<Tensor> {
        Vec::new()
    }

    fn in_place(&self) -> Option<&dyn InPlace> {
        Some(self)
    }

    fn looks_at_its_output(&self) -> bool {
        true
    }

    fn memory(&self, _rows: usize) -> usize {
        0
    }

    fn forward(&self, _rows: usize, _parameters: &[f32], input: &[f32], output: &mut [f32], _memory: &mut [f32]) {
        output.copy_from_slice(input);
        InPlace::forward(self, output);
    }

    fn backward(&self, _rows: usize, _parameters: &[f32], pass: Pass<'_>, error_of_input: Option<&mut [f32]>) {
        if let Some(target) = error_of_input {
            target.copy_from_slice(pass.error);
            InPlace::backward(self, pass.output, target);
        }
    }

    fn squared_norms(&self, _rows: usize, _pass: Pass<'_>, _norms: &mut [f64]) {}

    fn add_gradients(
        &self,
        _rows: usize,
        _pass: Pass<'_>,
        _factors: Option<&[f32]>,
        _sum: &mut [f32],
        _mode: Existing,
    ) {
    }
}
