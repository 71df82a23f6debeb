//! Dominating pairs: the two laws that are hardest to tell apart, by the shape of their privacy loss.
//!
//! A pair is described in one direction, *removed*: `P` is the law with the record, `Q` without it, `L = ln dP/dQ`. The other
//! direction, *added*, is its mirror image: the loss is `−L`, and `P` and `Q` change places.

use super::atoms::Atoms;
use paygo_numeric::Interval;
use paygo_numeric::elementary::{exp, exp_m1, ln, ln_1p};
use paygo_numeric::normal::tail_within;
use std::f64::consts::PI;
use std::sync::Arc;

/// A dominating pair.
#[derive(Clone, Debug, PartialEq)]
pub enum Pair {
    /// `(1−q)·N(0,s²) + q·N(1,s²)` against `N(0,s²)`; q = 1 is plain Gaussian noise.
    Sampled {
        /// The probability of the shifted law.
        q: f64,
        /// The standard deviation.
        s: f64,
    },
    /// What bounds a batch of fixed size in both directions (T43): the losses of the sampled pair above zero, each
    /// with its mirror image below, and what is left of either law alike in both.
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
    /// What bounds every mechanism whose losses lie within a range of this length, wherever the range is (T41).
    BoundedRange {
        /// ε: the length.
        epsilon: f64,
    },
    /// What bounds whatever has some profile.
    Profile(Arc<Atoms>),
}

/// What `P` and `Q` give to the losses above some value, and to those not above it, each enclosed. An infinite loss
/// is in neither.
#[derive(Clone, Copy)]
pub(super) struct Tails {
    /// Above, under `P` and `Q`.
    pub(super) above: [Interval; 2],
    /// Not above, under `P` and `Q`.
    pub(super) below: [Interval; 2],
}

impl Tails {
    /// In the other direction, of minus the loss.
    pub(super) const fn mirrored(self) -> Self {
        let ([p, q], [below_p, below_q]) = (self.above, self.below);
        Self { above: [below_q, below_p], below: [q, p] }
    }
}

/// Most points of a sketch.
const MOST_POINTS: f64 = 20_000.0;

/// A loss, and about what `P` and `Q` give to it. For searches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sketched {
    pub(super) loss: f64,
    pub(super) p: f64,
    pub(super) q: f64,
}

impl Pair {
    /// Whether it is its own mirror image, so that one direction says everything.
    pub(super) const fn is_symmetric(&self) -> bool {
        match self {
            Self::Sampled { q, .. } => *q >= 1.0,
            Self::Replaced { .. }
            | Self::Laplace { .. }
            | Self::Response { .. }
            | Self::BoundedRange { .. }
            | Self::Profile(_) => true,
        }
    }

    /// The probability of an infinite loss, under `P` in either direction.
    pub(super) fn infinite(&self) -> f64 {
        match self {
            Self::Response { delta, .. } => *delta,
            Self::Profile(atoms) => atoms.infinite,
            Self::Sampled { .. } | Self::Replaced { .. } | Self::Laplace { .. } | Self::BoundedRange { .. } => 0.0,
        }
    }

    /// The largest finite loss in either direction: of the pair, or of its mirror image.
    pub(super) fn largest(&self, added: bool) -> f64 {
        match self {
            Self::Sampled { q, .. } if added => (-(-Interval::point(*q)).ln_1p()).hi(),
            Self::Sampled { .. } | Self::Replaced { .. } => f64::INFINITY,
            Self::Laplace { scale } => (Interval::ONE / *scale).hi(),
            Self::Response { epsilon, .. } | Self::BoundedRange { epsilon } => *epsilon,
            Self::Profile(atoms) => atoms.largest(),
        }
    }

    /// Where its atoms are, if it has some: at this loss, and at minus it.
    pub(super) fn atom(&self) -> Option<f64> {
        match *self {
            Self::Sampled { .. } | Self::Replaced { .. } | Self::BoundedRange { .. } | Self::Profile(_) => None,
            Self::Laplace { scale } => Some(1.0 / scale),
            Self::Response { epsilon, .. } => (epsilon > 0.0).then_some(epsilon),
        }
    }

    /// What lies above a loss, and what does not.
    pub(super) fn tails(&self, loss: f64) -> Tails {
        match *self {
            Self::Sampled { q, s } => sampled_tails(q, s, loss),
            Self::Replaced { q, s } => replaced_tails(q, s, loss),
            Self::Laplace { scale } => laplace_tails(scale, loss),
            Self::Response { epsilon, delta } => response_tails(epsilon, delta, loss),
            Self::BoundedRange { epsilon } => bounded_range_tails(epsilon, loss),
            Self::Profile(ref atoms) => atoms.tails(loss),
        }
    }

    /// The law in a few hundred points, without ends that have less than a negligible probability in either
    /// direction. For searches.
    pub(super) fn sketch(&self, negligible: f64) -> Vec<Sketched> {
        let mut points = self.whole_sketch();
        let mut sum = 0.0;
        let kept = points.iter().rposition(|point| {
            sum += point.p;
            sum > negligible
        });
        points.truncate(kept.map_or(points.len(), |kept| kept + 1).max(1));
        sum = 0.0;
        let kept = points.iter().position(|point| {
            sum += point.q;
            sum > negligible
        });
        points.split_off(kept.unwrap_or(0))
    }

    fn whole_sketch(&self) -> Vec<Sketched> {
        match *self {
            Self::Sampled { q, s } => sampled_sketch(q, s),
            Self::Replaced { q, s } => {
                let far: Vec<Sketched> = sampled_sketch(q, s).into_iter().filter(|point| point.loss > 0.0).collect();
                let mirrored = far.iter().rev().map(|point| Sketched { loss: -point.loss, p: point.q, q: point.p });
                let rest = 1.0 - far.iter().map(|point| point.p + point.q).sum::<f64>();
                let middle = Sketched { loss: 0.0, p: rest.max(0.0), q: rest.max(0.0) };
                mirrored.chain([middle]).chain(far.iter().copied()).collect()
            }
            Self::Laplace { scale } => laplace_sketch(scale),
            Self::Response { epsilon, delta } => {
                let (more, less) = ((1.0 - delta) / (1.0 + exp(-epsilon)), (1.0 - delta) / (1.0 + exp(epsilon)));
                vec![Sketched { loss: -epsilon, p: less, q: more }, Sketched { loss: epsilon, p: more, q: less }]
            }
            Self::BoundedRange { epsilon } => bounded_range_sketch(epsilon),
            Self::Profile(ref atoms) => atoms.sketch(),
        }
    }
}

/// The loss exceeds `loss` where `x > ½ + s²·ln((e^loss − 1 + q)/q)`: the likelihood ratio rises with x.
fn sampled_tails(q: f64, s: f64, loss: f64) -> Tails {
    let l = Interval::point(loss);
    let q_in = Interval::point(q);
    let excess = l.exp_m1() / q_in;
    let log_ratio = match q {
        1.0.. => l,
        // The ratio is never so small.
        _ if excess.hi() <= -1.0 => return Tails { above: [Interval::ONE; 2], below: [Interval::ZERO; 2] },
        _ => excess.ln_1p(),
    };
    let x = log_ratio * Interval::point(s).square() + 0.5;
    let (base, shifted) = (x / s, (x - 1.0) / s);
    let mix = |b: Interval, h: Interval| (Interval::ONE - q_in) * b + q_in * h;
    let rest = |y: Interval| Interval::ONE - y;
    if x.lo() >= 0.5 {
        let (b, h) = (tail_within(base), tail_within(shifted));
        let p = mix(b, h);
        Tails { above: [p, b], below: [rest(p), rest(b)] }
    } else {
        let (b, h) = (tail_within(-base), tail_within(-shifted));
        let p = mix(b, h);
        Tails { above: [rest(p), rest(b)], below: [p, b] }
    }
}

/// Above zero the sampled pair; below it the mirror image: a loss of at most −l has the probability that the base
/// gives to one of at least l.
fn replaced_tails(q: f64, s: f64, loss: f64) -> Tails {
    let [p, base] = sampled_tails(q, s, loss.abs()).above;
    let rest = |x: Interval| Interval::ONE - x;
    if loss >= 0.0 {
        Tails { above: [p, base], below: [rest(p), rest(base)] }
    } else {
        Tails { above: [rest(base), rest(p)], below: [base, p] }
    }
}

/// `L = (|x−1| − |x|)/b` for `x ~ Lap(0, b)`: it exceeds l where `x < t = (1 − b·l)/2`. Its ends are atoms.
fn laplace_tails(scale: f64, loss: f64) -> Tails {
    let inverse = Interval::ONE / scale;
    if loss >= inverse.hi() {
        return Tails { above: [Interval::ZERO; 2], below: [Interval::ONE; 2] };
    }
    if loss < -inverse.hi() || (loss == -inverse.hi() && inverse.lo() < inverse.hi()) {
        return Tails { above: [Interval::ONE; 2], below: [Interval::ZERO; 2] };
    }
    let t = ((Interval::ONE - Interval::point(loss) * scale) * 0.5).max(0.0);
    let t = Interval::new(t.lo().min(1.0), t.hi().min(1.0));
    let p_below = (-(t / scale)).exp() * 0.5;
    let q_above = (-((Interval::ONE - t) / scale)).exp() * 0.5;
    Tails { above: [Interval::ONE - p_below, q_above], below: [p_below, Interval::ONE - q_above] }
}

/// Two atoms, at ε and −ε.
fn response_tails(epsilon: f64, delta: f64, loss: f64) -> Tails {
    let (e, kept) = (Interval::point(epsilon), Interval::ONE - delta);
    let (more, less) = (kept / ((-e).exp() + 1.0), kept / (e.exp() + 1.0));
    if loss >= epsilon {
        Tails { above: [Interval::ZERO; 2], below: [kept; 2] }
    } else if loss >= -epsilon {
        Tails { above: [more, less], below: [less, more] }
    } else {
        Tails { above: [kept; 2], below: [Interval::ZERO; 2] }
    }
}

/// The profile is the largest of all two-point laws with losses `t` and `t − ε`, taken at `t = (x + ε)/2`: `(1 − e^{(x−ε)/2})²/(1 − e^{−ε})`
/// for `|x| ≤ ε`, with `P(L > x) = (1 − e^{(x−ε)/2})/(1 − e^{−ε})` and `Q(L > x) = (e^{−(x+ε)/2} − e^{−ε})/(1 − e^{−ε})`.
fn bounded_range_tails(epsilon: f64, loss: f64) -> Tails {
    if loss >= epsilon {
        return Tails { above: [Interval::ZERO; 2], below: [Interval::ONE; 2] };
    }
    if loss <= -epsilon {
        return Tails { above: [Interval::ONE; 2], below: [Interval::ZERO; 2] };
    }
    let (e, x) = (Interval::point(epsilon), Interval::point(loss));
    let whole = -((-e).exp_m1());
    // Each as a product, so that no digits are lost: `e^{−ε}·(e^{(ε−x)/2} − 1)` and its like.
    let (up, down) = (((e - x) * 0.5).exp_m1(), ((e + x) * 0.5).exp_m1());
    let above_p = -(((x - e) * 0.5).exp_m1()) / whole;
    let above_q = (-e).exp() * up / whole;
    let below_p = (-e).exp() * down / whole;
    let below_q = -((-(e + x) * 0.5).exp_m1()) / whole;
    Tails { above: [above_p, above_q], below: [below_p, below_q] }
}

fn bounded_range_sketch(epsilon: f64) -> Vec<Sketched> {
    let tails = |i: i32| bounded_range_tails(epsilon, f64::from(i) / 64.0 * epsilon);
    let point = |i: i32| {
        let (left, right) = (tails(i), tails(i + 1));
        let mass = |law: usize| (left.above[law].middle() - right.above[law].middle()).max(0.0);
        // The outermost stand for the ends of the range.
        let place = match i {
            -64 => -1.0,
            63 => 1.0,
            _ => (f64::from(i) + 0.5) / 64.0,
        };
        Sketched { loss: place * epsilon, p: mass(0), q: mass(1) }
    };
    (-64..64).map(point).collect()
}

/// `x` in (0, 1), whose loss is `(1 − 2x)/b`, and atoms at both ends; finer towards the ends, where `e^{−x/b}` falls.
fn laplace_sketch(scale: f64) -> Vec<Sketched> {
    let most = 1.0 / scale;
    let finest = (1e-3 * scale).min(1e-3);
    let half: Vec<f64> = (0..=96).map(|i| finest * exp(f64::from(i) / 96.0 * -ln(2.0 * finest))).collect();
    let other = half.iter().rev().skip(1).map(|x| 1.0 - x);
    let edges: Vec<f64> = [0.0].into_iter().chain(half.iter().copied()).chain(other).chain([1.0]).collect();
    let between = edges.windows(2).rev().map(|edge| {
        let loss = (1.0 - edge[0] - edge[1]) * most;
        let p = 0.5 * exp(-edge[0] * most) * -exp_m1((edge[0] - edge[1]) * most);
        Sketched { loss, p, q: p * exp(-loss) }
    });
    let start = Sketched { loss: -most, p: 0.5 * exp(-most), q: 0.5 };
    let end = Sketched { loss: most, p: 0.5, q: 0.5 * exp(-most) };
    [start].into_iter().chain(between).chain([end]).collect()
}

fn sampled_sketch(q: f64, s: f64) -> Vec<Sketched> {
    // Fine enough for the Gaussian and, up to a limit, for the bend of the loss, which is s² wide.
    let step = (0.25 * s).min(0.5 * s * s).max(s / 16.0).max((1.0 + 76.0 * s) / MOST_POINTS);
    let scale = step / (s * (2.0 * PI).sqrt());
    let density = |z: f64| scale * exp(-0.5 * z * z);
    let mut x = -38.0 * s;
    let mut points = Vec::new();
    while x <= 1.0 + 38.0 * s {
        let (base, shifted) = (density(x / s), density((x - 1.0) / s));
        let log_ratio = (2.0 * x - 1.0) / (2.0 * s * s);
        let loss = if q >= 1.0 {
            log_ratio
        } else if log_ratio > 600.0 {
            log_ratio + ln(q)
        } else {
            ln_1p(q * exp_m1(log_ratio))
        };
        points.push(Sketched { loss, p: (1.0 - q) * base + q * shifted, q: base });
        x += step;
    }
    points
}
