//! The vector of one round: which coordinates there are, on which grid, under which noise, and what a person's rows make of them.

use crate::person::Key;
use crate::query::{Bins, Edges, NoiseStd, Query, QueryError, Statistic, Weight};
use paygo_accounting::individual::{Fine, PersonalBudget, SharePrice};
use paygo_accounting::params::OutOfDomain;
use paygo_noise::{DiscreteGaussian, Grid, Ratio};
use paygo_numeric::rounding::mul_up;
use std::collections::HashMap;
use std::ops::Range;

/// Coordinates of one round.
const MAX_COORDINATES: usize = 1 << 16;

/// Totals are kept this many binary digits finer than the grid, and rounded to it once.
const FINER: u32 = 12;

/// More rows of a person in one bin count as this many; products stay within 128 bits.
const MAX_ROWS: u128 = 1 << 32;

/// One row's, and then one person's, part in one coordinate: at first rows, or fine steps (2¹² to a step); then the contribution, in
/// steps. Integers of 96 bits: rows of up to 2⁶⁰ add up exactly, in any order, so that nobody's total depends on how others' rows are
/// sorted or partitioned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The person's place within their block.
    pub(crate) person: u16,
    pub(crate) coordinate: u16,
    high: i32,
    low: u64,
}

impl Entry {
    pub(crate) fn new(person: u16, coordinate: u16, value: i64) -> Self {
        let mut entry = Self { person, coordinate, high: 0, low: 0 };
        entry.set(i128::from(value));
        entry
    }

    fn total(&self) -> i128 {
        i128::from(self.high) << 64 | i128::from(self.low)
    }

    /// Modulo 2⁹⁶, which 2³⁵ rows do not reach.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "two halves of 96 bits")]
    fn set(&mut self, value: i128) {
        (self.high, self.low) = ((value >> 64) as i32, value as u64);
    }

    /// Adds another part of the same person in the same coordinate.
    pub(crate) fn add(&mut self, other: &Self) {
        self.set(self.total().wrapping_add(other.total()));
    }

    /// Rows of a person, as far as they count.
    fn rows(&self) -> u128 {
        u128::try_from(self.total()).unwrap_or(0).min(MAX_ROWS)
    }

    /// A contribution, which is far below 2⁶³ steps.
    pub(crate) fn steps(&self) -> i64 {
        i64::try_from(self.total()).unwrap_or(0)
    }

    pub(crate) fn set_steps(&mut self, steps: i64) {
        self.set(i128::from(steps));
    }

    fn square(&self) -> u128 {
        u128::from(self.steps().unsigned_abs()).pow(2)
    }
}

/// Coordinates that share a grid and a level of noise.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) grid: Grid,
    pub(crate) noise: DiscreteGaussian,
    pub(crate) noise_std: f64,
    /// The largest squared norm of one person, in steps.
    bound: u128,
}

impl Field {
    /// Steps so fine that the noise has a standard deviation between 2¹⁹ and 2²⁰ of them: the variance is then an integer up to a
    /// relative 2⁻³⁸, rounded up, and contributions keep twenty binary digits below the noise.
    fn new(noise_std: NoiseStd) -> Result<Self, OutOfDomain> {
        let noise_std = noise_std.get();
        let exponent = (noise_std.to_bits() >> 52) as i32 - 1023;
        let grid = Grid::of_power(exponent - 19)?;
        let steps = noise_std / grid.step(); // exact: a power of two
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an integer up to 2^40")]
        let variance = mul_up(steps, steps).ceil() as u64;
        Ok(Self { grid, noise: DiscreteGaussian { variance: Ratio::new(variance, 1)? }, noise_std, bound: 0 })
    }

    fn with_bound(mut self, steps: u64) -> Self {
        self.bound = u128::from(steps).pow(2);
        self
    }

    /// A number in fine steps. Below 2⁵²: a person who contributes 2²⁰ standard deviations of the noise is not hidden by it.
    fn fine(&self, parameter: &'static str, x: f64) -> Result<i64, OutOfDomain> {
        let fine = fine_steps(self.grid, x);
        if fine.unsigned_abs() < 1 << (40 + FINER) {
            return Ok(fine);
        }
        Err(OutOfDomain::new(parameter, x, "less than 2^20 times noise_std"))
    }

    /// A number of fine steps in whole steps, away from zero: what [`on_grid`] can make of it at most.
    const fn steps(fine: i64) -> u64 {
        fine.unsigned_abs().div_ceil(1 << FINER)
    }

    /// A contribution of 1 in steps.
    fn one(&self) -> Result<i64, OutOfDomain> {
        if self.grid.step() <= 1.0 {
            return Ok(self.fine("noise_std", 1.0)? >> FINER); // exact: a power of two
        }
        let noise = self.grid.step() * 2f64.powi(19);
        Err(OutOfDomain::new("noise_std", noise, "below 2^20 for what counts people or rows"))
    }
}

/// One query within the vector.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) query: Query,
    /// Its coordinates.
    pub(crate) coordinates: Range<usize>,
    /// The grid of its first coordinate.
    pub(crate) grid: Grid,
    pub(crate) rule: Rule,
}

/// What a person's rows become. `one` and `most` are steps, the others fine steps.
#[derive(Clone, Debug)]
pub(crate) enum Rule {
    People {
        one: i64,
    },
    Rows {
        one: i64,
        most: i64,
    },
    Sum {
        low: i64,
        high: i64,
    },
    Mean {
        middle: i64,
        half: i64,
        one: i64,
    },
    /// Rows scaled to a norm, or one person split over the bins.
    Bins {
        bins: BinOf,
        one: i64,
        bound: Option<u64>,
    },
}

/// Which bin a value falls into.
#[derive(Clone, Debug)]
pub(crate) enum BinOf {
    Category(HashMap<String, u16>),
    Number(Edges),
}

/// All queries of a round as one vector.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) parts: Vec<Placed>,
    pub(crate) fields: Vec<Field>,
    /// The field of each coordinate.
    pub(crate) field_of: Vec<usize>,
    /// The coordinate to which everybody who takes part contributes 1, and that 1.
    pub(crate) active: Option<(usize, i64)>,
}

/// Prices of every field for people of one budget.
#[derive(Clone, Debug)]
pub(crate) struct Prices(Vec<SharePrice>);

impl Layout {
    /// One vector of all queries, and if wanted the number of people who take part, with this noise.
    ///
    /// # Errors
    /// [`QueryError`] when a bound and its noise do not go together, names repeat, or there are too many coordinates.
    pub fn new(queries: Vec<Query>, active_count: Option<NoiseStd>) -> Result<Self, QueryError> {
        if queries.is_empty() && active_count.is_none() {
            return Err(QueryError::None);
        }
        let mut layout = Self { parts: Vec::new(), fields: Vec::new(), field_of: Vec::new(), active: None };
        for query in queries {
            if layout.parts.iter().any(|part| part.query.name == query.name) {
                return Err(QueryError::SameName(query.name));
            }
            layout.add(query)?;
        }
        if let Some(noise_std) = active_count {
            let field = Field::new(noise_std)?;
            let one = field.one()?;
            layout.active = Some((layout.field_of.len(), one));
            layout.field(field.with_bound(one.unsigned_abs()), 1);
        }
        let given = layout.field_of.len();
        if given > MAX_COORDINATES {
            return Err(QueryError::TooMany { given, most: MAX_COORDINATES });
        }
        Ok(layout)
    }

    /// A field for the next `coordinates`.
    fn field(&mut self, field: Field, coordinates: usize) {
        self.field_of.extend(std::iter::repeat_n(self.fields.len(), coordinates));
        self.fields.push(field);
    }

    fn add(&mut self, query: Query) -> Result<(), QueryError> {
        let field = Field::new(query.noise_std)?;
        let (first, grid) = (self.field_of.len(), field.grid);
        let rule = match &query.statistic {
            Statistic::People => {
                let one = field.one()?;
                self.field(field.with_bound(one.unsigned_abs()), 1);
                Rule::People { one }
            }
            Statistic::Rows(most) => {
                let (one, most) = (field.one()?, field.fine("clip", f64::from(*most))? >> FINER);
                self.field(field.with_bound(most.unsigned_abs()), 1);
                Rule::Rows { one, most }
            }
            Statistic::Sum(_, clip) => {
                let (low, high) = (field.fine("clip", clip.low())?, field.fine("clip", clip.high())?);
                self.field(field.with_bound(Field::steps(low).max(Field::steps(high))), 1);
                Rule::Sum { low, high }
            }
            Statistic::Mean(_, clip) => {
                let (middle, half) = (field.fine("clip", clip.middle())?, field.fine("clip", clip.half())?);
                self.field(field.with_bound(Field::steps(half)), 1);
                // The number of people, with noise in the same proportion to what one person contributes.
                let people = Field::new(NoiseStd::new(query.noise_std.get() / clip.half())?)?;
                let one = people.one()?;
                self.field(people.with_bound(one.unsigned_abs()), 1);
                Rule::Mean { middle, half, one }
            }
            Statistic::Histogram(_, bins, weight) => {
                let (bins, count) = match bins {
                    Bins::Categories(names) => {
                        let numbered = (0..=u16::MAX).zip(names).map(|(i, name)| (name.clone(), i));
                        (BinOf::Category(numbered.collect()), names.len())
                    }
                    Bins::Edges(edges) => (BinOf::Number(*edges), usize::from(edges.count())),
                };
                self.bins(field, bins, count, *weight)?
            }
            Statistic::Quantile(_, edges, weight, _) => {
                self.bins(field, BinOf::Number(*edges), usize::from(edges.count()), *weight)?
            }
        };
        self.parts.push(Placed { query, coordinates: first..self.field_of.len(), grid, rule });
        Ok(())
    }

    fn bins(&mut self, field: Field, bins: BinOf, count: usize, weight: Weight) -> Result<Rule, QueryError> {
        let one = field.one()?;
        let bound = match weight {
            Weight::Person => None,
            Weight::Rows(norm) => Some(Field::steps(field.fine("clip_norm", norm.get())?)),
        };
        // Rounding each of K coordinates to the grid moves a norm by less than √K; one person split over bins stays one.
        let rounded = |bound: u64| bound + (count as u64).isqrt() + 1;
        self.field(field.with_bound(bound.map_or(one.unsigned_abs(), rounded)), count);
        Ok(Rule::Bins { bins, one, bound })
    }

    /// How many numbers are released.
    #[must_use]
    pub fn coordinates(&self) -> usize {
        self.field_of.len()
    }

    /// The columns that are read, each once.
    pub(crate) fn columns(&self) -> Vec<String> {
        let mut columns = Vec::new();
        for part in &self.parts {
            part.query.columns(&mut columns);
        }
        columns.sort();
        columns.dedup();
        columns
    }

    /// What each field costs people of a budget.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the budget is 0.
    pub(crate) fn prices(&self, budget: &PersonalBudget) -> Result<Prices, OutOfDomain> {
        let price = |field: &Field| {
            SharePrice::new(budget, field.noise.variance.numerator(), field.noise.variance.denominator())
        };
        Ok(Prices(self.fields.iter().map(price).collect::<Result<_, _>>()?))
    }

    /// What the most exposed person imaginable would pay, in shares of a budget, rounded up as a charge is: public, and possibly more
    /// than a whole one.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the budget is 0.
    pub fn worst_case(&self, budget: &PersonalBudget) -> Result<u64, OutOfDomain> {
        Ok(self.worst_case_of(0..self.fields.len(), &self.prices(budget)?))
    }

    /// The same for each query alone, and for being counted.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the budget is 0.
    pub fn worst_cases(&self, budget: &PersonalBudget) -> Result<Vec<u64>, OutOfDomain> {
        let prices = self.prices(budget)?;
        let of = |coordinates: Range<usize>| {
            let fields = self.field_of[coordinates.start]..self.field_of[coordinates.end - 1] + 1;
            self.worst_case_of(fields, &prices)
        };
        let active = self.active.map(|(coordinate, _)| coordinate..coordinate + 1);
        Ok(self.parts.iter().map(|part| part.coordinates.clone()).chain(active).map(of).collect())
    }

    fn worst_case_of(&self, fields: Range<usize>, prices: &Prices) -> u64 {
        let fine = |field: usize| prices.0[field].fine(self.fields[field].bound);
        fields.map(fine).fold(Fine::default(), Fine::plus).shares()
    }

    /// The queries, in order.
    pub fn queries(&self) -> impl Iterator<Item = &Query> {
        self.parts.iter().map(|part| &part.query)
    }

    /// Turns what one person's rows added up to into their contribution, clipped, and says what it costs them. The entries are
    /// those of one person, one for each coordinate, in order.
    pub(crate) fn contribute(&self, key: Key, entries: &mut [Entry], prices: &Prices) -> Fine {
        let mut cost = Fine::default();
        let mut rest = entries;
        for part in &self.parts {
            let mine = rest.iter().take_while(|entry| usize::from(entry.coordinate) < part.coordinates.end).count();
            let (entries, others) = rest.split_at_mut(mine);
            rest = others;
            part.rule.apply(key, entries);
            if let Rule::Mean { .. } = part.rule {
                for entry in entries {
                    cost = cost.plus(self.price_of(prices, usize::from(entry.coordinate), entry.square()));
                }
            } else if let Some(first) = entries.first() {
                let norm = entries.iter().map(Entry::square).fold(0, u128::saturating_add);
                cost = cost.plus(self.price_of(prices, usize::from(first.coordinate), norm));
            }
        }
        // What is left is the 1 of those who are counted for taking part.
        rest.iter()
            .fold(cost, |cost, entry| cost.plus(self.price_of(prices, usize::from(entry.coordinate), entry.square())))
    }

    fn price_of(&self, prices: &Prices, coordinate: usize, squared_norm: u128) -> Fine {
        prices.0[self.field_of[coordinate]].fine(squared_norm)
    }
}

/// A number in fine steps of a grid. At most 2⁶⁰ of them: some 10⁹ standard deviations of the noise.
fn fine_steps(grid: Grid, x: f64) -> i64 {
    let finer = f64::from(1u32 << FINER);
    #[expect(clippy::cast_possible_truncation, reason = "a cast saturates")]
    let fine = (x / grid.step() * finer).round() as i64;
    fine.clamp(-(1 << 60), 1 << 60)
}

impl Placed {
    /// A row's value in fine steps.
    pub(crate) fn fine(&self, x: f64) -> i64 {
        fine_steps(self.grid, x)
    }
}

impl Rule {
    /// From what the rows added up to, to the contribution, in integers.
    fn apply(&self, key: Key, entries: &mut [Entry]) {
        match (self, entries) {
            (Self::People { one }, entries) => entries.iter_mut().for_each(|entry| entry.set_steps(*one)),
            (Self::Rows { one, most }, entries) => {
                for entry in entries {
                    let rows = entry.rows() * u128::from(one.unsigned_abs());
                    entry.set_steps(i64::try_from(rows).map_or(*most, |rows| rows.min(*most)));
                }
            }
            (Self::Sum { low, high }, entries) => {
                for entry in entries {
                    let total = entry.total().clamp(i128::from(*low), i128::from(*high));
                    entry.set_steps(on_grid(total, part_of_a_step(key, entry.coordinate)));
                }
            }
            (Self::Mean { middle, half, one }, [total, rows]) => {
                let centered = total.total() / rows.total().max(1) - i128::from(*middle);
                let clamped = centered.clamp(-i128::from(*half), i128::from(*half));
                total.set_steps(on_grid(clamped, part_of_a_step(key, total.coordinate)));
                rows.set_steps(*one);
            }
            // A row adds to both coordinates or to none.
            (Self::Mean { .. }, entries) => entries.iter_mut().for_each(|entry| entry.set_steps(0)),
            (Self::Bins { one, bound: None, .. }, entries) => split(key, entries, one.unsigned_abs()),
            (Self::Bins { one, bound: Some(bound), .. }, entries) => shorten(key, entries, one.unsigned_abs(), *bound),
        }
    }
}

/// One person, split over bins in proportion to their rows. Running totals are rounded, so that the parts add up to exactly one, and
/// their norm is at most one; each is rounded up or down without bias.
fn split(key: Key, entries: &mut [Entry], one: u64) {
    let all = entries.iter().map(Entry::rows).sum::<u128>().max(1);
    let part = part_of_a_step(key, 0);
    let (mut rows, mut before) = (0, 0);
    for entry in entries {
        rows += entry.rows();
        let running = i128::try_from(rows * (u128::from(one) << FINER) / all).unwrap_or(0);
        let after = on_grid(running, part);
        entry.set_steps(after - before);
        before = after;
    }
}

/// Rows, scaled to a norm of `bound` steps where they have a larger one.
fn shorten(key: Key, entries: &mut [Entry], one: u64, bound: u64) {
    let squared: u128 = entries.iter().map(|entry| entry.rows().pow(2)).sum();
    let within = squared.saturating_mul(u128::from(one).pow(2)) <= u128::from(bound).pow(2);
    // ROUNDING: the norm up, to 20 binary places, so that the scaled norm is at most the bound before it is put on the grid.
    let (over, under) =
        if within { (u128::from(one), 1) } else { (u128::from(bound) << 20, (squared << 40).isqrt() + 1) };
    for entry in entries {
        let fine = i128::try_from(entry.rows() * (over << FINER) / under).unwrap_or(0);
        entry.set_steps(on_grid(fine, part_of_a_step(key, entry.coordinate)));
    }
}

/// A number of fine steps on the grid: rounded down after adding a part of a step that depends on the person alone. Values that all
/// have the same fraction would otherwise all be rounded the same way, and a million of them would be off by more than the noise.
fn on_grid(fine: i128, part: i128) -> i64 {
    i64::try_from((fine + part) >> FINER).unwrap_or(0)
}

/// From 0 up to, not including, a step, in fine steps.
fn part_of_a_step(key: Key, coordinate: u16) -> i128 {
    #[expect(clippy::cast_possible_truncation, reason = "any bits of a hash will do")]
    let bits = (key as u64 ^ u64::from(coordinate)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    i128::from(bits >> (64 - FINER))
}
