//! \[FZ\] Section 6: private gradient descent with and without a budget for each example.

use super::{Mark, Recipe, Study, Table, Trials, bar, rho, summary};
use crate::cli::train::spent;
use indicatif::ProgressBar;
use paygo_accounting::convert::{Conversion, gaussian, zcdp};
use paygo_accounting::filter::Gdp;
use paygo_accounting::individual::FULL;
use paygo_accounting::params::{Delta, Neighbors, NoiseMultiplier, Rho};
use paygo_accounting::schedule::Schedule;
use paygo_numeric::Amount;
use paygo_training::batching::Batching;
use paygo_training::data::sets::{Set, Split};
use paygo_training::gradient::Clip;
use paygo_training::model::{Function, Network, known};
use paygo_training::personal::{ExampleBudget, Spending};
use paygo_training::policy::Policy;
use paygo_training::run::{Privacy, Stop};
use std::path::Path;

/// A line of one of their tables.
struct Line {
    epsilon: f64,
    noise: f64,
    clip: f64,
    rate: f64,
    steps: u64,
    longer: u64,
    plain: &'static str,
    filtered: &'static str,
}

const MNIST: [Line; 4] = [
    line(0.3, 170.0, 10.0, 0.2, 104, 125, "92.80 ± 0.52", "93.18 ± 0.32"),
    line(0.5, 130.0, 15.0, 0.15, 180, 198, "94.62 ± 0.43", "94.90 ± 0.26"),
    line(1.2, 88.0, 10.0, 0.25, 460, 460, "96.56 ± 0.15", "96.56 ± 0.15"),
    line(3.0, 50.0, 10.0, 0.25, 875, 875, "97.71 ± 0.12", "97.71 ± 0.12"),
];

const ADULT: [Line; 4] = [
    line(0.3, 455.34, 3.7, 1.5, 800, 960, "83.80 ± 0.22", "83.91 ± 0.12"),
    line(0.5, 433.80, 3.7, 1.5, 2000, 2100, "84.11 ± 0.15", "84.18 ± 0.10"),
    line(1.0, 613.49, 3.7, 2.0, 4000, 4800, "84.28 ± 0.11", "84.42 ± 0.12"),
    line(1.2, 259.33, 3.7, 2.0, 4000, 4120, "84.45 ± 0.13", "84.48 ± 0.15"),
];

#[expect(clippy::too_many_arguments, reason = "a line of a table")]
const fn line(
    epsilon: f64,
    noise: f64,
    clip: f64,
    rate: f64,
    steps: u64,
    longer: u64,
    plain: &'static str,
    filtered: &'static str,
) -> Line {
    Line { epsilon, noise, clip, rate, steps, longer, plain, filtered }
}

pub(in crate::cli::reproduce) const STUDY: Study = Study {
    key: "feldman-zrnic",
    parts: &[
        "adult",
        "adult:0.3",
        "adult:0.5",
        "adult:1",
        "adult:1.2",
        "mnist",
        "mnist:0.3",
        "mnist:0.5",
        "mnist:1.2",
        "mnist:3",
    ],
    tables,
};

fn tables(data: &Path, trials: Trials, only: Option<&str>) -> anyhow::Result<Vec<Table>> {
    let mut tables = Vec::new();
    for (set, lines) in [(Set::Adult, &ADULT), (Set::Mnist, &MNIST)] {
        if only.is_some_and(|only| !only.starts_with(set.name())) {
            continue;
        }
        let split = set.load(data)?;
        let network = match set {
            Set::Mnist => known::mnist().ok_or_else(|| anyhow::anyhow!("the network fits the images"))?,
            Set::Adult | Set::Cancer | Set::Cifar10 => {
                known::perceptron(split.train.shape(), &[], Function::Relu, split.train.classes())
            }
        };
        // `adult:0.3` is one line.
        let wanted = |line: &&Line| {
            only.and_then(|only| only.split_once(':')).is_none_or(|(_, e)| e == line.epsilon.to_string())
        };
        let lines: Vec<&Line> = lines.iter().filter(wanted).collect();
        tables.push(accuracies(set, &split, &network, &lines, trials)?);
        if set == Set::Mnist && lines.iter().any(|line| line.epsilon == 0.3) {
            tables.push(odometers(&split, &network, trials)?);
        }
    }
    Ok(tables)
}

impl Line {
    fn recipe<'a>(
        &self,
        split: &'a Split,
        network: &'a Network,
        allowance: ExampleBudget,
        steps: u64,
    ) -> anyhow::Result<Recipe<'a>> {
        let spending = Spending::new(allowance, split.train.len());
        Ok(Recipe {
            network,
            train: &split.train,
            test: &split.test,
            validation: None,
            batching: Batching::Full,
            neighbors: Neighbors::ZeroOut,
            privacy: Privacy::Personal(Clip::whole(self.clip)?, spending),
            policy: Policy::Schedule(Schedule::Uniform { initial: NoiseMultiplier::new(self.noise)? }),
            momentum: 0.0,
            // Of two outputs, one goes up where the other goes down: together they move twice as fast as a single one.
            learning_rate: if split.train.classes() == 2 { self.rate / 2.0 } else { self.rate },
            stop: Stop { steps: Some(steps), ..Stop::default() },
        })
    }

    /// ρ of their k steps.
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    fn rho(&self) -> f64 {
        self.steps as f64 / (2.0 * self.noise * self.noise)
    }

    /// Their run with a filter, looked at after some steps. Until step k nobody's budget ends, so up to there it is their run without.
    fn their_run(&self, split: &Split, network: &Network, marks: &[u64], seed: u64) -> anyhow::Result<Vec<Mark>> {
        // A hair more than ρ: their k steps must fit.
        let allowance = ExampleBudget::Zcdp { rho: self.rho() * (1.0 + 1e-9) };
        let recipe = self.recipe(split, network, allowance, self.longer)?;
        recipe.run(Some(rho(self.rho() * (1.0 + 1e-8))?), marks, seed)
    }

    /// ε of their k steps as they convert it, and the μ that the exact Gaussian profile gives for the same ε.
    fn epsilon_and_mu(&self) -> anyhow::Result<(f64, f64)> {
        let delta = Delta::new(1e-5)?;
        let (classic, _) = zcdp::epsilon(Conversion::Classic, Rho::new(self.rho())?, delta);
        Ok((classic.get(), gaussian::budget(classic, delta).get()))
    }

    /// How many steps μ pays for: more than theirs.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some thousands")]
    fn steps_within(&self, mu: f64) -> u64 {
        (mu * mu * self.noise * self.noise) as u64
    }

    /// The test accuracy after as many steps as μ pays for.
    fn exact_run(&self, split: &Split, network: &Network, mu: f64, seed: u64) -> anyhow::Result<f64> {
        let steps = self.steps_within(mu);
        let limit = Amount::from_f64_down(mu * mu * (1.0 + 1e-9)).unwrap_or(Amount::ONE);
        let recipe = self.recipe(split, network, ExampleBudget::Gdp { mu }, steps)?;
        let marks = recipe.run(Some(Gdp::with_limit(limit)?), &[steps], seed)?;
        Ok(marks[marks.len() - 1].test)
    }

    fn row(&self, split: &Split, network: &Network, trials: Trials, bar: &ProgressBar) -> anyhow::Result<Vec<String>> {
        let (epsilon, mu) = self.epsilon_and_mu()?;
        let (mut plain, mut filtered, mut exact) = (Vec::new(), Vec::new(), Vec::new());
        for seed in trials.seeds() {
            let marks = self.their_run(split, network, &[self.steps, self.longer], seed)?;
            plain.push(marks[0].test);
            filtered.push(marks[marks.len() - 1].test);
            exact.push(self.exact_run(split, network, mu, seed)?);
            bar.inc(1);
        }
        Ok(vec![
            self.epsilon.to_string(),
            format!("{epsilon:.4}"),
            self.plain.into(),
            summary(&plain),
            self.filtered.into(),
            summary(&filtered),
            format!("{} ({} steps)", summary(&exact), self.steps_within(mu)),
        ])
    }
}

fn accuracies(set: Set, split: &Split, network: &Network, lines: &[&Line], trials: Trials) -> anyhow::Result<Table> {
    let bar = bar(lines.len() as u64 * trials.count, &format!("[FZ] {}", set.name()))?;
    let rows = lines.iter().map(|line| line.row(split, network, trials, &bar)).collect::<anyhow::Result<_>>()?;
    bar.finish_and_clear();
    Ok(Table {
        title: format!("[FZ] {}: test accuracy in percent", set.name()),
        about: format!(
            "{trials}; delta 1e-5. The second epsilon is that of their steps by their conversion; the last column spends the \
             same epsilon by the exact Gaussian profile."
        ),
        header: vec![
            "epsilon, label",
            "epsilon, classic",
            "GD, paper",
            "GD, ours",
            "with filter, paper",
            "with filter, ours",
            "GDP filter, more steps",
        ],
        rows,
        figures: Vec::new(),
    })
}

/// Fig. 2: what people have spent at k/2, k and k_max, for ε = 0.3.
fn odometers(split: &Split, network: &Network, trials: Trials) -> anyhow::Result<Table> {
    let line = &MNIST[0];
    let marks = line.their_run(split, network, &[line.steps / 2, line.steps, line.longer], trials.seed)?;
    let column = |mark: &Mark| -> [u64; 11] {
        let mut counts = [0; 11];
        for &share in mark.spent.as_deref().unwrap_or_default() {
            counts[(u64::from(share) * 10 / u64::from(FULL)).min(10) as usize] += 1;
        }
        counts
    };
    let columns: Vec<[u64; 11]> = marks.iter().map(column).collect();
    let names = ["fz-odometers-52.svg", "fz-odometers-104.svg", "fz-odometers-125.svg"];
    let draw = |(name, mark): (&'static str, &Mark)| {
        let title = format!("step {}: images by what they have spent", mark.steps);
        anyhow::Ok((name, spent(mark.spent.as_deref().unwrap_or_default(), &title).svg()?))
    };
    let figures = names.into_iter().zip(&marks).map(draw).collect::<anyhow::Result<_>>()?;
    let rows = (0..11)
        .map(|tenth| {
            let name = if tenth == 10 { "all".to_owned() } else { format!("{}-{} %", tenth * 10, tenth * 10 + 10) };
            std::iter::once(name).chain(columns.iter().map(|counts| counts[tenth].to_string())).collect()
        })
        .collect();
    Ok(Table {
        title: "[FZ] Fig. 2: images by what they have spent of their budget, epsilon 0.3".into(),
        about: "At their order 63 the whole budget is a divergence of 63·rho = 0.1134; their highest odometers read about 0.135, because \
                they count in steps of 0.00109."
            .into(),
        header: vec!["of the budget", "step 52", "step 104", "step 125"],
        rows,
        figures,
    })
}
