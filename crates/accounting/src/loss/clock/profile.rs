//! The profile of what is left: δ at a threshold, from above.

use super::law::on_grid;
use super::rest::{Kernel, Rest};
use super::transform::{SURE, size};
use crate::convert::gaussian;
use crate::loss::spectrum::U;
use crate::params::{Epsilon, Mu};
use paygo_numeric::Interval;
use paygo_numeric::elementary::{exp, ln};
use paygo_numeric::fft::{TURN_ERROR, turn};
use paygo_numeric::rounding::{add_up, mul_up};
use paygo_numeric::search::root_within;
use std::f64::consts::PI;

/// Other windows are so far that their share of the sum is about `e^{−FAR}`.
const FAR: f64 = 25.0;
/// Noise that may be added, as shares of all there is, where the bound is above what it is about.
const SMOOTHER: [f64; 6] = [0.004, 0.016, 0.06, 0.25, 1.0, 4.0];

/// A bound on `H(x)`, `x ≥ 0`, where it is about so much; +∞ where doubles do not suffice.
///
/// # Theorem
/// `∫ H(x)·e^{zx} dx = E[e^{zL}]/(z(z+1))` for `Re z = λ > 0`, and a sum over frequencies that are multiples of `dw` is
/// `Σ_m e^{λ(x+mP)}·H(x+mP)` with `P = 2π/dw`, of which the term at `m = 0` is wanted and none is negative (Part 8.27). An infinite loss counts 1.
pub(super) fn profile(rest: &Rest<'_>, x: f64, about: f64) -> f64 {
    if rest.steps.is_empty() {
        let mu = Mu::from_upper_bound(Interval::point(rest.noise).sqrt().hi());
        return gaussian::delta(mu, Epsilon::from_upper_bound(x)).get();
    }
    // ROUNDING: up. Where masses under Q are above 1 the profile may lack as much of the hockey stick.
    let missing = rest.over()[1].hi().max(0.0);
    let lost = add_up(mul_up(rest.lost(), SURE), missing);
    // More noise has the larger profile. A little of it is what few steps want: their law is far from smooth.
    let weight = rest.noise + rest.shape(0.0).variance;
    let more = SMOOTHER.iter().map(|share| share * weight).filter(|noise| *noise > rest.noise);
    let (mut least, mut is_rough) = of_finite(rest, x, about);
    for noise in more {
        if !is_rough || least <= about {
            break;
        }
        let (other, rough) = of_finite(&Rest { noise, known: None, ..rest.clone() }, x, about);
        (least, is_rough) = (least.min(other), rough);
    }
    add_up(least, lost)
}

/// Of the finite losses, by what is best, and whether that is Chernoff's bound alone.
fn of_finite(rest: &Rest<'_>, x: f64, about: f64) -> (f64, bool) {
    let saddles = saddles(rest, x).map(|tilt| (tilt, chernoff(rest, x, tilt)));
    let (tilt, most) = if saddles[1].1 < saddles[0].1 { saddles[1] } else { saddles[0] };
    // Far below what matters nobody needs it exactly.
    if most <= 1e-3 * about {
        return (most, false);
    }
    let finite = finite(rest, x, tilt, about);
    (finite.map_or(most, |finite| finite.min(most)), finite.is_none_or(|finite| finite > most))
}

/// `(1 − e^{x−l})₊ ≤ c·e^{λ(l−x)}` with `c = λ^λ/(λ+1)^{λ+1}`, hence `H(x) ≤ c·E[e^{λL}]·e^{−λx}`.
fn chernoff(rest: &Rest<'_>, x: f64, tilt: f64) -> f64 {
    let (moment, line) = (rest.log_moment(tilt), Interval::point(tilt) * x);
    let bend = Interval::point(tilt) * Interval::point(tilt).ln()
        - (Interval::point(tilt) + 1.0) * (Interval::point(tilt) + 1.0).ln();
    let bound = (Interval::point(moment) - line + bend).exp().hi();
    if bound.is_nan() { f64::INFINITY } else { bound }
}

/// Of the finite losses.
fn finite(rest: &Rest<'_>, x: f64, tilt: f64, about: f64) -> Option<f64> {
    // Windows: to the left the profile is at most 1, to the right what Chernoff says of it, at the best of a few θ.
    let (spread, moment) = (rest.shape(tilt).variance.sqrt(), rest.log_moment(tilt));
    let far = [1.0, 2.0, 4.0, 8.0, 14.0, 20.0].map(|far| {
        let more = on_grid(tilt + far / spread) - tilt;
        (rest.log_moment(tilt + more) - moment + FAR) / more
    });
    let right = far.into_iter().filter(|far| !far.is_nan()).fold(f64::INFINITY, f64::min) - x;
    let window = (12.0 * spread).max((FAR - ln(about)) / tilt).max(right);
    let kernel = Kernel::of(rest, tilt, 2.0 * PI / window, None)?;
    let (kernel, line) = (&kernel.0, kernel.0.line);
    let place = x - (rest.noise * (tilt + 0.5) + kernel.middle);
    let (mut sum, mut moduli, mut doubt) = (0.0, 0.0, 0.0);
    for ((w, value), error) in line.all().zip(&kernel.values).zip(&kernel.errors) {
        let turned = turn(w * place);
        let (twice, modulus) = (if w == 0.0 { 1.0 } else { 2.0 }, size(*value));
        sum += twice * (value.re * turned.re + value.im * turned.im);
        moduli += twice * modulus;
        // The angle is off by its own rounding and that of the place.
        let units = TURN_ERROR + 8.0 + 2.0 * w * (place.abs() + 4.0 * (x.abs() + kernel.middle.abs()));
        doubt += twice * modulus * (error + units * U);
    }
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let adding = line.count as f64 * U * moduli;
    let scale = line.dw / (2.0 * PI) * SURE;
    let sum = (sum + (doubt + adding) * SURE).max(0.0) * scale + kernel.left_out * SURE;
    let exponent = Interval::point(rest.noise) * (Interval::point(tilt) * (Interval::point(tilt) + 1.0)) * 0.5
        + kernel.log
        - Interval::point(tilt) * x;
    let bound = mul_up(exponent.exp().hi(), sum);
    (!bound.is_nan()).then_some(bound)
}

/// About the tilts that bring the mean to `x`: one as steep as sums along it want it at least, and one for losses of which large ones are rare; part of
/// no bound.
fn saddles(rest: &Rest<'_>, x: f64) -> [f64; 2] {
    let spread = rest.shape(0.0).variance.sqrt();
    let gap = |u: f64| rest.shape(on_grid(exp(u))).mean - x;
    [0.4, 0.005].map(|least| on_grid(exp(root_within(ln(least / spread), ln(60.0 / spread), 0.1, gap))))
}

/// The least `x` from 0 to `most`, nearly, at which a falling bound is at most `delta`, seen to be so; +∞ where none was.
pub(super) fn least(bound: impl Fn(f64) -> f64, delta: f64, most: f64) -> f64 {
    if bound(0.0) <= delta {
        return 0.0;
    }
    let guess = root_within(0.0, most, 1e-8, |x| ln(delta) - ln(bound(x)));
    let mut step = 1e-8 * guess;
    while guess + step < most {
        if bound(guess + step) <= delta {
            return guess + step;
        }
        step *= 8.0;
    }
    if bound(most) <= delta { most } else { f64::INFINITY }
}
