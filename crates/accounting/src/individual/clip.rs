//! Algorithm 8's clipping to what is left.

use super::{FULL, WORTH_A_THREAD};
use crate::params::{OutOfDomain, Rho};
use paygo_numeric::rounding::{div_down, div_up, mul_down, mul_up, sqrt_down};
use rayon::prelude::*;

/// Scales each person's contribution to a norm that their budget still covers, instead of leaving them out.
///
/// # Theorem
/// With `clipᵢ = xᵢ·min(1, min(C, √(B − usedᵢ))/‖xᵢ‖)` and `usedᵢ += ‖clipᵢ‖²`, the sums `Σᵢ clipᵢ`, each released with one draw of
/// Gaussian noise of standard deviation `s`, are together B/(2s²)-zCDP, however many there are. Source: Feldman and Zrnic,
/// Algorithm 8 and Proposition 6.2, with the square root that the text below the algorithm drops, and with one draw for the sum
/// instead of one for each person (T23, E7).
///
/// # Preconditions
/// Those of the module. Squared norms are upper bounds; contributions are scaled by no more than the factor. Whoever has the factor
/// 0 is left out, not multiplied by 0 (which would keep a NaN).
///
/// # Soundness
/// Shares are rounded up and factors down, so the scaled squared norms of a person never pass B. A person whose squared norm is not a
/// number from 0 up is left out and pays nothing.
///
/// # Tightness
/// The last clipping uses a budget up exactly.
///
/// ```
/// use paygo_accounting::individual::{Clipping, FULL};
/// let clipping = Clipping::new(5.0, 2.0)?; // B = 5, C = 2
/// let (mut spent, mut factors) = ([0, FULL], [0.0; 2]);
/// clipping.round(&mut spent, &[16.0, 16.0], &mut factors);
/// assert_eq!(factors, [0.5, 0.0]); // from norm 4 to 2; nothing left
/// assert_eq!(spent, [FULL / 5 * 4, FULL]);
/// # Ok::<(), paygo_accounting::params::OutOfDomain>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clipping {
    norm_budget: f64,
    /// Shares for each unit of squared norm, rounded up.
    shares: f64,
    /// Shares of the squared clip norm, rounded down.
    cap: u32,
}

impl Clipping {
    /// A budget of squared norms for each person, and the largest norm of one contribution.
    ///
    /// # Errors
    /// [`OutOfDomain`] when one of them is not above 0 and finite, or the clip norm is so small that it rounds to nothing.
    pub fn new(norm_budget: f64, clip_norm: f64) -> Result<Self, OutOfDomain> {
        for (parameter, given) in [("norm budget", norm_budget), ("clip_norm", clip_norm)] {
            if !(given > 0.0 && given < f64::INFINITY) {
                return Err(OutOfDomain::new(parameter, given, "above 0 and finite"));
            }
        }
        // ROUNDING: a price up, a limit down.
        let shares = div_up(f64::from(FULL), norm_budget);
        let cap = div_down(mul_down(mul_down(clip_norm, clip_norm), f64::from(FULL)), norm_budget);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a bound saturates")]
        let cap = (cap as u32).min(FULL);
        if cap == 0 || shares == f64::INFINITY {
            let allowed = "at least a 65000th of the square root of the norm budget";
            return Err(OutOfDomain::new("clip_norm", clip_norm, allowed));
        }
        Ok(Self { norm_budget, shares, cap })
    }

    /// For costs that are shares already: a contribution may use all that is left.
    #[must_use]
    pub fn of_shares() -> Self {
        Self { norm_budget: f64::from(FULL), shares: 1.0, cap: FULL }
    }

    /// One round: what each contribution is to be multiplied by, and what has then been spent.
    ///
    /// # Panics
    /// When the columns differ in length.
    pub fn round(&self, spent: &mut [u32], squared_norms: &[f64], factors: &mut [f64]) {
        assert!(spent.len() == squared_norms.len() && spent.len() == factors.len(), "columns of different lengths");
        let piece = |((spent, squared_norms), factors): ((&mut [u32], &[f64]), &mut [f64])| {
            for ((spent, &squared_norm), factor) in spent.iter_mut().zip(squared_norms).zip(factors) {
                let (charge, scale) = self.charge(*spent, squared_norm);
                *spent += charge;
                *factor = scale;
            }
        };
        // Some tens of nanoseconds each: worth a thread sooner than a sum.
        const PIECE: usize = WORTH_A_THREAD / 32;
        if spent.len() <= PIECE {
            return piece(((spent, squared_norms), factors));
        }
        spent
            .par_chunks_mut(PIECE)
            .zip(squared_norms.par_chunks(PIECE))
            .zip(factors.par_chunks_mut(PIECE))
            .for_each(piece);
    }

    /// The charge and the factor of one person.
    fn charge(&self, spent: u32, squared_norm: f64) -> (u32, f64) {
        // NaN is in no range.
        if !(0.0..f64::INFINITY).contains(&squared_norm) {
            return (0, 0.0);
        }
        // ROUNDING: up.
        let cost = mul_up(squared_norm, self.shares);
        let allowed = self.cap.min(FULL.saturating_sub(spent));
        if cost <= f64::from(allowed) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an integer up to FULL")]
            return (cost.ceil() as u32, 1.0);
        }
        // ROUNDING: down; factor²·cost ≤ allowed.
        (allowed, sqrt_down(div_down(f64::from(allowed), cost)))
    }

    /// What everything together is, with Gaussian noise of this standard deviation: B/(2s²)-zCDP.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the standard deviation is not above 0.
    pub fn rho(&self, noise_std: f64) -> Result<Rho, OutOfDomain> {
        if noise_std > 0.0 {
            Ok(Rho::from_upper_bound(div_up(self.norm_budget, mul_down(2.0, mul_down(noise_std, noise_std)))))
        } else {
            Err(OutOfDomain::new("noise_std", noise_std, "above 0"))
        }
    }

    /// A share as a sum of squared norms, rounded up.
    #[must_use]
    pub fn used(&self, share: u32) -> f64 {
        div_up(mul_up(f64::from(share), self.norm_budget), f64::from(FULL))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paygo_testkit::big;
    use proptest::prelude::*;

    proptest! {
        /// In real arithmetic, the scaled squared norms never pass the budget, and no norm passes the clip norm.
        #[test]
        fn nobody_passes_their_budget(
            budget in 0.01f64..1e4,
            clip_norm in 0.01f64..50.0,
            norms in prop::collection::vec(prop_oneof![0.0f64..100.0, Just(0.0), Just(1e-200), Just(1e150)], 1..60),
        ) {
            let clipping = Clipping::new(budget, clip_norm).expect("a clipping");
            let (mut spent, mut factor) = ([0], [0.0]);
            let (mut total, mut charged) = (big::from_f64(0.0), 0);
            for norm in norms {
                let square = norm * norm;
                clipping.round(&mut spent, &[square], &mut factor);
                let scaled = big::from_f64(factor[0]) * big::from_f64(factor[0]) * big::from_f64(square);
                prop_assert!(scaled <= big::from_f64(clip_norm) * big::from_f64(clip_norm));
                // The charge is never below what the scaled contribution costs.
                let charge = spent[0] - charged;
                charged = spent[0];
                prop_assert!(&scaled * big::from_f64(f64::from(FULL)) <= big::from_f64(f64::from(charge)) * big::from_f64(budget));
                total += scaled;
                prop_assert!(spent[0] <= FULL && factor[0] <= 1.0);
            }
            prop_assert!(total <= big::from_f64(budget));
        }
    }

    #[test]
    fn the_text_without_the_square_root_overspends_and_this_does_not() {
        // E7: 50 left, C = 10. "min(C, B − used)" would clip to 10 and spend 100.
        let clipping = Clipping::new(100.0, 10.0).expect("a clipping");
        let (mut spent, mut factor) = ([FULL / 2], [0.0]);
        clipping.round(&mut spent, &[400.0], &mut factor);
        assert_eq!(spent, [FULL]);
        assert!((20.0 * factor[0]).powi(2) <= 50.0 && (20.0 * factor[0]).powi(2) > 50.0 - 1e-9);
        clipping.round(&mut spent, &[1e-300], &mut factor);
        assert_eq!((spent, factor), ([FULL], [0.0]));
    }

    #[test]
    fn what_is_no_norm_is_left_out() {
        let clipping = Clipping::new(100.0, 10.0).expect("a clipping");
        for odd in [f64::NAN, f64::INFINITY, -1.0] {
            let (mut spent, mut factor) = ([7], [1.0]);
            clipping.round(&mut spent, &[odd], &mut factor);
            assert_eq!((spent, factor), ([7], [0.0]), "{odd}");
        }
        let (mut spent, mut factor) = ([FULL], [0.5]);
        clipping.round(&mut spent, &[0.0], &mut factor);
        assert_eq!((spent, factor), ([FULL], [1.0])); // A zero gradient stays zero, at no cost.
        for (budget, clip_norm) in [(0.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0), (1.0, f64::INFINITY), (1e12, 1.0)] {
            assert!(Clipping::new(budget, clip_norm).is_err(), "{budget} {clip_norm}");
        }
    }
}
