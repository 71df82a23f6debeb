//! The command line, one file per command.

mod account;
mod arguments;
mod audit;
mod calibrate;
mod convert;
mod demo;
mod filter;
mod interrupt;
mod ledger;
mod made_up;
mod odometer;
mod output;
mod predict;
mod query;
mod reproduce;
mod schedule;
mod selftest;
mod serve;
mod stream;
mod suggest;
mod train;
mod unknown;
mod words;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Pay-as-you-go differential privacy: accounting that never reports too little.
#[derive(Parser)]
#[command(name = "paygo", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a worked example of the other commands.
    Demo(demo::Arguments),
    /// Price a plan by every method that applies.
    Account(account::Arguments),
    /// Convert between Rényi, zCDP, GDP and (epsilon, delta), by every method.
    Convert(convert::Arguments),
    /// Find the noise, steps, sampling probability or epochs that meet a target.
    Calibrate(calibrate::Arguments),
    /// Plan a noise schedule: how long a budget lasts, or which decay rate it needs.
    Schedule(schedule::Arguments),
    /// Decide, request by request, whether a budget allows it (JSON lines).
    Filter(filter::Arguments),
    /// Bound, request by request, the privacy loss so far (JSON lines).
    Odometer(odometer::Arguments),
    /// Ask a table of people for private statistics, with a budget for each person.
    Query(Box<query::Arguments>),
    /// Train a model privately, within a budget.
    Train(Box<train::Arguments>),
    /// Apply a trained model to the rows of a CSV file.
    Predict(predict::Arguments),
    /// Keep one durable budget that many share.
    Ledger(ledger::Arguments),
    /// Serve a ledger over HTTP, with an API and a dashboard.
    Serve(serve::Arguments),
    /// Test filters and odometers against adversaries.
    Audit(audit::Arguments),
    /// Reproduce tables and figures of five papers, theirs beside ours.
    Reproduce(reproduce::Arguments),
    /// Compare this build with reference values of 25 and more digits.
    Selftest(selftest::Arguments),
}

/// Parses the arguments, runs the command, and turns its outcome into an exit code.
pub(crate) fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Account(arguments) => account::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Calibrate(arguments) => calibrate::run(&arguments),
        Command::Schedule(arguments) => schedule::run(&arguments),
        Command::Filter(arguments) => filter::run(&arguments),
        Command::Odometer(arguments) => odometer::run(&arguments),
        Command::Query(arguments) => query::run(&arguments),
        Command::Train(arguments) => train::run(&arguments),
        Command::Predict(arguments) => predict::run(&arguments),
        Command::Ledger(arguments) => ledger::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Audit(arguments) => audit::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Selftest(arguments) => selftest::run(&arguments),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let said = output::chain(&error);
            eprintln!("error: {said}");
            if let Some(hint) = suggest::did_you_mean(&said) {
                eprintln!("hint: {hint}");
            }
            ExitCode::from(2)
        }
    }
}
