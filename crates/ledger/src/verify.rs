//! Everything derived again from the log alone, by other code than that which decides.
//!
//! Lines are read as plain JSON, amounts as digits, sums as integers with the infinite ones counted apart. Only the question
//! whether sums are within a budget, and what is paid on a clock, is put to the same rules, since they are the theorems.

use crate::entry::Digest;
use crate::state::State;
use crate::store::{Store, StoreError};
use paygo_accounting::charge::{Held as OnClock, Lanes};
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{AnyRule, Filter, FilterKind, Rule};
use paygo_accounting::mechanism::Mechanism as Checked;
use paygo_accounting::params::Neighbors as Relation;
use paygo_accounting::stored::StoredRule;
use paygo_accounting::wire::{Mechanism, Neighbors};
use paygo_numeric::Amount;
use serde::Deserialize as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Lines that are read at once.
const PAGE: u64 = 4096;
/// A decision names one of this many prices, or of as many before them.
const PRICES: usize = 4096;

/// Why a log cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The first entry that is wrong.
    #[error("entry {seq}: {what}")]
    Entry {
        /// Which.
        seq: u64,
        /// What is wrong with it.
        what: String,
    },
    /// What the ledger believes is not what its log says.
    #[error("{0}")]
    Balance(String),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the log says.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many entries it has.
    pub entries: u64,
    /// The digest of the last.
    pub digest: Option<Digest>,
    /// How many requests were admitted, and how many refused.
    pub decisions: (u64, u64),
    /// What is charged in each account of each dataset.
    pub balances: BTreeMap<String, BTreeMap<String, Balance>>,
}

/// What is charged: a sum in each lane, the last one of steps' own δ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    lanes: Vec<Lane>,
}

/// A sum of units of 10⁻¹⁸, and how many infinite amounts are in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lane {
    /// What does not fit into 128 bits.
    carry: u64,
    units: u128,
    infinite: u64,
}

impl Lane {
    fn of(units: Option<u128>) -> Self {
        Self { carry: 0, units: units.unwrap_or(0), infinite: u64::from(units.is_none()) }
    }
}

impl Balance {
    fn add(&mut self, amounts: &Amounts) {
        self.lanes.resize(amounts.len().max(self.lanes.len()), Lane::default());
        for (lane, amount) in self.lanes.iter_mut().zip(amounts) {
            match amount {
                Some(units) => {
                    let (sum, carries) = lane.units.overflowing_add(*units);
                    (lane.units, lane.carry) = (sum, lane.carry + u64::from(carries));
                }
                None => lane.infinite += 1,
            }
        }
    }

    fn take(&mut self, amounts: &Amounts) -> Result<(), String> {
        for (lane, amount) in self.lanes.iter_mut().zip(amounts) {
            let less = match amount {
                Some(units) => {
                    let (rest, borrows) = lane.units.overflowing_sub(*units);
                    lane.units = rest;
                    lane.carry.checked_sub(u64::from(borrows)).map(|carry| lane.carry = carry)
                }
                None => lane.infinite.checked_sub(1).map(|infinite| lane.infinite = infinite),
            };
            less.ok_or("frees more than is charged")?;
        }
        Ok(())
    }

    /// As the sums of a rule, and of the slack.
    fn amounts(&self, lanes: usize) -> (Vec<Amount>, Amount) {
        let amount = |i: usize| match self.lanes.get(i) {
            None => Amount::ZERO,
            Some(Lane { infinite: 0, carry: 0, units }) => {
                let text = format!("{}.{:018}", units / 1_000_000_000_000_000_000, units % 1_000_000_000_000_000_000);
                Amount::from_decimal_up(&text).unwrap_or(Amount::INFINITE)
            }
            Some(_) => Amount::INFINITE,
        };
        ((0..lanes).map(amount).collect(), amount(lanes))
    }
}

/// Units in each lane and of the slack; `None` for an infinite amount.
type Amounts = Vec<Option<u128>>;

struct Held {
    accounts: Vec<String>,
    amounts: Amounts,
    /// On a clock: the price, and what is held in each account.
    on_clock: Option<(Lanes, Vec<OnClock>)>,
    expires: u64,
    mechanism: Value,
    used: u64,
}

/// What an entry says that a mechanism costs.
#[derive(Clone)]
struct StatedPrice {
    dataset: String,
    mechanism: Value,
    amounts: Amounts,
    /// The same for a clock.
    lanes: Option<Lanes>,
}

/// What is insisted on beside what the log says about itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demands<'a> {
    /// Entries that must be there.
    pub receipts: &'a [(u64, Digest)],
    /// Whether every price is computed again: none may be less than what its mechanism costs. Takes as long as it took then.
    pub prices: bool,
}

/// How closely one looks: at everything once, or, after something was found, at each admission for where it began.
#[derive(Clone, Copy, Default)]
struct Look {
    prices: bool,
    each: bool,
    /// The hash of an id that is there twice.
    twice: Option<u128>,
}

#[derive(Default)]
struct Dataset {
    neighbors: Neighbors,
    rules: HashMap<String, AnyRule>,
    /// Accounts that something was admitted to since they were last found within their budgets.
    unchecked: BTreeSet<String>,
    balances: BTreeMap<String, Balance>,
    /// Instead of balances where the rule is a clock: what is paid there depends on what is left. It is the rule that walks.
    clocks: BTreeMap<String, Filter<AnyRule>>,
    /// `None` for a dataset without blocks.
    blocks: Option<BTreeSet<String>>,
    allowances: BTreeMap<String, Vec<String>>,
    held: BTreeMap<(String, String), Held>,
    /// Nothing held expires before.
    soonest: u64,
    closed: bool,
}

#[derive(Default)]
struct Derived {
    seq: u64,
    at: u64,
    digest: [u8; 32],
    datasets: BTreeMap<String, Dataset>,
    /// The latest prices and those before them: a decision names one of the last few thousand.
    prices: [HashMap<u64, StatedPrice>; 2],
    /// A hash of every id, to find those used twice.
    ids: Vec<u128>,
    decisions: (u64, u64),
    look: Look,
    seen: bool,
}

/// Derives everything from the log, checks each link, and compares with a state that was derived by the ledger itself. `progress` hears
/// how many entries are done.
///
/// # Errors
/// [`VerifyError`] with the first thing that is wrong.
pub async fn verify(
    store: &mut impl Store,
    state: &State,
    demands: Demands<'_>,
    mut progress: impl FnMut(u64),
) -> Result<Report, VerifyError> {
    let look = Look { prices: demands.prices, ..Look::default() };
    let derived = derive(store, state, demands.receipts, look, &mut progress).await?;
    let twice = match derived.finish(state) {
        Ok(report) => return Ok(report),
        Err(Found::Other(error)) => return Err(error),
        Err(Found::OverBudget(_)) => None,
        Err(Found::Twice(id)) => Some(id),
    };
    // Once more, for the entry where it began.
    let look = Look { each: true, twice, ..Look::default() };
    match derive(store, state, &[], look, &mut progress).await?.finish(state) {
        Err(Found::Other(error)) => Err(error),
        Err(Found::OverBudget(what)) => Err(VerifyError::Balance(what)),
        Ok(_) | Err(Found::Twice(_)) => Err(VerifyError::Balance("an id was decided twice".to_owned())),
    }
}

async fn derive(
    store: &mut impl Store,
    state: &State,
    receipts: &[(u64, Digest)],
    look: Look,
    progress: &mut impl FnMut(u64),
) -> Result<Derived, VerifyError> {
    let mut derived = Derived { look, ..Derived::default() };
    while derived.seq < state.seq() {
        let lines = store.lines(derived.seq, PAGE.min(state.seq() - derived.seq)).await?;
        if lines.is_empty() {
            return Err(VerifyError::Entry { seq: derived.seq + 1, what: "is missing".to_owned() });
        }
        for line in &lines {
            let seq = derived.seq + 1;
            derived.entry(line).map_err(|what| VerifyError::Entry { seq, what })?;
            let digest = Digest::of(line);
            if let Some((_, receipt)) = receipts.iter().find(|(entry, receipt)| *entry == seq && *receipt != digest) {
                let what = format!("has digest {digest}, but somebody holds a receipt for {receipt}");
                return Err(VerifyError::Entry { seq, what });
            }
        }
        progress(derived.seq);
    }
    if let Some((seq, _)) = receipts.iter().find(|(seq, _)| !(1..=derived.seq).contains(seq)) {
        return Err(VerifyError::Entry {
            seq: *seq,
            what: format!(
                "is missing, but somebody holds a receipt for it: the log ends at entry {}; it is older than that, a backup that was \
                 restored, or was cut off",
                derived.seq
            ),
        });
    }
    Ok(derived)
}

/// What was found at the end.
enum Found {
    /// An account passes its budget: somewhere before.
    OverBudget(String),
    /// An id was decided twice: somewhere before.
    Twice(u128),
    /// Something else.
    Other(VerifyError),
}

fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str, String> {
    value[field].as_str().ok_or_else(|| format!("has no {field}"))
}

fn whole(value: &Value, field: &str) -> Result<u64, String> {
    value[field].as_u64().ok_or_else(|| format!("has no {field}"))
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|each| each.as_str().map(str::to_owned)).collect()
}

/// Decimal digits as units of 10⁻¹⁸; `None` inside for `inf`.
fn units(text: &str) -> Result<Option<u128>, String> {
    if text == "inf" {
        return Ok(None);
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 18 {
        return Err(format!("has amount {text}, finer than 18 places"));
    }
    let digits = format!("{whole}{fraction:0<18}");
    digits.parse().map(Some).map_err(|_| format!("has amount {text}, which is no number"))
}

impl Derived {
    fn entry(&mut self, line: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(line).map_err(|error| format!("is not JSON: {error}"))?;
        let prev = hex::encode(self.digest);
        if whole(&value, "seq")? != self.seq + 1 {
            return Err(format!("is numbered {}", value["seq"]));
        }
        if text(&value, "prev")? != prev {
            return Err("the chain is broken: it does not hold the digest of the entry before".to_owned());
        }
        let at = whole(&value, "at")?;
        if at < self.at {
            return Err("is older than the entry before".to_owned());
        }
        (self.seq, self.at) = (self.seq + 1, at);
        let (kind, event) = value["event"].as_object().and_then(|event| event.iter().next()).ok_or("has no event")?;
        self.event(kind, event)?;
        self.digest = Sha256::digest(line.as_bytes()).into();
        Ok(())
    }

    fn event(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        match kind {
            "opened" if self.seq == 1 => Ok(()),
            _ if self.seq == 1 => Err("does not open a ledger, though it is the first".to_owned()),
            "token_granted" | "token_revoked" => Ok(()),
            "dataset_created" => self.created(event),
            "blocks_added" => self.blocks_added(event),
            "dataset_closed" => {
                self.dataset(event)?.closed = true;
                Ok(())
            }
            "allowance_set" => self.allowance_set(event),
            "priced" => self.priced(event),
            "spent" => self.decided(event, None),
            "reserved" => self.decided(&event["decided"], Some(whole(event, "expires")?)),
            "committed" => self.committed(event),
            "cancelled" => self.cancelled(event),
            _ => Err(format!("is a {kind}, which is not known here")),
        }
    }

    fn created(&mut self, event: &Value) -> Result<(), String> {
        let name = text(event, "dataset")?.to_owned();
        let neighbors = Neighbors::deserialize(&event["neighbors"]).map_err(|error| error.to_string())?;
        let blocks = event.get("blocks").map(|blocks| texts(blocks).into_iter().collect());
        let mut dataset = Dataset { neighbors, blocks, ..Dataset::default() };
        dataset.rules.insert(String::new(), rule(&event["rule"])?);
        match self.datasets.insert(name, dataset) {
            Some(_) => Err("creates a dataset again".to_owned()),
            None => Ok(()),
        }
    }

    fn blocks_added(&mut self, event: &Value) -> Result<(), String> {
        let added = texts(&event["blocks"]);
        let blocks = self.dataset(event)?.blocks.as_mut().ok_or("adds blocks where there are none")?;
        if let Some(block) = added.iter().find(|block| blocks.contains(*block)) {
            return Err(format!("adds block {block} again"));
        }
        blocks.extend(added);
        Ok(())
    }

    fn allowance_set(&mut self, event: &Value) -> Result<(), String> {
        let name = text(event, "allowance")?.to_owned();
        let (members, rule) = (texts(&event["members"]), rule(&event["rule"])?);
        let dataset = self.dataset(event)?;
        let account = format!("allowance {name}");
        // What was admitted under the ceiling as it was.
        dataset.check(&account)?;
        if let Some(clock) = dataset.clocks.get_mut(&account) {
            *clock = clock.under(rule.clone()).ok_or("changes a clock to one that cannot follow it")?;
        }
        dataset.rules.insert(account, rule);
        dataset.allowances.insert(name, members);
        Ok(())
    }

    fn priced(&mut self, event: &Value) -> Result<(), String> {
        let mut amounts = Vec::new();
        for amount in texts(&event["amounts"]).iter().map(String::as_str).chain([text(event, "slack")?]) {
            amounts.push(units(amount)?);
        }
        let said = event.get("repeats").and_then(Value::as_array);
        let repeats: Option<Vec<u64>> = said.map_or(Some(vec![1]), |all| all.iter().map(Value::as_u64).collect());
        let repeats = repeats.ok_or("has no number of repeats")?;
        let rule = &self.dataset(event)?.rules[""];
        let is_clock = rule.kind() == FilterKind::Clock;
        if amounts.len() != rule.currency().price_lanes() * repeats.len() + 1 || (repeats != [1] && !is_clock) {
            return Err("has other lanes than its dataset".to_owned());
        }
        let lanes = is_clock.then(|| on_clock(rule, &amounts, repeats.clone())).transpose()?;
        if self.look.prices {
            self.dataset(event)?.price_again(&event["mechanism"], &amounts, &repeats)?;
        }
        let (dataset, mechanism) = (text(event, "dataset")?.to_owned(), event["mechanism"].clone());
        if self.prices[0].len() >= PRICES {
            self.prices.swap(0, 1);
            self.prices[0].clear();
        }
        self.prices[0].insert(self.seq, StatedPrice { dataset, mechanism, amounts, lanes });
        Ok(())
    }

    fn dataset(&mut self, event: &Value) -> Result<&mut Dataset, String> {
        let name = text(event, "dataset")?;
        self.datasets.get_mut(name).ok_or_else(|| format!("names dataset {name}, which there is not"))
    }

    fn price(&self, event: &Value, field: &str) -> Result<StatedPrice, String> {
        let number = whole(event, field)?;
        let price = self.prices.iter().find_map(|prices| prices.get(&number));
        let price = price.ok_or("names a price that was not said before, or long ago")?;
        if price.dataset != text(event, "dataset")? {
            return Err("names a price of another dataset".to_owned());
        }
        Ok(price.clone())
    }

    fn decided(&mut self, event: &Value, expires: Option<u64>) -> Result<(), String> {
        let (by, id) = key(event)?;
        let mut hash = Sha256::new();
        for part in [text(event, "dataset")?, &by, &id] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        let hash: [u8; 32] = hash.finalize().into();
        let hash = hash[..16].iter().fold(0, |word, byte| word << 8 | u128::from(*byte));
        if self.look.twice == Some(hash) && std::mem::replace(&mut self.seen, true) {
            return Err(format!("decides id {id} of {by} again"));
        }
        self.ids.push(hash);
        let StatedPrice { mechanism, amounts, lanes, .. } = self.price(event, "price")?;
        let each = self.look.each;
        let refused = event.get("refused").is_some();
        let at = self.at;
        let dataset = self.dataset(event)?;
        dataset.expire(at);
        if dataset.closed {
            return Err("is decided in a closed dataset".to_owned());
        }
        let mut accounts: Vec<String> = match (&dataset.blocks, event.get("blocks").map(texts)) {
            (None, None) => vec!["dataset".to_owned()],
            (Some(known), Some(named)) if !named.is_empty() && named.iter().all(|block| known.contains(block)) => {
                named.iter().map(|block| format!("block {block}")).collect()
            }
            _ => return Err("touches blocks that there are not".to_owned()),
        };
        let members = dataset.allowances.iter().filter(|(_, members)| members.contains(&by));
        accounts.extend(members.map(|(name, _)| format!("allowance {name}")));
        if refused {
            self.decisions.1 += 1;
            return Ok(());
        }
        let mut on_clock = Vec::new();
        for account in &accounts {
            match &lanes {
                None => dataset.balances.entry(account.clone()).or_default().add(&amounts),
                Some(lanes) => {
                    let clock = dataset.clock(account);
                    if expires.is_some() { on_clock.push(clock.hold(lanes)) } else { clock.replay(lanes) }
                }
            }
            if !dataset.unchecked.contains(account) {
                dataset.unchecked.insert(account.clone());
            }
            if each {
                dataset.check(account)?;
            }
        }
        if let Some(expires) = expires {
            dataset.soonest = dataset.soonest.min(expires);
            let on_clock = lanes.map(|lanes| (lanes, on_clock));
            dataset.held.insert((by, id), Held { accounts, amounts, on_clock, expires, mechanism, used: 0 });
        }
        self.decisions.0 += 1;
        Ok(())
    }

    fn committed(&mut self, event: &Value) -> Result<(), String> {
        let (at, key, used) = (self.at, key(event)?, event.get("used"));
        let dataset = self.dataset(event)?;
        dataset.expire(at);
        let held = dataset.held.get_mut(&key).ok_or("commits a reservation that is not open")?;
        match used.map(|used| used.as_u64().ok_or("has no number of what was used")).transpose()? {
            None => {
                if let Some(held) = dataset.held.remove(&key) {
                    dataset.spend(&held);
                }
            }
            Some(used) if (held.used..=unit(&held.mechanism).1).contains(&used) => held.used = used,
            Some(used) => return Err(format!("says {used} were used: fewer than before, or more than reserved")),
        }
        Ok(())
    }

    fn cancelled(&mut self, event: &Value) -> Result<(), String> {
        let at = self.at;
        let kept = if event.get("kept").is_some() { Some(self.price(event, "kept")?) } else { None };
        let key = key(event)?;
        let dataset = self.dataset(event)?;
        let held = dataset.held.remove(&key).filter(|held| held.expires > at);
        let held = held.ok_or("cancels a reservation that is not open")?;
        let kept = match (kept, held.used) {
            (None, 0) => None,
            (Some(kept), used) if used > 0 && is_repeat(&kept.mechanism, used, unit(&held.mechanism).0) => Some(kept),
            (_, used) => return Err(format!("does not keep charged what {used} of what was reserved cost")),
        };
        for account in &held.accounts {
            // The most that was ever charged is seen just before something is freed.
            dataset.check(account)?;
            if held.on_clock.is_some() {
                continue;
            }
            let balance = dataset.balances.entry(account.clone()).or_default();
            balance.take(&held.amounts)?;
            if let Some(kept) = &kept {
                balance.add(&kept.amounts);
            }
        }
        dataset.end(&held, kept.as_ref().and_then(|kept| kept.lanes.as_ref()));
        Ok(())
    }

    fn finish(mut self, state: &State) -> Result<Report, Found> {
        let balance = |what: String| Found::Other(VerifyError::Balance(what));
        self.ids.sort_unstable();
        if let Some(pair) = self.ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Found::Twice(pair[0]));
        }
        for (name, dataset) in &mut self.datasets {
            let unchecked: Vec<String> = dataset.unchecked.iter().cloned().collect();
            for account in unchecked {
                dataset.check(&account).map_err(|what| Found::OverBudget(format!("dataset {name}: {what}")))?;
            }
        }
        if *state.digest().bytes() != self.digest {
            return Err(balance("the last entry does not have the digest that the ledger holds".to_owned()));
        }
        let known: Vec<&str> = state.datasets().map(|dataset| dataset.name().as_str()).collect();
        if known != self.datasets.keys().map(String::as_str).collect::<Vec<_>>() {
            return Err(balance("the ledger has other datasets than its log".to_owned()));
        }
        let mut report = Report { entries: self.seq, decisions: self.decisions, ..Report::default() };
        report.digest = (self.seq > 0).then(|| state.digest());
        for believed in state.datasets() {
            let name = believed.name();
            let dataset = &self.datasets[name.as_str()];
            let accounts = believed.accounts().map(|(account, sums)| (account.to_string(), sums));
            let ceilings = believed.allowances().map(|(name, _, sums)| (format!("allowance {name}"), sums));
            for (account, believed) in accounts.chain(ceilings) {
                let sums = believed.filter().charged();
                if let Some(clock) = dataset.clocks.get(&account) {
                    if clock.sums() != believed.filter().sums() || clock.charged() != sums {
                        let what = "the ledger believes something else than its log says";
                        return Err(balance(format!("dataset {name}, {account}: {what}")));
                    }
                    continue;
                }
                let empty = Balance::default();
                let balance_of = dataset.balances.get(&account).unwrap_or(&empty);
                let (lanes, slack) = balance_of.amounts(sums.lanes().len());
                if lanes != sums.lanes() || slack != sums.slack() {
                    let what = "the ledger believes something else than its log says";
                    return Err(balance(format!("dataset {name}, {account}: {what}")));
                }
            }
            report.balances.insert(name.to_string(), dataset.balances.clone());
        }
        Ok(report)
    }
}

impl Dataset {
    /// What has expired is held no more: it stays charged.
    fn expire(&mut self, at: u64) {
        if self.soonest <= at {
            // In the order in which they expire: on a clock it matters.
            let expired = |held: &Held| held.expires <= at;
            let mut over: Vec<_> = self
                .held
                .iter()
                .filter(|(_, held)| expired(held))
                .map(|(key, held)| (held.expires, key.clone()))
                .collect();
            over.sort();
            for (_, key) in over {
                if let Some(held) = self.held.remove(&key) {
                    self.spend(&held);
                }
            }
            self.soonest = self.held.values().map(|held| held.expires).min().unwrap_or(u64::MAX);
        }
    }

    /// The clock of an account.
    fn clock(&mut self, account: &str) -> &mut Filter<AnyRule> {
        let rule = || self.rules.get(account).unwrap_or(&self.rules[""]).clone();
        let new = Filter::new(rule(), self.neighbors.into());
        self.clocks.entry(account.to_owned()).or_insert(new)
    }

    /// What was held on a clock is spent. Sums that add up hold it as they spend it.
    fn spend(&mut self, held: &Held) {
        self.end(held, held.on_clock.as_ref().map(|(lanes, _)| lanes));
    }

    /// What was held on a clock is given back, and so much is spent.
    fn end(&mut self, held: &Held, spent: Option<&Lanes>) {
        let Some((_, each)) = &held.on_clock else { return };
        for (account, held) in held.accounts.iter().zip(each) {
            let others = || {
                let open = self.held.values().filter_map(|open| Some((&open.accounts, &open.on_clock.as_ref()?.1)));
                let all = open.flat_map(|(accounts, each)| accounts.iter().zip(each));
                all.filter(|(other, _)| *other == account).map(|(_, held)| held).collect()
            };
            let Some(clock) = self.clocks.get_mut(account) else { continue };
            clock.release(held, spent, others);
        }
    }

    /// Whether an account that something was admitted to is within its budget. A ceiling that was lowered below what was spent refuses
    /// everything: nothing was admitted since.
    fn check(&mut self, account: &str) -> Result<(), String> {
        if !self.unchecked.remove(account) {
            return Ok(());
        }
        if let Some(clock) = self.clocks.get(account) {
            let within = clock.is_within_budget();
            return if within { Ok(()) } else { Err(format!("{account} was charged more than its budget")) };
        }
        let rule = self.rules.get(account).unwrap_or(&self.rules[""]);
        let Some(balance) = self.balances.get(account) else { return Ok(()) };
        let (lanes, slack) = balance.amounts(rule.currency().lanes());
        if rule.allows(&lanes) && slack <= rule.slack() {
            return Ok(());
        }
        Err(format!("{account} was charged more than its budget"))
    }

    /// Whether a price is at least what its mechanism costs, as it is computed now.
    ///
    /// Numbers that are not in quotes were once read as the doubles they are, and are now read as their text; a price from then may
    /// be some 10⁻¹⁶ of itself less. Either reading will do.
    fn price_again(&self, mechanism: &Value, amounts: &Amounts, repeats: &[u64]) -> Result<(), String> {
        let again = |mechanism: &Value| self.covers(mechanism, amounts, repeats);
        again(mechanism).or_else(|_| again(&with_doubles(mechanism)))
    }

    fn covers(&self, mechanism: &Value, amounts: &Amounts, repeats: &[u64]) -> Result<(), String> {
        let wrong = |error: &dyn std::fmt::Display| format!("has a mechanism that has no price: {error}");
        let words = Mechanism::deserialize(mechanism).map_err(|error| wrong(&error))?;
        let (neighbors, currency) = (Relation::from(self.neighbors), self.rules[""].currency());
        let checked = Checked::try_from(&words).map_err(|error| wrong(&error))?;
        let cost = Cost::of(&checked, neighbors).map_err(|error| wrong(&error))?;
        let charge = currency.price(&cost, neighbors).map_err(|error| wrong(&error))?;
        let lanes = charge.lanes();
        if lanes.repeats() != repeats {
            return Err(format!("says it is the price of one of {repeats:?}; it is of one of {:?}", lanes.repeats()));
        }
        for (said, costs) in amounts.iter().zip(lanes.amounts().iter().chain([&lanes.slack()])) {
            let costs = units(&costs.to_string())?;
            let enough = match (said, costs) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(said), Some(costs)) => *said >= costs,
            };
            if !enough {
                return Err("says a price that is less than what the mechanism costs".to_owned());
            }
        }
        Ok(())
    }
}

/// A price on a clock, as it is said: the slack last.
fn on_clock(rule: &AnyRule, amounts: &Amounts, repeats: Vec<u64>) -> Result<Lanes, String> {
    let balance = Balance { lanes: amounts.iter().map(|units| Lane::of(*units)).collect() };
    let (lanes, slack) = balance.amounts(amounts.len() - 1);
    Lanes::from_stored(rule.currency(), lanes, repeats, slack)
        .ok_or_else(|| "has other lanes than its dataset".to_owned())
}

/// A mechanism with each number that is not in quotes written out as the double it is.
fn with_doubles(mechanism: &Value) -> Value {
    match mechanism {
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(double) => format!("{double:.1074}").trim_end_matches('0').into(),
            None => mechanism.clone(),
        },
        Value::Array(all) => all.iter().map(with_doubles).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), with_doubles(value))).collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => mechanism.clone(),
    }
}

/// What a mechanism repeats, as it is written, and how often.
fn unit(mechanism: &Value) -> (&Value, u64) {
    match &mechanism["repeat"] {
        Value::Object(repeat) => (&repeat["of"], count(&repeat["count"])),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => (mechanism, 1),
    }
}

/// A count as it is written: a number, or one in quotes.
fn count(value: &Value) -> u64 {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let double = text.parse::<f64>().unwrap_or(0.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 2^53, and whole")]
    text.parse().unwrap_or(double as u64)
}

/// Whether a mechanism is something so many times.
fn is_repeat(mechanism: &Value, times: u64, of: &Value) -> bool {
    mechanism["repeat"].is_object() && unit(mechanism) == (of, times)
}

fn key(event: &Value) -> Result<(String, String), String> {
    Ok((text(event, "by")?.to_owned(), text(event, "id")?.to_owned()))
}

fn rule(value: &Value) -> Result<AnyRule, String> {
    let stored = StoredRule::deserialize(value).map_err(|error| format!("has a rule that cannot be read: {error}"))?;
    AnyRule::try_from(&stored).map_err(|error| format!("has a rule that cannot be read: {error}"))
}
