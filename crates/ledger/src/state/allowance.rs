//! Ceilings: a dataset's rule with a smaller budget.

use super::Mistake;
use crate::words::NewAllowance;
use paygo_accounting::filter::{AnyRule, Rule as _};
use paygo_accounting::wire::{FilterError, FilterWords, Number};

/// The dataset's rule with the ceiling's budget: the same kind, orders and weights, hence the same currency. `delta` is the one in the
/// dataset's own words, if any; the ceiling's is the same unless given.
///
/// # Soundness
/// A ceiling only refuses. By itself it is a filter for what its members see: whatever they ask, what was released to them is
/// private as its budget says.
pub(super) fn ceiling(rule: &AnyRule, delta: Option<String>, asked: &NewAllowance) -> Result<AnyRule, Mistake> {
    let mut words = FilterWords {
        kind: rule.kind(),
        epsilon: asked.epsilon.clone(),
        delta: asked.delta.clone(),
        rho: asked.rho.clone(),
        mu: asked.mu.clone(),
        ..FilterWords::default()
    };
    let said = "give epsilon and delta; or rho where the dataset's kind is zcdp, or mu where it is gdp";
    words.check().map_err(|_| FilterError::Twice(said))?;
    if words.rho.is_none() && words.mu.is_none() {
        let known = || rule.budget().map(|budget| budget.delta().get().to_string()).or(delta);
        words.delta = words.delta.or_else(|| known().map(Number::Decimal));
        if words.epsilon.is_none() {
            return Err(FilterError::Missing("epsilon", "the ceiling's epsilon").into());
        }
        if words.delta.is_none() {
            return Err(FilterError::Missing("delta", "the ceiling's delta").into());
        }
    }
    Ok(rule.changed(&words)?)
}
