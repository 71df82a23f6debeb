//! Plans: releases fixed in advance.

use super::{Mechanism, Number};
use crate::cost::{Cost, CostError};
use crate::mechanism::Mechanism as Checked;
use crate::params::{Count, Neighbors as Relation, OutOfDomain};
use serde::{Deserialize, Serialize};

/// A neighbor relation as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Neighbors {
    /// One record more or less.
    #[default]
    AddRemove,
    /// One record replaced by another.
    ReplaceOne,
    /// One record replaced by a null record.
    ZeroOut,
}

impl From<Neighbors> for Relation {
    fn from(word: Neighbors) -> Self {
        match word {
            Neighbors::AddRemove => Self::AddRemove,
            Neighbors::ReplaceOne => Self::ReplaceOne,
            Neighbors::ZeroOut => Self::ZeroOut,
        }
    }
}

impl From<Relation> for Neighbors {
    fn from(relation: Relation) -> Self {
        match relation {
            Relation::AddRemove => Self::AddRemove,
            Relation::ReplaceOne => Self::ReplaceOne,
            Relation::ZeroOut => Self::ZeroOut,
        }
    }
}

/// A plan: releases fixed in advance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Which datasets are neighbors.
    #[serde(default)]
    pub neighbors: Neighbors,
    /// Who is protected.
    #[serde(default = "record")]
    pub privacy_unit: String,
    /// The δ at which ε is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<Number>,
    /// The ε at which δ is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<Number>,
    /// What will be released.
    pub releases: Vec<Release>,
}

fn record() -> String {
    "record".to_owned()
}

/// One entry of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// How often; once unless given.
    #[serde(default = "once")]
    pub count: Number,
    /// What.
    pub mechanism: Mechanism,
}

const fn once() -> Number {
    Number::Integer(1)
}

impl Plan {
    /// The cost of the whole plan.
    ///
    /// # Errors
    /// [`PlanError`] naming the release, the field, what was given and what is allowed.
    pub fn cost(&self) -> Result<Cost, PlanError> {
        if self.privacy_unit.trim().is_empty() {
            return Err(PlanError::Plan(OutOfDomain::new("privacy_unit", "\"\"", "a word such as \"record\"").into()));
        }
        let parts: Vec<Cost> = self
            .release_costs()?
            .iter()
            .enumerate()
            .map(|(index, (cost, count))| {
                cost.repeat(count.get()).map_err(|source| PlanError::Release { index, source })
            })
            .collect::<Result<_, _>>()?;
        let (first, rest) = parts.split_first().ok_or(PlanError::Plan(CostError::Empty("releases")))?;
        first.and_all(rest).map_err(PlanError::Plan)
    }

    /// The cost of one run of each release, and how often it runs.
    ///
    /// # Errors
    /// [`PlanError`] naming the release, the field, what was given and what is allowed.
    pub fn release_costs(&self) -> Result<Vec<(Cost, Count)>, PlanError> {
        let one = |release: &Release| -> Result<(Cost, Count), CostError> {
            let mechanism = Checked::try_from(&release.mechanism)?;
            Ok((Cost::of(&mechanism, self.neighbors.into())?, release.count.count("count")?))
        };
        let indexed = self.releases.iter().enumerate();
        indexed.map(|(index, release)| one(release).map_err(|source| PlanError::Release { index, source })).collect()
    }
}

/// A plan that cannot be priced.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// One of its releases.
    #[error("releases[{index}]: {source}")]
    Release {
        /// Which, from 0.
        index: usize,
        /// Why.
        source: CostError,
    },
    /// The plan as a whole.
    #[error(transparent)]
    Plan(CostError),
}
