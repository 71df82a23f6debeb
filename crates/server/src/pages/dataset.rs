//! One dataset: what is spent, left and held, by whom, over time, and what would be answered to a request.

use super::chart::{Dot, steps};
use super::overview::state;
use super::{Page, Visitor, double, layout, mechanism, meter, percent, symbol, time};
use crate::Service;
use axum::extract::{Path, State};
use maud::{Markup, html};
use paygo_accounting::wire::Side;
use paygo_ledger::Name;
use paygo_ledger::entry::{AccountName, Role};
use paygo_ledger::request::Needs;
use paygo_ledger::views::{AccountView, DatasetView, DecisionView, PointView, TotalsView};
use paygo_ledger::words::Decision;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Decisions on the page.
const RECENT: usize = 25;

pub(super) async fn show(
    State(service): State<Arc<Service>>,
    Visitor(caller): Visitor,
    Path(name): Path<String>,
) -> Page {
    let name = Name::new(name)?;
    caller.may(Needs::Look, Some(&name))?;
    let dataset = service.ledger.view(&name).await?;
    let decisions = service.ledger.decisions(&name, RECENT).await?;
    let fullest = dataset.accounts.iter().max_by(|a, b| a.share.total_cmp(&b.share));
    let spends = matches!(caller.token.role, Role::Admin | Role::Steward | Role::Spender);
    let content = html! {
        nav aria-label="Where you are" { a href="/" { "Datasets" } " / " (name) }
        h1 { (name) " " span #state data-live { (state(dataset.closed)) } }
        p {
            "Promise: " strong { (dataset.promise) } "; made by " (dataset.by) ", " (time(dataset.at))
        }
        div #tiles.tiles data-live { (tiles(&dataset, fullest)) }
        div #charts.charts data-live { (charts(&dataset, fullest)) }
        @if dataset.has_blocks {
            section aria-labelledby="blocks-title" {
                h2 #blocks-title { "Blocks" }
                div #blocks data-live { (heat(&dataset.accounts)) }
            }
        }
        section aria-labelledby="ask-title" {
            h2 #ask-title { "Could I run…?" }
            (ask(&dataset, spends))
        }
        div #shares.charts data-live {
            (shares("Spent by requester", &dataset.by_requester))
            (shares("Spent by mechanism", &dataset.by_mechanism))
        }
        div #ceilings data-live { (ceilings(&dataset)) }
        div #held data-live { (held(&dataset)) }
        section aria-labelledby="decisions-title" {
            h2 #decisions-title { "Recent decisions" }
            div #decisions data-live { (recent(&decisions)) }
        }
    };
    Ok(layout(name.as_str(), Some(&caller.token), &content))
}

fn tiles(dataset: &DatasetView, fullest: Option<&AccountView>) -> Markup {
    let which = if dataset.has_blocks { "the fullest block" } else { "the budget" };
    html! {
        @if let Some(account) = fullest {
            div.tile {
                h3 { "Spent of " (which) }
                p.big #spent-share { (percent(account.share)) }
                (meter(account))
            }
            div.tile {
                h3 { "Left" }
                @for (name, left) in &account.remaining { p.big { (symbol(name)) " " (left.shown(Side::Down)) } }
            }
            div.tile {
                h3 { "Odometer" }
                p.big { "ε " (account.odometer.epsilon.shown(Side::Up)) }
                p {
                    "a second bound on what was lost, at δ " (account.odometer.delta.shown(Side::Up))
                    ": it holds at every moment at once, so it may read above the budget; the promise holds all the same"
                }
            }
        }
        div.tile {
            h3 { "Decisions" }
            p.big { span #admitted { (dataset.admitted) } " admitted" }
            p { span #refused { (dataset.refused) } " refused, " (dataset.reservations.len()) " held" }
        }
    }
}

fn charts(dataset: &DatasetView, fullest: Option<&AccountView>) -> Markup {
    // The points are of the rule's first meter: ε where there is one, else the only one that is not its slack.
    let first = fullest.and_then(|account| {
        let budget = &account.budget;
        budget.get_key_value("epsilon").or_else(|| budget.iter().find(|(name, _)| *name != "delta"))
    });
    let name = first.map_or("spent", |(name, _)| symbol(name));
    let limit = first.map(|(_, budget)| (double(budget), format!("budget {}", budget.shown(Side::Down))));
    let dots = |value: &dyn Fn(&PointView) -> &paygo_accounting::wire::Number, name: &str| -> Vec<Dot> {
        let dot = |point: &PointView| {
            let number = value(point);
            Dot { at: point.at, value: double(number), shown: format!("{name} {}", number.shown(Side::Up)) }
        };
        dataset.history.iter().map(dot).collect()
    };
    html! {
        (steps("Spent of the budget", &dots(&|point| &point.spent, name), limit))
        (steps("Odometer: what was lost at most", &dots(&|point| &point.odometer, "ε"), None))
    }
}

/// Blocks as a heat map: each a square, from empty to full.
fn heat(accounts: &[AccountView]) -> Markup {
    html! {
        @if accounts.is_empty() { p.none { "No blocks yet." } }
        ol.heat {
            @for account in accounts {
                @if let AccountName::Block(name) = &account.account {
                    @let text = format!("{name}: {} spent", percent(account.share));
                    li.(shade(account.share)) title=(text) tabindex="0" { span { (text) } }
                }
            }
        }
        p.legend aria-hidden="true" {
            "empty " @for shade in SHADES { span.(shade) {} } " full"
        }
    }
}

const SHADES: [&str; 6] = ["h0", "h1", "h2", "h3", "h4", "h5"];

/// The shade of a block: one for empty, four in between, one from nine tenths on.
fn shade(share: f64) -> &'static str {
    let limits = [0.0, 0.25, 0.5, 0.75, 0.9];
    SHADES[limits.iter().filter(|limit| share > **limit).count()]
}

/// The form that asks what would be answered, and asks in earnest.
fn ask(dataset: &DatasetView, spends: bool) -> Markup {
    html! {
        form.sheet #ask data-form="ask" data-dataset=(dataset.name) {
            label for="what" { "What" }
            select #what name="what" {
                option value="training" { "training with DP-SGD, Poisson batches" }
                option value="gaussian" { "answers with Gaussian noise" }
                option value="laplace" { "answers with Laplace noise" }
                option value="pure" { "something ε-DP" }
                option value="json" { "any mechanism, in JSON" }
            }
            label for="noise" data-for="training gaussian" { "Noise multiplier σ" }
            input #noise name="noise" inputmode="decimal" value="1.1" data-for="training gaussian";
            label for="sampling" data-for="training" { "Sampling probability q" }
            input #sampling name="sampling" inputmode="decimal" value="0.004" data-for="training";
            label for="epochs" data-for="training" { "Epochs" small { "of 1/q steps each" } }
            input #epochs name="epochs" inputmode="decimal" value="60" data-for="training";
            label for="scale" data-for="laplace" { "Scale over ℓ1 sensitivity" }
            input #scale name="scale" inputmode="decimal" value="10" data-for="laplace";
            label for="epsilon" data-for="pure" { "ε" }
            input #epsilon name="epsilon" inputmode="decimal" value="0.1" data-for="pure";
            label for="count" data-for="gaussian laplace pure" { "How many" }
            input #count name="count" inputmode="numeric" value="1" data-for="gaussian laplace pure";
            label for="mechanism" data-for="json" { "Mechanism" }
            textarea #mechanism name="mechanism" rows="3" spellcheck="false" data-for="json" {
                "{\"gaussian\": {\"noise_multiplier\": 10}}"
            }
            @if dataset.has_blocks {
                label for="touched" { "Blocks" small { "all, or names with commas between" } }
                input #touched name="blocks" value="all" autocomplete="off";
            }
            @if spends {
                label for="request-id" { "Id" small { "for spending: made by you and kept; the same id is charged once" } }
                input #request-id name="id" maxlength="128" autocomplete="off";
                label for="note" { "Note" small { "what for" } }
                input #note name="note" maxlength="256" autocomplete="off";
            }
            div.buttons {
                button type="submit" value="what-if" { "What if?" }
                @if spends { button.danger type="submit" value="spend" { "Spend it" } }
            }
        }
        output #answer.answer for="what" role="status" {}
    }
}

fn shares(title: &str, totals: &BTreeMap<String, TotalsView>) -> Markup {
    let mut ordered: Vec<(&String, &TotalsView)> = totals.iter().collect();
    ordered.sort_by(|(_, a), (_, b)| b.share.total_cmp(&a.share));
    html! {
        figure.chart {
            figcaption { (title) }
            @if ordered.is_empty() { p.none { "Nothing yet." } } @else {
                table.bars {
                    thead.away { tr { th scope="col" { "Who or what" } th scope="col" { "Part" } th scope="col" { "Decisions" } } }
                    tbody {
                        @for (name, totals) in ordered.into_iter().take(12) {
                            tr {
                                th scope="row" { (name.replace('_', " ")) }
                                td {
                                    svg.meter.low viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" {
                                        rect.full width=(format!("{:.2}", 100.0 * totals.share)) height="6" {}
                                    }
                                    (format!("{:.1} %", 100.0 * totals.share))
                                }
                                td { (totals.admitted) " admitted, " (totals.refused) " refused" }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn ceilings(dataset: &DatasetView) -> Markup {
    html! {
        @if !dataset.allowances.is_empty() {
            h2 { "Allowances" }
            table.cards {
                thead { tr { th scope="col" { "Allowance" } th scope="col" { "Members" } th scope="col" { "Spent" } } }
                tbody {
                    @for allowance in &dataset.allowances {
                        tr {
                            th scope="row" { (allowance.name) }
                            td data-name="Members" {
                                (allowance.members.iter().map(Name::as_str).collect::<Vec<_>>().join(", "))
                            }
                            td data-name="Spent" { (meter(&allowance.account)) }
                        }
                    }
                }
            }
        }
    }
}

fn held(dataset: &DatasetView) -> Markup {
    html! {
        @if !dataset.reservations.is_empty() {
            h2 { "Held" }
            table.cards {
                thead { tr {
                    th scope="col" { "Holder" } th scope="col" { "Id" } th scope="col" { "What" } th scope="col" { "Used" }
                    th scope="col" { "Stays charged from" }
                } }
                tbody {
                    @for held in &dataset.reservations {
                        tr {
                            th scope="row" { (held.holder) }
                            td data-name="Id" { (held.id) }
                            td data-name="What" { (mechanism(&held.mechanism)) }
                            td data-name="Used" { (held.used) }
                            td data-name="Stays charged from" { (time(held.expires)) }
                        }
                    }
                }
            }
        }
    }
}

fn recent(decisions: &[DecisionView]) -> Markup {
    html! {
        @if decisions.is_empty() { p.none { "Nothing was asked yet." } } @else {
            table.cards {
                thead { tr {
                    th scope="col" { "Decision" } th scope="col" { "Who" } th scope="col" { "What" } th scope="col" { "When" }
                    th scope="col" { "Entry" }
                } }
                tbody {
                    @for decided in decisions {
                        tr {
                            th scope="row" {
                                @match decided.decision {
                                    Decision::Admit => span.state.open { @if decided.reserved { "reserved" } @else { "admitted" } },
                                    Decision::Refuse => span.state.closed { "refused" },
                                }
                                @if let Some(refused) = &decided.refused {
                                    small { (refused.account) ": " (refused.reason) "; " (refused.largest_count) " of the same would have fit" }
                                }
                            }
                            td.whole data-name="Who" { (decided.by) small { (decided.id) } }
                            td data-name="What" {
                                (mechanism(&decided.mechanism))
                                @if let Some(blocks) = &decided.blocks { small { (touched(blocks)) } }
                                @if let Some(note) = &decided.note { small { (note) } }
                            }
                            td data-name="When" { (time(decided.at)) }
                            td.whole data-name="Entry" { span title=(format!("receipt {}", decided.receipt)) { (decided.entry) } }
                        }
                    }
                }
            }
        }
    }
}

/// The blocks that were touched, as far as one would read.
fn touched(blocks: &[Name]) -> String {
    match blocks {
        [] => String::new(),
        [one] => format!("block {one}"),
        [first, .., last] => format!("{} blocks, {first} to {last}", blocks.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_tell_empty_and_full_apart() {
        let shades = [0.0, 1e-9, 0.25, 0.3, 0.6, 0.8, 0.95, 1.0].map(shade);
        assert_eq!(shades, ["h0", "h1", "h1", "h2", "h3", "h4", "h5", "h5"]);
    }
}
