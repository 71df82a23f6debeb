//! A pair's loss on a lattice, from above and from below.
//!
//! With `t = e^x` the profile `H(t) = E_P[(1 − t·e^{−L})₊] = P(L > x) − t·Q(L > x)` is convex and falls. Whatever
//! lies above it is worth more in every composition, whatever lies below it less: `H` of a composition is a mean of
//! `H` of each part (T41).
//!
//! - **From above** ([`upper`]): the chord between lattice points. A cell's mass goes to its two ends, so that its probabilities under
//!   `P` and `Q` stay what they are. (Doroshenko et al., arXiv:2207.04380, call it connecting the dots.)
//! - **From below** ([`lower`]): a tangent in each cell. Where two of them meet beside a lattice point, both are lowered to
//!   the smaller of their values there, so that every bend is at a lattice point.
//!
//! The two differ by the square of a cell's width.

use super::pair::Tails;
use paygo_numeric::Interval;
use paygo_numeric::rounding::{add_down, add_up, mul_up, sub_up};

/// A law of the loss on a lattice: masses under `P`, in steps of the lattice, and what is infinite.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GridLaw {
    /// Rising.
    pub(super) cells: Vec<(i64, f64)>,
    pub(super) infinite: f64,
}

/// The ends of cells, in steps, and the tails there or at the middles, in one direction.
pub(super) struct Cut {
    /// The lattice's step, a double of few bits, so that multiples of it are exact.
    pub(super) step: f64,
    /// The ends of the cells, rising.
    pub(super) ends: Vec<i64>,
    /// The tails at each end, or at a place in each cell.
    pub(super) tails: Vec<Tails>,
    /// The probability of an infinite loss.
    pub(super) infinite: f64,
}

impl Cut {
    fn loss(&self, end: i64) -> Interval {
        Interval::point(loss_at(end, self.step))
    }
}

/// The loss of a lattice point; exact, because the step has few bits.
#[expect(clippy::cast_precision_loss, reason = "lattice indices are far below 2^53")]
pub(super) fn loss_at(index: i64, step: f64) -> f64 {
    index as f64 * step
}

/// What lies between two places, as a difference of the smaller tails.
fn between(left: &Tails, right: &Tails, law: usize) -> Interval {
    let difference = if right.above[law].hi() < 0.5 {
        left.above[law] - right.above[law]
    } else {
        right.below[law] - left.below[law]
    };
    difference.max(0.0)
}

/// A law on the ends of the cells whose profile is nowhere below the pair's; the tails are those at the ends.
///
/// # Soundness
/// Chord weights: `right + left = P`, `right·e^{−l'} + left·e^{−l} = Q`, so `right = (P − Q·e^l)/(1 − e^{−(l'−l)})`.
/// ROUNDING: `P` up; what rounding leaves open goes to the right, where it weighs more. What lies at or below the
/// first end moves up to it; what lies above the last is infinite.
pub(super) fn upper(cut: &Cut) -> GridLaw {
    let mut cells: Vec<(i64, f64)> = cut.ends.iter().map(|&end| (end, 0.0)).collect();
    cells[0].1 = cut.tails[0].below[0].hi();
    // Cells come in few widths, one after the other.
    let mut gap = (0, Interval::ZERO);
    for (i, pair) in cut.tails.windows(2).enumerate() {
        let (p, q) = (between(&pair[0], &pair[1], 0), between(&pair[0], &pair[1], 1));
        let width = cut.ends[i + 1] - cut.ends[i];
        if gap.0 != width {
            gap = (width, -((-cut.loss(width)).exp_m1()));
        }
        let weight = (p - q * cut.loss(cut.ends[i]).exp()) / gap.1;
        let weight = weight.hi().clamp(0.0, p.hi());
        cells[i + 1].1 = add_up(cells[i + 1].1, weight);
        cells[i].1 = add_up(cells[i].1, sub_up(p.hi(), weight));
    }
    let beyond = cut.tails.last().map_or(1.0, |tails| tails.above[0].hi());
    cells.retain(|&(_, mass)| mass > 0.0);
    GridLaw { cells, infinite: add_up(beyond, cut.infinite) }
}

/// A law on the ends of the cells whose profile is nowhere above the pair's; the tails are those at a place in each cell.
///
/// # Soundness
/// Let `ℓ` be the tangent of `H` at the place in a cell, `v_j` a number at or below both tangents at the end `t_j`
/// between two cells, and `G` the broken line through the `(t_j, v_j)`. In each cell both ends of `G` are at or below
/// the tangent there, hence `G ≤ ℓ ≤ H`. Left of the first cell `G` has the slope of the tangent in it; from some end
/// on it is 0, which is at most `H`, and the last piece ends in 0 there, at or below its tangent. The mass at an end
/// is `t_j` times the change of slope. ROUNDING: down; a change of slope that comes out negative is taken off the
/// neighbors ([`make_convex`]).
pub(super) fn lower(cut: &Cut) -> GridLaw {
    let count = cut.tails.len();
    let ratios: Vec<Interval> = cut.ends.iter().map(|&end| cut.loss(end).exp()).collect();
    // The tangent in a cell, at one of its ends.
    let tangent = |cell: usize, end: usize| {
        let [p, q] = cut.tails[cell].above;
        (p - q * ratios[end]).lo()
    };
    let left: Vec<f64> = (0..count).map(|cell| tangent(cell, cell)).collect();
    let right: Vec<f64> = (0..count).map(|cell| tangent(cell, cell + 1)).collect();
    let value = |end: usize| if end == 0 { left[0] } else { right[end - 1].min(left[end]) };
    let mut values: Vec<f64> = (0..count).map(value).collect();
    // The last end at which the piece before it may be at zero.
    let last = (1..=count).rev().find(|&end| right[end - 1] >= 0.0 && values[end - 1] > 0.0);
    let Some(last) = last else { return GridLaw { cells: Vec::new(), infinite: cut.infinite } };
    values.truncate(last);
    values.push(0.0);
    // t times the slope of each piece, t that of its left end and that of its right end.
    let mut gap = (0, Interval::ZERO, Interval::ZERO);
    let slopes: Vec<(Interval, Interval)> = (0..last)
        .map(|piece| {
            let width = cut.ends[piece + 1] - cut.ends[piece];
            if gap.0 != width {
                let width_in = cut.loss(width);
                gap = (width, width_in.exp_m1(), -((-width_in).exp_m1()));
            }
            let rise = Interval::point(values[piece + 1]) - values[piece];
            (rise / gap.1, rise / gap.2)
        })
        .collect();
    let first = -(cut.tails[0].above[1] * ratios[0]);
    let bends = (0..=last).map(|end| {
        let before = if end > 0 { slopes[end - 1].1 } else { first };
        let after = if end < last { slopes[end].0 } else { Interval::ZERO };
        (cut.ends[end], (after - before).lo())
    });
    GridLaw { cells: make_convex(bends.collect(), cut.step), infinite: cut.infinite }
}

/// Masses at or above zero whose profile is nowhere above that of these: a negative one is taken off its neighbors.
///
/// # Soundness
/// With masses `q` under `Q`, `G(t) = Σ q_j·(t_j − t)₊`. Let `t_b = α·t_a + γ·t_c` with `α + γ = 1`. Then `(t_b − t)₊
/// ≤ α·(t_a − t)₊ + γ·(t_c − t)₊`, so where `q_b < 0`, taking `α·|q_b|` off `a` and `γ·|q_b|` off `c` instead only
/// lowers `G`. With nothing before it, all of it comes off `c`, since `(t_b − t)₊ ≤ (t_c − t)₊`. A negative mass with
/// nothing after it, which rounding could leave, proves nothing: an empty law.
fn make_convex(bends: Vec<(i64, f64)>, step: f64) -> Vec<(i64, f64)> {
    let distance = |from: i64, to: i64| Interval::point(loss_at(to - from, step));
    let mut kept: Vec<(i64, f64)> = Vec::with_capacity(bends.len());
    for (at, mass) in bends {
        let mut next = (at, mass);
        while let Some(&(middle, negative)) = kept.last().filter(|(_, mass)| *mass < 0.0) {
            kept.pop();
            let y = distance(middle, next.0);
            let Some(before) = kept.last_mut() else {
                next.1 = add_down(next.1, -mul_up(-negative, y.exp().hi()));
                continue;
            };
            // P-masses: the shares of Q-mass, times e^{−x} and e^y.
            let x = distance(before.0, middle);
            let (down, up) = (-((-x).exp_m1()), y.exp_m1());
            let whole = up + down;
            before.1 = add_down(before.1, -mul_up(-negative, (up / whole * (-x).exp()).hi()));
            next.1 = add_down(next.1, -mul_up(-negative, (down / whole * y.exp()).hi()));
        }
        kept.push(next);
    }
    if kept.last().is_some_and(|&(_, mass)| mass < 0.0) {
        return Vec::new();
    }
    kept.retain(|&(_, mass)| mass > 0.0);
    kept
}
