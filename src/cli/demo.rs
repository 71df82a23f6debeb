//! `paygo demo`: a worked example, each step with the command that does it.

use super::account::{all_rows, parse_plan, report};
use super::output::{print, shown_up};
use clap::Args;
use paygo_accounting::account::Question;
use paygo_accounting::params::{Delta, NoiseMultiplier, Rho};
use paygo_accounting::schedule::Schedule;
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct Arguments {}

const PLAN: &str = include_str!("../../examples/dp-sgd.toml");

pub(crate) fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    print("A planner asks three questions about private training on 60 000 records.\n")?;

    print("1. What does the plan examples/dp-sgd.toml cost?\n   $ paygo account examples/dp-sgd.toml\n")?;
    let plan = parse_plan(PLAN)?;
    let cost = plan.cost()?;
    let delta = Delta::new(1e-5)?;
    print(&report(&plan, &cost, &all_rows(&cost, Question::EpsilonAt(delta))))?;

    print("\n2. How little noise keeps the same run at epsilon = 3?")?;
    print("   $ paygo calibrate noise --epsilon 3 --delta 1e-5 --steps 14062 --sampling-probability 0.0042667\n")?;
    print(&super::calibrate::noise_text("3", "1e-5", 14_062, 0.004_266_7)?)?;

    print("\n3. With noise that falls from epoch to epoch, how long does rho = 0.78125 last?")?;
    print("   $ paygo schedule exponential --initial 10 --rate 0.01 --rho 0.78125\n")?;
    let schedule = Schedule::Exponential { initial: NoiseMultiplier::new(10.0)?, rate: 0.01 };
    let epochs = schedule.epochs_within(Rho::new(0.78125)?);
    print(&format!("{} epochs, spending rho = {}", epochs.count, shown_up(epochs.spent.get())))?;
    print("\nNext: `paygo --help`, README.md, docs/theory.md.")?;
    Ok(ExitCode::SUCCESS)
}
