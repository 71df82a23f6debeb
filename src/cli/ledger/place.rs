//! A ledger from the command line: opened, asked, closed.

use anyhow::Context;
use clap::Args;
use paygo_ledger::ledger::Requester;
use paygo_ledger::store::Location;
use paygo_ledger::{Ledger, Name};
use tokio::runtime::Runtime;

/// Which dataset of which ledger.
#[derive(Args)]
pub(crate) struct PlaceArguments {
    /// Charge this ledger: a file, or postgres://user@host/database
    #[arg(long, value_name = "FILE|URL", requires = "dataset")]
    ledger: Option<Location>,
    /// Which dataset of the ledger
    #[arg(long, value_name = "NAME", requires = "ledger")]
    dataset: Option<Name>,
    #[command(flatten)]
    who: WhoArguments,
}

/// Who asks.
#[derive(Args)]
pub(crate) struct WhoArguments {
    /// Who asks: ids, reservations and allowances are theirs [default: the user of this machine]
    #[arg(long = "as", value_name = "NAME", env = "PAYGO_AS")]
    name: Option<Name>,
}

impl WhoArguments {
    /// Whoever may write the ledger's file may do everything: no permission is asked for here.
    pub(super) fn requester(&self) -> Requester {
        let user = || {
            let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok()?;
            Name::new(user).ok()
        };
        let name = self.name.clone().or_else(user).unwrap_or_else(|| Name::new("somebody").expect("a name"));
        Requester { name, explicit_curves: true }
    }
}

impl PlaceArguments {
    /// The dataset, if a ledger was named.
    pub(crate) fn place(&self) -> anyhow::Result<Option<Place>> {
        let (Some(location), Some(dataset)) = (&self.ledger, &self.dataset) else { return Ok(None) };
        let open = Open::new(location, self.who.requester(), Missing::IsAnError)?;
        let known = open.ledger.read(|state| state.dataset(dataset).map(|dataset| dataset.neighbors()));
        known.with_context(|| {
            format!("there is no dataset {dataset} in {location}\nhint: paygo ledger create {dataset}")
        })?;
        Ok(Some(Place { open, dataset: dataset.clone() }))
    }
}

/// A dataset of an open ledger.
pub(crate) struct Place {
    pub(super) open: Open,
    pub(super) dataset: Name,
}

/// What to do about a ledger that is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Make it.
    IsMade,
    /// Say so.
    IsAnError,
}

/// An open ledger, and who asks.
pub(super) struct Open {
    pub(super) ledger: Ledger,
    pub(super) who: Requester,
    runtime: Runtime,
}

impl Open {
    pub(super) fn new(location: &Location, who: Requester, missing: Missing) -> anyhow::Result<Self> {
        if let (Location::File(path), Missing::IsAnError) = (location, missing) {
            anyhow::ensure!(
                path.is_file(),
                "there is no ledger {location}\nhint: paygo ledger create makes one with its first dataset"
            );
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
        let ledger = runtime.block_on(Ledger::open(location)).with_context(|| format!("ledger {location}"))?;
        Ok(Self { ledger, who, runtime })
    }

    /// Waits for an answer.
    pub(super) fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        self.runtime.block_on(answer)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.runtime.block_on(self.ledger.close());
    }
}
