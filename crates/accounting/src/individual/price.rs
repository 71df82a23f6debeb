//! What a person's contribution costs, as a share of their budget.

use super::{FULL, NEVER};
use crate::filter::{FixedOrder, Gdp, Zcdp};
use crate::params::OutOfDomain;
use paygo_numeric::Amount;

/// One person's budget, in one currency: a limit on `factor·Σ‖contribution‖²/variance`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersonalBudget {
    limit: Amount,
    /// What a squared norm equal to the variance costs: 1/2 of ρ, 1 of μ², α/2 of the divergence at order α.
    factor: Fraction,
}

impl PersonalBudget {
    /// ρ: any noise with `ρ = ‖x‖²/(2σ²)`, continuous or discrete (T19, T52).
    #[must_use]
    pub const fn zcdp(rule: &Zcdp) -> Self {
        Self { limit: rule.limit(), factor: Fraction { over: 1, under: 2 } }
    }

    /// μ²: continuous Gaussian noise only (T49).
    #[must_use]
    pub const fn gdp(rule: &Gdp) -> Self {
        Self { limit: rule.limit(), factor: Fraction { over: 1, under: 1 } }
    }

    /// The divergence at one order, fixed in advance: `α‖x‖²/(2σ²)` (T19, \[FZ\] Example 2.7).
    ///
    /// # Errors
    /// [`OutOfDomain`] when the order is infinite or above 2⁶⁰.
    pub fn fixed_order(rule: &FixedOrder) -> Result<Self, OutOfDomain> {
        let order = rule.order().get();
        if order > 2f64.powi(60) {
            return Err(OutOfDomain::new("order", order, "at most 2^60: Gaussian noise has no bound at order inf"));
        }
        // Exact: a double of at least 1 is a multiple of 2⁻⁵².
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an integer below 2^113")]
        let over = (order * 2f64.powi(52)) as u128;
        Ok(Self { limit: rule.limit(), factor: Fraction { over: 1, under: 2 }.times_up(over, 1 << 52) })
    }

    /// The limit.
    #[must_use]
    pub const fn limit(&self) -> Amount {
        self.limit
    }

    /// A share of this budget as an amount, rounded up.
    #[must_use]
    pub fn spent(&self, share: u32) -> Amount {
        self.limit.times(u64::from(share)).shared_by_up(u64::from(FULL))
    }
}

/// The price of a squared norm against Gaussian noise of one variance, as a share of a budget.
///
/// # Theorem
/// A person who adds `x` to a sum that is released with Gaussian noise of variance σ² has individual ρ = ‖x‖²/(2σ²), μ² =
/// ‖x‖²/σ² and, at order α, α‖x‖²/(2σ²), whoever else is in the data. Source: Feldman and Zrnic, Example 2.7 (T19). For integer
/// sums with discrete Gaussian noise the same ρ and divergences (T52), but not the same μ.
///
/// # Soundness
/// Never below the real share, and above it by less than one whole share; exact where the real share is whole and its terms fit in
/// 128 bits, as those of budgets and variances that people choose do.
///
/// ```
/// use paygo_accounting::filter::Zcdp;
/// use paygo_accounting::individual::{FULL, NEVER, PersonalBudget, SharePrice};
/// use paygo_numeric::Amount;
/// let half = Amount::from_decimal_down("0.5").ok_or("a decimal")?;
/// let budget = PersonalBudget::zcdp(&Zcdp::with_limit(half, Amount::ZERO)?);
/// let price = SharePrice::new(&budget, 10, 1)?; // variance 10
/// assert_eq!(price.share(1), FULL / 10); // 1/(2·10) of 0.5
/// assert_eq!(price.share(0), 0);
/// assert_eq!(price.share(11), NEVER);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharePrice {
    /// Shares for each unit of squared norm, rounded up where it does not fit in 128 bits.
    shares: Fraction,
    /// The same in units of 2⁻⁶⁴, rounded up.
    multiplier: u128,
}

/// Shares with 64 binary places: the costs of several contributions of one person are added before they are rounded up once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fine(u128);

impl Fine {
    /// The sum; too much stays too much.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Shares, rounded up; infinite where they were too many to count.
    #[must_use]
    pub fn to_f64_up(self) -> f64 {
        if self.0 == u128::MAX {
            return f64::INFINITY; // Saturated: the truth may be anything above.
        }
        // ROUNDING: up. A cast to f64 rounds to nearest, and the next number is above it; up to 2⁵³ whole shares are exact.
        #[expect(clippy::cast_precision_loss, reason = "the direction is repaired")]
        let shares = self.0 as f64 / 2f64.powi(64);
        let exact = self.0 & u128::from(u64::MAX) == 0 && self.0 >> 64 <= 1 << 53;
        if exact { shares } else { shares.next_up() }
    }

    /// Whole shares, rounded up, also beyond a budget.
    #[must_use]
    pub fn shares(self) -> u64 {
        // ROUNDING: up.
        let whole = (self.0 >> 64) + u128::from(self.0 & u128::from(u64::MAX) != 0);
        u64::try_from(whole).unwrap_or(u64::MAX)
    }

    /// Whole shares, rounded up; [`NEVER`] when it is more than a budget.
    #[must_use]
    pub fn share(self) -> u32 {
        u32::try_from(self.shares()).ok().filter(|&share| share <= FULL).unwrap_or(NEVER)
    }
}

impl SharePrice {
    /// Against noise of variance `numerator/denominator`, in the units of the contributions.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the variance is not above 0, or the budget is 0.
    pub fn new(budget: &PersonalBudget, numerator: u64, denominator: u64) -> Result<Self, OutOfDomain> {
        if numerator == 0 || denominator == 0 {
            return Err(OutOfDomain::new("variance", format!("{numerator}/{denominator}"), "above 0"));
        }
        if budget.limit == Amount::ZERO {
            return Err(OutOfDomain::new("budget", budget.limit, "above 0"));
        }
        let shares = budget
            .factor
            .times_up(u128::from(FULL), 1)
            .times_up(u128::from(denominator), u128::from(numerator))
            .times_up(Amount::ONE.units(), budget.limit.units());
        Ok(Self { shares, multiplier: shares.scaled_up() })
    }

    /// The share of a squared norm, before it is rounded to whole shares.
    #[must_use]
    pub fn fine(&self, squared_norm: u128) -> Fine {
        let Some(product) = squared_norm.checked_mul(self.multiplier) else { return Fine(u128::MAX) };
        let (whole, rest) = (product >> 64, product & u128::from(u64::MAX));
        // The multiplier is less than a unit above the truth, so the product is less than `squared_norm` units above it.
        // A product just above a whole share may be that share exactly, and then it must not be rounded up.
        if 0 < rest && rest <= squared_norm && self.shares.of_is_at_most(squared_norm, whole) {
            return Fine(whole << 64);
        }
        Fine(product)
    }

    /// The share of a squared norm, rounded up; [`NEVER`] when it is more than the budget.
    #[must_use]
    pub fn share(&self, squared_norm: u128) -> u32 {
        self.fine(squared_norm).share()
    }
}

/// A fraction that is exact while it fits into 128 bits, and rounded up beyond; infinite when `under` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fraction {
    over: u128,
    under: u128,
}

impl Fraction {
    /// The product with `over/under`.
    fn times_up(self, over: u128, under: u128) -> Self {
        // Crosswise in lowest terms first, so that products overflow as late as they can.
        let (a, d) = lowest(self.over, under);
        let (b, c) = lowest(over, self.under);
        let (mut a, mut b, mut c, mut d) = (a, b, c, d);
        // ROUNDING: up. Halving both sides of a fraction that does not fit: the upper side up, the lower side down.
        while a.checked_mul(b).is_none() {
            (a, b) = if a > b { (a / 2 + 1, b) } else { (a, b / 2 + 1) };
            (c, d) = if c > d { (c / 2, d) } else { (c, d / 2) };
        }
        while c.checked_mul(d).is_none() {
            (c, d) = if c > d { (c / 2, d) } else { (c, d / 2) };
            (a, b) = if a > b { (a / 2 + 1, b) } else { (a, b / 2 + 1) };
        }
        Self { over: a * b, under: c * d } // infinite where the lower side has come to nothing, and then stays so
    }

    /// `⌈2⁶⁴·over/under⌉`, or the largest number there is.
    fn scaled_up(self) -> u128 {
        let (Some(whole), Some(mut rest)) = (self.over.checked_div(self.under), self.over.checked_rem(self.under))
        else {
            return u128::MAX;
        };
        if whole >= 1 << 63 {
            return u128::MAX; // Any contribution is too much.
        }
        let mut scaled = whole;
        for _ in 0..64 {
            // `rest < under`; doubling it may pass 2¹²⁸, and is then surely at least `under`.
            let carry = rest >> 127 == 1;
            rest <<= 1;
            let more = carry || rest >= self.under;
            rest = if more { rest.wrapping_sub(self.under) } else { rest };
            scaled = scaled * 2 + u128::from(more);
        }
        scaled + u128::from(rest != 0)
    }

    /// Whether `n·over/under ≤ bound`, exactly.
    fn of_is_at_most(self, n: u128, bound: u128) -> bool {
        wide_product(n, self.over) <= wide_product(bound, self.under)
    }
}

fn lowest(a: u128, b: u128) -> (u128, u128) {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1), b / x.max(1))
}

/// The product of two numbers of 128 bits: high half, low half.
fn wide_product(a: u128, b: u128) -> (u128, u128) {
    const LOW: u128 = u64::MAX as u128;
    let (a1, a0, b1, b0) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let (low, middle, cross, high) = (a0 * b0, a1 * b0, a0 * b1, a1 * b1);
    let (sum, carry) = middle.overflowing_add(cross);
    let (low, low_carry) = low.overflowing_add(sum << 64);
    (high + (sum >> 64) + (u128::from(carry) << 64) + u128::from(low_carry), low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Budget;
    use crate::params::Order;
    use paygo_testkit::big;
    use proptest::prelude::*;

    fn exact(n: u128) -> big::Big {
        let word = |n: u128| big::from_u64(u64::try_from(n).expect("64 bits"));
        word(n >> 64) * big::from_f64(2f64.powi(64)) + word(n & u128::from(u64::MAX))
    }

    fn zcdp(limit: &str) -> PersonalBudget {
        let limit = Amount::from_decimal_down(limit).expect("a decimal");
        PersonalBudget::zcdp(&Zcdp::with_limit(limit, Amount::ZERO).expect("a rule"))
    }

    proptest! {
        /// Never below the real share, and less than one whole share above it; exactly it where it is whole.
        #[test]
        fn shares_are_rounded_up_by_less_than_one(
            units in 1u64..,
            numerator in 1u64..1 << 40,
            denominator in 1u64..1 << 20,
            norm in 0u64..1 << 40,
        ) {
            let limit = Amount::from_ratio_up(u128::from(units), 1_000_000_000_000_000_000);
            let budget = PersonalBudget::zcdp(&Zcdp::with_limit(limit, Amount::ZERO).expect("a rule"));
            let price = SharePrice::new(&budget, numerator, denominator).expect("a price");
            let square = u128::from(norm).pow(2);
            let share = price.share(square);
            // real share = FULL·norm²·denominator·10¹⁸ / (2·numerator·units), cross-multiplied
            let real = exact(u128::from(FULL)) * exact(square) * exact(u128::from(denominator)) * exact(Amount::ONE.units());
            let under = exact(2 * u128::from(numerator)) * exact(u128::from(units));
            if share == NEVER {
                prop_assert!(real > exact(u128::from(FULL)) * &under);
            } else {
                prop_assert!(exact(u128::from(share)) * &under >= real);
                prop_assert!(share == 0 || exact(u128::from(share - 1)) * &under < real);
            }
            prop_assert_eq!(share == 0, norm == 0);
            // As a double it is never below the truth either, also beyond a budget.
            let double = price.fine(square).to_f64_up();
            prop_assert!(double == f64::INFINITY || big::from_f64(double) * &under >= real);
        }

        /// Whole fractions of a budget fit exactly as often as they should.
        #[test]
        fn simple_fractions_are_exact(parts in 1u32..19, scale in 1u64..1000) {
            // Variance scale²·parts/(2·limit) with limit 0.5: a norm of `scale` costs one part.
            let price = SharePrice::new(&zcdp("0.5"), scale * scale * u64::from(parts), 1).expect("a price");
            prop_assert_eq!(price.share(u128::from(scale).pow(2)), FULL / parts);
        }

        #[test]
        fn wide_products_are_exact(a in any::<u128>(), b in any::<u128>()) {
            let (high, low) = wide_product(a, b);
            prop_assert_eq!(exact(high) * exact(u128::MAX) + exact(high) + exact(low), exact(a) * exact(b));
        }
    }

    #[test]
    fn currencies_agree_with_their_definitions() {
        let limit = Amount::from_decimal_down("2").expect("a decimal");
        let order = Order::new(8.0).expect("an order");
        let budgets = [
            (PersonalBudget::zcdp(&Zcdp::with_limit(limit, Amount::ZERO).expect("a rule")), 0.5),
            (PersonalBudget::gdp(&Gdp::with_limit(limit).expect("a rule")), 1.0),
            (
                PersonalBudget::fixed_order(&FixedOrder::with_limit(order, limit, Amount::ZERO).expect("r"))
                    .expect("b"),
                4.0,
            ),
        ];
        for (budget, factor) in budgets {
            let price = SharePrice::new(&budget, 100, 1).expect("a price");
            // 9/100 of the variance
            let expected = f64::from(FULL) * factor * 0.09 / 2.0;
            assert!((f64::from(price.share(9)) - expected).abs() <= 1.0, "{factor}");
            assert_eq!(budget.spent(FULL), limit);
            assert_eq!(budget.spent(0), Amount::ZERO);
            assert!(budget.spent(1) > Amount::ZERO);
        }
    }

    #[test]
    fn costs_of_several_contributions_are_rounded_once() {
        let budget = zcdp("1");
        let price = SharePrice::new(&budget, 1 << 39, 1).expect("a price"); // a norm of 1 costs far less than one share
        let total = (0..1000).fold(Fine::default(), |sum, _| sum.plus(price.fine(1)));
        assert_eq!(total.share(), price.share(1000));
        assert_eq!(price.share(1), 1);
        assert_eq!(Fine(u128::MAX).plus(Fine(1)).share(), NEVER);
        assert_eq!(Fine(u128::MAX).plus(Fine(1)).to_f64_up(), f64::INFINITY);
        assert_eq!(SharePrice::new(&zcdp("0.01"), 1, 1).expect("a price").fine(1 << 100).to_f64_up(), f64::INFINITY);
    }

    #[test]
    fn what_is_no_price() {
        let tiny = SharePrice::new(&zcdp("0.000000000000000001"), 1, 1 << 40).expect("a price");
        assert_eq!((tiny.share(0), tiny.share(1)), (0, NEVER));
        assert!(SharePrice::new(&zcdp("1"), 0, 1).is_err() && SharePrice::new(&zcdp("1"), 1, 0).is_err());
        assert!(SharePrice::new(&zcdp("0"), 1, 1).is_err());
        // Terms that do not fit: the price is too high, never too low.
        let order = Order::new(2f64.powi(60)).expect("an order");
        let limit = Amount::from_f64_down(8.5e19).expect("an amount");
        let rule = FixedOrder::with_limit(order, limit, Amount::ZERO).expect("a rule");
        let price =
            SharePrice::new(&PersonalBudget::fixed_order(&rule).expect("a budget"), 1, u64::MAX).expect("a price");
        assert_eq!((price.share(0), price.share(1)), (0, NEVER));
        let infinite = Order::new(f64::INFINITY).expect("an order");
        let rule = FixedOrder::with_limit(infinite, Amount::ONE, Amount::ZERO).expect("a rule");
        assert!(PersonalBudget::fixed_order(&rule).is_err());
        // The budget of (ε, δ) itself, as users give it.
        let budget = PersonalBudget::zcdp(&Zcdp::new(Budget::from_decimal("3", "1e-6").expect("b")).expect("r"));
        let price = SharePrice::new(&budget, 500 * 500, 1).expect("a price");
        assert!(price.share(100 * 100) < FULL / 5 && price.share(u128::MAX) == NEVER);
    }
}
