//! One Rényi statement, `D_α ≤ γ` in the direction concerned, turned into (ε, δ).
//!
//! With `ζ_α = (1/α)(1 − 1/α)^{α−1}`:
//!
//! | name | ε from δ | source |
//! | --- | --- | --- |
//! | classic | `γ + ln(1/δ)/(α−1)` | Mironov, arXiv:1702.07476, Proposition 3 (T9) |
//! | CKS | `γ + ln(ζ_α/δ)/(α−1)` | Canonne, Kamath, Steinke, arXiv:2004.00010, Proposition 12 (T10) |
//! | Lemma 1 | the least of CKS and `ln1p(expm1((α−1)γ)/(αδ))/(α−1)`; for `αδ ≥ 1`, `γ + ln1p(−δ)` | \[A\] Lemma 1 (T12) |
//! | exact | the inverse of [`joint_range::largest_divergence`] | \[A\] Theorem 3 (T11) |
//!
//! Each is at most the one before it; [`Conversion`]'s methods return numbers in that order too. An order of ∞ with
//! `D_∞ ≤ γ` is γ-DP. Everything that tells conversions apart is here: a new one is a variant, and the compiler asks for the rest.

use super::joint_range;
use crate::params::{Delta, Divergence, Epsilon, Order};
use paygo_numeric::Interval;
use paygo_numeric::elementary::{exp_m1, ln, ln_1p};

/// A way to turn one Rényi statement into (ε, δ).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conversion {
    /// `γ + ln(1/δ)/(α−1)` (T9).
    Classic,
    /// With the factor `ζ_α` (T10).
    Cks,
    /// \[A\]'s closed form (T12).
    Lemma1,
    /// \[A\]'s optimum (T11).
    Exact,
}

impl Conversion {
    /// From the loosest to the tightest.
    pub const ALL: [Self; 4] = [Self::Classic, Self::Cks, Self::Lemma1, Self::Exact];

    /// Its name in output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Cks => "cks",
            Self::Lemma1 => "lemma1",
            Self::Exact => "exact",
        }
    }

    /// The name of its row for a Rényi curve.
    pub(crate) const fn renyi_row(self) -> &'static str {
        match self {
            Self::Classic => "renyi-classic",
            Self::Cks => "renyi-cks",
            Self::Lemma1 => "renyi-lemma1",
            Self::Exact => "renyi-exact",
        }
    }

    /// The name of its row for ρ-zCDP. Over all orders Lemma 1 is hardly less than CKS, and has none.
    pub(crate) const fn zcdp_row(self) -> Option<&'static str> {
        match self {
            Self::Classic => Some("zcdp-classic"),
            Self::Cks => Some("zcdp-cks"),
            Self::Lemma1 => None,
            Self::Exact => Some("zcdp-exact"),
        }
    }

    /// The conversion whose best order is a good start for this one's.
    pub(crate) const fn start(self) -> Self {
        match self {
            Self::Classic | Self::Cks | Self::Lemma1 => Self::Classic,
            Self::Exact => Self::Cks,
        }
    }

    /// About [`epsilon`](Self::epsilon), fast. Searches only.
    pub(crate) fn epsilon_near(self, order: Order, value: f64, delta: Delta) -> f64 {
        let (a, log_inverse) = (order.get(), -ln(delta.get()));
        let cks = value + (log_zeta_near(a) + log_inverse) / (a - 1.0);
        match self {
            Self::Classic => value + log_inverse / (a - 1.0),
            Self::Cks => cks,
            Self::Lemma1 | Self::Exact if (a - 1.0) * value > 8.0 => cks,
            Self::Lemma1 => self.epsilon(order, Divergence::from_upper_bound(value), delta).get(),
            Self::Exact => joint_range::epsilon_near(order, value, delta),
        }
    }

    /// As near to [`epsilon`](Self::epsilon) as the choice among all orders needs, where the value rises with the order. Searches only.
    pub(crate) fn epsilon_nearer(self, order: Order, value: f64, delta: Delta) -> f64 {
        match self {
            Self::Classic | Self::Cks => self.epsilon_near(order, value, delta),
            Self::Lemma1 => Self::Cks.epsilon_near(order, value, delta),
            Self::Exact => self.epsilon(order, Divergence::from_upper_bound(value), delta).get(),
        }
    }

    /// About the least that [`epsilon`](Self::epsilon) can be, faster still: CKS itself, and for the tighter ones
    /// `CKS + ln(1 − e^{−(α−1)γ})/(α−1)`, which they cannot beat while αδ < 1 (take p = αδ in γ*'s minimum). Searches only.
    pub(crate) fn epsilon_floor(self, order: Order, value: f64, delta: Delta) -> f64 {
        let (a, b, log_inverse) = (order.get(), order.get() - 1.0, -ln(delta.get()));
        match self {
            Self::Classic | Self::Cks => self.epsilon_near(order, value, delta),
            Self::Lemma1 | Self::Exact if a * delta.get() < 1.0 => {
                value + (log_zeta_near(a) + log_inverse + ln(-exp_m1(-b * value))) / b
            }
            Self::Lemma1 | Self::Exact => 0.0,
        }
    }

    /// About `ln` of [`delta`](Self::delta). Searches only.
    pub(crate) fn log_delta_near(self, order: Order, value: f64, epsilon: Epsilon) -> f64 {
        let exponent = (order.get() - 1.0) * (value - epsilon.get());
        match self {
            Self::Classic => exponent,
            Self::Cks => log_zeta_near(order.get()) + exponent,
            Self::Lemma1 | Self::Exact => {
                let delta = self.delta(order, Divergence::from_upper_bound(value), epsilon);
                ln(delta.get().max(f64::MIN_POSITIVE))
            }
        }
    }

    /// About [`budget`](Self::budget), and below 0 where there is none. Searches only.
    pub(crate) fn budget_near(self, order: Order, epsilon: Epsilon, delta: Delta) -> f64 {
        let (a, log_inverse) = (order.get(), -ln(delta.get()));
        match self {
            Self::Classic => epsilon.get() - log_inverse / (a - 1.0),
            Self::Cks | Self::Lemma1 => epsilon.get() - (log_zeta_near(a) + log_inverse) / (a - 1.0),
            Self::Exact => self.signed_budget(order, epsilon, delta),
        }
    }

    /// An ε for which (ε, δ)-DP follows from `D_α ≤ value`; rounded up.
    #[must_use]
    pub fn epsilon(self, order: Order, divergence: Divergence, delta: Delta) -> Epsilon {
        let value = divergence.get();
        if delta == Delta::ONE || (value == 0.0 && self >= Self::Lemma1) {
            return Epsilon::ZERO; // D_α = 0 means that the laws are equal.
        }
        if value == f64::INFINITY {
            return Epsilon::INFINITE;
        }
        let classic = Epsilon::from_upper_bound(classic_epsilon(order, value, delta).hi());
        let tighter = |bound: f64, than: Epsilon| Epsilon::from_upper_bound(bound.min(than.get()));
        match self {
            Self::Classic => classic,
            Self::Cks => tighter(cks_epsilon(order, value, delta).hi(), classic),
            Self::Lemma1 => tighter(lemma1_epsilon(order, value, delta), Self::Cks.epsilon(order, divergence, delta)),
            Self::Exact => {
                let lemma1 = Self::Lemma1.epsilon(order, divergence, delta);
                tighter(joint_range::epsilon(order, value, delta, lemma1), lemma1)
            }
        }
    }

    /// A δ for which (ε, δ)-DP follows from `D_α ≤ value`; rounded up, and above 0 unless the laws are equal.
    #[must_use]
    pub fn delta(self, order: Order, divergence: Divergence, epsilon: Epsilon) -> Delta {
        let value = divergence.get();
        if (value == 0.0 && self >= Self::Lemma1) || epsilon == Epsilon::INFINITE {
            return Delta::ZERO;
        }
        if value == f64::INFINITY {
            return Delta::ONE;
        }
        if order.get() == f64::INFINITY && value <= epsilon.get() {
            return Delta::ZERO;
        }
        let classic = Delta::from_upper_bound(classic_delta(order, value, epsilon).hi());
        let tighter = |bound: f64, than: Delta| Delta::from_upper_bound(bound.min(than.get()));
        match self {
            Self::Classic => classic,
            Self::Cks => tighter(cks_delta(order, value, epsilon).hi(), classic),
            Self::Lemma1 => tighter(lemma1_delta(order, value, epsilon), Self::Cks.delta(order, divergence, epsilon)),
            Self::Exact => {
                let lemma1 = Self::Lemma1.delta(order, divergence, epsilon);
                tighter(joint_range::delta(order, value, epsilon, lemma1), lemma1)
            }
        }
    }

    /// The largest γ such that `D_α ≤ γ` gives (ε, δ)-DP, rounded down; `None` when not even γ = 0 does: such an order is
    /// dead, and its budget is not 0.
    #[must_use]
    pub fn budget(self, order: Order, epsilon: Epsilon, delta: Delta) -> Option<Divergence> {
        Divergence::new(self.signed_budget(order, epsilon, delta)).ok()
    }

    /// [`budget`](Self::budget), below 0 where there is none.
    fn signed_budget(self, order: Order, epsilon: Epsilon, delta: Delta) -> f64 {
        if delta == Delta::ONE || epsilon == Epsilon::INFINITE {
            return f64::INFINITY;
        }
        let classic = (Interval::point(epsilon.get()) + log_over_order(order, Interval::point(delta.get()).ln())).lo();
        let better = |budget: f64, than: f64| if budget > than { budget } else { than };
        match self {
            Self::Classic => classic,
            Self::Cks => better(cks_budget(order, epsilon, delta).lo(), classic),
            Self::Lemma1 => {
                better(lemma1_budget(order, epsilon, delta), Self::Cks.signed_budget(order, epsilon, delta))
            }
            Self::Exact => better(
                joint_range::largest_divergence(order, epsilon, delta),
                Self::Lemma1.signed_budget(order, epsilon, delta),
            ),
        }
    }
}

/// `x/(α−1)`; 0 at α = ∞.
fn log_over_order(order: Order, x: Interval) -> Interval {
    if order.get() == f64::INFINITY && x.lo() > f64::NEG_INFINITY {
        Interval::ZERO
    } else {
        x / (Interval::point(order.get()) - 1.0)
    }
}

/// `ln ζ_α = −ln α + (α−1)·ln1p(−1/α)`; −∞ at α = ∞.
fn log_zeta(order: Order) -> Interval {
    let a = Interval::point(order.get());
    if order.get() == f64::INFINITY {
        return Interval::new(f64::NEG_INFINITY, f64::MIN);
    }
    (a - 1.0) * (-(Interval::ONE / a)).ln_1p() - a.ln()
}

/// About `ln ζ_α`, and 0 at α = ∞, where it is divided by ∞. Searches only.
fn log_zeta_near(a: f64) -> f64 {
    if a == f64::INFINITY { 0.0 } else { (a - 1.0) * ln_1p(-1.0 / a) - ln(a) }
}

fn classic_epsilon(order: Order, value: f64, delta: Delta) -> Interval {
    Interval::point(value) - log_over_order(order, Interval::point(delta.get()).ln())
}

fn classic_delta(order: Order, value: f64, epsilon: Epsilon) -> Interval {
    ((Interval::point(order.get()) - 1.0) * (Interval::point(value) - epsilon.get())).exp()
}

fn cks_epsilon(order: Order, value: f64, delta: Delta) -> Interval {
    if order.get() == f64::INFINITY {
        return Interval::point(value);
    }
    Interval::point(value) + log_over_order(order, log_zeta(order) - Interval::point(delta.get()).ln())
}

fn cks_delta(order: Order, value: f64, epsilon: Epsilon) -> Interval {
    if order.get() == f64::INFINITY {
        return Interval::ONE; // Here value > ε: pure DP with a larger ε says nothing at this one.
    }
    (log_zeta(order) + (Interval::point(order.get()) - 1.0) * (Interval::point(value) - epsilon.get())).exp()
}

fn cks_budget(order: Order, epsilon: Epsilon, delta: Delta) -> Interval {
    if order.get() == f64::INFINITY {
        return Interval::point(epsilon.get());
    }
    Interval::point(epsilon.get()) + log_over_order(order, Interval::point(delta.get()).ln() - log_zeta(order))
}

fn lemma1_epsilon(order: Order, value: f64, delta: Delta) -> f64 {
    if order.get() == f64::INFINITY && delta == Delta::ZERO {
        return value;
    }
    let (a, d) = (Interval::point(order.get()), Interval::point(delta.get()));
    let product = a * d;
    if product.lo() >= 1.0 {
        return (Interval::point(value) + (-d).ln_1p()).hi();
    }
    if product.hi() >= 1.0 {
        return f64::INFINITY; // Too close to call: the caller keeps CKS.
    }
    let b = a - 1.0;
    let exponent = b * value;
    let log = if exponent.hi() < 700.0 {
        (exponent.exp_m1() / product).ln_1p()
    } else {
        // ln(1 + (e^x − 1)/(αδ)) ≤ x − ln(αδ) because αδ < 1.
        exponent - product.ln()
    };
    (log / b).hi()
}

fn lemma1_delta(order: Order, value: f64, epsilon: Epsilon) -> f64 {
    let (a, e) = (Interval::point(order.get()), Interval::point(epsilon.get()));
    let inverse = Interval::ONE / a;
    // For δ ≥ 1/α: ε ≥ γ + ln(1−δ), that is δ ≥ 1 − e^{ε−γ}.
    let large = (-(e - value).exp_m1()).hi().max(inverse.hi());
    let b = a - 1.0;
    let (x, y) = (b * value, b * e);
    // For δ < 1/α: δ ≥ expm1((α−1)γ)/(α·expm1((α−1)ε)).
    let ratio = if x.hi() < 700.0 {
        x.exp_m1() / (a * y.exp_m1())
    } else {
        // e^{x−y}/α·(1−e^{−x})/(1−e^{−y}) with the first factor's numerator at most 1.
        (x - y).exp() / (a * -((-y).exp_m1()))
    };
    if ratio.hi() < inverse.lo() { ratio.hi().min(large) } else { large }
}

fn lemma1_budget(order: Order, epsilon: Epsilon, delta: Delta) -> f64 {
    if order.get() == f64::INFINITY && delta == Delta::ZERO {
        return epsilon.get();
    }
    let (a, e, d) = (Interval::point(order.get()), Interval::point(epsilon.get()), Interval::point(delta.get()));
    let product = a * d;
    if product.lo() >= 1.0 {
        return (e - (-d).ln_1p()).lo();
    }
    if product.hi() >= 1.0 {
        return f64::NEG_INFINITY;
    }
    let b = a - 1.0;
    let exponent = b * e;
    let log = if exponent.hi() < 700.0 {
        (product * exponent.exp_m1()).ln_1p()
    } else {
        // ln(1 + αδ(e^y − 1)) ≥ y + ln(αδ) because αδ < 1.
        exponent + product.ln()
    };
    (log / b).lo()
}
