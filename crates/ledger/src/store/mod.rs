//! Where the log is kept. A store only remembers: what it may be told, and what it means, is decided elsewhere.

mod location;
mod sql;

pub use location::Location;
pub use sql::SqlStore;

use crate::entry::Digest;
use std::future::Future;

/// The last entry of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its number; 0 before the first.
    pub seq: u64,
    /// Its digest.
    pub digest: Digest,
}

/// A state that was stored, as text, and the fingerprints of the entries since the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The entry after which it is the state.
    pub seq: u64,
    /// The entry after which its fingerprints begin; what is stored of later ones is replaced.
    pub after: u64,
    /// The state.
    pub state: String,
    /// The fingerprints.
    pub fingerprints: Vec<u8>,
}

/// What a writer needs of a store.
///
/// # Contract
/// Between [`Store::begin`] and [`Store::commit`] or [`Store::rollback`] no other writer, of this process or any other, appends.
/// When `commit` returns, everything appended since `begin` is durable; when it fails, either all of it is there or nothing, and
/// which of the two is seen after [`Store::reconnect`].
pub trait Store: Send + 'static {
    /// Begins, and says where the log ends.
    fn begin(&mut self) -> impl Future<Output = Result<Head, StoreError>> + Send;
    /// Appends lines and moves the head from one entry to another, durably and at once, outside of [`Store::begin`]; `false`, and
    /// nothing is changed, when the log does not end where it says.
    fn extend(&mut self, from: Head, lines: &str, to: Head) -> impl Future<Output = Result<bool, StoreError>> + Send;
    /// Appends lines, of which the last has this number.
    fn append(&mut self, lines: &str, last: u64) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Stores a snapshot in place of the one before, and its fingerprints beside those before.
    fn save(&mut self, snapshot: &Snapshot) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Moves the head from where it was found to the last line that was appended, and makes everything durable.
    fn commit(&mut self, head: Head) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Forgets what was appended since `begin`.
    fn rollback(&mut self) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// At most `most` lines after an entry, in order.
    fn lines(&mut self, after: u64, most: u64) -> impl Future<Output = Result<Vec<String>, StoreError>> + Send;
    /// The last state that was stored.
    fn state(&mut self) -> impl Future<Output = Result<Option<String>, StoreError>> + Send;
    /// The entry of the last state that was stored; 0 when there is none.
    fn saved(&mut self) -> impl Future<Output = Result<u64, StoreError>> + Send;
    /// All fingerprints that were stored, in order.
    fn fingerprints(&mut self) -> impl Future<Output = Result<Vec<Vec<u8>>, StoreError>> + Send;
    /// Says goodbye, so that a file is whole by itself.
    fn close(self) -> impl Future<Output = ()> + Send;
    /// Begins anew after an error.
    fn reconnect(&mut self) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// A fault of the environment.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database said so.
    #[error("the database failed: {0}")]
    Sql(#[from] sqlx::Error),
    /// A store that is not as it was left.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// Made by a later version.
    #[error("the store has format {given}; this version knows up to {known}: use a later paygo")]
    Version {
        /// What was found.
        given: i64,
        /// What is known.
        known: i64,
    },
    /// What it acknowledges might be lost.
    #[error("the database does not keep what it acknowledges: {0}")]
    NotDurable(String),
    /// Not a place.
    #[error("{0}")]
    Location(String),
}
