//! The run as it goes: progress, metrics and checkpoints.

use super::Arguments;
use super::job::Job;
use super::metrics::{METRICS, Metrics};
use crate::cli::interrupt;
use indicatif::{ProgressBar, ProgressStyle};
use paygo_training::checkpoint::Folder;
use paygo_training::data::Public;
use paygo_training::model::Network;
use paygo_training::run::{Ending, Run, Step, evaluate};
use std::io::{IsTerminal as _, Write as _};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// To the end, with progress, metrics and checkpoints.
pub(super) fn train(
    arguments: &Arguments,
    job: &Job,
    training: &mut Run<'_, Network>,
    public: Option<&Public>,
    folder: &mut Folder,
) -> anyhow::Result<(Ending, Vec<Metrics>)> {
    let mut progress = Progress::new(job)?;
    let mut all = Metrics::read_all(folder, training.position().steps)?;
    let mut file = std::fs::OpenOptions::new().append(true).open(folder.path().join(METRICS))?;
    let mut seen = Seen::new();
    let (mut saved, mut written, mut diverges) = (Instant::now(), training.position(), false);
    let ending = loop {
        let before = training.position().epoch;
        let ending = training.advance(&mut |step: &Step| {
            seen.add(step);
            progress.step(step.steps);
            if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if training.position().epoch > before || ending.is_some() {
            let metrics = seen.metrics(arguments, job, training, public)?;
            progress.message(metrics.describe());
            if !diverges && metrics.diverges(training.parameters()) {
                diverges = true;
                let steps = metrics.steps;
                progress.say(&format!(
                    "warning: training diverges: after {steps} steps some parameters are beyond a million, or not numbers\n\
                     hint: try a smaller learning_rate"
                ));
            }
            if training.position() != written {
                writeln!(file, "{}", metrics.json())?;
                all.push(metrics);
                written = training.position();
            }
            seen = Seen { last: seen.last, ..Seen::new() };
        }
        if saved.elapsed() >= Duration::from_secs(arguments.checkpoint_every) {
            folder.save(&training.state())?;
            saved = Instant::now();
        }
        if let Some(ending) = ending {
            break ending;
        }
    };
    progress.bar.finish_and_clear();
    Ok((ending, all))
}

/// What was seen since the last line of metrics.
struct Seen {
    since: Instant,
    samples: usize,
    loss: f64,
    count: usize,
    /// The noise and the batch of the last step.
    last: (f64, usize),
}

impl Seen {
    fn new() -> Self {
        Self { since: Instant::now(), samples: 0, loss: 0.0, count: 0, last: (0.0, 0) }
    }

    fn add(&mut self, step: &Step) {
        self.last = (step.noise_multiplier, step.expected);
        self.samples += step.expected;
        let found = step.findings.expose();
        (self.loss, self.count) = (self.loss + found.loss, self.count + found.count);
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers of examples")]
    fn metrics(
        &self,
        arguments: &Arguments,
        job: &Job,
        training: &mut Run<'_, Network>,
        public: Option<&Public>,
    ) -> anyhow::Result<Metrics> {
        let rounds_left = training.rounds_left()?;
        let found = public.map(|public| evaluate(&job.network, training.parameters(), public.examples()).expose());
        // How long a step takes depends on how many examples there are, which may be private; so does the loss on them.
        let reveals = arguments.reveal_secrets || job.config.privacy.is_none();
        Ok(Metrics {
            epoch: training.position().epoch,
            steps: training.position().steps,
            noise_multiplier: self.last.0,
            batch: self.last.1,
            // Where nothing is promised, nothing is read.
            odometer: training.epsilon().map(|epsilon| epsilon.get()).filter(|_| job.spoiled.is_none()),
            rounds_left,
            public_accuracy: found.map(|found| found.correct as f64 / found.count.max(1) as f64),
            public_loss: found.map(|found| found.loss / found.count.max(1) as f64),
            secret_loss: arguments.reveal_secrets.then(|| self.loss / self.count.max(1) as f64),
            samples_per_second: reveals
                .then(|| (self.samples as f64 / self.since.elapsed().as_secs_f64().max(1e-9)).round()),
        })
    }
}

/// A bar on a terminal; elsewhere a line now and then.
struct Progress {
    bar: ProgressBar,
    message: String,
    lines: Option<Lines>,
}

/// When the next line is due: after five seconds, then after twice as long every time, up to a minute.
struct Lines {
    next: Instant,
    gap: Duration,
}

impl Lines {
    fn new(now: Instant) -> Self {
        let gap = Duration::from_secs(5);
        Self { next: now + gap, gap }
    }

    fn is_due(&mut self, now: Instant) -> bool {
        if now < self.next {
            return false;
        }
        self.gap = (2 * self.gap).min(Duration::from_secs(60));
        self.next = now + self.gap;
        true
    }
}

impl Progress {
    fn new(job: &Job) -> anyhow::Result<Self> {
        let bar = match job.config.stop().steps {
            Some(steps) => ProgressBar::new(steps),
            None => ProgressBar::no_length(),
        };
        bar.set_style(ProgressStyle::with_template("{spinner} step {pos} {msg} [{elapsed}]")?);
        bar.enable_steady_tick(Duration::from_millis(200));
        let lines = (!std::io::stderr().is_terminal()).then(|| Lines::new(Instant::now()));
        Ok(Self { bar, message: String::new(), lines })
    }

    fn step(&mut self, steps: u64) {
        self.bar.inc(1);
        if self.lines.as_mut().is_some_and(|lines| lines.is_due(Instant::now())) {
            let comma = if self.message.is_empty() { "" } else { ", " };
            eprintln!("step {steps}{comma}{}", self.message);
        }
    }

    fn message(&mut self, message: String) {
        self.bar.set_message(message.clone());
        self.message = message;
    }

    /// Between what the bar draws.
    fn say(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_rarer() {
        let start = Instant::now();
        let mut lines = Lines::new(start);
        let due: Vec<u64> = (0..300).filter(|&second| lines.is_due(start + Duration::from_secs(second))).collect();
        assert_eq!(due, [5, 15, 35, 75, 135, 195, 255]);
    }
}
