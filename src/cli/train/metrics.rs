//! What is written down after every epoch.

use crate::cli::output::shown_up;
use paygo_training::checkpoint::Folder;
use serde_json::{Value, json};

/// One line of metrics.
#[derive(Clone, Debug, Default)]
pub(super) struct Metrics {
    pub(super) epoch: u64,
    pub(super) steps: u64,
    pub(super) noise_multiplier: f64,
    pub(super) batch: usize,
    /// The odometer's reading: with probability 1 − δ the privacy loss never passes it.
    pub(super) odometer: Option<f64>,
    /// How many more rounds of this noise and these batches the budget covers.
    pub(super) rounds_left: Option<u64>,
    pub(super) public_accuracy: Option<f64>,
    pub(super) public_loss: Option<f64>,
    pub(super) secret_loss: Option<f64>,
    /// Where it may be shown: it follows how many examples there are.
    pub(super) samples_per_second: Option<f64>,
}

impl Metrics {
    pub(super) fn json(&self) -> Value {
        let mut value = json!({
            "epoch": self.epoch, "steps": self.steps, "noise_multiplier": self.noise_multiplier, "batch": self.batch,
        });
        let more = [
            ("odometer", self.odometer),
            ("public_accuracy", self.public_accuracy),
            ("public_loss", self.public_loss),
            ("SECRET_training_loss", self.secret_loss),
            ("samples_per_second", self.samples_per_second),
        ];
        for (name, number) in more {
            if let Some(number) = number {
                value[name] = crate::cli::output::json_number(number);
            }
        }
        if let Some(rounds) = self.rounds_left {
            value["rounds_left"] = rounds.into();
        }
        value
    }

    /// A line that was written before.
    fn read(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let number = |name: &str| value.get(name).and_then(Value::as_f64);
        let count = |name: &str| value.get(name).and_then(Value::as_u64);
        Some(Self {
            epoch: count("epoch")?,
            steps: count("steps")?,
            noise_multiplier: number("noise_multiplier")?,
            batch: usize::try_from(count("batch")?).ok()?,
            odometer: number("odometer"),
            rounds_left: count("rounds_left"),
            public_accuracy: number("public_accuracy"),
            public_loss: number("public_loss"),
            secret_loss: number("SECRET_training_loss"),
            samples_per_second: number("samples_per_second"),
        })
    }

    /// `epoch 3, odometer 0.81, 410 rounds left, noise 1.6, public accuracy 0.912, loss 0.31`
    pub(super) fn describe(&self) -> String {
        let mut text = format!("epoch {}", self.epoch);
        if let Some(reading) = self.odometer {
            text += &format!(", odometer {}", shown_up(reading));
        }
        if let Some(rounds) = self.rounds_left {
            text += &format!(", {rounds} rounds left");
        }
        if self.noise_multiplier > 0.0 {
            text += &format!(", noise {:.4}", self.noise_multiplier);
        }
        if let (Some(accuracy), Some(loss)) = (self.public_accuracy, self.public_loss) {
            text += &format!(", public accuracy {accuracy:.4}, loss {loss:.4}");
        }
        if let Some(loss) = self.secret_loss {
            text += &format!(", SECRET training loss {loss:.4}");
        }
        if let Some(speed) = self.samples_per_second {
            text += &format!(", {speed:.0} samples/s");
        }
        text
    }

    /// Whether what was released cannot be a model any more: parameters of more than a million, or losses that are no numbers.
    pub(super) fn diverges(&self, parameters: &[f32]) -> bool {
        let is_lost = |&parameter: &f32| parameter.is_nan() || parameter.abs() > 1e6;
        parameters.iter().any(is_lost) || self.public_loss.is_some_and(|loss| !loss.is_finite())
    }

    /// What a folder has, up to where the run stands: what was written after its last checkpoint is not part of it any more.
    pub(super) fn read_all(folder: &Folder, steps: u64) -> anyhow::Result<Vec<Self>> {
        let text = match std::fs::read_to_string(folder.path().join(METRICS)) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error.into()),
        };
        let all: Vec<Self> = text.lines().filter_map(Self::read).filter(|metrics| metrics.steps <= steps).collect();
        let lines: String = all.iter().map(|metrics| format!("{}\n", metrics.json())).collect();
        folder.replace(METRICS, lines.as_bytes())?;
        Ok(all)
    }
}

pub(super) const METRICS: &str = "metrics.jsonl";
