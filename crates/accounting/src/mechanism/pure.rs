//! Mechanisms with a pure ε: randomized response, Laplace noise, the exponential mechanism, or anything ε-DP.

use crate::params::{Epsilon, Order, Rho, Scale};
use paygo_numeric::Interval;
use paygo_numeric::sums::log_add_exp;

/// The Rényi curve of binary randomized response, the worst of all ε-DP pairs (T7), rounded up.
///
/// `D_α = ε + (log1p(e^{−(2α−1)ε}) − log1p(e^{−ε}))/(α−1)`. Source: Bun and Steinke, arXiv:1605.02065, Proposition 3.3.
/// Exact for randomized response; for other ε-DP mechanisms an upper bound by data processing.
#[must_use]
pub fn pure_renyi(epsilon: Epsilon, order: Order) -> f64 {
    let (e, a) = (epsilon.get(), order.get());
    if e == 0.0 || e == f64::INFINITY || a == f64::INFINITY {
        return e;
    }
    let (eps, b) = (Interval::point(e), Interval::point(a) - 1.0);
    let value = if e * a < 0.5 {
        // Small losses: (α−1)D = ln(cosh((α−½)ε)/cosh(ε/2)) = log1p(2·sinh(αε/2)·sinh((α−1)ε/2)/cosh(ε/2)).
        let half = eps * 0.5;
        (sinh(half * a) * sinh(half * b) * 2.0 / cosh(half)).ln_1p() / b
    } else {
        let two_a_minus_1 = b * 2.0 + 1.0;
        eps + ((-(two_a_minus_1 * eps)).exp().ln_1p() - (-eps).exp().ln_1p()) / b
    };
    value.hi().min(e)
}

/// KL divergence of randomized response, `ε·tanh(ε/2)`, rounded up: the limit of [`pure_renyi`] at order 1.
#[must_use]
pub fn pure_kl(epsilon: Epsilon) -> f64 {
    pure_rho(epsilon).get()
}

/// ε-DP implies `ε·tanh(ε/2)`-zCDP (T7), rounded up; at most `ε²/2` and at most `ε`.
#[must_use]
pub fn pure_rho(epsilon: Epsilon) -> Rho {
    let e = Interval::point(epsilon.get());
    if epsilon.get() == f64::INFINITY {
        return Rho::from_upper_bound(f64::INFINITY);
    }
    Rho::from_upper_bound((e * (e * 0.5).tanh()).hi())
}

/// The exponential mechanism with parameter ε has range at most ε, hence is ε²/8-zCDP (E17), rounded up.
///
/// Source: Cesar and Rogers, *Bounding, Concentrating, and Truncating*, arXiv:2004.07223, Lemma 3.2, for the bounded
/// range of Durfee and Rogers, arXiv:1905.04273.
#[must_use]
pub fn bounded_range_rho(epsilon: Epsilon) -> Rho {
    Rho::from_upper_bound((Interval::point(epsilon.get()).square() / 8.0).hi())
}

/// Laplace noise of `scale` times the ℓ1 sensitivity.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Laplace {
    /// Scale over sensitivity.
    pub scale: Scale,
}

impl Laplace {
    /// `ε = 1/b`, rounded up.
    #[must_use]
    pub fn epsilon(&self) -> Epsilon {
        Epsilon::from_upper_bound((Interval::ONE / self.scale.get()).hi())
    }

    /// Rényi divergence of two Laplace laws one unit apart (T6), rounded up; exact.
    ///
    /// `e^{(α−1)D} = α/(2α−1)·e^{(α−1)/b} + (α−1)/(2α−1)·e^{−α/b}`, whose weights sum to one. Source: Mironov,
    /// arXiv:1702.07476, Proposition 6.
    #[must_use]
    pub fn renyi(&self, order: Order) -> f64 {
        let a = order.get();
        if a == f64::INFINITY {
            return self.epsilon().get();
        }
        let inverse = Interval::ONE / self.scale.get();
        let b = Interval::point(a) - 1.0;
        let denominator = b * 2.0 + 1.0;
        let (up, down) = (b * inverse, inverse * a);
        // Small losses: moment − 1 = α/(2α−1)·expm1(u) + (α−1)/(2α−1)·expm1(−v), where the linear parts cancel
        // (α·u = (α−1)·v) and the excesses E(x) = e^x − 1 − x add up.
        let moment = if up.hi() < 600.0 {
            let excess = |x: Interval| {
                let (p, q) = (paygo_numeric::excess::exp_excess(x.lo()), paygo_numeric::excess::exp_excess(x.hi()));
                Interval::new(
                    Interval::around(p.min(q), paygo_numeric::excess::ERROR).lo(),
                    Interval::around(p.max(q), paygo_numeric::excess::ERROR).hi(),
                )
            };
            ((excess(up) * a + excess(-down) * b) / denominator).ln_1p()
        } else {
            log_add_exp((Interval::point(a) / denominator).ln() + up, (b / denominator).ln() - down)
        };
        (moment / b).hi().min(self.epsilon().get()).max(f64::MIN_POSITIVE)
    }

    /// KL divergence `1/b + e^{−1/b} − 1`, rounded up: the limit of [`Laplace::renyi`] at order 1.
    #[must_use]
    pub fn kl(&self) -> f64 {
        let inverse = Interval::ONE / self.scale.get();
        let excess = paygo_numeric::excess::exp_excess(-inverse.hi());
        Interval::around(excess, paygo_numeric::excess::ERROR).hi()
    }
}

/// `sinh x = expm1(x)·(1 + e^{−x})/2` for `x ≥ 0`: no cancellation.
fn sinh(x: Interval) -> Interval {
    x.exp_m1() * ((-x).exp() + 1.0) * 0.5
}

/// `cosh x`.
fn cosh(x: Interval) -> Interval {
    (x.exp() + (-x).exp()) * 0.5
}
