//! `paygo account`: the price of a plan by every method that applies.

use super::arguments::{CountArgument, Decimal, QuestionArguments, svg_path};
use super::output::{json_number, print, print_json, shown_down, shown_up, table};
use anyhow::Context;
use clap::Args;
use paygo_accounting::account::{Question, Row, best_proved, rows, tightest};
use paygo_accounting::cost::Cost;
use paygo_accounting::guarantee::Basis;
use paygo_accounting::loss;
use paygo_accounting::params::{Delta, Epsilon, Neighbors};
use paygo_accounting::wire::Plan;
use paygo_report::{LineChart, Series};
use serde_json::json;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Without --delta and --epsilon, the delta or epsilon in the plan is taken.\n\n\
    Examples:\n  \
    paygo account examples/dp-sgd.toml\n  \
    paygo account examples/survey.toml --delta 1e-8 --json\n  \
    paygo account --steps 1000 --sampling-probability 0.01 \\\n      \
    --noise-multiplier 1 --delta 1e-5\n  \
    echo '{\"releases\": [{\"mechanism\": {\"laplace\": {\"scale\": 20}}}]}' |\n      \
    paygo account - --delta 1e-5\n\n\
    See docs/planning.md, and docs/methods.md for the fields of a plan and for the methods.")]
pub(crate) struct Arguments {
    /// The plan, in TOML or JSON; - reads standard input
    #[arg(required_unless_present = "noise_multiplier", conflicts_with = "noise_multiplier")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    steps: StepsArguments,
    #[command(flatten)]
    question: QuestionArguments,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
    /// Draw epsilon against the number of steps, a line for each method
    #[arg(long, value_name = "FILE.svg", value_parser = svg_path)]
    plot: Option<PathBuf>,
}

/// A plan without a file: steps that are all alike.
#[derive(Args)]
struct StepsArguments {
    /// Instead of a plan: steps of Gaussian noise with this noise multiplier.
    ///
    /// It is the standard deviation of the noise over the sensitivity. Neighbors are add-remove.
    #[arg(long, allow_hyphen_values = true)]
    noise_multiplier: Option<Decimal>,
    /// Number of steps, 1 to 2^53 [default: 1]
    #[arg(long, requires = "noise_multiplier")]
    steps: Option<CountArgument>,
    /// Poisson sampling probability of each step [default: no sampling]
    #[arg(long, requires = "noise_multiplier", allow_hyphen_values = true)]
    sampling_probability: Option<Decimal>,
}

impl StepsArguments {
    /// The same as a plan.
    fn plan(&self) -> anyhow::Result<Plan> {
        let noise = self.noise_multiplier.as_ref().map(Decimal::as_str);
        let mechanism = match &self.sampling_probability {
            None => json!({"gaussian": {"noise_multiplier": noise}}),
            Some(q) => {
                json!({"poisson_sampled_gaussian": {"sampling_probability": q.as_str(), "noise_multiplier": noise}})
            }
        };
        let count = self.steps.map_or(1, |steps| steps.0.get());
        Ok(serde_json::from_value(json!({"releases": [{"count": count, "mechanism": mechanism}]}))?)
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let plan = match &arguments.plan {
        Some(path) => read_plan(path)?,
        None => arguments.steps.plan()?,
    };
    let question = match arguments.question.question()? {
        Some(question) => question,
        None => plan_question(&plan)?,
    };
    let cost = plan.cost().with_context(|| arguments.plan.as_deref().map_or_else(|| "plan".to_owned(), name))?;
    let rows = all_rows(&cost, question);
    if let Some(path) = &arguments.plot {
        plot(&plan, question, path)?;
    }
    if arguments.json {
        let asked = arguments.question.asked().or_else(|| plan.delta.clone().or(plan.epsilon.clone()));
        let asked = asked.map(|number| number.nearest("number")).transpose()?;
        let row_json = |row: &Row| row_json(row, question, asked);
        print_json(&json!({
            "neighbors": cost.neighbors().word(),
            "privacy_unit": plan.privacy_unit,
            "rows": rows.iter().map(row_json).collect::<Vec<_>>(),
            "best": best_proved(&rows).map(row_json),
        }))?;
    } else {
        print(&report(&plan, &cost, &rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Every method, the slow one included; estimates stay last.
pub(crate) fn all_rows(cost: &Cost, question: Question) -> Vec<Row> {
    let mut all = rows(cost, question);
    // Gaussian noise alone has an exact answer already.
    if cost.mu().is_none() {
        let proved = all.iter().take_while(|row| row.basis != Basis::Estimate).count();
        let both_ends = loss::row(cost, question).into_iter().chain(loss::at_least(cost, question));
        all.splice(proved..proved, both_ends);
    }
    all
}

/// A row. What was asked for was read down; the promise holds at the number that was written.
fn row_json(row: &Row, question: Question, asked: Option<f64>) -> serde_json::Value {
    let (epsilon, delta) = match question {
        Question::EpsilonAt(_) => (row.epsilon.get(), asked.unwrap_or(row.delta.get())),
        Question::DeltaAt(_) => (asked.unwrap_or(row.epsilon.get()), row.delta.get()),
    };
    json!({
        "method": row.method,
        "epsilon": json_number(epsilon),
        "delta": json_number(delta),
        "order": row.order.map(|order| json_number(order.get())),
        "basis": row.basis.word(),
    })
}

/// Reads a plan; JSON when it starts with a brace, else TOML.
pub(crate) fn read_plan(path: &Path) -> anyhow::Result<Plan> {
    parse_plan(&read_text(path)?).with_context(|| name(path))
}

/// The text of a plan: a file, or `-` for standard input.
pub(crate) fn read_text(path: &Path) -> anyhow::Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).with_context(|| name(path))?;
        return Ok(text);
    }
    std::fs::read_to_string(path).with_context(|| name(path))
}

/// The plan, in a message.
pub(crate) fn name(path: &Path) -> String {
    if path == Path::new("-") { "plan on standard input".to_owned() } else { format!("plan {}", path.display()) }
}

pub(crate) fn parse_plan(text: &str) -> anyhow::Result<Plan> {
    if text.trim_start().starts_with('{') { Ok(serde_json::from_str(text)?) } else { Ok(toml::from_str(text)?) }
}

/// The question that the plan itself asks.
fn plan_question(plan: &Plan) -> anyhow::Result<Question> {
    match (&plan.delta, &plan.epsilon) {
        (Some(_), Some(_)) => anyhow::bail!("the plan gives delta and epsilon; expected one: the other is computed"),
        (Some(number), None) => {
            let delta = Delta::new(number.down("delta")?).ok().filter(|&delta| delta < Delta::ONE);
            let wrong = || format!("delta = {} is outside its domain; expected 0 <= delta < 1", number.text());
            Ok(Question::EpsilonAt(delta.with_context(wrong)?))
        }
        (None, Some(number)) => Ok(Question::DeltaAt(Epsilon::new(number.down("epsilon")?)?)),
        (None, None) => {
            anyhow::bail!("the plan gives neither delta nor epsilon\nhint: add `delta = 1e-5`, or --delta 1e-5")
        }
    }
}

pub(crate) fn report(plan: &Plan, cost: &Cost, rows: &[Row]) -> String {
    let epsilon_asked = rows.windows(2).all(|pair| pair[0].delta == pair[1].delta);
    let cells = rows.iter().map(|row| {
        // Of a lower end the answer is rounded down, and what was asked for is shown as everywhere.
        let shown = |value: f64, is_answer: bool| {
            if row.basis == Basis::Lower && is_answer { shown_down(value) } else { shown_up(value) }
        };
        vec![
            row.method.to_owned(),
            shown(row.epsilon.get(), epsilon_asked),
            shown(row.delta.get(), !epsilon_asked),
            row.order.filter(|_| row.epsilon < Epsilon::INFINITE).map_or_else(|| "-".to_owned(), |o| shown_up(o.get())),
            row.basis.word().to_owned(),
        ]
    });
    let mut text = format!("protects one {} under {} neighbors\n", plan.privacy_unit, cost.neighbors());
    text += &table(&["method", "epsilon", "delta", "order", "basis"], cells);
    if let Some(best) = best_proved(rows).filter(|best| best.epsilon < Epsilon::INFINITE) {
        let (epsilon, delta) = (shown_up(best.epsilon.get()), shown_up(best.delta.get()));
        let basis = best.basis.word();
        text += &format!(
            "\nbest proved: epsilon {epsilon} at delta {delta} by {} ({basis}); last digits rounded up",
            best.method
        );
    }
    let (slack, most) =
        (cost.slack(), rows.iter().map(|row| row.delta).fold(Delta::ZERO, |a, b| if b > a { b } else { a }));
    if slack > Delta::ZERO && slack >= most {
        text += &format!(
            "\nnote: the releases' own delta, {}, leaves nothing of the delta asked for",
            shown_up(slack.get())
        );
    }
    if let Some(different) = loss::too_many(cost) {
        text += &format!(
            "\nnote: no privacy-loss row: the plan has {different} different mechanisms, and at most {} are composed that way",
            loss::MAX_MECHANISMS
        );
    }
    for basis in [Basis::FullyAdaptive, Basis::FixedInAdvance, Basis::Estimate, Basis::Lower] {
        if rows.iter().any(|row| row.basis == basis) {
            text += &format!("\n{}: {}", basis.word(), basis.allows());
        }
    }
    text
}

/// ε after each of some numbers of steps, in the order of the plan.
fn plot(plan: &Plan, question: Question, path: &Path) -> anyhow::Result<()> {
    let Question::EpsilonAt(delta) = question else { anyhow::bail!("--plot draws epsilon; give --delta") };
    let neighbors: Neighbors = plan.neighbors.into();
    let releases: Vec<(Cost, u64)> =
        plan.release_costs()?.into_iter().map(|(cost, count)| (cost, count.get())).collect();
    let total = releases.iter().try_fold(0u64, |sum, (_, count)| sum.checked_add(*count));
    let total = total.context("the plan has too many steps to draw")?;
    let mut series: Vec<Series> = Vec::new();
    const POINTS: u64 = 60;
    let mut last = 0;
    for i in 1..=POINTS.min(total) {
        // Denser at the start, where ε rises fastest.
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a plot"
        )]
        let steps = ((i as f64 / POINTS.min(total) as f64).powi(2) * total as f64).ceil() as u64;
        if steps == last {
            continue;
        }
        last = steps;
        // The privacy-loss distribution takes a while: every fifth point will do. A lower end beside the promises would be taken for one.
        let price = if i % 5 == 0 { all_rows } else { rows };
        let promised = price(&prefix(&releases, steps)?, Question::EpsilonAt(delta)).into_iter();
        for row in promised.filter(|row| row.basis != Basis::Lower) {
            #[expect(clippy::cast_precision_loss, reason = "a plot")]
            let point = (steps as f64, row.epsilon.get());
            match series.iter_mut().find(|series| series.name.trim_end_matches(" (estimate)") == row.method) {
                Some(series) => series.points.push(point),
                None => {
                    let dashed = row.basis == Basis::Estimate;
                    let name = if dashed { format!("{} (estimate)", row.method) } else { row.method.to_owned() };
                    series.push(Series { name, points: vec![point], dashed });
                }
            }
        }
    }
    let chart = LineChart {
        title: format!("epsilon at delta = {:e}, one {} under {} neighbors", delta.get(), plan.privacy_unit, neighbors),
        x_label: "steps".into(),
        y_label: "epsilon".into(),
        // A method that is many times worse would flatten all the others.
        y_limit: 2.0 * tightest(&prefix(&releases, total)?, delta).epsilon.get(),
        series,
    };
    Ok(chart.write_svg(path)?)
}

/// The first `steps` steps of the releases.
fn prefix(releases: &[(Cost, u64)], steps: u64) -> anyhow::Result<Cost> {
    let mut left = steps;
    let mut total: Option<Cost> = None;
    for (cost, count) in releases {
        let now = left.min(*count);
        if now == 0 {
            break;
        }
        let part = cost.repeat(now)?;
        total = Some(match total {
            Some(sum) => sum.and(&part)?,
            None => part,
        });
        left -= now;
    }
    total.context("a plan without steps")
}
