//! Tokens: who may do what, granted and revoked.

use super::{Page, Visitor, layout, time};
use crate::Service;
use axum::extract::State;
use maud::html;
use paygo_ledger::request::Needs;
use paygo_ledger::views::TokenView;
use std::sync::Arc;

pub(super) async fn show(State(service): State<Arc<Service>>, Visitor(caller): Visitor) -> Page {
    caller.may(Needs::Administer, None)?;
    let tokens: Vec<TokenView> = service.ledger.read(|state| state.tokens().map(TokenView::from).collect());
    let content = html! {
        h1 { "Tokens" }
        table #tokens.cards data-live {
            thead { tr {
                th scope="col" { "Holder" } th scope="col" { "Role" } th scope="col" { "Datasets" }
                th scope="col" { "Expires" } th scope="col" { "Hash" } th scope="col" { "" }
            } }
            tbody {
                @for token in &tokens {
                    tr {
                        th scope="row" { (token.holder) }
                        td data-name="Role" { (token.role) @if token.explicit_curves { ", explicit curves" } }
                        td data-name="Datasets" {
                            @match &token.datasets {
                                None => "all",
                                Some(names) => (names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")),
                            }
                        }
                        td data-name="Expires" { @match token.expires { None => "never", Some(at) => (time(at)) } }
                        td data-name="Hash" { code { (&token.hash.to_string()[..12]) "…" } }
                        td {
                            @if token.hash == caller.token.hash { "yours" } @else {
                                button.quiet type="button" data-revoke=(token.hash) { "Revoke that of " (token.holder) }
                            }
                        }
                    }
                }
            }
        }
        h2 { "Grant a token" }
        form.sheet data-form="grant" {
            label for="holder" { "For" }
            input #holder name="holder" required maxlength="64" pattern="[A-Za-z0-9][A-Za-z0-9._@\\-]*" autocomplete="off";
            label for="role" { "Role" }
            select #role name="role" {
                option value="spender" { "spender: spends and looks" }
                option value="steward" { "steward: also blocks, allowances, closing" }
                option value="auditor" { "auditor: looks, at the log too" }
                option value="admin" { "admin: everything" }
            }
            label for="datasets" { "Datasets" small { "names with commas between; leave empty for all" } }
            input #datasets name="datasets" autocomplete="off";
            label for="expires_in_days" { "Expires in days" small { "leave empty for never" } }
            input #expires_in_days name="expires_in_days" inputmode="numeric" pattern="[0-9]*";
            button type="submit" { "Grant it" }
        }
        output #answer.answer for="holder" role="status" {}
    };
    Ok(layout("Tokens", Some(&caller.token), &content))
}
