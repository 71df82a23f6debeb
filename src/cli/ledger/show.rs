//! What people and programs see of a ledger.

use super::Open;
use crate::cli::output::{print, print_json, shown_amount, shown_up, table};
use paygo_accounting::charge::Sums;
use paygo_accounting::filter::{AnyRule, Rule as _};
use paygo_accounting::stored::StoredRule;
use paygo_accounting::wire::Side;
use paygo_ledger::Name;
use paygo_ledger::entry::{Entry, Event};
use paygo_ledger::request::{Ask, ShowHead};
use paygo_ledger::verify::Report;
use paygo_ledger::views::{AccountView, AllowanceView, DatasetView, OdometerView, Overview, TokenView, TotalsView};
use paygo_ledger::words::{Answer, Decision, Meters, WhatIf};
use serde_json::json;
use std::process::ExitCode;

/// `epsilon 0.25, delta 0`: six digits, on the safe side.
pub(super) fn meters(meters: &Meters, side: Side) -> String {
    let each = meters.iter().map(|(name, amount)| format!("{name} {}", amount.shown(side)));
    each.collect::<Vec<_>>().join(", ")
}

/// The decision; the receipt goes to standard error.
pub(super) fn answer(answer: &Answer) -> String {
    let again = if answer.repeated { ", as before" } else { "" };
    let left = {
        let (spent, left) = (meters(&answer.spent, Side::Up), meters(&answer.remaining, Side::Down));
        format!("{}: spent {spent}, left {left}", answer.account)
    };
    eprintln!("entry {}, receipt {}", answer.entry, answer.receipt);
    match answer.decision {
        Decision::Admit => format!("admitted{again}; {left}"),
        Decision::Refuse => {
            let reason = answer.reason.as_deref().unwrap_or("the budget does not allow it");
            let fit = answer.largest_count.unwrap_or(0);
            let asked =
                answer.requested.as_ref().map(|asked| format!("; it alone would spend {}", meters(asked, Side::Up)));
            // What would fit is part of the decision, the balances are today's.
            let fit = if answer.repeated {
                format!("{fit} of the same would have fit then; what-if tells how many would now")
            } else {
                format!("{fit} of the same would fit")
            };
            format!("refused{again}: {reason}; {left}{}; {fit}", asked.unwrap_or_default())
        }
    }
}

pub(super) fn what_if(answer: &WhatIf, steps: Option<u64>, json: bool) -> anyhow::Result<ExitCode> {
    if json {
        print_json(&serde_json::to_value(answer)?)?;
    } else {
        let verdict = match answer.decision {
            Decision::Admit => "would be admitted",
            Decision::Refuse => "would be refused",
        };
        let fit = match (steps, answer.in_turn.unwrap_or(answer.largest_count)) {
            (Some(steps), fit) => {
                format!("{} of the plan's {steps} steps would fit, one after another", fit.min(steps))
            }
            (None, _) => {
                format!("with it {}; {} of the same would fit", of(&answer.after, &answer.budget), answer.largest_count)
            }
        };
        let spent = meters(&answer.spent, Side::Up);
        print(&format!("{verdict}; {}: spent {spent}, {fit}; nothing was charged", answer.account))?;
    }
    Ok(match answer.decision {
        Decision::Admit => ExitCode::SUCCESS,
        Decision::Refuse => ExitCode::from(1),
    })
}

fn spent(account: &AccountView) -> String {
    of(&account.spent, &account.budget)
}

/// `rho 0.1 of 0.5`; sums alone where an older service does not say of what.
fn of(sums: &Meters, budget: &Meters) -> String {
    let each = sums.iter().map(|(name, amount)| {
        let budget = budget.get(name).map(|budget| format!(" of {}", budget.shown(Side::Down))).unwrap_or_default();
        format!("{name} {}{budget}", amount.shown(Side::Up))
    });
    each.collect::<Vec<_>>().join(", ")
}

pub(super) fn all(datasets: &[Overview], json: bool) -> anyhow::Result<ExitCode> {
    if json {
        print_json(&serde_json::to_value(datasets)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = datasets.iter().map(|dataset| {
        let blocks = dataset.blocks.map(|blocks| format!("{blocks} blocks"));
        let whole = || dataset.fullest.as_ref().map(spent).unwrap_or_default();
        vec![
            dataset.name.to_string(),
            dataset.privacy_unit.clone(),
            blocks.unwrap_or_else(whole),
            dataset.admitted.to_string(),
            dataset.refused.to_string(),
            state(dataset.closed).to_owned(),
        ]
    });
    print(&table(&["dataset", "protects one", "spent", "admitted", "refused", "state"], rows))?;
    Ok(ExitCode::SUCCESS)
}

const fn state(closed: bool) -> &'static str {
    if closed { "closed" } else { "open" }
}

pub(super) fn one(dataset: &DatasetView, json: bool) -> anyhow::Result<ExitCode> {
    if json {
        print_json(&serde_json::to_value(dataset)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!(
        "dataset {}: {}; promise: {}; {} admitted, {} refused\n",
        dataset.name,
        state(dataset.closed),
        dataset.promise,
        dataset.admitted,
        dataset.refused,
    );
    let row = |name: String, account: &AccountView| {
        let OdometerView { epsilon, delta } = &account.odometer;
        vec![name, spent(account), format!("{} at {}", epsilon.shown(Side::Up), delta.shown(Side::Up))]
    };
    let accounts = dataset.accounts.iter().map(|account| row(account.account.to_string(), account));
    let ceilings = dataset.allowances.iter().map(|AllowanceView { name, members, account }| {
        let members: Vec<&str> = members.iter().map(Name::as_str).collect();
        row(format!("allowance {name} ({})", members.join(", ")), account)
    });
    text += &table(&["account", "spent", "odometer: epsilon at delta"], accounts.chain(ceilings));
    text += "\nan odometer may read above the budget: the promise holds all the same\n";
    let share = |(name, totals): (&String, &TotalsView)| {
        let percent = format!("{:.1} %", 100.0 * totals.share);
        vec![name.clone(), totals.admitted.to_string(), totals.refused.to_string(), percent]
    };
    if dataset.admitted + dataset.refused > 0 {
        let rows = dataset.by_requester.iter().map(share).chain(dataset.by_mechanism.iter().map(share));
        text += "\n";
        text += &table(&["who, what", "admitted", "refused", "of all that was spent"], rows);
    }
    for held in &dataset.reservations {
        text += &format!("\nheld by {}: {}, {} used, expires {}", held.holder, held.id, held.used, time(held.expires));
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Milliseconds since 1970, for people.
fn time(at: u64) -> String {
    let milliseconds = i64::try_from(at).unwrap_or(i64::MAX);
    chrono::DateTime::from_timestamp_millis(milliseconds)
        .map_or_else(|| at.to_string(), |time| time.format("%Y-%m-%d %H:%M:%SZ").to_string())
}

pub(super) fn history(open: &Open, name: Option<&Name>, last: usize, json: bool) -> anyhow::Result<ExitCode> {
    let mut found: Vec<Entry> = Vec::new();
    let mut before = open.ask(&(), ShowHead)?.entry;
    // Backwards, a page at a time.
    while before > 0 && found.len() < last {
        let after = before.saturating_sub(1000);
        let lines = open.lines(after, before - after)?;
        for line in lines.iter().rev() {
            let entry: Entry = serde_json::from_str(line)?;
            if found.len() < last && name.is_none_or(|name| about(&entry.event) == Some(name)) {
                found.push(entry);
            }
        }
        before = after;
    }
    if before > 0 {
        eprintln!("the last {}; --last N shows more", found.len());
    }
    for entry in found.iter().rev() {
        let line =
            if json { entry.line() } else { format!("{} {} {}", entry.seq, time(entry.at), event(&entry.event)) };
        print(&line)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Which dataset an event is about.
fn about(event: &Event) -> Option<&Name> {
    match event {
        Event::DatasetCreated(created) => Some(&created.dataset),
        Event::BlocksAdded { dataset, .. }
        | Event::DatasetClosed { dataset, .. }
        | Event::AllowanceSet { dataset, .. }
        | Event::Priced { dataset, .. }
        | Event::Committed { dataset, .. }
        | Event::Cancelled { dataset, .. } => Some(dataset),
        Event::Spent(decided) | Event::Reserved { decided, .. } => Some(&decided.dataset),
        Event::Opened { .. } | Event::TokenGranted { .. } | Event::TokenRevoked { .. } => None,
    }
}

/// An event in one line.
fn event(event: &Event) -> String {
    if let Some((decided, expires)) = event.decision() {
        let verb = match (&decided.refused, expires) {
            (None, None) => "spent".to_owned(),
            (None, Some(_)) => "reserved".to_owned(),
            (Some(refused), _) => format!("refused ({}: {})", refused.account, refused.reason),
        };
        let blocks = decided.blocks.as_ref().map(|blocks| format!(", {} blocks", blocks.len())).unwrap_or_default();
        let note = decided.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
        let (dataset, by, id, price) = (&decided.dataset, &decided.by, &decided.id, decided.price);
        return format!("{verb} in {dataset} by {by}, {id}, at the price of entry {price}{blocks}{note}");
    }
    match event {
        Event::Opened { ledger, version: _ } => format!("ledger {ledger} begins"),
        Event::DatasetCreated(created) => format!("dataset {} made by {}", created.dataset, created.by),
        Event::BlocksAdded { dataset, by, blocks } => format!("{} blocks added to {dataset} by {by}", blocks.len()),
        Event::DatasetClosed { dataset, by } => format!("dataset {dataset} closed by {by}"),
        Event::AllowanceSet { dataset, by, allowance, members, rule } => {
            let (members, ceiling) = (listed(members), ceiling(rule));
            format!("allowance {allowance} in {dataset} set by {by}: {members} together at most {ceiling}")
        }
        Event::TokenGranted { holder, by, role, .. } => format!("token for {holder} ({role}) granted by {by}"),
        Event::TokenRevoked { hash, by } => format!("token {hash} revoked by {by}"),
        Event::Priced { dataset, mechanism, .. } => {
            format!("priced in {dataset}: {}", serde_json::to_string(mechanism).unwrap_or_default())
        }
        Event::Committed { dataset, by, id, used } => {
            let used = used.map_or_else(|| "all".to_owned(), |used| used.to_string());
            format!("committed in {dataset} by {by}, {id}: {used} used")
        }
        Event::Cancelled { dataset, by, id, kept } => {
            let kept = kept.map(|kept| format!(", except for the price of entry {kept}")).unwrap_or_default();
            format!("cancelled in {dataset} by {by}, {id}{kept}")
        }
        // Told above.
        Event::Spent(_) | Event::Reserved { .. } => String::new(),
    }
}

/// The first of some names, and how many more there are.
fn listed(names: &[Name]) -> String {
    const SHOWN: usize = 10;
    let first: Vec<&str> = names.iter().take(SHOWN).map(Name::as_str).collect();
    let more = names.len() - first.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", first.join(", "))
}

/// The budget of a rule, as it was stored.
fn ceiling(rule: &StoredRule) -> String {
    let Ok(rule) = AnyRule::try_from(rule) else { return "what this paygo cannot read".to_owned() };
    if let Some(budget) = rule.budget() {
        // δ is shown up: as a double it was read down.
        let (epsilon, delta) = (shown_amount(budget.limit(), false), shown_up(budget.delta().get()));
        return format!("epsilon {epsilon} at delta {delta}");
    }
    let nothing = Sums::zero(rule.currency());
    let each = rule.meters(nothing.lanes()).into_iter();
    each.map(|meter| format!("{} {}", meter.name, shown_amount(meter.budget, false))).collect::<Vec<_>>().join(", ")
}

pub(super) fn tokens(tokens: &[TokenView], json: bool) -> anyhow::Result<ExitCode> {
    if json {
        print_json(&serde_json::to_value(tokens)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = tokens.iter().map(|token| {
        let datasets =
            token.datasets.as_ref().map(|names| names.iter().map(Name::as_str).collect::<Vec<_>>().join(", "));
        vec![
            token.holder.to_string(),
            token.role.to_string(),
            datasets.unwrap_or_else(|| "all".to_owned()),
            token.expires.map_or_else(|| "never".to_owned(), time),
            token.hash.to_string(),
        ]
    });
    print(&table(&["holder", "role", "datasets", "expires", "hash"], rows))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn report(report: &Report, json: bool) -> anyhow::Result<ExitCode> {
    let (admitted, refused) = report.decisions;
    let digest = report.digest.map(|digest| digest.to_string()).unwrap_or_default();
    if json {
        print_json(&json!({"entries": report.entries, "digest": digest, "admitted": admitted, "refused": refused,
                           "datasets": report.balances.keys().collect::<Vec<_>>()}))?;
    } else {
        print(&format!(
            "sound: {} entries, {admitted} admitted, {refused} refused; every balance is what the log says",
            report.entries
        ))?;
        eprintln!("the last entry, {}, has digest {digest}", report.entries);
    }
    Ok(ExitCode::SUCCESS)
}
