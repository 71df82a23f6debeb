//! The Gaussian mechanism on a Poisson sample: the step of private gradient descent.
//!
//! Each record joins the batch with probability `q`; the batch's sum gets noise of `s` times its sensitivity. Removing a
//! record turns the law `(1−q)·N(0, s²) + q·N(1, s²)` into `N(0, s²)`. With `w(x) = q·expm1((2x−1)/(2s²))`, the
//! likelihood ratio minus one, and `x ~ N(0, s²)`:
//!
//! ```text
//! forward   (α−1)·D_α(mixture ‖ base) = ln(1 + E[(1+w)^α − 1 − α·w])
//! reverse   (α−1)·D_α(base ‖ mixture) = ln(1 + E[(1+w)^(1−α) − 1 + (α−1)·w])
//! ```
//!
//! because `E[w] = 0`. Both expectations have integrands at or above zero ([`paygo_numeric::excess`]), so nothing
//! cancels however small `q` is. Forward is the larger ([`PoissonSampledGaussian::renyi`] charges it).
//!
//! Three ways to the forward expectation, all rounded up:
//!
//! - **binomial sum** at integer orders: `Σ_j C(α,j)(1−q)^(α−j) q^j·expm1(j(j−1)/(2s²))`, every term at or above zero;
//! - **binomial triangle**: the same for all integers up to 64 at once, with additions and multiplications only;
//! - **trapezoidal rule** at real orders. The integrand is analytic in the strip `|Im z| < πs²`, so the rule converges
//!   geometrically and its error is bounded beforehand (below); the cut-off tails are bounded by geometric series.
//!
//! Where the rule would need too many nodes (`s` below about 0.02), the chord between integer orders (T4) serves.

use super::{Family, Gaussian, Single};
use crate::curve::chord_between_integers;
use crate::loss::Pair;
use crate::params::{Divergence, Neighbors, NoiseMultiplier, Order, OutOfDomain, Rho, SamplingProbability};
use crate::wire::Number;
use paygo_numeric::Interval;
use paygo_numeric::elementary::{exp, exp_m1, exp_up, ln, ln_1p, ln_1p_up, power_of_two};
use paygo_numeric::excess::{entropy_excess, exp_excess, log_excess};
use paygo_numeric::rounding::{add_up, div_up, mul_up, sub_down};
use paygo_numeric::sums::log_add_exp;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Unit roundoff.
const U: f64 = f64::EPSILON / 2.0;
/// Above this order only the bound without amplification, `α/(2s²)`, is used.
const MAX_ORDER: f64 = 1_048_576.0;
/// A trapezoidal rule of more nodes than this is not worth its time.
const MAX_NODES: f64 = 40_000.0;
/// No divergence is reported below this: products of smaller numbers may be subnormal, where relative errors are not small.
const LEAST: f64 = 1e-290;
/// Integer orders up to this one share one binomial triangle.
const TRIANGLE: usize = 64;
/// `√(2π)` rounded down, as a divisor of upper bounds.
const SQRT_TWO_PI_DOWN: f64 = 2.506_628_274_631;

/// The Gaussian mechanism on a Poisson sample.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct PoissonSampledGaussian {
    /// The chance that one record joins the batch.
    pub sampling_probability: SamplingProbability,
    /// Noise over sensitivity.
    pub noise_multiplier: NoiseMultiplier,
}

impl PoissonSampledGaussian {
    /// Each record joins with `sampling_probability`; noise of `noise_multiplier` times the ℓ2 sensitivity.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the probability or the noise is out of its domain.
    pub fn new(sampling_probability: f64, noise_multiplier: f64) -> Result<Self, OutOfDomain> {
        Ok(Self {
            sampling_probability: SamplingProbability::new(sampling_probability)?,
            noise_multiplier: NoiseMultiplier::new(noise_multiplier)?,
        })
    }
}

impl Family for PoissonSampledGaussian {
    /// The relations under which the pair of laws above is the worst: one record more or less, or one zeroed.
    fn neighbors(&self) -> &'static [Neighbors] {
        &[Neighbors::AddRemove, Neighbors::ZeroOut]
    }

    /// An upper bound on the Rényi divergence of either direction, at any order.
    ///
    /// # Theorem
    /// The forward direction `D_α((1−q)·N(0,s²) + q·N(1,s²) ‖ N(0,s²))` is the larger one and bounds the mechanism
    /// under add/remove. Source: Mironov, Talwar, Zhang, *Rényi Differential Privacy of the Sampled Gaussian
    /// Mechanism*, arXiv:1908.10530, Theorems 4 and 5 (T30). It never exceeds `α/(2s²)` (T27).
    ///
    /// # Soundness and tightness
    /// At or above the truth; within 10⁻⁹ of it, relatively, for `s ≥ 0.02` and orders up to 10⁴.
    fn renyi(&self, order: Order) -> Divergence {
        let (q, s, a) = (self.sampling_probability.get(), self.noise_multiplier.get(), order.get());
        if q == 0.0 {
            return Divergence::ZERO;
        }
        let plain = plain_bound(s, a);
        if q >= 1.0 || a > MAX_ORDER {
            return plain;
        }
        let moment = if is_integer(a) && a <= nodes_needed(q, s, a) {
            binomial_sum(q, s, a)
        } else if let Some(moments) = trapezoid(q, s, &[a]) {
            moments[0]
        } else {
            chord_between_integers(a, |n| binomial_sum(q, s, n))
        };
        per_order(moment, a).least(plain)
    }

    /// The forward bound at many orders at once, sharing the work: what a stored curve needs.
    ///
    /// Orders at which the moment passes `e^300` get the bound without amplification: no conversion with a δ above
    /// 10⁻¹⁰⁰ looks there.
    fn renyi_at(&self, orders: &[Order]) -> Vec<Divergence> {
        let (q, s) = (self.sampling_probability.get(), self.noise_multiplier.get());
        if q == 0.0 {
            return vec![Divergence::ZERO; orders.len()];
        }
        let mut values: Vec<Divergence> = orders.iter().map(|order| plain_bound(s, order.get())).collect();
        if q >= 1.0 {
            return values;
        }
        let triangle = triangle(q, s);
        let mut rest = Vec::new();
        for (i, order) in orders.iter().enumerate() {
            let a = order.get();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked to be a small integer"
            )]
            let index = if is_integer(a) && a <= 64.0 { a as usize } else { 0 };
            if index > 0 && triangle[index].is_finite() {
                values[i] = per_order(triangle[index], a).least(values[i]);
            } else if a <= MAX_ORDER && log_excess_estimate(q, s, a) < 300.0 {
                rest.push((i, a));
            }
        }
        // Orders of like size share the nodes of one trapezoidal rule: few orders at or below 4, then doublings.
        let mut remaining = rest.as_slice();
        while let Some(&(_, first)) = remaining.first() {
            let size = remaining.iter().take_while(|&&(_, a)| a <= (2.0 * first).max(4.0)).count().max(1);
            let (group, others) = remaining.split_at(size);
            let group_orders: Vec<f64> = group.iter().map(|&(_, a)| a).collect();
            if let Some(moments) = trapezoid(q, s, &group_orders) {
                for (&(i, a), moment) in group.iter().zip(moments) {
                    values[i] = per_order(moment, a).least(values[i]);
                }
            } else {
                for &(i, a) in group {
                    values[i] = self.renyi(Order::new(a).expect("an order")).least(values[i]);
                }
            }
            remaining = others;
        }
        values
    }

    /// Sampling does not amplify zCDP, and does not hurt it (T27).
    fn rho(&self) -> Option<Rho> {
        if self.is_null() { Some(Rho::ZERO) } else { Gaussian { noise_multiplier: self.noise_multiplier }.rho() }
    }

    fn attains_its_pair(&self) -> bool {
        true
    }

    fn pair(&self) -> Option<Pair> {
        let (q, s) = (self.sampling_probability.get(), self.noise_multiplier.get());
        (q > 0.0).then_some(Pair::Sampled { q, s })
    }

    fn is_null(&self) -> bool {
        self.sampling_probability.get() == 0.0
    }

    /// Everybody joins: no sampling at all, and an exact profile.
    fn simpler(&self) -> Option<Single> {
        let everybody = self.sampling_probability.get() >= 1.0;
        everybody.then(|| Gaussian { noise_multiplier: self.noise_multiplier }.into())
    }
}

impl PoissonSampledGaussian {
    /// An upper bound on the reverse direction `D_α(N(0,s²) ‖ (1−q)·N(0,s²) + q·N(1,s²))`: never charged, because the
    /// forward one is larger; here for comparison. +∞ where the rule would need too many nodes.
    #[must_use]
    pub fn renyi_reverse(&self, order: Order) -> Divergence {
        let (q, s, a) = (self.sampling_probability.get(), self.noise_multiplier.get(), order.get());
        if q == 0.0 {
            return Divergence::ZERO;
        }
        if q >= 1.0 {
            return plain_bound(s, a);
        }
        let c = a - 1.0;
        // On the half strip the real part of 1+w is at least 1−q, so |(1+w)^−c| ≤ (1−q)^−c.
        let log_modulus = -c * ln_1p(-q);
        let rule = Rule {
            q,
            s,
            half_width: 0.5 * PI * s * s,
            log_modulus: log_add_exp(Interval::point(log_modulus), (Interval::ONE + 2.0 * c * q).ln()).hi(),
            growth: 1.0,
            at_minus_q: exp_excess(log_modulus) + c * log_excess(-q),
            rounding: 16.0 * (c + 1.0) / (1.0 - q),
        };
        let estimate = ln(0.5 * a * c) + 2.0 * ln(q) + ln(exp_m1(1.0 / (s * s))).min(0.0);
        let integrand = |w: f64, l: f64, log_density: f64| exp(log_density) * (exp_excess(-c * l) + c * log_excess(w));
        // (1+w)^−c − 1 + c·w ≤ c·w ≤ c·(w+q), which grows exactly like e^{x/s²}.
        let majorant = |w: f64, _: f64, log_density: f64| exp(log_density) * c * (w + q);
        match rule.integrate(&[(estimate, 0.0)], |_, w, l, e| integrand(w, l, e), |_, w, l, e| majorant(w, l, e)) {
            Some(sums) => per_order(ln_1p_up(sums[0]), a),
            None => Divergence::INFINITE,
        }
    }
}

/// A probability and a noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PoissonSampledGaussianFields {
    /// The chance that one record joins the batch.
    pub sampling_probability: Number,
    /// Noise over sensitivity.
    pub noise_multiplier: Number,
}

impl TryFrom<&PoissonSampledGaussianFields> for PoissonSampledGaussian {
    type Error = OutOfDomain;
    /// ROUNDING: the probability up, noise down.
    fn try_from(fields: &PoissonSampledGaussianFields) -> Result<Self, OutOfDomain> {
        Ok(Self {
            sampling_probability: SamplingProbability::new(fields.sampling_probability.up("sampling_probability")?)?,
            noise_multiplier: fields.noise_multiplier.noise()?,
        })
    }
}

impl From<&PoissonSampledGaussian> for PoissonSampledGaussianFields {
    fn from(sampled: &PoissonSampledGaussian) -> Self {
        Self {
            sampling_probability: Number::double(sampled.sampling_probability.get()),
            noise_multiplier: sampled.noise_multiplier.into(),
        }
    }
}

fn is_integer(a: f64) -> bool {
    a.fract() == 0.0
}

/// `α/(2s²)`, rounded up: the mechanism without sampling, which sampling never makes worse (T27).
fn plain_bound(s: f64, a: f64) -> Divergence {
    Divergence::from_upper_bound((Interval::point(a) / (Interval::point(s).square() * 2.0)).hi())
}

/// `moment/(α−1)` rounded up, and never below [`LEAST`]: a mechanism that does something costs something.
fn per_order(moment: f64, a: f64) -> Divergence {
    let value = div_up(moment, sub_down(a, 1.0));
    Divergence::from_upper_bound(if value.is_nan() { value } else { value.max(LEAST) })
}

/// A guess at the logarithm of the expectation: its two ends, `j = 2` and `j = α`. For choosing a step only.
fn log_excess_estimate(q: f64, s: f64, a: f64) -> f64 {
    let spread = 1.0 / (s * s);
    let small = ln(0.5 * a * (a - 1.0)) + 2.0 * ln(q) + if spread > 30.0 { spread } else { ln(exp_m1(spread)) };
    let large = a * ln(q) + 0.5 * a * (a - 1.0) * spread;
    if a < 2.0 { small.min(large) } else { small.max(large) }
}

/// A guess at the number of nodes of the trapezoidal rule.
fn nodes_needed(q: f64, s: f64, a: f64) -> f64 {
    let gain = needed_gain(log_excess_estimate(q, s, a), ln(2.0 + 2.0 * a * q));
    (a + 18.0 * s) / step_for(s, PI * s * s, gain)
}

/// The exponent that the error bound must reach so that the error is 10⁻¹⁵ of the expectation.
fn needed_gain(log_excess: f64, log_modulus: f64) -> f64 {
    36.0 + (log_modulus - log_excess).max(0.0)
}

/// The largest step `h` with `2πd/h − d²/(2s²) ≥ gain` for some `d` inside the strip.
fn step_for(s: f64, half_width: f64, gain: f64) -> f64 {
    let free = s * PI * (2.0 / gain).sqrt();
    if 2.0 * PI * s * s / free <= half_width {
        free
    } else {
        2.0 * PI * half_width / (gain + half_width * half_width / (2.0 * s * s))
    }
}

/// `ln(1 + Σ_j C(α,j)(1−q)^(α−j) q^j·expm1(j(j−1)/(2s²)))`, rounded up, at an integer order.
fn binomial_sum(q: f64, s: f64, a: f64) -> f64 {
    let (log_q, log_p, spread) = (ln(q), ln_1p(-q), 0.5 / (s * s));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an integer of at most 2^20")]
    let n = a as usize;
    // Log-binomials up to the middle, by running sums of logarithms.
    let mut log_binomials = Vec::with_capacity(n / 2 + 1);
    log_binomials.push(0.0);
    let mut j = 0.0;
    for k in 0..n / 2 {
        log_binomials.push(log_binomials[k] + ln((a - j) / (j + 1.0)));
        j += 1.0;
    }
    let mut terms = Vec::with_capacity(n);
    let mut largest = f64::NEG_INFINITY;
    let mut j = 2.0;
    for k in 2..=n {
        let near_end = k.min(n - k);
        let c = j * (j - 1.0) * spread;
        let log_growth = if c > 40.0 { c } else { ln(exp_m1(c)) };
        let pieces = [log_binomials[near_end], (a - j) * log_p, j * log_q, log_growth];
        // ROUNDING: up. Running sums: one rounding and one logarithm per step, each a unit of the partial sum; the
        // other pieces: a few units each.
        #[expect(clippy::cast_precision_loss, reason = "an integer of at most 2^20")]
        let error = U
            * ((3.0 * near_end as f64 + 8.0) * pieces[0].max(1.0)
                + 8.0 * (pieces[1].abs() + pieces[2].abs() + pieces[3].abs() + 1.0));
        let term = pieces.iter().sum::<f64>() + error;
        largest = largest.max(term);
        terms.push(term);
        j += 1.0;
    }
    let sum: f64 = terms.iter().map(|&term| exp(term - largest)).sum();
    // ROUNDING: up. `exp` is off by two units after its argument's rounding, the sum by one unit a term.
    let scale = largest.abs() + terms.iter().map(|t| (t - largest).abs()).fold(0.0, f64::min);
    let sum = mul_up(sum, 1.0 + U * (2.0 * a + 16.0 + 2.0 * scale));
    if largest < 600.0 {
        ln_1p_up(mul_up(exp_up(largest), sum))
    } else {
        (log_add_exp(Interval::point(largest) + Interval::point(sum).ln(), Interval::ZERO)).hi()
    }
}

/// [`binomial_sum`] at every integer order up to [`TRIANGLE`]: entry `n` is the value at order `n`, +∞ where it
/// overflows.
///
/// With `m_j = expm1(j(j−1)/(2s²))`, the step `m_j ← (1−q)·m_j + q·m_{j+1}` takes the expectation over one more draw;
/// after `n` steps entry 0 holds `Σ_j C(n,j)(1−q)^(n−j) q^j m_j`. Every operand is at or above zero.
fn triangle(q: f64, s: f64) -> [f64; TRIANGLE + 1] {
    let spread = 0.5 / (s * s);
    let p = 1.0 - q;
    let mut m = [0.0; TRIANGLE + 1];
    let mut j = 0.0;
    for entry in &mut m {
        *entry = exp_m1(j * (j - 1.0) * spread);
        j += 1.0;
    }
    let mut values = [0.0; TRIANGLE + 1];
    for (n, value) in values.iter_mut().enumerate().skip(1) {
        for k in 0..=TRIANGLE - n {
            m[k] = p * m[k] + q * m[k + 1];
        }
        // ROUNDING: up. Four roundings a step on operands of one sign; `expm1` of an argument with three roundings.
        #[expect(clippy::cast_precision_loss, reason = "at most 64")]
        let steps = n as f64;
        let error = U * (4.0 * steps + 16.0 + 4.0 * steps * steps * spread);
        *value = ln_1p_up(mul_up(m[0], 1.0 + error));
    }
    values
}

/// `ln(1 + E[…])` rounded up by the trapezoidal rule at each of the orders; `None` when it would need too many nodes.
fn trapezoid(q: f64, s: f64, orders: &[f64]) -> Option<Vec<f64>> {
    let largest = orders.iter().copied().fold(1.0, f64::max);
    let rule = Rule {
        q,
        s,
        half_width: PI * s * s,
        // |1+w| ≤ 1−q+q|Λ|, so |integrand| ≤ (1+w)^α + 1 + α(|w|) in modulus: E ≤ moment + 2 + 2αq. The moment is the
        // unknown itself and stands on the left-hand side of the bound in `integrate`.
        log_modulus: (Interval::point(2.0) + 2.0 * largest * q).ln().hi(),
        growth: largest,
        at_minus_q: (1.0 - q) * exp_excess((largest - 1.0) * ln_1p(-q)) + (largest - 1.0) * entropy_excess(-q),
        rounding: 16.0 * largest,
    };
    let scales: Vec<(f64, f64)> = orders
        .iter()
        .map(|&a| {
            let estimate = log_excess_estimate(q, s, a);
            (estimate, if estimate > 300.0 { estimate } else { 0.0 })
        })
        .collect();
    let sums = rule.integrate(
        &scales,
        |i, w, l, log_density| {
            // One exponential carries all that is large, so that nothing underflows beside it.
            let b = orders[i] - 1.0;
            let x = b * l;
            if x > 50.0 {
                // (1+w)^α − 1 − αw < (1+w)^α, and less than 10⁻¹⁵ below it.
                exp(orders[i] * l + log_density)
            } else if l > 1.0 {
                // 1+w = e^l, and K(w) = e^l·E(−l).
                exp(log_density + l) * (exp_excess(x) + b * exp_excess(-l))
            } else {
                exp(log_density) * ((1.0 + w) * exp_excess(x) + b * entropy_excess(w))
            }
        },
        |i, _, l, log_density| exp(orders[i] * l + log_density),
    )?;
    Some(
        sums.iter()
            .zip(&scales)
            .map(|(&sum, &(_, scale))| {
                if scale == 0.0 {
                    ln_1p_up(sum)
                } else {
                    log_add_exp(Interval::point(scale) + Interval::point(sum).ln(), Interval::ZERO).hi()
                }
            })
            .collect(),
    )
}

/// The trapezoidal rule for `E[f(x)]`, `x ~ N(0, s²)`, with everything its error bound needs.
///
/// # Theorem
/// If `F` is analytic in `|Im z| < d` and `∫|F(x+iy)|dx ≤ M` for `|y| < d`, the rule with step `h` is off by at most
/// `2M/(e^{2πd/h} − 1)` (Trefethen and Weideman, SIAM Review 56, 2014, Theorem 5.1). Here `F = f·φ`, and on the line
/// `Im z = y` the Gaussian density grows by `e^{y²/(2s²)}`.
struct Rule {
    q: f64,
    s: f64,
    /// Half width of the strip in which `f` is analytic and bounded as stated.
    half_width: f64,
    /// Logarithm of the bound on `E|f|` over the strip, less the expectation itself.
    log_modulus: f64,
    /// For `x` beyond `growth`, the majorant times the density falls by `e^{(growth−x)·h/s²}` or more from node to node.
    growth: f64,
    /// The largest value of `f` on the left, where `w` tends to `−q`.
    at_minus_q: f64,
    /// Relative rounding error of one value, in units of roundoff, beyond what depends on the exponents.
    rounding: f64,
}

impl Rule {
    /// Upper bounds on `e^{−scale}·E[f_i]` for each `(estimate, scale)`, where `estimate` guesses `ln E[f_i]`.
    ///
    /// `f(i, w, ln(1+w), log density − scale)` is the integrand times the unnormalised density, `majorant` an upper
    /// bound on it for large `x`.
    fn integrate(
        &self,
        scales: &[(f64, f64)],
        f: impl Fn(usize, f64, f64, f64) -> f64,
        majorant: impl Fn(usize, f64, f64, f64) -> f64,
    ) -> Option<Vec<f64>> {
        let s = self.s;
        let variance = s * s;
        let gain = scales.iter().map(|&(estimate, _)| needed_gain(estimate, self.log_modulus)).fold(0.0, f64::max);
        let mut h = step_for(s, self.half_width, gain);
        for _ in 0..3 {
            // A step of few bits makes every node an exact double.
            let unit = power_of_two(h.log2() - 8.0);
            h = (h / unit).floor() * unit;
            if !(h > 0.0 && (self.growth + 18.0 * s) / h < MAX_NODES) {
                return None;
            }
            let sums = self.sum(h, scales, &f, &majorant)?;
            // The bound: |rule − E| ≤ error·(E + modulus), so E ≤ (rule + error·modulus)/(1 − error).
            let d = self.half_width.min(2.0 * PI * variance / h);
            let log_error = d * d / (2.0 * variance) - 2.0 * PI * d / h;
            // ROUNDING: up. One per mille covers the rounding of exponents of at most 10⁶ many times over.
            let error = 2.0 * 1.001 * exp_up(log_error);
            if log_error < -30.0 {
                let bounds: Vec<f64> = sums
                    .iter()
                    .zip(scales)
                    .map(|(&sum, &(_, scale))| {
                        let modulus = exp_up(add_up(self.log_modulus, -scale));
                        div_up(add_up(sum, mul_up(error, modulus)), 1.0 - 2.0 * error)
                    })
                    .collect();
                // A scale far above the truth would drown the sum in underflow: 10⁻²⁶⁰ leaves e^80 of room.
                if bounds.iter().zip(&sums).all(|(bound, sum)| bound - sum <= 1e-11 * sum && *sum > 1e-260) {
                    return Some(bounds);
                }
            }
            h *= 0.5; // The estimate of the expectation was too high: its guess decides nothing but this.
        }
        None
    }

    /// `h/(s√2π)·Σ_k` over the nodes, plus bounds on what was cut off, rounded up.
    fn sum(
        &self,
        h: f64,
        scales: &[(f64, f64)],
        f: impl Fn(usize, f64, f64, f64) -> f64,
        majorant: impl Fn(usize, f64, f64, f64) -> f64,
    ) -> Option<Vec<f64>> {
        let (q, variance) = (self.q, self.s * self.s);
        let log_q = ln(q);
        let mut sums = vec![0.0; scales.len()];
        let mut tails = vec![0.0; scales.len()];
        let mut largest_exponent = 0.0_f64;
        let mut nodes = 0.0;
        // y = x − 1/2 runs over the multiples of h: first 0 and the right, then the left.
        for direction in [1.0, -1.0] {
            let mut y = if direction > 0.0 { 0.0 } else { -h };
            loop {
                let x = y + 0.5;
                let t = y / variance;
                let (w, l) = if t < 690.0 {
                    let w = q * exp_m1(t);
                    (w, ln_1p(w))
                } else {
                    let l = log_q + t;
                    if l < 690.0 { (exp(l), ln_1p(exp(l))) } else { (f64::INFINITY, l) }
                };
                let log_density = -x * x / (2.0 * variance);
                let falling = if direction > 0.0 { (self.growth - x) * h / variance } else { x * h / variance };
                let ratio = exp(falling);
                let mut done = falling < -1e-3;
                for (i, &(_, scale)) in scales.iter().enumerate() {
                    sums[i] += f(i, w, l, log_density - scale);
                    if done {
                        let last = if direction > 0.0 {
                            majorant(i, w, l, log_density - scale)
                        } else {
                            exp(log_density - scale) * self.at_minus_q
                        };
                        tails[i] = last * ratio / (1.0 - ratio);
                        done = tails[i] <= 1e-16 * sums[i];
                    }
                }
                nodes += 1.0;
                let spread = self.growth * (l.abs() + t.abs() * w.abs().min(1.0)) + 2.0 * t.abs();
                largest_exponent = largest_exponent.max(spread - log_density);
                if done {
                    break;
                }
                if nodes > 4.0 * MAX_NODES {
                    return None;
                }
                y += direction * h;
            }
        }
        // ROUNDING: up. One unit a node for the sum; a few units of each exponent; the kernels' stated errors; and the
        // tails, below 2·10⁻¹⁶ of the sum.
        let error = U * (nodes + 256.0 + self.rounding + 8.0 * largest_exponent);
        let normalizer = div_up(mul_up(h, 1.0 + error), self.s * SQRT_TWO_PI_DOWN * (1.0 - 4.0 * U));
        Some(sums.iter().map(|&sum| mul_up(sum, normalizer)).collect())
    }
}
