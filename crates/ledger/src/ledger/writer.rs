//! The one writer of a process: takes what has queued up, decides it in order, and makes it durable in one transaction.
//!
//! Two states: `working` runs ahead while a batch is decided, `committed` follows when it is durable. After an error nobody knows
//! what the store kept, so `working` is thrown away and the truth is read back from the log.

use super::answer::Answers;
use super::{Clock, LedgerError};
use crate::entry::{Decided, Digest, Entry, Event, VERSION};
use crate::names::{Name, RequestId};
use crate::seen::{Fingerprint, Kind, Seen};
use crate::state::{Asked, Broken, CANCELLED, COMMITTED, Command, EXPIRED, Mistake, Price, Priced, State, StoredState};
use crate::store::{Head, Snapshot, Store, StoreError};
use crate::words::{Answer, Done};
use paygo_accounting::charge::Sums;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// Most requests of one transaction.
const MOST_JOBS: usize = 1024;
/// How often a batch is tried: ids make that safe.
const TRIES: u32 = 3;
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
    /// To take in what others have written.
    Refresh(Reply<()>),
    /// Lines of the log.
    Lines(u64, u64, Reply<Vec<String>>),
}

pub(super) struct Writer<S> {
    store: S,
    clock: Clock,
    working: State,
    committed: Arc<RwLock<State>>,
    seen: Seen,
    /// The entry of the last snapshot, as far as is known here.
    saved: u64,
    /// Whether what is stored with it fits together; if not, it is replaced as a whole.
    trusted: bool,
    changed: watch::Sender<u64>,
    /// Why it has stopped.
    broken: Arc<OnceLock<Broken>>,
    /// For how many batches the lock is taken first, since somebody else writes too.
    contended: u32,
    /// The answers to the batch before, which are told while the next is decided.
    answering: Option<JoinHandle<()>>,
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

/// What became of one request, before it is durable.
enum Outcome {
    /// An entry of this batch.
    New(usize),
    /// An entry that was there, and what its request costs.
    Known(Box<Entry>, Digest, Option<Sums>),
    /// Nothing to do.
    Already,
    /// Not a request.
    Mistake(Mistake),
}

/// What is being written.
#[derive(Default)]
struct Batch {
    /// The lines of the entries.
    page: String,
    entries: Vec<(Entry, Digest)>,
}

impl Batch {
    /// The entry of a number, if it is one of these.
    fn entry(&self, seq: u64) -> Option<&(Entry, Digest)> {
        let first = self.entries.first()?.0.seq;
        self.entries.get(usize::try_from(seq.checked_sub(first)?).ok()?)
    }
}

/// An entry and its digest.
pub(super) fn parse(seq: u64, line: &str) -> Result<(Entry, Digest), Broken> {
    let entry: Entry = serde_json::from_str(line).map_err(|error| Broken { seq, what: error.to_string() })?;
    Ok((entry, Digest::of(line)))
}

impl<S: Store> Writer<S> {
    pub(super) async fn open(
        store: S,
        clock: Clock,
        committed: Arc<RwLock<State>>,
        changed: watch::Sender<u64>,
        broken: Arc<OnceLock<Broken>>,
    ) -> Result<Self, LedgerError> {
        let (working, seen) = (State::default(), Seen::default());
        let mut writer = Self {
            store,
            clock,
            working,
            committed,
            seen,
            saved: 0,
            trusted: true,
            changed,
            broken,
            contended: 0,
            answering: None,
        };
        writer.load().await?;
        Ok(writer)
    }

    /// Begins from what is stored: the last snapshot, and the log after it.
    async fn load(&mut self) -> Result<(), Failure> {
        (self.working, self.seen, self.saved) = (State::default(), Seen::default(), 0);
        let stored = self.store.state().await?;
        self.trusted = stored.is_none();
        let stored = stored.and_then(|text| serde_json::from_str::<StoredState>(&text).ok());
        if let Some(state) = stored.and_then(|stored| State::try_from(&stored).ok()) {
            let chunks = self.store.fingerprints().await?;
            if let Some(seen) = Seen::from_bytes(&chunks).filter(|seen| seen.len() == state.seq()) {
                (self.saved, self.trusted) = (state.seq(), true);
                (self.working, self.seen) = (state, seen);
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
        let ledger = bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        let mut batch = Batch::default();
        let at = self.now();
        self.write(&mut batch, Event::Opened { version: VERSION, ledger }, at)?;
        self.finish(batch).await?;
        Ok(())
    }

    /// Takes in the log up to its head.
    async fn catch_up(&mut self, head: Head) -> Result<(), Failure> {
        let broken = |what: &str| Broken { seq: head.seq, what: what.to_owned() };
        if head.seq < self.working.seq() {
            return Err(broken("the log is shorter than it was: was it restored from a backup?").into());
        }
        while self.working.seq() < head.seq {
            let lines = self.store.lines(self.working.seq(), PAGE.min(head.seq - self.working.seq())).await?;
            if lines.is_empty() {
                return Err(broken("the log ends before its head").into());
            }
            self.take_in(&lines)?;
        }
        if head.digest != self.working.digest() {
            return Err(broken("the last entry does not have the digest that the head holds").into());
        }
        Ok(())
    }

    /// Moves on by lines that somebody else has written.
    fn take_in(&mut self, lines: &[String]) -> Result<(), Broken> {
        let mut entries = Vec::with_capacity(lines.len());
        for line in lines {
            let (entry, digest) = parse(self.working.seq() + 1, line)?;
            self.working.apply(&entry, digest)?;
            self.seen.push(Fingerprint::of(&entry).as_ref());
            entries.push((entry, digest));
        }
        self.publish(&entries)
    }

    /// Shows what is durable: by moving on by some entries, or, where the readers' state is far behind, as a whole.
    fn publish(&mut self, entries: &[(Entry, Digest)]) -> Result<(), Broken> {
        let mut committed = self.committed.write().unwrap_or_else(PoisonError::into_inner);
        let follows = entries.first().is_some_and(|(entry, _)| entry.seq == committed.seq() + 1);
        if follows {
            for (entry, digest) in entries {
                committed.apply(entry, *digest)?;
            }
        } else if committed.seq() != self.working.seq() {
            *committed = self.working.clone();
        }
        drop(committed);
        let seq = self.working.seq();
        self.changed.send_if_modified(|known| std::mem::replace(known, seq) != seq);
        Ok(())
    }

    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        let mut jobs = Vec::new();
        loop {
            jobs.clear();
            if queue.recv_many(&mut jobs, MOST_JOBS).await == 0 {
                self.answered().await;
                self.store.close().await;
                return;
            }
            let (mut requests, mut broken) = (Vec::with_capacity(jobs.len()), None);
            for job in jobs.drain(..) {
                match job {
                    Job::Decide(..) | Job::Do(..) => requests.push(job),
                    Job::Refresh(reply) => {
                        let outcome = self.refresh().await;
                        if let Err(Failure::Broken(found)) = &outcome {
                            broken = Some(found.clone());
                        }
                        drop(reply.send(outcome.map_err(LedgerError::from)));
                    }
                    Job::Lines(after, most, reply) => {
                        let lines = self.read(after, most).await;
                        drop(reply.send(lines.map_err(LedgerError::from)));
                    }
                }
            }
            let outcome = match broken {
                None => self.batch(requests).await,
                Some(broken) => {
                    requests.into_iter().for_each(|job| refuse(job, &LedgerError::Broken(broken.clone())));
                    Err(broken)
                }
            };
            if let Err(broken) = outcome {
                // Whoever asks from now on hears why.
                self.answered().await;
                self.broken.set(broken.clone()).ok();
                queue.close();
                while let Some(job) = queue.recv().await {
                    refuse(job, &LedgerError::Broken(broken.clone()));
                }
                return;
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

    async fn refresh(&mut self) -> Result<(), Failure> {
        loop {
            let lines = self.read(self.working.seq(), PAGE).await?;
            self.take_in(&lines)?;
            if lines.is_empty() {
                return Ok(());
            }
        }
    }

    /// Decides some requests and answers them.
    async fn batch(&mut self, requests: Vec<Job>) -> Result<(), Broken> {
        if requests.is_empty() {
            return Ok(());
        }
        let mut last = String::new();
        for _ in 0..TRIES {
            match self.attempt(&requests).await {
                Ok((batch, outcomes)) => {
                    self.answered().await;
                    let committed = Arc::clone(&self.committed);
                    self.answering = Some(tokio::spawn(async move { answer(&committed, requests, &batch, &outcomes) }));
                    return Ok(());
                }
                Err(Failure::Broken(broken)) => {
                    let error = LedgerError::Broken(broken.clone());
                    requests.into_iter().for_each(|job| refuse(job, &error));
                    return Err(broken);
                }
                Err(Failure::Store(error)) => {
                    last = error.to_string();
                    self.forget();
                    // If this fails too, the next attempt does, and whoever asked hears it.
                    self.store.reconnect().await.ok();
                }
            }
        }
        let error = LedgerError::Unavailable(last);
        requests.into_iter().for_each(|job| refuse(job, &error));
        Ok(())
    }

    /// Waits until the batch before is answered.
    async fn answered(&mut self) {
        if let Some(answering) = self.answering.take() {
            answering.await.ok();
        }
    }

    /// Forgets whatever is not known to be durable.
    fn forget(&mut self) {
        self.working = self.committed.read().unwrap_or_else(PoisonError::into_inner).clone();
        self.seen.forget_after(self.working.seq());
    }

    /// Decides some requests and makes what is decided durable: where nobody else writes in one statement, else under the lock.
    async fn attempt(&mut self, requests: &[Job]) -> Result<(Batch, Vec<Outcome>), Failure> {
        let is_due = self.working.seq() >= self.saved + SNAPSHOT;
        if self.contended == 0 && !is_due {
            let from = self.head();
            let (batch, outcomes) = self.decide(requests).await?;
            if !batch.entries.is_empty() {
                if self.store.extend(from, &batch.page, self.head()).await? {
                    self.publish(&batch.entries)?;
                    return Ok((batch, outcomes));
                }
                // Somebody else has written: what was decided here is not so.
                self.contended = CONTENDED;
                self.forget();
            }
        }
        self.contended = self.contended.saturating_sub(1);
        let head = self.store.begin().await?;
        self.catch_up(head).await?;
        let (batch, outcomes) = self.decide(requests).await?;
        if batch.entries.is_empty() {
            self.store.rollback().await?;
            return Ok((batch, outcomes));
        }
        let batch = self.finish(batch).await?;
        Ok((batch, outcomes))
    }

    /// What becomes of some requests, as far as is known here.
    async fn decide(&mut self, requests: &[Job]) -> Result<(Batch, Vec<Outcome>), Failure> {
        let mut batch = Batch::default();
        let mut outcomes = Vec::with_capacity(requests.len());
        for job in requests {
            outcomes.push(match job {
                Job::Decide(asked, _) | Job::Do(asked, _) => self.outcome(asked, &mut batch).await?,
                Job::Refresh(_) | Job::Lines(..) => Outcome::Already,
            });
        }
        Ok((batch, outcomes))
    }

    /// The time, which never goes back.
    fn now(&self) -> u64 {
        (self.clock)().max(self.working.at())
    }

    /// The last entry that was decided.
    fn head(&self) -> Head {
        Head { seq: self.working.seq(), digest: self.working.digest() }
    }

    /// Makes a batch durable and shows it.
    async fn finish(&mut self, batch: Batch) -> Result<Batch, Failure> {
        let head = self.head();
        self.store.append(&batch.page, head.seq).await?;
        let mut is_due = head.seq >= self.saved + SNAPSHOT;
        if is_due && self.trusted {
            // Another process may have stored one meanwhile.
            self.saved = self.store.saved().await?;
            is_due = head.seq >= self.saved + SNAPSHOT;
        }
        if is_due {
            let state = serde_json::to_string(&StoredState::from(&self.working));
            let state = state.map_err(|error| StoreError::Damaged(error.to_string()))?;
            let fingerprints = self.seen.bytes_after(self.saved);
            self.store.save(&Snapshot { seq: head.seq, after: self.saved, state, fingerprints }).await?;
        }
        self.store.commit(head).await?;
        if is_due {
            (self.saved, self.trusted) = (head.seq, true);
        }
        self.publish(&batch.entries)?;
        Ok(batch)
    }

    /// Appends an event to a batch.
    fn write(&mut self, batch: &mut Batch, event: Event, at: u64) -> Result<usize, Broken> {
        let entry = Entry { seq: self.working.seq() + 1, at, prev: self.working.digest(), event };
        let line = entry.line();
        let digest = Digest::of(&line);
        self.working.apply(&entry, digest)?;
        // Asserted before it is written: what everything rests on.
        if !self.working.is_within_budget(&entry.event) {
            let what = "would pass a budget; this is a fault of paygo, and nothing was written";
            return Err(Broken { seq: entry.seq, what: what.to_owned() });
        }
        // Forgotten again if it does not become durable.
        self.seen.push(Fingerprint::of(&entry).as_ref());
        if !batch.page.is_empty() {
            batch.page.push('\n');
        }
        batch.page.push_str(&line);
        batch.entries.push((entry, digest));
        Ok(batch.entries.len() - 1)
    }

    /// What becomes of a request: what became of it before, or what is decided now.
    async fn outcome(&mut self, asked: &Asked, batch: &mut Batch) -> Result<Outcome, Failure> {
        // One time for all of it: what is open when it is decided is open when it is written.
        let at = self.now();
        // Also where the answer is known already: it is for whoever holds a token.
        if let Err(mistake) = self.working.recognize(&asked.by, at) {
            return Ok(Outcome::Mistake(mistake));
        }
        if let Some(priced) = asked.command.priced() {
            let known = self.find(batch, Kind::Request, &priced.dataset, &asked.by.name, &priced.id).await?;
            if let Some((entry, digest)) = known {
                return self.repeated(asked, priced, entry, digest, batch).await;
            }
        }
        if let Some((dataset, id, partly)) = asked.command.reservation()
            && let Some(outcome) = self.ended(asked, (dataset, id, partly), at, batch).await?
        {
            return Ok(outcome);
        }
        let events = match self.working.decide(asked, at) {
            Ok(events) => events,
            Err(mistake) => return Ok(Outcome::Mistake(mistake)),
        };
        let mut last = Outcome::Already;
        for event in events {
            last = Outcome::New(self.write(batch, event, at)?);
        }
        Ok(last)
    }

    /// The entry that answers a request, if there is one.
    async fn find(
        &mut self,
        batch: &Batch,
        kind: Kind,
        dataset: &Name,
        by: &Name,
        id: &RequestId,
    ) -> Result<Option<(Entry, Digest)>, Failure> {
        let fingerprint = Fingerprint::new(kind, dataset, by, id);
        let is_it = |entry: &Entry| answers(entry, kind) == Some((dataset, by, id));
        for seq in self.seen.find(&fingerprint) {
            if let Some(new) = batch.entry(seq) {
                if is_it(&new.0) {
                    return Ok(Some(new.clone()));
                }
                continue;
            }
            for line in self.store.lines(seq - 1, 1).await? {
                let (entry, digest) = parse(seq, &line)?;
                if is_it(&entry) {
                    return Ok(Some((entry, digest)));
                }
            }
        }
        Ok(None)
    }

    /// A request whose id was seen before: the first answer, if it is the same request.
    async fn repeated(
        &mut self,
        asked: &Asked,
        priced: &Priced,
        entry: Entry,
        digest: Digest,
        batch: &Batch,
    ) -> Result<Outcome, Failure> {
        let Some((decided, expires)) = entry.event.decision() else {
            return Ok(Outcome::Mistake(Mistake::IdUsed(priced.id.clone())));
        };
        let price = self.price(decided, batch).await?;
        let same = price.mechanism == priced.quote.mechanism
            && expires.is_some() == matches!(asked.command, Command::Reserve(..))
            && self.same_blocks(decided, priced);
        if !same {
            return Ok(Outcome::Mistake(Mistake::IdUsed(priced.id.clone())));
        }
        // What its holder has given back is no admission any more.
        let end = self.find(batch, Kind::End, &priced.dataset, &asked.by.name, &priced.id).await?;
        if end.is_some_and(|(end, _)| matches!(end.event, Event::Cancelled { .. })) {
            return Ok(Outcome::Mistake(Mistake::ReservationClosed { id: priced.id.clone(), how: CANCELLED }));
        }
        Ok(Outcome::Known(Box::new(entry), digest, Some(price.sums.clone())))
    }

    /// Whether a request touches what one touched that was decided before. `"all"` are all that there are now: blocks that came since
    /// were not charged.
    fn same_blocks(&self, decided: &Decided, priced: &Priced) -> bool {
        let dataset = self.working.dataset(&decided.dataset);
        dataset.is_some_and(|dataset| {
            dataset.blocks(priced.blocks.as_ref()).is_ok_and(|touched| touched == decided.blocks)
        })
    }

    /// What a decided request costs: remembered, or read back from the log.
    async fn price(&mut self, decided: &Decided, batch: &Batch) -> Result<Arc<Price>, Failure> {
        if let Some(price) = self.working.price(decided.price) {
            return Ok(Arc::clone(price));
        }
        let mut event = batch.entry(decided.price).map(|(entry, _)| entry.event.clone());
        if event.is_none() {
            for line in self.store.lines(decided.price - 1, 1).await? {
                event = Some(parse(decided.price, &line)?.0.event);
            }
        }
        let price = event.and_then(|event| self.working.read_price(&event));
        price.map(Arc::new).ok_or_else(|| {
            Broken { seq: decided.price, what: "does not say what a request costs, as another entry says".to_owned() }
                .into()
        })
    }

    /// How a reservation ended, if it did; `None` when it is open or was never there.
    async fn ended(
        &mut self,
        asked: &Asked,
        (dataset, id, partly): (&Name, &RequestId, bool),
        at: u64,
        batch: &Batch,
    ) -> Result<Option<Outcome>, Failure> {
        let commits = matches!(asked.command, Command::Commit { .. });
        let closed = |how| Outcome::Mistake(Mistake::ReservationClosed { id: id.clone(), how });
        if let Some((entry, digest)) = self.find(batch, Kind::End, dataset, &asked.by.name, id).await? {
            let committed = matches!(entry.event, Event::Committed { .. });
            return Ok(Some(match (committed, commits && !partly) {
                (true, true) => Outcome::Known(Box::new(entry), digest, None),
                (false, false) if !commits => Outcome::Known(Box::new(entry), digest, None),
                (true, false) => closed(COMMITTED),
                (false, _) => closed(CANCELLED),
            }));
        }
        let open = self.working.dataset(dataset).is_some_and(|known| known.holds(&asked.by.name, id, at));
        if open {
            return Ok(None);
        }
        // Admitted, neither open nor ended: it expired, and stays charged, which is what a commit asks for.
        let found = self.find(batch, Kind::Request, dataset, &asked.by.name, id).await?;
        Ok(found.and_then(|(entry, digest)| {
            entry.event.decision().filter(|(decided, expires)| decided.refused.is_none() && expires.is_some())?;
            Some(if commits { Outcome::Known(Box::new(entry), digest, None) } else { closed(EXPIRED) })
        }))
    }
}

/// Answers the requests of a batch that is durable, from a state that it is part of.
fn answer(committed: &RwLock<State>, requests: Vec<Job>, batch: &Batch, outcomes: &[Outcome]) {
    let state = committed.read().unwrap_or_else(PoisonError::into_inner);
    let mut answers = Answers::new(&state);
    for (job, outcome) in requests.into_iter().zip(outcomes) {
        let (entry, digest, repeated, price) = match outcome {
            Outcome::New(index) => {
                let (entry, digest) = &batch.entries[*index];
                (Some(entry), *digest, false, None)
            }
            Outcome::Known(entry, digest, price) => (Some(&**entry), *digest, true, price.as_ref()),
            Outcome::Already => (None, state.digest(), true, None),
            Outcome::Mistake(mistake) => {
                refuse(job, &LedgerError::Mistake(mistake.clone()));
                continue;
            }
        };
        match job {
            Job::Decide(asked, reply) => {
                let price = || {
                    let asked_for = || asked.command.priced().map(|priced| priced.quote.charge.to_sums());
                    price.cloned().or_else(asked_for)
                };
                let answer = entry.and_then(|entry| answers.answer(entry, digest, repeated, price));
                let missing = || LedgerError::Unavailable("the decision is not in the log".to_owned());
                drop(reply.send(answer.ok_or_else(missing)));
            }
            Job::Do(_, reply) => {
                let entry = entry.map_or(state.seq(), |entry| entry.seq);
                drop(reply.send(Ok(Done { entry, receipt: digest, repeated })));
            }
            Job::Refresh(_) | Job::Lines(..) => {}
        }
    }
}

fn refuse(job: Job, error: &LedgerError) {
    match job {
        Job::Decide(_, reply) => drop(reply.send(Err(error.clone()))),
        Job::Do(_, reply) => drop(reply.send(Err(error.clone()))),
        Job::Refresh(reply) => drop(reply.send(Err(error.clone()))),
        Job::Lines(.., reply) => drop(reply.send(Err(error.clone()))),
    }
}

/// Which request an entry answers, as one of a kind.
fn answers(entry: &Entry, kind: Kind) -> Option<(&Name, &Name, &RequestId)> {
    match kind {
        Kind::Request => entry.event.decision().map(|(decided, _)| (&decided.dataset, &decided.by, &decided.id)),
        Kind::End => entry.event.end(),
    }
}
