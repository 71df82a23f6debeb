//! Whole runs: what ends them, what they charge, and how they go on after they were interrupted.

use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{Budget, Decision, Filter, Gdp, Mixture, Zcdp};
use paygo_accounting::individual::FULL;
use paygo_accounting::odometer::{Odometer, VilleMixture};
use paygo_accounting::params::{Delta, Neighbors, NoiseMultiplier};
use paygo_accounting::prior::Prior;
use paygo_accounting::schedule::{Schedule, ValidationDecay};
use paygo_noise::Source;
use paygo_numeric::Amount;
use paygo_training::batching::{Batching, Sampler};
use paygo_training::data::{Examples, Public, Shape, generate};
use paygo_training::gate::{FilterGate, Gate, GateError};
use paygo_training::gradient::Clip;
use paygo_training::model::{
    Activation, Chunk, Existing, Findings, Function, Linear, MissingGradient, Model, Network, Sequence, Tensor,
};
use paygo_training::optimizer::{Method, Optimizer, Rate};
use paygo_training::personal::{ExampleBudget, Spending};
use paygo_training::policy::{Adaptive, FineTune, Lever, Observation, Policy, Progress};
use paygo_training::run::{AccuracyTarget, Ending, Entry, Journal, Privacy, Run, Setup, Stop, TrainError};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

fn perceptron(inputs: usize, hidden: usize, classes: usize) -> Network {
    let tanh = Activation::new(Function::Tanh, Shape::vector(hidden));
    let layers: Vec<Box<dyn paygo_training::model::Layer>> =
        vec![Box::new(Linear::new(inputs, hidden)), Box::new(tanh), Box::new(Linear::new(hidden, classes))];
    Network::new(Sequence::new(Shape::vector(inputs), layers))
}

fn noise(multiplier: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(multiplier).expect("noise")
}

fn uniform(multiplier: f64) -> Policy {
    Policy::Schedule(Schedule::Uniform { initial: noise(multiplier) })
}

/// What differs between tests; the rest is the same.
struct Setting<'a> {
    model: &'a Network,
    examples: &'a Examples,
    public: Option<&'a Public>,
    batching: Batching,
    policy: Policy,
    privacy: Option<Privacy>,
    stop: Stop,
}

impl<'a> Setting<'a> {
    fn new(model: &'a Network, examples: &'a Examples) -> Self {
        let batching = Batching::Poisson { sampling_probability: 0.1 };
        Self { model, examples, public: None, batching, policy: uniform(2.0), privacy: None, stop: Stop::default() }
    }

    fn run(self, gate: Box<dyn Gate + 'a>, journal: Box<dyn Journal + 'a>) -> Result<Run<'a, Network>, TrainError> {
        let neighbors = gate.neighbors();
        let size = self.examples.len() as u64;
        let parameters = paygo_training::model::Model::parameters(self.model);
        let plan = Setup {
            model: self.model,
            examples: self.examples,
            public: self.public,
            sampler: Sampler::new(self.batching, neighbors, size, self.examples.len())?,
            privacy: self.privacy.unwrap_or(Privacy::Clipped(Clip::whole(1.0).expect("a norm"))),
            policy: self.policy,
            optimizer: Optimizer::new(Method::Sgd { momentum: 0.9 }, Rate::Constant(0.5), parameters)?,
            stop: self.stop,
        };
        let boundary = VilleMixture::new(Delta::new(1e-5)?, Prior::log_spaced())?;
        let odometer = Odometer::new(boundary, neighbors);
        Run::new(plan, size, Some(gate), Some(odometer), journal, Source::insecure_from_seed(3))
    }
}

fn zcdp(rho: &str) -> Box<FilterGate<Zcdp>> {
    zcdp_under(rho, Neighbors::AddRemove)
}

fn zcdp_under(rho: &str, neighbors: Neighbors) -> Box<FilterGate<Zcdp>> {
    let rule = Zcdp::with_limit(Amount::from_decimal_down(rho).expect("a decimal"), Amount::ZERO).expect("a rule");
    Box::new(FilterGate::new(Filter::new(rule, neighbors)))
}

fn to_the_end(run: &mut Run<'_, Network>) -> Ending {
    loop {
        if let Some(ending) = run.advance(&mut |_| ControlFlow::Continue(())).expect("a round") {
            return ending;
        }
    }
}

#[test]
fn a_run_stops_when_the_filter_refuses_and_never_spends_more() {
    let (model, examples) = (perceptron(31, 8, 2), generate::census(500, 1));
    // ρ of a step is 1/8 whatever the sampling: 20 steps fit into 2.5 exactly.
    let mut run = Setting::new(&model, &examples).run(zcdp("2.5"), Box::new(())).expect("a run");
    let ending = to_the_end(&mut run);
    assert!(matches!(ending, Ending::Refused(_)), "{ending:?}");
    assert_eq!(run.position().steps, 20);
    assert_eq!(run.position().epoch, 2);
    // It stays ended.
    assert_eq!(to_the_end(&mut run), ending);
    assert_eq!(run.position().steps, 20);
    assert!(run.epsilon().expect("an odometer").get() > 0.5);
}

/// A policy that halves the noise every epoch overspends soon; the filter stops that with the budget intact, and what is left is spent on
/// rounds with more noise, as long as one fits.
#[test]
fn a_policy_that_overspends_is_stopped() {
    let (model, examples) = (perceptron(31, 8, 2), generate::census(500, 1));
    let gate = Arc::new(Mutex::new(*zcdp("1")));
    let decay = ValidationDecay::new(noise(8.0), 0.5, 1.0, 1, 1).expect("a decay");
    let public = Public::declare(generate::census(100, 2));
    let setting = Setting {
        policy: Policy::Validation(decay.into()),
        public: Some(&public),
        batching: Batching::BallsAndBins { batches: 5 },
        ..Setting::new(&model, &examples)
    };
    let mut run = setting.run(Box::new(Arc::clone(&gate)), Box::new(())).expect("a run");
    assert!(matches!(to_the_end(&mut run), Ending::Refused(_)));
    // 1/128 + 1/32 + 1/8 + 1/2 fit; the next would be 2. Of the 86/256 that are left, 1/8 and 1/32 fit twice and 1/128 three times.
    assert_eq!(run.position().epoch, 4 + 2 + 2 + 3);
    let meters = gate.lock().expect("a gate").filter().meters();
    assert_eq!(meters[0].spent.to_string(), "1");
    // And a run that is taken up again in the middle of it goes on in the same way.
    let (state, noise_multiplier) = (run.state(), run.noise_multiplier());
    let setting = Setting {
        policy: Policy::Validation(ValidationDecay::new(noise(8.0), 0.5, 1.0, 1, 1).expect("a decay").into()),
        public: Some(&public),
        batching: Batching::BallsAndBins { batches: 5 },
        ..Setting::new(&model, &examples)
    };
    let mut again = setting.run(zcdp("1"), Box::new(())).expect("a run");
    again.resume(state, &[]).expect("resumed");
    assert_eq!((again.noise_multiplier(), noise_multiplier), (Some(noise(8.0)), Some(noise(8.0))));
}

#[test]
fn several_runs_share_one_budget() {
    let (model, examples) = (perceptron(31, 4, 2), generate::census(200, 1));
    let gate = Arc::new(Mutex::new(*zcdp("1.25")));
    let mut steps = 0;
    for _ in 0..3 {
        let setting = Setting { stop: Stop { steps: Some(4), ..Stop::default() }, ..Setting::new(&model, &examples) };
        match setting
            .run(Box::new(Arc::clone(&gate)), Box::new(()))
            .map(|mut run| (to_the_end(&mut run), run.position()))
        {
            Ok((_, position)) => steps += position.steps,
            Err(error) => panic!("{error}"),
        }
    }
    // Ten steps of 1/8 in all: 4, 4 and 2.
    assert_eq!(steps, 10);
}

#[test]
fn budgets_too_small_for_one_round_are_an_error_before_anything_is_charged() {
    let (model, examples) = (perceptron(31, 4, 2), generate::census(200, 1));
    let gate = Arc::new(Mutex::new(*zcdp("0.1")));
    let mut run = Setting::new(&model, &examples).run(Box::new(Arc::clone(&gate)), Box::new(())).expect("a run");
    let error = run.advance(&mut |_| ControlFlow::Continue(())).expect_err("too small").to_string();
    assert!(error.contains("does not cover a single round"), "{error}");
    assert_eq!(gate.lock().expect("a gate").filter().meters()[0].spent, Amount::ZERO);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let (model, examples) = (perceptron(31, 4, 2), generate::census(200, 1));
    let error = |setting: Setting<'_>, neighbors| {
        let gate = zcdp_under("1", neighbors);
        setting.run(gate, Box::new(())).map(|_| ()).expect_err("refused").to_string()
    };
    let other = perceptron(30, 4, 2);
    let setting = Setting { model: &other, ..Setting::new(&model, &examples) };
    assert!(error(setting, Neighbors::AddRemove).contains("takes inputs of shape 30"));
    let decay = ValidationDecay::new(noise(8.0), 0.5, 0.0, 1, 1).expect("a decay");
    let setting = Setting { policy: Policy::Validation(decay.into()), ..Setting::new(&model, &examples) };
    assert!(error(setting, Neighbors::AddRemove).contains("public examples"));
    let setting = Setting { batching: Batching::Shuffled { size: 10 }, ..Setting::new(&model, &examples) };
    assert!(error(setting, Neighbors::AddRemove).contains("not accounted under add-remove"));
    let setting = Setting::new(&model, &examples);
    assert!(error(setting, Neighbors::ReplaceOne).contains("not accounted under replace-one"));
    let personal = |clip, allowance| Some(Privacy::Personal(clip, Spending::new(allowance, 200)));
    let gdp = ExampleBudget::Gdp { mu: 1.0 };
    let whole = || Clip::whole(1.0).expect("a norm");
    let setting = Setting { privacy: personal(whole(), gdp), ..Setting::new(&model, &examples) };
    assert!(error(setting, Neighbors::ZeroOut).contains("does not go with poisson batches; expected full"));
    let by_layer = Clip::by_layer(1.0, 2).expect("a norm");
    let setting =
        Setting { privacy: personal(by_layer, gdp), batching: Batching::Full, ..Setting::new(&model, &examples) };
    assert!(error(setting, Neighbors::ZeroOut).contains("layer by layer"));
    for neighbors in [Neighbors::ReplaceOne, Neighbors::AddRemove] {
        let setting =
            Setting { privacy: personal(whole(), gdp), batching: Batching::Full, ..Setting::new(&model, &examples) };
        assert!(error(setting, neighbors).contains(&neighbors.to_string()));
    }
    let target = AccuracyTarget { accuracy: 1.5, noise_std: 1.0, period: 1 };
    let stop = Stop { target: Some(target), ..Stop::default() };
    assert!(error(Setting { stop, ..Setting::new(&model, &examples) }, Neighbors::AddRemove).contains("accuracy"));
}

/// A sampler that was made for other examples, and a model that looks at the rows beside: refused before anything is charged.
#[test]
fn what_privacy_rests_on_is_looked_at_before_the_first_step() {
    let examples = generate::census(200, 1);
    fn start<M: Model>(model: &M, examples: &Examples, counted: usize) -> Result<(), TrainError> {
        let plan = Setup {
            model,
            examples,
            public: None,
            sampler: Sampler::new(Batching::Full, Neighbors::AddRemove, 200, counted)?,
            privacy: Privacy::Clipped(Clip::whole(1.0)?),
            policy: uniform(2.0),
            optimizer: Optimizer::new(Method::Sgd { momentum: 0.0 }, Rate::Constant(0.5), model.parameters())?,
            stop: Stop::default(),
        };
        Run::new(plan, 200, Some(zcdp("1")), None, Box::new(()), Source::insecure_from_seed(3)).map(|_| ())
    }
    let model = perceptron(31, 4, 2);
    start(&model, &examples, 200).expect("a run");
    // One fewer would be drawn from; one more would not be there.
    for counted in [199, 201] {
        let error = start(&model, &examples, counted).expect_err("refused").to_string();
        assert!(error.contains(&format!("made for {counted} examples; there are 200")), "{error}");
    }
    for nosy in [false, true] {
        let started = start(&Neighborly { inner: perceptron(31, 4, 2), nosy }, &examples, 200);
        assert_eq!(matches!(started, Err(TrainError::Dependent)), nosy, "{started:?}");
    }
}

/// A network whose gradients grow with how many others there are, if it is nosy.
struct Neighborly {
    inner: Network,
    nosy: bool,
}

impl Model for Neighborly {
    fn input(&self) -> Shape {
        self.inner.input()
    }
    fn classes(&self) -> usize {
        self.inner.classes()
    }
    fn tensors(&self) -> &[Tensor] {
        self.inner.tensors()
    }
    fn groups(&self) -> usize {
        self.inner.groups()
    }
    fn memory(&self, rows: usize) -> usize {
        self.inner.memory(rows)
    }
    fn predict(&self, parameters: &[f32], chunk: Chunk<'_>, memory: &mut [f32], findings: &mut Findings) {
        self.inner.predict(parameters, chunk, memory, findings);
    }
    fn examine(
        &self,
        parameters: &[f32],
        chunk: Chunk<'_>,
        memory: &mut [f32],
        findings: &mut Findings,
    ) -> Result<(), MissingGradient> {
        let mut parameters = parameters.to_vec();
        if self.nosy && chunk.labels.len() > 4 {
            parameters.iter_mut().for_each(|parameter| *parameter *= 1.001);
        }
        self.inner.examine(&parameters, chunk, memory, findings)
    }
    fn squared_norms(&self, chunk: Chunk<'_>, memory: &mut [f32], norms: &mut [f64]) {
        self.inner.squared_norms(chunk, memory, norms);
    }
    fn add_gradients(
        &self,
        chunk: Chunk<'_>,
        memory: &mut [f32],
        factors: Option<&[f32]>,
        sum: &mut [f32],
        mode: Existing,
    ) {
        self.inner.add_gradients(chunk, memory, factors, sum, mode);
    }
}

/// Nobody is drawn in most steps; the model moves by noise alone, and is charged.
#[test]
fn an_empty_batch_is_a_step_with_noise_only() {
    let (model, examples) = (perceptron(31, 4, 2), generate::census(20, 1));
    let setting = Setting {
        batching: Batching::Poisson { sampling_probability: 1e-6 },
        stop: Stop { steps: Some(3), ..Stop::default() },
        ..Setting::new(&model, &examples)
    };
    let mut run = setting.run(zcdp("1"), Box::new(())).expect("a run");
    let before = run.parameters().to_vec();
    let mut counts = Vec::new();
    while run
        .advance(&mut |step| {
            counts.push(step.findings.expose().count);
            ControlFlow::Continue(())
        })
        .expect("a round")
        .is_none()
    {}
    assert_eq!(counts, [0, 0, 0]);
    assert!(before.iter().zip(run.parameters()).all(|(a, b)| a != b));
}

/// Noise is relative to the sensitivity: with replace-one neighbors, who move a sum by twice the clip norm, twice as much is drawn.
#[test]
fn replacing_gets_twice_the_noise() {
    let (model, examples) = (perceptron(31, 8, 2), generate::census(500, 1));
    let moved = |neighbors: Neighbors| {
        let setting = Setting {
            batching: Batching::Full,
            policy: uniform(1e6),
            stop: Stop { steps: Some(1), ..Stop::default() },
            ..Setting::new(&model, &examples)
        };
        let mut run = setting.run(zcdp_under("1", neighbors), Box::new(())).expect("a run");
        let before = run.parameters().to_vec();
        assert_eq!(to_the_end(&mut run), Ending::Done);
        before.iter().zip(run.parameters()).map(|(a, b)| f64::from(b - a).powi(2)).sum::<f64>().sqrt()
    };
    let ratio = moved(Neighbors::ReplaceOne) / moved(Neighbors::ZeroOut);
    assert!((1.99..2.01).contains(&ratio), "{ratio}");
}

/// Every sampler learns, under the relation for which it is accounted; so does a budget for each example.
#[test]
fn every_sampler_learns() {
    let (model, examples) = (perceptron(31, 16, 2), generate::census(6000, 5));
    let test = Public::declare(generate::census(2000, 6));
    let cases = [
        (Batching::Full, Neighbors::AddRemove, 60),
        (Batching::Full, Neighbors::ReplaceOne, 60),
        (Batching::Poisson { sampling_probability: 0.1 }, Neighbors::ZeroOut, 60),
        (Batching::BallsAndBins { batches: 10 }, Neighbors::AddRemove, 60),
        (Batching::Shuffled { size: 600 }, Neighbors::ReplaceOne, 60),
    ];
    for (batching, neighbors, steps) in cases {
        let setting = Setting {
            batching,
            stop: Stop { steps: Some(steps), ..Stop::default() },
            ..Setting::new(&model, &examples)
        };
        let mut run = setting.run(zcdp_under("100", neighbors), Box::new(())).expect("a run");
        let before = run.public_accuracy(&test);
        assert_eq!(to_the_end(&mut run), Ending::Done);
        let after = run.public_accuracy(&test);
        assert!(after > 0.75 && after > before, "{batching:?}: {before} to {after}");
    }
    for (batching, allowance) in [
        (Batching::Full, ExampleBudget::Gdp { mu: 5.0 }),
        (Batching::Full, ExampleBudget::Zcdp { rho: 10.0 }),
        (Batching::Poisson { sampling_probability: 0.1 }, ExampleBudget::Renyi { order: 8.0, limit: 4.0 }),
    ] {
        let clip = Clip::whole(1.0).expect("a norm");
        let setting = Setting {
            batching,
            privacy: Some(Privacy::Personal(clip, Spending::new(allowance, 6000))),
            stop: Stop { steps: Some(60), ..Stop::default() },
            ..Setting::new(&model, &examples)
        };
        let budget = Budget::from_decimal("50", "1e-5").expect("a budget");
        let gate = FilterGate::new(Filter::new(Mixture::new(budget).expect("a rule"), Neighbors::ZeroOut));
        let mut run = setting.run(Box::new(gate), Box::new(())).expect("a run");
        assert_eq!(to_the_end(&mut run), Ending::Done);
        assert!(run.public_accuracy(&test) > 0.75, "{allowance:?} {}", run.public_accuracy(&test));
        let spent = run.spending().expect("accounts").shares().expose();
        assert!(spent.iter().all(|&share| share > 0 && share <= FULL));
        assert!(spent.iter().max() > spent.iter().min(), "people differ");
    }
}

/// With a budget of k steps for each example, the run is the ordinary one for k steps, and goes on when the ordinary one has ended: with
/// those who have something left.
#[test]
fn a_budget_for_each_example_lasts_longer() {
    let (model, examples) = (perceptron(31, 8, 2), generate::census(1000, 7));
    // Forty steps of 1/8.
    let allowance = ExampleBudget::Zcdp { rho: 5.0 };
    let setting = |privacy, steps| Setting {
        batching: Batching::Full,
        privacy,
        stop: Stop { steps: Some(steps), ..Stop::default() },
        ..Setting::new(&model, &examples)
    };
    let gate = || zcdp_under("5", Neighbors::ZeroOut);
    let mut ordinary = setting(None, 1000).run(gate(), Box::new(())).expect("a run");
    assert!(matches!(to_the_end(&mut ordinary), Ending::Refused(_)));
    assert_eq!(ordinary.position().steps, 40);
    let clip = Clip::whole(1.0).expect("a norm");
    let personal = Some(Privacy::Personal(clip, Spending::new(allowance, 1000)));
    let mut run = setting(personal, 60).run(gate(), Box::new(())).expect("a run");
    for _ in 0..40 {
        run.advance(&mut |_| ControlFlow::Continue(())).expect("a round");
    }
    let off = run.parameters().iter().zip(ordinary.parameters()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(off < 2e-3, "{off}");
    assert_eq!(to_the_end(&mut run), Ending::Done);
    assert_eq!(run.position().steps, 60);
    let spent = run.spending().expect("accounts").shares().expose();
    let (everything, little) = (|&&share: &&u32| share == FULL, |&&share: &&u32| share < FULL / 2);
    assert!(spent.iter().filter(everything).count() > 100 && spent.iter().filter(little).count() > 100);
}

/// A count that was asked for before the first round does not stand in for the budget of each example.
#[test]
fn the_budget_of_each_example_is_charged_whatever_came_before() {
    let (model, examples) = (perceptron(31, 4, 2), generate::census(100, 7));
    let privacy = Some(Privacy::Personal(
        Clip::whole(1.0).expect("a norm"),
        Spending::new(ExampleBudget::Zcdp { rho: 1.0 }, 100),
    ));
    let gate = Arc::new(Mutex::new(*zcdp_under("2", Neighbors::ZeroOut)));
    let setting = Setting { batching: Batching::Full, privacy, ..Setting::new(&model, &examples) };
    let mut run = setting.run(Box::new(Arc::clone(&gate)), Box::new(())).expect("a run");
    // A whole number: its noise is on integers, and no digit tells more.
    let count = run.noisy_count(10.0).expect("counted").expect("covered");
    assert_eq!(count.fract(), 0.0);
    run.advance(&mut |_| ControlFlow::Continue(())).expect("a round");
    assert_eq!(gate.lock().expect("a gate").filter().meters()[0].spent.to_string(), "1.005");
}

/// A gate that admits a cheaper count than it is asked for.
struct Generous(FilterGate<Zcdp>);

impl Gate for Generous {
    fn neighbors(&self) -> Neighbors {
        self.0.neighbors()
    }

    fn request(&mut self, cost: &Cost) -> Result<Decision, GateError> {
        let mechanism = paygo_accounting::mechanism::Mechanism::gaussian(1000.0)?;
        let cheap = Cost::of(&mechanism, self.neighbors())?;
        self.0.request(if cost.rho().is_some_and(|rho| rho.get() < 0.1) { &cheap } else { cost })
    }

    fn room(&mut self, cost: &Cost, most: u64) -> Result<u64, GateError> {
        self.0.room(cost, most)
    }
}

#[test]
fn a_count_is_drawn_for_a_permit_of_its_own_cost_only() {
    let (model, examples) = (perceptron(31, 4, 2), generate::census(100, 7));
    let gate = Box::new(Generous(*zcdp("2")));
    let mut run = Setting::new(&model, &examples).run(gate, Box::new(())).expect("a run");
    let error = run.noisy_count(10.0).expect_err("not covered").to_string();
    assert!(error.contains("the permit was given for another mechanism"), "{error}");
    run.noisy_count(1.0).expect("counted").expect("covered");
}

#[test]
fn a_target_is_reached_by_a_charged_test() {
    let (model, examples) = (perceptron(31, 16, 2), generate::census(4000, 9));
    let target = AccuracyTarget { accuracy: 0.78, noise_std: 20.0, period: 1 };
    let gate = Arc::new(Mutex::new(*zcdp("1000")));
    let setting = Setting {
        stop: Stop { epochs: Some(50), target: Some(target), ..Stop::default() },
        ..Setting::new(&model, &examples)
    };
    let mut run = setting.run(Box::new(Arc::clone(&gate)), Box::new(())).expect("a run");
    let Ending::TargetReached { count } = to_the_end(&mut run) else { panic!("not reached") };
    assert!(count >= 0.78 * 4000.0);
    let position = run.position();
    assert!((1..50).contains(&position.epoch));
    // Every epoch cost ten rounds of 1/8 and a count of 1/800.
    let spent = gate.lock().expect("a gate").filter().meters()[0].spent;
    assert_eq!(spent, Amount::from_decimal_up("1.25125").expect("a decimal").times(position.epoch));
    let reading = run.epsilon().expect("an odometer").get();
    assert!(reading > 0.1 && reading < spent.to_f64_up() + 4.0 * (12.0 * spent.to_f64_up()).sqrt(), "{reading}");
}

#[test]
fn policies_count_and_are_charged() {
    let (model, examples) = (perceptron(31, 8, 2), generate::census(2000, 10));
    let progress = Progress { period: 1, noise_std: 10.0, significance: 3.0 };
    let adaptive = Adaptive::new(progress, noise(1.0), Lever::Noise { step: 0.5 }, 3).expect("a policy");
    let fine_tune = FineTune::new(progress, noise(3.0), 0.5, noise(1.0)).expect("a policy");
    let lever = Lever::Batch { sampling_probability: 0.1, step: 0.04, least: 0.02 };
    let batch = Adaptive::new(progress, noise(1.0), lever, 3).expect("a policy");
    for (policy, name) in [
        (Policy::Adaptive(adaptive), "noise"),
        (Policy::FineTune(fine_tune), "fine"),
        (Policy::Adaptive(batch), "batch"),
    ] {
        let stop = Stop { epochs: Some(6), ..Stop::default() };
        let setting = Setting { policy, stop, ..Setting::new(&model, &examples) };
        let mut run = setting.run(zcdp("1000"), Box::new(())).expect("a run");
        let (mut noises, mut batches) = (Vec::new(), Vec::new());
        while run
            .advance(&mut |step| {
                noises.push(step.noise_multiplier);
                batches.push(step.expected);
                ControlFlow::Continue(())
            })
            .expect("a round")
            .is_none()
        {}
        assert_eq!(run.observations().len(), 6, "{name}");
        assert!(
            run.observations()
                .iter()
                .all(|seen| matches!(seen, Observation::NoisyCount { count, .. } if *count > 500.0))
        );
        noises.dedup();
        batches.dedup();
        match name {
            "noise" => assert!(noises.starts_with(&[1.0, 1.5]), "{noises:?}"),
            "fine" => assert!(noises.len() > 1 && noises.is_sorted_by(|a, b| a > b), "{noises:?}"),
            _ => assert!(batches.starts_with(&[200, 120]), "{batches:?}"),
        }
    }
}

/// The first entry that may not be written down stops the run before anything is drawn.
struct Full(usize);

impl Journal for Full {
    fn before(&mut self, _: &Entry, _: &mut dyn FnMut(u64) -> u64) -> std::io::Result<()> {
        if self.0 == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.0 -= 1;
        Ok(())
    }
}

#[test]
fn nothing_is_drawn_that_was_not_written_down() {
    let (model, examples) = (perceptron(31, 4, 2), generate::census(100, 1));
    let mut run = Setting::new(&model, &examples).run(zcdp("10"), Box::new(Full(2))).expect("a run");
    for _ in 0..2 {
        assert_eq!(run.advance(&mut |_| ControlFlow::Continue(())).expect("a round"), None);
    }
    let before = run.parameters().to_vec();
    let error = run.advance(&mut |_| ControlFlow::Continue(())).expect_err("full").to_string();
    assert!(error.contains("nothing was drawn"), "{error}");
    assert_eq!(run.parameters(), before);
    assert_eq!(run.position().steps, 2);
}

/// A gate that does not answer is not asked twice, and nothing is drawn.
struct Silent;

impl Gate for Silent {
    fn neighbors(&self) -> Neighbors {
        Neighbors::AddRemove
    }
    fn request(&mut self, _: &Cost) -> Result<Decision, GateError> {
        Err("no answer".into())
    }
    fn room(&mut self, _: &Cost, _: u64) -> Result<u64, GateError> {
        Err("no answer".into())
    }
}

#[test]
fn an_uncertain_answer_is_no_permit() {
    let (model, examples) = (perceptron(31, 4, 2), generate::census(100, 1));
    let mut run = Setting::new(&model, &examples).run(Box::new(Silent), Box::new(())).expect("a run");
    let before = run.parameters().to_vec();
    assert!(run.advance(&mut |_| ControlFlow::Continue(())).is_err());
    assert_eq!(run.parameters(), before);
}

#[test]
fn a_resumed_run_has_charged_everything_and_what_was_lost() {
    let (model, examples) = (perceptron(31, 8, 2), generate::census(500, 1));
    let progress = Progress { period: 1, noise_std: 10.0, significance: 3.0 };
    let policy = || Policy::FineTune(FineTune::new(progress, noise(3.0), 0.5, noise(1.0)).expect("a policy"));
    let setting = || Setting { policy: policy(), ..Setting::new(&model, &examples) };
    let mut first = setting().run(zcdp("100"), Box::new(())).expect("a run");
    for _ in 0..25 {
        first.advance(&mut |_| ControlFlow::Continue(())).expect("a round");
    }
    let state = first.state();
    assert_eq!((state.position.epoch, state.position.rounds, state.observations.len()), (2, 5, 2));
    let gate = Arc::new(Mutex::new(*zcdp("100")));
    let mut second = setting().run(Box::new(Arc::clone(&gate)), Box::new(())).expect("a run");
    let lost = [(Entry::Round { noise_multiplier: 2.0, batching: Batching::Poisson { sampling_probability: 0.1 } }, 8)];
    second.resume(state.clone(), &lost).expect("resumed");
    assert_eq!(second.state().parameters, state.parameters);
    assert_eq!(second.noise_multiplier(), first.noise_multiplier());
    let spent: Amount = gate.lock().expect("a gate").filter().meters()[0].spent;
    // Eight rounds of 1/8 more than the first had charged.
    let fresh = Arc::new(Mutex::new(*zcdp("100")));
    let mut third = setting().run(Box::new(Arc::clone(&fresh)), Box::new(())).expect("a run");
    third.resume(state.clone(), &[]).expect("resumed");
    // Whoever lost rounds may have chosen when.
    assert!(first.is_as_planned() && third.is_as_planned() && !second.is_as_planned());
    let without = fresh.lock().expect("a gate").filter().meters()[0].spent;
    assert_eq!(spent.minus(without), Amount::ONE);
    let (a, b) = (first.epsilon().expect("read").get(), third.epsilon().expect("read").get());
    assert_eq!(a, b);
    assert!(second.epsilon().expect("read").get() > b);
    // A smaller budget does not cover what was charged.
    let mut small = setting().run(zcdp("1"), Box::new(())).expect("a run");
    assert!(matches!(small.resume(state.clone(), &[]), Err(TrainError::Foreign(_))));
    let other = perceptron(31, 9, 2);
    let mut foreign = Setting { model: &other, ..setting() }.run(zcdp("100"), Box::new(())).expect("a run");
    assert!(matches!(foreign.resume(state, &[]), Err(TrainError::Foreign(_))));
}

/// A round that the last step ends in is part of the plan; one that somebody broke off is paid for twice, and is not.
#[test]
fn a_plan_is_one_only_where_nobody_broke_off() {
    let (model, examples) = (perceptron(31, 4, 2), generate::census(500, 1));
    let setting = || Setting {
        batching: Batching::BallsAndBins { batches: 10 },
        stop: Stop { steps: Some(25), ..Stop::default() },
        ..Setting::new(&model, &examples)
    };
    let mut whole = setting().run(zcdp("100"), Box::new(())).expect("a run");
    assert_eq!(to_the_end(&mut whole), Ending::Done);
    assert!(whole.is_as_planned() && whole.position().steps == 25);
    let mut broken = setting().run(zcdp("100"), Box::new(())).expect("a run");
    let ending = broken.advance(&mut |_| ControlFlow::Break(())).expect("a round");
    assert_eq!(ending, Some(Ending::Interrupted));
    let mut resumed = setting().run(zcdp("100"), Box::new(())).expect("a run");
    resumed.resume(broken.state(), &[]).expect("resumed");
    assert_eq!(to_the_end(&mut resumed), Ending::Done);
    assert!(!resumed.is_as_planned());
}

/// Accounts are by position: other examples, or these in another order, do not take them over.
#[test]
fn accounts_belong_to_their_examples() {
    let (model, examples) = (perceptron(31, 4, 2), generate::census(100, 7));
    let turned = examples.select(&(0..100).rev().collect::<Vec<usize>>());
    let begin = |examples| {
        let spending = Spending::new(ExampleBudget::Zcdp { rho: 1.0 }, 100);
        let privacy = Some(Privacy::Personal(Clip::whole(1.0).expect("a norm"), spending));
        let setting = Setting { batching: Batching::Full, privacy, ..Setting::new(&model, examples) };
        setting.run(zcdp_under("1", Neighbors::ZeroOut), Box::new(())).expect("a run")
    };
    let mut first = begin(&examples);
    first.advance(&mut |_| ControlFlow::Continue(())).expect("a round");
    let state = first.state();
    assert!(matches!(begin(&turned).resume(state.clone(), &[]), Err(TrainError::Foreign(_))));
    begin(&examples).resume(state, &[]).expect("its own");
}

#[test]
fn lost_steps_cost_everybody_the_most() {
    let (model, examples) = (perceptron(31, 8, 2), generate::census(300, 1));
    let setting = || Setting {
        batching: Batching::Full,
        privacy: Some(Privacy::Personal(
            Clip::whole(1.0).expect("a norm"),
            Spending::new(ExampleBudget::Gdp { mu: 5.0 }, 300),
        )),
        ..Setting::new(&model, &examples)
    };
    let gate = || {
        let rule = Gdp::with_limit(Amount::from_decimal_down("25").expect("a decimal")).expect("a rule");
        Box::new(FilterGate::new(Filter::new(rule, Neighbors::ZeroOut)))
    };
    let mut first = setting().run(gate(), Box::new(())).expect("a run");
    for _ in 0..4 {
        first.advance(&mut |_| ControlFlow::Continue(())).expect("a round");
    }
    let state = first.state();
    let mut second = setting().run(gate(), Box::new(())).expect("a run");
    let lost = [(Entry::Round { noise_multiplier: 2.0, batching: Batching::Full }, 3)];
    second.resume(state.clone(), &lost).expect("resumed");
    let before = state.spent.expect("accounts");
    let after = second.spending().expect("accounts").shares().expose();
    // μ² of a step is at most 1/4 of 25: a hundredth of a budget.
    for (before, after) in before.iter().zip(after) {
        let more = f64::from(after - before) / f64::from(FULL);
        assert!((more - 0.03).abs() < 1e-6, "{more}");
    }
}
