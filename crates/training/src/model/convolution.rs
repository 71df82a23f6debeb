//! A convolution over positions, as products of matrices.

use super::layer::{Layer, Pass, Start, Tensor};
use crate::data::Shape;
use crate::gradient::NORM_MARGIN;
use crate::vector::{add_rows, add_scaled_rows, copy_lines, fill_rows, make_finite, squared_norm, vectorized};
use paygo_matrix::{Existing, View, multiply, squared_norms};

/// Every output position is a linear function of a window of the input, the same everywhere.
///
/// The windows of an example are the rows of a matrix `X` (one for each of T output positions, p numbers each); its output is `X·W`,
/// its gradient `Xᵀ·E`. A small gradient (p·q numbers) is written down once for each example: its norm is then read off, and scaled
/// gradients are added. A large one is not: its norm comes from the products of windows with each other and of errors with each
/// other, `‖XᵀE‖² = Σ (XXᵀ)∘(EEᵀ)`, and it is made again when it is added. (Where products leave the range of single precision, the
/// lengths of their factors take their place.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution {
    input: Shape,
    output: Shape,
    size: usize,
    stride: usize,
    padding: usize,
    lines: Vec<Line>,
}

/// One line of the windows of some output positions side by side, where it lies inside the input. From one position to the next it is
/// p numbers in the window matrix, and `stride` positions in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    /// Where the first lies in the window matrix.
    window: usize,
    /// Where the first lies in the input.
    input: usize,
    /// How many numbers it has.
    length: usize,
    /// How many positions there are.
    count: usize,
}

/// Gradients of up to this many numbers are written down for every example of a chunk.
const SMALL: usize = 1 << 15;

/// About this many windows are laid out at a time: enough for a product to be fast, few enough to stay in cache.
const WINDOWS: usize = 128;

/// Squared lengths between these two have products in the range of single precision.
const SHORT: f64 = 1e-24;
const LONG: f64 = 1e30;

/// A unit roundoff of single precision.
const ROUNDOFF: f64 = 1.0 / (1 << 24) as f64;

impl Convolution {
    /// `outputs` channels from windows of `size × size` positions, `stride` apart, with `padding` zeros around the input; `None` when
    /// not even one window fits, or all of them together have more than 2²⁸ numbers.
    #[must_use]
    pub fn new(input: Shape, outputs: usize, size: usize, stride: usize, padding: usize) -> Option<Self> {
        if outputs == 0 || size == 0 || stride == 0 || padding >= size {
            return None;
        }
        if input.height + 2 * padding < size || input.width + 2 * padding < size {
            return None;
        }
        let height = (input.height + 2 * padding - size) / stride + 1;
        let width = (input.width + 2 * padding - size) / stride + 1;
        let output = Shape { height, width, channels: outputs };
        let numbers = [height, width, size, size, input.channels].iter().try_fold(1usize, |n, &m| n.checked_mul(m));
        let results = [height, width, outputs].iter().try_fold(1usize, |n, &m| n.checked_mul(m));
        if [numbers, results].iter().any(|count| count.is_none_or(|count| count > 1 << 28)) {
            return None;
        }
        let mut convolution = Self { input, output, size, stride, padding, lines: Vec::new() };
        convolution.lines = convolution.all_lines();
        Some(convolution)
    }

    /// T, p and q.
    const fn sizes(&self) -> (usize, usize, usize) {
        let positions = self.output.height * self.output.width;
        (positions, self.size * self.size * self.input.channels, self.output.channels)
    }

    /// Whether gradients are written down.
    const fn is_small(&self) -> bool {
        let (positions, p, q) = self.sizes();
        p * q <= SMALL || p * q <= positions * positions
    }

    /// How many examples are laid out at a time.
    const fn group(&self) -> usize {
        WINDOWS.div_ceil(self.sizes().0)
    }

    fn weights<'a>(&self, parameters: &'a [f32]) -> View<'a> {
        let (_, p, q) = self.sizes();
        View::new(&parameters[..p * q], p, q)
    }

    fn all_lines(&self) -> Vec<Line> {
        let (channels, width, p) = (self.input.channels, self.input.width, self.sizes().1);
        let mut lines = Vec::new();
        for y in 0..self.output.height {
            for line in 0..self.size {
                let from = y * self.stride + line;
                if from < self.padding || from - self.padding >= self.input.height {
                    continue;
                }
                let (row, at) = ((from - self.padding) * width, y * self.output.width);
                let mut x = 0;
                while x < self.output.width {
                    // Columns of the window that lie inside.
                    let left = x * self.stride;
                    let first = self.padding.saturating_sub(left);
                    let last = self.size.min((width + self.padding).saturating_sub(left));
                    let whole = first == 0 && last == self.size;
                    // Windows that lie wholly inside come together.
                    let count = if whole { (width + self.padding - self.size - left) / self.stride + 1 } else { 1 };
                    let count = count.min(self.output.width - x);
                    if first < last {
                        lines.push(Line {
                            window: (at + x) * p + (line * self.size + first) * channels,
                            input: (row + left + first - self.padding) * channels,
                            length: (last - first) * channels,
                            count,
                        });
                    }
                    x += count;
                }
            }
        }
        lines
    }

    /// The window matrices of examples, below each other. Padding is not written: it must be zero already.
    fn lay_out(&self, input: &[f32], windows: &mut [f32]) {
        let (positions, p, _) = self.sizes();
        let step = self.stride * self.input.channels;
        vectorized(
            #[inline(always)]
            || {
                let examples = input.chunks_exact(self.input.len()).zip(windows.chunks_exact_mut(positions * p));
                for (input, windows) in examples {
                    for line in &self.lines {
                        let (windows, input) = (&mut windows[line.window..], &input[line.input..]);
                        copy_lines(windows, p, input, step, line.length, line.count);
                    }
                }
            },
        );
    }

    /// One group of windows, with zeros where the padding will be; and the rest of what is kept.
    fn windows<'a>(&self, memory: &'a mut [f32]) -> (&'a mut [f32], &'a mut [f32]) {
        let (positions, p, _) = self.sizes();
        let (windows, rest) = memory.split_at_mut(self.group() * positions * p);
        if self.padding > 0 {
            windows.fill(0.0);
        }
        (windows, rest)
    }

    /// The squared norm of `Xᵀ·E` and of the errors' sum, without writing them down: an upper bound, and as much work for every example.
    fn squared_norm_by_products(&self, windows: &[f32], error: &[f32], scratch: &mut Vec<f32>) -> f64 {
        let (positions, p, q) = self.sizes();
        let mut norms = vec![0.0; positions];
        // The lengths of all terms of the gradient added up, and of those whose products may vanish in single precision.
        let (mut mass, mut low, mut of_errors) = (0.0, 0.0, 0.0);
        let mut fits = true;
        squared_norms(windows, p, |t, norm| norms[t] = norm);
        squared_norms(error, q, |t, norm| {
            let length = (norms[t] * norm).sqrt();
            mass += length;
            of_errors += norm.sqrt();
            low += if norms[t] < SHORT || norm < SHORT { length } else { 0.0 };
            // NaN is in no range.
            fits &= norms[t] <= LONG && norm <= LONG;
        });
        scratch.resize(2 * positions * positions, 0.0);
        let (windows_by_windows, errors_by_errors) = scratch.split_at_mut(positions * positions);
        let (x, e) = (View::new(windows, positions, p), View::new(error, positions, q));
        multiply(windows_by_windows, Existing::Replace, x, x.transposed());
        multiply(errors_by_errors, Existing::Replace, e, e.transposed());
        let products = windows_by_windows.iter().zip(&*errors_by_errors);
        let sum: f64 = products.map(|(&x, &e)| f64::from(x) * f64::from(e)).sum();
        let mut constant = vec![0.0; q];
        add_rows(&mut constant, error, Existing::Replace);
        // ROUNDING: up. Each product is off by at most γ of the lengths of its factors, or twice those lengths where it may vanish; so is
        // the gradient that is added later.
        #[expect(clippy::cast_precision_loss, reason = "sizes of a layer")]
        let (of_products, of_gradient) = (2.0 * (p + q) as f64 * ROUNDOFF, 2.0 * (positions + 1) as f64 * ROUNDOFF);
        let norm = (sum.max(0.0) + of_products * mass * mass + 4.0 * low * mass).sqrt() + of_gradient * mass;
        let by_products = norm * norm + squared_norm(&constant) + of_gradient * mass * mass;
        // No gradient is longer than its terms one behind another: that serves where products overflow.
        let by_lengths = (mass * mass + of_errors * of_errors) * (1.0 + of_gradient) * (1.0 + NORM_MARGIN);
        if fits { by_products } else { by_lengths }
    }
}

impl Layer for Convolution {
    fn output(&self) -> Shape {
        self.output
    }

    fn parameters(&self) -> Vec<Tensor> {
        let (_, p, q) = self.sizes();
        vec![
            Tensor::new("weight", &[self.size, self.size, self.input.channels, q], Start::Scaled { inputs: p }),
            Tensor::new("bias", &[q], Start::Zeros),
        ]
    }

    /// Gradients, where they are written down, and one group of windows.
    fn memory(&self, rows: usize) -> usize {
        let (positions, p, q) = self.sizes();
        let gradients = if self.is_small() { rows * (p * q + q) } else { 0 };
        gradients + self.group() * positions * p
    }

    fn forward(&self, _rows: usize, parameters: &[f32], input: &[f32], output: &mut [f32], memory: &mut [f32]) {
        let (positions, p, q) = self.sizes();
        let group = self.group();
        fill_rows(output, &parameters[p * q..]);
        let (all, _) = self.windows(memory);
        for (input, output) in input.chunks(group * self.input.len()).zip(output.chunks_mut(group * positions * q)) {
            let rows = output.len() / q;
            let windows = &mut all[..rows * p];
            self.lay_out(input, windows);
            multiply(output, Existing::Add, View::new(windows, rows, p), self.weights(parameters));
        }
    }

    fn backward(&self, _rows: usize, parameters: &[f32], pass: Pass<'_>, error_of_input: Option<&mut [f32]>) {
        let Some(target) = error_of_input else { return };
        let (positions, p, q) = self.sizes();
        let (group, inputs, step) = (self.group(), self.input.len(), self.stride * self.input.channels);
        target.fill(0.0);
        for (target, error) in target.chunks_mut(group * inputs).zip(pass.error.chunks(group * positions * q)) {
            let rows = error.len() / q;
            let windows = &mut pass.memory[..rows * p];
            multiply(windows, Existing::Replace, View::new(error, rows, q), self.weights(parameters).transposed());
            vectorized(
                #[inline(always)]
                || {
                    for (target, windows) in target.chunks_exact_mut(inputs).zip(windows.chunks_exact(positions * p)) {
                        for line in &self.lines {
                            for index in 0..line.count {
                                let target = &mut target[line.input + index * step..][..line.length];
                                let numbers = &windows[line.window + index * p..][..line.length];
                                for (target, number) in target.iter_mut().zip(numbers) {
                                    *target += number;
                                }
                            }
                        }
                    }
                },
            );
        }
    }

    fn squared_norms(&self, _rows: usize, pass: Pass<'_>, norms: &mut [f64]) {
        let (positions, p, q) = self.sizes();
        let (windows, gradients) = self.windows(pass.memory);
        let windows = &mut windows[..positions * p];
        let mut scratch = Vec::new();
        let examples = pass.input.chunks_exact(self.input.len()).zip(pass.error.chunks_exact(positions * q));
        for (index, ((input, error), norm)) in examples.zip(norms).enumerate() {
            self.lay_out(input, windows);
            *norm = if self.is_small() {
                let gradient = &mut gradients[index * (p * q + q)..][..p * q + q];
                write_gradient(gradient, windows, error, (positions, p, q));
                squared_norm(gradient)
            } else {
                self.squared_norm_by_products(windows, error, &mut scratch)
            };
        }
    }

    fn add_gradients(&self, _rows: usize, pass: Pass<'_>, factors: Option<&[f32]>, sum: &mut [f32], mode: Existing) {
        let (positions, p, q) = self.sizes();
        let group = self.group();
        let (windows, gradients) = self.windows(pass.memory);
        match factors {
            Some(factors) if self.is_small() => add_scaled_rows(sum, gradients, factors, mode),
            Some(factors) => {
                let (mut gradient, mut mode) = (vec![0.0; p * q + q], mode);
                let examples = pass.input.chunks_exact(self.input.len()).zip(pass.error.chunks_exact(positions * q));
                for ((input, error), &factor) in examples.zip(factors) {
                    let windows = &mut windows[..positions * p];
                    self.lay_out(input, windows);
                    write_gradient(&mut gradient, windows, error, (positions, p, q));
                    // Products of finite numbers may overflow, and 0 times that is no number.
                    make_finite(&mut gradient);
                    add_scaled_rows(sum, &gradient, &[factor], mode);
                    mode = Existing::Add;
                }
            }
            None => {
                let (weights, constants) = sum.split_at_mut(p * q);
                let mut weights_mode = mode;
                let groups = pass.input.chunks(group * self.input.len()).zip(pass.error.chunks(group * positions * q));
                for (input, error) in groups {
                    let rows = error.len() / q;
                    let windows = &mut windows[..rows * p];
                    self.lay_out(input, windows);
                    let windows = View::new(windows, rows, p).transposed();
                    multiply(weights, weights_mode, windows, View::new(error, rows, q));
                    weights_mode = Existing::Add;
                }
                add_rows(constants, pass.error, mode);
            }
        }
    }
}

/// `Xᵀ·E`, and below it the sum of the errors.
fn write_gradient(gradient: &mut [f32], windows: &[f32], error: &[f32], (positions, p, q): (usize, usize, usize)) {
    let (weights, constants) = gradient.split_at_mut(p * q);
    let windows = View::new(windows, positions, p).transposed();
    multiply(weights, Existing::Replace, windows, View::new(error, positions, q));
    add_rows(constants, error, Existing::Replace);
}
