//! A dataset: its accounts, reservations, and who spent what.

use super::{Price, written};
use crate::entry::{AccountName, Decided, Entry};
use crate::names::{Name, RequestId};
use paygo_accounting::charge::{Held, Lanes};
use paygo_accounting::filter::{AnyRule, Filter, Meter, Rule};
use paygo_accounting::params::Neighbors as Relation;
use paygo_accounting::wire::{FilterWords, Mechanism, Neighbors};
use paygo_numeric::Amount;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Points of the history that are kept: when there are more, every second is dropped.
const MAX_POINTS: usize = 512;
/// Decisions that are remembered as recent.
const MAX_RECENT: usize = 100;
/// Whose spending is told apart; that of all others is told together.
const MAX_TOTALS: usize = 1000;

/// What is fixed when a dataset is made.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) name: Name,
    pub(super) by: Name,
    pub(super) at: u64,
    pub(super) neighbors: Neighbors,
    pub(super) privacy_unit: String,
    pub(super) filter: FilterWords,
    pub(super) rule: Arc<AnyRule>,
    pub(super) reading_delta: f64,
    pub(super) has_blocks: bool,
}

/// A dataset and what was spent of its budget.
#[derive(Clone, Debug)]
pub struct Dataset {
    pub(super) settings: Settings,
    pub(super) closed: bool,
    /// The whole, or each block.
    pub(super) accounts: BTreeMap<AccountName, Account>,
    pub(super) allowances: BTreeMap<Name, Allowance>,
    pub(super) reservations: BTreeMap<(Name, RequestId), Reservation>,
    /// The same by when they expire.
    pub(super) expiries: BTreeSet<(u64, (Name, RequestId))>,
    pub(super) by_requester: BTreeMap<String, Totals>,
    pub(super) by_mechanism: BTreeMap<String, Totals>,
    pub(super) totals: Totals,
    pub(super) recent: VecDeque<u64>,
    pub(super) history: History,
}

/// Sums against a budget: what is charged for good, and what is held for reservations.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    pub(super) filter: Filter<Arc<AnyRule>>,
}

/// A ceiling for some of those who ask.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Allowance {
    pub(super) members: Vec<Name>,
    pub(super) account: Account,
}

/// A charge that may still be given back.
#[derive(Clone, Debug, PartialEq)]
pub struct Reservation {
    /// What is held.
    pub mechanism: Mechanism,
    /// How much it costs.
    pub(super) lanes: Lanes,
    /// Where, and what is held there.
    pub(super) held: Vec<(AccountName, Held)>,
    /// How many of a repeated mechanism were used, as far as was said.
    pub used: u64,
    /// When it can no longer be cancelled.
    pub expires: u64,
}

/// How much was asked for, and how much of it admitted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// How many requests were admitted.
    pub admitted: u64,
    /// How many were refused.
    pub refused: u64,
    /// What was admitted, in each lane; empty before the first.
    pub(super) amounts: Vec<Amount>,
}

impl Totals {
    fn count(&mut self, lanes: Option<&Lanes>) {
        let Some(lanes) = lanes else {
            self.refused += 1;
            return;
        };
        self.admitted += 1;
        let more = lanes.totals();
        self.amounts.resize(more.len(), Amount::ZERO);
        for (total, amount) in self.amounts.iter_mut().zip(more) {
            *total = total.plus(amount);
        }
    }
}

/// What had been spent of the fullest account at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// How much of the first meter, rounded up.
    pub spent: Amount,
    /// The ε that its odometer read, rounded up.
    pub lost: Amount,
}

/// What was spent over time: every `stride`-th admission.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct History {
    pub(super) points: Vec<Point>,
    pub(super) stride: u64,
    pub(super) since: u64,
}

impl History {
    /// Whether the next admission is a point.
    fn is_due(&mut self) -> bool {
        self.since += 1;
        self.since >= self.stride.max(1)
    }

    fn push(&mut self, point: Point) {
        self.since = 0;
        if self.points.len() >= MAX_POINTS {
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride = self.stride.max(1) * 2;
        }
        self.points.push(point);
    }
}

impl Account {
    pub(super) fn new(rule: &Arc<AnyRule>, neighbors: Relation) -> Self {
        Self { filter: Filter::new(Arc::clone(rule), neighbors) }
    }

    /// The filter that decides: everything charged so far, and what is held.
    #[must_use]
    pub const fn filter(&self) -> &Filter<Arc<AnyRule>> {
        &self.filter
    }

    /// What has been spent of what, reservations included.
    #[must_use]
    pub fn meters(&self) -> Vec<Meter> {
        self.filter.meters()
    }

    /// What is spent for good and what is held, under another rule of the same currency.
    fn under(&self, rule: &Arc<AnyRule>) -> Option<Self> {
        Some(Self { filter: self.filter.under(Arc::clone(rule))? })
    }
}

impl Dataset {
    pub(super) fn new(settings: Settings) -> Self {
        let accounts = if settings.has_blocks {
            BTreeMap::new()
        } else {
            BTreeMap::from([(AccountName::Dataset, Account::new(&settings.rule, settings.neighbors.into()))])
        };
        Self {
            settings,
            closed: false,
            accounts,
            allowances: BTreeMap::new(),
            reservations: BTreeMap::new(),
            expiries: BTreeSet::new(),
            by_requester: BTreeMap::new(),
            by_mechanism: BTreeMap::new(),
            totals: Totals::default(),
            recent: VecDeque::new(),
            history: History::default(),
        }
    }

    /// The same at a time: reservations whose time is over are charged for good.
    #[must_use]
    pub fn at(mut self, at: u64) -> Self {
        self.expire(at);
        self
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &Name {
        &self.settings.name
    }

    /// Who made it, and when, in milliseconds since 1970.
    #[must_use]
    pub const fn made(&self) -> (&Name, u64) {
        (&self.settings.by, self.settings.at)
    }

    /// Which datasets are neighbors.
    #[must_use]
    pub const fn neighbors(&self) -> Neighbors {
        self.settings.neighbors
    }

    /// Who is protected.
    #[must_use]
    pub fn privacy_unit(&self) -> &str {
        &self.settings.privacy_unit
    }

    /// The filter as it was asked for.
    #[must_use]
    pub const fn words(&self) -> &FilterWords {
        &self.settings.filter
    }

    /// The rule that decides in each account.
    #[must_use]
    pub const fn rule(&self) -> &Arc<AnyRule> {
        &self.settings.rule
    }

    /// The δ at which an odometer is read.
    #[must_use]
    pub const fn reading_delta(&self) -> f64 {
        self.settings.reading_delta
    }

    /// Whether it is divided into blocks.
    #[must_use]
    pub const fn has_blocks(&self) -> bool {
        self.settings.has_blocks
    }

    /// Whether it admits nothing any more.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// The whole, or each block.
    pub fn accounts(&self) -> impl Iterator<Item = (&AccountName, &Account)> {
        self.accounts.iter()
    }

    /// Ceilings, with whose requests count.
    pub fn allowances(&self) -> impl Iterator<Item = (&Name, &[Name], &Account)> {
        self.allowances.iter().map(|(name, allowance)| (name, allowance.members.as_slice(), &allowance.account))
    }

    /// What is held, by holder and id.
    pub fn reservations(&self) -> impl Iterator<Item = (&(Name, RequestId), &Reservation)> {
        self.reservations.iter()
    }

    /// Whether somebody's reservation is open at a time.
    #[must_use]
    pub fn holds(&self, by: &Name, id: &RequestId, at: u64) -> bool {
        self.reservations.get(&(by.clone(), id.clone())).is_some_and(|held| held.expires > at)
    }

    /// Requests in all.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Requests by who asked; those past the first thousand under `…`.
    pub fn by_requester(&self) -> impl Iterator<Item = (&str, &Totals)> {
        self.by_requester.iter().map(|(name, totals)| (name.as_str(), totals))
    }

    /// Requests by mechanism.
    pub fn by_mechanism(&self) -> impl Iterator<Item = (&str, &Totals)> {
        self.by_mechanism.iter().map(|(word, totals)| (word.as_str(), totals))
    }

    /// The entries of the latest decisions, oldest first.
    pub fn recent(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.recent.iter().copied()
    }

    /// What was spent of the fullest account over time.
    #[must_use]
    pub fn history(&self) -> &[Point] {
        &self.history.points
    }

    /// Of everything admitted, the part that some of it is: at the order that binds the fullest account, for people.
    #[must_use]
    pub fn share(&self, part: &Totals) -> f64 {
        let lane = |totals: &Totals, i: usize| totals.amounts.get(i).map_or(0.0, |amount| amount.to_f64_up());
        let finite = (0..self.totals.amounts.len()).filter(|&i| !self.totals.amounts[i].is_infinite());
        // The middle order is the one that suits the budget; what is known at no order has no share.
        let lanes: Vec<usize> = finite.collect();
        lanes.get(lanes.len() / 2).map_or(0.0, |&i| lane(part, i) / lane(&self.totals, i).max(f64::MIN_POSITIVE))
    }

    /// The fullest account of some, for people. Of many blocks, whose sums are in one currency, the one with the largest sum in
    /// the middle: meters take a while.
    pub(super) fn fullest<'a>(
        touched: impl Iterator<Item = (AccountName, &'a Account)>,
    ) -> Option<(AccountName, Vec<Meter>)> {
        let (blocks, others): (Vec<_>, Vec<_>) = touched.partition(|(name, _)| matches!(name, AccountName::Block(_)));
        let middle = |account: &Account| {
            let lanes = account.filter.sums().lanes();
            lanes.get(lanes.len() / 2).copied()
        };
        let block = blocks.into_iter().max_by_key(|(_, account)| middle(account));
        let each = others.into_iter().chain(block).map(|(name, account)| (name, account.meters()));
        each.max_by(|(_, a), (_, b)| Self::part_spent(a).total_cmp(&Self::part_spent(b)))
    }

    /// The part of a budget that is spent, for people. Of several sums one within its budget is enough; the steps' own δ must be
    /// within its own as well.
    #[must_use]
    pub fn part_spent(meters: &[Meter]) -> f64 {
        let (delta, sums): (Vec<&Meter>, Vec<&Meter>) = meters.iter().partition(|meter| meter.name == "delta");
        let part = |meter: &Meter| meter.spent.to_f64_up() / meter.budget.to_f64_up().max(1e-18);
        let least = sums.into_iter().map(part).fold(f64::INFINITY, f64::min);
        delta.into_iter().map(part).fold(least, f64::max)
    }

    /// The fullest account of all, ceilings apart.
    #[must_use]
    pub fn fullest_account(&self) -> Option<AccountName> {
        let every = self.accounts.iter().map(|(name, account)| (name.clone(), account));
        Self::fullest(every).map(|(name, _)| name)
    }

    /// The account whose state tells a requester most: the one given, else the fullest of those that a request touches.
    #[must_use]
    pub fn fullest_of(
        &self,
        blocks: Option<&[Name]>,
        by: &Name,
        given: Option<&AccountName>,
    ) -> (AccountName, Vec<Meter>) {
        let known = given.and_then(|name| Some((name.clone(), self.find_account(name)?.meters())));
        let fullest = known.or_else(|| Self::fullest(self.touched(blocks, by)));
        fullest.unwrap_or((AccountName::Dataset, Vec::new()))
    }

    /// One account.
    #[must_use]
    pub fn find_account(&self, name: &AccountName) -> Option<&Account> {
        match name {
            AccountName::Dataset | AccountName::Block(_) => self.accounts.get(name),
            AccountName::Allowance(name) => self.allowances.get(name).map(|allowance| &allowance.account),
        }
    }

    /// The accounts that a request touches: those of its blocks, or the whole, and the ceilings of whoever asks.
    pub(super) fn touched<'a>(
        &'a self,
        blocks: Option<&'a [Name]>,
        by: &'a Name,
    ) -> impl Iterator<Item = (AccountName, &'a Account)> {
        let whole = if blocks.is_none() { self.accounts.get(&AccountName::Dataset) } else { None };
        let blocks = blocks.unwrap_or_default().iter().filter_map(|block| {
            let name = AccountName::Block(block.clone());
            self.accounts.get(&name).map(|account| (name, account))
        });
        let ceilings = self.allowances.iter().filter(move |(_, allowance)| allowance.members.contains(by));
        let ceilings = ceilings.map(|(name, allowance)| (AccountName::Allowance(name.clone()), &allowance.account));
        whole.map(|account| (AccountName::Dataset, account)).into_iter().chain(blocks).chain(ceilings)
    }

    /// Changes the accounts that a request touches, as [`Dataset::touched`] names them.
    fn touch(&mut self, blocks: Option<&[Name]>, by: &Name, mut change: impl FnMut(&mut Account)) {
        if blocks.is_none()
            && let Some(account) = self.accounts.get_mut(&AccountName::Dataset)
        {
            change(account);
        }
        for block in blocks.unwrap_or_default() {
            if let Some(account) = self.accounts.get_mut(&AccountName::Block(block.clone())) {
                change(account);
            }
        }
        for allowance in self.allowances.values_mut().filter(|allowance| allowance.members.contains(by)) {
            change(&mut allowance.account);
        }
    }

    fn account(&mut self, name: &AccountName) -> Option<&mut Account> {
        match name {
            AccountName::Dataset | AccountName::Block(_) => self.accounts.get_mut(name),
            AccountName::Allowance(name) => self.allowances.get_mut(name).map(|allowance| &mut allowance.account),
        }
    }

    pub(super) fn add_blocks(&mut self, blocks: &[Name]) {
        let (rule, neighbors) = (&self.settings.rule, self.settings.neighbors.into());
        for block in blocks {
            let name = AccountName::Block(block.clone());
            self.accounts.entry(name).or_insert_with(|| Account::new(rule, neighbors));
        }
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn set_allowance(&mut self, name: &Name, members: &[Name], rule: Arc<AnyRule>) -> Result<(), String> {
        if rule.currency() != self.settings.rule.currency() {
            return Err(format!("sets allowance {name} in another currency"));
        }
        let account = match self.allowances.get(name) {
            Some(known) => known.account.under(&rule).ok_or("keeps other sums, or is one that cannot follow")?,
            None => Account::new(&rule, self.settings.neighbors.into()),
        };
        self.allowances.insert(name.clone(), Allowance { members: members.to_vec(), account });
        Ok(())
    }

    /// Counts a decision; with `expires` it is a reservation.
    pub(super) fn decided(
        &mut self,
        decided: &Decided,
        price: &Price,
        expires: Option<u64>,
        entry: &Entry,
    ) -> Result<(), String> {
        self.expire(entry.at);
        let blocks = decided.blocks.as_deref();
        if blocks.is_some() != self.settings.has_blocks {
            return Err("names blocks where there are none, or none where there are".to_owned());
        }
        let known = |block: &Name| self.accounts.contains_key(&AccountName::Block(block.clone()));
        if blocks.is_some_and(|blocks| blocks.is_empty() || !blocks.iter().all(known)) {
            return Err("names a block that there is not".to_owned());
        }
        let admitted = decided.refused.is_none().then_some(&price.lanes);
        self.count(decided, &price.word, admitted, entry.seq);
        let Some(lanes) = admitted else { return Ok(()) };
        let mut held = Vec::new();
        self.touch(blocks, &decided.by, |account| match expires {
            None => account.filter.replay(lanes),
            Some(_) => held.push(account.filter.hold(lanes)),
        });
        if let Some(expires) = expires {
            let held = self.touched(blocks, &decided.by).map(|(name, _)| name).zip(held).collect();
            let (mechanism, lanes) = (price.mechanism.clone(), lanes.clone());
            let held = Reservation { mechanism, lanes, held, used: 0, expires };
            if self.hold((decided.by.clone(), decided.id.clone()), held).is_some() {
                return Err(format!("reserves {} again", decided.id));
            }
        }
        if self.history.is_due() {
            let every = self.accounts.iter().map(|(name, account)| (name.clone(), account));
            if let Some((name, meters)) = Self::fullest(every)
                && let Some(account) = self.find_account(&name)
            {
                let lost = Amount::from_f64_up(self.reading(account).epsilon.get());
                let spent = meters.first().map_or(Amount::ZERO, |meter| meter.spent);
                self.history.push(Point { at: entry.at, spent, lost });
            }
        }
        Ok(())
    }

    fn count(&mut self, decided: &Decided, word: &str, admitted: Option<&Lanes>, seq: u64) {
        self.totals.count(admitted);
        let full = self.by_requester.len() >= MAX_TOTALS && !self.by_requester.contains_key(decided.by.as_str());
        for (map, key) in
            [(&mut self.by_requester, if full { "…" } else { decided.by.as_str() }), (&mut self.by_mechanism, word)]
        {
            match map.get_mut(key) {
                Some(totals) => totals.count(admitted),
                None => map.entry(key.to_owned()).or_default().count(admitted),
            }
        }
        if self.recent.len() >= MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(seq);
    }

    pub(super) fn committed(&mut self, by: &Name, id: &RequestId, used: Option<u64>, at: u64) -> Result<(), String> {
        self.expire(at);
        let key = (by.clone(), id.clone());
        match (used, self.reservations.get_mut(&key)) {
            (_, None) => return Err(format!("commits reservation {id}, which there is not")),
            (Some(used), Some(held)) => held.used = used,
            (None, Some(_)) => {
                if let Some(held) = self.release(&key) {
                    self.end(&held, Some(&held.lanes));
                }
            }
        }
        Ok(())
    }

    pub(super) fn cancelled(&mut self, by: &Name, id: &RequestId, kept: Option<&Price>, at: u64) -> Result<(), String> {
        self.expire(at);
        let held = self.release(&(by.clone(), id.clone()));
        let held = held.ok_or_else(|| format!("cancels reservation {id}, which there is not"))?;
        self.end(&held, kept.map(|kept| &kept.lanes));
        Ok(())
    }

    /// Reservations whose time is over stay charged for good.
    fn expire(&mut self, at: u64) {
        while let Some((_, key)) = self.expiries.first().filter(|(expires, _)| *expires <= at).cloned() {
            if let Some(held) = self.release(&key) {
                self.end(&held, Some(&held.lanes));
            }
        }
    }

    fn hold(&mut self, key: (Name, RequestId), held: Reservation) -> Option<Reservation> {
        self.expiries.insert((held.expires, key.clone()));
        self.reservations.insert(key, held)
    }

    fn release(&mut self, key: &(Name, RequestId)) -> Option<Reservation> {
        let held = self.reservations.remove(key)?;
        self.expiries.remove(&(held.expires, key.clone()));
        Some(held)
    }

    /// What was held is held no more; so much of it is charged for good.
    fn end(&mut self, ended: &Reservation, spent: Option<&Lanes>) {
        for (name, held) in &ended.held {
            let open = std::mem::take(&mut self.reservations);
            let others = || {
                let all = open.values().flat_map(|open| &open.held);
                all.filter(|(other, _)| other == name).map(|(_, held)| held).collect()
            };
            if let Some(account) = self.account(name) {
                account.filter.release(held, spent, others);
            }
            self.reservations = open;
        }
    }
}

/// What a mechanism is called: its own word, or that of what it repeats.
pub(super) fn word(mechanism: &Mechanism) -> String {
    if let Mechanism::Repeat { of, .. } = mechanism {
        return word(of);
    }
    // Externally tagged: the one key of the object.
    let written = written(mechanism);
    written.trim_start_matches("{\"").split('"').next().unwrap_or("mechanism").to_owned()
}
