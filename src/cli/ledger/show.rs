//! What people and programs see of a ledger.

use super::place::Open;
use crate::cli::output::{print, print_json, shown_amount, shown_down, shown_up, table};
use paygo_accounting::filter::Meter;
use paygo_accounting::wire::{Number, Side};
use paygo_ledger::Name;
use paygo_ledger::entry::{Entry, Event};
use paygo_ledger::ledger::WhatIf;
use paygo_ledger::state::{Account, Dataset, State};
use paygo_ledger::verify::Report;
use paygo_ledger::words::{Answer, Meters, Verdict};
use serde_json::{Value, json};
use std::process::ExitCode;

/// `epsilon 0.25, delta 0`: six digits, on the safe side.
fn meters(meters: &Meters, side: Side) -> String {
    let shown = |amount: &Number| match (amount, side) {
        (Number::Float(x), Side::Up) => shown_up(*x),
        (Number::Float(x), Side::Down) => shown_down(*x),
        (Number::Integer(_) | Number::Decimal(_), _) => amount.text(),
    };
    let each = meters.iter().map(|(name, amount)| format!("{name} {}", shown(amount)));
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
        Verdict::Admit => format!("admitted{again}; {left}"),
        Verdict::Refuse => {
            let reason = answer.reason.as_deref().unwrap_or("the budget does not allow it");
            let fit = answer.largest_count.unwrap_or(0);
            let asked =
                answer.requested.as_ref().map(|asked| format!("; it alone would spend {}", meters(asked, Side::Up)));
            format!("refused{again}: {reason}; {left}{}; {fit} of the same would fit", asked.unwrap_or_default())
        }
    }
}

pub(super) fn what_if(answer: &WhatIf, json: bool) -> anyhow::Result<ExitCode> {
    if json {
        print_json(&serde_json::to_value(answer)?)?;
    } else {
        let verdict = match answer.decision {
            Verdict::Admit => "would be admitted",
            Verdict::Refuse => "would be refused",
        };
        print(&format!(
            "{verdict}; {}: spent {}, with it {}; {} of the same would fit; nothing was charged",
            answer.account,
            meters(&answer.spent, Side::Up),
            meters(&answer.after, Side::Up),
            answer.largest_count
        ))?;
    }
    Ok(match answer.decision {
        Verdict::Admit => ExitCode::SUCCESS,
        Verdict::Refuse => ExitCode::from(1),
    })
}

fn spent(account: &Account) -> String {
    let each = account.meters().into_iter().map(|Meter { name, spent, budget }| {
        format!("{name} {} of {}", shown_amount(spent, true), shown_amount(budget, false))
    });
    each.collect::<Vec<_>>().join(", ")
}

fn account_json(dataset: &Dataset, account: &Account) -> Value {
    let reading = dataset.reading(account);
    let by_name = |side: Side, amount: &dyn Fn(&Meter) -> paygo_numeric::Amount| -> Value {
        account.meters().iter().map(|meter| (meter.name.to_owned(), json!(Number::of(amount(meter), side)))).collect()
    };
    json!({
        "spent": by_name(Side::Up, &|meter| meter.spent),
        "budget": by_name(Side::Down, &|meter| meter.budget),
        "remaining": by_name(Side::Down, &Meter::remaining),
        "odometer": {"epsilon": Number::double(reading.epsilon.get()), "delta": reading.delta.get()},
    })
}

fn dataset_json(dataset: &Dataset) -> Value {
    let totals = |(name, totals): (&str, &paygo_ledger::state::Totals)| {
        let value = json!({"admitted": totals.admitted, "refused": totals.refused, "share": dataset.share(totals)});
        (name.to_owned(), value)
    };
    json!({
        "name": dataset.name(),
        "neighbors": dataset.neighbors(),
        "privacy_unit": dataset.privacy_unit(),
        "filter": dataset.words(),
        "closed": dataset.is_closed(),
        "admitted": dataset.totals().admitted,
        "refused": dataset.totals().refused,
        "accounts": dataset.accounts().map(|(name, account)| (name.to_string(), account_json(dataset, account)))
            .collect::<Value>(),
        "allowances": dataset.allowances().map(|(name, members, account)| {
            let mut value = account_json(dataset, account);
            value["members"] = json!(members);
            (name.to_string(), value)
        }).collect::<Value>(),
        "reservations": dataset.reservations().map(|((holder, id), held)| json!({
            "holder": holder, "id": id, "mechanism": held.mechanism, "used": held.used, "expires": held.expires,
        })).collect::<Value>(),
        "by_requester": dataset.by_requester().map(totals).collect::<Value>(),
        "by_mechanism": dataset.by_mechanism().map(totals).collect::<Value>(),
    })
}

pub(super) fn show(state: &State, name: Option<&Name>, json: bool) -> anyhow::Result<ExitCode> {
    let known = |name: &Name| state.dataset(name).ok_or_else(|| anyhow::anyhow!("there is no dataset {name}"));
    match (name, json) {
        (Some(name), true) => print_json(&dataset_json(known(name)?))?,
        (None, true) => print_json(&state.datasets().map(dataset_json).collect::<Value>())?,
        (Some(name), false) => print(&one(known(name)?))?,
        (None, false) => {
            let rows = state.datasets().map(|dataset| {
                let blocks = dataset.has_blocks().then(|| format!("{} blocks", dataset.accounts().count()));
                let whole = || dataset.accounts().next().map(|(_, account)| spent(account)).unwrap_or_default();
                let state = if dataset.is_closed() { "closed" } else { "open" };
                let (admitted, refused) = (dataset.totals().admitted, dataset.totals().refused);
                vec![
                    dataset.name().to_string(),
                    dataset.privacy_unit().to_owned(),
                    blocks.unwrap_or_else(whole),
                    admitted.to_string(),
                    refused.to_string(),
                    state.to_owned(),
                ]
            });
            print(&table(&["dataset", "protects one", "spent", "admitted", "refused", "state"], rows))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn one(dataset: &Dataset) -> String {
    let state = if dataset.is_closed() { "closed" } else { "open" };
    let kind = paygo_accounting::filter::Rule::word(&**dataset.rule());
    let mut text = format!(
        "dataset {}: {state}; {kind} filter, protects one {} under {} neighbors; {} admitted, {} refused\n",
        dataset.name(),
        dataset.privacy_unit(),
        paygo_accounting::params::Neighbors::from(dataset.neighbors()),
        dataset.totals().admitted,
        dataset.totals().refused,
    );
    let row = |name: String, account: &Account| {
        let reading = dataset.reading(account);
        vec![name, spent(account), format!("{} at {}", shown_up(reading.epsilon.get()), shown_up(reading.delta.get()))]
    };
    let accounts = dataset.accounts().map(|(name, account)| row(name.to_string(), account));
    let ceilings = dataset.allowances().map(|(name, members, account)| {
        let members: Vec<&str> = members.iter().map(Name::as_str).collect();
        row(format!("allowance {name} ({})", members.join(", ")), account)
    });
    text += &table(&["account", "spent", "odometer: epsilon at delta"], accounts.chain(ceilings));
    let share = |(name, totals): (&str, &paygo_ledger::state::Totals)| {
        let percent = format!("{:.1} %", 100.0 * dataset.share(totals));
        vec![name.to_owned(), totals.admitted.to_string(), totals.refused.to_string(), percent]
    };
    if dataset.totals().admitted + dataset.totals().refused > 0 {
        let rows = dataset.by_requester().map(share).chain(dataset.by_mechanism().map(share));
        text += "\n";
        text += &table(&["who, what", "admitted", "refused", "of all that was spent"], rows);
    }
    for ((holder, id), held) in dataset.reservations() {
        text += &format!("\nheld by {holder}: {id}, {} used, expires {}", held.used, time(held.expires));
    }
    text
}

/// Milliseconds since 1970, for people.
fn time(at: u64) -> String {
    let milliseconds = i64::try_from(at).unwrap_or(i64::MAX);
    arrow::temporal_conversions::timestamp_ms_to_datetime(milliseconds)
        .map_or_else(|| at.to_string(), |time| time.format("%Y-%m-%d %H:%M:%SZ").to_string())
}

pub(super) fn history(open: &Open, name: Option<&Name>, last: usize, json: bool) -> anyhow::Result<ExitCode> {
    let mut found: Vec<Entry> = Vec::new();
    let mut before = open.ledger.read(State::seq);
    // Backwards, a page at a time.
    while before > 0 && found.len() < last {
        let after = before.saturating_sub(1000);
        let lines = open.wait(open.ledger.lines(after, before - after))?;
        for line in lines.iter().rev() {
            let entry: Entry = serde_json::from_str(line)?;
            if found.len() < last && name.is_none_or(|name| about(&entry.event) == Some(name)) {
                found.push(entry);
            }
        }
        before = after;
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
        Event::AllowanceSet { dataset, by, allowance, members, rule: _ } => {
            format!("allowance {allowance} for {} in {dataset} set by {by}", members.len())
        }
        Event::TokenGranted { holder, by, role, .. } => format!("token for {holder} ({role:?}) granted by {by}"),
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

pub(super) fn tokens(state: &State, json: bool) -> anyhow::Result<ExitCode> {
    if json {
        let token = |token: &paygo_ledger::state::Token| {
            json!({"hash": token.hash, "holder": token.holder, "role": token.role, "datasets": token.datasets,
                   "explicit_curves": token.explicit_curves, "expires": token.expires})
        };
        print_json(&state.tokens().map(token).collect::<Value>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = state.tokens().map(|token| {
        let datasets =
            token.datasets.as_ref().map(|names| names.iter().map(Name::as_str).collect::<Vec<_>>().join(", "));
        let role = serde_json::to_value(token.role).ok().and_then(|word| word.as_str().map(str::to_owned));
        vec![
            token.holder.to_string(),
            role.unwrap_or_default(),
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
