//! One output for two classes: logistic regression.

use super::layer::{Layer, Pass, Tensor};
use crate::data::Shape;
use paygo_matrix::Existing;

/// From one number `z` the two `0, z`: the first class is what the second is compared with, and a softmax of both is logistic in `z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference;

impl Layer for Reference {
    fn output(&self) -> Shape {
        Shape::vector(2)
    }

    fn parameters(&self) -> Vec<Tensor> {
        Vec::new()
    }

    fn memory(&self, _rows: usize) -> usize {
        0
    }

    fn forward(&self, _rows: usize, _parameters: &[f32], input: &[f32], output: &mut [f32], _memory: &mut [f32]) {
        for (output, &z) in output.as_chunks_mut().0.iter_mut().zip(input) {
            *output = [0.0, z];
        }
    }

    fn backward(&self, _rows: usize, _parameters: &[f32], pass: Pass<'_>, error_of_input: Option<&mut [f32]>) {
        if let Some(target) = error_of_input {
            for (target, [_, error]) in target.iter_mut().zip(pass.error.as_chunks().0) {
                *target = *error;
            }
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
