//! All datasets at a glance, and the form for a new one.

use super::{Page, Visitor, is_admin, layout, meter};
use crate::Service;
use axum::extract::State;
use maud::html;
use paygo_accounting::wire::{FilterKind, Side};
use paygo_ledger::request::Needs;
use std::sync::Arc;

pub(super) async fn show(State(service): State<Arc<Service>>, Visitor(caller): Visitor) -> Page {
    let datasets = service.ledger.overview(|name| caller.token.covers(name)).await?;
    let content = html! {
        h1 { "Datasets" }
        div #datasets data-live {
            @if datasets.is_empty() {
                p.none {
                    "There are no datasets yet. "
                    @if is_admin(&caller.token) { a href="/new" { "Make the first." } }
                }
            } @else {
                table.cards {
                    thead { tr {
                        th scope="col" { "Dataset" } th scope="col" { "Spent" } th scope="col" { "Left" }
                        th scope="col" { "Decisions" } th scope="col" { "State" }
                    } }
                    tbody {
                        @for dataset in &datasets {
                            tr {
                                th scope="row" {
                                    a href=(format!("/datasets/{}", dataset.name)) { (dataset.name) }
                                    small { "protects one " (dataset.privacy_unit) }
                                }
                                td data-name="Spent" {
                                    @if let Some(fullest) = &dataset.fullest {
                                        (meter(fullest))
                                        @if let Some(blocks) = dataset.blocks {
                                            small { "the fullest of " (blocks) " blocks, " (fullest.account) }
                                        }
                                    } @else { "no blocks yet" }
                                }
                                td data-name="Left" {
                                    @if let Some(fullest) = &dataset.fullest {
                                        @for (name, left) in &fullest.remaining {
                                            span.amount { (super::symbol(name)) " " (left.shown(Side::Down)) }
                                        }
                                    }
                                }
                                td data-name="Decisions" {
                                    (dataset.admitted) " admitted, " (dataset.refused) " refused"
                                    @if dataset.reservations > 0 { ", " (dataset.reservations) " held" }
                                }
                                td data-name="State" { (state(dataset.closed)) }
                            }
                        }
                    }
                }
            }
        }
    };
    Ok(layout("Datasets", Some(&caller.token), &content))
}

/// Open or closed.
pub(super) fn state(closed: bool) -> maud::Markup {
    html! { @if closed { span.state.closed { "closed" } } @else { span.state.open { "open" } } }
}

/// A form for a new dataset; the script sends it to the API.
pub(super) async fn new(Visitor(caller): Visitor) -> Page {
    caller.may(Needs::Administer, None)?;
    let content = html! {
        h1 { "New dataset" }
        p { "A budget is fixed for good: a promise that could be raised later would be none." }
        form.sheet data-form="create" {
            label for="name" { "Name" }
            input #name name="name" required maxlength="64" pattern="[A-Za-z0-9][A-Za-z0-9._@\\-]*" autocomplete="off";
            label for="privacy_unit" { "Protects one" }
            input #privacy_unit name="privacy_unit" value="record" required maxlength="64";
            label for="neighbors" { "Neighbors" }
            select #neighbors name="neighbors" {
                option value="add-remove" { "one more or less (add-remove)" }
                option value="replace-one" { "one replaced by another (replace-one)" }
                option value="zero-out" { "one replaced by nothing (zero-out)" }
            }
            label for="kind" { "Filter" }
            select #kind name="kind" {
                // Those that need a budget in epsilon and delta, and nothing else.
                @for kind in FilterKind::ALL {
                    option value=(kind.word()) { (kind.word()) ": " (kind.help()) }
                }
            }
            label for="epsilon" { "Budget ε" }
            input #epsilon name="epsilon" inputmode="decimal" value="1" required;
            label for="delta" { "Budget δ" }
            input #delta name="delta" inputmode="decimal" value="1e-6";
            label for="blocks" { "Blocks" small { "names with commas between; leave empty for none" } }
            input #blocks name="blocks" autocomplete="off";
            button type="submit" { "Make it" }
        }
        output #answer.answer for="name" role="status" {}
    };
    Ok(layout("New dataset", Some(&caller.token), &content))
}
