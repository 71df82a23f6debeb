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
    /// A worked example of what the other commands do.
    Demo(demo::Arguments),
    /// The price of a plan by every method that applies, each with what it allows.
    Account(account::Arguments),
    /// Between Rényi, zCDP, GDP and (epsilon, delta), by every method.
    Convert(convert::Arguments),
    /// The least noise, most steps, largest sampling probability or most epochs that meet a target.
    Calibrate(calibrate::Arguments),
    /// Noise schedules: how long a budget lasts, and the rate that makes it last as long as wanted.
    Schedule(schedule::Arguments),
    /// May it go on? Mechanisms in, decisions out, one JSON line each.
    Filter(filter::Arguments),
    /// How much has been spent? Mechanisms in, readings out, one JSON line each.
    Odometer(odometer::Arguments),
    /// Private statistics on a table of people, with a budget for each person.
    Query(Box<query::Arguments>),
    /// Private training: schedules, adaptive noise, a budget for each example, early stopping.
    Train(Box<train::Arguments>),
    /// What a trained model says about the rows of a CSV file.
    Predict(predict::Arguments),
    /// A durable budget that many share: make datasets, spend, look, verify.
    Ledger(ledger::Arguments),
    /// The ledger as a service, with an API and a dashboard.
    Serve(serve::Arguments),
    /// Adversaries against filters and odometers, with exact or Monte-Carlo verdicts.
    Audit(audit::Arguments),
    /// Tables and figures of the five papers, theirs beside ours.
    Reproduce(reproduce::Arguments),
    /// Compares this build with golden vectors of 25 and more digits.
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
