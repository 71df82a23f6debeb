//! The optimal conversion: the joint range of Rényi divergence and hockey stick (\[A\] Theorem 3, T11).
//!
//! By data processing it is enough to look at two-point pairs `P = (p, 1−p)`, `Q = (r, 1−r)` that just fail
//! (ε, δ)-DP, `r = (p−δ)·e^{−ε}`. The least Rényi divergence among them,
//!
//! ```text
//! γ*(α, ε, δ) = min_p  ln F(p)/(α−1),    F(p) = p^α r^{1−α} + (1−p)^α (1−r)^{1−α}
//! ```
//!
//! is the largest γ for which `D_α ≤ γ` implies (ε, δ)-DP. Four facts make it computable to the last digits:
//!
//! - `F(p) − 1 = r·g(p/r − 1) + (1−r)·g((1−p)/(1−r) − 1)` with `g(w) = (1+w)^α − 1 − αw ≥ 0`: nothing cancels;
//! - `p − r = (p−δ)(1−e^{−ε}) + δ` and `1−r = (1−p) + δ + (p−δ)(1−e^{−ε})`: sums of positive terms;
//! - `F` is convex in `p`, so two tangents on either side of its minimum are a certificate;
//! - γ* rises with ε and with δ, so both inverses are certified by evaluating γ* once more at the answer.
//!
//! For `αδ ≥ 1` the minimum is at `p = 1`, and γ* = ε − ln(1−δ). For δ = 0 it is 0.

use crate::params::{Delta, Divergence, Epsilon, Order};
use paygo_numeric::Interval;
use paygo_numeric::elementary::{exp, exp_m1, ln, ln_1p};
use paygo_numeric::excess::{entropy_excess, exp_excess, exp_excess_within, log_excess_within, power_excess};
use paygo_numeric::search::{certified, convex_floor, root, root_within};
use paygo_numeric::sums::{log_add_exp, log_sum_exp};

/// γ*(α, ε, δ) rounded down: every mechanism with `D_α ≤ γ*` is (ε, δ)-DP, and for larger γ some are not.
///
/// # Tightness
/// Within 10⁻¹⁰ of the truth, relatively, for α ≥ 1.0001 and γ* ≥ 10⁻¹²; looser, never larger, beyond. Optimal for one direction; a mechanism bounded in both may in rare corners
/// (ε near 0, δ above 0.02) satisfy a little more.
#[must_use]
pub fn largest_divergence(order: Order, epsilon: Epsilon, delta: Delta) -> f64 {
    let (a, e, d) = (order.get(), epsilon.get(), delta.get());
    if d == 0.0 {
        // The infimum over p is 0 and not attained; at α = ∞, γ-DP is (γ, 0)-DP.
        return if a == f64::INFINITY { e } else { 0.0 };
    }
    if d >= 1.0 || e == f64::INFINITY {
        return f64::INFINITY;
    }
    if a * d >= 1.0 {
        // a·d computed in doubles: at the border both formulas agree, and this one is a value of F at p = 1, so the
        // certificate below must be used unless a·d is at least 1 for certain.
        let product = Interval::point(a) * d;
        if product.lo() >= 1.0 {
            return (Interval::point(e) - (-Interval::point(d)).ln_1p()).lo();
        }
    }
    let search = Search::new(a, e, d);
    Certificate::new(a, e, d).floor(search.point(search.minimizer(None)).0)
}

/// The least ε with `γ*(α, ε, δ) ≥ value`, rounded up; `upper` is a bound already known.
pub(crate) fn epsilon(order: Order, value: f64, delta: Delta, upper: Epsilon) -> f64 {
    let (a, d) = (order.get(), delta.get());
    if d == 0.0 || a == f64::INFINITY || (Interval::point(a) * d).lo() >= 1.0 || upper == Epsilon::ZERO {
        return upper.get(); // Lemma 1 is exact here.
    }
    // Search: find ε, and where the minimum is, with plain floats.
    let (found, point) = solve_epsilon(a, value, d, upper.get());
    let holds = |e: f64| Certificate::new(a, e, d).floor(point) >= value;
    // Bound: move up until the certificate agrees.
    if found < 1e-12 && holds(0.0) { 0.0 } else { certified(found, found.max(1e-300), upper.get(), holds) }
}

/// About the same, for searches.
pub(crate) fn epsilon_near(order: Order, value: f64, delta: Delta) -> f64 {
    let (a, d) = (order.get(), delta.get());
    let upper = super::Conversion::Lemma1.epsilon(order, Divergence::from_upper_bound(value), delta).get();
    if d == 0.0 || a * d >= 1.0 || a == f64::INFINITY || upper == 0.0 {
        return upper;
    }
    solve_epsilon(a, value, d, upper).0
}

/// The least δ with `γ*(α, ε, δ) ≥ value`, rounded up; `upper` is a bound already known.
pub(crate) fn delta(order: Order, value: f64, epsilon: Epsilon, upper: Delta) -> f64 {
    let (a, e) = (order.get(), epsilon.get());
    if a == f64::INFINITY || (Interval::point(a) * upper.get()).hi() > 1.0 && reaches_the_end(order, value, epsilon) {
        return upper.get(); // δ ≥ 1/α, where Lemma 1 is exact.
    }
    let (least, most) = (-700.0, ln(upper.get().min(1.0 / a)));
    if most <= least {
        return upper.get();
    }
    let gap = |x: f64| {
        let search = Search::new(a, e, exp(x));
        search.divergence(search.minimizer(None)).0 - value
    };
    let found = exp(root(least, most, gap));
    let holds = |d: f64| Delta::new(d).is_ok_and(|d| largest_divergence(order, epsilon, d) >= value);
    certified(found, found, upper.get(), holds)
}

/// Whether even δ = 1/α does not suffice: `value > ε − ln(1 − 1/α)`.
fn reaches_the_end(order: Order, value: f64, epsilon: Epsilon) -> bool {
    let inverse = Interval::ONE / order.get();
    (Interval::point(epsilon.get()) - (-inverse).ln_1p()).hi() < value
}

/// About the ε with `γ*(α, ε, δ) = value`, in `[0, upper]`, and the minimiser there: Newton's method, kept in a bracket.
fn solve_epsilon(a: f64, value: f64, d: f64, upper: f64) -> (f64, Point) {
    let (mut lo, mut hi) = (0.0, upper);
    let mut e = upper;
    let mut v = None;
    let mut point = Point { above: 1.0 - d, rest: 0.0 };
    for _ in 0..60 {
        let search = Search::new(a, e, d);
        let place = search.minimizer(v);
        v = Some(place);
        point = search.point(place).0;
        let (divergence, slope) = search.divergence(place);
        let gap = divergence - value;
        if gap < 0.0 {
            lo = e
        } else {
            hi = e
        }
        let newton = e - gap / slope;
        if (newton - e).abs() <= 1e-14 * e || hi - lo <= 1e-15 * hi {
            break;
        }
        e = if lo < newton && newton < hi { newton } else { lo + 0.5 * (hi - lo) };
    }
    (e, point)
}

/// Beyond this ε, `e^{−ε}` leaves the doubles. There `1 − r` counts as 1, which is at least what it is: `F` only falls.
const FAR: f64 = 690.0;

/// Plain floats: where the minimum is, and about how low. Searches only.
struct Search {
    a: f64,
    e: f64,
    d: f64,
    /// `e^{−ε}` and `1 − e^{−ε}`.
    decay: f64,
    gap: f64,
    /// `αδ − δ` and `1 − αδ`.
    start: f64,
    room: f64,
}

/// A point of the search: `p − δ` and `1 − p`, each without cancellation.
#[derive(Clone, Copy)]
struct Point {
    above: f64,
    rest: f64,
}

impl Search {
    fn new(a: f64, e: f64, d: f64) -> Self {
        Self { a, e, d, decay: exp(-e), gap: -exp_m1(-e), start: (a - 1.0) * d, room: (1.0 - a * d).max(f64::EPSILON) }
    }

    /// `p = αδ + (1−αδ)·sigmoid(v)`.
    fn point(&self, v: f64) -> (Point, f64) {
        let (low, high) = if v < 0.0 {
            let t = exp(v);
            (t / (1.0 + t), 1.0 / (1.0 + t))
        } else {
            let t = exp(-v);
            (1.0 / (1.0 + t), t / (1.0 + t))
        };
        (Point { above: self.start + self.room * low, rest: self.room * high }, self.room * low)
    }

    /// `p/r − 1`, `1 − (1−p)/(1−r)`, `r`, `1−r`.
    fn pair(&self, point: Point) -> (f64, f64, f64, f64) {
        let difference = point.above * self.gap + self.d;
        let (r, rest) = (point.above * self.decay, point.rest + difference);
        (difference / r, difference / rest, r, rest)
    }

    /// `ln(p/r)` and `ln((1−p)/(1−r))`.
    fn logs(&self, point: Point) -> (f64, f64) {
        if self.e > FAR {
            return (ln(point.above + self.d) - ln(point.above) + self.e, ln(point.rest));
        }
        let (w1, w2, _, _) = self.pair(point);
        (ln_1p(w1), ln_1p(-w2))
    }

    /// The sign and size of `F′` in logarithms; increasing in `v`.
    fn slope(&self, v: f64) -> f64 {
        let (point, above_start) = self.point(v);
        let b = self.a - 1.0;
        let (l1, l2) = self.logs(point);
        let left = b * l1 + ln(above_start) - ln(point.above);
        let right = b * l2 + ln(self.a - b * self.decay * exp(l2));
        left - right
    }

    /// Where `F` is least: a secant from a place nearby, or a bracketed search from nowhere. The minimum is flat, so a
    /// few digits do.
    fn minimizer(&self, near: Option<f64>) -> f64 {
        if let Some(start) = near {
            let (mut x, mut f) = (start, self.slope(start));
            let mut y = x - f.clamp(-1.0, 1.0) * 0.5;
            for _ in 0..8 {
                let g = self.slope(y);
                let next = y - g * (y - x) / (g - f);
                (x, f, y) = (y, g, next);
                if (y - x).abs() <= 1e-7 * y.abs().max(1.0) && (-700.0..=36.0).contains(&y) {
                    return y;
                }
                if !y.is_finite() || y == x {
                    break;
                }
            }
        }
        root_within(-700.0, 36.0, 1e-8, |v| self.slope(v))
    }

    /// About γ* with the minimum at `v`, and its derivative in ε (that of `F` at a fixed `p`).
    fn divergence(&self, v: f64) -> (f64, f64) {
        let point = self.point(v).0;
        let b = self.a - 1.0;
        let (l1, l2) = self.logs(point);
        let (first, second) = (ln(point.above + self.d) + b * l1, ln(point.rest) + b * l2);
        let log_sum = log_sum_exp(&[first, second]);
        if self.e > FAR {
            return (log_sum / b, exp(first - log_sum));
        }
        let (w1, w2, r, rest) = self.pair(point);
        let log = if self.a * l1 > 600.0 {
            log_sum
        } else {
            let g = |w: f64, l: f64| (1.0 + w) * exp_excess(b * l) + b * entropy_excess(w);
            ln_1p(r * g(w1, l1) + rest * g(-w2, l2))
        };
        (log / b, exp(first - log_sum) - exp(second - log_sum) * r / rest)
    }
}

/// Enclosures: what `F` is at an exactly known `p`.
struct Certificate {
    a: f64,
    e: f64,
    d: f64,
    decay: Interval,
    gap: Interval,
}

impl Certificate {
    fn new(a: f64, e: f64, d: f64) -> Self {
        let minus = Interval::point(-e);
        Self { a, e, d, decay: minus.exp(), gap: -minus.exp_m1() }
    }

    /// A lower bound on `min_p ln F(p)/(α−1)`, given a guess of the minimiser.
    fn floor(&self, guess: Point) -> f64 {
        let b = Interval::point(self.a) - 1.0;
        // Hold the smaller of p−δ and 1−p as the exact double; the other is then what is left of 1−δ, enclosed.
        let by_rest = guess.rest < guess.above;
        let x = if by_rest { guess.rest } else { guess.above };
        let whole = Interval::ONE - self.d;
        let at = |x: f64| {
            let (x, other) = (Interval::point(x), whole - x);
            if by_rest { (other, x) } else { (x, other) }
        };
        let (above, rest) = at(x);
        let log_at_guess = self.log_value(above, rest);
        if log_at_guess.hi() > 100.0 || self.e > FAR {
            // Scaled by its value at the guess, so that nothing overflows.
            let scale = log_at_guess.middle();
            let floor = convex_floor(x, 0.0, whole.lo(), |x| {
                let (above, rest) = at(x);
                (self.log_value(above, rest) - scale).exp()
            });
            return if floor > 0.0 { ((Interval::point(floor).ln() + scale) / b).lo() } else { f64::NEG_INFINITY };
        }
        // Search: where F′ vanishes, by doubling and two secants; the slope is more accurate here than where the guess was made.
        let slope_at = |x: f64| {
            let (above, rest) = at(x);
            let slope = self.slope(above, rest);
            if by_rest { -slope } else { slope }
        };
        let mut x = x;
        for _ in 0..64 {
            let next = if slope_at(x).middle() < 0.0 { 2.0 * x } else { 0.5 * x };
            let between = (slope_at(x).middle() < 0.0) != (slope_at(next).middle() < 0.0);
            if between || next >= whole.lo() {
                break;
            }
            x = next;
        }
        for step in [1e-3, 1e-6] {
            let (here, there) = (slope_at(x).middle(), slope_at(x * (1.0 + step)).middle());
            let next = x - here * x * step / (there - here);
            x = if 0.5 * x < next && next < 2.0 * x { next } else { x };
        }
        // Bound: two places around it, between which F′ was seen to change its sign: outside, F is at least its value at the nearer
        // one; between, it lies above the tangent at either. The loss is of the order of the square of their distance.
        let mut share = 2f64.powi(-40);
        while share < 0.9 {
            let (left, right) = (x * (1.0 - share), x * (1.0 + share));
            let width = Interval::point(right) - left;
            let slopes = (slope_at(left), slope_at(right));
            if slopes.0.hi() <= 0.0 && slopes.1.lo() >= 0.0 {
                let floor = |x: f64, slope: f64| {
                    let (above, rest) = at(x);
                    (self.excess(above, rest) - Interval::point(slope) * width).lo()
                };
                let (low, high) = (floor(left, -slopes.0.lo()), floor(right, slopes.1.hi()));
                return (Interval::point(low.max(high).max(0.0)).ln_1p() / b).lo();
            }
            share *= 8.0;
        }
        0.0
    }

    /// `F′(p)`, from terms that are of the size of `F − 1` where that is small.
    ///
    /// With `g′(w) = α((1+w)^{α−1} − 1)` and `k(w) = w·g′(w) − g(w)`: `F′ = (1−e^{−ε})·(g′(w₁) − g′(w₂)) − e^{−ε}·(k(w₁) − k(w₂))`, and
    /// `k = b·M(w) + b·w·expm1(b·l) − E(b·l)` with `b = α−1`, `l = ln(1+w)`, and `E`, `M` of [`paygo_numeric::excess`].
    fn slope(&self, above: Interval, rest: Interval) -> Interval {
        let (w1, w2, _, _) = self.pair(above, rest);
        let b = Interval::point(self.a) - 1.0;
        let parts = |w: Interval| {
            let x = b * w.ln_1p();
            let rise = x.exp_m1();
            (rise * self.a, b * log_excess_within(w) + b * w * rise - exp_excess_within(x))
        };
        let ((g1, k1), (g2, k2)) = (parts(w1), parts(Interval::new(w2.lo().max(-1.0), w2.hi())));
        self.gap * (g1 - g2) - self.decay * (k1 - k2)
    }

    /// `p/r − 1`, `(1−p)/(1−r) − 1`, `r`, `1−r`.
    fn pair(&self, above: Interval, rest: Interval) -> (Interval, Interval, Interval, Interval) {
        let difference = above * self.gap + self.d;
        let (r, other) = (above * self.decay, rest + difference);
        (difference / r, -(difference / other), r, other)
    }

    /// `F(p) − 1`.
    fn excess(&self, above: Interval, rest: Interval) -> Interval {
        let (w1, w2, r, other) = self.pair(above, rest);
        r * power_excess(self.a, w1) + other * power_excess(self.a, Interval::new(w2.lo().max(-1.0), w2.hi()))
    }

    /// `ln F(p)`; beyond [`FAR`] a lower bound on it.
    fn log_value(&self, above: Interval, rest: Interval) -> Interval {
        let b = Interval::point(self.a) - 1.0;
        if self.e > FAR {
            let p = (above + self.d).ln();
            return log_add_exp(p + b * (p - above.ln() + self.e), rest.ln() * self.a);
        }
        let (w1, w2, _, _) = self.pair(above, rest);
        log_add_exp((above + self.d).ln() + b * w1.ln_1p(), rest.ln() + b * w2.ln_1p())
    }
}
