//! A ledger that can be asked, whether this process has opened it or a service keeps it.

use super::address::Where;
use super::who::WhoArguments;
use paygo_client::{Client, ClientError};
use paygo_ledger::ledger::Blocking;
use paygo_ledger::request::{Ask, ListDatasets, Request};
use paygo_ledger::state::Mistake;
use paygo_ledger::store::Location;
use paygo_ledger::{LedgerError, Name};
use std::path::Path;

/// Names that are listed at most.
const SHOWN: usize = 10;

/// What to do about a ledger that is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Make it.
    IsMade,
    /// Say so.
    IsAnError,
}

/// A ledger that can be asked.
pub(crate) enum Open {
    /// Opened by this process.
    Here(Blocking),
    /// Kept by a service.
    There(Client),
}

/// Why there is no answer, here or there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    /// From a ledger that this process opened.
    #[error(transparent)]
    Here(#[from] LedgerError),
    /// From a service, or on the way to it.
    #[error(transparent)]
    There(#[from] ClientError),
}

impl AskError {
    /// The word for a mistake in a request, the same here and there.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Self::Here(LedgerError::Mistake(mistake)) => Some(mistake.code()),
            Self::There(ClientError::Problem { code, .. }) => Some(code),
            Self::Here(LedgerError::Unavailable(_) | LedgerError::Broken(_)) => None,
            Self::There(ClientError::Unavailable { .. } | ClientError::Unreachable { .. } | ClientError::Setup(_)) => {
                None
            }
        }
    }
}

impl Open {
    /// An error about a dataset that is not there names those that are.
    pub(super) fn with_known(&self, error: anyhow::Error) -> anyhow::Error {
        let code = error.downcast_ref::<AskError>().and_then(AskError::code);
        if code != Some(Mistake::UNKNOWN_DATASET) {
            return error;
        }
        let Ok(known) = self.ask(&(), ListDatasets) else { return error };
        let names: Vec<&str> = known.iter().take(SHOWN).map(|dataset| dataset.name.as_str()).collect();
        let more = if known.len() > SHOWN { ", …" } else { "" };
        if names.is_empty() { error } else { anyhow::anyhow!("{error}\nhint: there are {}{more}", names.join(", ")) }
    }
}

impl Ask for Open {
    type Error = AskError;

    fn ask<R: Request>(&self, about: &R::About, request: R) -> Result<R::Answer, AskError> {
        Ok(match self {
            Self::Here(ledger) => ledger.ask(about, request)?,
            Self::There(client) => client.ask(about, request)?,
        })
    }

    fn lines(&self, after: u64, limit: u64) -> Result<Vec<String>, AskError> {
        Ok(match self {
            Self::Here(ledger) => ledger.lines(after, limit)?,
            Self::There(client) => client.lines(after, limit)?,
        })
    }
}

/// Why a ledger could not be opened; nothing was asked of it yet.
pub(crate) fn opening(location: &Location, error: LedgerError) -> anyhow::Error {
    let hint = match location {
        Location::File(path) if path.is_file() => "\nhint: is this file a ledger?",
        Location::File(_) => "\nhint: does its folder exist?",
        Location::Postgres(_) => "",
    };
    match error {
        LedgerError::Unavailable(why) => anyhow::anyhow!("ledger {location} cannot be opened: {why}{hint}"),
        LedgerError::Broken(_) | LedgerError::Mistake(_) => {
            anyhow::Error::new(error).context(format!("ledger {location}"))
        }
    }
}

impl Open {
    /// A ledger in a file, made where there is none.
    pub(crate) fn file(path: &Path, who: Name) -> anyhow::Result<Self> {
        Self::new(&Where::Store(Location::File(path.to_owned())), &WhoArguments::named(who), Missing::IsMade)
    }

    pub(super) fn new(place: &Where, who: &WhoArguments, missing: Missing) -> anyhow::Result<Self> {
        let location = match place {
            Where::Store(location) => location,
            Where::Service(address) => return Ok(Self::There(who.client(address)?)),
        };
        if let (Location::File(path), Missing::IsAnError) = (location, missing) {
            anyhow::ensure!(
                path.is_file(),
                "there is no ledger {location}\nhint: paygo ledger create makes one with its first dataset"
            );
        }
        Ok(Self::Here(Blocking::open(location, who.requester()).map_err(|error| opening(location, error))?))
    }

    /// What needs the log itself.
    pub(super) fn here(&self) -> anyhow::Result<&Blocking> {
        match self {
            Self::Here(here) => Ok(here),
            Self::There(client) => {
                anyhow::bail!(
                    "this needs the log itself, not a service: do it where the file or the database of {} is\n\
                     hint: `paygo ledger backup FILE` copies its log into a file, which `verify` can check",
                    client.address()
                )
            }
        }
    }
}
