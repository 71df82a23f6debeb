//! The words in which mechanisms and plans are written: one vocabulary for plans, streams, ledger and HTTP.
//!
//! These types only mirror the text. `TryFrom` turns them into checked values, so an impossible parameter is an error
//! that names the field, what was given and what is allowed, and a change inside the core never changes a file on disk.
//!
//! A number is a double as every language reads it. Written as a decimal *string* it is exact, and is rounded to the
//! side on which the cost is not smaller.

mod filter;

pub use filter::{FilterError, FilterKind, FilterWords, WeightWord, Weights};

use crate::cost::{Cost, CostError};
use crate::curve::{Orders, RenyiCurve};
use crate::mechanism::{
    Assignment, BallsAndBinsEpoch, FixedSizeSampledGaussian, Gaussian, Laplace, Mechanism as Checked, PartitionedEpoch,
    PoissonSampledGaussian, Single,
};
use crate::params::{
    BatchFraction, Count, Delta, Epsilon, Mu, Neighbors as Relation, NoiseMultiplier, OutOfDomain, Rho,
    SamplingProbability, Scale,
};
use paygo_numeric::Amount;
use paygo_numeric::decimal::{parse_down, parse_nearest, parse_up, shown_down, shown_up};
use paygo_numeric::rounding::div_down;
use serde::{Deserialize, Serialize};

/// A number: a double, or a decimal string.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged, expecting = "a number, or a decimal number in quotes")]
pub enum Number {
    /// An integer.
    Integer(i64),
    /// A double.
    Float(f64),
    /// Decimal text.
    Decimal(String),
}

impl Number {
    /// The value rounded up, if it is text that no double holds.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the text is not a decimal number.
    pub fn up(&self, field: &'static str) -> Result<f64, OutOfDomain> {
        self.read(field, parse_up)
    }

    /// The value rounded down, if it is text that no double holds.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the text is not a decimal number.
    pub fn down(&self, field: &'static str) -> Result<f64, OutOfDomain> {
        self.read(field, parse_down)
    }

    fn read(&self, field: &'static str, parse: impl Fn(&str) -> Option<f64>) -> Result<f64, OutOfDomain> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "re-read as text below when it would lose digits")]
            Self::Integer(n) if n.unsigned_abs() <= Count::MAX => Ok(*n as f64),
            Self::Integer(n) => parse(&n.to_string()).ok_or_else(|| OutOfDomain::new(field, n, "a decimal number")),
            Self::Float(x) => Ok(*x),
            Self::Decimal(text) => parse(text).ok_or_else(|| OutOfDomain::new(field, text, "a decimal number")),
        }
    }

    /// The value as a parameter that is charged as it stands: text exactly, everything else as a double.
    fn charged<T>(
        &self,
        field: &'static str,
        new: impl Fn(f64) -> Result<T, OutOfDomain>,
        from_decimal: impl Fn(&str) -> Result<T, OutOfDomain>,
    ) -> Result<T, OutOfDomain> {
        match self {
            Self::Integer(_) | Self::Float(_) => new(self.up(field)?),
            Self::Decimal(text) => from_decimal(text),
        }
    }

    /// The value as a count.
    ///
    /// # Errors
    /// [`OutOfDomain`] when it is not an integer between 1 and 2⁵³.
    pub fn count(&self, field: &'static str) -> Result<Count, OutOfDomain> {
        let value = self.up(field)?;
        #[expect(clippy::cast_precision_loss, reason = "2^53 is a double")]
        let most = Count::MAX as f64;
        if value.fract() == 0.0 && (1.0..=most).contains(&value) && self.down(field)? == value {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an integer in range")]
            return Count::new(value as u64);
        }
        Err(OutOfDomain::new(field, self.text(), "an integer, 1 <= count <= 2^53"))
    }

    /// An amount to be read by programs: the double whose shortest text is the amount itself, else the nearest one on the safe
    /// side; `"inf"` for +∞.
    #[must_use]
    pub fn of(amount: Amount, side: Side) -> Self {
        let near: f64 = amount.to_string().parse().unwrap_or(f64::NAN);
        let exact = Amount::from_decimal_down(&near.to_string()) == Some(amount);
        Self::double(match (exact, side) {
            (true, _) => near,
            (false, Side::Up) => amount.to_f64_up(),
            (false, Side::Down) => amount.to_f64_down(),
        })
    }

    /// A double; `"inf"` for +∞, which JSON has no number for.
    #[must_use]
    pub fn double(x: f64) -> Self {
        if x == f64::INFINITY { Self::Decimal("inf".to_owned()) } else { Self::Float(x) }
    }

    /// As it is written.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Integer(n) => n.to_string(),
            Self::Float(x) => x.to_string(),
            Self::Decimal(text) => text.clone(),
        }
    }

    /// For people: a double as six significant digits on the safe side, everything else as it is written.
    #[must_use]
    pub fn shown(&self, side: Side) -> String {
        match (self, side) {
            (Self::Float(x), Side::Up) => shown_up(*x),
            (Self::Float(x), Side::Down) => shown_down(*x),
            (Self::Integer(_) | Self::Decimal(_), _) => self.text(),
        }
    }

    /// The nearest double: for what is a choice, not a bound.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the text is not a decimal number.
    pub fn nearest(&self, field: &'static str) -> Result<f64, OutOfDomain> {
        self.read(field, parse_nearest)
    }

    /// The value as a limit: the decimal number as it is written, rounded down to 18 places.
    ///
    /// # Errors
    /// [`OutOfDomain`] when it is not a number, or negative.
    pub fn amount_down(&self, field: &'static str) -> Result<Amount, OutOfDomain> {
        let text = self.text();
        Amount::from_decimal_down(&text).ok_or_else(|| OutOfDomain::new(field, text, "a number that is not negative"))
    }
}

/// The side on which a shown number may err.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What was spent.
    Up,
    /// What is left.
    Down,
}

/// A mechanism as it is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(no_recursion))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Mechanism {
    /// Gaussian noise: a `noise_multiplier`, or a `noise_std` and an `l2_sensitivity`.
    #[serde(deserialize_with = "strict::gaussian")]
    Gaussian(GaussianFields),
    /// Laplace noise; `l1_sensitivity` is 1 unless given.
    Laplace {
        /// Scale of the noise.
        scale: Number,
        /// ℓ1 sensitivity of the query.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        l1_sensitivity: Option<Number>,
    },
    /// Binary randomized response.
    RandomizedResponse {
        /// ε.
        epsilon: Number,
    },
    /// The exponential mechanism.
    Exponential {
        /// ε.
        epsilon: Number,
    },
    /// Anything ε-DP.
    Pure {
        /// ε.
        epsilon: Number,
    },
    /// Anything (ε, δ)-DP.
    Approximate {
        /// ε.
        epsilon: Number,
        /// δ.
        delta: Number,
    },
    /// Anything ρ-zCDP.
    Zcdp {
        /// ρ.
        rho: Number,
    },
    /// Anything μ-GDP.
    Gdp {
        /// μ.
        mu: Number,
    },
    /// Gaussian noise on a Poisson sample.
    PoissonSampledGaussian {
        /// The chance that one record joins the batch.
        sampling_probability: Number,
        /// Noise over sensitivity.
        noise_multiplier: Number,
    },
    /// Gaussian noise on a batch of fixed size, replace-one.
    FixedSizeSampledGaussian {
        /// Batch size over dataset size.
        batch_fraction: Number,
        /// Noise over sensitivity under replace-one.
        noise_multiplier: Number,
    },
    /// An epoch in which each record goes to one batch by its own fair coin.
    BallsAndBinsEpoch {
        /// Public number of batches.
        batches: Number,
        /// Noise over sensitivity.
        noise_multiplier: Number,
    },
    /// An epoch over disjoint batches.
    PartitionedEpoch {
        /// One for each batch.
        noise_multipliers: Vec<Number>,
        /// How records come to batches.
        #[serde(default)]
        assignment: AssignmentWord,
    },
    /// An explicit Rényi curve.
    Renyi {
        /// Strictly increasing.
        orders: Vec<Number>,
        /// One for each order.
        values: Vec<Number>,
    },
    /// The same, several times.
    Repeat {
        /// How often.
        count: Number,
        /// What.
        of: Box<Mechanism>,
    },
    /// All of them, on the same people.
    AllOf(Vec<Mechanism>),
    /// Each on its own, disjoint group of people.
    Parallel(Vec<Mechanism>),
}

/// The fields of Gaussian noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct GaussianFields {
    /// Noise over sensitivity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<Number>,
    /// Standard deviation in the query's units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_std: Option<Number>,
    /// ℓ2 sensitivity in the query's units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2_sensitivity: Option<Number>,
}

mod strict {
    use super::GaussianFields;
    use serde::{Deserialize, Deserializer, de::Error};

    /// Exactly one way to say how much noise.
    pub(super) fn gaussian<'de, D: Deserializer<'de>>(deserializer: D) -> Result<GaussianFields, D::Error> {
        let fields = GaussianFields::deserialize(deserializer)?;
        match (&fields.noise_multiplier, &fields.noise_std, &fields.l2_sensitivity) {
            (Some(_), None, None) | (None, Some(_), Some(_)) => Ok(fields),
            (None, None, None) => Err(D::Error::missing_field("noise_multiplier")),
            _ => Err(D::Error::custom("gaussian takes noise_multiplier, or noise_std with l2_sensitivity")),
        }
    }
}

/// How records come to batches, as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AssignmentWord {
    /// See [`Assignment::Independent`].
    #[default]
    Independent,
    /// See [`Assignment::IndependentUniform`].
    IndependentUniform,
    /// See [`Assignment::Reshuffled`].
    Reshuffled,
}

/// A neighbor relation as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Neighbors {
    /// One record more or less.
    #[default]
    AddRemove,
    /// One record replaced by another.
    ReplaceOne,
    /// One record replaced by a null record.
    ZeroOut,
}

impl From<Neighbors> for Relation {
    fn from(word: Neighbors) -> Self {
        match word {
            Neighbors::AddRemove => Self::AddRemove,
            Neighbors::ReplaceOne => Self::ReplaceOne,
            Neighbors::ZeroOut => Self::ZeroOut,
        }
    }
}

impl From<Relation> for Neighbors {
    fn from(relation: Relation) -> Self {
        match relation {
            Relation::AddRemove => Self::AddRemove,
            Relation::ReplaceOne => Self::ReplaceOne,
            Relation::ZeroOut => Self::ZeroOut,
        }
    }
}

/// A plan: releases fixed in advance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Which datasets are neighbors.
    #[serde(default)]
    pub neighbors: Neighbors,
    /// Who is protected.
    #[serde(default = "record")]
    pub privacy_unit: String,
    /// The δ at which ε is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<Number>,
    /// The ε at which δ is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<Number>,
    /// What will be released.
    pub releases: Vec<Release>,
}

fn record() -> String {
    "record".to_owned()
}

/// One entry of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// How often; once unless given.
    #[serde(default = "once")]
    pub count: Number,
    /// What.
    pub mechanism: Mechanism,
}

const fn once() -> Number {
    Number::Integer(1)
}

impl Plan {
    /// The cost of the whole plan.
    ///
    /// # Errors
    /// [`PlanError`] naming the release, the field, what was given and what is allowed.
    pub fn cost(&self) -> Result<Cost, PlanError> {
        if self.privacy_unit.trim().is_empty() {
            return Err(PlanError::Plan(OutOfDomain::new("privacy_unit", "\"\"", "a word such as \"record\"").into()));
        }
        let parts: Vec<Cost> = self
            .release_costs()?
            .iter()
            .enumerate()
            .map(|(index, (cost, count))| {
                cost.repeat(count.get()).map_err(|source| PlanError::Release { index, source })
            })
            .collect::<Result<_, _>>()?;
        let (first, rest) = parts.split_first().ok_or(PlanError::Plan(CostError::Empty("releases")))?;
        first.and_all(rest).map_err(PlanError::Plan)
    }

    /// The cost of one run of each release, and how often it runs.
    ///
    /// # Errors
    /// [`PlanError`] naming the release, the field, what was given and what is allowed.
    pub fn release_costs(&self) -> Result<Vec<(Cost, Count)>, PlanError> {
        let one = |release: &Release| -> Result<(Cost, Count), CostError> {
            let mechanism = Checked::try_from(&release.mechanism)?;
            Ok((Cost::of(&mechanism, self.neighbors.into())?, release.count.count("count")?))
        };
        let indexed = self.releases.iter().enumerate();
        indexed.map(|(index, release)| one(release).map_err(|source| PlanError::Release { index, source })).collect()
    }
}

/// A plan that cannot be priced.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// One of its releases.
    #[error("releases[{index}]: {source}")]
    Release {
        /// Which, from 0.
        index: usize,
        /// Why.
        source: CostError,
    },
    /// The plan as a whole.
    #[error(transparent)]
    Plan(CostError),
}

impl Mechanism {
    /// What it is made of: what it repeats, all of them, or each group's; nothing for a single mechanism.
    #[must_use]
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::Repeat { of, .. } => std::slice::from_ref(of),
            Self::AllOf(all) | Self::Parallel(all) => all,
            Self::Gaussian(_)
            | Self::Laplace { .. }
            | Self::RandomizedResponse { .. }
            | Self::Exponential { .. }
            | Self::Pure { .. }
            | Self::Approximate { .. }
            | Self::Zcdp { .. }
            | Self::Gdp { .. }
            | Self::PoissonSampledGaussian { .. }
            | Self::FixedSizeSampledGaussian { .. }
            | Self::BallsAndBinsEpoch { .. }
            | Self::PartitionedEpoch { .. }
            | Self::Renyi { .. } => &[],
        }
    }
}

impl TryFrom<&Mechanism> for Checked {
    type Error = OutOfDomain;

    /// ROUNDING: text goes to the side on which the cost is not smaller: noise and scales down, the rest up.
    fn try_from(mechanism: &Mechanism) -> Result<Self, OutOfDomain> {
        let noise = |n: &Number| NoiseMultiplier::new(n.down("noise_multiplier")?);
        let epsilon = |n: &Number| n.charged("epsilon", Epsilon::new, Epsilon::from_decimal);
        Ok(Self::Single(match mechanism {
            Mechanism::Gaussian(fields) => {
                let noise_multiplier = match (&fields.noise_multiplier, &fields.noise_std, &fields.l2_sensitivity) {
                    (Some(multiplier), _, _) => noise(multiplier)?,
                    (None, Some(std), Some(sensitivity)) => {
                        let std =
                            Scale::new(std.down("noise_std")?).map_err(rename("noise_std", "0 < noise_std < inf"))?;
                        let sensitivity = Scale::new(sensitivity.up("l2_sensitivity")?)
                            .map_err(rename("l2_sensitivity", "0 < l2_sensitivity < inf"))?;
                        NoiseMultiplier::new(div_down(std.get(), sensitivity.get()))?
                    }
                    (None, _, _) => {
                        return Err(OutOfDomain::new(
                            "noise_multiplier",
                            "nothing",
                            "noise_multiplier, or noise_std with l2_sensitivity",
                        ));
                    }
                };
                Single::Gaussian(Gaussian { noise_multiplier })
            }
            Mechanism::Laplace { scale, l1_sensitivity } => {
                let scale = Scale::new(scale.down("scale")?)?;
                let scale = match l1_sensitivity {
                    None => scale,
                    Some(sensitivity) => {
                        let sensitivity = Scale::new(sensitivity.up("l1_sensitivity")?)
                            .map_err(rename("l1_sensitivity", "0 < l1_sensitivity < inf"))?;
                        Scale::new(div_down(scale.get(), sensitivity.get()))?
                    }
                };
                Single::Laplace(Laplace { scale })
            }
            Mechanism::RandomizedResponse { epsilon: e } => Single::RandomizedResponse(epsilon(e)?),
            Mechanism::Exponential { epsilon: e } => Single::Exponential(epsilon(e)?),
            Mechanism::Pure { epsilon: e } => Single::Pure(epsilon(e)?),
            Mechanism::Approximate { epsilon: e, delta } => {
                Single::Approximate(epsilon(e)?, delta.charged("delta", Delta::new, Delta::from_decimal)?)
            }
            Mechanism::Zcdp { rho } => Single::Zcdp(rho.charged("rho", Rho::new, Rho::from_decimal)?),
            Mechanism::Gdp { mu } => Single::Gdp(mu.charged("mu", Mu::new, Mu::from_decimal)?),
            Mechanism::PoissonSampledGaussian { sampling_probability, noise_multiplier } => {
                Single::PoissonSampledGaussian(PoissonSampledGaussian {
                    sampling_probability: SamplingProbability::new(sampling_probability.up("sampling_probability")?)?,
                    noise_multiplier: noise(noise_multiplier)?,
                })
            }
            Mechanism::FixedSizeSampledGaussian { batch_fraction, noise_multiplier } => {
                Single::FixedSizeSampledGaussian(FixedSizeSampledGaussian {
                    batch_fraction: BatchFraction::new(batch_fraction.up("batch_fraction")?)?,
                    noise_multiplier: noise(noise_multiplier)?,
                })
            }
            Mechanism::BallsAndBinsEpoch { batches, noise_multiplier } => {
                Single::BallsAndBinsEpoch(BallsAndBinsEpoch {
                    batches: batches.count("batches")?,
                    noise_multiplier: noise(noise_multiplier)?,
                })
            }
            Mechanism::PartitionedEpoch { noise_multipliers, assignment } => {
                let assignment = match assignment {
                    AssignmentWord::Independent => Assignment::Independent,
                    AssignmentWord::IndependentUniform => Assignment::IndependentUniform,
                    AssignmentWord::Reshuffled => Assignment::Reshuffled,
                };
                let noise_multipliers = noise_multipliers.iter().map(noise).collect::<Result<_, _>>()?;
                Single::PartitionedEpoch(PartitionedEpoch::new(assignment, noise_multipliers)?)
            }
            Mechanism::Renyi { orders, values } => {
                // An order rounded down keeps its value a bound there, because the divergence rises with the order.
                let orders = orders.iter().map(|n| n.down("orders")).collect::<Result<Vec<_>, _>>()?;
                let values = values.iter().map(|n| n.up("values")).collect::<Result<Vec<_>, _>>()?;
                Single::Renyi(RenyiCurve::new(Orders::from_f64(&orders)?, values)?)
            }
            Mechanism::Repeat { count, of } => {
                return Ok(Self::Repeat { count: count.count("count")?, of: Box::new(Self::try_from(&**of)?) });
            }
            Mechanism::AllOf(all) => return Ok(Self::AllOf(all.iter().map(Self::try_from).collect::<Result<_, _>>()?)),
            Mechanism::Parallel(groups) => {
                return Ok(Self::Parallel(groups.iter().map(Self::try_from).collect::<Result<_, _>>()?));
            }
        }))
    }
}

impl From<&Checked> for Mechanism {
    /// As it could have been written: read again, it is the same mechanism, unless its numbers were written with more than 18
    /// places; then it costs no less.
    fn from(mechanism: &Checked) -> Self {
        let single = match mechanism {
            Checked::Single(single) => single,
            Checked::Repeat { count, of } => {
                return Self::Repeat { count: (*count).into(), of: Box::new(Self::from(&**of)) };
            }
            Checked::AllOf(all) => return Self::AllOf(all.iter().map(Self::from).collect()),
            Checked::Parallel(groups) => return Self::Parallel(groups.iter().map(Self::from).collect()),
        };
        let noise = |noise: NoiseMultiplier| Number::double(noise.get());
        let charged = |value: f64, exact: Option<Amount>| {
            exact.map_or(Number::double(value), |exact| Number::Decimal(exact.to_string()))
        };
        let epsilon = |epsilon: &Epsilon| charged(epsilon.get(), epsilon.exact());
        match single {
            Single::Gaussian(gaussian) => Self::Gaussian(GaussianFields {
                noise_multiplier: Some(noise(gaussian.noise_multiplier)),
                noise_std: None,
                l2_sensitivity: None,
            }),
            Single::Laplace(laplace) => {
                Self::Laplace { scale: Number::double(laplace.scale.get()), l1_sensitivity: None }
            }
            Single::RandomizedResponse(e) => Self::RandomizedResponse { epsilon: epsilon(e) },
            Single::Exponential(e) => Self::Exponential { epsilon: epsilon(e) },
            Single::Pure(e) => Self::Pure { epsilon: epsilon(e) },
            Single::Approximate(e, delta) => {
                Self::Approximate { epsilon: epsilon(e), delta: charged(delta.get(), delta.exact()) }
            }
            Single::Zcdp(rho) => Self::Zcdp { rho: charged(rho.get(), rho.exact()) },
            Single::Gdp(mu) => Self::Gdp { mu: charged(mu.get(), mu.exact()) },
            Single::PoissonSampledGaussian(sampled) => Self::PoissonSampledGaussian {
                sampling_probability: Number::double(sampled.sampling_probability.get()),
                noise_multiplier: noise(sampled.noise_multiplier),
            },
            Single::FixedSizeSampledGaussian(sampled) => Self::FixedSizeSampledGaussian {
                batch_fraction: Number::double(sampled.batch_fraction.get()),
                noise_multiplier: noise(sampled.noise_multiplier),
            },
            Single::BallsAndBinsEpoch(epoch) => Self::BallsAndBinsEpoch {
                batches: epoch.batches.into(),
                noise_multiplier: noise(epoch.noise_multiplier),
            },
            Single::PartitionedEpoch(epoch) => Self::PartitionedEpoch {
                noise_multipliers: epoch.noise_multipliers().iter().map(|&each| noise(each)).collect(),
                assignment: match epoch.assignment() {
                    Assignment::Independent => AssignmentWord::Independent,
                    Assignment::IndependentUniform => AssignmentWord::IndependentUniform,
                    Assignment::Reshuffled => AssignmentWord::Reshuffled,
                },
            },
            Single::Renyi(curve) => {
                let (orders, values) =
                    curve.points().map(|(o, v)| (Number::double(o.get()), Number::double(v))).unzip();
                Self::Renyi { orders, values }
            }
        }
    }
}

impl From<Count> for Number {
    fn from(count: Count) -> Self {
        // At most 2⁵³.
        i64::try_from(count.get()).map_or_else(|_| Self::Decimal(count.get().to_string()), Self::Integer)
    }
}

/// The same complaint under the name that the user wrote.
fn rename(parameter: &'static str, allowed: &'static str) -> impl Fn(OutOfDomain) -> OutOfDomain {
    move |error| OutOfDomain { parameter, allowed, ..error }
}
