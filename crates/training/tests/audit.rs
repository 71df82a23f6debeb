//! Training against an auditor with canaries: what it finds out stays below what is promised, and copies of the step with a planted
//! fault do not get away with it.
//!
//! # The game
//! A canary is an example with parameters of its own, which nobody else's gradient touches. A fair coin decides for each of m canaries
//! whether it is trained on. The auditor sees the parameters after every round, scores each canary, says "in" of the highest scores and
//! "out" of as many lowest ones, and nothing of the others. It knows everything but the coins and the noise.
//!
//! Where a run must be tiny, so that one example weighs much, many runs on disjoint examples are one release: each example is in
//! one of them alone, so their union keeps the promise of each.
//!
//! # Theorem
//! Let `M: {−1, +1}^m → {−1, 0, +1}^m` be (ε, δ)-DP when one sign is changed, `S` uniform, `T = M(S)` with exactly r entries that are not
//! zero, and `V` the number of i with `Tᵢ = Sᵢ`. Then for every v, with `W` binomial of r trials that succeed with `e^ε/(1 + e^ε)`,
//!
//! `P[V ≥ v] ≤ P[W ≥ v] + 2mδ·max{ P[v > W ≥ v − i]/i : 1 ≤ i ≤ m }`.
//!
//! Source: Steinke, Nasr, Jagielski, *Privacy Auditing with One (1) Training Run*, arXiv:2305.08846, Theorem 5.2.
//!
//! Preconditions: coins are fair and independent; guesses are computed from the coins through what is released and through nothing else;
//! r is fixed in advance. Changing a sign is adding or removing one example, so ε is that of [`Neighbors::AddRemove`]. Whoever comes
//! after a missing canary moves up, which changes nothing but the order in which numbers are added.
//!
//! # How often an honest run is convicted
//! The bound is above the true ε with probability at most [`ERROR`], a thousandth, for each audit: several r are tried and share the
//! error. So if all seeds were drawn anew, some of the honest audits here (there are fewer than 40) would convict with probability
//! below 4 %. In truth far below: Gaussian noise at this δ leaves a wide gap between what is promised and what can be guessed. Seeds
//! are fixed, so a test that passes once passes always.

use paygo_accounting::calibrate::{Target, least_noise};
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{Filter, Zcdp};
use paygo_accounting::loss::tightest_of_all;
use paygo_accounting::params::{Delta, Epsilon, Neighbors, NoiseMultiplier};
use paygo_accounting::schedule::Schedule;
use paygo_audit::binomial::density;
use paygo_noise::Source;
use paygo_numeric::Amount;
use paygo_numeric::elementary::{exp, exp_m1, ln, ln_1p};
use paygo_training::batching::{Batching, Sampler};
use paygo_training::data::{Examples, Shape};
use paygo_training::gate::FilterGate;
use paygo_training::gradient::{Clip, Scaling, Summer};
use paygo_training::model::{
    Activation, Chunk, Findings, Function, Layer, Linear, MissingGradient, Model, Network, Sequence, Start, Tensor,
};
use paygo_training::noise::standard_normals;
use paygo_training::optimizer::{Method, Optimizer, Rate};
use paygo_training::personal::{ExampleBudget, Spending};
use paygo_training::policy::Policy;
use paygo_training::run::{Ending, Entry, Privacy, Run, Setup, Stop};
use std::ops::ControlFlow;

use Verdict::{Acquitted, Convicted};

/// The probability with which a bound may be above the true ε.
const ERROR: f64 = 1e-3;
/// The shares of the canaries about which it guesses: each is tried, and has an equal part of the error. Not all of them: of 1000 coins
/// some more than half may fall on one side.
const GUESSED: [f64; 6] = [0.9, 0.5, 0.125, 0.03, 0.01, 0.0025];
const CLIP_NORM: f64 = 1.0;
/// How far a parameter moves for a gradient of 1 in the sum.
const MOVE: f64 = 2e-5;
/// The one number of a canary's input that is not zero: its raw gradient is many times the clip norm.
const LOUD: f32 = 32.0;

// The auditor's arithmetic.

/// The probability that at least `right` of `guesses` about `canaries` are right, at most, if the training is (ε, δ)-DP.
fn p_value(canaries: usize, guesses: usize, right: usize, epsilon: f64, delta: f64) -> f64 {
    let share = 1.0 / (1.0 + exp(-epsilon));
    let law = binomial(guesses, share);
    let beyond: f64 = law[right..].iter().rev().sum();
    // More than `right` numbers below `right` add nothing.
    let mut below = 0.0;
    let mut most = 0.0f64;
    for i in 1..=right {
        below += law[right - i];
        most = most.max(below / count(i));
    }
    beyond + 2.0 * count(canaries) * delta * most
}

/// The probabilities of 0 to n, from the most probable one outward.
fn binomial(n: usize, p: f64) -> Vec<f64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and n")]
    let mode = ((count(n) + 1.0) * p) as usize;
    let mode = mode.min(n);
    let mut law = vec![0.0; n + 1];
    law[mode] = density(mode as u64, n as u64, p);
    let odds = p / (1.0 - p);
    for k in mode..n {
        law[k + 1] = law[k] * odds * count(n - k) / count(k + 1);
    }
    for k in (0..mode).rev() {
        law[k] = law[k + 1] * count(k + 1) / count(n - k) / odds;
    }
    law
}

#[expect(clippy::cast_precision_loss, reason = "counts of canaries")]
fn count(n: usize) -> f64 {
    n as f64
}

/// The last ε of a grid before the first that is not ruled out. Were the training (ε, δ)-DP with an ε below it, the next ε of the
/// grid would be wrongly ruled out, which happens with probability `error` at most.
fn lower_bound(canaries: usize, guesses: usize, right: usize, delta: f64, error: f64) -> f64 {
    let at = |step: u32| f64::from(step) / 50.0;
    let ruled_out = |step: &u32| p_value(canaries, guesses, right, at(*step), delta) <= error;
    (0..=1000).take_while(ruled_out).last().map_or(0.0, at)
}

/// What the auditor has at the end.
#[derive(Default)]
struct Audit {
    coins: Vec<bool>,
    scores: Vec<f64>,
}

impl Audit {
    /// A lower bound on ε at δ.
    fn bound(&self, delta: f64) -> f64 {
        let canaries = self.coins.len();
        let mut order: Vec<usize> = (0..canaries).collect();
        order.sort_by(|&a, &b| self.scores[b].total_cmp(&self.scores[a]));
        let bound = |guessed: f64| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of the canaries")]
            let half = (count(canaries) * guessed / 2.0) as usize;
            let found_in = order[..half].iter().filter(|&&i| self.coins[i]).count();
            let found_out = order[canaries - half..].iter().filter(|&&i| !self.coins[i]).count();
            lower_bound(canaries, 2 * half, found_in + found_out, delta, ERROR / count(GUESSED.len()))
        };
        GUESSED.into_iter().map(bound).fold(0.0, f64::max)
    }
}

/// What is expected of an audit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Acquitted,
    Convicted,
}

#[track_caller]
fn check(name: &str, verdict: Verdict, audit: &Audit, setting: &Setting) -> f64 {
    let (bound, promised) = (audit.bound(setting.delta), setting.promised());
    let is = if bound <= promised { Acquitted } else { Convicted };
    eprintln!("{name}: at least {bound:.2}, promised {promised:.2} at {:e}: {is:?}", setting.delta);
    assert_eq!(is, verdict, "{name}: epsilon is at least {bound}, and {promised} is promised at {}", setting.delta);
    bound
}

// What is trained.

/// Canaries, each with `own` parameters from `own` times its position on, and people who are there for certain.
struct Flock<M> {
    model: M,
    everybody: Examples,
    canaries: usize,
    own: usize,
    start: Vec<f32>,
}

/// Every canary speaks to one input alone, loudly; labels are random.
fn one_hot(canaries: usize, source: &mut Source) -> Examples {
    let mut inputs = vec![0.0; canaries * canaries];
    inputs.iter_mut().step_by(canaries + 1).for_each(|x| *x = LOUD);
    let labels = (0..canaries).map(|_| u32::from(coin(source))).collect();
    Examples::new(Shape::vector(canaries), 2, inputs, labels).expect("examples")
}

fn coin(source: &mut Source) -> bool {
    source.bits() & 1 == 1
}

fn network(layers: Vec<Box<dyn Layer>>, canaries: usize, own: usize, deviations: &[f64]) -> Flock<Network> {
    let mut source = Source::insecure_from_seed(11);
    let model = Network::new(Sequence::new(Shape::vector(canaries), layers));
    let everybody = one_hot(canaries, &mut source);
    let mut start = Vec::new();
    for (tensor, deviation) in model.tensors().iter().zip(deviations) {
        let mut normals = vec![0.0; tensor.len()];
        standard_normals(&mut source, &mut normals);
        #[expect(clippy::cast_possible_truncation, reason = "single precision is what parameters are in")]
        start.extend(normals.iter().map(|x| (x * deviation) as f32));
    }
    Flock { model, everybody, canaries, own, start }
}

/// Logistic regression: two weights for each input.
fn softmax(canaries: usize) -> Flock<Network> {
    network(vec![Box::new(Linear::new(canaries, 2))], canaries, 2, &[0.02, 0.0])
}

/// A hidden layer of eight.
fn two_layers(canaries: usize) -> Flock<Network> {
    let tanh = Activation::new(Function::Tanh, Shape::vector(8));
    let layers: Vec<Box<dyn Layer>> =
        vec![Box::new(Linear::new(canaries, 8)), Box::new(tanh), Box::new(Linear::new(8, 2))];
    network(layers, canaries, 8, &[0.02, 0.0, 0.5, 0.0])
}

/// One parameter for each hole. The gradient of an example is a number in its own hole: both are its input.
struct Holes(Vec<Tensor>);

impl Holes {
    fn new(holes: usize) -> Self {
        Self(vec![Tensor { name: "holes".into(), shape: vec![holes], start: Start::Zeros }])
    }

    /// Some examples, the first of which are canaries. More holes than examples stay empty.
    fn flock(holes: usize, examples: usize, canaries: usize) -> Flock<Self> {
        let inputs = (0u16..).take(examples).flat_map(|hole| [f32::from(hole), LOUD]).collect();
        let everybody = Examples::new(Shape::vector(2), 2, inputs, vec![0; examples]).expect("examples");
        Flock { model: Self::new(holes), everybody, canaries, own: 1, start: vec![0.0; holes] }
    }
}

impl Model for Holes {
    fn input(&self) -> Shape {
        Shape::vector(2)
    }
    fn classes(&self) -> usize {
        2
    }
    fn tensors(&self) -> &[Tensor] {
        &self.0
    }
    fn groups(&self) -> usize {
        1
    }
    fn memory(&self, _: usize) -> usize {
        0
    }
    fn predict(&self, _: &[f32], chunk: Chunk<'_>, _: &mut [f32], findings: &mut Findings) {
        findings.losses = vec![0.0; chunk.labels.len()];
        findings.correct = vec![true; chunk.labels.len()];
    }
    fn examine(
        &self,
        parameters: &[f32],
        chunk: Chunk<'_>,
        memory: &mut [f32],
        findings: &mut Findings,
    ) -> Result<(), MissingGradient> {
        self.predict(parameters, chunk, memory, findings);
        Ok(())
    }
    fn squared_norms(&self, chunk: Chunk<'_>, _: &mut [f32], norms: &mut [f64]) {
        for (norm, input) in norms.iter_mut().zip(chunk.inputs.as_chunks::<2>().0) {
            *norm = f64::from(input[1]).powi(2);
        }
    }
    fn add_gradients(
        &self,
        chunk: Chunk<'_>,
        _: &mut [f32],
        factors: Option<&[f32]>,
        sum: &mut [f32],
        mode: paygo_training::model::Existing,
    ) {
        match mode {
            paygo_training::model::Existing::Replace => sum.fill(0.0),
            paygo_training::model::Existing::Add => {}
        }
        for (i, &[hole, gradient]) in chunk.inputs.as_chunks::<2>().0.iter().enumerate() {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small whole number")]
            let hole = hole as usize;
            sum[hole] += gradient * factors.map_or(1.0, |factors| factors[i]);
        }
    }
}

// How it is trained.

/// How, and what is promised.
#[derive(Clone, Copy, Debug)]
struct Setting {
    batching: Batching,
    noise_multiplier: f64,
    rounds: u64,
    delta: f64,
    /// A budget of each example's own, in μ.
    personal: Option<f64>,
}

impl Setting {
    /// With the least noise for this ε at δ, by the fast methods; what is promised is a little less where another method is tighter.
    fn new(batching: Batching, rounds: u64, epsilon: f64, delta: f64) -> Self {
        let setting = Self { batching, noise_multiplier: 1.0, rounds, delta, personal: None };
        let target = Target::EpsilonDelta(Epsilon::new(epsilon).expect("epsilon"), Delta::new(delta).expect("delta"));
        let cost_at = |noise_multiplier| Ok(Self { noise_multiplier, ..setting }.cost());
        Self { noise_multiplier: least_noise(target, cost_at).expect("noise").value, ..setting }
    }

    fn noise(&self) -> NoiseMultiplier {
        NoiseMultiplier::new(self.noise_multiplier).expect("noise")
    }

    /// With a budget for each, whoever is not there leaves a gap.
    fn neighbors(&self) -> Neighbors {
        if self.personal.is_some() { Neighbors::ZeroOut } else { Neighbors::AddRemove }
    }

    /// The public number of examples is that of all canaries; how many there are is a secret.
    fn sampler(&self, public_size: usize, examples: usize) -> Sampler {
        Sampler::new(self.batching, self.neighbors(), public_size as u64, examples).expect("a sampler")
    }

    fn cost(&self) -> Cost {
        if let Some(mu) = self.personal {
            return ExampleBudget::Gdp { mu }.cost(self.neighbors()).expect("a cost");
        }
        let round = self.sampler(1, 1).round(self.noise()).expect("a round");
        round.cost().repeat(self.rounds).expect("a cost")
    }

    /// ε, as it is accounted.
    fn promised(&self) -> f64 {
        tightest_of_all(&self.cost(), Delta::new(self.delta).expect("delta")).epsilon.get()
    }

    /// The chance to be in a round, and the noise of a round in units of a step's.
    fn round(&self) -> (f64, f64) {
        match self.batching {
            Batching::Full => (1.0, 1.0),
            Batching::Poisson { sampling_probability } => (sampling_probability, 1.0),
            #[expect(clippy::cast_precision_loss, reason = "some batches")]
            Batching::BallsAndBins { batches } => (1.0, (batches as f64).sqrt()),
            Batching::Shuffled { .. } => panic!("shuffled batches have no price when examples are added or removed"),
        }
    }
}

fn clip() -> Clip {
    Clip::whole(CLIP_NORM).expect("a norm")
}

/// The parameters before the first round and after each.
type Trace = Vec<Vec<f32>>;

/// The training as it ships.
fn shipped<M: Model>(flock: &Flock<M>, examples: &Examples, setting: &Setting, source: Source) -> Trace {
    let public_size = flock.everybody.len();
    let sampler = setting.sampler(public_size, examples.len());
    let rate = Rate::Constant(MOVE * sampler.divisor());
    let privacy = match setting.personal {
        None => Privacy::Clipped(clip()),
        Some(mu) => Privacy::Personal(clip(), Spending::new(ExampleBudget::Gdp { mu }, examples.len())),
    };
    let plan = Setup {
        model: &flock.model,
        examples,
        public: None,
        sampler,
        privacy,
        policy: Policy::Schedule(Schedule::Uniform { initial: setting.noise() }),
        optimizer: Optimizer::new(Method::Sgd { momentum: 0.0 }, rate, flock.start.len()).expect("an optimizer"),
        stop: Stop { steps: None, epochs: None, target: None },
    };
    // Large enough; what was charged is looked up below.
    let rule = Zcdp::with_limit(Amount::from_decimal_down("1000").expect("a decimal"), Amount::ZERO).expect("a rule");
    let gate = FilterGate::new(Filter::new(rule, setting.neighbors()));
    let mut run = Run::new(plan, public_size as u64, Some(Box::new(gate)), None, Box::new(()), source).expect("a run");
    run.start_from(flock.start.clone()).expect("as many parameters");
    let mut trace = vec![flock.start.clone()];
    for _ in 0..setting.rounds {
        let ending: Option<Ending> = run.advance(&mut |_| ControlFlow::Continue(())).expect("a round");
        assert_eq!(ending, None);
        trace.push(run.parameters().to_vec());
    }
    let entry = Entry::Round { noise_multiplier: setting.noise_multiplier, batching: setting.batching };
    let charged = match setting.personal {
        None => vec![(entry, setting.rounds)],
        Some(_) => vec![(Entry::Allowance, 1), (entry, setting.rounds)],
    };
    assert_eq!(run.state().history, charged, "the promise is the price of what was charged");
    trace
}

/// What is wrong with a copy of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// The first layer gets no noise.
    NoNoiseOnTheFirstLayer,
    /// The mean of the batch is clipped, as one does without privacy, not the gradient of each example. (To clip the sum to the norm of
    /// one is the lesser fault: neighbors are twice that apart, which is [`Fault::HalfTheNoise`].)
    MeanClipped,
    /// Nothing is clipped.
    NotClipped,
    /// Half of the noise that is charged.
    HalfTheNoise,
    /// Sum and noise are divided by the number of examples that are in the batch: the size of the noise tells how many there were.
    DividedByTheRealSize,
}

/// The step once more, with room for a fault.
#[expect(clippy::cast_possible_truncation, reason = "single precision is what parameters are in")]
fn copy<M: Model>(
    fault: Fault,
    flock: &Flock<M>,
    examples: &Examples,
    setting: &Setting,
    source: &mut Source,
) -> Trace {
    let (public_size, clip) = (flock.everybody.len(), clip());
    let sampler = setting.sampler(public_size, examples.len());
    let mut summer = Summer::new(
        &flock.model,
        examples,
        sampler.expected(),
        Neighbors::AddRemove,
        &mut Source::insecure_from_seed(9),
    );
    let first_layer: usize = flock.model.tensors().iter().take(2).map(Tensor::len).sum();
    let mut trace = vec![flock.start.clone()];
    for _ in 0..setting.rounds {
        let mut parameters = trace.last().expect("the start").clone();
        let batch: Vec<u32> = (0u32..).take(examples.len()).filter(|_| joins(setting.round().0, source)).collect();
        let scaling = match fault {
            Fault::MeanClipped | Fault::NotClipped => Scaling::None,
            Fault::None | Fault::NoNoiseOnTheFirstLayer | Fault::HalfTheNoise | Fault::DividedByTheRealSize => {
                Scaling::Clip(&clip)
            }
        };
        summer.add_up(&parameters, &batch, scaling).expect("gradients");
        let mut noise_std = setting.noise_multiplier * summer.l2_sensitivity(&clip);
        let mut sum = summer.total().expose().to_vec();
        let mut noise = vec![0.0; sum.len()];
        standard_normals(source, &mut noise);
        let mut divisor = sampler.divisor();
        match fault {
            Fault::None | Fault::NotClipped => {}
            Fault::NoNoiseOnTheFirstLayer => noise[..first_layer].fill(0.0),
            Fault::MeanClipped => {
                let norm = sum.iter().map(|x| x * x).sum::<f64>().sqrt() / divisor;
                let factor = (CLIP_NORM / norm).min(1.0);
                sum.iter_mut().for_each(|x| *x *= factor);
            }
            Fault::HalfTheNoise => noise_std /= 2.0,
            Fault::DividedByTheRealSize => divisor = count(batch.len().max(1)),
        }
        let rate = MOVE * sampler.divisor();
        for ((parameter, sum), noise) in parameters.iter_mut().zip(sum).zip(noise) {
            *parameter -= (rate * ((sum + noise_std * noise) / divisor)) as f32;
        }
        trace.push(parameters);
    }
    trace
}

/// A coin that says yes with this probability, to 53 bits.
#[expect(clippy::cast_precision_loss, reason = "53 bits")]
fn joins(probability: f64, source: &mut Source) -> bool {
    ((source.bits() >> 11) as f64) < probability * 2f64.powi(53)
}

// How it is audited.

/// How canaries are scored.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Score {
    /// By how much more probable the moves of its own parameters are if it is there: the best there is against the honest step.
    Moves,
    /// By how small the moves of parameters that nobody has once were.
    Noise,
}

/// `runs` disjoint runs, in each of which a coin is tossed for every canary.
fn audit<M: Model>(
    flock: &Flock<M>,
    setting: &Setting,
    score: Score,
    runs: u64,
    seed: u64,
    mut train: impl FnMut(&Flock<M>, &Examples, &Setting, Source) -> Trace,
) -> Audit {
    let mut source = Source::insecure_from_seed(seed);
    let mut audit = Audit::default();
    for _ in 0..runs {
        let coins: Vec<bool> = (0..flock.canaries).map(|_| coin(&mut source)).collect();
        let is_there = |i: usize| coins.get(i).copied().unwrap_or(true);
        let everybody = &flock.everybody;
        let examples = if setting.neighbors() == Neighbors::AddRemove {
            everybody.select(&(0..everybody.len()).filter(|&i| is_there(i)).collect::<Vec<usize>>())
        } else {
            // An input of zeros says nothing on a canary's own parameters.
            let silent = |i: usize| everybody.input(i).iter().map(move |&x| if is_there(i) { x } else { 0.0 });
            everybody.with_inputs(everybody.shape(), (0..everybody.len()).flat_map(silent).collect()).expect("examples")
        };
        let trace = train(flock, &examples, setting, source.child());
        audit.coins.extend(coins);
        audit.scores.extend(match score {
            Score::Moves => by_moves(flock, setting, &trace),
            Score::Noise => by_noise(flock, &trace),
        });
    }
    audit
}

/// The logarithm of the likelihood ratio, a sum over rounds.
fn by_moves<M: Model>(flock: &Flock<M>, setting: &Setting, trace: &Trace) -> Vec<f64> {
    let (everybody, clip) = (flock.everybody.len(), clip());
    let mut summer =
        Summer::new(&flock.model, &flock.everybody, everybody, setting.neighbors(), &mut Source::insecure_from_seed(9));
    let indices: Vec<u32> = (0u32..).take(everybody).collect();
    let (chance, scale) = setting.round();
    let variance = (setting.noise_multiplier * summer.l2_sensitivity(&clip) * scale).powi(2);
    // Who has used up a budget of their own is silent from then on.
    let audible = setting.personal.map_or(f64::INFINITY, |mu| mu * mu * variance);
    let mut scores = vec![0.0; flock.canaries];
    for (_, pair) in trace.windows(2).enumerate().take_while(|(round, _)| count(*round) < audible) {
        // Everybody's gradient at once: on a canary's own parameters there is nothing but its own.
        summer.add_up(&pair[0], &indices, Scaling::Clip(&clip)).expect("gradients");
        let gradients = summer.total().expose();
        for (canary, score) in scores.iter_mut().enumerate() {
            let own = canary * flock.own..(canary + 1) * flock.own;
            let (mut along, mut square) = (0.0, 0.0);
            for i in own {
                along += gradients[i] * f64::from(pair[0][i] - pair[1][i]) / MOVE;
                square += gradients[i] * gradients[i];
            }
            let loss = (along - square / 2.0) / variance;
            *score += if loss > 0.0 {
                loss + ln(chance + (1.0 - chance) * exp(-loss))
            } else if chance < 1.0 {
                ln_1p(chance * exp_m1(loss))
            } else {
                loss
            };
        }
    }
    scores
}

/// One canary to a run. The noise of the round with the least.
fn by_noise<M: Model>(flock: &Flock<M>, trace: &Trace) -> Vec<f64> {
    let unused = flock.everybody.len()..;
    let squares = |pair: &[Vec<f32>]| -> f64 {
        pair[0][unused.clone()].iter().zip(&pair[1][unused.clone()]).map(|(a, b)| f64::from(a - b).powi(2)).sum()
    };
    vec![-trace.windows(2).map(squares).fold(f64::INFINITY, f64::min)]
}

fn copied<M: Model>(fault: Fault) -> impl Fn(&Flock<M>, &Examples, &Setting, Source) -> Trace {
    move |flock, examples, setting, mut source| copy(fault, flock, examples, setting, &mut source)
}

// The cases.

const POISSON: Batching = Batching::Poisson { sampling_probability: 0.25 };

/// A mechanism that meets (ε, 0) exactly, and whose every guess is right with the same probability, is convicted as often as was said.
#[test]
fn the_auditor_errs_as_rarely_as_it_says() {
    for (guesses, epsilon) in [(50, 0.5), (300, 1.0), (300, 4.0)] {
        let law = binomial(guesses, 1.0 / (1.0 + exp(-epsilon)));
        assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let wrongly = |right: &usize| lower_bound(guesses, guesses, *right, 0.0, ERROR) > epsilon;
        let convicted: f64 = (0..=guesses).filter(wrongly).map(|right| law[right]).sum();
        assert!(convicted <= ERROR, "{guesses} {epsilon} {convicted}");
    }
    // One that gives every coin away with probability δ is (0, δ)-DP.
    for delta in [1e-6, 1e-3] {
        assert!(p_value(100, 100, 100, 0.0, delta) >= delta);
    }
    // All of 1000 right: the share that explains it with probability 1/1000 is 1000^(−1/1000).
    let exact = -ln(exp(ln(1000.0) / 1000.0) - 1.0);
    let bound = lower_bound(1000, 1000, 1000, 0.0, ERROR);
    assert!(exact - 0.02 < bound && bound <= exact, "{bound} {exact}");
}

/// Seeds are of the case: no two have the same coins.
#[test]
fn training_as_it_ships_keeps_its_promise() {
    let flock = softmax(1000);
    let cases = [
        ("one step", Batching::Full, 1),
        ("full batches", Batching::Full, 30),
        ("poisson batches", POISSON, 30),
        ("bins", Batching::BallsAndBins { batches: 4 }, 2),
    ];
    for (seed, (name, batching, rounds)) in (100..).zip(cases) {
        for (seed, epsilon) in (seed * 10..).zip([1.0, 4.0, 8.0]) {
            let setting = Setting::new(batching, rounds, epsilon, 1e-7);
            let audit = audit(&flock, &setting, Score::Moves, 1, seed, shipped);
            let bound = check(&format!("{name} at {epsilon}"), Acquitted, &audit, &setting);
            // The auditor is not blind.
            assert!(epsilon < 8.0 || bound > 0.5, "{name}: {bound}");
        }
    }
}

/// Each example has a budget of its own, which a canary has used up long before the end.
#[test]
fn budgets_for_each_example_keep_their_promise() {
    let flock = softmax(1000);
    for (seed, mu) in (150..).zip([0.25, 1.5]) {
        let steps = Setting {
            batching: Batching::Full,
            noise_multiplier: 3.0 / mu,
            rounds: 30,
            delta: 1e-7,
            personal: Some(mu),
        };
        let audit = audit(&flock, &steps, Score::Moves, 1, seed, shipped);
        let bound = check(&format!("budgets of {mu}"), Acquitted, &audit, &steps);
        assert!(mu < 1.0 || bound > 0.8, "{bound}");
    }
}

#[test]
fn a_layer_without_noise_is_convicted() {
    let flock = two_layers(1000);
    for (seed, (batching, rounds)) in (200..).zip([(Batching::Full, 4), (POISSON, 20)]) {
        for (seed, epsilon) in (seed * 10..).step_by(3).zip([1.0, 3.0]) {
            let setting = Setting::new(batching, rounds, epsilon, 1e-7);
            let name = |what: &str| format!("two layers, {what}, {batching:?} at {epsilon}");
            let of = |fault, seed| audit(&flock, &setting, Score::Moves, 1, seed, copied(fault));
            let runs = audit(&flock, &setting, Score::Moves, 1, seed, shipped);
            check(&name("as it ships"), Acquitted, &runs, &setting);
            check(&name("a copy"), Acquitted, &of(Fault::None, seed + 1), &setting);
            check(&name("a layer without noise"), Convicted, &of(Fault::NoNoiseOnTheFirstLayer, seed + 2), &setting);
        }
    }
}

#[test]
fn whoever_does_not_clip_each_example_is_convicted() {
    let flock = softmax(1000);
    for (seed, (batching, rounds)) in (300..).zip([(Batching::Full, 4), (POISSON, 20)]) {
        for (seed, epsilon) in (seed * 10..).step_by(3).zip([1.0, 3.0]) {
            let setting = Setting::new(batching, rounds, epsilon, 1e-7);
            let name = |what: &str| format!("softmax, {what}, {batching:?} at {epsilon}");
            let of = |fault, seed| audit(&flock, &setting, Score::Moves, 1, seed, copied(fault));
            check(&name("a copy"), Acquitted, &of(Fault::None, seed), &setting);
            check(&name("the mean clipped"), Convicted, &of(Fault::MeanClipped, seed + 1), &setting);
            check(&name("nothing clipped"), Convicted, &of(Fault::NotClipped, seed + 2), &setting);
        }
    }
}

/// One canary and one other person to a run, and many parameters that neither has. The noise in these is public, if its size is.
#[test]
fn division_by_the_real_size_of_a_batch_is_convicted() {
    let flock = Holes::flock(64, 2, 1);
    let half = Batching::Poisson { sampling_probability: 0.5 };
    for (seed, (batching, rounds)) in (400..).zip([(Batching::Full, 1), (half, 8)]) {
        let setting = Setting::new(batching, rounds, 1.0, 1e-7);
        for (seed, score) in (seed * 10..).step_by(3).zip([Score::Noise, Score::Moves]) {
            let name = |what: &str| format!("tiny runs, {what}, {batching:?} by {score:?}");
            let of = |fault, seed| audit(&flock, &setting, score, 400, seed, copied(fault));
            check(&name("as they ship"), Acquitted, &audit(&flock, &setting, score, 400, seed, shipped), &setting);
            check(&name("copies"), Acquitted, &of(Fault::None, seed + 1), &setting);
            if score == Score::Noise {
                let divided = of(Fault::DividedByTheRealSize, seed + 2);
                check(&name("divided by the real size"), Convicted, &divided, &setting);
            }
        }
    }
}

/// The least of the faults: what half the noise shows beyond its promise, it shows of few. So there are a million canaries.
#[test]
fn half_the_noise_is_convicted() {
    let flock = Holes::flock(1 << 14, 1 << 14, 1 << 14);
    let setting = Setting::new(Batching::Full, 1, 1.85, 1e-8);
    let of = |fault, seed| audit(&flock, &setting, Score::Moves, 64, seed, copied(fault));
    let runs = audit(&flock, &setting, Score::Moves, 64, 500, shipped);
    check("a million canaries, as it ships", Acquitted, &runs, &setting);
    check("a million canaries, a copy", Acquitted, &of(Fault::None, 501), &setting);
    check("a million canaries, half the noise", Convicted, &of(Fault::HalfTheNoise, 502), &setting);
}
