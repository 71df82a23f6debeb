//! What a question costs in a shared ledger.
//!
//! With a budget for each person, what everybody may ever spend is charged at once, when the accounts are used for the first time: who has
//! spent how much of it is secret, so it cannot be charged as it is spent. In the worst case each round is charged as it comes.

use crate::cli::ledger::{Place, random_word};
use paygo_accounting::mechanism::ZcdpFields;
use paygo_accounting::wire::{Mechanism, Neighbors, Number, Side};
use paygo_analysis::{Accounts, Mode};
use paygo_ledger::state::Mistake;
use paygo_ledger::words::{Blocks, Cancel, Commit, Decision, Meters, Reserve};
use paygo_ledger::{Name, RequestId};
use paygo_numeric::Amount;

/// The ledger does not have as much left.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refused(String);

/// What is charged until it is known whether anything was drawn; nothing where there is no ledger.
pub(super) struct Hold<'a> {
    place: Option<&'a Place>,
    /// Those that were made now.
    ids: Vec<RequestId>,
}

impl<'a> Hold<'a> {
    /// Charges everything that is promised to people, or a round. What accounts may ever spend is charged once in each block, so that
    /// blocks that come later are charged when they are first asked.
    ///
    /// # Errors
    /// [`Refused`] when the ledger refuses.
    pub(super) fn take(
        place: Option<&'a Place>,
        accounts: &Accounts,
        round: impl Fn() -> anyhow::Result<Amount>,
    ) -> anyhow::Result<Self> {
        let Some(place) = place else { return Ok(Self { place: None, ids: Vec::new() }) };
        let (dataset, person) = (&place.dataset, &accounts.settings().person);
        anyhow::ensure!(
            dataset.neighbors == Neighbors::AddRemove,
            "dataset {} is about other neighbors; expected add-remove, as questions have",
            dataset.name
        );
        anyhow::ensure!(
            dataset.privacy_unit == *person,
            "dataset {} protects one {}; expected one {person}, as --person says",
            dataset.name,
            dataset.privacy_unit
        );
        let targets: Vec<(String, Option<Blocks>, Amount)> = match accounts.settings().mode {
            Mode::Individual => {
                let most = accounts.budgets().iter().map(|budget| budget.limit()).max().unwrap_or(Amount::ZERO);
                let id = format!("accounts-{}", accounts.word());
                match place.touched() {
                    None => vec![(id, None, most)],
                    Some(blocks) => {
                        let one = |block: Name| (format!("{id}-{block}"), Some(Blocks::These(vec![block])), most);
                        blocks.into_iter().map(one).collect()
                    }
                }
            }
            Mode::WorstCase => vec![(format!("query-{}", random_word()?), place.blocks.clone(), round()?)],
        };
        let mut hold = Self { place: Some(place), ids: Vec::new() };
        for (id, blocks, rho) in targets {
            if let Err(error) = hold.reserve(place, &id, blocks, rho) {
                hold.end(false)?;
                return Err(error);
            }
        }
        Ok(hold)
    }

    fn reserve(&mut self, place: &Place, id: &str, blocks: Option<Blocks>, rho: Amount) -> anyhow::Result<()> {
        let mut reserve = Reserve {
            id: RequestId::new(id)?,
            mechanism: Mechanism::Zcdp(ZcdpFields { rho: Number::Decimal(rho.to_string()) }),
            blocks,
            note: Some("paygo query".to_owned().try_into()?),
            expires_in_seconds: None,
        };
        // An attempt that was refused or given back is over, and says nothing about now: the next has another id. One that was admitted
        // and stays is heard again, and nothing is charged again.
        let mut attempt = 1;
        let answer = loop {
            let answer = place.ask(reserve.clone());
            let over = match &answer {
                Ok(answer) => answer.decision == Decision::Refuse && answer.repeated,
                // Its holder has cancelled it.
                Err(error) => error.code() == Some(Mistake::RESERVATION_CLOSED),
            };
            if !over {
                break answer?;
            }
            attempt += 1;
            // Not in a name: another block has another id.
            reserve.id = RequestId::new(format!("{id}:{attempt}"))?;
        };
        let id = reserve.id;
        match answer.decision {
            Decision::Admit => {
                if !answer.repeated {
                    self.ids.push(id);
                }
                Ok(())
            }
            Decision::Refuse => {
                let reason = answer.reason.unwrap_or_else(|| "the budget does not allow it".to_owned());
                let each = |meters: &Meters, side: Side| {
                    let each = meters.iter().map(|(name, amount)| format!("{name} {}", amount.shown(side)));
                    each.collect::<Vec<_>>().join(", ")
                };
                let costs = answer.requested.as_ref().map(|requested| each(requested, Side::Up)).unwrap_or_default();
                let (left, kind) = (each(&answer.remaining, Side::Down), &place.dataset.kind);
                Err(Refused(format!(
                    "{}: {}: {reason}; rho {rho} alone would spend {costs} by its {kind} filter, and {left} is left",
                    place.told(),
                    answer.account
                ))
                .into())
            }
        }
    }

    /// All that is held, for whoever ends it in another's place.
    pub(super) fn take_over(&mut self) -> Self {
        Self { place: self.place, ids: std::mem::take(&mut self.ids) }
    }

    /// Keeps it charged, or gives it back where nothing was drawn. What cannot be said stays charged.
    pub(super) fn end(self, stays: bool) -> anyhow::Result<()> {
        let Some(place) = self.place else { return Ok(()) };
        for id in self.ids {
            if stays {
                place.ask(Commit { id, used: None })?;
            } else {
                place.ask(Cancel { id, nothing_drawn: true })?;
            }
        }
        Ok(())
    }
}
