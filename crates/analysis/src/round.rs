//! One round: from rows to contributions, from contributions to decisions, block of people by block.
//!
//! Nothing here needs all people in one place. Rows are gathered by the block of 65,536 people that their person is in; a block
//! decides alone, from its own rows and its own column, and gives back a sum of integers. Gathered rows, columns and sums of
//! different partitions are merged by adding, in any order.

use crate::accounts::{Accounts, AccountsError};
use crate::column::{self, NoNumber, Texts, is_text};
use crate::condition::NotComparable;
use crate::layout::{BinOf, Entry, Layout, Placed, Prices, Rule};
use crate::person::{Key, PersonError, Salt, check_type, for_each_key};
use crate::query::Missing;
use crate::settings::{Mode, Settings, Tier};
use crate::table::{Partition, Progress, Table, TableError};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use paygo_accounting::individual::{Clipping, Fine, NEVER, admit_round};
use paygo_accounting::params::OutOfDomain;
use paygo_accounting::secret::Secret;
use paygo_numeric::rounding::mul_down;
use rayon::prelude::*;

/// A round that did not come to an end. Nothing was charged and nothing released, unless the accounts say otherwise.
#[derive(Debug, thiserror::Error)]
pub enum RoundError {
    /// The table.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Who rows belong to.
    #[error(transparent)]
    Person(#[from] PersonError),
    /// A condition.
    #[error(transparent)]
    NotComparable(#[from] NotComparable),
    /// A column that holds no numbers.
    #[error("column `{column}` is {given}; expected numbers")]
    NotNumbers {
        /// The column.
        column: String,
        /// Its type.
        given: String,
    },
    /// Nulls, NaN, infinities, or text that is no number.
    #[error(
        "column `{column}` holds something that is not a finite number; expected finite numbers, or to skip what is missing (--missing skip)"
    )]
    NotFinite {
        /// The column.
        column: String,
    },
    /// A column that holds no categories.
    #[error("column `{column}` is {given}; expected text, numbers or dates")]
    NotCategories {
        /// The column.
        column: String,
        /// Its type.
        given: String,
    },
    /// Nulls among categories.
    #[error(
        "column `{column}` is empty in some rows; expected a value in each, or to skip what is missing (--missing skip)"
    )]
    NoCategory {
        /// The column.
        column: String,
    },
    /// A tier that has no budget.
    #[error("column `{column}` holds something that is not one of the tiers {}, or differs between rows of one person", tiers.join(", "))]
    Tier {
        /// The column.
        column: String,
        /// Those that have a budget.
        tiers: Vec<String>,
    },
    /// The people of the table are not those of the accounts.
    #[error(
        "the people of this table are not those of the accounts: is it another dataset? If people have joined or left, say so \
         (--people-changed): who joined gets an account"
    )]
    OtherPeople,
    /// The accounts.
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    /// The operating system has no randomness.
    #[error("no randomness: {0}")]
    NoRandomness(#[from] std::io::Error),
    /// A budget of 0.
    #[error(transparent)]
    OutOfDomain(#[from] OutOfDomain),
    /// The worst case does not fit, and everybody is charged for it. An answer rather than a fault.
    #[error("refused: the worst case of this query is more than what is left of the budget")]
    Refused,
}

/// Whether a table can be asked these questions at all, by its columns: before anything is read, made or charged.
///
/// # Errors
/// [`RoundError`] names the column that is missing or of the wrong type.
pub fn check_columns(table: &Table, layout: &Layout, person: &str) -> Result<(), RoundError> {
    check_type(person, &table.column(person)?)?;
    for column in layout.columns() {
        table.column(&column)?;
    }
    for part in &layout.parts {
        let numbers = match &part.rule {
            Rule::Sum { .. } | Rule::Mean { .. } | Rule::Bins { bins: BinOf::Number(_), .. } => true,
            Rule::People { .. } | Rule::Rows { .. } | Rule::Bins { bins: BinOf::Category(_), .. } => false,
        };
        if let (true, Some(column)) = (numbers, part.query.statistic.column()) {
            let found = table.column(column)?;
            if !(found.is_numeric() || is_text(&found) || found == DataType::Boolean) {
                return Err(RoundError::NotNumbers { column: column.to_owned(), given: found.to_string() });
            }
        }
        if let Rule::Bins { bins: BinOf::Category(_), .. } = &part.rule {
            let column = part.query.statistic.column().unwrap_or_default();
            let found = table.column(column)?;
            if !(found.is_primitive() || is_text(&found) || found == DataType::Boolean) {
                return Err(RoundError::NotCategories { column: column.to_owned(), given: found.to_string() });
            }
        }
    }
    Ok(())
}

/// Everybody in a table, by key, and their tier.
pub(crate) fn people(
    table: &Table,
    settings: &Settings,
    salt: &Salt,
    progress: Progress<'_>,
) -> Result<Vec<(Key, u8)>, RoundError> {
    check_type(&settings.person, &table.column(&settings.person)?)?;
    let mut columns = vec![settings.person.clone()];
    if let Some(column) = &settings.tier_column {
        table.column(column)?;
        columns.push(column.clone());
    }
    // Keys are spread evenly: each range of leading bits is sorted, and merged, on its own.
    const LEADING: u32 = 7;
    let of = |partition: &Partition| {
        let mut found: Vec<Vec<(Key, u8)>> = vec![Vec::new(); 1 << LEADING];
        partition.for_each_batch(&columns, progress, |batch| {
            let tiers = settings.tier_column.as_ref().map(|column| tiers_of(&batch, column, &settings.tiers));
            let tiers = tiers.transpose()?;
            for_each_key(salt, &settings.person, column(&batch, &settings.person), |row, key| {
                let tier = tiers.as_ref().map_or(0, |tiers| tiers[row]);
                let range = usize::try_from(key >> (Key::BITS - LEADING)).unwrap_or(0);
                if found[range].last() != Some(&(key, tier)) {
                    found[range].push((key, tier));
                }
            })?;
            Ok::<_, RoundError>(())
        })?;
        for range in &mut found {
            range.sort_unstable();
            range.dedup();
        }
        Ok::<_, RoundError>(found)
    };
    let partitions: Vec<Vec<Vec<(Key, u8)>>> = table.partitions().par_iter().map(of).collect::<Result<_, _>>()?;
    let merge = |range: usize| {
        let mut merged: Vec<(Key, u8)> = partitions.iter().flat_map(|partition| &partition[range]).copied().collect();
        merged.sort(); // runs that are sorted: this merges them
        merged.dedup();
        merged
    };
    let found = (0..1 << LEADING).into_par_iter().map(merge).collect::<Vec<_>>().concat();
    if found.is_empty() {
        return Err(TableError::Empty.into());
    }
    if let (Some(column), true) = (&settings.tier_column, found.windows(2).any(|pair| pair[0].0 == pair[1].0)) {
        return Err(wrong_tier(column, &settings.tiers));
    }
    Ok(found)
}

fn wrong_tier(column: &str, tiers: &[Tier]) -> RoundError {
    let tiers = tiers.iter().map(|tier| format!("`{}`", tier.name)).collect();
    RoundError::Tier { column: column.to_owned(), tiers }
}

fn tiers_of(batch: &RecordBatch, name: &str, tiers: &[Tier]) -> Result<Vec<u8>, RoundError> {
    let wrong = || wrong_tier(name, tiers);
    let texts = Texts::of(column(batch, name)).ok_or_else(wrong)?;
    let tier = |row: usize| {
        let name = texts.get(row);
        let place = tiers.iter().position(|tier| Some(tier.name.as_str()) == name);
        place.and_then(|place| u8::try_from(place).ok()).ok_or_else(wrong)
    };
    (0..texts.len()).map(tier).collect()
}

/// The scan asks for the columns that are used.
fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a ArrayRef {
    batch.column_by_name(name).expect("every column that is used is read")
}

/// Rows gathered by person: for each block the entries, and who has a row at all. Secret: it prints as nothing.
#[derive(Clone)]
pub struct Contributions {
    blocks: Vec<Block>,
    /// Somebody without an account has a row.
    strangers: bool,
}

#[derive(Clone)]
struct Block {
    entries: Vec<Entry>,
    /// Entries that are in order, one for each person and coordinate.
    compact: usize,
    present: Vec<u64>,
}

impl Block {
    /// Adds up the entries of one person and coordinate. What is gathered stays in proportion to people, not to rows.
    fn compact(&mut self) {
        if self.compact == self.entries.len() {
            return;
        }
        self.sort_by_person();
        for entries in self.entries.chunk_by_mut(|a, b| a.person == b.person) {
            entries.sort_unstable_by_key(|entry| entry.coordinate);
        }
        self.entries.dedup_by(|later, kept| {
            let same = (later.person, later.coordinate) == (kept.person, kept.coordinate);
            if same {
                kept.add(later);
            }
            same
        });
        self.compact = self.entries.len();
    }

    /// By counting where that is faster: five times, for a full block.
    fn sort_by_person(&mut self) {
        let people = 64 * self.present.len();
        if self.entries.len() < people / 4 {
            self.entries.sort_unstable_by_key(|entry| entry.person);
            return;
        }
        let mut places = vec![0usize; people + 1];
        for entry in &self.entries {
            places[usize::from(entry.person) + 1] += 1;
        }
        for i in 1..places.len() {
            places[i] += places[i - 1];
        }
        let mut sorted = vec![Entry::default(); self.entries.len()];
        for &entry in &self.entries {
            let place = &mut places[usize::from(entry.person)];
            sorted[*place] = entry;
            *place += 1;
        }
        self.entries = sorted;
    }

    fn push(&mut self, entry: Entry) {
        const ROOM: usize = 1 << 18;
        if self.entries.len() >= 2 * self.compact + ROOM {
            self.compact();
        }
        self.entries.push(entry);
    }

    fn merge(&mut self, mut other: Self) {
        self.entries.append(&mut other.entries);
        self.compact = self.compact.min(self.entries.len().saturating_sub(1));
        self.compact();
        for (mine, theirs) in self.present.iter_mut().zip(other.present) {
            *mine |= theirs;
        }
    }
}

impl std::fmt::Debug for Contributions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Contributions(..)")
    }
}

impl Contributions {
    /// No rows yet, of people who have accounts.
    #[must_use]
    pub fn new(accounts: &Accounts) -> Self {
        let size = accounts.block_size();
        let block = |_| Block { entries: Vec::new(), compact: 0, present: vec![0; size.div_ceil(64)] };
        Self { blocks: (0..accounts.blocks()).map(block).collect(), strangers: false }
    }

    /// Rows of two partitions of the table: added up, in any order.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.blocks.par_iter_mut().zip(other.blocks).for_each(|(mine, theirs)| mine.merge(theirs));
        self.strangers |= other.strangers;
        self
    }

    /// Whether everybody in the table has an account, and everybody with an account is in the table.
    pub(crate) fn same_people(&self, accounts: &Accounts) -> bool {
        let present: u64 =
            self.blocks.iter().flat_map(|block| &block.present).map(|word| u64::from(word.count_ones())).sum();
        !self.strangers && present == accounts.people() as u64
    }

    /// Whether somebody in the table has no account.
    pub(crate) const fn has_strangers(&self) -> bool {
        self.strangers
    }
}

/// Reads a partition of the table and gathers what its rows contribute.
///
/// # Errors
/// [`RoundError`] when a row cannot be read or belongs to nobody, or a selected value is not a finite number.
pub fn gather(
    partition: &Partition,
    layout: &Layout,
    accounts: &Accounts,
    mut gathered: Contributions,
    progress: Progress<'_>,
) -> Result<Contributions, RoundError> {
    let person = &accounts.settings().person;
    let (salt, size) = (accounts.salt(), accounts.block_size());
    let mut columns = layout.columns();
    columns.push(person.clone());
    columns.sort();
    columns.dedup();
    let mut keys: Vec<Key> = Vec::new();
    let mut slots: Vec<Option<usize>> = Vec::new();
    partition.for_each_batch(&columns, progress, |batch| {
        keys.clear();
        for_each_key(&salt, person, column(&batch, person), |_, key| keys.push(key))?;
        accounts.find_all(&keys, &mut slots);
        for slot in &slots {
            match slot {
                Some(slot) => gathered.blocks[slot / size].present[slot % size / 64] |= 1 << (slot % 64),
                None => gathered.strangers = true,
            }
        }
        for part in &layout.parts {
            gather_part(part, &batch, |row, offset, value| {
                if let Some(slot) = slots[row] {
                    let coordinate = u16::try_from(part.coordinates.start + offset).unwrap_or(u16::MAX);
                    let person = u16::try_from(slot % size).unwrap_or(u16::MAX);
                    gathered.blocks[slot / size].push(Entry::new(person, coordinate, value));
                }
            })?;
        }
        Ok::<_, RoundError>(())
    })?;
    Ok(gathered)
}

/// Calls `f` with row, offset within the part and value, for each selected row.
fn gather_part(part: &Placed, batch: &RecordBatch, mut f: impl FnMut(usize, usize, i64)) -> Result<(), RoundError> {
    let selected = part.query.condition.as_ref().map(|condition| condition.met(batch)).transpose()?;
    let rows = (0..batch.num_rows()).filter(|&row| selected.as_ref().is_none_or(|selected| selected.value(row)));
    let name = part.query.statistic.column().unwrap_or_default();
    match &part.rule {
        Rule::People { .. } | Rule::Rows { .. } => rows.for_each(|row| f(row, 0, 1)),
        Rule::Sum { .. } => {
            let values = numbers(batch, name, part.query.missing)?;
            rows.filter(|&row| values[row].is_finite()).for_each(|row| f(row, 0, part.fine(values[row])));
        }
        Rule::Mean { .. } => {
            let values = numbers(batch, name, part.query.missing)?;
            for row in rows.filter(|&row| values[row].is_finite()) {
                f(row, 0, part.fine(values[row]));
                f(row, 1, 1);
            }
        }
        Rule::Bins { bins: BinOf::Number(edges), .. } => {
            let values = numbers(batch, name, part.query.missing)?;
            let rows = rows.filter(|&row| values[row].is_finite());
            rows.for_each(|row| f(row, usize::from(edges.bin(values[row])), 1));
        }
        Rule::Bins { bins: BinOf::Category(names), .. } => {
            let wrong = || RoundError::NoCategory { column: name.to_owned() };
            let texts = Texts::of(column(batch, name)).ok_or_else(wrong)?;
            if part.query.missing == Missing::Refused && column(batch, name).logical_null_count() > 0 {
                return Err(wrong());
            }
            for row in rows {
                if let Some(&bin) = texts.get(row).and_then(|text| names.get(text)) {
                    f(row, usize::from(bin), 1);
                }
            }
        }
    }
    Ok(())
}

/// A column as numbers; NaN where there is none, if that is allowed. All rows are looked at, selected or not: see [`Missing`].
fn numbers(batch: &RecordBatch, name: &str, missing: Missing) -> Result<Vec<f64>, RoundError> {
    let values = column(batch, name);
    let numbers = column::numbers(values, NoNumber::IsNull)
        .ok_or_else(|| RoundError::NotNumbers { column: name.to_owned(), given: values.data_type().to_string() })?;
    let values: Vec<f64> = numbers.iter().map(|value| value.unwrap_or(f64::NAN)).collect();
    if missing == Missing::Refused && !values.iter().all(|value| value.is_finite()) {
        return Err(RoundError::NotFinite { column: name.to_owned() });
    }
    Ok(values)
}

/// What a round comes to before it is charged: all of it secret.
#[derive(Debug)]
pub(crate) struct RoundTotals {
    /// The sum of the contributions of those who take part, coordinate by coordinate.
    pub(crate) totals: Secret<Vec<i64>>,
    /// The new shares of the blocks in which somebody pays.
    pub(crate) shares: Vec<(usize, Vec<u32>)>,
}

impl RoundTotals {
    fn nothing(layout: &Layout) -> Self {
        Self { totals: Secret::new(vec![0; layout.coordinates()]), shares: Vec::new() }
    }

    /// Decisions about different people: added up, in any order. Modulo 2⁶⁴, as the noise is added: what is released is the true sum
    /// with noise, modulo 2⁶⁴.
    fn merge(mut self, mut other: Self) -> Self {
        self.shares.append(&mut other.shares);
        let add = |(a, b): (i64, i64)| a.wrapping_add(b);
        let totals = self.totals.expose().into_iter().zip(other.totals.expose()).map(add).collect();
        Self { totals: Secret::new(totals), shares: self.shares }
    }
}

/// What happens to a person whose cost is more than what is left to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exhausted {
    /// They are left out of this round and pay nothing (Algorithm 3).
    #[default]
    LeftOut,
    /// Their contribution is scaled down to what is left, which it uses up (Algorithm 8).
    ScaledDown,
}

/// Reads the whole table, all partitions at once.
pub(crate) fn gather_all(
    table: &Table,
    layout: &Layout,
    accounts: &Accounts,
    progress: Progress<'_>,
) -> Result<Contributions, RoundError> {
    table
        .partitions()
        .par_iter()
        .try_fold(
            || Contributions::new(accounts),
            |gathered, partition| gather(partition, layout, accounts, gathered, progress),
        )
        .try_reduce(|| Contributions::new(accounts), |a, b| Ok(a.merge(b)))
}

/// Decides for every block who takes part, and adds up what they contribute.
pub(crate) fn decide(
    gathered: Contributions,
    layout: &Layout,
    accounts: &Accounts,
    exhausted: Exhausted,
) -> Result<RoundTotals, RoundError> {
    let prices = accounts.budgets().iter().map(|budget| layout.prices(budget)).collect::<Result<Vec<_>, _>>()?;
    gathered
        .blocks
        .into_par_iter()
        .enumerate()
        .map(|(number, block)| decide_block(number, block, layout, accounts, &prices, exhausted))
        .try_reduce(|| RoundTotals::nothing(layout), |a, b| Ok(a.merge(b)))
}

fn decide_block(
    number: usize,
    mut block: Block,
    layout: &Layout,
    accounts: &Accounts,
    prices: &[Prices],
    exhausted: Exhausted,
) -> Result<RoundTotals, RoundError> {
    block.compact();
    let Block { mut entries, present, .. } = block;
    let (before, tiers, keys) = (accounts.shares(number)?, accounts.tiers(number), accounts.keys_of(number));
    let people = before.len();
    let prices_of = |person: usize| &prices[tiers.map_or(0, |tiers| usize::from(tiers[person]))];
    let mut costs = vec![Fine::default(); people];
    if let Some((coordinate, one)) = layout.active {
        // Everybody in the table counts, and pays for it, also without a selected row.
        let coordinate = u16::try_from(coordinate).unwrap_or(u16::MAX);
        let here = (0..=u16::MAX).take(people).filter(|&person| is_set(&present, usize::from(person)));
        entries.extend(here.map(|person| Entry::new(person, coordinate, one)));
        entries.sort_unstable_by_key(|entry| (entry.person, entry.coordinate));
    }
    for entries in entries.chunk_by_mut(|a, b| a.person == b.person) {
        let person = usize::from(entries[0].person);
        costs[person] = layout.contribute(keys[person], entries, prices_of(person));
    }
    let mut shares = before.to_vec();
    match (accounts.settings().mode, exhausted) {
        (Mode::Individual, Exhausted::LeftOut) => {
            let costs: Vec<u32> = costs.iter().map(|cost| cost.share()).collect();
            let mut active = vec![0; people.div_ceil(64)];
            admit_round(&mut shares, &costs, &mut active);
            entries.retain(|entry| is_set(&active, usize::from(entry.person)));
        }
        (Mode::Individual, Exhausted::ScaledDown) => {
            // Whole shares, so that nobody pays more than the public worst case; beyond a budget the cost itself.
            let cost = |cost: &Fine| match cost.share() {
                NEVER => cost.to_f64_up(),
                share => f64::from(share),
            };
            let costs: Vec<f64> = costs.iter().map(cost).collect();
            let mut factors = vec![0.0; people];
            Clipping::of_shares().round(&mut shares, &costs, &mut factors);
            for entry in &mut entries {
                entry.set_steps(scaled_down(entry.steps(), factors[usize::from(entry.person)]));
            }
        }
        // Everybody was admitted at once, at the public worst case.
        (Mode::WorstCase, _) => {}
    }
    let mut totals = vec![0i64; layout.coordinates()];
    for entry in &entries {
        let total = &mut totals[usize::from(entry.coordinate)];
        *total = total.wrapping_add(entry.steps());
    }
    let shares = if shares == before { Vec::new() } else { vec![(number, shares)] };
    Ok(RoundTotals { totals: Secret::new(totals), shares })
}

fn is_set(mask: &[u64], i: usize) -> bool {
    mask[i / 64] >> (i % 64) & 1 == 1
}

/// A contribution times a factor up to 1, toward zero: never larger than the real product.
fn scaled_down(value: i64, factor: f64) -> i64 {
    if factor >= 1.0 {
        return value;
    }
    // ROUNDING: toward zero. Contributions are below 2⁵³, so the cast is exact.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "below 2^53")]
    let magnitude = mul_down(value.unsigned_abs() as f64, factor.max(0.0)) as i64;
    magnitude * value.signum()
}
