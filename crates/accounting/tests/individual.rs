//! Sequences of rounds for one person, against exact arithmetic: no order of questions, no mixture of costs passes a budget.

use paygo_accounting::filter::{FixedOrder, Gdp, Zcdp};
use paygo_accounting::individual::{FULL, PersonalBudget, SharePrice, admit_round};
use paygo_accounting::params::Order;
use paygo_numeric::Amount;
use paygo_testkit::big;
use proptest::prelude::*;

/// One round: a squared norm against noise of a variance.
#[derive(Clone, Debug)]
struct Round {
    squared_norm: u64,
    variance: (u64, u64),
}

fn round() -> impl Strategy<Value = Round> {
    let variance = (1u64..1 << 36, 1u64..1 << 12);
    // From hardly anything to more than any budget.
    let squared_norm = prop_oneof![0u64..100, 0u64..1 << 20, 0u64..1 << 36, 0u64..1 << 50];
    (squared_norm, variance).prop_map(|(squared_norm, variance)| Round { squared_norm, variance })
}

/// A budget, and what a squared norm equal to the variance costs in its currency.
fn budget() -> impl Strategy<Value = (PersonalBudget, u64, f64)> {
    (1u64..10_000_000_000_000_000_000, 0u8..3, 2u32..200).prop_map(|(units, currency, order)| {
        let limit = Amount::from_ratio_up(u128::from(units), Amount::ONE.units());
        match currency {
            0 => (PersonalBudget::zcdp(&Zcdp::with_limit(limit, Amount::ZERO).expect("a rule")), units, 0.5),
            1 => (PersonalBudget::gdp(&Gdp::with_limit(limit).expect("a rule")), units, 1.0),
            _ => {
                let order = f64::from(order) / 4.0 + 1.0;
                let rule =
                    FixedOrder::with_limit(Order::new(order).expect("an order"), limit, Amount::ZERO).expect("r");
                (PersonalBudget::fixed_order(&rule).expect("a budget"), units, order / 2.0)
            }
        }
    })
}

proptest! {
    #[test]
    fn the_sum_is_never_below_the_real_one_and_never_more_than_a_unit_for_each_charge_above(
        (budget, units, factor) in budget(),
        rounds in prop::collection::vec(round(), 1..60),
    ) {
        let full = big::from_u64(u64::from(FULL));
        let (mut spent, mut real, mut charges) = ([0], big::from_u64(0), 0);
        for Round { squared_norm, variance: (numerator, denominator) } in rounds {
            let price = SharePrice::new(&budget, numerator, denominator).expect("a price");
            let before = spent;
            let mut active = [0];
            admit_round(&mut spent, &[price.share(u128::from(squared_norm))], &mut active);
            // The real share, to ninety digits: FULL·factor·norm²·denominator·10¹⁸/(numerator·units).
            let over = &full * big::from_f64(factor) * big::from_u64(squared_norm) * big::from_u64(denominator)
                * big::from_f64(1e18);
            let share = over / (big::from_u64(numerator) * big::from_u64(units));
            if active == [1] {
                real += share;
                charges += u64::from(squared_norm > 0);
            } else {
                prop_assert_eq!(spent, before, "who is left out pays nothing");
                // Left out for a reason: with at most a unit for each charge, it does not fit.
                prop_assert!(&real + &share + big::from_u64(charges + 1) > full);
            }
            let sum = big::from_u64(u64::from(spent[0]));
            let doubt = big::from_f64(1e-20) * (big::from_u64(1) + &real);
            prop_assert!(&sum + &doubt >= real, "{sum} is below {real}");
            prop_assert!(sum <= &real + big::from_u64(charges) + &doubt, "{sum} is too far above {real}");
            prop_assert!(spent[0] <= FULL && real <= &full + &doubt);
        }
    }
}
