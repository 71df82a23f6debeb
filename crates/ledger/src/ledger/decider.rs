//! What becomes of requests, in order: decided in memory, ahead of the store, which may still be writing what was decided before.
//!
//! Nothing here waits. What is not in memory (an entry of long ago that an id was seen in) is named, and decided again when it was
//! brought.

use super::Clock;
use super::writer::Job;
use crate::entry::{Decided, Digest, Entry, Event};
use crate::names::{Name, RequestId};
use crate::seen::{Fingerprint, Kind, Seen};
use crate::state::{Asked, Broken, CANCELLED, COMMITTED, Command, EXPIRED, Mistake, Price, Priced, State};
use crate::store::Head;
use paygo_accounting::charge::Lanes;
use std::collections::HashMap;
use std::sync::Arc;

/// What became of one request, before it is durable.
pub(super) enum Outcome {
    /// An entry of this batch.
    New(usize),
    /// An entry that was there, and what its request costs.
    Known(Box<(Entry, Digest, Option<Lanes>)>),
    /// Nothing to do.
    Already,
    /// Not a request.
    Mistake(Box<Mistake>),
}

impl From<Mistake> for Outcome {
    fn from(mistake: Mistake) -> Self {
        Self::Mistake(Box::new(mistake))
    }
}

/// Why there is no outcome yet.
pub(super) enum Undecided {
    /// An entry is needed that is not in memory.
    Needs(u64),
    /// The log contradicts itself.
    Broken(Broken),
}

impl From<Broken> for Undecided {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

/// Requests, what became of them, and the entries that say so.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) requests: Vec<(Job, Outcome)>,
    pub(super) entries: Vec<(Entry, Digest)>,
    /// The lines of the entries.
    pub(super) page: Vec<u8>,
}

impl Batch {
    /// An empty one, with room for as much as there is here.
    fn of_this_size(&self) -> Self {
        let (requests, entries) = (Vec::with_capacity(self.requests.len()), Vec::with_capacity(self.entries.len()));
        Self { requests, entries, page: Vec::with_capacity(self.page.len()) }
    }

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

/// What is known here, which runs ahead of what is durable.
pub(super) struct Decider {
    clock: Clock,
    pub(super) working: State,
    pub(super) seen: Seen,
    /// What is being written.
    pub(super) writing: Batch,
    /// What will be written next.
    pub(super) next: Batch,
    /// Entries that were brought.
    brought: HashMap<u64, (Entry, Digest)>,
}

impl Decider {
    pub(super) fn new(clock: Clock) -> Self {
        let (working, seen, brought) = (State::default(), Seen::default(), HashMap::new());
        Self { clock, working, seen, writing: Batch::default(), next: Batch::default(), brought }
    }

    /// The last entry that was decided.
    pub(super) fn head(&self) -> Head {
        Head { seq: self.working.seq(), digest: self.working.digest() }
    }

    /// The time, which never goes back.
    pub(super) fn now(&self) -> u64 {
        (self.clock)().max(self.working.at())
    }

    /// Takes in a line that somebody else has written.
    pub(super) fn take_in(&mut self, line: &str) -> Result<(Entry, Digest), Broken> {
        let (entry, digest) = parse(self.working.seq() + 1, line)?;
        self.working.apply(&entry, digest)?;
        self.seen.push(Fingerprint::of(&entry));
        Ok((entry, digest))
    }

    /// Moves what is decided to what is being written, and says its lines.
    pub(super) fn begin_writing(&mut self) -> Vec<u8> {
        let room = self.next.of_this_size();
        self.writing = std::mem::replace(&mut self.next, room);
        std::mem::take(&mut self.writing.page)
    }

    /// Goes back to what is durable.
    pub(super) fn go_back_to(&mut self, durable: State) {
        self.working = durable;
        self.seen.forget_after(self.working.seq());
    }

    /// Gives back the requests that are not durable, in order, to be decided again.
    pub(super) fn undecide(&mut self) -> impl Iterator<Item = Job> + use<> {
        let (writing, next) = (std::mem::take(&mut self.writing), std::mem::take(&mut self.next));
        writing.requests.into_iter().chain(next.requests).map(|(job, _)| job)
    }

    /// Remembers an entry for the request that needs it.
    pub(super) fn bring(&mut self, seq: u64, line: &str) -> Result<(), Broken> {
        self.brought.insert(seq, parse(seq, line)?);
        Ok(())
    }

    /// Decides a request into the next batch.
    ///
    /// # Errors
    /// [`Undecided`]; nothing was changed when only an entry is needed.
    pub(super) fn decide(&mut self, job: Job) -> Result<(), (Job, Undecided)> {
        let outcome = match &job {
            Job::Decide(asked, _) | Job::Do(asked, _) => self.outcome(asked),
            Job::Refresh(_) | Job::Lines(..) | Job::Close => Ok(Outcome::Already),
        };
        match outcome {
            Ok(outcome) => {
                self.brought.clear();
                self.next.requests.push((job, outcome));
                Ok(())
            }
            Err(undecided) => Err((job, undecided)),
        }
    }

    /// What becomes of a request: what became of it before, or what is decided now.
    fn outcome(&mut self, asked: &Asked) -> Result<Outcome, Undecided> {
        // One time for all of it: what is open when it is decided is open when it is written.
        let at = self.now();
        // Also where the answer is known already: it is for whoever holds a token.
        if let Err(mistake) = self.working.recognize(&asked.by, at) {
            return Ok(mistake.into());
        }
        let mut fingerprint = None;
        if let Some(priced) = asked.command.priced() {
            let request = (&priced.dataset, &asked.by.name, &priced.id);
            let known = fingerprint.insert(Fingerprint::new(Kind::Request, request));
            if let Some((entry, digest)) = self.find_by(known, Kind::Request, request)? {
                return self.repeated(asked, priced, entry, *digest);
            }
        }
        if let Some((dataset, id, partly)) = asked.command.reservation()
            && let Some(outcome) = self.ended(asked, (dataset, id, partly), at)?
        {
            return Ok(outcome);
        }
        let events = match self.working.decide(asked, at) {
            Ok(events) => events,
            Err(mistake) => return Ok(mistake.into()),
        };
        let mut last = Outcome::Already;
        for event in events {
            last = Outcome::New(self.write(event, at, fingerprint)?);
        }
        Ok(last)
    }

    /// Appends an event to the next batch; `fingerprint` is that of the request that it decides, if it does.
    pub(super) fn write(&mut self, event: Event, at: u64, fingerprint: Option<Fingerprint>) -> Result<usize, Broken> {
        let entry = Entry { seq: self.working.seq() + 1, at, prev: self.working.digest(), event };
        let batch = &mut self.next;
        if !batch.page.is_empty() {
            batch.page.push(b'\n');
        }
        let digest = entry.write(&mut batch.page);
        self.working.apply(&entry, digest)?;
        // Asserted before it is written: what everything rests on.
        if !self.working.is_within_budget(&entry.event) {
            let what = "would pass a budget; this is a fault of paygo, and nothing was written";
            return Err(Broken { seq: entry.seq, what: what.to_owned() });
        }
        // Forgotten again if it does not become durable.
        let known = fingerprint.filter(|_| entry.event.decision().is_some());
        self.seen.push(known.or_else(|| Fingerprint::of(&entry)));
        batch.entries.push((entry, digest));
        Ok(batch.entries.len() - 1)
    }

    /// An entry that is not in the log yet, or was brought.
    fn entry(&self, seq: u64) -> Result<&(Entry, Digest), Undecided> {
        let ahead = self.next.entry(seq).or_else(|| self.writing.entry(seq));
        ahead.or_else(|| self.brought.get(&seq)).ok_or(Undecided::Needs(seq))
    }

    /// The entry that answers a request, if there is one.
    fn find(&self, kind: Kind, request: (&Name, &Name, &RequestId)) -> Result<Option<&(Entry, Digest)>, Undecided> {
        self.find_by(&Fingerprint::new(kind, request), kind, request)
    }

    fn find_by(
        &self,
        fingerprint: &Fingerprint,
        kind: Kind,
        request: (&Name, &Name, &RequestId),
    ) -> Result<Option<&(Entry, Digest)>, Undecided> {
        for seq in self.seen.find(fingerprint) {
            let found = self.entry(seq)?;
            if answers(&found.0, kind) == Some(request) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// A request whose id was seen before: the first answer, if it is the same request.
    fn repeated(&self, asked: &Asked, priced: &Priced, entry: &Entry, digest: Digest) -> Result<Outcome, Undecided> {
        let Some((decided, expires)) = entry.event.decision() else {
            return Ok(Mistake::IdUsed(priced.id.clone()).into());
        };
        let price = self.price(decided)?;
        let same = price.mechanism == priced.quote.mechanism
            && expires.is_some() == matches!(asked.command, Command::Reserve(..))
            && self.same_blocks(decided, priced);
        if !same {
            return Ok(Mistake::IdUsed(priced.id.clone()).into());
        }
        // What its holder has given back is no admission any more.
        let end = self.find(Kind::End, (&priced.dataset, &asked.by.name, &priced.id))?;
        if end.is_some_and(|(end, _)| matches!(end.event, Event::Cancelled { .. })) {
            return Ok(Mistake::ReservationClosed { id: priced.id.clone(), how: CANCELLED }.into());
        }
        Ok(Outcome::Known(Box::new((entry.clone(), digest, Some(price.lanes.clone())))))
    }

    /// Whether a request touches what one touched that was decided before. `"all"` are all that there are now: blocks that came since
    /// were not charged.
    fn same_blocks(&self, decided: &Decided, priced: &Priced) -> bool {
        let dataset = self.working.dataset(&decided.dataset);
        dataset.is_some_and(|dataset| {
            dataset.blocks(priced.blocks.as_ref()).is_ok_and(|touched| touched == decided.blocks)
        })
    }

    /// What a decided request costs: remembered, or as the log says.
    fn price(&self, decided: &Decided) -> Result<Arc<Price>, Undecided> {
        if let Some(price) = self.working.price(decided.price) {
            return Ok(Arc::clone(price));
        }
        let price = self.working.read_price(&self.entry(decided.price)?.0.event);
        price.map(Arc::new).ok_or_else(|| {
            Broken { seq: decided.price, what: "does not say what a request costs, as another entry says".to_owned() }
                .into()
        })
    }

    /// How a reservation ended, if it did; `None` when it is open or was never there.
    fn ended(
        &self,
        asked: &Asked,
        (dataset, id, partly): (&Name, &RequestId, bool),
        at: u64,
    ) -> Result<Option<Outcome>, Undecided> {
        let commits = matches!(asked.command, Command::Commit { .. });
        let closed = |how| Outcome::from(Mistake::ReservationClosed { id: id.clone(), how });
        let known = |(entry, digest): &(Entry, Digest)| Outcome::Known(Box::new((entry.clone(), *digest, None)));
        if let Some(end) = self.find(Kind::End, (dataset, &asked.by.name, id))? {
            let committed = matches!(end.0.event, Event::Committed { .. });
            return Ok(Some(match (committed, commits && !partly) {
                (true, true) => known(end),
                (false, false) if !commits => known(end),
                (true, false) => closed(COMMITTED),
                (false, _) => closed(CANCELLED),
            }));
        }
        let open = self.working.dataset(dataset).is_some_and(|known| known.holds(&asked.by.name, id, at));
        if open {
            return Ok(None);
        }
        // Admitted, neither open nor ended: it expired, and stays charged, which is what a commit asks for.
        let found = self.find(Kind::Request, (dataset, &asked.by.name, id))?;
        Ok(found.and_then(|found| {
            let decision = found.0.event.decision();
            decision.filter(|(decided, expires)| decided.refused.is_none() && expires.is_some())?;
            Some(if commits { known(found) } else { closed(EXPIRED) })
        }))
    }
}

/// Which request an entry answers, as one of a kind.
fn answers(entry: &Entry, kind: Kind) -> Option<(&Name, &Name, &RequestId)> {
    match kind {
        Kind::Request => entry.event.decision().map(|(decided, _)| (&decided.dataset, &decided.by, &decided.id)),
        Kind::End => entry.event.end(),
    }
}
