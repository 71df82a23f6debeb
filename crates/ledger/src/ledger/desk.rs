//! A ledger together with who asks it: the two ways of asking, over an open store.

use super::{Ledger, LedgerError, Requester};
use crate::request::{Ask, AskAsync, Request};
use crate::store::Location;
use tokio::runtime::Runtime;

/// An open ledger, asked by somebody.
#[derive(Clone, Debug)]
pub struct Desk {
    ledger: Ledger,
    by: Requester,
}

impl Ledger {
    /// This ledger, asked by somebody.
    #[must_use]
    pub fn by(&self, by: Requester) -> Desk {
        Desk { ledger: self.clone(), by }
    }
}

impl AskAsync for Desk {
    type Error = LedgerError;

    async fn ask<R: Request>(&self, about: &R::About, request: R) -> Result<R::Answer, LedgerError> {
        request.answer(&self.ledger, &self.by, about).await
    }

    async fn lines(&self, after: u64, limit: u64) -> Result<Vec<String>, LedgerError> {
        self.ledger.lines(after, limit).await
    }
}

/// A ledger that this process opened, for whoever waits for answers. Closed when it is dropped.
#[derive(Debug)]
pub struct Blocking {
    desk: Desk,
    runtime: Runtime,
}

impl Blocking {
    /// Opens a ledger to be asked by somebody; makes it where there is none.
    ///
    /// # Errors
    /// [`LedgerError`] when there is no way to it or its log is broken.
    pub fn open(location: &Location, by: Requester) -> Result<Self, LedgerError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| LedgerError::Unavailable(error.to_string()))?;
        let ledger = runtime.block_on(Ledger::open(location))?;
        Ok(Self { desk: ledger.by(by), runtime })
    }

    /// The ledger itself.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.desk.ledger
    }

    /// Waits for something that the ledger does.
    pub fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(what)
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        self.runtime.block_on(self.desk.ledger.close());
    }
}

impl Ask for Blocking {
    type Error = LedgerError;

    fn ask<R: Request>(&self, about: &R::About, request: R) -> Result<R::Answer, LedgerError> {
        self.wait(self.desk.ask(about, request))
    }

    fn lines(&self, after: u64, limit: u64) -> Result<Vec<String>, LedgerError> {
        self.wait(self.desk.lines(after, limit))
    }
}
