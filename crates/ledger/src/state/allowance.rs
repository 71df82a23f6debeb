//! Ceilings: a dataset's rule with a smaller budget.

use super::Mistake;
use crate::words::NewAllowance;
use paygo_accounting::filter::{AnyRule, Approximate, Budget, FixedOrder, Gdp, Mixture, Pure, Rule, Union, Zcdp};
use paygo_accounting::wire::{FilterError, Number};
use paygo_numeric::Amount;

/// The dataset's rule with the ceiling's budget: the same kind, orders and weights, hence the same currency. `delta` is the one in the
/// dataset's own words, if any.
///
/// # Soundness
/// A ceiling only refuses. By itself it is a filter for what its members see: whatever they ask, what was released to them is
/// private as its budget says.
pub(super) fn ceiling(rule: &AnyRule, delta: Option<String>, words: &NewAllowance) -> Result<AnyRule, Mistake> {
    let gives = |rho: bool, mu: bool| (words.rho.is_some() && !rho) || (words.mu.is_some() && !mu);
    let twice = words.epsilon.is_some() && (words.rho.is_some() || words.mu.is_some());
    if twice || gives(matches!(rule, AnyRule::Zcdp(_)), matches!(rule, AnyRule::Gdp(_))) {
        let said = "give epsilon and delta; or rho where the dataset's kind is zcdp, or mu where it is gdp";
        return Err(FilterError::Twice(said).into());
    }
    let known = match rule {
        AnyRule::Mixture(rule) => Some(rule.budget()),
        AnyRule::Union(rule) => Some(rule.budget()),
        AnyRule::Pure(rule) => Some(rule.budget()),
        AnyRule::Approximate(rule) => Some(rule.budget()),
        AnyRule::FixedOrder(_) | AnyRule::Zcdp(_) | AnyRule::Gdp(_) => None,
    };
    let known = known.map(|budget| budget.delta().get().to_string()).or(delta);
    let budget = || budget(words, known.as_deref(), rule.slack());
    Ok(match rule {
        AnyRule::Mixture(rule) if !rule.has_light_orders() => {
            Mixture::without_light_orders(budget()?, rule.prior().clone()).map_err(FilterError::from)?.into()
        }
        AnyRule::Mixture(rule) => Mixture::over(budget()?, rule.prior().clone()).map_err(FilterError::from)?.into(),
        AnyRule::Union(rule) => {
            Union::over(budget()?, rule.prior().clone(), rule.conversion()).map_err(FilterError::from)?.into()
        }
        AnyRule::FixedOrder(rule) => FixedOrder::new(rule.order(), budget()?).map_err(FilterError::from)?.into(),
        AnyRule::Zcdp(rule) => match &words.rho {
            Some(rho) => Zcdp::with_limit(rho.amount_down("rho")?, rule.slack()).map_err(FilterError::from)?.into(),
            None => Zcdp::new(budget()?).map_err(FilterError::from)?.into(),
        },
        AnyRule::Gdp(_) => match &words.mu {
            Some(mu) => Gdp::with_limit(mu.amount_down("mu")?.square_down()).map_err(FilterError::from)?.into(),
            None => Gdp::new(budget()?).map_err(FilterError::from)?.into(),
        },
        AnyRule::Pure(_) => Pure::new(budget()?).map_err(FilterError::from)?.into(),
        AnyRule::Approximate(_) => Approximate::new(budget()?).map_err(FilterError::from)?.into(),
    })
}

/// ε and δ of a ceiling; δ is the dataset's unless given. Where the dataset sets a part of δ aside, so does the ceiling.
fn budget(words: &NewAllowance, known: Option<&str>, slack: Amount) -> Result<Budget, Mistake> {
    let epsilon = words.epsilon.as_ref().ok_or(FilterError::Missing("epsilon", "the ceiling's epsilon"))?.text();
    let delta = match (&words.delta, known) {
        (Some(delta), _) => delta.text(),
        (None, Some(known)) => known.to_owned(),
        (None, None) => return Err(FilterError::Missing("delta", "the ceiling's delta").into()),
    };
    let half = Number::Decimal(delta.clone()).amount_down("delta")?.shared_by(2);
    let slack = if slack == Amount::ZERO { slack } else { slack.min(half) };
    Ok(Budget::from_decimal(&epsilon, &delta)?.with_slack(slack)?)
}
