//! Real functions to 60 and more digits, on the `dashu` big floats.
//!
//! Every function here works with [`BITS`] bits, so its result is off by far less than any error that a test of
//! double-precision code looks for; comparisons against it are comparisons against the truth.

use dashu::float::FBig;
use dashu::float::round::mode::HalfEven;
use dashu::integer::IBig;

/// A big binary float.
pub type Big = FBig<HalfEven, 2>;

/// Working precision in bits.
pub const BITS: usize = 320;

/// The double as an exact big float.
///
/// # Panics
/// When `x` is NaN.
#[must_use]
pub fn from_f64(x: f64) -> Big {
    Big::try_from(x).expect("a number").with_precision(BITS).value()
}

/// An integer as a big float.
#[must_use]
pub fn from_u64(n: u64) -> Big {
    Big::from(IBig::from(n)).with_precision(BITS).value()
}

/// `e^x`.
#[must_use]
pub fn exp(x: &Big) -> Big {
    x.exp()
}

/// `e^x − 1`.
#[must_use]
pub fn exp_m1(x: &Big) -> Big {
    x.exp_m1()
}

/// `ln x`.
#[must_use]
pub fn ln(x: &Big) -> Big {
    x.ln()
}

/// `ln(1 + x)`.
#[must_use]
pub fn ln_1p(x: &Big) -> Big {
    x.ln_1p()
}

/// `√x`.
#[must_use]
pub fn sqrt(x: &Big) -> Big {
    x.sqrt()
}

/// `C(n, k)`.
#[must_use]
pub fn binomial(n: u64, k: u64) -> Big {
    (0..k.min(n - k)).fold(from_u64(1), |product, i| product * from_u64(n - i) / from_u64(i + 1))
}

/// `π`, by Machin's formula.
#[must_use]
pub fn pi() -> Big {
    let arctan_of_inverse = |n: u64| {
        let square = from_u64(n * n);
        let mut power = from_u64(1) / from_u64(n);
        let mut sum = from_u64(0);
        for k in 0..400u64 {
            let term = &power / from_u64(2 * k + 1);
            sum = if k % 2 == 0 { sum + term } else { sum - term };
            power /= &square;
        }
        sum
    };
    from_u64(16) * arctan_of_inverse(5) - from_u64(4) * arctan_of_inverse(239)
}

/// `erfc(x)` for `|x| ≤ 40`.
///
/// Below 6 by the series of `erf` whose terms are all positive, `2x/√π·e^{−x²}·Σ (2x²)^k/(1·3·…·(2k+1))`, which
/// leaves at least 200 of the 320 bits after the subtraction; above by Laplace's continued fraction.
#[must_use]
pub fn erfc(x: f64) -> Big {
    if x < 0.0 {
        return from_u64(2) - erfc(-x);
    }
    let v = from_f64(x);
    let square = &v * &v;
    let gauss = exp(&(from_u64(0) - &square));
    let root_pi = sqrt(&pi());
    if x < 6.0 {
        let mut term = from_u64(1);
        let mut sum = from_u64(1);
        for k in 1..600u64 {
            term = term * from_u64(2) * &square / from_u64(2 * k + 1);
            sum += &term;
        }
        from_u64(1) - from_u64(2) * v * gauss * sum / root_pi
    } else {
        // erfc(x) = e^{−x²}/√π · 1/(x + (1/2)/(x + (2/2)/(x + (3/2)/(x + …))))
        let half = from_f64(0.5);
        let mut fraction = v.clone();
        for k in (1..2000u64).rev() {
            fraction = &v + from_u64(k) * &half / fraction;
        }
        gauss / (root_pi * fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_ways_to_erfc_agree_where_they_meet() {
        // The same continued fraction, evaluated below its own threshold.
        let x = 5.5;
        let v = from_f64(x);
        let mut fraction = v.clone();
        for k in (1..4000u64).rev() {
            fraction = &v + from_u64(k) * from_f64(0.5) / fraction;
        }
        let by_fraction = exp(&(from_u64(0) - &v * &v)) / (sqrt(&pi()) * fraction);
        let ratio = erfc(x) / by_fraction - from_u64(1);
        assert!(ratio < from_f64(1e-40) && ratio > from_f64(-1e-40), "{ratio}");
        let known = from_u64(31_415_926_535_897_932) / from_u64(10_000_000_000_000_000);
        assert!(pi() > known && pi() < known + from_f64(1e-16));
    }
}
