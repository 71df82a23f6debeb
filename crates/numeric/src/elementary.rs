//! `exp`, `ln`, `exp_m1`, `ln_1p`: nearest, up and down.
//!
//! The nearest forms come from the `libm` crate: pure Rust, the same bits on every machine. Their stated error is
//! [`UNITS`]` − 1` units in the last place (the tests below measure it against big floats); the directed forms move
//! [`UNITS`] units outward, which therefore encloses the real value.

use crate::rounding::{nudge_down, nudge_up};

/// Units in the last place by which directed forms move outward; the nearest forms are off by at most one less.
pub const UNITS: u32 = 2;

macro_rules! directed {
    ($nearest:ident, $up:ident, $down:ident, $what:literal, $exact_at:expr, $least:expr) => {
        #[doc = concat!($what, ", within one unit in the last place.")]
        #[must_use]
        pub fn $nearest(x: f64) -> f64 {
            directed_impl::$nearest(x)
        }
        #[doc = concat!("An upper bound on ", $what, ".")]
        #[must_use]
        pub fn $up(x: f64) -> f64 {
            let value = $nearest(x);
            // ROUNDING: up, past the stated error; exact and infinite values stay.
            if x == $exact_at || value == f64::NEG_INFINITY { value } else { nudge_up(value, UNITS) }
        }
        #[doc = concat!("A lower bound on ", $what, ".")]
        #[must_use]
        pub fn $down(x: f64) -> f64 {
            let value = $nearest(x);
            // ROUNDING: down, past the stated error but not past the function's least value.
            if x == $exact_at || x == f64::INFINITY { value } else { nudge_down(value, UNITS).max($least) }
        }
    };
}

mod directed_impl {
    pub(super) use libm::{exp, expm1 as exp_m1, log as ln, log1p as ln_1p};
}

directed!(exp, exp_up, exp_down, "`e^x`", 0.0, 0.0);
directed!(exp_m1, exp_m1_up, exp_m1_down, "`e^x − 1`", 0.0, -1.0);
directed!(ln, ln_up, ln_down, "`ln x`", 1.0, f64::NEG_INFINITY);
directed!(ln_1p, ln_1p_up, ln_1p_down, "`ln(1 + x)`", 0.0, f64::NEG_INFINITY);

/// The power of two at or below `2^x`; for choosing steps whose multiples are exact.
#[must_use]
pub fn power_of_two(x: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, reason = "exponents beyond the doubles saturate")]
    2f64.powi(x.floor() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paygo_testkit::big;
    use proptest::prelude::*;

    /// The stated error holds, and therefore the directed forms enclose.
    #[track_caller]
    fn check(near: f64, down: f64, up: f64, exact: &big::Big) {
        assert!(big::from_f64(down) <= *exact && *exact <= big::from_f64(up), "{down:e} {near:e} {up:e}");
        let (low, high) = (nudge_down(near, UNITS - 1), nudge_up(near, UNITS - 1));
        assert!(big::from_f64(low) <= *exact && *exact <= big::from_f64(high), "stated error broken at {near:e}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn stated_error_holds(x in -700.0f64..700.0, small in -1.0f64..1.0, scale in -300i32..0) {
            let tiny = small * 10f64.powi(scale);
            for v in [x, small, tiny] {
                check(exp(v), exp_down(v), exp_up(v), &big::exp(&big::from_f64(v)));
                check(exp_m1(v), exp_m1_down(v), exp_m1_up(v), &big::exp_m1(&big::from_f64(v)));
                if v > -1.0 && v != 0.0 {
                    check(ln_1p(v), ln_1p_down(v), ln_1p_up(v), &big::ln_1p(&big::from_f64(v)));
                }
                let positive = if v.abs() < 1e-290 { 1.0 + v.abs() } else { v.abs() };
                check(ln(positive), ln_down(positive), ln_up(positive), &big::ln(&big::from_f64(positive)));
            }
        }
    }

    #[test]
    fn edges() {
        assert_eq!(exp_up(-1000.0), nudge_up(0.0, UNITS), "an underflow is not zero");
        assert_eq!(exp_down(-1000.0), 0.0);
        assert_eq!(exp_up(1000.0), f64::INFINITY);
        assert!(exp_down(1000.0) <= f64::MAX);
        assert_eq!(ln_up(0.0), f64::NEG_INFINITY);
        assert_eq!(ln_down(0.0), f64::NEG_INFINITY);
        assert_eq!(exp_up(0.0), 1.0);
        assert_eq!(ln_down(1.0), 0.0);
        assert_eq!(exp_m1_down(-1000.0), -1.0);
        assert_eq!(ln_down(f64::INFINITY), f64::INFINITY);
        assert!(exp_up(f64::NAN).is_nan());
    }
}
