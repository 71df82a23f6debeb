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
            anyhow::anyhow!("--{} does not go with this --kind; expected {allowed}", flag(field))
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
    /// The orders of union and mixture, such as 2,4,8; inf may be among them [default: those that suit the target]
    #[arg(long, value_delimiter = ',', value_name = "ORDERS", conflicts_with = "plan")]
    orders: Option<Vec<Decimal>>,
    /// The order of the fixed-order kinds [default: the best for Gaussian noise at the target]
    #[arg(long, value_name = "ORDER")]
    pub(crate) order: Option<Decimal>,
    /// `uniform`, or one weight for each finite order, together at most 1 [default: those that suit the target, uniform with --orders]
    #[arg(long, value_delimiter = ',', value_name = "WEIGHTS", conflicts_with = "plan")]
    weights: Option<Vec<String>>,
    /// Concentrate the weights on the order that this plan would use; requests may still be anything
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Which datasets are neighbors [default: the plan's, or add-remove]
    #[arg(long, value_enum)]
    neighbors: Option<NeighborsArgument>,
    /// Who is protected [default: the plan's, or record]
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
                "the plan is about {} neighbors; expected {neighbors}",
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
