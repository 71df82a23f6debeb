//! One charge, one draw.

use paygo_accounting::filter::{Decision, Filter, Pure, Zcdp};
use paygo_accounting::params::Neighbors;
use paygo_noise::{DiscreteGaussian, DiscreteLaplace, NotCovered, Ratio, Release, Source};
use paygo_numeric::Amount;

fn gaussian(variance: u64) -> Release {
    let noise = DiscreteGaussian { variance: Ratio::new(variance, 1).expect("a ratio") };
    Release::gaussian(noise, 1).expect("a release")
}

#[test]
fn a_permit_draws_what_it_was_given_for_and_nothing_else() {
    let mut source = Source::insecure_from_seed(1);
    let mut filter = Filter::new(Zcdp::with_limit(Amount::ONE, Amount::ZERO).expect("a rule"), Neighbors::AddRemove);
    let release = gaussian(100);
    let cost = release.cost(Neighbors::AddRemove).expect("a cost");
    // ρ = 1/(2·100), exactly.
    assert_eq!(cost.total_rho().expect("a rho").amount.to_string(), "0.005");
    let Decision::Admitted(permit) = filter.request(&cost).expect("a price") else { panic!("refused") };
    let noisy = release.draw(permit, &mut source, &[1000, -1000]).expect("covered");
    assert!((noisy[0] - 1000).abs() < 100 && (noisy[1] + 1000).abs() < 100);
    // Less noise than was paid for.
    let Decision::Admitted(permit) = filter.request(&cost).expect("a price") else { panic!("refused") };
    assert_eq!(gaussian(99).draw(permit, &mut source, &[0]), Err(NotCovered));
    // More of it is another mechanism too.
    let Decision::Admitted(permit) = filter.request(&cost.repeat(2).expect("two")).expect("a price") else {
        panic!("refused")
    };
    assert_eq!(release.draw(permit, &mut source, &[0]), Err(NotCovered));
    assert_eq!(filter.sums().lanes()[0].to_string(), "0.02");
}

#[test]
fn a_hundred_draws_are_a_hundred_charges() {
    let mut source = Source::insecure_from_seed(2);
    let limit = Amount::from_decimal_down("1").expect("a decimal");
    let budget = paygo_accounting::filter::Budget::from_decimal("1", "0").expect("a budget");
    let mut filter = Filter::new(Pure::new(budget).expect("a rule"), Neighbors::AddRemove);
    let release =
        Release::laplace(DiscreteLaplace { scale: Ratio::new(100, 1).expect("a ratio") }, 1).expect("a release");
    let charge = filter.price(&release.cost(Neighbors::AddRemove).expect("a cost")).expect("a price");
    let mut drawn = 0;
    while let Decision::Admitted(permit) = filter.admit(&charge) {
        drawn += release.draw(permit, &mut source, &[0]).expect("covered").len();
    }
    assert_eq!((drawn, filter.sums().lanes()[0]), (100, limit));
    assert_eq!(
        release.cost(Neighbors::AddRemove).expect("a cost").total_epsilon().expect("ε").amount.to_string(),
        "0.01"
    );
}
