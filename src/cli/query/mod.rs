//! `paygo query`: private statistics on a table of people, with a budget for each person.

mod account;
mod file;
mod noise;
mod plan;
mod report;
mod shared;
mod status;

use super::arguments::Decimal;
use super::interrupt;
use super::ledger::{Place, PlaceArguments};
use super::output::{print, print_json, table};
use super::words::note_large_delta;
use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use file::{QueryFile, QuerySpec};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use noise::Sizing;
use paygo_analysis::{
    Accounts, Answers, Exhausted, Layout, Manner, Mode, NoiseStd, PersonBudget, Probability, RoundError, Settings,
    Table, Tier, ask, check_columns, open_accounts,
};
use paygo_noise::Source;
use serde_json::json;
use shared::Hold;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "All rows of a person become one contribution, clipped as a whole, and each person pays for their \
                  own. A person whose budget does not cover a question is left out of it; who, and how many, is \
                  secret. The charge is on disk before the noise is drawn.\n\n\
                  Exit codes: 0 answered, 1 refused (by --mode worst-case or by the ledger), 2 something was wrong, \
                  130 interrupted. With 1, 2 and 130 nothing was charged, unless the message says so.\n\n\
                  Ctrl-C, SIGTERM and SIGHUP stop a question while its rows are read; later it is still answered. A \
                  second signal ends the process at once, and what the ledger holds for it stays charged.\n\n\
                  Examples:\n  \
                  paygo query sales.csv --person customer --budget epsilon=1,delta=1e-6 \\\n      \
                  --sum amount --clip 0..100 --noise-std 500\n  \
                  paygo query sales.parquet --person customer --budget epsilon=1,delta=1e-6 \\\n      \
                  --accounts sales.accounts --count \\\n      \
                  --where \"country = 'DE' and age >= 18\" --noise-std 20\n  \
                  paygo query sales.csv --person customer --budget rho=0.01 \\\n      \
                  --accounts sales.accounts --ledger our.ledger --dataset sales \\\n      \
                  --count --noise-std 20\n  \
                  paygo query sales/ --queries examples/queries.toml --dry-run\n  \
                  paygo query account --accounts sales.accounts --person 4711\n  \
                  paygo query status --accounts sales.accounts\n\n\
                  See docs/individual.md for what each question computes and what is promised."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// The table: CSV, TSV or Parquet files, or folders of them
    #[arg(required = true, value_name = "TABLE")]
    tables: Vec<PathBuf>,
    /// Column that says whose row it is [default: that of the accounts]
    #[arg(long, value_name = "COLUMN")]
    person: Option<String>,
    /// Budget of each person, such as epsilon=1,delta=1e-6 or rho=0.01.
    ///
    /// It cannot be changed once there are accounts. [default: that of the accounts]
    #[arg(long, value_name = "BUDGET")]
    budget: Option<PersonBudget>,
    /// File that keeps what each person has spent, from run to run; made if missing.
    ///
    /// Without it every run starts with whole budgets: the promise is for that run alone, and repeated runs add up.
    #[arg(long, value_name = "FILE")]
    accounts: Option<PathBuf>,
    #[command(flatten)]
    place: PlaceArguments,
    /// TOML file with several questions, answered together; see docs/individual.md
    #[arg(long, value_name = "FILE.toml", conflicts_with = "question")]
    queries: Option<PathBuf>,
    #[command(flatten)]
    question: Question,
    /// How people are charged [default: that of the accounts, or individual]
    #[arg(long, value_enum)]
    mode: Option<ModeArgument>,
    /// What happens to people whose budget does not cover the question
    #[arg(long, value_enum, default_value_t = ExhaustedArgument::LeftOut)]
    exhausted: ExhaustedArgument,
    /// Also release how many people took part, with noise of this standard deviation.
    ///
    /// Everybody in the table is charged for it. Goes with --mode individual and --exhausted left-out.
    #[arg(long, value_name = "NOISE_STD", allow_hyphen_values = true)]
    active_count: Option<Decimal>,
    /// Accept that people joined or left the table since the accounts were made.
    ///
    /// People who joined get an account. People who left keep theirs.
    #[arg(long)]
    people_changed: bool,
    /// Probability that an interval contains the true answer, between 0 and 1.
    ///
    /// The true answer is the one about the people who took part, clipped as asked.
    #[arg(long, value_name = "PROBABILITY", default_value = "0.95", allow_hyphen_values = true)]
    confidence: Decimal,
    /// Write an HTML page with the answers and their intervals
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Show what the questions would cost; nothing is read, asked or charged
    #[arg(long, conflicts_with_all = ["report", "people_changed"])]
    dry_run: bool,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Show one person's own account, for disclosure to that person.
    Account(account::Arguments),
    /// Show what is public about accounts: settings, rounds, the worst case so far.
    Status(status::Arguments),
}

/// One question on the command line.
#[derive(Args)]
#[group(id = "question", multiple = true)]
struct Question {
    /// Count the people who have a selected row, or with `--count rows` the rows.
    ///
    /// Counting rows needs --clip 0..N: each person counts with at most N rows.
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, default_missing_value = "people")]
    count: Option<file::Counted>,
    /// Sum of a column; each person's total is clamped to --clip
    #[arg(long, value_name = "COLUMN")]
    sum: Option<String>,
    /// Mean over people of each one's own mean of a column, clamped to --clip
    #[arg(long, value_name = "COLUMN")]
    mean: Option<String>,
    /// Histogram of a column, over --categories or over the bins of --grid.
    ///
    /// Each person counts as one, split over the bins of their rows. With --clip-norm, rows are counted.
    #[arg(long, value_name = "COLUMN")]
    histogram: Option<String>,
    /// Quantiles of a column: the values below which the fractions --at of people lie.
    ///
    /// They are exact to the bins of --grid. With --clip-norm, they are quantiles of rows.
    #[arg(long, value_name = "COLUMN")]
    quantile: Option<String>,
    /// Range of one person's contribution, such as 0..100.
    ///
    /// Needed for --sum, --mean and `--count rows`.
    #[arg(long, value_name = "LOW..HIGH", allow_hyphen_values = true)]
    clip: Option<String>,
    /// Count rows instead of people, each person's scaled down to this ℓ2 norm.
    ///
    /// For --histogram and --quantile. More than 0, and at most 1e6.
    #[arg(long, value_name = "NORM", allow_hyphen_values = true)]
    clip_norm: Option<Decimal>,
    /// Public categories of a histogram; rows of any other are not counted
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    categories: Option<Vec<String>>,
    /// Public bins of a histogram or quantile, such as 0..120:24.
    ///
    /// Values outside the range fall into the first or the last bin.
    #[arg(long, value_name = "LOW..HIGH:BINS", allow_hyphen_values = true)]
    grid: Option<String>,
    /// Fractions of a quantile, each between 0 and 1 [default: 0.5]
    #[arg(long, value_name = "FRACTIONS", value_delimiter = ',', allow_hyphen_values = true)]
    at: Option<Vec<Decimal>>,
    /// Only rows that meet a condition, such as "age >= 18 and region = 'North'".
    ///
    /// See docs/individual.md for what a condition may contain.
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// What to do about missing values [default: refuse]
    ///
    /// Missing is an empty field, or anything but a finite number where a number is needed.
    #[arg(long, value_enum, value_name = "WHAT")]
    missing: Option<file::MissingWord>,
    /// Least noise that costs nobody more than this share of a budget, such as "5 %".
    ///
    /// Give the noise in one way: --spend, --within or --noise-std.
    #[arg(long, value_name = "SHARE")]
    spend: Option<String>,
    /// Most noise that keeps half of an interval within this, in units of the answer.
    ///
    /// For counts, sums and histograms.
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    within: Option<Decimal>,
    /// Standard deviation of the noise, in units of the answer.
    ///
    /// For a mean, it is the noise of the sum over people of each one's own mean.
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    noise_std: Option<Decimal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeArgument {
    /// Each person for what their own rows did
    Individual,
    /// Everybody alike, for the largest contribution; refuses when the budget is used up
    WorstCase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExhaustedArgument {
    /// They are left out, and pay nothing
    LeftOut,
    /// Their contribution is scaled down to what they can still pay for
    ScaledDown,
}

impl Question {
    /// As it would stand in a file; `None` when nothing was asked.
    fn spec(&self) -> Option<QuerySpec> {
        let number = |decimal: &Decimal| decimal.typed();
        let spec = QuerySpec {
            name: None,
            count: self.count,
            sum: self.sum.clone(),
            mean: self.mean.clone(),
            histogram: self.histogram.clone(),
            quantile: self.quantile.clone(),
            clip: self.clip.clone(),
            clip_norm: self.clip_norm.as_ref().map(number),
            categories: self.categories.clone(),
            grid: self.grid.clone(),
            at: self.at.as_ref().map(|at| at.iter().map(number).collect()),
            condition: self.condition.clone(),
            missing: self.missing,
            noise_std: self.noise_std.as_ref().map(number),
            spend: self.spend.clone(),
            within: self.within.as_ref().map(number),
        };
        (spec != QuerySpec::default()).then_some(spec)
    }
}

/// What is to be done, from the command line, the file, and accounts that are there.
struct Asked {
    settings: Settings,
    accounts: Option<PathBuf>,
    /// The worst case of all rounds so far, in shares of a budget.
    worst_case: u64,
    layout: Layout,
    manner: Manner,
}

fn asked(arguments: &Arguments) -> anyhow::Result<Asked> {
    let file = arguments.queries.as_ref().map(|path| QueryFile::read(path)).transpose()?.unwrap_or_default();
    let accounts = once("accounts", arguments.accounts.as_ref(), file.accounts.as_ref())?;
    let stored = match accounts.as_ref().filter(|path| path.exists()) {
        Some(path) => Some(Accounts::open(path, None)?),
        None => None,
    };
    let settings = settings(arguments, &file, stored.as_ref().map(Accounts::settings))?;
    if let Some(stored) = &stored {
        stored.check(&settings)?;
    }
    for tier in &settings.tiers {
        tier.budget.rule().context("budget")?;
        if let PersonBudget::EpsilonDelta { delta, .. } = &tier.budget {
            note_large_delta(delta.parse().unwrap_or(0.0));
        }
    }
    let active_count = active_count(arguments, settings.mode)?;
    let mut specs = file.queries;
    specs.extend(arguments.question.spec());
    anyhow::ensure!(
        !specs.is_empty(),
        "give a question: --count, --sum, --mean, --histogram or --quantile, or --queries FILE.toml"
    );
    let confidence = Probability::new(arguments.confidence.typed()).context("confidence")?;
    anyhow::ensure!(
        confidence.get() <= 1.0 - 1e-9,
        "confidence = {} is too near to 1; expected at most 1 - 1e-9",
        arguments.confidence.as_str()
    );
    let sizing = Sizing { settings: &settings, confidence };
    let queries = specs.iter().map(|spec| spec.query(&sizing)).collect::<anyhow::Result<_>>()?;
    let exhausted = match arguments.exhausted {
        ExhaustedArgument::LeftOut => Exhausted::LeftOut,
        ExhaustedArgument::ScaledDown => Exhausted::ScaledDown,
    };
    let manner = Manner { exhausted, people_changed: arguments.people_changed, confidence };
    let worst_case = stored.as_ref().map_or(0, Accounts::worst_case);
    Ok(Asked { settings, accounts, worst_case, layout: Layout::new(queries, active_count)?, manner })
}

/// Said once, on the command line or in the file.
fn once<T: Clone>(name: &str, here: Option<&T>, there: Option<&T>) -> anyhow::Result<Option<T>> {
    anyhow::ensure!(
        here.is_none() || there.is_none(),
        "{name} is given on the command line and in the file; remove one"
    );
    Ok(here.or(there).cloned())
}

/// What people may spend; what is not said is as accounts that are there have it.
fn settings(arguments: &Arguments, file: &QueryFile, known: Option<&Settings>) -> anyhow::Result<Settings> {
    let person = once("person", arguments.person.as_ref(), file.person.as_ref())?;
    let person = person.or_else(|| known.map(|known| known.person.clone()));
    let person = person.context("give --person COLUMN: the column that says whose row it is")?;
    let mode = arguments.mode.map(|mode| match mode {
        ModeArgument::Individual => Mode::Individual,
        ModeArgument::WorstCase => Mode::WorstCase,
    });
    let mode = once("mode", mode.as_ref(), file.mode.as_ref())?;
    let mode = mode.or_else(|| known.map(|known| known.mode)).unwrap_or(Mode::Individual);
    let budget = once("budget", arguments.budget.as_ref(), file.budget.as_ref())?;
    match (&file.tiers, budget, known) {
        (Some(_), Some(_), _) => anyhow::bail!("a budget and tiers with budgets of their own are given; remove one"),
        (Some(tiers), None, _) => tiers.settings(&person, mode),
        (None, Some(budget), _) => Ok(Settings::new(&person, mode, budget)),
        (None, None, Some(known)) => Ok(Settings { person, mode, ..known.clone() }),
        (None, None, None) => anyhow::bail!("give --budget\nhint: --budget epsilon=1,delta=1e-6"),
    }
}

/// The noise of the count of those who take part.
fn active_count(arguments: &Arguments, mode: Mode) -> anyhow::Result<Option<NoiseStd>> {
    let noise = |decimal: &Decimal| NoiseStd::new(decimal.typed());
    let active_count = arguments.active_count.as_ref().map(noise).transpose().context("active-count")?;
    anyhow::ensure!(
        active_count.is_none() || mode == Mode::Individual,
        "--active-count goes with --mode individual: in the worst case everybody takes part"
    );
    anyhow::ensure!(
        active_count.is_none() || arguments.exhausted == ExhaustedArgument::LeftOut,
        "--active-count goes with --exhausted left-out: otherwise nobody is left out"
    );
    Ok(active_count)
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Some(Command::Account(arguments)) => return account::run(arguments),
        Some(Command::Status(arguments)) => return status::run(arguments),
        None => {}
    }
    interrupt::listen()?;
    let asked = asked(arguments)?;
    let plan = plan::Forecast::of(&asked)?;
    if arguments.dry_run {
        return plan.show(&asked, arguments.json);
    }
    // A wrong column is a mistake to mend first, whatever the budget says.
    let table = Table::open(&arguments.tables)?;
    check_columns(&table, &asked.layout, &asked.settings.person)?;
    if let Some(refusal) = plan.refusal(&asked)? {
        return refused(arguments, &refusal);
    }
    let place = arguments.place.place()?;
    anyhow::ensure!(
        place.is_none() || asked.accounts.is_some() || asked.settings.mode == Mode::WorstCase,
        "--ledger needs --accounts: the ledger is charged once for everything that new accounts may ever spend\n\
         hint: give --accounts FILE, or --mode worst-case to be charged for this question alone"
    );
    let page = arguments.report.as_ref().map(|path| create_report(path, arguments, &asked)).transpose()?;
    let answers = match answers(&asked, &plan, &table, place.as_ref()) {
        // Somebody else has asked in between.
        Err(error) if matches!(error.downcast_ref(), Some(RoundError::Refused)) => {
            return refused(arguments, error.to_string().trim_start_matches("refused: "));
        }
        Err(error) if error.is::<shared::Refused>() => return refused(arguments, &error.to_string()),
        other => other?,
    };
    if let Some(place) = &place {
        eprintln!("charged to: {}", place.told());
    }
    // From here on the question is charged: whatever fails now must say so.
    let told = tell(arguments, &asked, &answers, page);
    told.context("the question was charged and answered, but the answer could not be written")?;
    Ok(ExitCode::SUCCESS)
}

/// Nothing was asked, and nothing charged.
fn refused(arguments: &Arguments, reason: &str) -> anyhow::Result<ExitCode> {
    if arguments.json {
        print_json(&json!({"decision": "refuse", "reason": reason}))?;
    }
    eprintln!("refused: {reason}");
    Ok(ExitCode::from(1))
}

/// Opens the file of the report before anything is charged.
fn create_report(path: &Path, arguments: &Arguments, asked: &Asked) -> anyhow::Result<std::fs::File> {
    let same =
        |other: &Path| path.canonicalize().is_ok_and(|path| other.canonicalize().is_ok_and(|other| other == path));
    let taken = arguments.tables.iter().chain(&asked.accounts).chain(&arguments.queries).any(|other| same(other));
    anyhow::ensure!(!taken, "--report {} would overwrite the table, the accounts or the questions", path.display());
    // What is there stays until there is something to put in its place.
    std::fs::File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .with_context(|| path.display().to_string())
}

/// Opens or makes the accounts, and asks.
fn answers(asked: &Asked, plan: &plan::Forecast, table: &Table, place: Option<&Place>) -> anyhow::Result<Answers> {
    // How much is left to read is shown as a share: how many rows there are is nobody's business.
    let bar = |what: &str| -> anyhow::Result<ProgressBar> {
        let bar = ProgressBar::with_draw_target(Some(table.size()), ProgressDrawTarget::stderr_with_hz(10));
        bar.set_style(ProgressStyle::with_template("{msg:18} [{bar:40}] {percent}% {elapsed}")?);
        bar.set_message(what.to_owned());
        Ok(bar)
    };
    let path = asked.accounts.as_deref();
    let fresh = path.filter(|path| !path.exists());
    let opening = bar("finding people")?;
    let mut accounts = open_accounts(path, table, &asked.settings, &|size| opening.inc(size))?;
    opening.finish_and_clear();
    let mut source = Source::from_operating_system()?;
    let before = accounts.rounds();
    interrupt::defer();
    let outcome = Hold::take(place, &accounts, || plan.worst_case(asked)).and_then(|hold| {
        let is_over = asked.settings.mode == Mode::WorstCase || (before == 0 && fresh.is_some());
        let hold = Mutex::new(hold);
        let reading = bar("reading rows")?;
        let progress = |size| {
            if interrupt::requested() {
                give_up(&hold, !is_over, fresh.filter(|_| before == 0));
            }
            reading.inc(size);
        };
        let outcome = ask(table, &asked.layout, &mut accounts, asked.manner, &mut source, &progress);
        reading.finish_and_clear();
        // Nothing was drawn unless the accounts say so.
        let drawn = outcome.is_ok() || accounts.rounds() > before;
        if let Err(error) = hold.into_inner().unwrap_or_else(PoisonError::into_inner).end(drawn || !is_over) {
            eprintln!("note: what was reserved stays charged: {error:#}");
        }
        Ok(outcome?)
    });
    if let (Err(_), Some(path), 0) = (&outcome, fresh, accounts.rounds()) {
        // A first question that failed leaves nothing behind that could not be changed later.
        std::fs::remove_file(path).with_context(|| path.display().to_string())?;
    }
    outcome
}

/// Ends the process while rows are read, where nothing has been drawn yet. Whoever reads beside waits here, so nothing will be.
fn give_up(hold: &Mutex<Hold<'_>>, stays: bool, fresh: Option<&Path>) -> ! {
    let mut hold = hold.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = hold.take_over().end(stays) {
        eprintln!("note: what was reserved stays charged: {error:#}");
    }
    if let Some(path) = fresh
        && let Err(error) = std::fs::remove_file(path)
    {
        eprintln!("note: {}: {error}", path.display());
    }
    eprintln!("interrupted: nothing was asked, and no noise was drawn");
    std::process::exit(i32::from(interrupt::EXIT))
}

/// Answers first, then the rest.
fn tell(arguments: &Arguments, asked: &Asked, answers: &Answers, page: Option<std::fs::File>) -> anyhow::Result<()> {
    if arguments.json {
        print_json(&report::json(answers, asked, arguments.confidence.typed()))?;
    } else {
        print(&table(
            &report::header(answers, asked, arguments.confidence.as_str()).each_ref().map(String::as_str),
            report::rows(answers),
        ))?;
    }
    eprintln!("{}", promise(&asked.settings));
    eprintln!("{}", participation(answers, asked));
    match &asked.accounts {
        Some(path) => eprintln!("accounts: {}", path.display()),
        None if arguments.place.named().is_some() => {}
        None => {
            eprintln!("no --accounts: nothing is kept, the promise is for this run alone, and repeated runs add up")
        }
    }
    if let (Some(mut file), Some(path)) = (page, &arguments.report) {
        let page = report::page(answers, asked, arguments.confidence.as_str())?;
        file.set_len(0).with_context(|| path.display().to_string())?;
        file.write_all(page.html().as_bytes()).with_context(|| path.display().to_string())?;
        eprintln!("report: {}", path.display());
    }
    Ok(())
}

/// What is promised to whom.
fn promise(settings: &Settings) -> String {
    let how = match settings.mode {
        Mode::Individual => "fully adaptive, individual filter in zCDP",
        Mode::WorstCase => "fully adaptive, zCDP filter over the worst case",
    };
    let tier = |tier: &Tier| {
        let promise = match &tier.budget {
            PersonBudget::EpsilonDelta { epsilon, delta } => format!("({}, {})-DP", short(epsilon), short(delta)),
            PersonBudget::Rho(rho) => format!("{}-zCDP", short(rho)),
        };
        if tier.name.is_empty() { promise } else { format!("{promise} in tier `{}`", tier.name) }
    };
    let tiers: Vec<String> = settings.tiers.iter().map(tier).collect();
    format!("promise: {} for each `{}` under add-remove neighbors, {how}", tiers.join(", "), settings.person)
}

/// A decimal as people write it: 1e-6, not 0.000001.
fn short(decimal: &str) -> String {
    let brief = decimal.parse().map_or_else(|_| decimal.to_owned(), |x: f64| format!("{x:e}"));
    if decimal.starts_with("0.000") && brief.len() < decimal.len() { brief } else { decimal.to_owned() }
}

/// What is public about who took part.
fn participation(answers: &Answers, asked: &Asked) -> String {
    let percent = super::output::shown_up(100.0 * answers.worst_case);
    let beyond = match asked.manner.exhausted {
        Exhausted::LeftOut => {
            "people whose own budget does not cover a question are left out of it; who, and how many, is secret"
        }
        Exhausted::ScaledDown => {
            "people whose own budget is used up count with what they can still pay for; who they are is secret"
        }
    };
    match (asked.settings.mode, answers.everyone) {
        (Mode::WorstCase, _) => format!("spent {percent} % of the budget, the same for everybody"),
        (Mode::Individual, true) => {
            format!("everybody took part: even the worst case so far is {percent} % of a budget")
        }
        (Mode::Individual, false) => format!("{beyond} (the worst case so far would be {percent} % of a budget)"),
    }
}
