//! The file that says what is to be trained, on what, and within which budget.

use anyhow::Context;
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{AnyRule, Budget, Filter, FixedOrder, Gdp, Mixture, Zcdp};
use paygo_accounting::params::{Neighbors, NoiseMultiplier, Order};
use paygo_accounting::schedule::{Schedule, ValidationDecay};
use paygo_accounting::wire::{Neighbors as NeighborWords, Number};
use paygo_noise::Source;
use paygo_training::batching::{Batching, Sampler};
use paygo_training::data::csv;
use paygo_training::data::schema::{Missing, Schema};
use paygo_training::data::sets::{Set, Split};
use paygo_training::data::{Examples, Shape, generate};
use paygo_training::gate::Gate;
use paygo_training::gradient::Clip;
use paygo_training::model::known::{logistic, perceptron};
use paygo_training::model::{
    Activation, Convolution, Function, Kind, Layer, Linear, Model as _, Network, Normalization, Pool, Residual,
    Sequence,
};
use paygo_training::optimizer::{Method, Optimizer, Rate};
use paygo_training::pca::{Projection, principal_components};
use paygo_training::personal::Allowance;
use paygo_training::policy::{Adaptive, FineTune, Lever, Policy, Progress};
use paygo_training::run::{Stop, Target};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// All of a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    pub(super) data: Data,
    pub(super) model: Model,
    pub(super) batches: Batching,
    /// Without it, training is not private.
    pub(super) privacy: Option<Privacy>,
    pub(super) optimizer: Method,
    pub(super) learning_rate: LearningRate,
    #[serde(default)]
    pub(super) stop: StopAt,
    /// A safetensors file to start from: a model trained before, on other data.
    pub(super) start_from: Option<PathBuf>,
}

/// Where the examples come from.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Data {
    /// A public data set, or `digits` or `census`: made up on the spot.
    set: Option<String>,
    /// How many made-up examples.
    count: Option<usize>,
    /// Private examples from a CSV file.
    csv: Option<PathBuf>,
    /// Its columns: a TOML file.
    schema: Option<PathBuf>,
    /// Test examples from another CSV file with the same columns.
    test_csv: Option<PathBuf>,
    /// The number that sums are divided by, a constant you choose: about as many as there are examples.
    pub(super) public_size: Option<u64>,
    /// Look at the inputs along these many private principal components, charged to the same budget.
    pub(super) principal_components: Option<Components>,
    /// You declare that the test examples are public: accuracy on them is shown, and may steer the noise.
    #[serde(default)]
    pub(super) public_test: bool,
}

/// Principal components with noise.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Components {
    count: usize,
    noise_multiplier: f64,
}

impl Components {
    /// The shape of inputs that are seen along them.
    pub(super) fn shape(&self, input: Shape) -> anyhow::Result<Shape> {
        let Self { count, .. } = *self;
        anyhow::ensure!(
            (1..=input.len()).contains(&count),
            "data.principal_components.count = {count}; expected 1 to {}, as many as an input has numbers",
            input.len()
        );
        Ok(Shape::vector(count))
    }

    /// Finds them, charged to the gate; or takes up those that a run had.
    pub(super) fn find(
        &self,
        examples: &Examples,
        gate: &mut dyn Gate,
        source: &mut Source,
        before: Option<Vec<f32>>,
    ) -> anyhow::Result<Projection> {
        match before {
            Some(components) => Ok(Projection::restore(examples.shape(), components)?),
            None => Ok(principal_components(examples, self.count, self.noise()?, gate, source)?),
        }
    }

    pub(super) fn noise(&self) -> anyhow::Result<NoiseMultiplier> {
        NoiseMultiplier::new(self.noise_multiplier).context("data.principal_components")
    }
}

/// What is learned.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Model {
    /// One linear layer, one output for each class.
    Softmax,
    /// One linear layer with one output, for two classes.
    Logistic,
    /// Hidden layers of so many units.
    Perceptron {
        hidden: Vec<usize>,
        #[serde(default = "relu")]
        activation: Function,
    },
    /// Layer by layer; the last linear layer, to the classes, is added.
    Layers(Vec<LayerWords>),
}

const fn relu() -> Function {
    Function::Relu
}

/// One layer.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum LayerWords {
    Linear(usize),
    Relu,
    Tanh,
    Convolution {
        channels: usize,
        size: usize,
        #[serde(default = "one")]
        stride: usize,
        #[serde(default)]
        padding: usize,
    },
    MaxPool {
        size: usize,
        stride: usize,
    },
    MeanPool {
        size: usize,
        stride: usize,
    },
    Normalization {
        groups: usize,
    },
    Residual {
        inside: Vec<LayerWords>,
        /// Channels and stride of a convolution of size 1 around it, where the shapes differ.
        shortcut: Option<(usize, usize)>,
    },
}

const fn one() -> usize {
    1
}

/// What makes it private.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Privacy {
    pub(super) epsilon: Number,
    pub(super) delta: Number,
    #[serde(default = "add_remove")]
    neighbors: NeighborWords,
    #[serde(default = "record")]
    pub(super) privacy_unit: String,
    /// `gdp`, `zcdp`, `mixture` or `fixed-order` [default: the tightest that takes what is asked].
    filter: Option<FilterWord>,
    /// Each example's gradient is scaled down to this norm.
    clip_norm: f64,
    /// Clip each layer instead, and pay for every layer.
    #[serde(default)]
    clip_by_layer: bool,
    noise: Noise,
    /// For filter fixed-order: the Rényi order, fixed in advance [default: the one at which the most rounds fit].
    order: Option<f64>,
    /// A budget for each example, instead of one for all.
    #[serde(default)]
    individual: bool,
}

/// Rényi orders to choose from.
const ORDERS: [f64; 16] = [1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0, 24.0, 32.0, 64.0, 128.0, 512.0];

const fn add_remove() -> NeighborWords {
    NeighborWords::AddRemove
}

fn record() -> String {
    "record".to_owned()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FilterWord {
    Gdp,
    Zcdp,
    Mixture,
    FixedOrder,
}

/// How noise changes.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Noise {
    Uniform { noise_multiplier: f64 },
    Time { noise_multiplier: f64, rate: f64 },
    Exponential { noise_multiplier: f64, rate: f64 },
    Step { noise_multiplier: f64, rate: f64, period: u64 },
    Polynomial { noise_multiplier: f64, rate: f64, last: f64, period: u64 },
    Validation { noise_multiplier: f64, rate: f64, threshold: f64, period: usize, window: usize },
    Adaptive { noise_multiplier: f64, step: f64, reserve: u64, progress: Progress },
    AdaptiveBatch { noise_multiplier: f64, step: f64, least: f64, reserve: u64, progress: Progress },
    FineTune { noise_multiplier: f64, step: f64, least: f64, progress: Progress },
}

/// A number, or how it changes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged, expecting = "a number, or { linear = … }, { step = … } or { cosine = … }")]
pub(super) enum LearningRate {
    Constant(f64),
    Changing(Rate),
}

/// When it ends.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StopAt {
    epochs: Option<u64>,
    steps: Option<u64>,
    target: Option<Target>,
}

impl Config {
    /// Reads the text of a file. An error says what may stand where the fault is.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let key = error.span().and_then(|span| key_at(text, span.start)).unwrap_or_default();
            match HINTS.iter().find(|(name, _)| *name == key) {
                Some((_, hint)) => anyhow::anyhow!("{error}hint: {key} = {hint}"),
                None => error.into(),
            }
        })
    }

    pub(super) fn optimizer(&self, parameters: usize) -> anyhow::Result<Optimizer> {
        let rate = match self.learning_rate {
            LearningRate::Constant(rate) => Rate::Constant(rate),
            LearningRate::Changing(rate) => rate,
        };
        Ok(Optimizer::new(self.optimizer, rate, parameters)?)
    }

    /// How batches are drawn.
    pub(super) fn sampler(&self, neighbors: Neighbors, public_size: u64, examples: usize) -> anyhow::Result<Sampler> {
        Sampler::new(self.batches, neighbors, public_size, examples).map_err(|error| {
            anyhow::anyhow!(
                "batches, privacy.neighbors: {error}\nhint: full batches go with all neighbors, poisson and balls_and_bins with add-remove \
                 and zero-out, shuffled with zero-out and replace-one"
            )
        })
    }

    /// Whether the budget covers what is asked for, where that is known in advance: what it covers, in words, if it does not.
    pub(super) fn forecast(&self, sampler: &Sampler, network: &Network) -> anyhow::Result<Option<String>> {
        let Some(privacy) = self.privacy.as_ref().filter(|privacy| !privacy.individual) else { return Ok(None) };
        let rounds = |steps: u64| steps.div_ceil(sampler.steps_per_round());
        let by_epochs = self.stop.epochs.map(|epochs| epochs.saturating_mul(sampler.rounds_per_epoch()));
        let Some(wanted) = by_epochs.into_iter().chain(self.stop.steps.map(rounds)).min() else { return Ok(None) };
        // A factor on the noise.
        let covered = |factor: f64| -> anyhow::Result<u64> {
            let scaled = Privacy { noise: privacy.noise.scaled(factor), ..privacy.clone() };
            scaled.check(sampler, network)?.covered(sampler, wanted)
        };
        let now = covered(1.0)?;
        if now >= wanted || privacy.noise.counts() || matches!(privacy.noise, Noise::Validation { .. }) {
            return Ok(None);
        }
        let steps = |rounds: u64| rounds.saturating_mul(sampler.steps_per_round());
        let mut text = format!("the budget covers {} of the {} steps that are asked for", steps(now), steps(wanted));
        let (mut low, mut high) = (1.0, 2.0);
        while high < 64.0 && covered(high)? < wanted {
            (low, high) = (high, 2.0 * high);
        }
        if covered(high)? < wanted {
            return Ok(Some(text));
        }
        for _ in 0..8 {
            let middle = f64::midpoint(low, high);
            *(if covered(middle)? < wanted { &mut low } else { &mut high }) = middle;
        }
        // Three digits, upwards.
        let multiplier = (privacy.noise.multiplier() * high * 100.0).ceil() / 100.0;
        text += &format!("; with noise_multiplier = {multiplier} it would cover all of them");
        Ok(Some(text))
    }

    /// What needs an end of its own has one, and a budget for each example leaves none for noisy counts.
    pub(super) fn check_stop(&self) -> anyhow::Result<()> {
        let individual = self.privacy.as_ref().map(Privacy::is_individual);
        let ends = self.stop.epochs.is_some() || self.stop.steps.is_some();
        anyhow::ensure!(
            ends || individual == Some(false),
            "stop.epochs or stop.steps is missing: {} never ends by itself",
            if individual.is_none() { "training without [privacy]" } else { "training with a budget for each example" }
        );
        for (name, limit) in [("stop.epochs", self.stop.epochs), ("stop.steps", self.stop.steps)] {
            anyhow::ensure!(limit != Some(0), "{name} = 0; expected at least 1");
        }
        let counts = self.privacy.as_ref().is_some_and(|privacy| privacy.noise.counts());
        for (name, given) in [("stop.target", self.stop.target.is_some()), ("privacy.noise", counts)] {
            anyhow::ensure!(
                individual != Some(true) || !given,
                "{name}: a budget for each example leaves none for noisy counts of all of them"
            );
        }
        Ok(())
    }

    pub(super) const fn stop(&self) -> Stop {
        Stop { epochs: self.stop.epochs, steps: self.stop.steps, target: self.stop.target }
    }

    /// The relation.
    pub(super) fn neighbors(&self) -> Neighbors {
        self.privacy.as_ref().map_or(Neighbors::AddRemove, |privacy| Neighbors::from(privacy.neighbors))
    }

    /// The relation, and the number that sums are divided by.
    pub(super) fn size(&self, examples: &Examples) -> anyhow::Result<(Neighbors, u64)> {
        if let Some(size) = self.data.public_size {
            anyhow::ensure!((1..=1 << 30).contains(&size), "data.public_size = {size}; expected 1 to 2^30");
        }
        if let Batching::BallsAndBins { batches } = self.batches {
            let allowed = "batches.balls_and_bins.batches";
            anyhow::ensure!((1..=1 << 20).contains(&batches), "{allowed} = {batches}; expected 1 to 2^20");
        }
        let neighbors = self.privacy.as_ref().map(|privacy| Neighbors::from(privacy.neighbors));
        match (neighbors, self.data.public_size) {
            (Some(Neighbors::AddRemove), None) => anyhow::bail!(
                "data.public_size is missing: sums are divided by a public number, and under add-remove neighbors the number of \
                 examples is private\nhint: public_size = 60000, a constant you choose, about as many as there are"
            ),
            (neighbors, Some(size)) => Ok((neighbors.unwrap_or(Neighbors::AddRemove), size)),
            (neighbors, None) => Ok((neighbors.unwrap_or(Neighbors::AddRemove), examples.len() as u64)),
        }
    }
}

/// What may stand at a key.
const HINTS: [(&str, &str); 7] = [
    (
        "batches",
        "\"full\", { poisson = { sampling_probability = 0.01 } }, { balls_and_bins = { batches = 100 } } or { shuffled = { size = 600 } }",
    ),
    ("noise", "{ uniform = { noise_multiplier = 1.5 } }, or another of docs/training.md"),
    (
        "learning_rate",
        "0.5, { linear = { first = 0.5, last = 0.1, epochs = 20 } }, { cosine = { first = 0.5, last = 0.0, epochs = 20 } } or { step = { first = 0.5, factor = 0.5, period = 5 } }",
    ),
    ("model", "\"softmax\" or \"logistic\", above the first [table]; or a table [model] with perceptron or layers"),
    ("target", "{ accuracy = 0.9, noise_std = 20.0, period = 1 }"),
    ("perceptron", "{ hidden = [100], activation = \"relu\" }, or \"tanh\""),
    ("principal_components", "{ count = 60, noise_multiplier = 16.0 }"),
];

/// The key whose value a place in a TOML text belongs to, if it is on that line.
fn key_at(text: &str, place: usize) -> Option<&str> {
    let start = text.get(..place)?.rfind('\n').map_or(0, |end| end + 1);
    let (key, _) = text[start..].lines().next()?.split_once('=')?;
    Some(key.trim())
}

impl Data {
    /// The declared columns, as they were written.
    pub(super) fn schema_text(&self, beside: &Path) -> Option<String> {
        std::fs::read_to_string(beside.join(self.schema.as_ref()?)).ok()
    }

    /// Reads or makes the examples.
    pub(super) fn load(&self, folder: Option<&Path>, beside: &Path, neighbors: Neighbors) -> anyhow::Result<Split> {
        let near = |path: &PathBuf| if path.is_absolute() { path.clone() } else { beside.join(path) };
        match (&self.set, &self.csv) {
            (Some(name), None) => {
                anyhow::ensure!(
                    self.schema.is_none() && self.test_csv.is_none(),
                    "data.schema and data.test_csv go with data.csv"
                );
                let made_up = |make: fn(usize, u64) -> Examples| {
                    let count = self.count.unwrap_or(10_000);
                    anyhow::ensure!((1..=10_000_000).contains(&count), "data.count = {count}; expected 1 to 10000000");
                    Ok(Split { train: make(count, 1), test: make(2_000, 2) })
                };
                match name.as_str() {
                    "digits" => made_up(generate::digits),
                    "census" => made_up(generate::census),
                    name => {
                        let set: Set = name.parse().map_err(|error| {
                            anyhow::anyhow!("data.set: {error}; made up on the spot: digits, census")
                        })?;
                        anyhow::ensure!(
                            self.count.is_none(),
                            "data.count goes with made-up examples: digits or census"
                        );
                        let folder = folder.with_context(|| {
                            format!(
                                "the data set {name} is looked for in a folder\nhint: --data DIR, or PAYGO_DATA=DIR"
                            )
                        })?;
                        Ok(set.load(folder)?)
                    }
                }
            }
            (None, Some(path)) => {
                let schema =
                    self.schema.as_ref().context("data.schema is missing: the columns of data.csv, as a TOML file")?;
                let at = near(schema);
                let text = std::fs::read_to_string(&at).with_context(|| at.display().to_string())?;
                let schema = Schema::from_toml(&text).with_context(|| at.display().to_string())?;
                let leaves_out = schema.layout().missing == Some(Missing::SkipRow);
                anyhow::ensure!(
                    !leaves_out || neighbors == Neighbors::AddRemove,
                    "missing = \"skip row\" goes with neighbors = \"add-remove\": under {neighbors} nobody may change how many rows there are"
                );
                anyhow::ensure!(
                    self.public_test == self.test_csv.is_some(),
                    "data.test_csv and data.public_test = true go together: test examples are looked at only where you declare them public"
                );
                let train = csv::read(&near(path), &schema)?;
                anyhow::ensure!(!train.is_empty(), "{}: no examples", near(path).display());
                let test = match &self.test_csv {
                    Some(path) => csv::read(&near(path), &schema)?,
                    None => train.select(&[]),
                };
                Ok(Split { train, test })
            }
            (Some(_), Some(_)) | (None, None) => anyhow::bail!("give data.set or data.csv, one of them"),
        }
    }
}

impl Model {
    /// The network for such examples.
    pub(super) fn network(&self, input: Shape, classes: usize) -> anyhow::Result<Network> {
        let network = self.build(input, classes)?;
        let parameters = network.parameters();
        anyhow::ensure!(parameters <= 1 << 28, "model: {parameters} parameters; expected at most 2^28");
        Ok(network)
    }

    fn build(&self, input: Shape, classes: usize) -> anyhow::Result<Network> {
        match self {
            Self::Logistic => {
                anyhow::ensure!(
                    classes == 2,
                    "model = \"logistic\" tells 2 classes apart; there are {classes}\nhint: softmax"
                );
                Ok(logistic(input))
            }
            Self::Softmax => Ok(perceptron(input, &[], Function::Relu, classes)),
            Self::Perceptron { hidden, activation } => {
                hidden.iter().try_for_each(|&units| check_units(units, "model.perceptron.hidden"))?;
                Ok(perceptron(input, hidden, *activation, classes))
            }
            Self::Layers(words) => {
                let mut layers = build(words, input, "model.layers")?;
                let last = layers.last().map_or(input, |layer| layer.output());
                layers.push(Box::new(Linear::new(last.len(), classes)));
                Ok(Network::new(Sequence::new(input, layers)))
            }
        }
    }
}

fn check_units(units: usize, place: &str) -> anyhow::Result<()> {
    anyhow::ensure!((1..=1 << 20).contains(&units), "{place}: a layer of {units} units; expected 1 to 2^20");
    Ok(())
}

fn build(words: &[LayerWords], mut shape: Shape, place: &str) -> anyhow::Result<Vec<Box<dyn Layer>>> {
    let mut layers: Vec<Box<dyn Layer>> = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let fits = |what: &str| format!("{place}[{index}]: {what} does not fit an input of shape {shape}");
        let layer: Box<dyn Layer> = match word {
            LayerWords::Linear(units) => {
                check_units(*units, &format!("{place}[{index}]"))?;
                Box::new(Linear::new(shape.len(), *units))
            }
            LayerWords::Relu => Box::new(Activation::new(Function::Relu, shape)),
            LayerWords::Tanh => Box::new(Activation::new(Function::Tanh, shape)),
            LayerWords::Convolution { channels, size, stride, padding } => {
                check_units(*channels, &format!("{place}[{index}]"))?;
                let sizes = [size, stride, padding];
                anyhow::ensure!(sizes.iter().all(|size| **size <= 1 << 16), "{}", fits("the convolution"));
                Box::new(
                    Convolution::new(shape, *channels, *size, *stride, *padding)
                        .with_context(|| fits("the convolution"))?,
                )
            }
            LayerWords::MaxPool { size, stride } => {
                Box::new(Pool::new(Kind::Max, shape, *size, *stride).with_context(|| fits("the pooling"))?)
            }
            LayerWords::MeanPool { size, stride } => {
                Box::new(Pool::new(Kind::Mean, shape, *size, *stride).with_context(|| fits("the pooling"))?)
            }
            LayerWords::Normalization { groups } => {
                Box::new(Normalization::new(shape, *groups).with_context(|| fits("the normalization"))?)
            }
            LayerWords::Residual { inside, shortcut } => {
                let inside = build(inside, shape, &format!("{place}[{index}].inside"))?;
                anyhow::ensure!(!inside.is_empty(), "{place}[{index}]: a residual block with nothing inside");
                let shortcut: Option<Box<dyn Layer>> = match shortcut {
                    Some((channels, stride)) => Some(Box::new(
                        Convolution::new(shape, *channels, 1, *stride, 0).with_context(|| fits("the shortcut"))?,
                    )),
                    None => None,
                };
                let block = Residual::new(Sequence::new(shape, inside), shortcut);
                Box::new(
                    block.with_context(|| format!("{place}[{index}]: inside and shortcut end in different shapes"))?,
                )
            }
        };
        shape = layer.output();
        layers.push(layer);
    }
    Ok(layers)
}

/// A privacy section, checked against sampler and model.
pub(super) struct Checked {
    pub(super) clip: Clip,
    pub(super) policy: Policy,
    pub(super) filter: Filter<AnyRule>,
    /// The expected run: what filter and odometer are best at.
    pub(super) plan: Cost,
    pub(super) allowance: Option<Allowance>,
}

impl Checked {
    /// How many rounds the budget covers, of those that are wanted, where noise follows a schedule.
    fn covered(&self, sampler: &Sampler, wanted: u64) -> anyhow::Result<u64> {
        let mut filter = self.filter.clone();
        let is_uniform = matches!(self.policy, Policy::Schedule(Schedule::Uniform { .. }));
        let at_once = if is_uniform { wanted } else { sampler.rounds_per_epoch() };
        let mut covered = 0;
        for epoch in 0.. {
            let Some(noise) = self.policy.noise_multiplier(epoch).filter(|_| covered < wanted) else { break };
            let cost = sampler.round(noise)?.cost().clone();
            let more = at_once.min(wanted - covered);
            let room = filter.room_for(&filter.price(&cost)?, more);
            if room > 0 {
                let _ = filter.request(&cost.repeat(room)?)?;
            }
            covered += room;
            if room < more {
                break;
            }
        }
        Ok(covered)
    }
}

/// The policy of training that is not private: noise is not looked at.
pub(super) fn no_policy() -> anyhow::Result<Policy> {
    Ok(Policy::Schedule(Schedule::Uniform { initial: NoiseMultiplier::new(1.0)? }))
}

impl Privacy {
    /// Whether each example has a budget of its own.
    pub(super) const fn is_individual(&self) -> bool {
        self.individual
    }

    pub(super) fn check(&self, sampler: &Sampler, network: &Network) -> anyhow::Result<Checked> {
        let neighbors = Neighbors::from(self.neighbors);
        let clip = if self.clip_by_layer {
            Clip::by_layer(self.clip_norm, network.groups())?
        } else {
            Clip::whole(self.clip_norm)?
        };
        anyhow::ensure!(
            !self.individual || neighbors == Neighbors::ZeroOut,
            "privacy.individual goes with neighbors = \"zero-out\", where the others keep their places; given {neighbors}"
        );
        let policy = self.noise.policy(sampler).context("privacy.noise")?;
        anyhow::ensure!(
            !self.privacy_unit.trim().is_empty(),
            "privacy.privacy_unit is empty; expected a name for what one row is"
        );
        let budget = Budget::from_decimal(&text(&self.epsilon), &text(&self.delta))?;
        anyhow::ensure!(
            budget.epsilon().get().is_finite(),
            "privacy.epsilon = {}; expected less than 1e308",
            text(&self.epsilon)
        );
        let noise = policy.noise_multiplier(0).context("the schedule has no noise for the first epoch")?;
        let one = sampler.round(noise)?.cost().clone();
        let is_full = matches!(sampler.batching(), Batching::Full);
        let kind = self.filter.unwrap_or(match (self.individual, sampler.batching()) {
            (true, Batching::Poisson { .. }) => FilterWord::FixedOrder,
            (_, Batching::Full) => FilterWord::Gdp,
            (_, Batching::Shuffled { .. }) => FilterWord::Zcdp,
            (_, Batching::Poisson { .. } | Batching::BallsAndBins { .. }) => FilterWord::Mixture,
        });
        anyhow::ensure!(
            kind != FilterWord::Gdp || is_full,
            "filter gdp takes full batches: sampled noise has no proved mu"
        );
        anyhow::ensure!(
            self.order.is_none() || kind == FilterWord::FixedOrder,
            "privacy.order goes with filter fixed-order, which poisson batches with a budget for each example have"
        );
        let fixed = || -> anyhow::Result<FixedOrder> {
            if let Some(order) = self.order {
                return Ok(FixedOrder::new(Order::new(order)?, budget)?);
            }
            // The order at which the most rounds fit; it is known before any data is seen.
            let rounds = |rule: &FixedOrder| {
                let filter = Filter::new(rule.clone(), neighbors);
                filter.price(&one).map_or(0, |price| filter.room_for(&price, 10_000_000))
            };
            let best = ORDERS
                .iter()
                .filter_map(|&order| FixedOrder::new(Order::new(order).ok()?, budget).ok())
                .max_by_key(rounds);
            best.context("no Rényi order can serve this epsilon and delta")
        };
        let rule: AnyRule = match kind {
            FilterWord::Gdp => Gdp::new(budget)?.into(),
            FilterWord::Zcdp => Zcdp::new(budget)?.into(),
            FilterWord::FixedOrder => fixed()?.into(),
            FilterWord::Mixture => {
                // As many rounds as an even mixture would admit: the plan that the weights are best at.
                let even = Filter::new(Mixture::new(budget)?, neighbors);
                let count = even.room_for(&even.price(&one)?, 10_000_000).max(1);
                Mixture::for_plan(budget, &one.repeat(count)?)?.into()
            }
        };
        let allowance = match (self.individual, &rule) {
            (false, _) => None,
            (true, AnyRule::Gdp(rule)) => {
                // ROUNDING: down, so that its square is within the limit.
                let mu = paygo_numeric::rounding::sqrt_down(rule.limit().to_f64_down());
                Some(Allowance::Gdp { mu: mu * (1.0 - 1e-12) })
            }
            (true, AnyRule::Zcdp(rule)) => Some(Allowance::Zcdp { rho: rule.limit().to_f64_down() }),
            (true, AnyRule::FixedOrder(rule)) => {
                Some(Allowance::Renyi { order: rule.order().get(), limit: rule.limit().to_f64_down() })
            }
            (true, AnyRule::Mixture(_) | AnyRule::Union(_) | AnyRule::Pure(_) | AnyRule::Approximate(_)) => {
                anyhow::bail!("a budget for each example goes with filter gdp, zcdp or fixed-order")
            }
        };
        let filter = Filter::new(rule, neighbors);
        let rounds = filter.room_for(&filter.price(&one)?, 10_000_000);
        anyhow::ensure!(
            rounds > 0 || allowance.is_some(),
            "the budget does not cover a single round: epsilon = {}, delta = {} with a noise_multiplier of {noise}\nhint: {}",
            text(&self.epsilon),
            text(&self.delta),
            match sampler.batching() {
                Batching::Poisson { .. } =>
                    "more noise, a smaller sampling_probability, or a larger budget; `paygo calibrate noise` finds what fits",
                Batching::Full | Batching::BallsAndBins { .. } | Batching::Shuffled { .. } =>
                    "more noise, or a larger budget",
            }
        );
        let rounds = rounds.max(1);
        Ok(Checked { clip, policy, filter, plan: one.repeat(rounds)?, allowance })
    }
}

/// A number as it was written.
pub(super) fn text(number: &Number) -> String {
    match number {
        Number::Integer(n) => n.to_string(),
        Number::Float(x) => x.to_string(),
        Number::Decimal(text) => text.clone(),
    }
}

impl Noise {
    /// The noise of the first epoch.
    const fn multiplier(&self) -> f64 {
        match *self {
            Self::Uniform { noise_multiplier }
            | Self::Time { noise_multiplier, .. }
            | Self::Exponential { noise_multiplier, .. }
            | Self::Step { noise_multiplier, .. }
            | Self::Polynomial { noise_multiplier, .. }
            | Self::Validation { noise_multiplier, .. }
            | Self::Adaptive { noise_multiplier, .. }
            | Self::AdaptiveBatch { noise_multiplier, .. }
            | Self::FineTune { noise_multiplier, .. } => noise_multiplier,
        }
    }

    /// The same with a first noise that is so many times as large.
    fn scaled(&self, factor: f64) -> Self {
        let mut scaled = self.clone();
        match &mut scaled {
            Self::Uniform { noise_multiplier }
            | Self::Time { noise_multiplier, .. }
            | Self::Exponential { noise_multiplier, .. }
            | Self::Step { noise_multiplier, .. }
            | Self::Polynomial { noise_multiplier, .. }
            | Self::Validation { noise_multiplier, .. }
            | Self::Adaptive { noise_multiplier, .. }
            | Self::AdaptiveBatch { noise_multiplier, .. }
            | Self::FineTune { noise_multiplier, .. } => *noise_multiplier *= factor,
        }
        scaled
    }

    /// Whether it counts correct private examples.
    const fn counts(&self) -> bool {
        match self {
            Self::Adaptive { .. } | Self::AdaptiveBatch { .. } | Self::FineTune { .. } => true,
            Self::Uniform { .. }
            | Self::Time { .. }
            | Self::Exponential { .. }
            | Self::Step { .. }
            | Self::Polynomial { .. }
            | Self::Validation { .. } => false,
        }
    }

    fn policy(&self, sampler: &Sampler) -> anyhow::Result<Policy> {
        let noise = |multiplier: f64| NoiseMultiplier::new(multiplier);
        let schedule = |schedule: Schedule| schedule.checked().map(Policy::Schedule);
        Ok(match *self {
            Self::Uniform { noise_multiplier } => schedule(Schedule::Uniform { initial: noise(noise_multiplier)? })?,
            Self::Time { noise_multiplier, rate } => {
                schedule(Schedule::Time { initial: noise(noise_multiplier)?, rate })?
            }
            Self::Exponential { noise_multiplier, rate } => {
                schedule(Schedule::Exponential { initial: noise(noise_multiplier)?, rate })?
            }
            Self::Step { noise_multiplier, rate, period } => {
                schedule(Schedule::Step { initial: noise(noise_multiplier)?, rate, period })?
            }
            Self::Polynomial { noise_multiplier, rate, last, period } => {
                let (initial, last) = (noise(noise_multiplier)?, noise(last)?);
                schedule(Schedule::Polynomial { initial, rate, last, period })?
            }
            Self::Validation { noise_multiplier, rate, threshold, period, window } => {
                Policy::Validation(ValidationDecay::new(noise(noise_multiplier)?, rate, threshold, period, window)?)
            }
            Self::Adaptive { noise_multiplier, step, reserve, progress } => {
                Policy::Adaptive(Adaptive::new(progress, noise(noise_multiplier)?, Lever::Noise { step }, reserve)?)
            }
            Self::AdaptiveBatch { noise_multiplier, step, least, reserve, progress } => {
                let Batching::Poisson { sampling_probability } = sampler.batching() else {
                    anyhow::bail!("noise.adaptive_batch goes with poisson batches")
                };
                let lever = Lever::Batch { sampling_probability, step, least };
                Policy::Adaptive(Adaptive::new(progress, noise(noise_multiplier)?, lever, reserve)?)
            }
            Self::FineTune { noise_multiplier, step, least, progress } => {
                Policy::FineTune(FineTune::new(progress, noise(noise_multiplier)?, step, noise(least)?)?)
            }
        })
    }
}
