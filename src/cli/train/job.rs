//! What is to be done: a config and everything that it names, fresh or taken up again.

use super::Arguments;
use super::config::Config;
use super::privacy::{Checked, Kept};
use super::shared::{SharedBudget, SharedGate};
use crate::cli::ledger::Named;
use anyhow::Context;
use paygo_noise::Source;
use paygo_training::checkpoint::{Folder, Interrupted, import};
use paygo_training::data::sets::Split;
use paygo_training::data::{Examples, Public};
use paygo_training::model::Network;
use paygo_training::pca::Projection;
use paygo_training::run::{Entry, Run};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What is to be done.
pub(super) struct Job {
    pub(super) config: Config,
    /// Its text, to be stored with the checkpoint; with the place of the file, for what it names.
    pub(super) text: String,
    pub(super) beside: PathBuf,
    /// Where public data sets are.
    data: Option<PathBuf>,
    /// Why nothing can be promised, if so: what was seeded or shown once stays so, also after it was resumed.
    pub(super) spoiled: Option<String>,
    /// The ledger that is charged beside the run's own budget.
    pub(super) ledger: Option<Named>,
    /// Which candidate was picked, where there is a choice and it was made; the config is then as that candidate has it.
    pub(super) picked: Option<usize>,
    /// The rule of its own budget.
    pub(super) rule: Kept,
    pub(super) split: Split,
    pub(super) network: Network,
}

/// A job, and where it stands if it was begun before.
pub(super) struct Opened {
    pub(super) job: Job,
    pub(super) before: Option<(Folder, Interrupted)>,
}

/// What a config comes from: a file, or a checkpoint.
struct Stored {
    text: String,
    beside: PathBuf,
    data: Option<PathBuf>,
    spoiled: Option<String>,
    ledger: Option<Named>,
    picked: Option<usize>,
    rule: Kept,
}

impl Opened {
    /// Reads the config, or the folder that is to be taken up again.
    pub(super) fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        match (&arguments.config, &arguments.resume) {
            (Some(path), _) => {
                let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
                let beside = std::path::absolute(path)?.parent().map(Path::to_owned).unwrap_or_default();
                let data = arguments.data.clone();
                let (ledger, rule) = (arguments.place.named(), Kept::Fresh);
                let stored = Stored { text, beside, data, spoiled: None, ledger, picked: None, rule };
                let job = Job::new(stored, arguments).with_context(|| path.display().to_string())?;
                Ok(Self { job, before: None })
            }
            (None, Some(path)) => Self::resume(arguments, path),
            (None, None) => anyhow::bail!("give CONFIG.toml, or --resume DIR"),
        }
    }

    fn resume(arguments: &Arguments, path: &Path) -> anyhow::Result<Self> {
        let (mut folder, interrupted) = Folder::open(path)?;
        let stored: Value = serde_json::from_str(&interrupted.config).context("the checkpoint has no config")?;
        let word = |name: &str| stored.get(name).and_then(Value::as_str).map(str::to_owned);
        let (Some(beside), Some(text)) = (word("beside"), word("text")) else {
            anyhow::bail!("the checkpoint has no config")
        };
        let ledger = Named::from_json(&stored["ledger"])?;
        let given = arguments.place.named();
        anyhow::ensure!(
            given.as_ref().is_none_or(|named| ledger.as_ref().is_some_and(|ledger| named.is(ledger))),
            "this run began {}; that cannot be changed later",
            if ledger.is_some() { "with another --ledger" } else { "without --ledger" }
        );
        let stored = Stored {
            text,
            beside: beside.into(),
            data: arguments.data.clone().or(word("data").map(Into::into)),
            spoiled: word("spoiled"),
            // As it is given now: a password is not kept.
            ledger: ledger.map(|ledger| given.map_or(ledger.clone(), |given| ledger.reached_by(given))),
            picked: stored["picked"].as_u64().and_then(|picked| usize::try_from(picked).ok()),
            rule: match stored.get("rule") {
                Some(rule) => Kept::Rule(serde_json::from_value(rule.clone()).context("the checkpoint's rule")?),
                None => Kept::Earlier,
            },
        };
        let job = Job::new(stored, arguments)?;
        folder.rewrite_config(&job.stored()?);
        Ok(Self { job, before: Some((folder, interrupted)) })
    }
}

impl Job {
    fn new(stored: Stored, arguments: &Arguments) -> anyhow::Result<Self> {
        let Stored { text, beside, data, spoiled, ledger, picked, rule } = stored;
        let config = Config::parse(&text)?;
        config.check_stop()?;
        let config = picked.map_or(Ok(config.clone()), |picked| config.with_candidate(picked))?;
        anyhow::ensure!(
            ledger.is_none() || config.privacy.is_some(),
            "--ledger goes with [privacy]: without it nothing is charged"
        );
        let now = match (arguments.seed, arguments.reveal_secrets) {
            (Some(_), _) => Some("the noise was made with --seed"),
            (None, true) => Some("secrets were shown with --reveal-secrets"),
            (None, false) => None,
        };
        let spoiled = spoiled.or(now.map(str::to_owned));
        let data = data.map(std::path::absolute).transpose()?;
        let split = config.data.load(data.as_deref(), &beside, config.neighbors())?;
        let shape = match &config.data.principal_components {
            None => split.train.shape(),
            Some(components) => {
                let privacy = config.privacy.as_ref().context("data.principal_components goes with [privacy]")?;
                anyhow::ensure!(
                    !privacy.is_individual(),
                    "data.principal_components: a budget for each example leaves none for components of all of them"
                );
                components.shape(split.train.shape())?
            }
        };
        let network = config.model.network(shape, split.train.classes())?;
        Ok(Self { config, text, beside, data, spoiled, ledger, picked, rule, split, network })
    }

    /// The ε of the budget.
    pub(super) fn epsilon(&self) -> f64 {
        let privacy = self.config.privacy.as_ref();
        // ROUNDING: up, so that what is shown is not less than what was written.
        privacy.and_then(|privacy| privacy.epsilon.up("epsilon").ok()).unwrap_or(f64::INFINITY)
    }

    /// As it is kept with the checkpoint: the places, why nothing can be promised, and the file.
    pub(super) fn stored(&self) -> anyhow::Result<String> {
        let word = |path: &Path| path.to_str().map(str::to_owned).with_context(|| format!("{path:?} is not UTF-8"));
        let (beside, data) = (word(&self.beside)?, self.data.as_deref().map(word).transpose()?);
        let ledger = self.ledger.as_ref().map(Named::json).transpose()?;
        let mut stored =
            json!({"beside": beside, "data": data, "spoiled": self.spoiled, "ledger": ledger, "text": self.text});
        if let Some(picked) = self.picked {
            stored["picked"] = picked.into();
        }
        if let Kept::Rule(rule) = &self.rule {
            stored["rule"] = serde_json::to_value(rule)?;
        }
        Ok(stored.to_string())
    }

    /// The rule that it begins with is its own for good.
    pub(super) fn keep_rule(&mut self, checked: Option<&Checked>) {
        if let Some(checked) = checked {
            self.rule = Kept::Rule(Box::new(checked.filter.rule().into()));
        }
    }

    /// Who is asked: the run's own budget, and the ledger if one was named.
    pub(super) fn gate(
        &mut self,
        arguments: &Arguments,
        checked: Option<&Checked>,
    ) -> anyhow::Result<Option<SharedGate>> {
        let (Some(checked), Some(privacy)) = (checked, &self.config.privacy) else { return Ok(None) };
        let place = self.ledger.as_ref().map(|named| named.open(arguments.place.who())).transpose()?;
        if let (Some(named), Some(place)) = (&mut self.ledger, &place) {
            named.keep(place);
        }
        let shared = SharedBudget::new(checked.filter.clone(), &privacy.privacy_unit, place)?;
        Ok(Some(Arc::new(Mutex::new(shared))))
    }

    /// Sees all inputs along private principal components, where the config asks for them: found now and charged, or as they were
    /// `before`.
    pub(super) fn look_along_components(
        &mut self,
        gate: Option<&SharedGate>,
        folder: &mut Folder,
        source: &mut Source,
        before: Option<Vec<f32>>,
    ) -> anyhow::Result<Option<Projection>> {
        let (Some(components), Some(gate)) = (self.config.data.principal_components, gate) else { return Ok(None) };
        let found = components.find(&self.split.train, &mut Arc::clone(gate), source, before)?;
        folder.keep_components(found.components());
        self.split = Split { train: found.apply(&self.split.train), test: found.apply(&self.split.test) };
        Ok(Some(found))
    }

    /// The test examples, where they are declared public.
    pub(super) fn public(&self, test: &Examples) -> Option<Public> {
        (self.config.data.public_test && !test.is_empty()).then(|| Public::declare(test.clone()))
    }

    /// Takes up a candidate.
    pub(super) fn pick(&mut self, candidate: usize, folder: &mut Folder) -> anyhow::Result<()> {
        self.config = self.config.with_candidate(candidate)?;
        self.picked = Some(candidate);
        folder.rewrite_config(&self.stored()?);
        Ok(())
    }

    /// The parameters of the model that the config starts from, if it names one.
    pub(super) fn start(&self) -> anyhow::Result<Option<Vec<f32>>> {
        let Some(path) = &self.config.start_from else { return Ok(None) };
        let at = if path.is_absolute() { path.clone() } else { self.beside.join(path) };
        let wrong = || format!("start_from: {}", at.display());
        let bytes = std::fs::read(&at).with_context(wrong)?;
        Ok(Some(import(&self.network, &bytes).map_err(|error| anyhow::anyhow!("{}: {error}", wrong()))?))
    }

    /// Fresh parameters, or those to start from; and what was charged before.
    pub(super) fn begin(
        &self,
        training: &mut Run<'_, Network>,
        start: Option<Vec<f32>>,
        selection: Option<Entry>,
    ) -> anyhow::Result<()> {
        if let Some(parameters) = start {
            training.start_from(parameters)?;
        }
        if let Some(components) = self.config.data.principal_components {
            training.was_charged(Entry::Components { noise_multiplier: components.noise()?.get() })?;
        }
        if let Some(selection) = selection {
            training.was_charged(selection)?;
        }
        Ok(())
    }
}
