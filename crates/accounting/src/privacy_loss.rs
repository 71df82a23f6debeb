//! The privacy-loss distribution: the tightest price of a plan, certified (T41).
//!
//! A step is known by the law of its privacy loss `L` under `P`; steps add their losses, and
//! `δ(ε) = E_P[(1 − e^{ε−L})₊]` of the sum. Every approximation on the way errs upward:
//!
//! - **Grid.** With `u = e^{−L}`, δ is the mean of a convex, falling function of each step's `u`, so moving the mass of a
//!   cell to its two borders along the chord can only raise it. The chord needs the cell's probability under `P` and,
//!   because `E_P[u; cell] = Q(cell)`, under `Q`. (Doroshenko et al., arXiv:2207.04380, call it connecting the dots.) What
//!   rounding leaves open goes to the right border; what lies above the grid counts as an infinite loss.
//! - **Tilt.** The law is weighted by `e^{λL}` before the transform, so that its errors are relative to the tail that δ
//!   lives in, not to the whole; λ comes from a saddle point. Any λ > 0 is sound.
//! - **Transform.** Powers of the discrete Fourier transform compose the steps; the error of the transform is bounded
//!   beforehand ([`paygo_numeric::fft`]) and added. The sum is known modulo the window: what wraps around from above is
//!   bounded by Chernoff and added; what wraps from below only adds.
//!
//! Both directions are computed; the larger counts. Fixed in advance only: as a filter it would be unsound (T40).

use crate::account::{Question, Row, renyi_row, tightest};
use crate::cost::Cost;
use crate::guarantee::Basis;
use crate::mechanism::{Approximate, Mechanism};
use crate::params::{Count, Delta, Epsilon, Neighbors, Order};
use paygo_numeric::Interval;
use paygo_numeric::elementary::{exp, exp_up, ln, power_of_two};
use paygo_numeric::fft::{Complex, relative_error, transform};
use paygo_numeric::normal::tail_within;
use paygo_numeric::rounding::{add_up, div_up, mul_up, sub_up};
use paygo_numeric::search::{certified, root_within};

/// Unit roundoff.
const U: f64 = f64::EPSILON / 2.0;
/// Different mechanisms beyond which it takes too long: about ten seconds.
pub const MAX_MECHANISMS: usize = 64;
/// Multiples of the tilt tried in Chernoff's bound on what lies above the window.
const CHERNOFF: [f64; 5] = [1.0, 2.0, 5.0, 12.0, 30.0];
/// Cells of one step beyond which it takes too long.
const MAX_CELLS: f64 = 4e5;
/// Multiples of the saddle point that are tried as tilts until the transform's error is small beside δ.
const TILTS: [f64; 4] = [1.0, 0.6, 0.35, 1.5];

/// The price of a plan by its privacy-loss distribution; `None` when a mechanism has none here, or it would take too long.
///
/// # Theorem
/// For each mechanism the pair of laws used dominates it, in the direction concerned, at every ε: Gaussian and Laplace
/// noise by their worst shift, an (ε, δ)-DP step by "reveal with probability δ, else randomized response", a
/// Poisson-sampled Gaussian by `(1−q)·N(0,s²) + q·N(1,s²)` against `N(0,s²)` and the reverse, one on a batch of fixed size by that
/// pair made symmetric (T43). Composition of dominating
/// pairs dominates the composition, also when the queries (not the parameters) are adaptive. Source: Zhu, Dong, Wang,
/// arXiv:2106.08567, Theorems 10 and 11 (T41).
#[must_use]
pub fn row(cost: &Cost, question: Question) -> Option<Row> {
    let steps: Vec<(Pair, Count)> = cost
        .singles()?
        .into_iter()
        .map(|(single, count)| Some((single.family().pair()?, count)))
        .collect::<Option<_>>()?;
    if steps.len() > MAX_MECHANISMS || steps.is_empty() {
        return None;
    }
    // Where to look, and with which tilt: the Rényi row bounds both, the saddle point says where about they are.
    let near = renyi_row(cost, question);
    let usable = near.delta.get() > 1e-290 && near.delta < Delta::ONE && near.epsilon.get() < 1e6;
    if !usable || near.epsilon == Epsilon::ZERO {
        return None;
    }
    let guide = &guide(&steps)?;
    let (tilt, center, delta) = saddle_point(guide, question, &near)?;
    // Any tilt is sound, so the least answer is; the first that leaves little error and a fine grid will do: what the
    // grid adds to the variance, at most h²/4 a step, is little beside the variance itself, about twice the KL divergence.
    let total: f64 = steps.iter().map(|(_, count)| count.to_f64()).sum();
    let variance = 2.0 * guide.renyi(Order::new(1.01).ok()?).get();
    let mut best: Option<Row> = None;
    for share in TILTS {
        let plan =
            Composition { guide, steps: &steps, tilt: share * tilt, epsilon: center, delta, most: near.epsilon.get() };
        let Some((row, error, h)) = plan.row(question) else { continue };
        let good = error <= 1e-3 * row.delta.get() && total * h * h / 4.0 <= 1e-3 * variance;
        if best.as_ref().is_none_or(|best| (row.epsilon, row.delta) < (best.epsilon, best.delta)) {
            best = Some(row);
        }
        if good {
            break;
        }
    }
    best
}

/// How many different mechanisms the cost has, if that is the only reason why it has no [`row`].
#[must_use]
pub fn too_many(cost: &Cost) -> Option<usize> {
    let singles = cost.singles()?;
    let priced = singles.iter().all(|(single, _)| single.family().pair().is_some());
    (priced && cost.mu().is_none() && singles.len() > MAX_MECHANISMS).then_some(singles.len())
}

/// A cost much like these pairs whose Rényi curve is smooth and quick: what is sought with it is sound wherever it is found.
fn guide(steps: &[(Pair, Count)]) -> Option<Cost> {
    let like = |pair: Pair| -> Option<Mechanism> {
        match pair {
            Pair::Sampled { q, s } | Pair::Replaced { q, s } => Mechanism::poisson_sampled_gaussian(q, s).ok(),
            Pair::Laplace { scale } => Mechanism::laplace(scale).ok(),
            Pair::Response { epsilon, delta } => Approximate::new(epsilon, delta).ok().map(Mechanism::from),
        }
    };
    let parts = steps.iter().map(|&(pair, count)| Some(Mechanism::Repeat { count, of: Box::new(like(pair)?) }));
    Cost::of(&Mechanism::AllOf(parts.collect::<Option<_>>()?), Neighbors::AddRemove).ok()
}

/// About the λ at which the tilted total is centered on the answer, that ε, and δ there. For searches only.
///
/// With `K(λ) = λ·D_{λ+1}`: `ε ≈ K′(λ)` and `δ ≈ e^{K − λK′}/(λ(λ+1)√(2πK″))` (Alghamdi et al., arXiv:2208.09595).
fn saddle_point(cost: &Cost, question: Question, near: &Row) -> Option<(f64, f64, f64)> {
    let cumulant = |x: f64| x * cost.renyi(Order::new(1.0 + x).expect("above 1")).get();
    let at = |x: f64| {
        let d = 0.02 * x;
        let (low, middle, high) = (cumulant(x - d), cumulant(x), cumulant(x + d));
        let (slope, curvature) = ((high - low) / (2.0 * d), ((high - 2.0 * middle + low) / (d * d)).max(1e-300));
        let log_delta = middle - x * slope - ln(x * (x + 1.0)) - 0.5 * ln(2.0 * std::f64::consts::PI * curvature);
        (slope, log_delta)
    };
    let gap = |y: f64| {
        let (slope, log_delta) = at(exp(y));
        let value = match question {
            Question::DeltaAt(epsilon) => slope - epsilon.get(),
            Question::EpsilonAt(delta) => ln(delta.get()) - log_delta,
        };
        if value.is_nan() { 1.0 } else { value }
    };
    // The Rényi order is where its own bound is least; the saddle point lies below it, if not by much.
    let most = near.order.map_or(1e4, |order| (4.0 * order.get()).min(1e4));
    let tilt = exp(root_within(ln(1e-3), ln(most), 1e-4, gap));
    let (slope, log_delta) = at(tilt);
    let (center, delta) = match question {
        Question::DeltaAt(epsilon) => (epsilon.get(), exp(log_delta).min(near.delta.get())),
        Question::EpsilonAt(delta) => (slope.clamp(1e-3 * near.epsilon.get(), near.epsilon.get()), delta.get()),
    };
    (tilt.is_finite() && center > 0.0 && delta > 1e-290).then_some((tilt, center, delta))
}

/// The least of the fast methods and the privacy-loss distribution.
#[must_use]
pub fn tightest_of_all(cost: &Cost, delta: Delta) -> Row {
    let fast = tightest(cost, delta);
    if cost.mu().is_some() {
        return fast; // Gaussian noise alone: exact already.
    }
    match row(cost, Question::EpsilonAt(delta)) {
        Some(row) if row.epsilon < fast.epsilon => row,
        Some(_) | None => fast,
    }
}

/// Which world loses the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// With the record against without.
    Removed,
    /// Without the record against with.
    Added,
}

/// A dominating pair, by the shape of its loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pair {
    /// `(1−q)·N(0,s²) + q·N(1,s²)` against `N(0,s²)`; q = 1 is plain Gaussian noise.
    Sampled {
        /// The probability of the shifted law.
        q: f64,
        /// The standard deviation.
        s: f64,
    },
    /// What bounds a batch of fixed size in both directions (T43): the losses of the sampled pair above zero, each with its mirror
    /// image below, and what is left of either law alike in both.
    Replaced {
        /// The batch fraction.
        q: f64,
        /// The standard deviation.
        s: f64,
    },
    /// Two Laplace laws of this scale, one apart.
    Laplace {
        /// The scale.
        scale: f64,
    },
    /// Randomized response, revealing with probability δ.
    Response {
        /// ε.
        epsilon: f64,
        /// δ.
        delta: f64,
    },
}

impl Pair {
    /// `P(L > loss)` and `Q(L > loss)`, and their complements, each enclosed.
    fn tails(self, direction: Direction, loss: f64) -> Tails {
        let l = Interval::point(loss);
        match self {
            Self::Sampled { q, s } => {
                let q_in = Interval::point(q);
                // x at which the log-likelihood ratio of mixture over base is y: 1/2 + s²·ln((e^y − 1 + q)/q).
                // `None`: the ratio is never so small.
                let place = |y: Interval| {
                    let excess = y.exp_m1() / q_in;
                    let inner = match q {
                        1.0.. => y,
                        _ if excess.hi() <= -1.0 => return None,
                        _ => excess.ln_1p(),
                    };
                    Some(inner * Interval::point(s).square() + 0.5)
                };
                let laws = |x: Option<Interval>| {
                    let Some(x) = x else { return (Interval::ONE, Interval::ONE, Interval::ZERO, Interval::ZERO) };
                    let (base, shifted) = (x / s, (x - 1.0) / s);
                    let mix = |b: Interval, h: Interval| (Interval::ONE - q_in) * b + q_in * h;
                    let above = (tail_within(base), tail_within(shifted));
                    let below = (tail_within(-base), tail_within(-shifted));
                    (above.0, mix(above.0, above.1), below.0, mix(below.0, below.1))
                };
                match direction {
                    Direction::Removed => {
                        let (q_above, p_above, q_below, p_below) = laws(place(l));
                        Tails { p_above, q_above, p_below, q_below }
                    }
                    Direction::Added => {
                        // The loss is minus the ratio: it exceeds `loss` where x is below the place of −loss.
                        let (p_below, q_below, p_above, q_above) = laws(place(-l));
                        Tails { p_above, q_above, p_below, q_below }
                    }
                }
            }
            Self::Replaced { q, s } => {
                let far = Self::Sampled { q, s }.tails(Direction::Removed, loss.abs());
                let rest = |x: Interval| Interval::ONE - x;
                let (p, q) = (far.p_above, far.q_above);
                if loss >= 0.0 {
                    Tails { p_above: p, q_above: q, p_below: rest(p), q_below: rest(q) }
                } else {
                    // The mirror image: a loss of at most −l has the probability that the base gives to one of at least l.
                    Tails { p_above: rest(q), q_above: rest(p), p_below: q, q_below: p }
                }
            }
            Self::Laplace { scale } => {
                // L = (|x−1| − |x|)/b for x ~ Lap(0, b); it exceeds l where x < t = (1 − b·l)/2. Ends are atoms.
                let inverse = Interval::ONE / scale;
                if loss >= inverse.hi() {
                    return Tails {
                        p_above: Interval::ZERO,
                        q_above: Interval::ZERO,
                        p_below: Interval::ONE,
                        q_below: Interval::ONE,
                    };
                }
                if loss < -inverse.hi() || (loss == -inverse.hi() && inverse.lo() < inverse.hi()) {
                    return Tails {
                        p_above: Interval::ONE,
                        q_above: Interval::ONE,
                        p_below: Interval::ZERO,
                        q_below: Interval::ZERO,
                    };
                }
                let t = ((Interval::ONE - l * scale) * 0.5).max(0.0);
                let t = Interval::new(t.lo().min(1.0), t.hi().min(1.0));
                let p_below = (-(t / scale)).exp() * 0.5;
                let q_above = (-((Interval::ONE - t) / scale)).exp() * 0.5;
                Tails { p_above: Interval::ONE - p_below, q_above, p_below, q_below: Interval::ONE - q_above }
            }
            Self::Response { .. } => Tails::NONE, // Two atoms: `discretize` places them itself.
        }
    }
}

/// Probabilities of a loss above and not above some value, in both worlds.
#[derive(Clone, Copy)]
struct Tails {
    p_above: Interval,
    q_above: Interval,
    p_below: Interval,
    q_below: Interval,
}

impl Tails {
    const NONE: Self =
        Self { p_above: Interval::ZERO, q_above: Interval::ZERO, p_below: Interval::ZERO, q_below: Interval::ZERO };
}

/// One step's loss on the grid: upper bounds on the mass at `(first + i)·h`, and on the mass beyond.
struct GridLaw {
    first: i64,
    masses: Vec<f64>,
    infinite: f64,
}

/// What is to be composed, and where to look.
struct Composition<'a> {
    /// For choosing the window.
    guide: &'a Cost,
    steps: &'a [(Pair, Count)],
    tilt: f64,
    /// About the answer.
    epsilon: f64,
    delta: f64,
    /// A bound on the answer.
    most: f64,
}

/// The law of the total loss around `center`, tilted, with its error bounds.
struct Composed {
    h: f64,
    /// Loss of the first cell of the window, in units of `h`.
    bottom: i64,
    tilt: f64,
    center: f64,
    /// For each cell `i`: `Σ_{j≥i} t_j·e^{−λ(l_j−l_i)}` rounded up, and the same with λ + 1, rounded down; `t` the tilted
    /// masses. Relative to the cell itself, so that nothing overflows.
    above: Vec<f64>,
    above_weighted: Vec<f64>,
    /// `K(λ) − λ·center`: the logarithm of what turns the sums above into probabilities.
    log_scale: f64,
    /// Bound on the ℓ2 error of the tilted masses.
    error: f64,
    /// Bound on the probability of a loss that is infinite or above the window, where it wraps around.
    infinite: f64,
}

impl Composition<'_> {
    /// The row, how much of its δ is the transform's error bound, and the grid's step.
    fn row(&self, question: Question) -> Option<(Row, f64, f64)> {
        let (removed, added) = (self.compose(Direction::Removed)?, self.compose(Direction::Added)?);
        let delta_at = |epsilon: f64| removed.delta(epsilon).0.max(added.delta(epsilon).0);
        let row = |epsilon: Epsilon, delta: Delta| {
            let error = removed.delta(epsilon.get()).1.max(added.delta(epsilon.get()).1);
            (
                Row { method: "privacy-loss", epsilon, delta, order: None, basis: Basis::FixedInAdvance },
                error,
                removed.h,
            )
        };
        match question {
            Question::DeltaAt(epsilon) => Some(row(epsilon, Delta::from_upper_bound(delta_at(epsilon.get())))),
            Question::EpsilonAt(delta) => {
                let log_target = ln(delta.get());
                let found = root_within(0.0, self.most * 1.01, 1e-9, |e| log_target - ln(delta_at(e)));
                // Bound: move up until the certified δ agrees.
                let holds = |e: f64| delta_at(e) <= delta.get();
                let epsilon = certified(found, found + 1e-3 * self.epsilon, f64::INFINITY, holds);
                (epsilon < f64::INFINITY).then(|| row(Epsilon::from_upper_bound(epsilon), delta))
            }
        }
    }

    fn compose(&self, direction: Direction) -> Option<Composed> {
        let total: f64 = self.steps.iter().map(|(_, count)| count.to_f64()).sum();
        let size: usize = match total {
            n if n > 1e6 => 1 << 20,
            n if n > 5e4 => 1 << 19,
            _ => 1 << 17,
        };
        // Width of the window: 14 standard deviations of the tilted total on either side, from the curvature of
        // λ ↦ λ·D_{λ+1}.
        let cumulant = |x: f64| x * self.guide.renyi(Order::new(1.0 + x).expect("above 1")).get();
        let t = self.tilt;
        let d = 0.05 * t;
        let curvature = ((cumulant(t + d) - 2.0 * cumulant(t) + cumulant(t - d)) / (d * d)).max(1e-12);
        let spread = curvature.sqrt().max(1e-3 * self.epsilon);
        #[expect(clippy::cast_precision_loss, reason = "a power of two below 2^21")]
        let cells = size as f64;
        // A step with few bits makes every grid point an exact double.
        let h = {
            // Wide enough, too, for what lies above to weigh little beside δ.
            let little = Delta::from_upper_bound(1e-4 * self.delta + 1.001 * self.guide.slack().get());
            let top = renyi_row(self.guide, Question::EpsilonAt(little)).epsilon.get();
            let raw = 2.0 * (14.0 * spread).max(1.1 * (top - self.epsilon)) / cells;
            let unit = power_of_two(raw.log2() - 6.0);
            (raw / unit).ceil() * unit
        };
        let bottom = (self.epsilon / h).floor() - 0.5 * cells;
        if !(h > 0.0 && bottom.abs() < 1e15) {
            return None;
        }
        let e1 = relative_error(size);
        let mut spectrum: Option<Vec<Complex>> = None;
        let (mut log_scale, mut error, mut growth, mut infinite) = (Interval::ZERO, 0.0, 0.0, 0.0);
        let mut log_wrapped = CHERNOFF.map(|_| Interval::ZERO);
        for &(pair, count) in self.steps {
            let law = self.discretize(pair, direction, h, total)?;
            let (tilted, log_normalizer) = tilt_law(&law, h, self.tilt);
            let n = count.to_f64();
            log_scale = log_scale + Interval::point(log_normalizer) * n;
            for (log, factor) in log_wrapped.iter_mut().zip(CHERNOFF) {
                *log = *log + Interval::point(tilt_law(&law, h, factor * self.tilt).1) * n;
            }
            infinite = add_up(infinite, mul_up(law.infinite, n));
            let mut data = vec![Complex::ZERO; size];
            for (index, &mass) in (law.first..).zip(&tilted) {
                let cell = &mut data[cell_of(index, size)].re;
                *cell = add_up(*cell, mass);
            }
            let norm = data.iter().fold(0.0, |sum, c| add_up(sum, mul_up(c.re, c.re))).sqrt() * (1.0 + 4.0 * U);
            // ROUNDING: up. The tilted masses sum to at most 1, so |f| ≤ 1, |f̂| ≤ 1 + e with e the error of one entry, and
            // |f̂ᵏ − fᵏ| ≤ k(1+e)^{k−1}|f̂ − f|; the power adds 3 units for each of at most k + 64 products.
            growth = add_up(growth, n * e1 * cells.sqrt() * norm);
            error = add_up(error, mul_up(1.01 * (n * e1 + (4.0 * n + 256.0) * U), norm));
            if growth.is_nan() || growth > 5e-3 {
                return None;
            }
            transform(&mut data, false);
            for value in &mut data {
                *value = value.power(count.get());
            }
            spectrum = Some(match spectrum {
                None => data,
                Some(sum) => sum.iter().zip(&data).map(|(a, b)| a.times(*b)).collect(),
            });
        }
        let mut data = spectrum?;
        transform(&mut data, true);
        // The way back, of something of norm at most 1, and the products between mechanisms.
        #[expect(clippy::cast_precision_loss, reason = "at most 64 mechanisms")]
        let products = self.steps.len() as f64;
        error = add_up(error, 1.01 * (e1 + 4.0 * products * U));
        if error.is_nan() || error > 1e-3 || data.iter().any(|value| !value.re.is_finite()) {
            return None;
        }
        // Suffix sums by recurrence, from the top of the window down.
        #[expect(clippy::cast_possible_truncation, reason = "checked above")]
        let bottom = bottom as i64;
        let decay = (-(Interval::point(self.tilt) * h)).exp().hi();
        let decay_weighted = (-((Interval::point(self.tilt) + 1.0) * h)).exp().lo();
        let (mut above, mut above_weighted) = (vec![0.0; size + 1], vec![0.0; size + 1]);
        for i in (0..size).rev() {
            let mass = data[cell_of(bottom + offset(i), size)].re.max(0.0);
            above[i] = mass + decay * above[i + 1];
            above_weighted[i] = mass + decay_weighted * above_weighted[i + 1];
        }
        // Chernoff: P(L ≥ top) ≤ e^{K(λ) − λ·top}, at the best of a few λ.
        let top = loss_at(bottom + offset(size), h);
        let wrapped = log_wrapped
            .iter()
            .zip(CHERNOFF)
            .map(|(&log, factor)| (log - Interval::point(factor * self.tilt) * top).exp().hi());
        let wrapped = wrapped.fold(1.0, f64::min);
        // e^{K − λ·ε} turns tilted masses into masses relative to ε.
        let log_scale = (log_scale - Interval::point(self.tilt) * self.epsilon).hi();
        Some(Composed {
            h,
            bottom,
            tilt: self.tilt,
            center: self.epsilon,
            above,
            above_weighted,
            log_scale,
            error,
            infinite: add_up(infinite, wrapped),
        })
    }

    /// The loss of one step on the grid.
    fn discretize(&self, pair: Pair, direction: Direction, h: f64, total: f64) -> Option<GridLaw> {
        if let Pair::Response { epsilon, delta } = pair {
            if epsilon / h > MAX_CELLS {
                return None;
            }
            let e = Interval::point(epsilon);
            let kept = Interval::ONE - delta;
            let plus = kept / ((-e).exp() + 1.0);
            let minus = kept / (e.exp() + 1.0);
            let (high, low) = (first_at_or_above(epsilon, h), first_at_or_above(-epsilon, h) - 1);
            let mut masses = vec![0.0; cells_between(low, high)];
            let last = masses.len() - 1;
            for (mass, loss, right) in [(minus.hi(), -e, 1), (plus.hi(), e, last)] {
                // The chord between the grid points around an atom: right = p·(1 − e^{l−loss})/(1 − e^{−h}).
                let left = Interval::point(loss_at(low + offset(right) - 1, h));
                let share = (-((left - loss).exp_m1()) / -(Interval::point(-h).exp_m1())).hi().clamp(0.0, 1.0);
                let weight = mul_up(mass, share).min(mass);
                masses[right] = add_up(masses[right], weight);
                masses[right - 1] = add_up(masses[right - 1], sub_up(mass, weight));
            }
            return Some(GridLaw { first: low, masses, infinite: delta });
        }
        // Losses from where almost nothing lies below to where what lies above may count as infinite.
        let negligible = (self.delta * 1e-5 / total).max(1e-300);
        let above = |l: f64| pair.tails(direction, l).p_above.hi();
        let below = |l: f64| pair.tails(direction, l).p_below.hi();
        let (mut top, mut low) = (h, -h);
        while above(top) > negligible {
            top *= 2.0;
            if top / h > MAX_CELLS {
                return None;
            }
        }
        let top = root_within(top / 4.0, top, 1e-3, |l| ln(negligible) - ln(above(l).max(1e-320)));
        while below(low) > 1e-18 && -low / h < MAX_CELLS {
            low *= 2.0;
        }
        let (first, last) = (first_at_or_above(low, h), first_at_or_above(top, h) + 1);
        let mut masses = vec![0.0; cells_between(first, last)];
        let gap = -(Interval::point(-h).exp_m1());
        let mut left = pair.tails(direction, loss_at(first, h));
        masses[0] = left.p_below.hi(); // Everything at or below the lowest point, moved up to it.
        for (i, index) in (first..last).enumerate() {
            let right = pair.tails(direction, loss_at(index + 1, h));
            // The cell's probabilities, as a difference of the smaller tails.
            let (p, q) = if right.p_above.hi() < 0.5 {
                (left.p_above - right.p_above, left.q_above - right.q_above)
            } else {
                (right.p_below - left.p_below, right.q_below - left.q_below)
            };
            let p_up = p.hi().max(0.0);
            // Chord weights: right + left = P, right·e^{−l'} + left·e^{−l} = Q, so right = (P − Q·e^l)/(1 − e^{−h}).
            let weight = (p - q.max(0.0) * Interval::point(loss_at(index, h)).exp()) / gap;
            let weight = weight.hi().clamp(0.0, p_up);
            masses[i + 1] = add_up(masses[i + 1], weight);
            masses[i] = add_up(masses[i], sub_up(p_up, weight));
            left = right;
        }
        Some(GridLaw { first, masses, infinite: left.p_above.hi() })
    }
}

/// Masses times `e^{λ·loss}`, divided by about their sum so that they sum to at most 1; and the logarithm of the divisor.
fn tilt_law(law: &GridLaw, h: f64, tilt: f64) -> (Vec<f64>, f64) {
    // Scale by the largest exponent first: only ratios matter.
    let loss = |i: usize| loss_at(law.first + offset(i), h);
    let log = |i: usize| tilt * loss(i) + if law.masses[i] > 0.0 { ln(law.masses[i]) } else { f64::NEG_INFINITY };
    let largest = (0..law.masses.len()).map(log).fold(f64::NEG_INFINITY, f64::max);
    // ROUNDING: up. `exp_up` of an exponent rounded up.
    let weights: Vec<f64> = (0..law.masses.len())
        .map(|i| {
            let exponent = Interval::point(tilt) * loss(i) - largest;
            mul_up(law.masses[i], exp_up(exponent.hi()))
        })
        .collect();
    let sum = weights.iter().fold(0.0, |sum, &w| add_up(sum, w));
    let divisor = sum * (1.0 + 1e-12);
    let tilted: Vec<f64> = weights.iter().map(|&w| div_up(w, divisor)).collect();
    // mass·e^{λl} ≤ tilted·divisor·e^{largest}.
    (tilted, (Interval::point(divisor).ln() + largest).hi())
}

impl Composed {
    /// An upper bound on δ(ε), and the part of it that is the transform's error bound.
    fn delta(&self, epsilon: f64) -> (f64, f64) {
        let size = self.above.len() - 1;
        let first = first_at_or_above(epsilon, self.h);
        let Ok(cell) = usize::try_from(first - self.bottom) else { return (1.0, 1.0) };
        let cell = cell.min(size);
        let loss = Interval::point(loss_at(self.bottom + offset(cell), self.h));
        // ROUNDING: up. Two roundings a cell on terms at or above zero; the second sum is to be small.
        #[expect(clippy::cast_precision_loss, reason = "a size below 2^21")]
        let slack = U * (4.0 * size as f64 + 64.0);
        let kept = mul_up(self.above[cell], 1.0 + slack);
        let taken = (-(loss - epsilon)).exp().lo() * self.above_weighted[cell] * (1.0 - slack);
        let main = sub_up(kept, taken);
        // Transform: ‖weights‖₂·error, with weights at most e^{−λ(l_j−l)} for the cells from `l` on.
        let decay = -(Interval::point(-2.0 * self.tilt) * self.h).exp_m1();
        let error = div_up(self.error, decay.sqrt().lo());
        // e^{K − λ·l} turns tilted masses at `l` into masses.
        let scale = (Interval::point(self.log_scale) - Interval::point(self.tilt) * (loss - self.center)).exp().hi();
        let bound = add_up(mul_up(scale, add_up(main.max(0.0), error)), self.infinite);
        // Doubt is 1: a NaN anywhere above ends here.
        if (main + error + scale + bound).is_nan() {
            (1.0, 1.0)
        } else {
            (bound.min(1.0), mul_up(scale, error).min(1.0))
        }
    }
}

/// The loss of a grid point: exact, because `h` has few bits.
#[expect(clippy::cast_precision_loss, reason = "grid indices are far below 2^53")]
fn loss_at(index: i64, h: f64) -> f64 {
    index as f64 * h
}

/// The first grid point at or above a loss.
#[expect(clippy::cast_possible_truncation, reason = "callers keep losses within 10^15 steps")]
fn first_at_or_above(loss: f64, h: f64) -> i64 {
    let near = (loss / h).ceil() as i64;
    if loss_at(near, h) < loss { near + 1 } else { near }
}

/// Where a grid point lies in a window of this size, which holds every index once, modulo the size.
fn cell_of(index: i64, size: usize) -> usize {
    usize::try_from(index.rem_euclid(offset(size))).unwrap_or(0)
}

/// A length in memory as a difference of grid indices.
fn offset(i: usize) -> i64 {
    i64::try_from(i).unwrap_or(i64::MAX)
}

/// The number of grid points from `first` to `last`, both included.
fn cells_between(first: i64, last: i64) -> usize {
    usize::try_from(last - first).unwrap_or(0) + 1
}
