//! The printed forms of `docs/theory/10-errata.md` that no other test convicts, each by its counterexample.

use paygo_accounting::cost::Cost;
use paygo_accounting::curve::Orders;
use paygo_accounting::filter::{Approximate, Budget, Decision, Filter, Pure, Rule};
use paygo_accounting::mechanism::{self, Exponential, Family as _, Mechanism};
use paygo_accounting::odometer::Doubling;
use paygo_accounting::params::{Delta, Epsilon, Neighbors};
use paygo_audit::Verdict;
use paygo_audit::filters::TwoPoint;
use paygo_audit::literal_unsound::LiteralOdometer;
use paygo_audit::suite::{self, Options};
use paygo_numeric::Amount;
use paygo_numeric::elementary::{exp, ln};
use paygo_numeric::normal::erfc;

/// `∫ f` over `[-reach, reach]` by the trapezoidal rule.
fn integral(reach: f64, f: impl Fn(f64) -> f64) -> f64 {
    let nodes = 40_000;
    let h = 2.0 * reach / f64::from(nodes);
    (0..=nodes).map(|k| f(-reach + f64::from(k) * h) * h).sum()
}

/// The density of N(mean, std²).
fn normal(x: f64, mean: f64, std: f64) -> f64 {
    let z = (x - mean) / std;
    exp(-0.5 * z * z) / (std * (2.0 * std::f64::consts::PI).sqrt())
}

/// What `paygo audit --only doubling_literal` prints last: one Gaussian release passes the printed reading with probability 0.037.
#[test]
fn e2_one_gaussian_passes_the_printed_doubling_odometer() {
    let options = Options { paths: 1, seed: 1, only: Some("doubling_literal".to_owned()) };
    let trials = suite::run(&options, &|_| {}, |_| {});
    let exact = trials.iter().find(|trial| trial.adversary == "one Gaussian").expect("an exact trial");
    assert!(exact.verdict == Verdict::Violated && (exact.found - 0.0369).abs() < 5e-5, "{exact:?}");
    // After ρ = 0.5 it reads less than the classic conversion of a plan that was fixed in advance.
    let orders = suite::lecuyer_orders();
    let sums: Vec<f64> = orders.as_slice().iter().map(|order| 0.5 * order.get()).collect();
    let printed = LiteralOdometer::Doubling { orders, delta: 1e-5 }.value(&sums, 1.0, 1.0);
    let classic = 0.5 + 2.0 * (0.5 * -ln(1e-5)).sqrt();
    assert!((printed - 4.37).abs() < 5e-3 && (classic - 5.30).abs() < 5e-3, "{printed} {classic}");
}

/// Three outcomes, both divergences at most γ at order α, and |L| passes γ + ln(1/δ)/(α−1) with probability 1.54·δ.
#[test]
fn e3_both_tails_together_pass_delta() {
    let (order, gamma, delta) = (100.0, 0.5, 1e-5);
    let c = gamma - ln(delta) / (order - 1.0);
    let far = c * (1.0 + 1e-6);
    // All but a hair of what each direction allows.
    let up = 0.999 * delta;
    let down = 0.999 * delta * exp(-c);
    let p = [up, down, 1.0 - up - down];
    let q = [up * exp(-far), down * exp(far), 1.0 - up * exp(-far) - down * exp(far)];
    let divergence = |p: &[f64; 3], q: &[f64; 3]| {
        let sum: f64 = p.iter().zip(q).map(|(p, q)| exp(order * ln(*p) + (1.0 - order) * ln(*q))).sum();
        ln(sum) / (order - 1.0)
    };
    assert!(divergence(&p, &q) <= gamma && divergence(&q, &p) <= gamma);
    let passed: f64 = p.iter().zip(q).filter(|(p, q)| ln(**p / q).abs() > c).map(|(p, _)| p).sum();
    assert!((1.53..1.55).contains(&(passed / delta)), "{}", passed / delta);
}

/// "(reading, δ)-DP" would say something about the loss given the level. Given the first level it is passed for sure.
#[test]
fn e5_given_its_level_a_reading_can_be_passed_for_sure() {
    let delta = 1e-5;
    let orders = Orders::from_f64(&[2.0]).expect("an order");
    let doubling = Doubling::new(Delta::new(delta).expect("a delta"), orders).expect("finite orders");
    let level = |sum: f64| doubling.least(&[Amount::from_f64_up(sum)]).expect("a level");
    let first = level(0.0);
    // A rare outcome that loses more than the first reading. The analyst stops there, and goes on to the second level elsewhere.
    let (p, loss) = (0.25 * delta, first.value + 0.5);
    let spent = TwoPoint { p, q: p * exp(-loss) }.renyi(2.0);
    assert!(level(spent).level == 1 && loss > level(spent).value, "given level 1, the loss passes the reading");
    assert!(level(2.0 * first.value).level > 1);
    // As an odometer it keeps its promise: this happens with probability δ/4.
    assert!(p <= delta);
}

/// One noise for each person makes the variance depend on how many there are, which alone costs more than the step claims.
#[test]
fn e7_noise_for_each_person_tells_how_many_there_are() {
    let (order, people, std, dimension) = (2.0, 100.0, 2.0, 10_000.0);
    // D_α of N(0, v) from N(0, w), one coordinate.
    let one = |v: f64, w: f64| 0.5 * ln(w / v) + 0.5 * ln(w / (order * w + (1.0 - order) * v)) / (order - 1.0);
    let told = dimension * one(people, people + 1.0);
    let claimed = order / (2.0 * std * std);
    assert!(told > 1.9 * claimed, "{told} {claimed}");
}

fn admitted(rule: impl Rule, mechanism: Mechanism) -> usize {
    let mut filter = Filter::new(rule, Neighbors::AddRemove);
    let charge = filter.price(&Cost::of(&mechanism, Neighbors::AddRemove).expect("a cost"));
    let charge = charge.expect("a price");
    (0..100).take_while(|_| matches!(filter.admit(&charge), Decision::Admitted(_))).count()
}

/// The printed rule stops when "δ″ ≤ Σδ" or "ε ≤ …": at once where no step has a δ, and one step early at equality.
#[test]
fn e9_equality_admits() {
    let eighth = Epsilon::new(0.125).expect("ε");
    let pure = Pure::new(Budget::from_decimal("1", "0").expect("a budget")).expect("a rule");
    assert_eq!(admitted(pure, mechanism::Pure { epsilon: eighth }.into()), 8);
    let slack = Amount::from_decimal_down("0.0009765625").expect("2^-10");
    let budget = Budget::from_decimal("9", "0.01").and_then(|budget| budget.with_slack(slack)).expect("a budget");
    let own = Delta::new(2f64.powi(-12)).expect("δ");
    assert_eq!(
        admitted(
            Approximate::new(budget).expect("a rule"),
            mechanism::Approximate { epsilon: eighth, delta: own }.into()
        ),
        4
    );
}

/// Sensitivity 2, noise 1: the divergence has the square of the norm, which is twice what is printed.
#[test]
fn e10_the_norm_is_squared() {
    let order = 2.0;
    let moment = integral(30.0, |x| exp(order * ln(normal(x, 2.0, 1.0)) + (1.0 - order) * ln(normal(x, 0.0, 1.0))));
    let (truth, printed) = (ln(moment) / (order - 1.0), order / 2.0 * 2.0);
    assert!((truth - 4.0).abs() < 1e-9 && printed < truth, "{truth} {printed}");
}

/// Two records, +1 and −1, in two batches of fixed size; then a third that contributes nothing joins. Shuffled, its coming moves the
/// others into one batch in a third of the cases, and the epoch is not 1/(2σ²)-zCDP under add/remove.
#[test]
fn e12_shuffling_moves_others() {
    let (order, std) = (1.2, 0.1);
    // Along (1, −1)/√2 the sums of the two batches are at ±√2, and with the third record also at 0.
    let root = 2f64.sqrt();
    let both = |x: f64| normal(x, root, std) + normal(x, -root, std);
    let without = |x: f64| both(x) / 2.0;
    let with = |x: f64| (both(x) + normal(x, 0.0, std)) / 3.0;
    let moment = integral(2.5, |x| exp(order * ln(with(x)) + (1.0 - order) * ln(without(x))));
    let (truth, printed) = (ln(moment) / (order - 1.0), order / (2.0 * std * std));
    assert!((truth - 87.197).abs() < 0.01 && (printed - 60.0).abs() < 1e-9, "{truth} {printed}");
}

/// At the order of (22) the classic bound is larger than at that of (23), which is the minimum.
#[test]
fn e14_the_order_of_22_is_not_the_best() {
    let (rho, l) = (0.1, -ln(1e-5));
    let bound = |order: f64| order * rho + l / (order - 1.0);
    let (printed, best) = (0.5 + (l / rho).sqrt(), 1.0 + (l / rho).sqrt());
    assert!(bound(printed) > bound(best) * (1.0 + 1e-4), "{} {}", bound(printed), bound(best));
    assert!((bound(best) - (rho + 2.0 * (rho * l).sqrt())).abs() < 1e-12);
}

/// Among pairs whose losses are two values ε apart, the largest D_α/α is just below ε²/8: a quarter of the printed ε²/2.
#[test]
fn e17_the_exponential_mechanism_costs_a_quarter() {
    let epsilon = 1.0;
    let at = |order: f64, top: f64| {
        // Losses `top` and `top − ε`; the mean of e^{−L} is 1.
        let (low, high) = (exp(-top), exp(epsilon - top));
        let p = (high - 1.0) / (high - low);
        let b = order - 1.0;
        ln(p * exp(b * top) + (1.0 - p) * exp(b * (top - epsilon))) / (b * order)
    };
    let tops = || (1..400).map(|k| f64::from(k) / 400.0);
    let largest = [1.01, 1.1, 1.5, 2.0, 4.0, 8.0].into_iter().flat_map(|order| tops().map(move |top| at(order, top)));
    let largest = largest.fold(0.0, f64::max);
    let rho = Exponential::new(epsilon).expect("ε").rho().expect("a rho").get();
    assert!(largest <= rho && largest > 0.98 * rho && rho <= 0.25 * 0.5 * epsilon * epsilon, "{largest} {rho}");
}

/// The difference of two noisy counts has √2 times the deviation of one: "never due to noise" is one time in sixty.
#[test]
fn e18_three_deviations_of_a_count_are_two_of_a_difference() {
    let by_noise = 0.5 * erfc(3.0 / 2f64.sqrt() / 2f64.sqrt());
    assert!((by_noise - 0.0169).abs() < 1e-4, "{by_noise}");
}
