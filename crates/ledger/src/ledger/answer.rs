//! Answers: a decision as it is written in the log, and what is left by now.

use crate::entry::{AccountName, Decided, Digest, Entry};
use crate::names::Name;
use crate::state::{Dataset, Quote, State, unit};
use crate::views::meters;
use crate::words::{Answer, Meters, Verdict, WhatIf};
use paygo_accounting::charge::{Charge, Sums};
use paygo_accounting::filter::Meter;
use paygo_accounting::wire::Side;
use std::collections::HashMap;

/// How many are counted at most where the question is how many would fit.
const MOST: u64 = 1 << 40;

pub(super) fn what_if(dataset: &Dataset, quote: &Quote, one: &Charge, blocks: Option<&[Name]>, by: &Name) -> WhatIf {
    let refused = dataset.refusal(quote, one, blocks, by);
    let admitted = if refused.is_none() { unit(&quote.mechanism).map_or(0, |(_, count)| count) } else { 0 };
    let (account, spent) = dataset.fullest_of(blocks, by, refused.as_ref().map(|refused| &refused.account));
    let sums = quote.charge.to_sums();
    let (requested, after) = dataset.find_account(&account).map_or_else(Default::default, |account| {
        let mut with = account.filter().sums().clone();
        with.add_stored(&sums);
        (account.filter().meters_of(&sums), account.filter().meters_of(&with))
    });
    WhatIf {
        decision: if refused.is_some() { Verdict::Refuse } else { Verdict::Admit },
        account,
        remaining: meters(&spent, Meter::remaining, Side::Down),
        spent: meters(&spent, |meter| meter.spent, Side::Up),
        requested: meters(&requested, |meter| meter.spent, Side::Up),
        after: meters(&after, |meter| meter.spent, Side::Up),
        reason: refused.map(|refused| refused.reason),
        // One alone is rounded up, so that many of it may seem to cost more than they do together.
        largest_count: dataset.room(one, MOST, blocks, by).max(admitted),
    }
}

/// Answers to the requests of one batch: what is left is computed once for each account.
pub(super) struct Answers<'a> {
    state: &'a State,
    /// By dataset and account: spent and left.
    meters: HashMap<(&'a Name, AccountName), (Meters, Meters)>,
    /// By dataset, blocks and requester: the fullest account.
    fullest: HashMap<(&'a Name, Option<&'a [Name]>, &'a Name), AccountName>,
}

impl<'a> Answers<'a> {
    pub(super) fn new(state: &'a State) -> Self {
        Self { state, meters: HashMap::new(), fullest: HashMap::new() }
    }

    /// The answer that an entry holds; `price` is what its request costs.
    pub(super) fn answer(
        &mut self,
        entry: &'a Entry,
        digest: Digest,
        repeated: bool,
        price: impl FnOnce() -> Option<Sums>,
    ) -> Option<Answer> {
        let (decided, expires) = entry.event.decision()?;
        let dataset = self.state.dataset(&decided.dataset)?;
        let account = match &decided.refused {
            Some(refused) => refused.account.clone(),
            None => self.fullest(dataset, decided),
        };
        let key = (&decided.dataset, account.clone());
        let known = dataset.find_account(&account)?;
        let (spent, remaining) = self.meters.entry(key).or_insert_with(|| {
            let each = known.meters();
            (meters(&each, |meter| meter.spent, Side::Up), meters(&each, Meter::remaining, Side::Down))
        });
        let alone = |price| meters(&known.filter().meters_of(&price), |meter| meter.spent, Side::Up);
        let requested = if decided.refused.is_some() { price().map(alone) } else { None };
        Some(Answer {
            id: decided.id.clone(),
            decision: if decided.refused.is_some() { Verdict::Refuse } else { Verdict::Admit },
            repeated,
            entry: entry.seq,
            receipt: digest,
            at: entry.at,
            account,
            spent: spent.clone(),
            remaining: remaining.clone(),
            reason: decided.refused.as_ref().map(|refused| refused.reason.clone()),
            requested,
            largest_count: decided.refused.as_ref().map(|refused| refused.largest_count),
            expires: expires.filter(|_| decided.refused.is_none()),
        })
    }

    fn fullest(&mut self, dataset: &Dataset, decided: &'a Decided) -> AccountName {
        let (blocks, by) = (decided.blocks.as_deref(), &decided.by);
        let fullest = self.fullest.entry((&decided.dataset, blocks, by));
        fullest.or_insert_with(|| dataset.fullest_of(blocks, by, None).0).clone()
    }
}
