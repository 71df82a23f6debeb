//! Answers: a decision as it is written in the log, and what is left by now.

use crate::entry::{AccountName, Digest, Entry};
use crate::names::Name;
use crate::state::{Dataset, Quote, State, unit};
use crate::views::meters;
use crate::words::{Answer, Decision, Meters, WhatIf};
use paygo_accounting::charge::{Charge, Lanes};
use paygo_accounting::filter::Meter;
use paygo_accounting::wire::Side;
use std::collections::HashMap;
use std::sync::Arc;

/// How many are counted at most where the question is how many would fit.
const MAX_COUNT: u64 = 1 << 40;

pub(super) fn what_if(dataset: &Dataset, quote: &Quote, one: &Charge, blocks: Option<&[Name]>, by: &Name) -> WhatIf {
    let refused = dataset.refusal(quote, one, blocks, by, false);
    let admitted = if refused.is_none() { unit(&quote.mechanism).map_or(0, |(_, count)| count) } else { 0 };
    let (account, spent) = dataset.fullest_of(blocks, by, refused.as_ref().map(|refused| &refused.account));
    let (requested, after) = dataset.find_account(&account).map_or_else(Default::default, |account| {
        let [alone, with] = account.filter().would_spend(quote.charge.lanes());
        (account.filter().meters_of(&alone), account.filter().meters_of(&with))
    });
    WhatIf {
        decision: if refused.is_some() { Decision::Refuse } else { Decision::Admit },
        account,
        remaining: meters(&spent, Meter::remaining, Side::Down),
        spent: meters(&spent, |meter| meter.spent, Side::Up),
        requested: meters(&requested, |meter| meter.spent, Side::Up),
        after: meters(&after, |meter| meter.spent, Side::Up),
        budget: meters(&spent, |meter| meter.budget, Side::Down),
        reason: refused.map(|refused| refused.reason),
        // One alone is rounded up, so that many of it may seem to cost more than they do together.
        largest_count: dataset.room(one, MAX_COUNT, blocks, by).max(admitted),
        in_turn: None,
    }
}

/// The same for several, one after another, each so often: admitted where all are.
pub(super) fn in_turn(
    dataset: &Dataset,
    first: WhatIf,
    quotes: &[(Arc<Quote>, u64)],
    blocks: Option<&[Name]>,
    by: &Name,
) -> WhatIf {
    let all = quotes.iter().fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
    let fit = dataset.room_in_turn(quotes, blocks, by);
    let (decision, reason) = if fit == all {
        (Decision::Admit, None)
    } else {
        (
            Decision::Refuse,
            first.reason.clone().or_else(|| Some(format!("only {fit} of {all} would fit one after another"))),
        )
    };
    WhatIf { decision, reason, in_turn: Some(fit), ..first }
}

/// Answers to the requests of one batch: what is left is computed once for each account.
pub(super) struct Answers<'a> {
    state: &'a State,
    /// By dataset and account.
    refusing: HashMap<(&'a Name, &'a AccountName), Balance>,
    /// By dataset, blocks and requester: the fullest account.
    fullest: HashMap<(&'a Name, Option<&'a [Name]>, &'a Name), Balance>,
}

/// An account, and what is spent and left there.
struct Balance {
    account: AccountName,
    spent: Arc<Meters>,
    remaining: Arc<Meters>,
}

impl Balance {
    fn new((account, each): (AccountName, Vec<Meter>)) -> Self {
        let spent = Arc::new(meters(&each, |meter| meter.spent, Side::Up));
        Self { account, spent, remaining: Arc::new(meters(&each, Meter::remaining, Side::Down)) }
    }
}

impl<'a> Answers<'a> {
    pub(super) fn new(state: &'a State) -> Self {
        Self { state, refusing: HashMap::new(), fullest: HashMap::new() }
    }

    /// The answer that an entry holds; `price` is what its request costs.
    pub(super) fn answer(
        &mut self,
        entry: &'a Entry,
        digest: Digest,
        repeated: bool,
        price: impl FnOnce() -> Option<Lanes>,
    ) -> Option<Answer> {
        let (decided, expires) = entry.event.decision()?;
        let (blocks, by) = (decided.blocks.as_deref(), &decided.by);
        let dataset = self.state.dataset(&decided.dataset)?;
        let refused = decided.refused.as_ref();
        let tells = |account| Balance::new(dataset.fullest_of(blocks, by, account));
        let Balance { account, spent, remaining } = match refused.map(|refused| &refused.account) {
            Some(account) => {
                let known = self.refusing.entry((&decided.dataset, account));
                known.or_insert_with(|| tells(Some(account)))
            }
            None => self.fullest.entry((&decided.dataset, blocks, by)).or_insert_with(|| tells(None)),
        };
        let known = dataset.find_account(account)?;
        let alone = |price: Lanes| {
            let [alone, _] = known.filter().would_spend(&price);
            meters(&known.filter().meters_of(&alone), |meter| meter.spent, Side::Up)
        };
        Some(Answer {
            id: decided.id.clone(),
            decision: if refused.is_some() { Decision::Refuse } else { Decision::Admit },
            repeated,
            entry: entry.seq,
            receipt: digest,
            at: entry.at,
            account: account.clone(),
            spent: Arc::clone(spent),
            remaining: Arc::clone(remaining),
            reason: refused.map(|refused| refused.reason.clone()),
            requested: if refused.is_some() { price().map(alone) } else { None },
            largest_count: refused.map(|refused| refused.largest_count),
            expires: expires.filter(|_| refused.is_none()),
        })
    }
}
