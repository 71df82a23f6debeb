//! The handle that many share: requests go to one writer, readings come from what is committed.

mod answer;
mod decider;
mod desk;
mod writer;

pub use desk::{Blocking, Desk};

use crate::entry::{Digest, Entry};
use crate::names::Name;
pub use crate::state::Requester;
use crate::state::{Asked, Broken, Command, Dataset, Mistake, Priced, Quote, State, unit};
use crate::store::{Location, SqlStore, Store, StoreError};
use crate::views::{DatasetView, DecisionView, Overview};
use crate::words::{
    Answer, Cancel, Commit, Done, Granted, NewAllowance, NewBlocks, NewDataset, NewToken, Question, Reserve, Spend,
    WhatIf,
};
use paygo_accounting::wire::Mechanism;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use writer::{Job, Writer};

/// Requests that wait for the writer.
const MAX_WAITING: usize = 4096;
/// The longest mechanism, as it is written: snapshots hold thousands.
const MAX_MECHANISM: usize = 1 << 16;
/// How many priced mechanisms are remembered.
const MAX_PRICED: usize = 4096;
/// Mechanisms that may follow the first of a question.
const MAX_THEN: usize = 64;
/// Entries closer than this are read together.
const NEAR: u64 = 64;
/// An hour and a week, in seconds.
const USUAL_HOLD: u64 = 3600;
const MAX_HOLD: u64 = 7 * 24 * 3600;

/// Milliseconds since 1970, from outside: whatever it says, the times in the log never go back.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The clock of this machine.
#[must_use]
pub fn system_clock() -> Clock {
    Arc::new(|| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LedgerError {
    /// The request is not one; nothing was charged.
    #[error(transparent)]
    Mistake(#[from] Mistake),
    /// The store failed. Whether the request was charged is not known: counted as spent, and a retry with the same id tells.
    #[error("the ledger cannot say: {0}; whether it was charged is not known, and a retry with the same id tells")]
    Unavailable(String),
    /// The log contradicts itself; nothing is decided any more.
    #[error(transparent)]
    Broken(#[from] Broken),
}

impl From<StoreError> for LedgerError {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// A ledger that is open. Cheap to clone: every clone is the same ledger.
///
/// ```
/// use paygo_ledger::{Ledger, store::Location, words::{NewDataset, Spend, Decision}};
/// # let runtime = tokio::runtime::Runtime::new()?;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("organization.ledger");
/// # runtime.block_on(async {
/// let ledger = Ledger::open(&Location::File(path)).await?;
/// let me = paygo_ledger::ledger::Requester::new("alice".parse()?);
/// let new: NewDataset = serde_json::from_str(r#"{"name": "sales", "filter": {"epsilon": 1, "delta": 1e-6}}"#)?;
/// ledger.create_dataset(&me, new).await?;
/// let spend: Spend = serde_json::from_str(r#"{"id": "q1", "mechanism": {"gaussian": {"noise_multiplier": 10}}}"#)?;
/// let answer = ledger.spend(&me, &"sales".parse()?, spend.clone()).await?;
/// assert_eq!((answer.decision, answer.repeated), (Decision::Admit, false));
/// let again = ledger.spend(&me, &"sales".parse()?, spend).await?;
/// assert_eq!((again.entry, again.repeated), (answer.entry, true)); // charged once
/// # ledger.close().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Ledger {
    inner: Arc<Inner>,
}

/// What mechanisms cost, as they are written.
type Prices = HashMap<String, Arc<Quote>>;

struct Inner {
    jobs: mpsc::Sender<Job>,
    committed: Arc<RwLock<State>>,
    changes: watch::Receiver<u64>,
    /// Why the writer has stopped, if it has.
    broken: Arc<OnceLock<Broken>>,
    clock: Clock,
    /// By dataset.
    priced: Mutex<HashMap<Name, Prices>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger").field("entries", &self.read(State::seq)).finish_non_exhaustive()
    }
}

impl Ledger {
    /// Opens a ledger; makes it where there is none.
    ///
    /// # Errors
    /// [`LedgerError`] when there is no way to it or its log is broken.
    pub async fn open(location: &Location) -> Result<Self, LedgerError> {
        Self::over(SqlStore::open(location).await?, system_clock()).await
    }

    /// Opens a ledger over a store and a clock of one's own.
    ///
    /// # Errors
    /// [`LedgerError`] when the store fails or the log is broken.
    pub async fn over(store: impl Store, clock: Clock) -> Result<Self, LedgerError> {
        let (jobs, queue) = mpsc::channel(MAX_WAITING);
        let (changed, changes) = watch::channel(0);
        let committed = Arc::new(RwLock::new(State::default()));
        let broken = Arc::new(OnceLock::new());
        let (its_clock, its_state, its_end) = (Arc::clone(&clock), Arc::clone(&committed), Arc::clone(&broken));
        let writer = Writer::open(store, its_clock, queue, its_state, changed, its_end).await?;
        let writer = Mutex::new(Some(tokio::spawn(writer.run())));
        Ok(Self {
            inner: Arc::new(Inner { jobs, committed, changes, broken, clock, priced: Mutex::default(), writer }),
        })
    }

    /// Answers what was asked, and closes.
    pub async fn close(&self) {
        self.inner.jobs.send(Job::Close).await.ok();
        let writer = lock(&self.inner.writer).take();
        if let Some(writer) = writer {
            writer.await.ok();
        }
    }

    /// Whether the writer still answers.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.inner.jobs.is_closed()
    }

    /// Reads what is committed.
    pub fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.inner.committed.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of the last entry, as it changes.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.clone()
    }

    /// The time, as this ledger sees it.
    #[must_use]
    pub fn now(&self) -> u64 {
        (self.inner.clock)().max(self.read(State::at))
    }

    async fn ask<T>(&self, job: impl FnOnce(oneshot::Sender<T>) -> Job) -> Result<T, LedgerError> {
        let closed = || match self.inner.broken.get() {
            Some(broken) => LedgerError::Broken(broken.clone()),
            None => LedgerError::Unavailable("the ledger is closed".to_owned()),
        };
        let (answer, reply) = oneshot::channel();
        if self.inner.jobs.send(job(answer)).await.is_err() {
            // Whoever asks again at once does not keep the writer from its last answers.
            tokio::task::yield_now().await;
            return Err(closed());
        }
        reply.await.map_err(|_| closed())
    }

    async fn decision(&self, by: &Requester, command: Command) -> Result<Answer, LedgerError> {
        let asked = Box::new(Asked { by: by.clone(), command });
        self.ask(|answer| Job::Decide(asked, answer)).await?
    }

    async fn doing(&self, by: &Requester, command: Command) -> Result<Done, LedgerError> {
        let asked = Box::new(Asked { by: by.clone(), command });
        self.ask(|done| Job::Do(asked, done)).await?
    }

    /// Takes in what other replicas have written.
    ///
    /// # Errors
    /// [`LedgerError`] when the store fails or the log is broken.
    pub async fn refresh(&self) -> Result<(), LedgerError> {
        self.ask(Job::Refresh).await?
    }

    /// At most `most` entries after one, with their lines.
    ///
    /// # Errors
    /// [`LedgerError`] when the store fails.
    pub async fn lines(&self, after: u64, most: u64) -> Result<Vec<String>, LedgerError> {
        self.ask(|lines| Job::Lines(after, most, lines)).await?
    }

    /// Some entries, by ascending number.
    ///
    /// # Errors
    /// [`LedgerError`] when the store fails or an entry cannot be read.
    pub async fn entries(&self, numbers: &[u64]) -> Result<Vec<(Entry, Digest)>, LedgerError> {
        let mut entries = Vec::with_capacity(numbers.len());
        // Neighbors are read together.
        for run in numbers.chunk_by(|before, after| after.saturating_sub(*before) <= NEAR) {
            let (Some(&first), Some(&last)) = (run.first(), run.last()) else { continue };
            let lines = self.lines(first.saturating_sub(1), last.saturating_sub(first) + 1).await?;
            for (number, line) in (first..).zip(&lines).filter(|(number, _)| run.contains(number)) {
                entries.push(decider::parse(number, line)?);
            }
        }
        Ok(entries)
    }

    /// A dataset as it is now. A copy: whatever takes long with it keeps nobody waiting.
    ///
    /// # Errors
    /// [`LedgerError::Mistake`] when there is none.
    pub fn dataset(&self, name: &Name) -> Result<Dataset, LedgerError> {
        let known = self.read(|state| state.dataset(name).cloned());
        Ok(known.ok_or_else(|| Mistake::UnknownDataset(name.clone()))?.at(self.now()))
    }

    /// Which datasets somebody may look at: all, or those that their token is about.
    pub fn covered(&self, by: &Requester) -> impl Fn(&Name) -> bool + use<> {
        let now = self.now();
        let token = by.token.map(|hash| self.read(|state| state.token(&hash, now).cloned()));
        move |name| token.as_ref().is_none_or(|token| token.as_ref().is_some_and(|token| token.covers(name)))
    }

    /// The datasets among some, in short.
    ///
    /// # Errors
    /// [`LedgerError::Unavailable`] when the runtime is going away.
    pub async fn overview(&self, is_shown: impl Fn(&Name) -> bool) -> Result<Vec<Overview>, LedgerError> {
        let shown: Vec<Dataset> =
            self.read(|state| state.datasets().filter(|dataset| is_shown(dataset.name())).cloned().collect());
        let now = self.now();
        off_the_runtime(move || Ok(shown.into_iter().map(|dataset| Overview::from(&dataset.at(now))).collect())).await
    }

    /// A dataset, with everything that is known of it.
    ///
    /// # Errors
    /// [`LedgerError::Mistake`] when there is none.
    pub async fn view(&self, name: &Name) -> Result<DatasetView, LedgerError> {
        let dataset = self.dataset(name)?;
        off_the_runtime(move || Ok(DatasetView::from(&dataset))).await
    }

    /// The latest decisions about a dataset, newest first, at most a hundred.
    ///
    /// # Errors
    /// [`LedgerError`] when there is no such dataset, or the store fails.
    pub async fn decisions(&self, dataset: &Name, most: usize) -> Result<Vec<DecisionView>, LedgerError> {
        let recent = self.read(|state| Some(state.dataset(dataset)?.recent().rev().take(most).collect::<Vec<_>>()));
        let mut recent = recent.ok_or_else(|| Mistake::UnknownDataset(dataset.clone()))?;
        recent.reverse();
        let entries = self.entries(&recent).await?;
        let price = |(entry, _): &(Entry, Digest)| entry.event.decision().map(|(decided, _)| decided.price);
        let mut prices: Vec<u64> = entries.iter().filter_map(price).collect();
        prices.sort_unstable();
        prices.dedup();
        let mechanism = |(entry, _): (Entry, Digest)| Some((entry.seq, entry.event.into_mechanism()?));
        let mechanisms: HashMap<u64, Mechanism> =
            self.entries(&prices).await?.into_iter().filter_map(mechanism).collect();
        let newest_first = entries.iter().rev();
        Ok(newest_first.filter_map(|(entry, digest)| DecisionView::new(entry, *digest, &mechanisms)).collect())
    }

    /// What a mechanism costs in a dataset.
    ///
    /// # Errors
    /// [`LedgerError::Mistake`] when it is not a mechanism or has no price there.
    pub async fn price(&self, dataset: &Name, mechanism: Mechanism) -> Result<Arc<Quote>, LedgerError> {
        let written = crate::state::written(&mechanism);
        if written.len() > MAX_MECHANISM {
            let (what, given, most) = ("bytes of a mechanism", written.len(), MAX_MECHANISM);
            return Err(Mistake::TooMany { what, given, most }.into());
        }
        let known = lock(&self.inner.priced).get(dataset).and_then(|priced| priced.get(&written).cloned());
        if let Some(quote) = known {
            return Ok(quote);
        }
        let pricing = self.read(|state| state.dataset(dataset).map(Dataset::pricing));
        let pricing = pricing.ok_or_else(|| Mistake::UnknownDataset(dataset.clone()))?;
        let priced = move || Ok(Arc::new(Quote { charge: pricing.price(&mechanism)?, mechanism, written }));
        let quote = off_the_runtime(priced).await?;
        let mut cache = lock(&self.inner.priced);
        if cache.values().map(HashMap::len).sum::<usize>() >= MAX_PRICED {
            cache.clear();
        }
        cache.entry(dataset.clone()).or_default().insert(quote.written.clone(), Arc::clone(&quote));
        drop(cache);
        Ok(quote)
    }

    async fn priced(&self, dataset: &Name, spend: Spend) -> Result<Priced, LedgerError> {
        let Spend { id, mechanism, blocks, note } = spend;
        let quote = self.price(dataset, mechanism).await?;
        let unit = self.unit(dataset, &quote).await?;
        Ok(Priced { dataset: dataset.clone(), id, blocks, note, quote, unit })
    }

    /// What one of what a mechanism repeats costs: how many would still fit is told with a refusal.
    async fn unit(&self, dataset: &Name, quote: &Quote) -> Result<Option<Arc<Quote>>, LedgerError> {
        let (of, count) = unit(&quote.mechanism)?;
        if count == 1 {
            return Ok(None);
        }
        Ok(Some(self.price(dataset, of.clone()).await?))
    }

    /// Decides, and charges what is admitted.
    ///
    /// # Errors
    /// [`LedgerError`] when it is no request, or the answer is not known.
    pub async fn spend(&self, by: &Requester, dataset: &Name, spend: Spend) -> Result<Answer, LedgerError> {
        let priced = self.priced(dataset, spend).await?;
        self.decision(by, Command::Spend(priced)).await
    }

    /// Decides, and holds what is admitted until it is committed or cancelled; what expires stays charged.
    ///
    /// # Errors
    /// [`LedgerError`] when it is no request, or the answer is not known.
    pub async fn reserve(&self, by: &Requester, dataset: &Name, reserve: Reserve) -> Result<Answer, LedgerError> {
        let Reserve { id, mechanism, blocks, note, expires_in_seconds } = reserve;
        let seconds = expires_in_seconds.unwrap_or(USUAL_HOLD);
        if !(1..=MAX_HOLD).contains(&seconds) {
            let allowed = "1 to 604800, a week";
            let error = paygo_accounting::params::OutOfDomain::new("expires_in_seconds", seconds, allowed);
            return Err(Mistake::OutOfDomain(error).into());
        }
        let priced = self.priced(dataset, Spend { id, mechanism, blocks, note }).await?;
        self.decision(by, Command::Reserve(priced, seconds * 1000)).await
    }

    /// Says how much of a reservation was used; with nothing said, all of it, for good.
    ///
    /// # Errors
    /// [`LedgerError`] when there is no such reservation, or the answer is not known.
    pub async fn commit(&self, by: &Requester, dataset: &Name, commit: Commit) -> Result<Done, LedgerError> {
        let Commit { id, used } = commit;
        self.doing(by, Command::Commit { dataset: dataset.clone(), id, used }).await
    }

    /// Frees what was not used of a reservation, on its holder's word that nothing of it was drawn.
    ///
    /// # Errors
    /// [`LedgerError`] when there is no such reservation, it has expired, or the answer is not known.
    pub async fn cancel(&self, by: &Requester, dataset: &Name, cancel: Cancel) -> Result<Done, LedgerError> {
        if !cancel.nothing_drawn {
            return Err(Mistake::NothingDrawn.into());
        }
        let mut tries = 0;
        loop {
            let used = self.read(|state| state.dataset(dataset)?.used(&by.name, &cancel.id));
            let kept = match used {
                Some(used) => Some(self.price(dataset, used).await?),
                None => None,
            };
            let command = Command::Cancel { dataset: dataset.clone(), id: cancel.id.clone(), kept };
            match self.doing(by, command).await {
                // Through another replica: by now it is known here.
                Err(LedgerError::Mistake(Mistake::UsedMeanwhile(_))) if tries < 3 => tries += 1,
                outcome => return outcome,
            }
        }
    }

    /// Makes a dataset; one that is there already, made alike, stays.
    ///
    /// # Errors
    /// [`LedgerError`] when it cannot be made, or the answer is not known.
    pub async fn create_dataset(&self, by: &Requester, new: NewDataset) -> Result<Done, LedgerError> {
        self.doing(by, Command::CreateDataset(Box::new(new))).await
    }

    /// Adds blocks, each with the whole budget; those that are there already stay.
    ///
    /// # Errors
    /// [`LedgerError`] when they cannot be added, or the answer is not known.
    pub async fn add_blocks(&self, by: &Requester, dataset: &Name, new: NewBlocks) -> Result<Done, LedgerError> {
        self.doing(by, Command::AddBlocks { dataset: dataset.clone(), blocks: new.blocks }).await
    }

    /// Closes a dataset for good.
    ///
    /// # Errors
    /// [`LedgerError`] when there is none, or the answer is not known.
    pub async fn close_dataset(&self, by: &Requester, dataset: &Name) -> Result<Done, LedgerError> {
        self.doing(by, Command::CloseDataset { dataset: dataset.clone() }).await
    }

    /// Sets a ceiling, or sets it anew; what was spent under it stays.
    ///
    /// # Errors
    /// [`LedgerError`] when it cannot be set, or the answer is not known.
    pub async fn set_allowance(&self, by: &Requester, dataset: &Name, new: NewAllowance) -> Result<Done, LedgerError> {
        self.doing(by, Command::SetAllowance { dataset: dataset.clone(), allowance: Box::new(new) }).await
    }

    /// Grants a token. Its text is told once, here; the log holds a hash of it.
    ///
    /// # Errors
    /// [`LedgerError`] when it cannot be granted, or whether it was is not known.
    pub async fn grant(&self, by: &Requester, new: NewToken) -> Result<Granted, LedgerError> {
        if new.expires_in_days == Some(0) {
            let error = paygo_accounting::params::OutOfDomain::new("expires_in_days", 0, "1 or more, or none for ever");
            return Err(Mistake::OutOfDomain(error).into());
        }
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| LedgerError::Unavailable(error.to_string()))?;
        let token = format!("paygo_{}", hex::encode(bytes));
        let day = 24 * 3600 * 1000;
        let expires = new.expires_in_days.map(|days| self.now() + u64::from(days) * day);
        let NewToken { holder, role, datasets, explicit_curves, expires_in_days: _ } = new;
        let hash = Digest::of(&token);
        let command = Command::GrantToken { holder, hash, role, datasets, explicit_curves, expires };
        let Done { entry, receipt, repeated: _ } = self.doing(by, command).await?;
        Ok(Granted { token, hash, entry, receipt })
    }

    /// Revokes a token by its hash.
    ///
    /// # Errors
    /// [`LedgerError`] when there is none, or the answer is not known.
    pub async fn revoke(&self, by: &Requester, hash: Digest) -> Result<Done, LedgerError> {
        self.doing(by, Command::RevokeToken { hash }).await
    }

    /// What would be answered now; nothing is charged and nothing written.
    ///
    /// # Errors
    /// [`LedgerError::Mistake`] when it is no request.
    pub async fn what_if(&self, by: &Requester, dataset: &Name, question: Question) -> Result<WhatIf, LedgerError> {
        let Question { mechanism, then, blocks } = question;
        if then.len() > MAX_THEN {
            let (what, given, most) = ("mechanisms that follow", then.len(), MAX_THEN);
            return Err(Mistake::TooMany { what, given, most }.into());
        }
        let (first, one) = self.with_unit(dataset, mechanism).await?;
        let mut in_turn = vec![(Arc::clone(&one), unit(&first.mechanism)?.1)];
        for mechanism in then {
            let (whole, one) = self.with_unit(dataset, mechanism).await?;
            in_turn.push((one, unit(&whole.mechanism)?.1));
        }
        let known = self.dataset(dataset)?;
        let (by, touched) = (by.name.clone(), known.blocks(blocks.as_ref())?);
        off_the_runtime(move || {
            let (touched, many) = (touched.as_deref(), in_turn.len() > 1);
            let answer = answer::what_if(&known, &first, &one.charge, touched, &by);
            Ok(if many { answer::in_turn(&known, answer, &in_turn, touched, &by) } else { answer })
        })
        .await
    }

    /// A mechanism priced, and one of what it repeats.
    async fn with_unit(&self, dataset: &Name, mechanism: Mechanism) -> Result<(Arc<Quote>, Arc<Quote>), LedgerError> {
        let whole = self.price(dataset, mechanism).await?;
        let one = self.unit(dataset, &whole).await?.unwrap_or_else(|| Arc::clone(&whole));
        Ok((whole, one))
    }
}

/// Some mechanisms take a tenth of a second to price, and a dataset with thousands of blocks as long to show.
async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LedgerError> + Send + 'static,
) -> Result<T, LedgerError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| LedgerError::Unavailable(error.to_string()))?
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
