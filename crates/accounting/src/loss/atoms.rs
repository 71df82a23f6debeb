//! A law of finitely many losses: the pair of a profile.

use super::pair::{Sketched, Tails};
use paygo_numeric::Interval;
use paygo_numeric::elementary::{exp, exp_m1};

/// How far apart losses are, as a share of themselves; near zero as a share of the spread.
const WIDTH: f64 = 0.04;
const NEAR: f64 = 0.15;
/// Where a profile is looked for.
const LARGEST: f64 = 1e6;

/// Losses, rising, with their masses under `P`; under `Q` they are `e^{−l}` times those. It is its own mirror image, up to what is rounded.
#[derive(Clone, Debug, PartialEq)]
pub struct Atoms {
    pub(super) losses: Vec<f64>,
    pub(super) masses: Vec<f64>,
    /// What is infinite.
    pub(super) infinite: f64,
    /// About the root of the second moment.
    pub(super) spread: f64,
    /// What `P` and `Q` give to this loss and all above, and to all below.
    above: Vec<[Interval; 2]>,
    below: Vec<[Interval; 2]>,
}

impl Atoms {
    /// Of whatever has at most this profile, in both directions: δ at ε, at or above zero. What is `negligible`, as a multiple of the second
    /// moment, may be lost. `None` where it does not fall so far.
    ///
    /// # Theorem
    /// A convex falling `h ≥ (1 − e^x)₊` of `t = e^x` is the profile of a pair of laws, with mass `t·(change of slope)` under `P` at each
    /// bend (T53 g). The lower hull of points above a convex function is above it. Below zero `H(−x) = 1 − e^{−x} + e^{−x}·H(x)`.
    pub(super) fn of_profile(profile: impl Fn(f64) -> f64, negligible: f64) -> Option<Self> {
        // A normal law of this spread has as much at 0; where almost all is above 0, about where it is.
        let mut spread = 2.5 * profile(0.0);
        while profile(spread) > 0.3 && spread < LARGEST {
            spread *= 1.25;
        }
        if !(spread > 1e-280 && spread < LARGEST) {
            return None;
        }
        let mut places = vec![0.0];
        let mut at = 0.0;
        while at < 4.0 * spread || profile(at) > negligible * spread * spread {
            at += WIDTH * at.max(NEAR * spread);
            places.push(at);
            if at > 10.0 * LARGEST {
                return None;
            }
        }
        let mirrored = places.iter().skip(1).rev().map(|x| -x);
        let points: Vec<(f64, f64)> = mirrored
            .chain(places.iter().copied())
            .map(|x| {
                let there = Interval::point(profile(x.abs()));
                let back = Interval::point(x).exp();
                (x, if x < 0.0 { (there * back - Interval::point(x).exp_m1()).hi() } else { there.hi() }.min(1.0))
            })
            .collect();
        let hull = lower_hull(&points);
        let infinite = hull.last()?.1;
        let (losses, masses) = masses(&hull);
        Some(Self::new(losses, masses, infinite, spread))
    }

    fn new(losses: Vec<f64>, masses: Vec<f64>, infinite: f64, spread: f64) -> Self {
        let add = |sum: &mut [Interval; 2], (loss, mass): (&f64, &f64)| {
            let q = Interval::point(*mass) * (-Interval::point(*loss)).exp();
            *sum = [sum[0] + *mass, sum[1] + q];
            Some(*sum)
        };
        let none = [Interval::ZERO; 2];
        let mut above: Vec<_> = losses.iter().zip(&masses).rev().scan(none, add).collect();
        above.reverse();
        above.push(none);
        let below = [none].into_iter().chain(losses.iter().zip(&masses).scan(none, add)).collect();
        Self { losses, masses, infinite, spread, above, below }
    }

    pub(super) fn tails(&self, loss: f64) -> Tails {
        let at = self.losses.partition_point(|l| *l <= loss);
        Tails { above: self.above[at], below: self.below[at] }
    }

    /// The largest loss; +∞ where some is infinite.
    pub(super) fn largest(&self) -> f64 {
        if self.infinite > 0.0 { f64::INFINITY } else { self.losses.last().copied().unwrap_or(0.0) }
    }

    pub(super) fn sketch(&self) -> Vec<Sketched> {
        let point = |(&loss, &p): (&f64, &f64)| Sketched { loss, p, q: p * exp(-loss) };
        self.losses.iter().zip(&self.masses).map(point).collect()
    }
}

/// The points `(x, v)` at the corners of the greatest convex function of `e^x` that passes none of them.
fn lower_hull(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let slope = |a: &(f64, f64), b: &(f64, f64)| (b.1 - a.1) / (exp(a.0) * exp_m1(b.0 - a.0));
    let mut hull: Vec<(f64, f64)> = Vec::with_capacity(points.len());
    for point in points {
        while let [.., before, last] = hull.as_slice() {
            if slope(before, last) < slope(last, point) {
                break;
            }
            hull.pop();
        }
        hull.push(*point);
    }
    hull
}

/// The masses under `P` at the corners. ROUNDING: up.
fn masses(hull: &[(f64, f64)]) -> (Vec<f64>, Vec<f64>) {
    let at = |x: f64| Interval::point(x).exp();
    // From 1 at t = 0, flat after the last.
    let first = (Interval::point(hull[0].1) - 1.0) / at(hull[0].0);
    let between = hull.windows(2).map(|pair| {
        let rise = Interval::point(pair[1].1) - pair[0].1;
        rise / (at(pair[0].0) * Interval::point(pair[1].0 - pair[0].0).exp_m1())
    });
    let slopes: Vec<Interval> = [first].into_iter().chain(between).chain([Interval::ZERO]).collect();
    let mass = |(point, pair): (&(f64, f64), &[Interval])| (point.0, (at(point.0) * (pair[1] - pair[0])).hi().max(0.0));
    hull.iter().zip(slopes.windows(2)).map(mass).filter(|(_, mass)| *mass > 0.0).unzip()
}
