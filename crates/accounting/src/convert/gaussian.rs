//! The exact privacy profile of Gaussian noise, and of one Poisson-sampled step.
//!
//! # Theorem
//! A mechanism is μ-GDP iff it is (ε, δ(ε))-DP for every ε ≥ 0 with
//! `δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)`. Sources: Balle and Wang, arXiv:1805.06530, Theorem 8; Dong, Roth, Su,
//! arXiv:1905.02383, Corollary 1 (T14). Exact for Gaussian noise; μ² adds up under composition, also as a filter (T40).
//!
//! # Numerics
//! With `a = ε/μ − μ/2`, `b = ε/μ + μ/2` and Mills' ratio `R`: `δ = φ(a)·(R(a) − R(b))`. For small μ the difference is
//! `2·Σ_{k odd} (μ/2)^k/k!·I_k(ε/μ)` with `I_k(m) = ∫_0^∞ t^k e^{−t²/2−mt} dt`, whose terms are all positive.

use crate::params::{Delta, Epsilon, Mu, NoiseMultiplier, SamplingProbability};
use paygo_numeric::Interval;
use paygo_numeric::elementary::{exp, ln};
use paygo_numeric::normal::{density_within, mills, mills_within, tail_within};
use paygo_numeric::rounding::mul_up;
use paygo_numeric::search::{certified, root};
use paygo_numeric::sums::log_add_exp;

/// Below this μ the series is used.
const SMALL: f64 = 0.01;

/// δ(ε) of a μ-GDP mechanism, rounded up; above 0 unless μ = 0.
#[must_use]
pub fn delta(mu: Mu, epsilon: Epsilon) -> Delta {
    if epsilon == Epsilon::INFINITE || mu.get() == 0.0 {
        return Delta::ZERO;
    }
    if mu.get() == f64::INFINITY {
        return Delta::ONE;
    }
    Delta::from_upper_bound(profile_at(mu.get(), epsilon.get()).hi())
}

/// The least ε for which a μ-GDP mechanism is (ε, δ)-DP, rounded up; +∞ for δ = 0 unless μ = 0.
#[must_use]
pub fn epsilon(mu: Mu, target: Delta) -> Epsilon {
    if mu.get() == 0.0 || delta(mu, Epsilon::ZERO) <= target {
        return Epsilon::ZERO;
    }
    if target == Delta::ZERO || mu.get() == f64::INFINITY {
        return Epsilon::INFINITE;
    }
    // δ < e^{−a²/2}: a bracket. Search in ln δ, then move up until the enclosure agrees.
    let (m, d) = (mu.get(), target.get());
    let most = m * ((-2.0 * ln(d)).sqrt() + 0.5 * m) * 1.01;
    let found = root(0.0, most, |e| ln(d) - ln_profile(m, e));
    let holds = |e: f64| delta(mu, Epsilon::from_upper_bound(e)) <= target;
    Epsilon::from_upper_bound(certified(found, found + 1e-6 * m, f64::INFINITY, holds))
}

/// The largest μ for which μ-GDP gives (ε, δ)-DP, rounded down: the budget of a GDP filter. Zero for δ = 0.
#[must_use]
pub fn budget(epsilon: Epsilon, target: Delta) -> Mu {
    let none = Mu::from_upper_bound(0.0);
    if target == Delta::ZERO {
        return none;
    }
    if target == Delta::ONE || epsilon == Epsilon::INFINITE {
        return Mu::from_upper_bound(f64::INFINITY);
    }
    let (e, d) = (epsilon.get(), target.get());
    let found = exp(root(-700.0, 350.0, |x| ln_profile(exp(x), e) - ln(d)));
    let holds = |m: f64| delta(Mu::from_upper_bound(m), epsilon) <= target;
    Mu::from_upper_bound(certified(found, -found, 0.0, holds))
}

/// δ(ε) of one Poisson-sampled Gaussian step, in the two directions: a record removed, a record added. Rounded up.
///
/// # Theorem
/// With `c` the profile of the unsampled step at μ = 1/s: removing gives `q·c(ln1p(expm1(ε)/q))`; adding gives
/// `(1 − e^ε(1−q))·c(ln(q/(e^{−ε} − 1 + q)))`, or 0 when `e^ε(1−q) ≥ 1`. By direct computation from the laws
/// `(1−q)·N(0,s²) + q·N(1,s²)` and `N(0,s²)` (T31). Exact.
#[must_use]
pub fn sampled_delta(q: SamplingProbability, s: NoiseMultiplier, epsilon: Epsilon) -> SampledDelta {
    let (e, mu) = (Interval::point(epsilon.get()), Interval::ONE / s.get());
    let probability = Interval::point(q.get());
    if q.get() == 0.0 || epsilon == Epsilon::INFINITE {
        return SampledDelta { removed: Delta::ZERO, added: Delta::ZERO };
    }
    SampledDelta {
        removed: Delta::from_upper_bound(removed_profile(probability, mu, e)),
        added: Delta::from_upper_bound(added_profile(probability, mu, e)),
    }
}

/// The least ε for which one Poisson-sampled Gaussian step is (ε, δ)-DP, rounded up: the inverse of [`sampled_delta`], whose first
/// direction is the larger. `q·c(ε₀) = δ` at `ε = ln1p(q·expm1(ε₀))`.
#[must_use]
pub fn sampled_epsilon(q: SamplingProbability, s: NoiseMultiplier, target: Delta) -> Epsilon {
    if q.get() == 0.0 {
        return Epsilon::ZERO;
    }
    // ROUNDING: up. ε falls with δ/q, which is rounded down, and rises with μ = 1/s, which is rounded up.
    let share = Delta::from_upper_bound((Interval::point(target.get()) / q.get()).lo());
    let whole = epsilon(Mu::from_upper_bound((Interval::ONE / s.get()).hi()), share);
    let (q, e) = (Interval::point(q.get()), Interval::point(whole.get()));
    let sampled = if whole.get() < 600.0 { (q * e.exp_m1()).ln_1p() } else { log_add_exp((-q).ln_1p(), q.ln() + e) };
    Epsilon::from_upper_bound(sampled.hi().min(whole.get()))
}

/// Mixture against base: `q·c(ln1p(expm1(ε)/q))`.
fn removed_profile(q: Interval, mu: Interval, epsilon: Interval) -> f64 {
    mul_up(q.hi(), profile(mu, (epsilon.exp_m1() / q).ln_1p()))
}

/// Base against mixture: `(1 − e^ε(1−q))·c(ln(q/(e^{−ε} − 1 + q)))`.
fn added_profile(q: Interval, mu: Interval, epsilon: Interval) -> f64 {
    // 1 − e^ε(1−q) = q − expm1(ε)·(1−q), and e^{−ε} − 1 + q is that times e^{−ε}.
    let left = q - epsilon.exp_m1() * (Interval::ONE - q);
    if left.hi() <= 0.0 {
        return 0.0;
    }
    mul_up(left.hi(), profile(mu, (q / (left.max(f64::MIN_POSITIVE) * (-epsilon).exp())).ln().max(0.0)))
}

/// The two directions of [`sampled_delta`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampledDelta {
    /// The dataset loses the record: mixture against base, the larger one.
    pub removed: Delta,
    /// The dataset gains the record: base against mixture.
    pub added: Delta,
}

/// An upper bound on the profile over enclosed parameters: it rises with μ and falls with ε.
fn profile(mu: Interval, epsilon: Interval) -> f64 {
    profile_at(mu.hi(), epsilon.lo()).hi().min(1.0)
}

/// The profile enclosed, at exact ε ≥ 0 and μ > 0.
fn profile_at(mu: f64, epsilon: f64) -> Interval {
    let (m, e) = (Interval::point(mu), Interval::point(epsilon));
    let half = m * 0.5;
    let ratio = e / m;
    let (a, b) = (ratio - half, ratio + half);
    if mu < SMALL {
        let first = Interval::ONE - ratio * mills_within(ratio); // I_1(m) = 1 − m·R(m)
        let second = mills_within(ratio) - ratio * first; // I_2 = R − m·I_1
        let third = (first * 2.0 - ratio * second).max(0.0); // I_3 = 2·I_1 − m·I_2
        let cube = half * half * half;
        // The terms from k = 5 on are at most (μ/2)^5/60·I_5·1.001, and I_5 ≤ min(8, 120/m⁶).
        let fifth = cube * half * half / 60.0 * 1.001 * 8f64.min(120.0 / ratio.lo().max(0.1).powi(6)) * 1.001;
        let sum = half * first * 2.0 + cube * third / 3.0 + Interval::new(0.0, fifth.hi());
        density_within(a) * sum.max(0.0)
    } else if a.lo() >= 0.0 {
        density_within(a) * (mills_within(a) - mills_within(b)).max(0.0)
    } else {
        (tail_within(a) - density_within(a) * mills_within(b)).max(0.0)
    }
}

/// About `ln δ(ε)`. Searches only.
fn ln_profile(mu: f64, epsilon: f64) -> f64 {
    let (a, b) = (epsilon / mu - 0.5 * mu, epsilon / mu + 0.5 * mu);
    if a > 0.0 && mu >= SMALL {
        return ln((mills(a) - mills(b)).max(f64::MIN_POSITIVE)) - 0.5 * a * a - 0.918_938_533_204_672_8;
    }
    if mu < SMALL {
        // μ·I_1 + μ³/24·I_3, as in `profile_at`; the second matters where ε/μ is not large.
        let ratio = epsilon / mu;
        let first = if ratio < 100.0 { 1.0 - ratio * mills(ratio) } else { 1.0 / (ratio * ratio) };
        let third = if ratio < 10.0 { 2.0 * first - ratio * (mills(ratio) - ratio * first) } else { 0.0 };
        return ln(mu * first + mu * mu * mu / 24.0 * third) - 0.5 * a * a - 0.918_938_533_204_672_8;
    }
    ln(profile_at(mu, epsilon).middle().max(f64::MIN_POSITIVE))
}
