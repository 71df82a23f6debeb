//! Real contributions on a public grid, so that sums are integers.

use paygo_accounting::params::OutOfDomain;

/// A grid of multiples of a power of two.
///
/// Each person's contribution is clamped and put on the grid *before* it is added, so the sum is an exact integer and its
/// sensitivity is the largest contribution, with nothing lost to rounding sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    exponent: i32,
}

impl Grid {
    /// Multiples of `2^exponent`.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the exponent is not between −40 and 40.
    pub fn of_power(exponent: i32) -> Result<Self, OutOfDomain> {
        if (-40..=40).contains(&exponent) {
            Ok(Self { exponent })
        } else {
            Err(OutOfDomain {
                parameter: "grid exponent",
                given: exponent.to_string(),
                allowed: "-40 <= exponent <= 40",
            })
        }
    }

    /// The distance between neighbors on the grid.
    #[must_use]
    pub fn step(self) -> f64 {
        2f64.powi(self.exponent)
    }

    /// The largest contribution of one person, in steps: the sensitivity of a sum under add/remove.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the bound is not above 0 or has 2⁴⁰ steps or more.
    pub fn bound(self, bound: f64) -> Result<u64, OutOfDomain> {
        let steps = (bound / self.step()).ceil();
        if bound > 0.0 && steps <= 2f64.powi(40) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an integer up to 2^40")]
            return Ok(steps as u64);
        }
        Err(OutOfDomain { parameter: "bound", given: bound.to_string(), allowed: "above 0 and at most 2^40 steps" })
    }

    /// A contribution in steps, clamped to ± the bound. NaN contributes nothing.
    #[must_use]
    pub fn contribution(self, x: f64, bound: u64) -> i64 {
        let bound = i64::try_from(bound).unwrap_or(i64::MAX);
        // A cast saturates, and turns NaN into 0. Dividing by a power of two is exact.
        #[expect(clippy::cast_possible_truncation, reason = "saturation is what is wanted")]
        let steps = (x / self.step()).round() as i64;
        steps.clamp(-bound, bound)
    }

    /// A number of steps as a number.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "post-processing of a released integer")]
    pub fn value(self, steps: i64) -> f64 {
        steps as f64 * self.step()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contributions_stay_within_the_bound() {
        let grid = Grid::of_power(-4).expect("a grid");
        let bound = grid.bound(10.0).expect("a bound");
        assert_eq!(bound, 160);
        for (x, steps) in [(1.0, 16), (-1.0, -16), (1e9, 160), (-1e300, -160), (f64::NAN, 0), (0.03, 0), (0.04, 1)] {
            assert_eq!(grid.contribution(x, bound), steps, "{x}");
        }
        assert_eq!(grid.contribution(f64::INFINITY, bound), 160);
        assert_eq!(grid.value(grid.contribution(2.5, bound)), 2.5);
        assert!(grid.bound(0.0).is_err() && grid.bound(f64::NAN).is_err() && grid.bound(1e30).is_err());
        assert!(Grid::of_power(41).is_err());
    }
}
