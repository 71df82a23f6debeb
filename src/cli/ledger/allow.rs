//! What setting an allowance did: for whom, how much, and what is left of it.

use super::show::meters;
use paygo_accounting::wire::{Number, Side};
use paygo_ledger::Name;
use paygo_ledger::views::{AllowanceView, DatasetView};
use paygo_ledger::words::Meters;

/// `allowance ads: ann, bob together at most rho 0.00254 (was rho 0.014); rho 0.0078125 is spent, so nothing more is admitted`, of a
/// dataset before and after.
pub(super) fn told(before: &DatasetView, after: &DatasetView, name: &Name) -> String {
    let find = |view: &'_ DatasetView| view.allowances.iter().find(|allowance| allowance.name == *name).cloned();
    let Some(AllowanceView { members, account, .. }) = find(after) else { return format!("allowance {name} is set") };
    let was = find(before).map(|before| before.account.budget).filter(|budget| *budget != account.budget);
    let was = was.map(|budget| format!(" (was {})", meters(&budget, Side::Down))).unwrap_or_default();
    let members: Vec<&str> = members.iter().map(Name::as_str).collect();
    let most = meters(&account.budget, Side::Down);
    let mut text = format!("allowance {name}: {} together at most {most}{was}", members.join(", "));
    if !is_zero(&account.spent) {
        let so = if is_zero(&account.remaining) { ", so nothing more is admitted" } else { "" };
        text += &format!("; {} is spent{so}", meters(&account.spent, Side::Up));
    }
    if after.accounts.first().is_some_and(|whole| is_above(&account.budget, &whole.budget)) {
        text += "\nnote: that is more than the dataset's own budget, which holds too";
    }
    text
}

/// Whether every sum is 0.
fn is_zero(meters: &Meters) -> bool {
    meters.values().all(|number| number.up("amount").is_ok_and(|amount| amount == 0.0))
}

/// Whether a budget has more of anything than another.
fn is_above(budget: &Meters, other: &Meters) -> bool {
    let down = |number: &Number| number.down("amount").unwrap_or(0.0);
    budget.iter().any(|(name, amount)| other.get(name).is_some_and(|other| down(amount) > down(other)))
}
