//! Private principal components: the directions in which inputs vary most, from one noisy matrix that is charged like any release.
//!
//! # Notation
//! `x` is an input scaled to length at most 1, `A = Σ x·xᵀ`. What is released is the upper triangle of `A`, diagonal included, with
//! noise on every entry. Everything after that is post-processing.
//!
//! # What one example can do
//! Every `x` is put on a grid of 2⁻¹¹, toward zero, so it is a vector of integers and never gets longer. Products and sums of them are
//! computed exactly: the triangle does not depend on the order of the examples, on blocks, threads or the machine. Taking an example
//! away changes it by that example's own `x·xᵀ`, whose norm is at most 1, and by nothing else.

mod eigen;

use crate::data::{Examples, Shape};
use crate::gate::{Gate, GateError};
use crate::vector::vectorized;
use paygo_accounting::cost::{Cost, CostError};
use paygo_accounting::filter::{Decision, Permit, Refusal};
use paygo_accounting::params::{Neighbors, NoiseMultiplier, OutOfDomain};
use paygo_accounting::secret::Secret;
use paygo_matrix::{Existing, View, multiply};
use paygo_noise::{FineGaussian, NotCovered, Release, Source};
use rayon::prelude::*;

/// Inputs are multiples of one over this.
const STEPS: f64 = 2048.0;

/// The squared length of the longest input, in squared steps.
const MAX_SQUARED_LENGTH: f64 = STEPS * STEPS;

/// Integers up to this are exact in single precision.
const EXACT: f64 = 16_777_216.0;

/// The most rows that are multiplied at a time.
const ROWS: usize = 512;

/// The most numbers that an input may have: the matrix has its square.
const MAX_FEATURES: usize = 4096;

/// The most examples: sums of this many stay exact in double precision.
const MAX_EXAMPLES: usize = 1 << 31;

/// What went wrong; unless it says so, nothing was charged.
#[derive(Debug, thiserror::Error)]
pub enum PcaError {
    /// A parameter out of its domain.
    #[error(transparent)]
    OutOfDomain(#[from] OutOfDomain),
    /// No price.
    #[error(transparent)]
    Cost(#[from] CostError),
    /// The budget was not asked, or did not answer.
    #[error("the budget did not answer: {0}")]
    Gate(GateError),
    /// The budget does not cover it.
    #[error("the budget does not cover the principal components: {0}")]
    Refused(Refusal),
    /// A permit for something else: it stays charged.
    #[error(transparent)]
    NotCovered(#[from] NotCovered),
}

/// What [`principal_components`] costs.
///
/// # Theorem
/// Discrete Gaussian noise of standard deviation `noise_multiplier` on the upper triangle of `A`, diagonal included, on its grid is
/// `Δ²/(2·noise_multiplier²)`-zCDP (T52) at the sensitivity
/// - Δ = 1 for neighbors that differ by an example's presence: `‖x·xᵀ‖_F = ‖x‖² ≤ 1`, and a triangle has no more than the whole;
/// - Δ = √2 for neighbors that differ in an example's value: `‖x·xᵀ − y·yᵀ‖_F² = ‖x‖⁴ + ‖y‖⁴ − 2(x·y)² ≤ 2`. Orthogonal unit vectors
///   reach it.
///
/// Source: Dwork, Talwar, Thakurta and Zhang, *Analyze Gauss*, STOC 2014, Algorithm 1. \[Y\] leave its price out of their total
/// (E13); here it is asked for like any other.
///
/// # Errors
/// [`OutOfDomain`] when the noise is not between 10⁻⁶ and 10⁸.
pub fn cost(noise_multiplier: NoiseMultiplier, neighbors: Neighbors) -> Result<Cost, PcaError> {
    Ok(noise(noise_multiplier, neighbors)?.cost(neighbors)?)
}

/// The noise on the triangle, in squared steps.
fn noise(noise_multiplier: NoiseMultiplier, neighbors: Neighbors) -> Result<Release, OutOfDomain> {
    const SQUARED: u64 = 1 << 44;
    if !(1e-6..=1e8).contains(&noise_multiplier.get()) {
        return Err(OutOfDomain::new("noise_multiplier", noise_multiplier, "1e-6 <= noise_multiplier <= 1e8"));
    }
    // ROUNDING: up, to whole steps; multiplying by a power of two is exact.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an integer below 2^49")]
    let std = (noise_multiplier.get() * MAX_SQUARED_LENGTH).ceil() as u64;
    let sensitivity = match neighbors {
        Neighbors::AddRemove | Neighbors::ZeroOut => SQUARED,
        Neighbors::ReplaceOne => 2 * SQUARED,
    };
    Release::fine_gaussian(FineGaussian::new(std)?, sensitivity)
}

/// The directions in which inputs vary most, most important first, from a matrix that was charged and has noise.
///
/// `noise_multiplier` is the standard deviation of the noise on each entry: an example's presence moves the matrix by at most 1.
///
/// # Soundness
/// The sensitivity is that of [`cost`]; sums and noise are integers, and exact.
///
/// # Errors
/// [`PcaError`]: a parameter out of its domain, no answer, or a refusal, which costs nothing.
pub fn principal_components(
    examples: &Examples,
    components: usize,
    noise_multiplier: NoiseMultiplier,
    gate: &mut dyn Gate,
    source: &mut Source,
) -> Result<Projection, PcaError> {
    let (shape, features) = (examples.shape(), examples.shape().len());
    if features > MAX_FEATURES {
        return Err(OutOfDomain::new("features", features, "at most 4096").into());
    }
    if !(1..=features).contains(&components) {
        return Err(OutOfDomain::new("components", components, "1 <= components <= the length of an input").into());
    }
    if examples.len() > MAX_EXAMPLES {
        return Err(OutOfDomain::new("examples", examples.len(), "at most 2^31").into());
    }
    let noise = noise(noise_multiplier, gate.neighbors())?;
    let permit = match gate.request(&noise.cost(gate.neighbors())?).map_err(PcaError::Gate)? {
        Decision::Refused(refusal) => return Err(PcaError::Refused(refusal)),
        Decision::Admitted(permit) => permit,
    };
    let triangle = noisy_triangle(examples, &noise, permit, source)?;
    let components = eigen::largest(mirrored(&triangle, features), features, components);
    Ok(Projection { shape, components })
}

/// Directions, to look at inputs along them.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    shape: Shape,
    /// Row after row, each as long as an input.
    components: Vec<f32>,
}

impl Projection {
    /// Directions that were stored: finding them again would be charged again.
    ///
    /// # Errors
    /// [`OutOfDomain`] when they are not whole rows of finite numbers.
    pub fn restore(shape: Shape, components: Vec<f32>) -> Result<Self, OutOfDomain> {
        if components.is_empty() || shape.is_empty() || !components.len().is_multiple_of(shape.len()) {
            let allowed = "as many numbers as an input has, at least once";
            return Err(OutOfDomain::new("components", components.len(), allowed));
        }
        if components.iter().any(|x| !x.is_finite()) {
            return Err(OutOfDomain::new("components", "a number that is not finite", "finite numbers"));
        }
        Ok(Self { shape, components })
    }

    /// The directions, most important first: row after row, each of length 1 and as long as an input.
    #[must_use]
    pub fn components(&self) -> &[f32] {
        &self.components
    }

    /// How many.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.components.len() / self.shape.len()
    }

    /// The shape of the inputs that it takes.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// Inputs as seen along the directions: vectors of as many numbers as there are directions.
    ///
    /// What an input becomes depends on that input alone, in every bit. Inputs are not scaled. What passes single precision is put at
    /// its end.
    ///
    /// # Panics
    /// When the inputs have another shape.
    #[must_use]
    pub fn apply(&self, examples: &Examples) -> Examples {
        assert_eq!(examples.shape(), self.shape, "the shape of the inputs");
        let (features, count) = (self.shape.len(), self.count());
        let directions = View::new(&self.components, count, features).transposed();
        let mut inputs = vec![0.0f32; examples.len() * count];
        inputs.par_chunks_mut(ROWS * count).enumerate().for_each(|(block, target)| {
            let start = block * ROWS;
            let rows = target.len() / count;
            let inputs = View::new(examples.inputs(start..start + rows), rows, features);
            multiply(target, Existing::Replace, inputs, directions);
            for number in target {
                *number = if number.is_nan() { 0.0 } else { number.clamp(f32::MIN, f32::MAX) };
            }
        });
        examples.with_inputs(Shape::vector(count), inputs).expect("finite, and one for each example")
    }
}

/// The upper triangle of `A`, row after row, with noise on every entry: uses the permit up.
fn noisy_triangle(
    examples: &Examples,
    noise: &Release,
    permit: Permit,
    source: &mut Source,
) -> Result<Vec<f64>, NotCovered> {
    // Integers below 2⁵³.
    #[expect(clippy::cast_possible_truncation, reason = "whole numbers")]
    let sum: Vec<i64> = add_up(examples).expose().iter().map(|&x| x as i64).collect();
    let released = noise.draw(permit, source, &sum)?;
    #[expect(clippy::cast_precision_loss, reason = "post-processing of released integers")]
    Ok(released.iter().map(|&x| x as f64 / MAX_SQUARED_LENGTH).collect())
}

/// `Σ x·xᵀ` in squared steps, the upper triangle row after row: exact.
///
/// # Soundness
/// A block holds only so many rows that the squares of no column pass 2²⁴. By `|Σ aᵢ·bᵢ| ≤ max(Σ aᵢ², Σ bᵢ²)`, over any of its rows,
/// every partial sum of every product of columns is an integer of at most 24 bits, which single precision holds, in whatever order they
/// are added and fused or not. Blocks are added in double precision, which holds 2³¹ times the largest `x·xᵀ`.
fn add_up(examples: &Examples) -> Secret<Vec<f64>> {
    let threads = rayon::current_num_threads();
    let span = examples.len().div_ceil(threads).max(1);
    let sum = (0..threads).into_par_iter().map(|thread| {
        let mut summer = Scatter::new(examples.shape().len());
        for index in (thread * span).min(examples.len())..((thread + 1) * span).min(examples.len()) {
            summer.add(examples.input(index));
        }
        summer.finish()
    });
    let both = |mut one: Vec<f64>, other: Vec<f64>| {
        one.iter_mut().zip(other).for_each(|(one, other)| *one += other);
        one
    };
    let nothing = vec![0.0; examples.shape().len() * (examples.shape().len() + 1) / 2];
    Secret::new(sum.reduce_with(both).unwrap_or(nothing))
}

/// A block of rows, and the sum of those before it.
struct Scatter {
    features: usize,
    row: Vec<f32>,
    rows: Vec<f32>,
    /// The sum of the squares in each column of the block.
    squares: Vec<f64>,
    product: Vec<f32>,
    sum: Vec<f64>,
}

impl Scatter {
    fn new(features: usize) -> Self {
        Self {
            features,
            row: vec![0.0; features],
            rows: Vec::new(),
            squares: vec![0.0; features],
            product: vec![0.0; features * features],
            sum: vec![0.0; features * (features + 1) / 2],
        }
    }

    fn add(&mut self, input: &[f32]) {
        on_the_grid(input, &mut self.row);
        let mut room = self.rows.len() < ROWS * self.features;
        for (squares, &x) in self.squares.iter_mut().zip(&self.row) {
            *squares += f64::from(x) * f64::from(x);
            room &= *squares <= EXACT;
        }
        if !room {
            // The squares of the new row are put aside with those of the block, and begin the next.
            self.multiply();
            for (squares, &x) in self.squares.iter_mut().zip(&self.row) {
                *squares = f64::from(x) * f64::from(x);
            }
        }
        self.rows.extend_from_slice(&self.row);
    }

    /// Adds the block to the sum.
    fn multiply(&mut self) {
        let (rows, features) = (self.rows.len() / self.features, self.features);
        let block = View::new(&self.rows, rows, features);
        multiply(&mut self.product, Existing::Replace, block.transposed(), block);
        vectorized(
            #[inline(always)]
            || {
                let mut sum = &mut self.sum[..];
                for (i, product) in self.product.chunks_exact(features).enumerate() {
                    let (row, rest) = std::mem::take(&mut sum).split_at_mut(features - i);
                    row.iter_mut().zip(&product[i..]).for_each(|(sum, &product)| *sum += f64::from(product));
                    sum = rest;
                }
            },
        );
        self.rows.clear();
    }

    fn finish(mut self) -> Vec<f64> {
        if !self.rows.is_empty() {
            self.multiply();
        }
        self.sum
    }
}

/// An input scaled to length at most 1, in steps: integers.
///
/// # Soundness
/// ROUNDING: toward zero, so no integer is more than the number it stands for, and the factor is down by 2⁻⁴⁰, more than the error of a
/// norm of 4,096 numbers in double precision. What counts is the last line: the length of the integers is exact, and what were too
/// long would not take part.
fn on_the_grid(input: &[f32], row: &mut [f32]) {
    let norm = squared(input).sqrt();
    let factor = if norm <= 1.0 { STEPS } else { STEPS * (1.0 - 2f64.powi(-40)) / norm };
    #[expect(clippy::cast_possible_truncation, reason = "an integer up to 2048")]
    row.iter_mut().zip(input).for_each(|(row, &x)| *row = (f64::from(x) * factor).trunc() as f32);
    // Said as it must be: no number is not at most the longest.
    let is_short = squared(row) <= MAX_SQUARED_LENGTH;
    if !is_short {
        row.fill(0.0);
    }
}

/// The sum of squares in double precision; exact for integers while it is below 2⁵³.
fn squared(numbers: &[f32]) -> f64 {
    numbers.iter().map(|&x| f64::from(x) * f64::from(x)).sum()
}

/// The whole matrix from its upper triangle.
fn mirrored(triangle: &[f64], features: usize) -> Vec<f64> {
    let mut matrix = vec![0.0; features * features];
    let places = (0..features).flat_map(|i| (i..features).map(move |j| (i, j)));
    for ((i, j), &x) in places.zip(triangle) {
        matrix[i * features + j] = x;
        matrix[j * features + i] = x;
    }
    matrix
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "small numbers")]
mod tests {
    use super::*;
    use crate::gate::FilterGate;
    use crate::noise::standard_normals;
    use paygo_accounting::filter::{Filter, Zcdp};
    use paygo_numeric::Amount;

    fn noise(multiplier: f64) -> NoiseMultiplier {
        NoiseMultiplier::new(multiplier).expect("noise")
    }

    fn gate(rho: &str, neighbors: Neighbors) -> FilterGate<Zcdp> {
        let limit = Amount::from_decimal_up(rho).expect("an amount");
        FilterGate::new(Filter::new(Zcdp::with_limit(limit, Amount::ZERO).expect("a rule"), neighbors))
    }

    fn examples(rows: &[Vec<f32>]) -> Examples {
        let shape = Shape::vector(rows[0].len());
        Examples::new(shape, 2, rows.concat(), vec![0; rows.len()]).expect("examples")
    }

    fn sum(rows: &[Vec<f32>]) -> Vec<f64> {
        add_up(&examples(rows)).expose()
    }

    /// `‖a − b‖` in units of the longest `x·xᵀ`, exactly below the root.
    fn distance(a: &[f64], b: &[f64]) -> f64 {
        (a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>() / (MAX_SQUARED_LENGTH * MAX_SQUARED_LENGTH))
            .sqrt()
    }

    /// Short and long, tiny and huge, alike and unlike, on an axis and off.
    fn all_sorts(features: usize, random: usize) -> Vec<Vec<f32>> {
        let axis = |i: usize, x: f32| (0..features).map(|j| if i == j { x } else { 0.0 }).collect::<Vec<_>>();
        let mut rows = vec![
            vec![0.0; features],
            vec![f32::MAX; features],
            vec![f32::MIN_POSITIVE; features],
            vec![1.0; features],
            axis(0, 1.0),
            axis(0, -1.0),
            axis(1, 1e30),
            axis(1, 1.0f32.next_up()),
            axis(0, 0.999_999_9),
        ];
        let mut source = Source::insecure_from_seed(21);
        let mut normals = vec![0.0; features];
        for i in 0..random {
            standard_normals(&mut source, &mut normals);
            let scale = [0.01, 0.3, 1.0, 1e6, 1.1 / (features as f64).sqrt()][i % 5];
            rows.push(normals.iter().map(|x| (x * scale) as f32).collect());
        }
        rows
    }

    /// Taking away, adding and replacing any example, with all others moved up, moves the triangle by no more than is charged; and some
    /// reach it.
    #[test]
    fn nobody_moves_the_triangle_by_more_than_the_sensitivity() {
        let rows = all_sorts(7, 40);
        let whole = sum(&rows);
        let mut most = (0.0f64, 0.0f64);
        for out in 0..rows.len() {
            let mut without = rows.clone();
            let taken = without.remove(out);
            let remaining = sum(&without);
            let moved = distance(&whole, &remaining);
            assert!(moved <= 1.0, "{out} {moved}");
            // By its own contribution, and nothing else.
            let alone: Vec<f64> = whole.iter().zip(&remaining).map(|(a, b)| a - b).collect();
            assert_eq!(alone, sum(&[taken]), "{out}");
            most.0 = most.0.max(moved);
            for other in &rows {
                let mut replaced = without.clone();
                replaced.push(other.clone());
                let moved = distance(&whole, &sum(&replaced));
                assert!(moved * moved <= 2.0 + 1e-12, "{out} {moved}");
                most.1 = most.1.max(moved);
            }
        }
        assert!(most.0 == 1.0 && most.1 > 1.41, "{most:?}");
    }

    /// Against integers of 128 bits, for blocks that are full by rows and by squares, whatever the order and the number of threads.
    #[test]
    fn the_sum_is_exact_in_any_order() {
        let mut rows = all_sorts(5, 1500);
        rows.extend(std::iter::repeat_n(vec![1.0, 0.0, 0.0, 0.0, 0.0], 700));
        rows.extend(std::iter::repeat_n(vec![0.7, -0.7, 0.1, 0.0, 0.0], 700));
        let mut exact = [0i128; 15];
        let mut row = [0.0; 5];
        for input in &rows {
            on_the_grid(input, &mut row);
            assert!(row.iter().all(|x| x.fract() == 0.0));
            let mut places = exact.iter_mut();
            for i in 0..5 {
                for j in i..5 {
                    *places.next().expect("a place") += row[i] as i128 * row[j] as i128;
                }
            }
        }
        let expect: Vec<f64> = exact.iter().map(|&x| x as f64).collect();
        assert_eq!(sum(&rows), expect);
        for threads in [1, 3] {
            rows.reverse();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            assert_eq!(pool.install(|| sum(&rows)), expect, "{threads}");
        }
        assert_eq!(sum(&vec![vec![1.0, 0.0]; 1000]), [1000.0 * MAX_SQUARED_LENGTH, 0.0, 0.0]);
        assert_eq!(add_up(&examples(&[vec![1.0, 1.0]]).select(&[])).expose(), [0.0; 3]);
    }

    #[test]
    fn inputs_are_scaled_and_hardly_changed() {
        for (i, input) in all_sorts(784, 100).iter().enumerate() {
            let mut row = vec![0.0; 784];
            on_the_grid(input, &mut row);
            let norm = squared(input).sqrt();
            let scale = if norm > 1.0 { STEPS / norm } else { STEPS };
            let off = input.iter().zip(&row).map(|(&x, &n)| (f64::from(x) * scale - f64::from(n)).abs());
            assert!(off.fold(0.0, f64::max) <= 1.0 + 1e-6, "{i}");
            assert!(squared(&row) <= MAX_SQUARED_LENGTH, "{i}");
            // Nobody is left out.
            assert!(norm <= 0.1 || squared(&row) > 0.0, "{i}");
        }
    }

    /// Every entry of the triangle has the noise that was charged, diagonal or not, and entries do not know each other.
    #[test]
    fn the_noise_is_what_was_charged() {
        let features = 300;
        let nobody = examples(&[vec![1.0; features]]).select(&[]);
        let (multiplier, neighbors) = (noise(16.0), Neighbors::AddRemove);
        let release = super::noise(multiplier, neighbors).expect("noise");
        let cost = release.cost(neighbors).expect("a cost");
        let Decision::Admitted(permit) = gate("1", neighbors).request(&cost).expect("an answer") else {
            panic!("refused")
        };
        let mut source = Source::insecure_from_seed(22);
        let all = noisy_triangle(&nobody, &release, permit, &mut source).expect("covered");
        // Whole steps: no digit tells more.
        assert!(all.iter().all(|x| (x * MAX_SQUARED_LENGTH).fract() == 0.0));
        assert_eq!(all.len(), features * (features + 1) / 2);
        let variance = |numbers: &[f64]| numbers.iter().map(|x| x * x).sum::<f64>() / numbers.len() as f64 / 256.0;
        let matrix = mirrored(&all, features);
        let diagonal: Vec<f64> = (0..features).map(|i| matrix[i * features + i]).collect();
        // Six deviations of a variance: 6·√(2/n).
        assert!((variance(&all) - 1.0).abs() < 6.0 * (2.0 / 45_150f64).sqrt(), "{}", variance(&all));
        assert!((variance(&diagonal) - 1.0).abs() < 6.0 * (2.0 / 300f64).sqrt(), "{}", variance(&diagonal));
        let products: f64 = all.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / 45_149.0 / 256.0;
        assert!(products.abs() < 6.0 / 45_149f64.sqrt(), "{products}");
        for i in 0..features {
            for j in 0..features {
                assert_eq!(matrix[i * features + j], matrix[j * features + i]);
            }
        }
    }

    #[test]
    fn it_costs_what_its_sensitivity_says() {
        for (neighbors, rho) in
            [(Neighbors::AddRemove, 0.125), (Neighbors::ZeroOut, 0.125), (Neighbors::ReplaceOne, 0.25)]
        {
            let cost = cost(noise(2.0), neighbors).expect("a cost");
            let found = cost.rho().expect("a rho").get();
            assert!((rho..rho * (1.0 + 1e-12)).contains(&found), "{neighbors:?} {found}");
            // And that is what the gate is asked for.
            let mut gate = gate("1", neighbors);
            let rows = examples(&all_sorts(4, 20));
            let mut source = Source::insecure_from_seed(23);
            principal_components(&rows, 2, noise(2.0), &mut gate, &mut source).expect("admitted");
            assert_eq!(gate.filter().sums().lanes(), [cost.total_rho().expect("a rho").amount], "{neighbors:?}");
        }
        // [Y]: 1/(2·16²), which they left out of their total.
        let cost = cost(noise(16.0), Neighbors::AddRemove).expect("a cost");
        assert_eq!(cost.total_rho().map(|rho| rho.amount), Amount::from_decimal_up("0.001953125"));
    }

    #[test]
    fn a_refusal_charges_nothing_and_so_does_nonsense() {
        let rows = examples(&all_sorts(4, 20));
        let mut source = Source::insecure_from_seed(24);
        let before = source.child().bits();
        let mut source = Source::insecure_from_seed(24);
        let mut gate = gate("0.1", Neighbors::AddRemove);
        let mut find = |components, multiplier| {
            let found = principal_components(&rows, components, noise(multiplier), &mut gate, &mut source);
            (found, gate.filter().sums().lanes().to_vec())
        };
        let (refused, spent) = find(2, 2.0);
        assert!(matches!(refused, Err(PcaError::Refused(_))) && spent == [Amount::ZERO], "{refused:?}");
        for (components, multiplier, word) in
            [(0, 4.0, "components"), (5, 4.0, "components"), (2, 1e13, "noise"), (2, 1e-7, "noise")]
        {
            let (found, spent) = find(components, multiplier);
            assert!(found.expect_err("nonsense").to_string().contains(word));
            assert_eq!(spent, [Amount::ZERO]);
        }
        // Nothing was drawn until now.
        assert_eq!(source.child().bits(), before);
    }

    /// A gate that admits something else.
    struct Cheat(FilterGate<Zcdp>);

    impl Gate for Cheat {
        fn neighbors(&self) -> Neighbors {
            self.0.neighbors()
        }

        fn request(&mut self, _cost: &Cost) -> Result<Decision, GateError> {
            self.0.request(&cost(noise(1000.0), self.neighbors())?)
        }

        fn room(&mut self, cost: &Cost, most: u64) -> Result<u64, GateError> {
            self.0.room(cost, most)
        }
    }

    #[test]
    fn only_a_permit_for_the_same_noise_will_do() {
        let rows = examples(&all_sorts(4, 20));
        let mut source = Source::insecure_from_seed(25);
        let mut cheat = Cheat(gate("1", Neighbors::AddRemove));
        let found = principal_components(&rows, 2, noise(2.0), &mut cheat, &mut source);
        assert!(matches!(found, Err(PcaError::NotCovered(_))), "{found:?}");
        assert!(principal_components(&rows, 2, noise(1000.0), &mut cheat, &mut source).is_ok());
    }

    /// Directions of a covariance that was planted come out, in order; with much noise they do not.
    #[test]
    fn planted_directions_are_found() {
        let (features, count, n) = (40, 3, 20_000);
        let mut source = Source::insecure_from_seed(26);
        let mut normals = vec![0.0; features];
        // Orthogonal, by Gram and Schmidt.
        let mut planted: Vec<Vec<f64>> = Vec::new();
        while planted.len() < count {
            standard_normals(&mut source, &mut normals);
            let mut direction = normals.clone();
            for other in &planted {
                let dot: f64 = direction.iter().zip(other).map(|(a, b)| a * b).sum();
                direction.iter_mut().zip(other).for_each(|(a, b)| *a -= dot * b);
            }
            let norm = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
            direction.iter_mut().for_each(|x| *x /= norm);
            planted.push(direction);
        }
        let rows: Vec<Vec<f32>> = (0..n)
            .map(|_| {
                standard_normals(&mut source, &mut normals);
                let mut input: Vec<f64> = normals.iter().map(|x| 0.01 * x).collect();
                let mut along = [0.0; 3];
                standard_normals(&mut source, &mut along);
                for ((direction, scale), along) in planted.iter().zip([0.3, 0.2, 0.1]).zip(along) {
                    input.iter_mut().zip(direction).for_each(|(x, d)| *x += scale * along * d);
                }
                input.iter().map(|&x| x as f32).collect()
            })
            .collect();
        let rows = examples(&rows);
        let mut match_with = |multiplier: f64| -> Vec<f64> {
            let mut gate = gate("1", Neighbors::AddRemove);
            let found =
                principal_components(&rows, count, noise(multiplier), &mut gate, &mut source).expect("admitted");
            assert_eq!((found.count(), found.shape(), found.components().len()), (3, Shape::vector(40), 120));
            let dot = |(a, b): (&[f32], &Vec<f64>)| a.iter().zip(b).map(|(&a, b)| f64::from(a) * b).sum::<f64>().abs();
            found.components().chunks_exact(features).zip(&planted).map(dot).collect()
        };
        assert!(match_with(2.0).iter().all(|&dot| dot > 0.99), "{:?}", match_with(2.0));
        assert!(match_with(1e5).iter().any(|&dot| dot < 0.7), "{:?}", match_with(1e5));
    }

    #[test]
    fn projected_inputs_are_dot_products() {
        let rows = all_sorts(6, 600);
        let shape = Shape { height: 2, width: 3, channels: 1 };
        let labels: Vec<u32> = (0..rows.len() as u32).map(|i| i % 3).collect();
        let examples = Examples::new(shape, 3, rows.concat(), labels).expect("examples");
        let components: Vec<f32> = (0..12).map(|i| (i as f32 - 6.0) / 8.0).collect();
        let projection = Projection::restore(shape, components.clone()).expect("a projection");
        let projected = projection.apply(&examples);
        assert_eq!((projected.shape(), projected.classes()), (Shape::vector(2), 3));
        assert_eq!(projected.labels(), examples.labels());
        for (index, row) in rows.iter().enumerate() {
            for (j, direction) in components.chunks_exact(6).enumerate() {
                let exact: f64 = row.iter().zip(direction).map(|(&x, &d)| f64::from(x) * f64::from(d)).sum();
                let scale: f64 = row.iter().map(|&x| f64::from(x.abs())).sum();
                let exact = exact.clamp(f64::from(f32::MIN), f64::from(f32::MAX));
                let found = f64::from(projected.input(index)[j]);
                assert!((found - exact).abs() <= 1e-6 * scale, "{index} {j} {found} {exact}");
            }
        }
        assert!(Projection::restore(shape, vec![0.0; 7]).is_err());
        assert!(Projection::restore(shape, vec![]).is_err());
        assert!(Projection::restore(shape, vec![f32::NAN; 6]).is_err());
    }
}
