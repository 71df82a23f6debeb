//! What a request becomes: the events that would be written, or a mistake.

use super::allowance::ceiling;
use super::{Dataset, EXPIRED, Mistake, Price, State};
use crate::entry::{AccountName, DatasetCreated, Decided, Digest, Event, Refused, Role};
use crate::names::{Name, Note, RequestId};
use crate::words::{BlockWord, Blocks, NewAllowance, NewDataset};
use paygo_accounting::charge::Charge;
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{AnyRule, Budget, Reason, Rule};
use paygo_accounting::mechanism::Mechanism as Checked;
use paygo_accounting::params::{Delta, Neighbors as Relation, OutOfDomain};
use paygo_accounting::stored::StoredRule;
use paygo_accounting::wire::{Mechanism, Number};
use std::sync::Arc;

/// Blocks that one request, and one dataset, may have.
const MAX_BLOCKS: usize = 10_000;
/// Open reservations of one dataset.
const MAX_RESERVATIONS: usize = 10_000;
/// How deep a mechanism may be nested.
const MAX_LEVELS: usize = 16;
/// Datasets, tokens and members.
const MAX_THINGS: usize = 10_000;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requester {
    /// Their name: ids are theirs, and so are reservations and allowances.
    pub name: Name,
    /// Whether they may ask for explicit Rényi curves.
    pub explicit_curves: bool,
    /// The token they asked with, which must still be one when it is decided; `None` for whoever has the store itself.
    pub token: Option<Digest>,
}

impl Requester {
    /// Somebody who has the store itself.
    #[must_use]
    pub const fn new(name: Name) -> Self {
        Self { name, explicit_curves: false, token: None }
    }
}

/// Who asks for what.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Who.
    pub by: Requester,
    /// What.
    pub command: Command,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub enum Command {
    /// A new dataset.
    CreateDataset(Box<NewDataset>),
    /// More blocks.
    AddBlocks {
        /// Where.
        dataset: Name,
        /// Their names.
        blocks: Vec<Name>,
    },
    /// No more.
    CloseDataset {
        /// Which.
        dataset: Name,
    },
    /// A ceiling.
    SetAllowance {
        /// Where.
        dataset: Name,
        /// What.
        allowance: Box<NewAllowance>,
    },
    /// A token, of which only the hash is told.
    GrantToken {
        /// Whoever shall ask with it.
        holder: Name,
        /// SHA-256 of it.
        hash: Digest,
        /// What it allows.
        role: Role,
        /// Where.
        datasets: Option<Vec<Name>>,
        /// Whether it may ask for explicit curves.
        explicit_curves: bool,
        /// Until when.
        expires: Option<u64>,
    },
    /// A token less.
    RevokeToken {
        /// Which.
        hash: Digest,
    },
    /// Charged at once.
    Spend(Priced),
    /// Held for some milliseconds.
    Reserve(Priced, u64),
    /// How much was used.
    Commit {
        /// Where.
        dataset: Name,
        /// Which.
        id: RequestId,
        /// How many, so far.
        used: Option<u64>,
    },
    /// The rest is free again, on the word of whoever asks that nothing of it was drawn.
    Cancel {
        /// Where.
        dataset: Name,
        /// Which.
        id: RequestId,
        /// What was used of it, and what that costs.
        kept: Option<Arc<Quote>>,
    },
}

/// A mechanism, and what it costs in a dataset's currency.
#[derive(Debug)]
pub struct Quote {
    /// What.
    pub mechanism: Mechanism,
    /// The same, as it is written.
    pub written: String,
    /// How much of it.
    pub charge: Charge,
}

/// A request to spend, and what it costs.
#[derive(Clone, Debug)]
pub struct Priced {
    /// Where.
    pub dataset: Name,
    /// Whoever asks made it.
    pub id: RequestId,
    /// Which blocks.
    pub blocks: Option<Blocks>,
    /// What for.
    pub note: Option<Note>,
    /// What, and how much of it.
    pub quote: Arc<Quote>,
    /// How much one of what it repeats costs, where it repeats something.
    pub unit: Option<Arc<Quote>>,
}

/// What is needed to price a mechanism in a dataset; never changes.
#[derive(Clone, Debug)]
pub struct Pricing {
    rule: Arc<AnyRule>,
    neighbors: Relation,
}

impl Pricing {
    /// What a mechanism costs: slow, and independent of whatever was asked before.
    ///
    /// # Errors
    /// [`Mistake`] when it is not a mechanism, or has no price here.
    pub fn price(&self, mechanism: &Mechanism) -> Result<Charge, Mistake> {
        at_most("levels of a mechanism", depth(mechanism), MAX_LEVELS)?;
        let cost = Cost::of(&Checked::try_from(mechanism)?, self.neighbors)?;
        Ok(self.rule.currency().price(&cost, self.neighbors)?)
    }
}

/// What a request repeats, as it is written, and how often: the outermost `repeat`, or the whole, once.
pub(crate) fn unit(mechanism: &Mechanism) -> Result<(&Mechanism, u64), Mistake> {
    if let Mechanism::Repeat { count, of } = mechanism {
        return Ok((of, count.count("count")?.get()));
    }
    Ok((mechanism, 1))
}

/// How deep a mechanism is nested. A line of the log must be readable by whoever reads JSON.
fn depth(mechanism: &Mechanism) -> usize {
    1 + mechanism.parts().iter().map(depth).max().unwrap_or(0)
}

impl Command {
    /// The request to spend or to reserve that it is.
    pub(crate) const fn priced(&self) -> Option<&Priced> {
        match self {
            Self::Spend(priced) | Self::Reserve(priced, _) => Some(priced),
            Self::CreateDataset(_)
            | Self::AddBlocks { .. }
            | Self::CloseDataset { .. }
            | Self::SetAllowance { .. }
            | Self::GrantToken { .. }
            | Self::RevokeToken { .. }
            | Self::Commit { .. }
            | Self::Cancel { .. } => None,
        }
    }

    /// The reservation that it is about, and whether it says how far one is with it.
    pub(crate) const fn reservation(&self) -> Option<(&Name, &RequestId, bool)> {
        match self {
            Self::Commit { dataset, id, used } => Some((dataset, id, used.is_some())),
            Self::Cancel { dataset, id, .. } => Some((dataset, id, false)),
            Self::CreateDataset(_)
            | Self::AddBlocks { .. }
            | Self::CloseDataset { .. }
            | Self::SetAllowance { .. }
            | Self::GrantToken { .. }
            | Self::RevokeToken { .. }
            | Self::Spend(_)
            | Self::Reserve(..) => None,
        }
    }
}

impl Dataset {
    /// What is needed to price a mechanism here.
    #[must_use]
    pub fn pricing(&self) -> Pricing {
        Pricing { rule: Arc::clone(self.rule()), neighbors: self.neighbors().into() }
    }

    /// Why a request to spend, or to hold, would be refused now, and how many of what it repeats would fit; `None` when it would be admitted.
    #[must_use]
    pub fn refusal(
        &self,
        quote: &Quote,
        one: &Charge,
        blocks: Option<&[Name]>,
        by: &Name,
        holds: bool,
    ) -> Option<Refused> {
        let Quote { mechanism, charge, .. } = quote;
        let objects = |(name, account): (AccountName, &super::Account)| {
            let filter = account.filter();
            Some((name, if holds { filter.objects_to_holding(charge) } else { filter.objects_to(charge) }?))
        };
        let (account, reason) = self.touched(blocks, by).find_map(objects)?;
        // Of several of the same, fewer than all.
        let most = unit(mechanism).map_or(0, |(_, count)| count - 1);
        let largest_count = if reason == Reason::OtherCurrency { 0 } else { self.room(one, most, blocks, by) };
        Some(Refused { account, reason: reason.explanation().to_owned(), largest_count })
    }

    /// How many of a charge would be admitted now, up to `most`.
    #[must_use]
    pub fn room(&self, one: &Charge, most: u64, blocks: Option<&[Name]>, by: &Name) -> u64 {
        if most == 0 {
            return 0;
        }
        // Each account is asked only for what those before it had room for.
        self.touched(blocks, by).fold(most, |most, (_, account)| account.filter().room_for(one, most))
    }

    /// How many of these would be admitted now, one after another, each so often. Every account sees them in the same order, so that the one with
    /// the least room says where they end.
    pub(crate) fn room_in_turn(&self, quotes: &[(Arc<Quote>, u64)], blocks: Option<&[Name]>, by: &Name) -> u64 {
        let room = |(_, account): (AccountName, &super::Account)| {
            account.filter().room_in_turn(quotes.iter().map(|(quote, count)| (&quote.charge, *count)))
        };
        self.touched(blocks, by).map(room).min().unwrap_or(0)
    }

    /// What was used of a reservation, as far as was said: so many of what it repeats; `None` where nothing was.
    #[must_use]
    pub fn used(&self, by: &Name, id: &RequestId) -> Option<Mechanism> {
        let held = self.reservations.get(&(by.clone(), id.clone())).filter(|held| held.used > 0)?;
        let count = Number::Integer(i64::try_from(held.used).unwrap_or(i64::MAX));
        let of = unit(&held.mechanism).map_or(&held.mechanism, |(of, _)| of);
        Some(Mechanism::Repeat { count, of: Box::new(of.clone()) })
    }

    /// The blocks that a request touches, each once.
    ///
    /// # Errors
    /// [`Mistake`] when it names what there is not, or nothing.
    pub fn blocks(&self, asked: Option<&Blocks>) -> Result<Option<Vec<Name>>, Mistake> {
        let mut blocks: Vec<Name> = match (asked, self.has_blocks()) {
            (None, false) => return Ok(None),
            (Some(_), false) => return Err(Mistake::NoBlocks(self.name().clone())),
            (None, true) => return Err(Mistake::BlocksNeeded(self.name().clone())),
            (Some(Blocks::Word(BlockWord::All)), true) => self.block_names().cloned().collect(),
            (Some(Blocks::These(blocks)), true) => blocks.clone(),
        };
        blocks.sort();
        blocks.dedup();
        at_most("blocks in one request", blocks.len(), MAX_BLOCKS)?;
        if blocks.is_empty() {
            return Err(Mistake::EmptyBlocks);
        }
        let known = |block: &Name| self.accounts.contains_key(&AccountName::Block(block.clone()));
        match blocks.iter().find(|block| !known(block)) {
            Some(block) => Err(Mistake::UnknownBlock { dataset: self.name().clone(), block: block.clone() }),
            None => Ok(Some(blocks)),
        }
    }

    fn block_names(&self) -> impl Iterator<Item = &Name> {
        self.accounts.keys().filter_map(|name| match name {
            AccountName::Block(name) => Some(name),
            AccountName::Dataset | AccountName::Allowance(_) => None,
        })
    }
}

impl State {
    /// What a request becomes. Nothing is changed; none of the events is true before it was applied. An empty list: what is
    /// asked for is so already.
    ///
    /// # Errors
    /// [`Mistake`] when it is not a request.
    pub fn decide(&self, asked: &Asked, at: u64) -> Result<Vec<Event>, Mistake> {
        let by = asked.by.name.clone();
        match &asked.command {
            Command::CreateDataset(new) => self.create(new, by),
            Command::AddBlocks { dataset, blocks } => self.add_blocks(dataset, by, blocks.clone()),
            Command::CloseDataset { dataset } => {
                let closed = self.find(dataset)?.is_closed();
                Ok(if closed { Vec::new() } else { vec![Event::DatasetClosed { dataset: dataset.clone(), by }] })
            }
            Command::SetAllowance { dataset, allowance } => self.set_allowance(dataset, by, allowance),
            Command::GrantToken { holder, hash, role, datasets, explicit_curves, expires } => {
                at_most("tokens", self.tokens.len() + 1, MAX_THINGS)?;
                if let Some(unknown) = datasets.iter().flatten().find(|name| self.dataset(name).is_none()) {
                    return Err(Mistake::UnknownDataset(unknown.clone()));
                }
                let (holder, datasets) = (holder.clone(), datasets.clone());
                let (hash, role, explicit_curves, expires) = (*hash, *role, *explicit_curves, *expires);
                Ok(vec![Event::TokenGranted { holder, by, hash, role, datasets, explicit_curves, expires }])
            }
            Command::RevokeToken { hash } => {
                self.tokens.get(hash).ok_or(Mistake::UnknownToken)?;
                Ok(vec![Event::TokenRevoked { hash: *hash, by }])
            }
            Command::Spend(priced) => {
                let (mut events, decided) = self.request(asked, priced, false)?;
                events.push(Event::Spent(decided));
                Ok(events)
            }
            Command::Reserve(priced, milliseconds) => self.reserve(asked, priced, *milliseconds, at),
            Command::Commit { dataset, id, used } => self.commit(dataset, by, id, *used, at),
            Command::Cancel { dataset, id, kept } => self.cancel(dataset, by, id, kept.as_deref(), at),
        }
    }

    /// Whether whoever asks still may: a token may have been revoked since it was looked at.
    ///
    /// # Errors
    /// [`Mistake::TokenGone`].
    pub fn recognize(&self, by: &Requester, at: u64) -> Result<(), Mistake> {
        let gone = by.token.is_some_and(|hash| self.token(&hash, at).is_none());
        if gone { Err(Mistake::TokenGone) } else { Ok(()) }
    }

    fn find(&self, name: &Name) -> Result<&Dataset, Mistake> {
        self.dataset(name).ok_or_else(|| Mistake::UnknownDataset(name.clone()))
    }

    fn open(&self, name: &Name) -> Result<&Dataset, Mistake> {
        let dataset = self.find(name)?;
        if dataset.is_closed() { Err(Mistake::Closed(name.clone())) } else { Ok(dataset) }
    }

    fn create(&self, new: &NewDataset, by: Name) -> Result<Vec<Event>, Mistake> {
        for release in new.filter.plan.iter().flat_map(|plan| &plan.releases) {
            at_most("levels of a mechanism", depth(&release.mechanism), MAX_LEVELS)?;
        }
        let rule = new.filter.rule()?;
        let reading_delta = reading_delta(new, &rule)?;
        at_most("datasets", self.datasets.len() + 1, MAX_THINGS)?;
        at_most("blocks", new.blocks.as_ref().map_or(0, Vec::len), MAX_BLOCKS)?;
        if new.privacy_unit.trim().is_empty() || new.privacy_unit.len() > 64 {
            return Err(OutOfDomain::new(
                "privacy_unit",
                format!("{:?}", new.privacy_unit),
                "a word such as \"record\"",
            )
            .into());
        }
        if let Some(known) = self.dataset(&new.name) {
            let there = |block: &Name| known.accounts.contains_key(&AccountName::Block(block.clone()));
            let same = known.neighbors() == new.neighbors
                && known.privacy_unit() == new.privacy_unit
                && **known.rule() == rule
                && known.has_blocks() == new.blocks.is_some()
                && new.blocks.iter().flatten().all(there)
                && known.reading_delta() == reading_delta;
            return if same { Ok(Vec::new()) } else { Err(Mistake::DatasetExists(new.name.clone())) };
        }
        Ok(vec![Event::DatasetCreated(Box::new(DatasetCreated {
            dataset: new.name.clone(),
            by,
            neighbors: new.neighbors,
            privacy_unit: new.privacy_unit.clone(),
            filter: new.filter.clone(),
            rule: StoredRule::from(&rule),
            reading_delta,
            blocks: new.blocks.clone(),
        }))])
    }

    fn add_blocks(&self, dataset: &Name, by: Name, mut blocks: Vec<Name>) -> Result<Vec<Event>, Mistake> {
        let known = self.open(dataset)?;
        if !known.has_blocks() {
            return Err(Mistake::NoBlocks(dataset.clone()));
        }
        blocks.sort();
        blocks.dedup();
        blocks.retain(|block| !known.accounts.contains_key(&AccountName::Block(block.clone())));
        at_most("blocks", known.accounts.len() + blocks.len(), MAX_BLOCKS)?;
        if blocks.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![Event::BlocksAdded { dataset: dataset.clone(), by, blocks }])
    }

    fn set_allowance(&self, dataset: &Name, by: Name, allowance: &NewAllowance) -> Result<Vec<Event>, Mistake> {
        let known = self.open(dataset)?;
        at_most("members", allowance.members.len(), MAX_THINGS)?;
        at_most("allowances", known.allowances.len() + 1, MAX_THINGS)?;
        let rule = ceiling(known.rule(), known.words().delta(), allowance)?;
        if let Some(before) = known.allowances.get(&allowance.name).map(|known| known.account.filter().rule())
            && !rule.may_follow(before)
        {
            let epsilon = before.budget().map_or_else(String::new, |budget| budget.epsilon().to_string());
            return Err(Mistake::LowerCeiling { allowance: allowance.name.clone(), epsilon });
        }
        let rule = Box::new(StoredRule::from(&rule));
        let (members, allowance) = (allowance.members.clone(), allowance.name.clone());
        Ok(vec![Event::AllowanceSet { dataset: dataset.clone(), by, allowance, members, rule }])
    }

    fn reserve(&self, asked: &Asked, priced: &Priced, milliseconds: u64, at: u64) -> Result<Vec<Event>, Mistake> {
        let held = &self.open(&priced.dataset)?.reservations;
        if held.len() >= MAX_RESERVATIONS {
            let open = held.values().filter(|held| held.expires > at).count();
            at_most("open reservations", open + 1, MAX_RESERVATIONS)?;
        }
        let (mut events, decided) = self.request(asked, priced, true)?;
        events.push(Event::Reserved { decided, expires: at.saturating_add(milliseconds) });
        Ok(events)
    }

    fn commit(
        &self,
        dataset: &Name,
        by: Name,
        id: &RequestId,
        used: Option<u64>,
        at: u64,
    ) -> Result<Vec<Event>, Mistake> {
        let held = self.held(dataset, &by, id, at)?;
        let (_, most) = unit(&held.mechanism)?;
        if let Some(used) = used.filter(|used| !(held.used..=most).contains(used)) {
            return Err(Mistake::Used { given: used, least: held.used, most });
        }
        if used == Some(held.used) {
            return Ok(Vec::new());
        }
        Ok(vec![Event::Committed { dataset: dataset.clone(), by, id: id.clone(), used }])
    }

    fn cancel(
        &self,
        dataset: &Name,
        by: Name,
        id: &RequestId,
        kept: Option<&Quote>,
        at: u64,
    ) -> Result<Vec<Event>, Mistake> {
        self.held(dataset, &by, id, at)?;
        // What was used costs what it costs alone; the rest is what is freed.
        if self.find(dataset)?.used(&by, id).as_ref() != kept.map(|kept| &kept.mechanism) {
            return Err(Mistake::UsedMeanwhile(id.clone()));
        }
        let mut events = Vec::new();
        let kept = kept.map(|quote| self.price_entry(dataset, quote, &mut events));
        events.push(Event::Cancelled { dataset: dataset.clone(), by, id: id.clone(), kept });
        Ok(events)
    }

    /// The decision about a request, and before it what it costs if that is not written yet.
    fn request(&self, asked: &Asked, priced: &Priced, holds: bool) -> Result<(Vec<Event>, Decided), Mistake> {
        let dataset = self.open(&priced.dataset)?;
        if !asked.by.explicit_curves && has_explicit_curve(&priced.quote.mechanism) {
            return Err(Mistake::ExplicitCurve);
        }
        let blocks = dataset.blocks(priced.blocks.as_ref())?;
        let mut events = Vec::new();
        let price = self.price_entry(&priced.dataset, &priced.quote, &mut events);
        let one = &priced.unit.as_ref().unwrap_or(&priced.quote).charge;
        let refused = dataset.refusal(&priced.quote, one, blocks.as_deref(), &asked.by.name, holds).map(Box::new);
        let (dataset, by, id) = (priced.dataset.clone(), asked.by.name.clone(), priced.id.clone());
        Ok((events, Decided { dataset, by, id, price, blocks, note: priced.note.clone(), refused }))
    }

    /// The entry that says what a mechanism costs: one that is written, or the next.
    fn price_entry(&self, dataset: &Name, quote: &Quote, events: &mut Vec<Event>) -> u64 {
        let Quote { mechanism, written, charge } = quote;
        let is_same = |entry: &u64| self.price(*entry).is_some_and(|price: &Arc<Price>| price.lanes == *charge.lanes());
        self.prices.latest(dataset, written).filter(is_same).unwrap_or_else(|| {
            events.push(Event::Priced {
                dataset: dataset.clone(),
                mechanism: mechanism.clone(),
                amounts: charge.lanes().amounts().iter().map(|&amount| amount.into()).collect(),
                repeats: charge.lanes().repeats().to_vec(),
                slack: charge.lanes().slack().into(),
            });
            self.seq() + 1
        })
    }

    /// A reservation that is open at a time.
    fn held(&self, dataset: &Name, by: &Name, id: &RequestId, at: u64) -> Result<&super::Reservation, Mistake> {
        let known = self.find(dataset)?;
        let held = known.reservations.get(&(by.clone(), id.clone()));
        let held = held.ok_or_else(|| Mistake::UnknownReservation(id.clone()))?;
        if held.expires <= at {
            return Err(Mistake::ReservationClosed { id: id.clone(), how: EXPIRED });
        }
        Ok(held)
    }
}

/// The δ at which a dataset's odometer is read: as asked for, the budget's, or 10⁻⁶.
fn reading_delta(new: &NewDataset, rule: &AnyRule) -> Result<f64, Mistake> {
    let budget = rule.budget().map(Budget::loss_delta);
    let words = new.filter.delta().map(Number::Decimal);
    let delta = match (&new.reading_delta, budget, words) {
        (Some(delta), _, _) => delta.down("reading_delta")?,
        (None, Some(delta), _) if delta > Delta::ZERO => delta.get(),
        (None, None, Some(delta)) => delta.down("delta")?,
        (None, Some(_), _) | (None, None, None) => 1e-6,
    };
    if 0.0 < delta && delta < 1.0 {
        return Ok(delta);
    }
    Err(OutOfDomain::new("reading_delta", delta, "0 < reading_delta < 1").into())
}

fn has_explicit_curve(mechanism: &Mechanism) -> bool {
    matches!(mechanism, Mechanism::Renyi(_)) || mechanism.parts().iter().any(has_explicit_curve)
}

const fn at_most(what: &'static str, given: usize, most: usize) -> Result<(), Mistake> {
    if given <= most { Ok(()) } else { Err(Mistake::TooMany { what, given, most }) }
}
