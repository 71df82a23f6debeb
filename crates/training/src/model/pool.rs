//! Pooling: the largest, or the mean, of each window.

use super::layer::{Layer, Pass, Tensor};
use crate::data::Shape;
use crate::vector::vectorized;
use paygo_matrix::Existing;

/// Over each window of positions, channel by channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    kind: Kind,
    input: Shape,
    size: usize,
    stride: usize,
}

/// What is taken of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The largest number; the first of several.
    Max,
    /// The mean.
    Mean,
}

impl Pool {
    /// Windows of `size × size` positions, `stride` apart, wholly inside; `None` when not even one fits.
    #[must_use]
    pub const fn new(kind: Kind, input: Shape, size: usize, stride: usize) -> Option<Self> {
        // Sizes up to 255, so that a place in a window fits a mantissa easily.
        if size == 0 || stride == 0 || size > 255 || size > input.height || size > input.width {
            return None;
        }
        Some(Self { kind, input, size, stride })
    }

    /// Visits stretches of windows whose numbers lie side by side: where the stretch of the output begins, where that of the
    /// windows' first place in the input, and how long they are. Windows one position apart make whole lines.
    #[inline(always)]
    fn stretches(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let (shape, channels) = (self.output(), self.input.channels);
        let (steps, length) = if self.stride == 1 { (1, shape.width * channels) } else { (shape.width, channels) };
        for y in 0..shape.height {
            for x in 0..steps {
                let from = (y * self.stride * self.input.width + x * self.stride) * channels;
                visit((y * shape.width + x) * channels, from, length);
            }
        }
    }

    /// How far each place of a window lies from its first.
    fn places(&self) -> Vec<usize> {
        let at = |place: usize| (place / self.size * self.input.width + place % self.size) * self.input.channels;
        (0..self.size * self.size).map(at).collect()
    }

    #[expect(clippy::cast_precision_loss, reason = "at most 255²")]
    fn share(&self) -> f32 {
        1.0 / (self.size * self.size) as f32
    }
}

impl Layer for Pool {
    fn output(&self) -> Shape {
        let along = |length: usize| (length - self.size) / self.stride + 1;
        Shape { height: along(self.input.height), width: along(self.input.width), channels: self.input.channels }
    }

    fn parameters(&self) -> Vec<Tensor> {
        Vec::new()
    }

    /// The place in its window of each maximum.
    fn memory(&self, rows: usize) -> usize {
        match self.kind {
            Kind::Max => rows * self.output().len(),
            Kind::Mean => 0,
        }
    }

    fn forward(&self, _rows: usize, _parameters: &[f32], input: &[f32], output: &mut [f32], memory: &mut [f32]) {
        let (inputs, outputs, places) = (self.input.len(), self.output().len(), self.places());
        let examples = input.chunks_exact(inputs).zip(output.chunks_exact_mut(outputs));
        match self.kind {
            Kind::Max => vectorized(
                #[inline(always)]
                || {
                    for ((input, output), memory) in examples.zip(memory.chunks_exact_mut(outputs)) {
                        self.stretches(
                            #[inline(always)]
                            |to, from, length| {
                                let (best, whose) = (&mut output[to..to + length], &mut memory[to..to + length]);
                                largest(&input[from..], &places, best, whose);
                            },
                        );
                    }
                },
            ),
            Kind::Mean => vectorized(
                #[inline(always)]
                || {
                    let share = self.share();
                    for (input, output) in examples {
                        output.fill(0.0);
                        self.stretches(
                            #[inline(always)]
                            |to, from, length| {
                                for place in &places {
                                    let numbers = &input[from + place..][..length];
                                    for (mean, &number) in output[to..to + length].iter_mut().zip(numbers) {
                                        *mean += number * share;
                                    }
                                }
                            },
                        );
                    }
                },
            ),
        }
    }

    fn backward(&self, _rows: usize, _parameters: &[f32], pass: Pass<'_>, error_of_input: Option<&mut [f32]>) {
        let Some(target) = error_of_input else { return };
        let (inputs, outputs, places) = (self.input.len(), self.output().len(), self.places());
        target.fill(0.0);
        let examples = target.chunks_exact_mut(inputs).zip(pass.error.chunks_exact(outputs));
        match self.kind {
            Kind::Max => vectorized(
                #[inline(always)]
                || {
                    for ((target, error), memory) in examples.zip(pass.memory.chunks_exact(outputs)) {
                        self.stretches(
                            #[inline(always)]
                            |from, to, length| {
                                let (error, whose) = (&error[from..from + length], &memory[from..from + length]);
                                let mut number = 0.0;
                                for place in &places {
                                    let target = &mut target[to + place..][..length];
                                    for ((target, &whose), &error) in target.iter_mut().zip(whose).zip(error) {
                                        *target += if whose == number { error } else { 0.0 };
                                    }
                                    number += 1.0;
                                }
                            },
                        );
                    }
                },
            ),
            Kind::Mean => vectorized(
                #[inline(always)]
                || {
                    let share = self.share();
                    for (target, error) in examples {
                        self.stretches(
                            #[inline(always)]
                            |from, to, length| {
                                for place in &places {
                                    let target = &mut target[to + place..][..length];
                                    for (target, &error) in target.iter_mut().zip(&error[from..from + length]) {
                                        *target += error * share;
                                    }
                                }
                            },
                        );
                    }
                },
            ),
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

/// The largest number over all places, and the number of the first place that has it; a NaN is larger than every number.
#[inline(always)]
fn largest(input: &[f32], places: &[usize], best: &mut [f32], whose: &mut [f32]) {
    const LANES: usize = 8;
    let whole = best.len() / LANES * LANES;
    let (best, last) = best.split_at_mut(whole);
    let (whose, last_whose) = whose.split_at_mut(whole);
    let blocks = best.chunks_exact_mut(LANES).zip(whose.chunks_exact_mut(LANES)).enumerate();
    for (block, (best, whose)) in blocks {
        let candidates = |place: usize| -> [f32; LANES] {
            input[place + block * LANES..][..LANES].try_into().expect("a block of numbers")
        };
        let (mut most, mut place_of, mut number) = (candidates(places[0]), [0.0; LANES], 0.0);
        for &place in &places[1..] {
            number += 1.0;
            let candidates = candidates(place);
            for lane in 0..LANES {
                let better = is_better(candidates[lane], most[lane]);
                most[lane] = if better { candidates[lane] } else { most[lane] };
                place_of[lane] = if better { number } else { place_of[lane] };
            }
        }
        best.copy_from_slice(&most);
        whose.copy_from_slice(&place_of);
    }
    for (index, (best, whose)) in last.iter_mut().zip(last_whose).enumerate() {
        let mut number = 0.0;
        (*best, *whose) = (input[places[0] + whole + index], 0.0);
        for &place in &places[1..] {
            number += 1.0;
            if is_better(input[place + whole + index], *best) {
                (*best, *whose) = (input[place + whole + index], number);
            }
        }
    }
}

#[inline(always)]
#[expect(clippy::neg_cmp_op_on_partial_ord, reason = "a NaN is better than every number: it must not be overlooked")]
fn is_better(candidate: f32, best: f32) -> bool {
    !(candidate <= best)
}
