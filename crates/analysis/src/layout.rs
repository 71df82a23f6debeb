//! The vector of one round: which coordinates there are, on which grid, under which noise, and what a person's rows make of them.

use crate::person::Key;
use crate::query::{Bins, Edges, NoiseStd, Query, QueryError, Statistic, Weight};
use paygo_accounting::individual::{FULL, Fine, PersonalBudget, Price};
use paygo_accounting::params::OutOfDomain;
use paygo_noise::{DiscreteGaussian, Grid, Ratio};
use paygo_numeric::rounding::mul_up;
use std::collections::HashMap;
use std::ops::Range;

/// Coordinates of one round.
const MOST_COORDINATES: usize = 1 << 16;

/// Totals are kept this many binary digits finer than the grid, and rounded to it once.
const FINER: u32 = 12;

/// More rows of a person in one bin count as this many; products stay within 128 bits.
const MOST_ROWS: i64 = 1 << 32;

/// One row's, and then one person's, part in one coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The person's place within their block.
    pub(crate) person: u16,
    pub(crate) coordinate: u16,
    /// At first rows, or fine steps (2¹² to a step); then the contribution, in steps.
    pub(crate) value: i64,
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

    /// A number in steps. At most 2⁴⁰: a person who contributes more than 2²⁰ standard deviations of the noise is not hidden by it.
    fn steps(&self, parameter: &'static str, x: f64) -> Result<i64, OutOfDomain> {
        let steps = self.grid.contribution(x, 1 << 40);
        if steps.unsigned_abs() < 1 << 40 {
            return Ok(steps);
        }
        Err(OutOfDomain::new(parameter, x, "less than 2^20 times noise_std"))
    }

    /// A contribution of 1 in steps.
    fn one(&self) -> Result<i64, OutOfDomain> {
        if self.grid.step() <= 1.0 {
            return self.steps("noise_std", 1.0); // exact: a power of two
        }
        let noise = self.grid.step() * 2f64.powi(19);
        Err(OutOfDomain::new("noise_std", noise, "below 2^20 for what counts people or rows"))
    }
}

/// One query within the vector.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) query: Query,
    /// Its coordinates.
    pub(crate) coordinates: Range<usize>,
    /// The grid of its first coordinate.
    pub(crate) grid: Grid,
    pub(crate) rule: Rule,
}

/// What a person's rows become.
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
    pub(crate) parts: Vec<Part>,
    pub(crate) fields: Vec<Field>,
    /// The field of each coordinate.
    pub(crate) field_of: Vec<usize>,
    /// The coordinate to which everybody who takes part contributes 1, and that 1.
    pub(crate) active: Option<(usize, i64)>,
}

/// Prices of every field for people of one budget.
#[derive(Clone, Debug)]
pub(crate) struct Prices(Vec<Price>);

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
        if given > MOST_COORDINATES {
            return Err(QueryError::TooMany { given, most: MOST_COORDINATES });
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
                let (one, most) = (field.one()?, field.steps("clip", f64::from(*most))?);
                self.field(field.with_bound(most.unsigned_abs()), 1);
                Rule::Rows { one, most }
            }
            Statistic::Sum(_, clip) => {
                let (low, high) = (field.steps("clip", clip.low())?, field.steps("clip", clip.high())?);
                self.field(field.with_bound(low.unsigned_abs().max(high.unsigned_abs())), 1);
                Rule::Sum { low, high }
            }
            Statistic::Mean(_, clip) => {
                let (middle, half) = (field.steps("clip", clip.middle())?, field.steps("clip", clip.half())?);
                self.field(field.with_bound(half.unsigned_abs()), 1);
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
        self.parts.push(Part { query, coordinates: first..self.field_of.len(), grid, rule });
        Ok(())
    }

    fn bins(&mut self, field: Field, bins: BinOf, count: usize, weight: Weight) -> Result<Rule, QueryError> {
        let one = field.one()?;
        let bound = match weight {
            Weight::Person => None,
            Weight::Rows(norm) => Some(field.steps("clip_norm", norm.get())?.unsigned_abs()),
        };
        self.field(field.with_bound(bound.unwrap_or(one.unsigned_abs())), count);
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
        let price =
            |field: &Field| Price::new(budget, field.noise.variance.numerator(), field.noise.variance.denominator());
        Ok(Prices(self.fields.iter().map(price).collect::<Result<_, _>>()?))
    }

    /// What the most exposed person imaginable would pay, in shares of a budget: public, and possibly more than a whole one.
    pub(crate) fn worst_case(&self, prices: &Prices) -> u64 {
        let fine = |(field, price): (&Field, &Price)| price.fine(field.bound);
        self.fields.iter().zip(&prices.0).map(fine).fold(Fine::default(), Fine::plus).shares()
    }

    /// What the most exposed person imaginable would pay for each query, and for being counted, as a fraction of a budget: public.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the budget is 0.
    pub fn worst_cases(&self, budget: &PersonalBudget) -> Result<Vec<f64>, OutOfDomain> {
        let prices = self.prices(budget)?;
        let of = |coordinates: Range<usize>| {
            let mut fields: Vec<usize> = self.field_of[coordinates].to_vec();
            fields.dedup();
            let fine = fields.iter().map(|&field| prices.0[field].fine(self.fields[field].bound));
            fine.fold(Fine::default(), Fine::plus).to_f64_up() / f64::from(FULL)
        };
        let active = self.active.map(|(coordinate, _)| coordinate..coordinate + 1);
        Ok(self.parts.iter().map(|part| part.coordinates.clone()).chain(active).map(of).collect())
    }

    /// The queries, in order.
    pub fn queries(&self) -> impl Iterator<Item = &Query> {
        self.parts.iter().map(|part| &part.query)
    }

    /// Turns what one person's rows added up to into their contribution, clipped, and says what it costs them. The entries are
    /// those of one person, one for each coordinate, in order.
    pub(crate) fn contribute(&self, key: Key, entries: &mut [Entry], prices: &Prices) -> Fine {
        let square = |entry: &Entry| u128::from(entry.value.unsigned_abs()).pow(2);
        let mut cost = Fine::default();
        let mut rest = entries;
        for part in &self.parts {
            let mine = rest.iter().take_while(|entry| usize::from(entry.coordinate) < part.coordinates.end).count();
            let (entries, others) = rest.split_at_mut(mine);
            rest = others;
            part.rule.apply(key, entries);
            if let Rule::Mean { .. } = part.rule {
                for entry in entries {
                    cost = cost.plus(self.price_of(prices, usize::from(entry.coordinate), square(entry)));
                }
            } else if let Some(first) = entries.first() {
                let norm = entries.iter().map(square).fold(0, u128::saturating_add);
                cost = cost.plus(self.price_of(prices, usize::from(first.coordinate), norm));
            }
        }
        // What is left is the 1 of those who are counted for taking part.
        rest.iter()
            .fold(cost, |cost, entry| cost.plus(self.price_of(prices, usize::from(entry.coordinate), square(entry))))
    }

    fn price_of(&self, prices: &Prices, coordinate: usize, squared_norm: u128) -> Fine {
        prices.0[self.field_of[coordinate]].fine(squared_norm)
    }
}

impl Part {
    /// A row's value in fine steps. At most 2⁵⁶ of them: some 10⁷ standard deviations of the noise.
    pub(crate) fn fine(&self, x: f64) -> i64 {
        let finer = f64::from(1u32 << FINER);
        #[expect(clippy::cast_possible_truncation, reason = "a cast saturates")]
        let fine = (x / self.grid.step() * finer).round() as i64;
        fine.clamp(-(1 << 56), 1 << 56)
    }
}

impl Rule {
    /// From what the rows added up to, to the contribution, in integers.
    fn apply(&self, key: Key, entries: &mut [Entry]) {
        match (self, entries) {
            (Self::People { one }, entries) => entries.iter_mut().for_each(|entry| entry.value = *one),
            (Self::Rows { one, most }, entries) => {
                entries.iter_mut().for_each(|entry| entry.value = entry.value.saturating_mul(*one).min(*most));
            }
            (Self::Sum { low, high }, entries) => {
                for entry in entries {
                    entry.value = on_grid(entry.value.clamp(low << FINER, high << FINER), key, entry.coordinate);
                }
            }
            (Self::Mean { middle, half, one }, [total, rows]) => {
                let centered = (total.value / rows.value.max(1)).saturating_sub(middle << FINER);
                let clamped = centered.clamp(-(half << FINER), half << FINER);
                (total.value, rows.value) = (on_grid(clamped, key, total.coordinate), *one);
            }
            // A row adds to both coordinates or to none.
            (Self::Mean { .. }, entries) => entries.iter_mut().for_each(|entry| entry.value = 0),
            (Self::Bins { one, bound, .. }, entries) => {
                let rows = |entry: &Entry| u128::from(entry.value.clamp(0, MOST_ROWS).unsigned_abs());
                let one = u128::from(one.unsigned_abs());
                let squared: u128 = entries.iter().map(|entry| rows(entry).pow(2)).sum();
                let (over, under) = match bound {
                    // One person, split in proportion to rows.
                    None => (one, entries.iter().map(rows).sum::<u128>().max(1)),
                    // Rows, if they are within the bound.
                    Some(bound) if squared.saturating_mul(one * one) <= u128::from(*bound).pow(2) => (one, 1),
                    // ROUNDING: the norm up, to 20 binary places, so that the scaled norm is at most the bound.
                    Some(bound) => (u128::from(*bound) << 20, (squared << 40).isqrt() + 1),
                };
                let bound = bound.map_or(one, u128::from);
                scale(key, entries, over, under, bound);
            }
        }
    }
}

/// Row counts times `over/under`, on the grid, with a norm that is at most `bound`.
fn scale(key: Key, entries: &mut [Entry], over: u128, under: u128, bound: u128) {
    let fine = |entry: &Entry| {
        let fine = u128::from(entry.value.clamp(0, MOST_ROWS).unsigned_abs()) * (over << FINER) / under;
        i64::try_from(fine).unwrap_or(i64::MAX >> FINER)
    };
    let steps = |entry: &Entry| on_grid(fine(entry), key, entry.coordinate);
    let squared: u128 = entries.iter().map(|entry| u128::from(steps(entry).unsigned_abs()).pow(2)).sum();
    let within = squared <= bound * bound;
    for entry in entries {
        // Where rounding to either side would pass the bound, all are rounded down.
        entry.value = if within { steps(entry) } else { fine(entry) >> FINER };
    }
}

/// A number of fine steps on the grid: rounded down after adding a part of a step that depends on the person alone. Values that all
/// have the same fraction would otherwise all be rounded the same way, and a million of them would be off by more than the noise.
fn on_grid(fine: i64, key: Key, coordinate: u16) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "any bits of a hash will do")]
    let bits = (key as u64 ^ u64::from(coordinate)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let part = i64::try_from(bits >> (64 - FINER)).unwrap_or(0);
    fine.saturating_add(part) >> FINER
}
