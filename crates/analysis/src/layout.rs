//! The vector of one round: which coordinates there are, on which grid, under which noise, and what a person's rows make of them.

use crate::query::{Bins, Edges, NoiseStd, Query, QueryError, Statistic, Weight};
use paygo_accounting::individual::{FULL, Fine, PersonalBudget, Price};
use paygo_accounting::params::OutOfDomain;
use paygo_noise::{DiscreteGaussian, Grid, Ratio};
use paygo_numeric::rounding::mul_up;
use std::collections::HashMap;
use std::ops::Range;

/// Coordinates of one round.
const MOST_COORDINATES: usize = 1 << 16;

/// One row's, and then one person's, part in one coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The person's place within their block.
    pub(crate) person: u16,
    pub(crate) coordinate: u16,
    /// Rows, or steps of the grid.
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
        let one = self.steps("noise_std", 1.0)?;
        if one >= 1 {
            return Ok(one);
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
    pub(crate) fn contribute(&self, entries: &mut [Entry], prices: &Prices) -> Fine {
        let square = |entry: &Entry| u128::from(entry.value.unsigned_abs()).pow(2);
        let mut cost = Fine::default();
        let mut rest = entries;
        for part in &self.parts {
            let mine = rest.iter().take_while(|entry| usize::from(entry.coordinate) < part.coordinates.end).count();
            let (entries, others) = rest.split_at_mut(mine);
            rest = others;
            part.rule.apply(entries);
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

impl Rule {
    /// From what the rows added up to, to the contribution. Integers only, toward zero where something does not divide.
    fn apply(&self, entries: &mut [Entry]) {
        match (self, entries) {
            (Self::People { one }, entries) => entries.iter_mut().for_each(|entry| entry.value = *one),
            (Self::Rows { one, most }, entries) => {
                entries.iter_mut().for_each(|entry| entry.value = entry.value.saturating_mul(*one).min(*most));
            }
            (Self::Sum { low, high }, entries) => {
                entries.iter_mut().for_each(|entry| entry.value = entry.value.clamp(*low, *high));
            }
            (Self::Mean { middle, half, one }, [total, rows]) => {
                let mean = total.value / rows.value.max(1);
                total.value = mean.saturating_sub(*middle).clamp(-half, *half);
                rows.value = *one;
            }
            // A row adds to both coordinates or to none.
            (Self::Mean { .. }, entries) => entries.iter_mut().for_each(|entry| entry.value = 0),
            // Shares of one, rounded down: their squares add up to at most one.
            (Self::Bins { one, bound: None, .. }, entries) => {
                let rows = entries.iter().map(|entry| i128::from(entry.value.max(0))).sum::<i128>().max(1);
                for entry in entries {
                    entry.value = i64::try_from(i128::from(entry.value.max(0)) * i128::from(*one) / rows).unwrap_or(0);
                }
            }
            (Self::Bins { one, bound: Some(bound), .. }, entries) => {
                // Up to 2⁵⁵, so that the squares of 2¹⁶ coordinates add up within 128 bits.
                entries.iter_mut().for_each(|entry| entry.value = entry.value.saturating_mul(*one).min(1 << 55));
                let square = |entry: &Entry| u128::from(entry.value.unsigned_abs()).pow(2);
                let squared = entries.iter().map(square).fold(0, u128::saturating_add);
                if squared > u128::from(*bound).pow(2) {
                    // ROUNDING: the norm up, the quotient down, so that the scaled norm is at most the bound.
                    let root = squared.isqrt();
                    let norm = root + u128::from(root * root < squared);
                    for entry in entries {
                        let scaled = u128::from(entry.value.unsigned_abs()) * u128::from(*bound) / norm;
                        entry.value = i64::try_from(scaled).unwrap_or(0);
                    }
                }
            }
        }
    }
}
