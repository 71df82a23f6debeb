//! The (ε, δ) that a filter keeps, and how δ is split.

use crate::params::{Delta, Epsilon, OutOfDomain};
use paygo_numeric::Amount;
use paygo_numeric::decimal::parse_down;

/// A target (ε, δ), split as `δ = δ′ + δ″`: δ′ for the loss, δ″ (the *slack*) for the steps' own δ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    epsilon: Epsilon,
    /// What the sums of pure ε may reach.
    limit: Amount,
    delta: Delta,
    loss_delta: Delta,
    slack: Amount,
}

impl Budget {
    /// A budget for steps without a δ of their own.
    ///
    /// # Errors
    /// [`OutOfDomain`] when ε is infinite or δ is 1: nothing would be promised.
    pub fn new(epsilon: Epsilon, delta: Delta) -> Result<Self, OutOfDomain> {
        if epsilon == Epsilon::INFINITE {
            return Err(OutOfDomain::new("epsilon", epsilon, "0 <= epsilon < inf"));
        }
        if delta.get() >= 1.0 {
            return Err(OutOfDomain::new("delta", delta, "0 <= delta < 1"));
        }
        // ROUNDING: down; never +∞, since ε is finite.
        let limit = Amount::from_f64_down(epsilon.get()).unwrap_or(Amount::ZERO);
        Ok(Self { epsilon, limit, delta, loss_delta: delta, slack: Amount::ZERO })
    }

    /// The same from decimal text: as doubles rounded down, and ε also exactly, so that 0.1 fits three times into 0.3.
    ///
    /// # Errors
    /// [`OutOfDomain`] when one is not a decimal number or out of its domain.
    pub fn from_decimal(epsilon: &str, delta: &str) -> Result<Self, OutOfDomain> {
        let down = |name: &'static str, text: &str| {
            let allowed = "a decimal number such as 0.5 or 1e-5, not a fraction";
            parse_down(text).ok_or_else(|| OutOfDomain::new(name, text, allowed))
        };
        let as_typed = |text: &str| {
            let given = text.to_owned();
            move |error| OutOfDomain { given, ..error }
        };
        let e = Epsilon::new(down("epsilon", epsilon)?).map_err(as_typed(epsilon))?;
        let d = Delta::new(down("delta", delta)?).ok().filter(|&d| d < Delta::ONE);
        let d = d.ok_or_else(|| OutOfDomain::new("delta", delta, "0 <= delta < 1"))?;
        let limit = Amount::from_decimal_down(epsilon).unwrap_or(Amount::ZERO);
        Ok(Self { limit, ..Self::new(e, d)? })
    }

    /// The same with an exact limit for sums of pure ε, as it was stored; never above ε by more than a rounding.
    pub(crate) fn with_limit(self, limit: Amount) -> Result<Self, OutOfDomain> {
        let next = Amount::from_f64_up(self.epsilon.get().next_up());
        if limit > next || limit.is_infinite() {
            return Err(OutOfDomain::new("epsilon_limit", limit, "epsilon, as a decimal"));
        }
        Ok(Self { limit, ..self })
    }

    /// Sets a part of δ aside for the steps' own δ.
    ///
    /// # Errors
    /// [`OutOfDomain`] when it is more than δ.
    pub fn with_slack(self, slack: Amount) -> Result<Self, OutOfDomain> {
        // ROUNDING: down; δ′ + δ″ is at most δ.
        match self.delta.less(slack.to_f64_up()) {
            Some(loss_delta) => Ok(Self { loss_delta, slack, ..self }),
            None => Err(OutOfDomain::new("slack", slack, "0 <= slack < delta")),
        }
    }

    /// ε.
    #[must_use]
    pub const fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    /// ε as an exact amount: the limit of sums of pure ε.
    #[must_use]
    pub const fn limit(&self) -> Amount {
        self.limit
    }

    /// δ, all of it.
    #[must_use]
    pub const fn delta(&self) -> Delta {
        self.delta
    }

    /// δ′: what is left for the loss.
    #[must_use]
    pub const fn loss_delta(&self) -> Delta {
        self.loss_delta
    }

    /// δ″: what is set aside for the steps' own δ.
    #[must_use]
    pub const fn slack(&self) -> Amount {
        self.slack
    }

    /// ε at δ and above, nothing below. Sums of pure ε may reach the exact limit, so it is never less than that.
    pub(super) fn promise(&self, delta: Delta) -> Epsilon {
        let epsilon = self.epsilon.get().max(self.limit.to_f64_up());
        if delta.get() >= self.delta.get() { Epsilon::from_upper_bound(epsilon) } else { Epsilon::INFINITE }
    }
}
