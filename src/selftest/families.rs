//! What to compute for each kind of golden case. `None` means that this build has no code for it.

use super::two_steps::sampled_delta_of_two;
use super::{Check, texts};
use paygo_accounting::account::least_epsilon;
use paygo_accounting::compose::{self, Drift};
use paygo_accounting::convert::limited::{Branch, limited_order_epsilon};
use paygo_accounting::convert::{Conversion, gaussian, zcdp};
use paygo_accounting::cost::{ApproximateStep, Cost};
use paygo_accounting::curve::Orders;
use paygo_accounting::individual::Clipping;
use paygo_accounting::loss::clock::payment;
use paygo_accounting::mechanism::{
    BallsAndBinsEpoch, Family as _, Gaussian, Laplace, Mechanism, PoissonSampledGaussian, RandomizedResponse, Single,
};
use paygo_accounting::params::{
    Count, Delta, Divergence, Epsilon, Mu, Neighbors, NoiseMultiplier, Order, Rho, SamplingProbability, Scale,
};
use paygo_accounting::schedule::{PublicAccuracy, Schedule, ValidationDecay};
use paygo_accounting::wire;
use paygo_numeric::decimal::{parse_down, parse_up};
use paygo_numeric::rounding::{div_down, div_up, mul_down, mul_up};
use paygo_numeric::{Interval, excess};

pub(super) fn check(family: &str, case: &mut Check<'_>) -> Option<()> {
    match family.strip_suffix("_orders").unwrap_or(family) {
        "mechanisms" => mechanism(case),
        "rdp_basic" => rdp_basic(case),
        "rdp_sampled_gaussian" => sampled_gaussian(case),
        "sampled_gaussian_profile" => sampled_profile(case),
        "balls_and_bins" => balls_and_bins(case),
        "rdp_to_dp" => rdp_to_dp(case),
        "zcdp_to_dp" => zcdp_to_dp(case),
        "gaussian_profile" => gaussian_profile(case),
        "clock" => clock(case),
        "composition" => composition(case),
        "schedules" => schedules(case),
        "limited_order" => limited_order(case),
        "filters" => super::filters::check(case),
        "odometers" => super::odometers::check(case),
        "individual_clipping" => individual_clipping(case),
        _ => None,
    }
}

/// Any mechanism, in its words on the wire: a new one needs cases, and no code here.
fn mechanism(case: &mut Check<'_>) -> Option<()> {
    let words: wire::Mechanism = serde_json::from_value(case.input("mechanism").clone()).ok()?;
    let mechanism = Mechanism::try_from(&words).ok()?;
    let Mechanism::Single(single) = &mechanism else { return None };
    let cost = Cost::of(&mechanism, *single.family().neighbors().first()?).ok()?;
    case.upper("rdp", cost.renyi(Order::new(case.down("order")).ok()?).get());
    let known = [
        ("rho", cost.rho().map(Rho::get)),
        ("mu", cost.mu().map(Mu::get)),
        ("epsilon", cost.total_epsilon().map(|bound| bound.float)),
        ("delta", Some(cost.slack().get())),
    ];
    for (name, ours) in known.into_iter().filter(|(name, _)| case.has(name)).collect::<Vec<_>>() {
        case.upper(name, ours?);
    }
    Some(())
}

/// The payment for a step on the Gaussian clock. The truth is known to a few digits.
fn clock(case: &mut Check<'_>) -> Option<()> {
    let words: wire::Mechanism = serde_json::from_value(case.input("mechanism").clone()).ok()?;
    let Mechanism::Single(single) = Mechanism::try_from(&words).ok()? else { return None };
    let ours = payment(&single, case.down("remaining"), case.down("eta"));
    case.within("b", ours, (1.0 - 1e-5, 1.02));
    Some(())
}

fn rdp_basic(case: &mut Check<'_>) -> Option<()> {
    let order = case.up("alpha");
    let value = match case.kind() {
        "gaussian" => {
            let noise = div_down(case.down("sigma"), case.up("sensitivity"));
            Gaussian { noise_multiplier: NoiseMultiplier::new(noise).ok()? }.renyi(Order::new(order).ok()?).get()
        }
        "laplace" => {
            let laplace = Laplace { scale: Scale::new(case.down("scale")).ok()? };
            if order == 1.0 { laplace_kl(laplace.scale) } else { laplace.renyi(Order::new(order).ok()?).get() }
        }
        "randomized_response" => {
            let response = RandomizedResponse { epsilon: Epsilon::new(case.up("eps")).ok()? };
            // At order 1 the KL divergence ε·tanh(ε/2), which is its ρ too.
            if order == 1.0 { response.rho()?.get() } else { response.renyi(Order::new(order).ok()?).get() }
        }
        _ => return None,
    };
    case.upper("rdp", value);
    Some(())
}

fn sampled(case: &Check<'_>) -> Option<PoissonSampledGaussian> {
    Some(PoissonSampledGaussian {
        sampling_probability: SamplingProbability::new(case.up("q")).ok()?,
        noise_multiplier: NoiseMultiplier::new(case.down("sigma")).ok()?,
    })
}

/// KL divergence of two Laplace laws one unit apart, `1/b + e^{−1/b} − 1`, rounded up: the limit at order 1.
fn laplace_kl(scale: Scale) -> f64 {
    let inverse = Interval::ONE / scale.get();
    Interval::around(excess::exp_excess(-inverse.hi()), excess::ERROR).hi()
}

fn sampled_gaussian(case: &mut Check<'_>) -> Option<()> {
    let (mechanism, order) = (sampled(case)?, Order::new(case.up("alpha")).ok()?);
    let one_by_one = mechanism.renyi(order).get();
    case.upper("forward", one_by_one);
    if (order.get() - 1.0) * one_by_one < 290.0 {
        case.upper("forward", mechanism.renyi_at(&[order])[0].get());
    }
    if case.has("reverse") {
        case.upper("reverse", mechanism.renyi_reverse(order).get());
    }
    Some(())
}

fn sampled_profile(case: &mut Check<'_>) -> Option<()> {
    let (mechanism, epsilon) = (sampled(case)?, Epsilon::new(case.down("eps")).ok()?);
    let (q, s) = (mechanism.sampling_probability, mechanism.noise_multiplier);
    let both = match case.kind() {
        "single_step" => gaussian::sampled_delta(q, s, epsilon),
        "two_steps" => sampled_delta_of_two(q, s, epsilon),
        _ => return None,
    };
    case.upper("delta_remove", both.removed.get());
    case.upper("delta_add", both.added.get());
    Some(())
}

fn balls_and_bins(case: &mut Check<'_>) -> Option<()> {
    let epoch = BallsAndBinsEpoch {
        batches: Count::new(case.text("T").parse().ok()?).ok()?,
        noise_multiplier: NoiseMultiplier::new(case.down("sigma")).ok()?,
    };
    let order = case.up("alpha");
    case.upper("forward", epoch.forward_bound(order));
    case.upper("reverse_bound", epoch.reverse_bound(order));
    case.upper("plain_bound", epoch.plain_bound(order));
    Some(())
}

/// A statement at an order is one at every smaller order, because the divergence rises with it: orders are read down.
fn rdp_to_dp(case: &mut Check<'_>) -> Option<()> {
    match case.kind() {
        "eps_of_delta" => {
            let order = Order::new(case.down("alpha")).ok()?;
            let divergence = Divergence::new(case.up("gamma")).ok()?;
            let delta = Delta::new(case.down("delta")).ok()?;
            for conversion in Conversion::ALL {
                case.upper(&format!("eps_{}", conversion.word()), conversion.epsilon(order, divergence, delta).get());
            }
        }
        "delta_of_eps" => {
            let order = Order::new(case.down("alpha")).ok()?;
            let divergence = Divergence::new(case.up("gamma")).ok()?;
            let epsilon = Epsilon::new(case.down("eps")).ok()?;
            for conversion in [Conversion::Classic, Conversion::Cks, Conversion::Exact] {
                case.upper(&format!("delta_{}", conversion.word()), conversion.delta(order, divergence, epsilon).get());
            }
        }
        "gamma_of_eps_delta" => {
            let (order, epsilon) = (Order::new(case.down("alpha")).ok()?, Epsilon::new(case.down("eps")).ok()?);
            let delta = Delta::new(case.down("delta")).ok()?;
            case.lower("gamma_exact", Conversion::Exact.budget(order, epsilon, delta)?.get());
        }
        "curve" => {
            let mechanism = case.input("mechanism");
            let field = |name: &str| mechanism.get(name).and_then(serde_json::Value::as_str).unwrap_or("");
            let noise_multiplier = NoiseMultiplier::new(parse_down(field("sigma"))?).ok()?;
            let single = match field("type") {
                "gaussian" => Single::Gaussian(Gaussian { noise_multiplier }),
                "sampled_gaussian" => {
                    let sampling_probability = SamplingProbability::new(parse_up(field("q"))?).ok()?;
                    Single::PoissonSampledGaussian(PoissonSampledGaussian { sampling_probability, noise_multiplier })
                }
                _ => return None,
            };
            let cost = Cost::of(&Mechanism::Single(single), Neighbors::AddRemove).ok()?;
            let cost = cost.repeat(field("steps").parse().ok()?).ok()?;
            let curve = cost.curve(&Orders::from_f64(&case.downs("orders")).ok()?);
            let delta = Delta::new(case.down("delta")).ok()?;
            for conversion in Conversion::ALL {
                let (epsilon, order) = least_epsilon(&curve, conversion, delta);
                case.upper(&format!("eps_{}", conversion.word()), epsilon.get());
                case.equal(&format!("order_{}", conversion.word()), order?.get());
            }
        }
        _ => return None,
    }
    Some(())
}

fn zcdp_to_dp(case: &mut Check<'_>) -> Option<()> {
    let both = [Conversion::Classic, Conversion::Cks];
    match case.kind() {
        "eps_of_delta" => {
            let (rho, delta) = (Rho::new(case.up("rho")).ok()?, Delta::new(case.down("delta")).ok()?);
            for conversion in both {
                case.upper(&format!("eps_{}", conversion.word()), zcdp::epsilon(conversion, rho, delta).0.get());
            }
        }
        "delta_of_eps" => {
            let (rho, epsilon) = (Rho::new(case.up("rho")).ok()?, Epsilon::new(case.down("eps")).ok()?);
            for conversion in both {
                case.upper(&format!("delta_{}", conversion.word()), zcdp::delta(conversion, rho, epsilon).0.get());
            }
        }
        "rho_of_eps_delta" => {
            let (epsilon, delta) = (Epsilon::new(case.down("eps")).ok()?, Delta::new(case.down("delta")).ok()?);
            for conversion in both {
                case.lower(&format!("rho_{}", conversion.word()), zcdp::budget(conversion, epsilon, delta).get());
            }
        }
        _ => return None,
    }
    Some(())
}

fn gaussian_profile(case: &mut Check<'_>) -> Option<()> {
    match case.kind() {
        "delta_of_eps" => {
            let (mu, epsilon) = (Mu::new(case.up("mu")).ok()?, Epsilon::new(case.down("eps")).ok()?);
            case.upper("delta", gaussian::delta(mu, epsilon).get());
        }
        "eps_of_delta" => {
            let (mu, delta) = (Mu::new(case.up("mu")).ok()?, Delta::new(case.down("delta")).ok()?);
            case.upper("eps", gaussian::epsilon(mu, delta).get());
        }
        "sigma" => {
            let (epsilon, delta) = (Epsilon::new(case.down("eps")).ok()?, Delta::new(case.down("delta")).ok()?);
            case.upper("sigma", div_up(case.up("sensitivity"), gaussian::budget(epsilon, delta).get()));
        }
        _ => return None,
    }
    Some(())
}

fn composition(case: &mut Check<'_>) -> Option<()> {
    let step = |epsilon: f64, delta: f64, count: u64| {
        Some(ApproximateStep {
            epsilon: Epsilon::new(epsilon).ok()?,
            delta: Delta::new(delta).ok()?,
            count: Count::new(count).ok()?,
        })
    };
    let steps: Vec<ApproximateStep> = match case.kind() {
        "advanced_homogeneous" => vec![step(case.up("eps"), 0.0, case.text("k").parse().ok()?)?],
        // Optimal composition jumps where a total of the steps meets `eps_total`; both are read to the nearest double.
        "optimal_homogeneous_delta" => {
            vec![step(case.near("eps"), case.up("delta"), case.text("k").parse().ok()?)?]
        }
        "advanced_heterogeneous" => case.ups("eps").iter().map(|&e| step(e, 0.0, 1)).collect::<Option<_>>()?,
        "optimal_heterogeneous_delta" => {
            let deltas = case.ups("delta");
            case.ups("eps").iter().zip(deltas).map(|(&e, d)| step(e, d, 1)).collect::<Option<_>>()?
        }
        _ => return None,
    };
    if case.kind().starts_with("advanced") {
        let slack = Delta::new(case.down("slack")).ok()?;
        for (name, drift) in [("eps_drv", Drift::Drv), ("eps_tanh", Drift::Tanh)] {
            case.upper(name, compose::advanced(&steps, drift, slack).0.get());
        }
        case.upper("eps_half", advanced_half(&steps, slack));
    } else {
        let total = Epsilon::new(case.near("eps_total")).ok()?;
        case.upper("delta_total", compose::optimal(&steps, total)?.get());
    }
    Some(())
}

/// The ε of advanced composition (T3) with drift `ε²/2`, between the two that the library has; rounded up.
fn advanced_half(steps: &[ApproximateStep], slack: Delta) -> f64 {
    let square = |step: &ApproximateStep| Interval::point(step.epsilon.get()).square() * step.count.to_f64();
    let squares = steps.iter().map(square).fold(Interval::ZERO, |sum, square| sum + square);
    let l = -Interval::point(slack.get()).ln();
    ((l * squares * 2.0).sqrt() + squares * 0.5).hi()
}

/// A schedule of the vectors, its numbers read to the side of less noise.
fn schedule(case: &Check<'_>) -> Option<Schedule> {
    let params = case.input("params");
    let field = |name: &str| params.get(name).and_then(serde_json::Value::as_str).unwrap_or("");
    let initial = NoiseMultiplier::new(parse_down(field("sigma0"))?).ok()?;
    let schedule = match case.text("schedule") {
        "constant" => Schedule::Uniform { initial },
        "time" => Schedule::Time { initial, rate: parse_up(field("k"))? },
        "exp" => Schedule::Exponential { initial, rate: parse_up(field("k"))? },
        "step" => Schedule::Step { initial, rate: parse_down(field("k"))?, period: field("period").parse().ok()? },
        "poly" => Schedule::Polynomial {
            initial,
            rate: parse_up(field("k"))?,
            last: NoiseMultiplier::new(parse_down(field("sigma_end"))?).ok()?,
            period: field("period").parse().ok()?,
        },
        _ => return None,
    };
    schedule.checked().ok()
}

fn schedules(case: &mut Check<'_>) -> Option<()> {
    match case.kind() {
        "sigma_t" => {
            let schedule = schedule(case)?;
            let noise = |text: &&str| Some(schedule.noise_multiplier(text.parse().ok()?)?.get());
            let ours = texts(case.input("t")).iter().map(noise).collect::<Option<Vec<_>>>()?;
            case.lowers("sigma", &ours);
        }
        "epochs" => {
            let epochs = schedule(case)?.epochs_within(Rho::new(case.down("rho_total")).ok()?);
            #[expect(clippy::cast_precision_loss, reason = "a few hundred epochs")]
            case.equal("epochs", epochs.count as f64);
            case.upper("rho_used", epochs.spent.get());
        }
        "validation" => {
            let initial = NoiseMultiplier::new(case.down("sigma0")).ok()?;
            let (period, window) = (case.text("period").parse().ok()?, case.text("window").parse().ok()?);
            let mut decay = ValidationDecay::new(initial, case.down("k"), case.up("threshold"), period, window).ok()?;
            let mut ours = Vec::new();
            for accuracy in case.ups("accuracies") {
                ours.push(decay.noise_multiplier().get());
                decay.observe(PublicAccuracy::new(accuracy).ok()?);
            }
            case.lowers("sigma", &ours);
        }
        _ => return None,
    }
    Some(())
}

/// One person under Algorithm 8, by the kernel that moves columns.
fn individual_clipping(case: &mut Check<'_>) -> Option<()> {
    let (clip_norm, sigma) = (case.down("clip"), case.down("sigma"));
    let clipping = Clipping::new(case.down("budget"), clip_norm).ok()?;
    let noise_std = mul_down(sigma, clip_norm);
    let variance = mul_down(noise_std, noise_std);
    let (mut clipped, mut used, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut spent, mut factor) = ([0], [0.0]);
    for norm in case.ups("norms") {
        let before = spent[0];
        clipping.round(&mut spent, &[mul_up(norm, norm)], &mut factor);
        clipped.push(mul_down(norm, factor[0]));
        used.push(clipping.used(spent[0]));
        costs.push(div_up(clipping.used(spent[0] - before), mul_down(2.0, variance)));
    }
    case.lowers("clipped", &clipped);
    case.uppers("used", &used);
    case.uppers("rho_cost", &costs);
    case.upper("rho_bound", clipping.rho(noise_std).ok()?.get());
    Some(())
}

fn limited_order(case: &mut Check<'_>) -> Option<()> {
    let (rho, largest) = (Rho::new(case.up("rho_hat")).ok()?, Order::new(case.down("u")).ok()?);
    let (epsilon, branch) = limited_order_epsilon(rho, largest, Delta::new(case.down("delta")).ok()?);
    case.upper("eps", epsilon.get());
    case.equal("branch", if branch == Branch::Inside { 1.0 } else { 2.0 });
    Some(())
}
