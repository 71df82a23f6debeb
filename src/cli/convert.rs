//! `paygo convert`: between the currencies, by every method.

use super::arguments::{Decimal, QuestionArguments, delta};
use super::output::{json_number, print, print_json, shown_down, shown_up, table};
use clap::Args;
use paygo_accounting::account::Question;
use paygo_accounting::convert::{Conversion, gaussian, zcdp};
use paygo_accounting::params::{Divergence, Epsilon, Mu, Order, Rho};
use serde_json::{Map, Value};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    paygo convert --renyi 8:0.5 --delta 1e-5     # epsilon from Rényi\n  \
    paygo convert --zcdp 0.1 --epsilon 3         # delta from zCDP\n  \
    paygo convert --gdp 1 --delta 1e-5           # epsilon from GDP, exactly\n  \
    paygo convert --epsilon 3 --delta 1e-5       # the largest rho, mu, ...\n\n\
    See docs/methods.md for the methods.")]
pub(crate) struct Arguments {
    /// Convert from Rényi: the divergence at ORDER (more than 1) is at most VALUE
    #[arg(long, value_name = "ORDER:VALUE", group = "from", allow_hyphen_values = true)]
    renyi: Option<String>,
    /// Convert from zCDP with this rho, at least 0
    #[arg(long, alias = "rho", value_name = "RHO", group = "from", allow_hyphen_values = true)]
    zcdp: Option<Decimal>,
    /// Convert from GDP with this mu, at least 0
    #[arg(long, alias = "mu", value_name = "MU", group = "from", allow_hyphen_values = true)]
    gdp: Option<Decimal>,
    #[command(flatten)]
    question: QuestionArguments,
    /// Rényi orders to show, if both --epsilon and --delta are given
    #[arg(long, value_name = "ORDER", value_delimiter = ',', default_value = "2,4,8,16,32,64")]
    orders: Vec<Decimal>,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let answers: Vec<(String, f64)> = if let Some(text) = &arguments.renyi {
        let (order, value) = parse_renyi(text)?;
        let question = arguments.question.required()?;
        let by = |conversion: Conversion| match question {
            Question::EpsilonAt(delta) => conversion.epsilon(order, value, delta).get(),
            Question::DeltaAt(epsilon) => conversion.delta(order, value, epsilon).get(),
        };
        Conversion::ALL.map(|conversion| (conversion.word().to_owned(), by(conversion))).to_vec()
    } else if let Some(text) = &arguments.zcdp {
        let rho = text.up_as(Rho::new)?;
        let question = arguments.question.required()?;
        let by = |conversion: Conversion| match question {
            Question::EpsilonAt(delta) => zcdp::epsilon(conversion, rho, delta).0.get(),
            Question::DeltaAt(epsilon) => zcdp::delta(conversion, rho, epsilon).0.get(),
        };
        Conversion::ALL.map(|conversion| (conversion.word().to_owned(), by(conversion))).to_vec()
    } else if let Some(text) = &arguments.gdp {
        let mu = text.up_as(Mu::new)?;
        let exact = match arguments.question.required()? {
            Question::EpsilonAt(delta) => gaussian::epsilon(mu, delta).get(),
            Question::DeltaAt(epsilon) => gaussian::delta(mu, epsilon).get(),
        };
        vec![("exact".to_owned(), exact)]
    } else {
        return budgets(arguments);
    };
    if arguments.json {
        let object: Map<String, Value> = answers.into_iter().map(|(name, value)| (name, json_number(value))).collect();
        print_json(&Value::Object(object))?;
    } else {
        let asked = if arguments.question.delta.is_some() { "epsilon" } else { "delta" };
        let rows = answers.into_iter().map(|(name, value)| vec![name, shown_up(value)]);
        print(&table(&["method", asked], rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The largest divergences that still give the (ε, δ) asked for, rounded down.
fn budgets(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (Some(epsilon), Some(delta_text)) = (&arguments.question.epsilon, &arguments.question.delta) else {
        anyhow::bail!(
            "nothing to convert\nhint: --renyi ORDER:VALUE, --zcdp RHO or --gdp MU with --delta or --epsilon; or both of --epsilon and --delta for budgets"
        );
    };
    let (epsilon, delta) = (epsilon.down_as(Epsilon::new)?, delta(delta_text)?);
    let rho = |conversion| json_number(zcdp::budget(conversion, epsilon, delta).get());
    let orders = arguments.orders.iter().map(|order| order.down_as(Order::new)).collect::<anyhow::Result<Vec<_>>>()?;
    if arguments.json {
        let by_method = |budget: &dyn Fn(Conversion) -> Value| {
            Conversion::ALL.iter().map(|&c| (c.word().to_owned(), budget(c))).collect::<Map<_, _>>()
        };
        let renyi: Vec<Value> = orders
            .iter()
            .map(|&order| {
                let mut object = by_method(&|c| {
                    c.budget(order, epsilon, delta).map_or(Value::Null, |budget| json_number(budget.get()))
                });
                object.insert("order".into(), json_number(order.get()));
                Value::Object(object)
            })
            .collect();
        print_json(&serde_json::json!({
            "rho": by_method(&rho),
            "mu": {"exact": json_number(gaussian::budget(epsilon, delta).get())},
            "renyi": renyi,
        }))?;
    } else {
        let line = |name: String, budget: &dyn Fn(Conversion) -> Option<f64>| {
            let shown = |&c: &Conversion| budget(c).map_or_else(|| "none".into(), shown_down);
            std::iter::once(name).chain(Conversion::ALL.iter().map(shown)).collect::<Vec<_>>()
        };
        let mut rows = vec![line("rho (zCDP)".into(), &|c| Some(zcdp::budget(c, epsilon, delta).get()))];
        let mu = shown_down(gaussian::budget(epsilon, delta).get());
        rows.push(vec!["mu (GDP)".into(), "-".into(), "-".into(), "-".into(), mu]);
        let renyi = |order: Order| move |c: Conversion| c.budget(order, epsilon, delta).map(Divergence::get);
        rows.extend(orders.iter().map(|&order| line(format!("Rényi at {order}"), &renyi(order))));
        print(&table(&["budget", "classic", "cks", "lemma1", "exact"], rows))?;
        print("none: no divergence at that order, not even 0, shows the target by that method")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn parse_renyi(text: &str) -> anyhow::Result<(Order, Divergence)> {
    let wrong = || anyhow::anyhow!("--renyi {text} is not a Rényi divergence; expected ORDER:VALUE such as 8:0.5");
    let (order, value) = text.split_once(':').ok_or_else(wrong)?;
    let order: Decimal = order.parse().map_err(|_| wrong())?;
    let value: Decimal = value.parse().map_err(|_| wrong())?;
    // The divergence rises with the order, so a bound at the order typed is a bound at the double below it.
    Ok((order.down_as(Order::new)?, value.up_as(Divergence::new)?))
}
