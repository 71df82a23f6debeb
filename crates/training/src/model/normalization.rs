//! Normalization of each example by itself.

use super::layer::{Layer, Pass, Start, Tensor};
use crate::data::Shape;
use crate::vector::{add_rows, add_scaled_rows, squared_norm};
use paygo_matrix::Existing;

/// Group normalization: within an example, each group of channels is brought to mean 0 and variance 1, then scaled and shifted
/// channel by channel. One group is layer normalization. Normalizing over a batch would let examples see each other.
///
/// Source: Wu and He, *Group Normalization*, arXiv:1803.08494.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Normalization {
    shape: Shape,
    groups: usize,
}

/// Keeps a constant group finite.
const SMALLEST_VARIANCE: f32 = 1e-5;

impl Normalization {
    /// `None` when the channels cannot be divided into so many groups.
    #[must_use]
    pub const fn new(shape: Shape, groups: usize) -> Option<Self> {
        if groups == 0 || shape.channels == 0 || !shape.channels.is_multiple_of(groups) {
            return None;
        }
        Some(Self { shape, groups })
    }

    /// The channels of each group.
    fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let each = self.shape.channels / self.groups;
        (0..self.groups).map(move |group| group * each..(group + 1) * each)
    }

    /// How many numbers are normalized together.
    #[expect(clippy::cast_precision_loss, reason = "the size of an example")]
    fn count(&self) -> f32 {
        (self.shape.len() / self.groups) as f32
    }
}

impl Layer for Normalization {
    fn output(&self) -> Shape {
        self.shape
    }

    fn parameters(&self) -> Vec<Tensor> {
        let channels = [self.shape.channels];
        vec![Tensor::new("weight", &channels, Start::Ones), Tensor::new("bias", &channels, Start::Zeros)]
    }

    /// Normalized numbers, one over the deviation of each group, and the gradient of each example.
    fn memory(&self, rows: usize) -> usize {
        rows * (self.shape.len() + self.groups + 2 * self.shape.channels)
    }

    fn forward(&self, rows: usize, parameters: &[f32], input: &[f32], output: &mut [f32], memory: &mut [f32]) {
        let (length, channels) = (self.shape.len(), self.shape.channels);
        let (scale, shift) = parameters.split_at(channels);
        let (normal, rest) = memory.split_at_mut(rows * length);
        let examples = input.chunks_exact(length).zip(normal.chunks_exact_mut(length));
        let examples = examples.zip(rest.chunks_exact_mut(self.groups)).zip(output.chunks_exact_mut(length));
        for (((input, normal), inverse), output) in examples {
            for (range, inverse) in self.ranges().zip(inverse) {
                let numbers = || input.chunks_exact(channels).flat_map(|position| &position[range.clone()]);
                let mean = numbers().sum::<f32>() / self.count();
                let variance = numbers().map(|x| (x - mean) * (x - mean)).sum::<f32>() / self.count();
                *inverse = 1.0 / (variance + SMALLEST_VARIANCE).sqrt();
                for (normal, input) in normal.chunks_exact_mut(channels).zip(input.chunks_exact(channels)) {
                    for (normal, input) in normal[range.clone()].iter_mut().zip(&input[range.clone()]) {
                        *normal = (input - mean) * *inverse;
                    }
                }
            }
            for (output, normal) in output.chunks_exact_mut(channels).zip(normal.chunks_exact(channels)) {
                for (((y, x), scale), shift) in output.iter_mut().zip(normal).zip(scale).zip(shift) {
                    *y = x * scale + shift;
                }
            }
        }
    }

    fn backward(&self, rows: usize, parameters: &[f32], pass: Pass<'_>, error_of_input: Option<&mut [f32]>) {
        let (length, channels) = (self.shape.len(), self.shape.channels);
        let (normal, rest) = pass.memory.split_at_mut(rows * length);
        let (inverses, gradients) = rest.split_at_mut(rows * self.groups);
        gradients.fill(0.0);
        let errors = pass.error.chunks_exact(length).zip(normal.chunks_exact(length));
        for ((error, normal), gradient) in errors.clone().zip(gradients.chunks_exact_mut(2 * channels)) {
            let (of_scale, of_shift) = gradient.split_at_mut(channels);
            for (error, normal) in error.chunks_exact(channels).zip(normal.chunks_exact(channels)) {
                for (((e, x), of_scale), of_shift) in error.iter().zip(normal).zip(&mut *of_scale).zip(&mut *of_shift) {
                    *of_scale += e * x;
                    *of_shift += e;
                }
            }
        }
        let Some(target) = error_of_input else { return };
        let scale = &parameters[..channels];
        let examples = errors.zip(inverses.chunks_exact(self.groups)).zip(target.chunks_exact_mut(length));
        for (((error, normal), inverses), target) in examples {
            for (range, inverse) in self.ranges().zip(inverses) {
                // With d = scale·error: (d − mean(d) − x·mean(d·x))/deviation.
                let (mut sum, mut sum_with) = (0.0, 0.0);
                for (error, normal) in error.chunks_exact(channels).zip(normal.chunks_exact(channels)) {
                    for channel in range.clone() {
                        let d = scale[channel] * error[channel];
                        sum += d;
                        sum_with += d * normal[channel];
                    }
                }
                let (mean, mean_with) = (sum / self.count(), sum_with / self.count());
                let positions = error.chunks_exact(channels).zip(normal.chunks_exact(channels));
                for ((error, normal), target) in positions.zip(target.chunks_exact_mut(channels)) {
                    for channel in range.clone() {
                        let d = scale[channel] * error[channel];
                        target[channel] = (d - mean - normal[channel] * mean_with) * inverse;
                    }
                }
            }
        }
    }

    fn squared_norms(&self, rows: usize, pass: Pass<'_>, norms: &mut [f64]) {
        let gradients = &pass.memory[rows * (self.shape.len() + self.groups)..];
        for (gradient, norm) in gradients.chunks_exact(2 * self.shape.channels).zip(norms) {
            *norm = squared_norm(gradient);
        }
    }

    fn add_gradients(&self, rows: usize, pass: Pass<'_>, factors: Option<&[f32]>, sum: &mut [f32], mode: Existing) {
        let gradients = &pass.memory[rows * (self.shape.len() + self.groups)..];
        match factors {
            Some(factors) => add_scaled_rows(sum, gradients, factors, mode),
            None => add_rows(sum, gradients, mode),
        }
    }
}
