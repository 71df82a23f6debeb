//! What a question costs in a shared ledger.
//!
//! With a budget for each person, what everybody may ever spend is charged at once, when the accounts are used for the first time: who has
//! spent how much of it is secret, so it cannot be charged as it is spent. In the worst case each round is charged as it comes.

use crate::cli::ledger::{Place, random_word};
use paygo_accounting::wire::{Mechanism, Number};
use paygo_analysis::{Accounts, Mode};
use paygo_ledger::RequestId;
use paygo_ledger::words::{Cancel, Commit, Reserve, Verdict};
use paygo_numeric::Amount;

/// The ledger does not have as much left.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refused(String);

/// What is charged until it is known whether anything was drawn; nothing where there is no ledger.
pub(super) struct Hold<'a>(Option<(&'a Place, RequestId)>);

impl<'a> Hold<'a> {
    /// Charges everything that is promised to people, or a round.
    ///
    /// # Errors
    /// [`Refused`] when the ledger refuses.
    pub(super) fn take(
        place: Option<&'a Place>,
        accounts: &Accounts,
        round: impl Fn() -> anyhow::Result<Amount>,
    ) -> anyhow::Result<Self> {
        let Some(place) = place else { return Ok(Self(None)) };
        anyhow::ensure!(
            place.dataset.neighbors == paygo_accounting::wire::Neighbors::AddRemove,
            "dataset {} is about other neighbors; expected add-remove, as questions are",
            place.dataset.name
        );
        let (id, rho) = match accounts.settings().mode {
            Mode::Individual => {
                let most = accounts.budgets().iter().map(|budget| budget.limit()).max();
                (format!("accounts-{}", accounts.word()), most.unwrap_or(Amount::ZERO))
            }
            Mode::WorstCase => (format!("query-{}", random_word()?), round()?),
        };
        let id = RequestId::new(id)?;
        let reserve = Reserve {
            id: id.clone(),
            mechanism: Mechanism::Zcdp { rho: Number::Decimal(rho.to_string()) },
            blocks: place.blocks.clone(),
            note: Some("paygo query".to_owned().try_into()?),
            expires_in_seconds: None,
        };
        let answer = place.open.reserve(&place.dataset.name, reserve)?;
        match answer.decision {
            Verdict::Admit => Ok(Self(Some((place, id)))),
            Verdict::Refuse => {
                let reason = answer.reason.unwrap_or_else(|| "the budget does not allow it".to_owned());
                Err(Refused(format!("{}: {}: {reason} (this costs rho {rho})", place.told(), answer.account)).into())
            }
        }
    }

    /// Keeps it charged, or gives it back where nothing was drawn.
    pub(super) fn end(self, stays: bool) -> anyhow::Result<()> {
        let Some((place, id)) = self.0 else { return Ok(()) };
        let dataset = &place.dataset.name;
        if stays {
            place.open.commit(dataset, Commit { id, used: None })?;
        } else {
            place.open.cancel(dataset, Cancel { id, nothing_drawn: true })?;
        }
        Ok(())
    }
}
