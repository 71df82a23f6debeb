//! The one writer of a process: takes what has queued up, decides it in order, and makes it durable in one transaction. While the store
//! writes, the next batch is decided on top of it.
//!
//! Two states: the decider's `working` runs ahead, `committed` follows when it is durable, and only then is anybody answered. After an
//! error nobody knows what the store kept, so `working` is thrown away and the truth is read back from the log.

use super::answer::Answers;
use super::decider::{Batch, Decider, Outcome, Undecided};
use super::{Clock, LedgerError};
use crate::entry::{Digest, Entry, Event, VERSION};
use crate::seen::Seen;
use crate::state::{Asked, Broken, Mistake, State, StoredState};
use crate::store::{Head, Snapshot, Store, StoreError};
use crate::words::{Answer, Done};
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

/// Most requests that are taken for one transaction; what is decided again may be twice as many.
const MAX_JOBS: usize = 1024;
/// Requests that are decided before the store is looked at again.
const FEW_JOBS: usize = 64;
/// How often a batch is tried: ids make that safe.
const MAX_TRIES: u32 = 3;
/// For how many batches a writer that is not alone takes the lock before it decides.
const CONTENDED: u32 = 64;
/// Entries between snapshots.
const SNAPSHOT: u64 = 1 << 16;
/// Lines that are read at once.
const PAGE: u64 = 4096;

type Reply<T> = oneshot::Sender<Result<T, LedgerError>>;

/// What the writer is asked.
pub(super) enum Job {
    /// To spend or reserve.
    Decide(Box<Asked>, Reply<Answer>),
    /// Everything else that is written.
    Do(Box<Asked>, Reply<Done>),
    /// To take in what others have written, as every batch does.
    Refresh(Reply<()>),
    /// Lines of the log.
    Lines(u64, u64, Reply<Vec<String>>),
    /// To answer what was asked before, and to end.
    Close,
}

pub(super) struct Writer<S> {
    store: S,
    decider: Decider,
    committed: Arc<RwLock<State>>,
    queue: mpsc::Receiver<Job>,
    /// What was taken from the queue and is not decided.
    waiting: VecDeque<Job>,
    /// The entry of the last snapshot, as far as is known here.
    saved: u64,
    /// Whether what is stored with it fits together; if not, it is replaced as a whole.
    trusted: bool,
    changed: watch::Sender<u64>,
    /// Why it has stopped.
    broken: Arc<OnceLock<Broken>>,
    /// For how many batches the lock is taken first, since somebody else writes too.
    contended: u32,
    /// How often what is waiting was tried in vain.
    tries: u32,
    /// Answers to what is durable, which are told while the next batches are decided and written.
    answering: JoinSet<()>,
}

/// Why a batch was not written.
enum Failure {
    /// It may be tried again.
    Store(StoreError),
    /// It may not.
    Broken(Broken),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl From<Failure> for LedgerError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Store(error) => error.into(),
            Failure::Broken(broken) => broken.into(),
        }
    }
}

impl<S: Store> Writer<S> {
    pub(super) async fn open(
        store: S,
        clock: Clock,
        queue: mpsc::Receiver<Job>,
        committed: Arc<RwLock<State>>,
        changed: watch::Sender<u64>,
        broken: Arc<OnceLock<Broken>>,
    ) -> Result<Self, LedgerError> {
        let mut writer = Self {
            store,
            decider: Decider::new(clock),
            committed,
            queue,
            waiting: VecDeque::new(),
            saved: 0,
            trusted: true,
            changed,
            broken,
            contended: 0,
            tries: 0,
            answering: JoinSet::new(),
        };
        writer.load().await?;
        Ok(writer)
    }

    /// Begins from what is stored: the last snapshot, and the log after it.
    async fn load(&mut self) -> Result<(), Failure> {
        let stored = self.store.state().await?;
        self.trusted = stored.is_none();
        let stored = stored.and_then(|text| serde_json::from_str::<StoredState>(&text).ok());
        if let Some(state) = stored.and_then(|stored| State::try_from(&stored).ok()) {
            let chunks = self.store.fingerprints().await?;
            if let Some(seen) = Seen::from_bytes(&chunks).filter(|seen| seen.len() == state.seq()) {
                (self.saved, self.trusted) = (state.seq(), true);
                *self.committed.write().unwrap_or_else(PoisonError::into_inner) = state.clone();
                (self.decider.working, self.decider.seen) = (state, seen);
            }
        }
        let head = self.store.begin().await?;
        let outcome = self.catch_up(head).await;
        self.publish(&[])?;
        if outcome.is_err() || head.seq > 0 {
            self.store.rollback().await?;
            return outcome;
        }
        // A ledger that is new.
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| StoreError::Damaged(error.to_string()))?;
        let ledger = hex::encode(bytes);
        let at = self.decider.now();
        self.decider.write(Event::Opened { version: VERSION, ledger }, at, None)?;
        self.finish().await
    }

    /// The last entry that is durable.
    fn durable(&self) -> Head {
        let committed = self.committed.read().unwrap_or_else(PoisonError::into_inner);
        Head { seq: committed.seq(), digest: committed.digest() }
    }

    /// Takes in the log up to its head.
    async fn catch_up(&mut self, head: Head) -> Result<(), Failure> {
        let broken = |what: &str| Broken { seq: head.seq, what: what.to_owned() };
        if head.seq < self.decider.working.seq() {
            return Err(broken("the log is shorter than it was: was it restored from a backup?").into());
        }
        while self.decider.working.seq() < head.seq {
            let known = self.decider.working.seq();
            let lines = self.store.lines(known, PAGE.min(head.seq - known)).await?;
            if lines.is_empty() {
                return Err(broken("the log ends before its head").into());
            }
            self.take_in(&lines)?;
        }
        if head.digest != self.decider.working.digest() {
            return Err(broken("the last entry does not have the digest that the head holds").into());
        }
        Ok(())
    }

    /// Moves on by lines that somebody else has written.
    fn take_in(&mut self, lines: &[String]) -> Result<(), Broken> {
        let entries = lines.iter().map(|line| self.decider.take_in(line)).collect::<Result<Vec<_>, _>>()?;
        self.publish(&entries)
    }

    /// Shows what is durable.
    fn publish(&self, entries: &[(Entry, Digest)]) -> Result<(), Broken> {
        let mut committed = self.committed.write().unwrap_or_else(PoisonError::into_inner);
        for (entry, digest) in entries {
            committed.apply(entry, *digest)?;
        }
        let seq = committed.seq();
        drop(committed);
        self.changed.send_if_modified(|known| std::mem::replace(known, seq) != seq);
        Ok(())
    }

    pub(super) async fn run(mut self) {
        let mut outcome = Ok(());
        while outcome.is_ok() && self.has_work().await {
            outcome = match self.round().await {
                Ok(()) => {
                    self.tries = 0;
                    Ok(())
                }
                Err(Failure::Broken(broken)) => Err(broken),
                Err(Failure::Store(error)) => {
                    self.take_back();
                    self.tries += 1;
                    if self.tries == MAX_TRIES {
                        self.tries = 0;
                        self.refuse_waiting(&LedgerError::Unavailable(error.to_string()));
                    }
                    // What the store kept is seen under the lock. If this fails too, the next round does, and whoever asked hears it.
                    self.contended = self.contended.max(1);
                    self.store.reconnect().await.ok();
                    Ok(())
                }
            };
        }
        while self.answering.join_next().await.is_some() {}
        if let Err(broken) = outcome {
            // Whoever asks from now on hears why.
            self.broken.set(broken.clone()).ok();
            self.take_back();
            self.queue.close();
            while let Some(job) = self.queue.recv().await {
                self.waiting.push_back(job);
            }
            self.refuse_waiting(&LedgerError::Broken(broken));
        }
        self.store.close().await;
    }

    /// Takes in what others have written, without a lock: what can be read is durable.
    async fn refresh(&mut self) -> Result<(), Failure> {
        while !self.waiting.is_empty() {
            let lines = self.store.lines(self.decider.working.seq(), PAGE).await?;
            self.take_in(&lines)?;
            if lines.is_empty() {
                let told = Batch {
                    requests: self.waiting.drain(..).map(|job| (job, Outcome::Already)).collect(),
                    ..Batch::default()
                };
                self.answer(told);
            }
        }
        Ok(())
    }

    /// Waits until something is asked; `false` at the end.
    async fn has_work(&mut self) -> bool {
        if !self.waiting.is_empty() || !self.decider.next.requests.is_empty() {
            return true;
        }
        let mut jobs = Vec::new();
        let taken = self.queue.recv_many(&mut jobs, MAX_JOBS).await;
        self.waiting.extend(jobs);
        taken > 0
    }

    /// One batch, or what needs the store.
    async fn round(&mut self) -> Result<(), Failure> {
        // Whatever has queued up by now is part of it; but what is tried again is tried alone, so that everybody has as many tries.
        while self.tries == 0
            && self.waiting.len() + self.decider.next.requests.len() < MAX_JOBS
            && let Ok(job) = self.queue.try_recv()
        {
            self.waiting.push_back(job);
        }
        self.errands().await;
        if self.decider.next.requests.is_empty() && self.waiting.iter().all(|job| matches!(job, Job::Refresh(_))) {
            return self.refresh().await;
        }
        if self.contended > 0 || self.decider.head().seq >= self.saved + SNAPSHOT {
            return self.under_the_lock().await;
        }
        self.decide_waiting().await?;
        if self.decider.next.entries.is_empty() {
            // What is known here may not be all: somebody else may have written what makes it another answer.
            return self.under_the_lock().await;
        }
        self.ahead().await
    }

    /// Does what needs the store and no decision.
    async fn errands(&mut self) {
        for _ in 0..self.waiting.len() {
            match self.waiting.pop_front() {
                Some(Job::Lines(after, most, reply)) => {
                    let lines = self.read(after, most).await;
                    drop(reply.send(lines.map_err(LedgerError::from)));
                }
                Some(Job::Close) => self.queue.close(),
                Some(job @ (Job::Decide(..) | Job::Do(..) | Job::Refresh(_))) => self.waiting.push_back(job),
                None => {}
            }
        }
    }

    async fn read(&mut self, after: u64, most: u64) -> Result<Vec<String>, StoreError> {
        match self.store.lines(after, most).await {
            Ok(lines) => Ok(lines),
            Err(_) => {
                self.store.reconnect().await?;
                self.store.lines(after, most).await
            }
        }
    }

    /// Forgets whatever is not known to be durable: what was decided on it is decided again.
    fn take_back(&mut self) {
        let later = std::mem::take(&mut self.waiting);
        if self.decider.head() != self.durable() {
            self.decider.go_back_to(self.committed.read().unwrap_or_else(PoisonError::into_inner).clone());
        }
        self.waiting = self.decider.undecide().chain(later).collect();
    }

    fn refuse_waiting(&mut self, error: &LedgerError) {
        for job in std::mem::take(&mut self.waiting) {
            match job {
                Job::Close => self.queue.close(),
                job @ (Job::Decide(..) | Job::Do(..) | Job::Refresh(_) | Job::Lines(..)) => refuse(job, error),
            }
        }
    }

    /// Decides what is waiting, and reads whatever that needs.
    async fn decide_waiting(&mut self) -> Result<(), Failure> {
        while let Some(job) = self.waiting.pop_front() {
            let Err((job, undecided)) = self.decider.decide(job) else { continue };
            self.waiting.push_front(job);
            match undecided {
                Undecided::Broken(broken) => return Err(broken.into()),
                Undecided::Needs(seq) => match self.store.lines(seq - 1, 1).await?.first() {
                    Some(line) => self.decider.bring(seq, line)?,
                    None => return Err(Broken { seq, what: "is not in the log, as another says".to_owned() }.into()),
                },
            }
        }
        Ok(())
    }

    /// Writes what is decided where nobody else writes, in one statement; what comes meanwhile is decided on top of it.
    async fn ahead(&mut self) -> Result<(), Failure> {
        let (from, to) = (self.durable(), self.decider.head());
        let Self { store, decider, queue, waiting, .. } = self;
        let page = decider.begin_writing();
        let (mut jobs, mut may_go_on) = (Vec::new(), Ok(true));
        let moved = {
            let mut written = pin!(store.extend(from, text(&page)?, to));
            loop {
                let room = MAX_JOBS.saturating_sub(decider.next.requests.len()).min(FEW_JOBS);
                tokio::select! {
                    biased;
                    moved = &mut written => break moved?,
                    taken = queue.recv_many(&mut jobs, room), if room > 0 && matches!(may_go_on, Ok(true)) => {
                        waiting.extend(jobs.drain(..));
                        may_go_on = decide_ahead(decider, waiting).map(|all| all && taken > 0);
                    }
                }
            }
        };
        if !moved {
            // Somebody else has written: what was decided here is not so.
            self.contended = CONTENDED;
            self.take_back();
            return Ok(());
        }
        let batch = std::mem::take(&mut self.decider.writing);
        self.publish(&batch.entries)?;
        self.answer(batch);
        may_go_on.map(drop).map_err(Failure::from)
    }

    /// Decides and writes under the lock: where somebody else writes too, and when a snapshot is due.
    async fn under_the_lock(&mut self) -> Result<(), Failure> {
        self.contended = self.contended.saturating_sub(1);
        let head = self.store.begin().await?;
        if head != self.durable() {
            // What was decided ahead is not so.
            self.take_back();
            self.catch_up(head).await?;
        }
        self.decide_waiting().await?;
        if self.decider.next.entries.is_empty() {
            self.store.rollback().await?;
            let batch = std::mem::take(&mut self.decider.next);
            self.answer(batch);
            return Ok(());
        }
        self.finish().await
    }

    /// Makes the next batch durable under the lock, shows it and answers it.
    async fn finish(&mut self) -> Result<(), Failure> {
        let head = self.decider.head();
        self.store.append(text(&self.decider.next.page)?, head.seq).await?;
        let mut is_due = head.seq >= self.saved + SNAPSHOT;
        if is_due && self.trusted {
            // Another process may have stored one meanwhile.
            self.saved = self.store.saved().await?;
            is_due = head.seq >= self.saved + SNAPSHOT;
        }
        if is_due {
            let state = serde_json::to_string(&StoredState::from(&self.decider.working));
            let state = state.map_err(|error| StoreError::Damaged(error.to_string()))?;
            let fingerprints = self.decider.seen.bytes_after(self.saved);
            self.store.save(&Snapshot { seq: head.seq, after: self.saved, state, fingerprints }).await?;
        }
        self.store.commit(head).await?;
        if is_due {
            (self.saved, self.trusted) = (head.seq, true);
        }
        let batch = std::mem::take(&mut self.decider.next);
        self.publish(&batch.entries)?;
        self.answer(batch);
        Ok(())
    }

    /// Answers the requests of a batch that is durable, while the next is under way.
    fn answer(&mut self, batch: Batch) {
        while self.answering.try_join_next().is_some() {}
        let committed = Arc::clone(&self.committed);
        self.answering.spawn(async move { answer(&committed, batch) });
    }
}

/// Lines, which are text.
fn text(page: &[u8]) -> Result<&str, StoreError> {
    std::str::from_utf8(page).map_err(|error| StoreError::Damaged(error.to_string()))
}

/// Decides what is waiting as far as that needs no store; whether that was all. Whatever came after something that does waits behind it.
fn decide_ahead(decider: &mut Decider, waiting: &mut VecDeque<Job>) -> Result<bool, Broken> {
    while let Some(job) = waiting.pop_front() {
        if matches!(job, Job::Lines(..) | Job::Close) {
            waiting.push_front(job);
            return Ok(false);
        }
        if let Err((job, undecided)) = decider.decide(job) {
            waiting.push_front(job);
            return match undecided {
                Undecided::Needs(_) => Ok(false),
                Undecided::Broken(broken) => Err(broken),
            };
        }
    }
    Ok(true)
}

/// What is told to whoever asked.
enum Told {
    Answer(Result<Answer, LedgerError>),
    Done(Result<Done, LedgerError>),
    Nothing,
}

/// Answers the requests of a batch that is durable, from a state that it is part of.
fn answer(committed: &RwLock<State>, batch: Batch) {
    let state = committed.read().unwrap_or_else(PoisonError::into_inner);
    let mut answers = Answers::new(&state);
    let told: Vec<Told> =
        batch.requests.iter().map(|(job, outcome)| tell(job, outcome, &batch.entries, &state, &mut answers)).collect();
    // Whoever is told something asks again: the next batch need not wait for that.
    drop(answers);
    drop(state);
    for ((job, _), told) in batch.requests.into_iter().zip(told) {
        match (job, told) {
            (Job::Decide(_, reply), Told::Answer(answer)) => drop(reply.send(answer)),
            (Job::Do(_, reply), Told::Done(done)) => drop(reply.send(done)),
            (Job::Refresh(reply), _) => drop(reply.send(Ok(()))),
            (Job::Decide(..) | Job::Do(..) | Job::Lines(..) | Job::Close, _) => {}
        }
    }
}

fn tell<'a>(
    job: &Job,
    outcome: &'a Outcome,
    entries: &'a [(Entry, Digest)],
    state: &State,
    answers: &mut Answers<'a>,
) -> Told {
    let (entry, digest, repeated, price) = match outcome {
        Outcome::New(index) => {
            let (entry, digest) = &entries[*index];
            (Some(entry), *digest, false, None)
        }
        Outcome::Known(known) => (Some(&known.0), known.1, true, known.2.as_ref()),
        Outcome::Already => (None, state.digest(), true, None),
        Outcome::Mistake(mistake) => {
            let mistake = LedgerError::Mistake(Mistake::clone(mistake));
            return if matches!(job, Job::Decide(..)) { Told::Answer(Err(mistake)) } else { Told::Done(Err(mistake)) };
        }
    };
    match job {
        Job::Decide(asked, _) => {
            let asked_for = || asked.command.priced().map(|priced| priced.quote.charge.lanes().clone());
            let price = || price.cloned().or_else(asked_for);
            let answer = entry.and_then(|entry| answers.answer(entry, digest, repeated, price));
            Told::Answer(answer.ok_or_else(|| LedgerError::Unavailable("the decision is not in the log".to_owned())))
        }
        Job::Do(..) => {
            let entry = entry.map_or(state.seq(), |entry| entry.seq);
            Told::Done(Ok(Done { entry, receipt: digest, repeated }))
        }
        Job::Refresh(_) | Job::Lines(..) | Job::Close => Told::Nothing,
    }
}

fn refuse(job: Job, error: &LedgerError) {
    match job {
        Job::Decide(_, reply) => drop(reply.send(Err(error.clone()))),
        Job::Do(_, reply) => drop(reply.send(Err(error.clone()))),
        Job::Refresh(reply) => drop(reply.send(Err(error.clone()))),
        Job::Lines(.., reply) => drop(reply.send(Err(error.clone()))),
        Job::Close => {}
    }
}
