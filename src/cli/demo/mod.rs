//! `paygo demo`: the whole story in one run.

mod analyst;
mod page;
mod people;
mod shared;
mod shop;

use super::account::{all_rows, parse_plan, report};
use super::output::{print, shown_up};
use analyst::{Analyst, Entry, FINEST, Median};
use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use paygo_accounting::account::{Question, tightest};
use paygo_accounting::calibrate::{Target, most_repeats};
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{Budget, Clock, Filter};
use paygo_accounting::mechanism::{Mechanism, Zcdp};
use paygo_accounting::odometer::{Odometer, VilleMixture};
use paygo_accounting::params::{Count, Delta, Epsilon, Neighbors, Rho};
use paygo_accounting::prior::Prior;
use paygo_noise::Source;
use shop::Shop;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct Arguments {
    /// File to write the plan to
    #[arg(long, value_name = "FILE.toml", default_value = "paygo-demo.toml")]
    plan: PathBuf,
    /// File to write the report to
    #[arg(long, value_name = "FILE.html", default_value = "paygo-demo.html")]
    out: PathBuf,
    /// File to write the table of purchases to
    #[arg(long, value_name = "FILE.csv", default_value = "paygo-demo.csv")]
    table: PathBuf,
    /// File of the ledger; an existing one gets one more dataset
    #[arg(long, value_name = "FILE", default_value = "paygo-demo.ledger")]
    ledger: PathBuf,
}

const PLAN: &str = include_str!("../../../examples/dp-sgd.toml");
const PEOPLE: usize = 40_000;
const EPSILON: &str = "1";
const DELTA: &str = "1e-6";

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    std::fs::write(&arguments.plan, PLAN).with_context(|| arguments.plan.display().to_string())?;
    print("1. A planner asks what private training will cost.")?;
    print(&format!("   $ paygo account {}\n", arguments.plan.display()))?;
    let plan = parse_plan(PLAN)?;
    let cost = plan.cost()?;
    print(&report(&plan, &cost, &all_rows(&cost, Question::EpsilonAt(Delta::new(1e-5)?))))?;
    print("\n   How little noise keeps the same run at epsilon = 3?")?;
    print("   $ paygo calibrate noise --epsilon 3 --delta 1e-5 --steps 14062 --sampling-probability 0.0042667\n")?;
    print(&super::calibrate::noise_text("3", "1e-5", 14_062, 0.004_266_7)?)?;

    print(&format!("\n2. An analyst asks a table of {PEOPLE} people for the median income of each region."))?;
    print("   The next question, and its noise, depend on the last answer; a filter decides before each one.\n")?;
    let people = people::table(PEOPLE);
    let story = tell(&people)?;
    print(&story.summary())?;

    print("\n3. A shop with the same customers counts them every day; most buy something on few days.\n")?;
    let shop = shop::tell(&people, &arguments.table)?;
    print(&format!("   {}", shop.summary()))?;
    print(&format!("   Ask the table of purchases yourself:\n   {}", Shop::next(&arguments.table)))?;

    print("\n4. Everybody else asks about the same people: one budget for all, kept by a ledger.\n")?;
    print(&shared::tell(&story.log, &arguments.ledger)?)?;
    std::fs::write(&arguments.out, story.page(&shop)?.html()).with_context(|| arguments.out.display().to_string())?;
    print(&format!("\nreport: {}", arguments.out.display()))?;
    print(&format!("plan: {}", arguments.plan.display()))?;
    print(&format!("table: {}", arguments.table.display()))?;
    print(&format!("ledger: {}", arguments.ledger.display()))?;
    print("Next: `paygo filter --help`, `paygo query --help`, `paygo ledger help`, README.md, docs/.")?;
    Ok(ExitCode::SUCCESS)
}

/// What happened.
struct Story {
    log: Vec<Entry>,
    medians: Vec<(usize, Median)>,
    /// Questions and ε of a plan fixed in advance, each question as precise as the analyst might need.
    worst_case: Vec<(f64, f64)>,
}

/// Runs the analyst until the budget or the regions end.
fn tell(people: &[people::Person]) -> anyhow::Result<Story> {
    let budget = Budget::from_decimal(EPSILON, DELTA)?;
    let boundary = VilleMixture::new(budget.delta(), Prior::for_budget(budget.epsilon(), budget.delta()))?;
    let mut analyst = Analyst {
        people,
        filter: Filter::new(Clock::new(budget)?, Neighbors::AddRemove),
        odometer: Odometer::new(boundary, Neighbors::AddRemove),
        source: Source::from_operating_system()?,
        log: Vec::new(),
    };
    let bar = ProgressBar::new(people::REGIONS.len() as u64);
    bar.set_style(ProgressStyle::with_template("   {msg:8} [{bar:30}] {pos}/{len} regions")?);
    let mut medians = Vec::new();
    for region in 0..people::REGIONS.len() {
        bar.set_message(people::REGIONS[region]);
        medians.push((region, analyst.median(region)?));
        bar.inc(1);
    }
    bar.finish_and_clear();
    let finest = Count::new(FINEST * FINEST)?.to_f64();
    let one = Cost::of(&Mechanism::from(Zcdp { rho: Rho::new(0.5 / finest)? }), Neighbors::AddRemove)?;
    let target = Target::EpsilonDelta(Epsilon::new(EPSILON.parse()?)?, budget.delta());
    let price = |n: u64| Ok((Count::new(n)?.to_f64(), tightest(&one.repeat(n)?, budget.delta()).epsilon.get()));
    let worst_case = (1..=most_repeats(target, &one)?.value).map(price).collect::<anyhow::Result<_>>()?;
    Ok(Story { log: analyst.log, medians, worst_case })
}

impl Story {
    fn admitted(&self) -> usize {
        self.log.iter().filter(|entry| entry.answer.is_some()).count()
    }

    fn last(&self) -> (f64, f64) {
        self.log.last().map_or((0.0, 0.0), |entry| (entry.spent, entry.reading))
    }

    fn found(&self) -> Vec<Vec<String>> {
        let row = |(region, median): &(usize, Median)| {
            let text = match median {
                Median::Between(low, high) => format!("{low} to {high}"),
                Median::Unfinished(0, 120_000) => "the budget was used before it could be asked".to_owned(),
                Median::Unfinished(low, high) => format!("{low} to {high}, then the budget was used"),
            };
            vec![people::REGIONS[*region].to_owned(), text]
        };
        self.medians.iter().map(row).collect()
    }

    fn summary(&self) -> String {
        let (spent, reading) = self.last();
        let refused = self.log.len() - self.admitted();
        format!(
            "{}\nanswered {} questions, refused {refused}; spent epsilon {} of {EPSILON} at delta {DELTA}\nthe odometer reads {}: \
             the privacy loss stays below it with probability 1 - {DELTA}, at every moment\nto promise \
             something to the people in the table, quote the filter: ({EPSILON}, {DELTA})-DP\na plan fixed in advance, precise \
             enough for the hardest question throughout, ends after {} questions",
            super::output::table(&["region", "median income"], self.found()),
            self.admitted(),
            shown_up(spent),
            shown_up(reading),
            self.worst_case.len()
        )
    }
}
