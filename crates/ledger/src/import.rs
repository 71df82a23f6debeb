//! A log taken over from somewhere else, line by line, as a whole or not at all.

use crate::entry::{Digest, Entry, Event};
use crate::state::{Broken, State};
use crate::store::{Head, Store, StoreError};
use std::collections::HashSet;

/// Why a log was not taken over. Nothing of it was.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A ledger is never overwritten.
    #[error("there is a ledger of {0} entries already; a log is taken over into a new one")]
    NotEmpty(u64),
    /// There was nothing to take over.
    #[error("there is no entry to take over")]
    Empty,
    /// The log does not hold.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A log that is being taken over.
#[derive(Debug)]
pub struct Import<S> {
    store: S,
    state: State,
    /// Ids that were decided.
    ids: HashSet<[u8; 32]>,
}

impl<S: Store> Import<S> {
    /// Begins with a store that is empty.
    ///
    /// # Errors
    /// [`ImportError`] when it is not, or fails.
    pub async fn begin(mut store: S) -> Result<Self, ImportError> {
        let head = store.begin().await?;
        if head.seq > 0 {
            store.rollback().await?;
            return Err(ImportError::NotEmpty(head.seq));
        }
        Ok(Self { store, state: State::default(), ids: HashSet::new() })
    }

    /// Takes over some lines: every link is checked, and every account that an entry touches is within its budget.
    ///
    /// # Errors
    /// [`ImportError`] when a line does not follow, or the store fails.
    pub async fn add(&mut self, lines: &[String]) -> Result<(), ImportError> {
        for line in lines {
            let seq = self.state.seq() + 1;
            let entry: Entry = serde_json::from_str(line).map_err(|error| Broken { seq, what: error.to_string() })?;
            if seq == 1 && !matches!(entry.event, Event::Opened { .. }) {
                return Err(Broken { seq, what: "does not open a ledger, though it is the first".to_owned() }.into());
            }
            self.state.apply(&entry, Digest::of(line))?;
            if let Some((decided, _)) = entry.event.decision() {
                let id = format!("{}\u{0}{}\u{0}{}", decided.dataset, decided.by, decided.id);
                if !self.ids.insert(*Digest::of(&id).bytes()) {
                    let what = format!("decides id {} of {} again", decided.id, decided.by);
                    return Err(Broken { seq, what }.into());
                }
            }
            if !self.state.is_within_budget(&entry.event) {
                return Err(Broken { seq, what: "passes a budget".to_owned() }.into());
            }
        }
        if !lines.is_empty() {
            self.store.append(&lines.join("\n"), self.state.seq()).await?;
        }
        Ok(())
    }

    /// Makes it durable: the number of entries.
    ///
    /// # Errors
    /// [`ImportError`] when there were none, or the store fails.
    pub async fn finish(mut self) -> Result<u64, ImportError> {
        if self.state.seq() == 0 {
            self.store.rollback().await?;
            return Err(ImportError::Empty);
        }
        self.store.commit(Head { seq: self.state.seq(), digest: self.state.digest() }).await?;
        self.store.close().await;
        Ok(self.state.seq())
    }
}
