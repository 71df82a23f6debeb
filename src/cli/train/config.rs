//! The file that says what is to be trained, on what, and within which budget.

use super::model::Model;
use super::privacy::Privacy;
use super::select::Select;
use anyhow::Context;
use paygo_accounting::params::{Neighbors, NoiseMultiplier};
use paygo_noise::Source;
use paygo_training::batching::{Batching, BatchingError, Sampler};
use paygo_training::data::csv;
use paygo_training::data::schema::{Missing, Schema};
use paygo_training::data::sets::{ADULT_SCHEMA, CANCER_SCHEMA, Set, Split};
use paygo_training::data::{Examples, Shape, generate};
use paygo_training::gate::Gate;
use paygo_training::model::Network;
use paygo_training::optimizer::{Method, Optimizer, Rate};
use paygo_training::pca::{Projection, principal_components};
use paygo_training::run::{AccuracyTarget, Stop};
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
    /// A private choice among candidates, before training.
    pub(super) select: Option<Select>,
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
    /// On each entry of the matrix, to which an example adds at most 1.
    #[serde(alias = "noise_multiplier")]
    noise_std: f64,
}

impl Components {
    /// The shape of inputs that are seen along them.
    pub(super) fn shape(&self, input: Shape) -> anyhow::Result<Shape> {
        let Self { count, .. } = *self;
        anyhow::ensure!(
            (1..=input.len()).contains(&count),
            "data.principal_components.count = {count}; expected 1 to {}, the number of features of an input",
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
        NoiseMultiplier::new(self.noise_std).context("data.principal_components")
    }
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
    target: Option<AccuracyTarget>,
}

impl Config {
    /// Reads the text of a file. An error says what may stand where the fault is.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            // What is missing has no line of its own.
            let missing = error.message().strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
            let at = || error.span().and_then(|span| key_at(text, span.start));
            let key = missing.or_else(at).unwrap_or_default();
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
        Sampler::new(self.batches, neighbors, public_size, examples).map_err(|error| match error {
            BatchingError::Cost(error) => anyhow::anyhow!(
                "batches, privacy.neighbors: {error}\nhint: full batches go with all neighbors, poisson and balls_and_bins with add-remove \
                 and zero-out, shuffled with zero-out and replace-one"
            ),
            BatchingError::OutOfDomain(error) => {
                let place = if error.parameter == "public_size" { "data" } else { "batches" };
                anyhow::anyhow!("{place}: {error}")
            }
        })
    }

    /// How many rounds are asked for, if that is known.
    pub(super) fn rounds(&self, sampler: &Sampler) -> Option<u64> {
        let by_epochs = self.stop.epochs.map(|epochs| epochs.saturating_mul(sampler.rounds_per_epoch()));
        let by_steps = self.stop.steps.map(|steps| steps.div_ceil(sampler.steps_per_round()));
        by_epochs.into_iter().chain(by_steps).min()
    }

    /// Whether anything but gradients is released: counts, principal components, a selection.
    pub(super) fn releases_integers(&self) -> bool {
        let counts = self.privacy.as_ref().is_some_and(Privacy::counts) || self.stop.target.is_some();
        counts || self.data.principal_components.is_some() || self.select.is_some()
    }

    /// What the budget covers, in words, where it is known in advance that it does not cover all that is asked for.
    pub(super) fn forecast(&self, sampler: &Sampler, network: &Network) -> anyhow::Result<Option<String>> {
        let Some(privacy) = self.privacy.as_ref().filter(|privacy| privacy.is_scheduled()) else { return Ok(None) };
        let each = sampler.steps_per_round();
        let Some(wanted) = self.rounds(sampler) else { return Ok(None) };
        // Components and counts are charged too, and not looked at here.
        let is_all = !self.releases_integers();
        let [at_most, about] = if is_all { ["", ""] } else { ["at most ", "about "] };
        Ok(privacy.shortfall(self, sampler, network, wanted)?.map(|(covered, enough)| {
            let [covered, asked] = [covered, wanted].map(|rounds| rounds.saturating_mul(each));
            let text = format!("the budget covers {at_most}{covered} of the {asked} steps that are asked for");
            match enough {
                Some(noise) => format!("{text}; with noise_multiplier = {about}{noise} it would cover all of them"),
                None => text,
            }
        }))
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
        let counts = self.privacy.as_ref().is_some_and(Privacy::counts);
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
        self.privacy.as_ref().map_or(Neighbors::AddRemove, Privacy::neighbors)
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
        let neighbors = self.privacy.as_ref().map(Privacy::neighbors);
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
const HINTS: [(&str, &str); 9] = [
    ("data", "{ set = \"digits\" }; or a table [data], with csv and schema for a table of your own"),
    (
        "optimizer",
        "{ kind = \"sgd\", momentum = 0.5 } or { kind = \"adam\" }, above the first [table]; or a table [optimizer]",
    ),
    (
        "batches",
        "\"full\", { poisson = { sampling_probability = 0.01 } }, { balls_and_bins = { batches = 100 } } or { shuffled = { size = 600 } }",
    ),
    ("noise", "{ uniform = { noise_multiplier = 1.5 } }, or another kind of noise from docs/training.md"),
    (
        "learning_rate",
        "0.5, { linear = { first = 0.5, last = 0.1, epochs = 20 } }, { cosine = { first = 0.5, last = 0.0, epochs = 20 } } or { step = { first = 0.5, factor = 0.5, period = 5 } }",
    ),
    ("model", "\"softmax\" or \"logistic\", above the first [table]; or a table [model] with perceptron or layers"),
    ("target", "{ accuracy = 0.9, noise_std = 20.0, period = 1 }"),
    ("perceptron", "{ hidden = [100], activation = \"relu\" }, or \"tanh\""),
    ("principal_components", "{ count = 60, noise_std = 16.0 }"),
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
        match self.set.as_deref() {
            Some("adult") => return Some(ADULT_SCHEMA.to_owned()),
            Some("cancer") => return Some(CANCER_SCHEMA.to_owned()),
            Some(_) | None => {}
        }
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
                            anyhow::anyhow!("data.set: {error}; or made-up examples: digits, census")
                        })?;
                        anyhow::ensure!(
                            self.count.is_none(),
                            "data.count goes with made-up examples: digits or census"
                        );
                        let folder = folder.with_context(|| {
                            format!("the data set {name} needs its folder\nhint: --data DIR, or PAYGO_DATA=DIR")
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
            (Some(_), Some(_)) | (None, None) => anyhow::bail!("give either data.set or data.csv"),
        }
    }
}
