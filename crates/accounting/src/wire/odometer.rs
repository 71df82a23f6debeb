//! The words in which an odometer is asked for.

use super::{FilterError, Number, OrderWords, Plan, Weights};
use crate::odometer::{AnyBoundary, OdometerKind, kind_names};
use crate::params::{Delta, Epsilon};
use crate::prior::Prior;
use paygo_numeric::Amount;
use serde::{Deserialize, Serialize};

/// An odometer as it is asked for. What is left out is chosen by δ and the target alone, so that it is fixed in advance.
///
/// ```
/// use paygo_accounting::{odometer::Boundary, wire::OdometerWords};
/// let words: OdometerWords = serde_json::from_str(r#"{"kind": "linear", "delta": "1e-6", "epsilon_target": 2}"#)?;
/// assert_eq!(words.boundary()?.word(), "linear");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OdometerWords {
    /// Which bound is read.
    #[serde(default)]
    pub kind: OdometerKind,
    /// The probability with which the reading may ever be passed, in each direction.
    pub delta: Number,
    /// The part of δ for steps with a δ of their own: none unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slack: Option<Number>,
    /// Where the reading should be tightest; 1 unless given, for the kinds that must aim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_target: Option<Number>,
    /// For `normal-mixture`: its precision ρ; from the target unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Number>,
    /// For `restart`: its step, a Rényi divergence; from the target unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Number>,
    /// For `ville-fixed` and `restart`: the order; the best for Gaussian noise at the target unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Number>,
    /// For the kinds over several orders: the orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders: Option<Vec<Number>>,
    /// Those that suit the target unless given; uniform with `orders`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Weights>,
    /// Concentrate the weights on the order that this plan would use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
}

impl OdometerWords {
    /// The boundary.
    ///
    /// # Errors
    /// [`FilterError`] naming the field, what was given and what is allowed.
    pub fn boundary(&self) -> Result<AnyBoundary, FilterError> {
        let given = [
            (self.precision.is_some(), "precision"),
            (self.step.is_some(), "step"),
            (self.order.is_some(), "order"),
            (self.plan.is_some(), "plan"),
            (self.orders.is_some(), "orders"),
            (self.weights.is_some(), "weights"),
            (self.slack()? > Amount::ZERO, "slack"),
        ];
        if let Some((_, field)) = given.into_iter().find(|(given, field)| *given && !self.kind.takes(field)) {
            return Err(FilterError::OtherKind { field, allowed: kind_names(|kind| kind.takes(field)) });
        }
        self.order_words().check()?;
        self.kind.boundary(self)
    }

    /// δ. ROUNDING: down.
    pub(crate) fn delta(&self) -> Result<Delta, FilterError> {
        Ok(Delta::new(self.delta.down("delta")?)?)
    }

    /// The part of δ that is set aside.
    pub(crate) fn slack(&self) -> Result<Amount, FilterError> {
        Ok(self.slack.as_ref().map_or(Ok(Amount::ZERO), |slack| slack.amount_down("slack"))?)
    }

    /// Where to aim, if that was said. ROUNDING: down; any target is sound.
    fn aim(&self) -> Result<Option<Epsilon>, FilterError> {
        let aim = |target: &Number| Ok(Epsilon::new(target.down("epsilon_target")?)?);
        self.epsilon_target.as_ref().map(aim).transpose()
    }

    /// Where to aim.
    pub(crate) fn target(&self) -> Result<Epsilon, FilterError> {
        Ok(self.aim()?.unwrap_or(Epsilon::new(1.0)?))
    }

    /// Orders and weights: as asked for, those that suit the target, or many.
    pub(crate) fn prior(&self) -> Result<Prior, FilterError> {
        let (aim, delta) = (self.aim()?, self.delta()?);
        self.order_words().prior(delta, || aim.map_or_else(Prior::log_spaced, |aim| Prior::for_budget(aim, delta)))
    }

    /// What is said about orders.
    pub(crate) fn order_words(&self) -> OrderWords<'_> {
        OrderWords {
            order: self.order.as_ref(),
            orders: self.orders.as_deref(),
            weights: self.weights.as_ref(),
            plan: self.plan.as_ref(),
        }
    }
}
