//! What never changes about a set of accounts: who is protected, how they are charged, what they may spend.

use paygo_accounting::filter::{Budget, BudgetError, Zcdp};
use paygo_accounting::individual::PersonalBudget;
use paygo_accounting::params::{Delta, OutOfDomain};
use paygo_numeric::Amount;
use serde::{Deserialize, Serialize};

/// How people are charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Each person for what their own record did; nothing is refused, people leave.
    Individual,
    /// Everybody for the most exposed person imaginable; a query that does not fit is refused.
    WorstCase,
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Individual => "individual",
            Self::WorstCase => "worst-case",
        })
    }
}

/// What a person may spend: ε and δ, or ρ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum PersonBudget {
    /// (ε, δ)-DP, by way of ρ-zCDP.
    EpsilonDelta {
        /// ε, a decimal.
        epsilon: String,
        /// δ, a decimal.
        delta: String,
    },
    /// ρ-zCDP, a decimal.
    Rho(String),
}

impl PersonBudget {
    /// # Errors
    /// [`BudgetError`] when no ρ above 0 does.
    pub fn budget(&self) -> Result<PersonalBudget, BudgetError> {
        Ok(PersonalBudget::zcdp(&self.rule()?))
    }

    /// # Errors
    /// [`BudgetError`] when no ρ above 0 does.
    pub fn rule(&self) -> Result<Zcdp, BudgetError> {
        let domain = |text: &str| OutOfDomain::new("rho", text, "a decimal number above 0");
        match self {
            Self::EpsilonDelta { epsilon, delta } => {
                let budget = Budget::from_decimal(epsilon, delta)?;
                if budget.delta() == Delta::ZERO {
                    let allowed = "1e-18 <= delta < 1: the noise is Gaussian, which needs a delta";
                    return Err(OutOfDomain::new("delta", delta, allowed).into());
                }
                Zcdp::new(budget)
            }
            Self::Rho(rho) => {
                let limit =
                    Amount::from_decimal_down(rho).filter(|&rho| rho > Amount::ZERO).ok_or_else(|| domain(rho))?;
                Zcdp::with_limit(limit, Amount::ZERO)
            }
        }
    }
}

/// `epsilon=3,delta=1e-6` or `rho=0.5`
impl std::str::FromStr for PersonBudget {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "budget = {text} is not a budget; expected epsilon=NUMBER,delta=NUMBER or rho=NUMBER, with decimal \
                 numbers such as 0.5 or 1e-5"
            )
        };
        let (mut epsilon, mut delta, mut rho) = (None, None, None);
        for pair in text.split(',') {
            let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
            let (name, place) = match name.trim() {
                "epsilon" => ("epsilon", &mut epsilon),
                "delta" => ("delta", &mut delta),
                "rho" => ("rho", &mut rho),
                _ => return Err(wrong()),
            };
            let negative = || format!("budget: {}", OutOfDomain::new(name, value.trim(), "at least 0"));
            let unread = || if value.trim().starts_with('-') { negative() } else { wrong() };
            // One form for one number, so that equal budgets are equal text.
            let value = Amount::from_decimal_down(value.trim()).ok_or_else(unread)?;
            if place.replace(value.to_string()).is_some() {
                return Err(wrong());
            }
        }
        match (epsilon, delta, rho) {
            (Some(epsilon), Some(delta), None) => Ok(Self::EpsilonDelta { epsilon, delta }),
            (None, None, Some(rho)) => Ok(Self::Rho(rho)),
            (_, _, _) => Err(wrong()),
        }
    }
}

impl std::fmt::Display for PersonBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::EpsilonDelta { epsilon, delta } => write!(f, "epsilon={epsilon},delta={delta}"),
            Self::Rho(rho) => write!(f, "rho={rho}"),
        }
    }
}

/// People of one budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// The value of the tier column; empty when there is none.
    pub name: String,
    /// What each of them may spend.
    pub budget: PersonBudget,
}

/// What never changes about a set of accounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The column that names the privacy unit.
    pub person: String,
    /// How people are charged.
    pub mode: Mode,
    /// The column whose value says which tier a person is in, when there are several.
    pub tier_column: Option<String>,
    /// The tiers, at least one, at most 256.
    pub tiers: Vec<Tier>,
}

impl Settings {
    /// One budget for everybody.
    #[must_use]
    pub fn new(person: &str, mode: Mode, budget: PersonBudget) -> Self {
        let tiers = vec![Tier { name: String::new(), budget }];
        Self { person: person.to_owned(), mode, tier_column: None, tiers }
    }
}
