//! What filters and odometers share on the command line: kinds, orders and weights, and who is protected.

use super::arguments::Decimal;
use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::FilterKind;
use paygo_accounting::odometer::OdometerKind;
use paygo_accounting::params::Neighbors;
use paygo_accounting::wire::{FilterError, Number, Plan, WeightWord, Weights};
use std::path::PathBuf;

/// The kinds of filters, from their table.
pub(crate) fn filter_kinds() -> impl TypedValueParser<Value = FilterKind> {
    let values = FilterKind::ALL.iter().map(|kind| PossibleValue::new(kind.word()).help(kind.help()));
    PossibleValuesParser::new(values).map(|word| word.parse().expect("one of the possible values"))
}

/// The kinds of odometers, from their table; a name from before is still read.
pub(crate) fn odometer_kinds() -> impl TypedValueParser<Value = OdometerKind> {
    let value = |kind: &OdometerKind| PossibleValue::new(kind.word()).help(kind.help()).aliases(kind.old_word());
    let named = |word: String| {
        let is = |kind: &&OdometerKind| kind.word() == word || kind.old_word() == Some(word.as_str());
        *OdometerKind::ALL.iter().find(is).expect("one of the possible values")
    };
    PossibleValuesParser::new(OdometerKind::ALL.iter().map(value)).map(named)
}

/// A number as it was typed.
pub(crate) fn number(decimal: Option<&Decimal>) -> Option<Number> {
    decimal.map(Decimal::number)
}

/// What is wrong with a filter or an odometer, in the words of the command line.
pub(crate) fn complaint(error: FilterError) -> anyhow::Error {
    let flag = |field: &str| field.replace('_', "-");
    match error {
        FilterError::OtherKind { field, allowed } => {
            anyhow::anyhow!("--{} does not go with this --kind; it goes with {allowed}", flag(field))
        }
        FilterError::Missing("epsilon", _) => {
            anyhow::anyhow!("give --epsilon and --delta\nhint: --epsilon 1 --delta 1e-6")
        }
        FilterError::Missing("delta", _) => {
            anyhow::anyhow!("give --delta\nhint: --delta 1e-6, or --kind pure for pure-DP steps with no delta")
        }
        FilterError::Missing(field, _) => anyhow::anyhow!("no {field} suits this target; give --{}", flag(field)),
        FilterError::Twice(_) => anyhow::anyhow!("give --rho or --mu, or --epsilon and --delta"),
        FilterError::Budget(_) | FilterError::Plan(_) | FilterError::UnknownKind { .. } => error.into(),
    }
}

/// Says so where a δ is unusually large.
pub(crate) fn note_large_delta(delta: f64) {
    if delta > 0.01 {
        eprintln!("note: delta = {delta} is large; usually it is below 1 over the number of people");
    }
}

/// Which datasets are neighbors.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum NeighborsArgument {
    /// One record more or less
    AddRemove,
    /// One record replaced by another
    ReplaceOne,
    /// One record replaced by a null record
    ZeroOut,
}

impl From<NeighborsArgument> for Neighbors {
    fn from(argument: NeighborsArgument) -> Self {
        match argument {
            NeighborsArgument::AddRemove => Self::AddRemove,
            NeighborsArgument::ReplaceOne => Self::ReplaceOne,
            NeighborsArgument::ZeroOut => Self::ZeroOut,
        }
    }
}

/// Orders and their weights, and who is protected: what filters and odometers share.
#[derive(Args)]
pub(crate) struct OrderArguments {
    /// Rényi orders such as 2,4,8,inf, for the kinds with several orders.
    ///
    /// Each is more than 1. For the filters mixture and union and the odometers ville-mixture, ville-union and
    /// doubling. By default they are chosen for the budget, or for --epsilon-target.
    #[arg(long, value_delimiter = ',', value_name = "ORDERS", conflicts_with = "plan")]
    orders: Option<Vec<Decimal>>,
    /// Rényi order, more than 1, for the kinds with one order.
    ///
    /// For the filter fixed-order and the odometers ville-fixed and restart. By default it is the best one for Gaussian
    /// noise at the budget, or at --epsilon-target.
    #[arg(long, value_name = "ORDER")]
    pub(crate) order: Option<Decimal>,
    /// Weights of the orders: `uniform`, or one number for each finite order.
    ///
    /// The numbers add up to at most 1. For the filters mixture and union and the odometers ville-mixture and
    /// ville-union. By default uniform with --orders, else chosen for the budget, or for --epsilon-target.
    #[arg(long, value_delimiter = ',', value_name = "WEIGHTS", conflicts_with = "plan")]
    weights: Option<Vec<String>>,
    /// Plan (TOML or JSON) to be tightest for; requests may differ from it.
    ///
    /// A clock starts with the steps of the plan, which are then paid for by themselves. The filters mixture and union and
    /// the odometers ville-mixture and ville-union put their weights on the order that the plan would use. See
    /// docs/filters.md.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Which two datasets are neighbors [default: the plan's, or add-remove]
    #[arg(long, value_enum)]
    neighbors: Option<NeighborsArgument>,
    /// Who is protected, such as customer [default: the plan's, or record]
    #[arg(long, value_name = "WHO")]
    privacy_unit: Option<String>,
}

impl OrderArguments {
    /// The plan, if one was given, and its cost.
    pub(crate) fn plan(&self) -> anyhow::Result<Option<(Plan, Cost)>> {
        let Some(path) = &self.plan else { return Ok(None) };
        let plan = super::account::read_plan(path)?;
        let cost = plan.cost().with_context(|| format!("plan {}", path.display()))?;
        if let Some(neighbors) = self.neighbors.map(Neighbors::from) {
            anyhow::ensure!(
                cost.neighbors() == neighbors,
                "the plan is for {} neighbors, and --neighbors is {neighbors}; expected the same",
                cost.neighbors()
            );
        }
        Ok(Some((plan, cost)))
    }

    /// Who is protected: as asked for, as the plan says, or a record.
    pub(crate) fn privacy_unit(&self, plan: Option<&(Plan, Cost)>) -> String {
        let planned = plan.map(|(plan, _)| plan.privacy_unit.clone());
        self.privacy_unit.clone().or(planned).unwrap_or_else(|| "record".to_owned())
    }

    /// The neighbor relation: the one asked for, the plan's, or add-remove.
    pub(crate) fn neighbors(&self, plan: Option<&(Plan, Cost)>) -> Neighbors {
        self.neighbors.map(Neighbors::from).or(plan.map(|(_, cost)| cost.neighbors())).unwrap_or(Neighbors::AddRemove)
    }

    /// Whether nothing was said.
    pub(crate) const fn is_silent(&self) -> bool {
        self.orders.is_none()
            && self.order.is_none()
            && self.weights.is_none()
            && self.plan.is_none()
            && self.neighbors.is_none()
            && self.privacy_unit.is_none()
    }

    /// Orders and weights as they are asked for.
    pub(crate) fn words(&self) -> (Option<Vec<Number>>, Option<Weights>) {
        let number = |text: &str| Number::Decimal(text.to_owned());
        let orders = self.orders.as_ref().map(|orders| orders.iter().map(|order| number(order.as_str())).collect());
        let weights = self.weights.as_ref().map(|weights| match weights.as_slice() {
            [word] if word == "uniform" => Weights::Word(WeightWord::Uniform),
            each => Weights::Each(each.iter().map(|weight| number(weight)).collect()),
        });
        (orders, weights)
    }
}
