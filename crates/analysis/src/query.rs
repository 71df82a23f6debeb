//! What can be asked.

use crate::condition::Condition;
use paygo_accounting::params::OutOfDomain;

/// One question about a table of people.
///
/// All rows of a person become one contribution, which is clipped as a whole; the noise is public and does not depend on who takes
/// part.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub(crate) name: String,
    pub(crate) statistic: Statistic,
    pub(crate) condition: Option<Condition>,
    pub(crate) missing: Missing,
    pub(crate) noise_std: NoiseStd,
}

/// What becomes of values that are missing, or not finite numbers where numbers are needed.
///
/// Whether there are any is looked for in the whole column, not only in rows that the condition selects: an error that depended on the
/// selection would tell about anybody whom a condition can single out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// An error, and nothing is charged.
    #[default]
    Refused,
    /// Rows with such a value are not selected.
    Skipped,
}

/// What is computed from the rows that the condition selects, and what one person contributes to it at most.
#[derive(Clone, Debug, PartialEq)]
pub enum Statistic {
    /// How many people have such a row. A person contributes 1.
    People,
    /// How many such rows there are. A person contributes at most this many.
    Rows(u32),
    /// The sum of a column. A person contributes the total of their rows, clamped into the range.
    Sum(String, ClipRange),
    /// The mean over people of each person's own mean of a column. A person contributes that mean, clamped into the range, and 1
    /// to the number of people.
    Mean(String, ClipRange),
    /// How many people, or rows, fall into each bin.
    Histogram(String, Bins, Weight),
    /// The values below which these fractions of the people, or rows, lie, from a noisy histogram over a public grid.
    Quantile(String, Edges, Weight, Vec<Probability>),
}

/// What a person counts for in a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weight {
    /// One, split over the bins in proportion to their rows: the bins add up to the number of people.
    Person,
    /// Their rows, scaled to this ℓ2 norm if they have a larger one.
    Rows(ClipNorm),
}

/// Public bins.
#[derive(Clone, Debug, PartialEq)]
pub enum Bins {
    /// One for each value; other values are not counted.
    Categories(Vec<String>),
    /// Ranges of numbers.
    Edges(Edges),
}

/// Equal ranges from `low` to `high`; values beyond fall into the first or the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edges {
    range: ClipRange,
    count: u16,
}

/// A public range of contributions, `low < high`, both finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClipRange {
    low: f64,
    high: f64,
}

/// The largest ℓ2 norm of one person's counts: above 0 and at most 10⁶.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClipNorm(f64);

/// A fraction strictly between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probability(f64);

/// The standard deviation of the noise, in the units of the statistic: from 2⁻²⁰ up to 2⁵⁰.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseStd(f64);

/// A question that cannot be asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum QueryError {
    /// A number outside its domain.
    #[error(transparent)]
    OutOfDomain(#[from] OutOfDomain),
    /// A histogram without bins, or with the same one twice.
    #[error("categories: {0}; expected one or more names, each once")]
    Categories(String),
    /// More answers than a vector has room for.
    #[error("{given} coordinates in one round; expected at most {most}")]
    TooMany {
        /// How many there would be.
        given: usize,
        /// How many there may be.
        most: usize,
    },
    /// Two answers would have one name.
    #[error("two queries are called `{0}`; give each a name of its own")]
    SameName(String),
    /// Nothing was asked.
    #[error("no query was given")]
    None,
}

impl Query {
    /// A question, under a name, about the rows that meet a condition.
    ///
    /// # Errors
    /// [`QueryError`] when bins or fractions are missing or given twice.
    pub fn new(
        name: &str,
        statistic: Statistic,
        condition: Option<Condition>,
        noise_std: NoiseStd,
    ) -> Result<Self, QueryError> {
        match &statistic {
            Statistic::Histogram(_, Bins::Categories(names), _) => {
                let mut sorted = names.clone();
                sorted.sort();
                if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                    return Err(QueryError::Categories(format!("`{}` is given twice", pair[0])));
                }
                if names.is_empty() {
                    return Err(QueryError::Categories("none is given".to_owned()));
                }
            }
            Statistic::Quantile(_, _, _, probabilities) if probabilities.is_empty() => {
                return Err(OutOfDomain::new("probabilities", "[]", "one or more, each between 0 and 1").into());
            }
            Statistic::Rows(0) => return Err(OutOfDomain::new("clip", "0..0", "0..N with N at least 1").into()),
            Statistic::People
            | Statistic::Rows(_)
            | Statistic::Sum(..)
            | Statistic::Mean(..)
            | Statistic::Histogram(..)
            | Statistic::Quantile(..) => {}
        }
        Ok(Self { name: name.to_owned(), statistic, condition, missing: Missing::default(), noise_std })
    }

    /// The same, with rows left out whose value is missing.
    #[must_use]
    pub fn skipping_missing(self) -> Self {
        Self { missing: Missing::Skipped, ..self }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is computed.
    #[must_use]
    pub const fn statistic(&self) -> &Statistic {
        &self.statistic
    }

    /// The noise.
    #[must_use]
    pub const fn noise_std(&self) -> NoiseStd {
        self.noise_std
    }

    /// The columns that are read for it.
    pub(crate) fn columns(&self, found: &mut Vec<String>) {
        found.extend(self.statistic.column().map(str::to_owned));
        if let Some(condition) = &self.condition {
            condition.columns(found);
        }
    }
}

/// `sum of amount, each person's total clamped to 0..100, where day = 1`
impl std::fmt::Display for Query {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let weight = |weight: &Weight| match weight {
            Weight::Person => "each person counts as one".to_owned(),
            Weight::Rows(norm) => format!("rows, each person's scaled to norm {}", norm.get()),
        };
        match &self.statistic {
            Statistic::People => write!(f, "people")?,
            Statistic::Rows(most) => write!(f, "rows, at most {most} of each person")?,
            Statistic::Sum(column, clip) => {
                write!(f, "sum of {column}, each person's total clamped to {}..{}", clip.low, clip.high)?;
            }
            Statistic::Mean(column, clip) => {
                write!(f, "mean over people of their own mean of {column}, clamped to {}..{}", clip.low, clip.high)?;
            }
            Statistic::Histogram(column, _, by) => write!(f, "histogram of {column}, {}", weight(by))?,
            Statistic::Quantile(column, edges, by, _) => {
                let (low, high) = (edges.range.low, edges.range.high);
                write!(f, "quantile of {column} over {low}..{high} in {} bins, {}", edges.count, weight(by))?;
            }
        }
        if let Some(condition) = &self.condition {
            write!(f, ", where {condition}")?;
        }
        match self.missing {
            Missing::Refused => Ok(()),
            Missing::Skipped => write!(f, ", rows without a value skipped"),
        }
    }
}

impl Statistic {
    /// The column whose values count.
    #[must_use]
    pub fn column(&self) -> Option<&str> {
        match self {
            Self::People | Self::Rows(_) => None,
            Self::Sum(column, _) | Self::Mean(column, _) => Some(column),
            Self::Histogram(column, ..) | Self::Quantile(column, ..) => Some(column),
        }
    }

    /// Its word on the command line.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::People => "count",
            Self::Rows(_) => "count rows",
            Self::Sum(..) => "sum",
            Self::Mean(..) => "mean",
            Self::Histogram(..) => "histogram",
            Self::Quantile(..) => "quantile",
        }
    }
}

impl ClipRange {
    /// # Errors
    /// [`OutOfDomain`] unless `low < high`, both finite.
    pub fn new(low: f64, high: f64) -> Result<Self, OutOfDomain> {
        if low < high && low.is_finite() && high.is_finite() {
            return Ok(Self { low, high });
        }
        Err(OutOfDomain::new("clip", format!("{low}..{high}"), "LOW..HIGH, two finite numbers with LOW below HIGH"))
    }

    /// The lower end.
    #[must_use]
    pub const fn low(self) -> f64 {
        self.low
    }

    /// The upper end.
    #[must_use]
    pub const fn high(self) -> f64 {
        self.high
    }

    /// Half of its width.
    pub(crate) const fn half(self) -> f64 {
        self.high / 2.0 - self.low / 2.0
    }

    /// Its middle.
    pub(crate) const fn middle(self) -> f64 {
        self.high / 2.0 + self.low / 2.0
    }
}

/// `0..100`
impl std::str::FromStr for ClipRange {
    type Err = OutOfDomain;
    fn from_str(text: &str) -> Result<Self, OutOfDomain> {
        let numbers =
            text.split_once("..").and_then(|(low, high)| Some((low.trim().parse().ok()?, high.trim().parse().ok()?)));
        let (low, high) = numbers
            .ok_or_else(|| OutOfDomain::new("clip", text, "LOW..HIGH, two finite numbers with LOW below HIGH"))?;
        Self::new(low, high)
    }
}

impl Edges {
    /// # Errors
    /// [`OutOfDomain`] when there is no bin.
    pub fn new(range: ClipRange, count: u16) -> Result<Self, OutOfDomain> {
        if count == 0 {
            return Err(OutOfDomain::new("grid", "0 bins", "LOW..HIGH:BINS with at least one bin"));
        }
        Ok(Self { range, count })
    }

    /// How many bins.
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// The lower edge of a bin; of the one after the last, the upper end.
    #[must_use]
    pub fn edge(&self, bin: usize) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a bin number is small")]
        let share = bin as f64 / f64::from(self.count);
        self.range.low * (1.0 - share) + self.range.high * share
    }

    /// The bin of a finite value.
    pub(crate) fn bin(&self, value: f64) -> u16 {
        let share = (value / 2.0 - self.range.low / 2.0) / self.range.half();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
        let bin = (share * f64::from(self.count)) as u16;
        bin.min(self.count - 1)
    }
}

/// `0..120:24`
impl std::str::FromStr for Edges {
    type Err = OutOfDomain;
    fn from_str(text: &str) -> Result<Self, OutOfDomain> {
        const ALLOWED: &str = "LOW..HIGH:BINS, such as 0..120:24, with 1 to 65535 bins";
        let wrong = || OutOfDomain::new("grid", text, ALLOWED);
        let (range, count) = text.rsplit_once(':').ok_or_else(wrong)?;
        let range: ClipRange = range.parse().map_err(|_| wrong())?;
        Self::new(range, count.trim().parse().map_err(|_| wrong())?)
    }
}

impl ClipNorm {
    /// # Errors
    /// [`OutOfDomain`] when it is not above 0 and at most 10⁶.
    pub fn new(value: f64) -> Result<Self, OutOfDomain> {
        if 0.0 < value && value <= 1e6 {
            return Ok(Self(value));
        }
        Err(OutOfDomain::new("clip_norm", value, "0 < clip_norm <= 1e6"))
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Probability {
    /// 0.95
    pub const NINETY_FIVE_PERCENT: Self = Self(0.95);

    /// # Errors
    /// [`OutOfDomain`] when it is not strictly between 0 and 1.
    pub fn new(value: f64) -> Result<Self, OutOfDomain> {
        if 0.0 < value && value < 1.0 {
            return Ok(Self(value));
        }
        Err(OutOfDomain::new("probability", value, "0 < probability < 1"))
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl NoiseStd {
    /// # Errors
    /// [`OutOfDomain`] when it is not between 2⁻²⁰ and 2⁵⁰.
    pub fn new(value: f64) -> Result<Self, OutOfDomain> {
        if (2f64.powi(-20)..=2f64.powi(50)).contains(&value) {
            return Ok(Self(value));
        }
        Err(OutOfDomain::new("noise_std", value, "2^-20 <= noise_std <= 2^50"))
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_grids_are_read_or_named() {
        assert_eq!("0..100".parse::<ClipRange>(), ClipRange::new(0.0, 100.0));
        assert_eq!("-1.5 .. 2e3".parse::<ClipRange>(), ClipRange::new(-1.5, 2000.0));
        for wrong in ["100..0", "5..5", "0..nan", "0..inf", "0-100", "a..b", ""] {
            let error = wrong.parse::<ClipRange>().expect_err(wrong).to_string();
            assert!(error.contains("clip") && error.contains("LOW..HIGH"), "{error}");
        }
        let grid: Edges = "0..120:24".parse().expect("a grid");
        assert_eq!((grid.count(), grid.edge(0), grid.edge(1), grid.edge(24)), (24, 0.0, 5.0, 120.0));
        for (value, bin) in [(-1e300, 0), (0.0, 0), (4.9, 0), (5.0, 1), (119.9, 23), (120.0, 23), (1e300, 23)] {
            assert_eq!(grid.bin(value), bin, "{value}");
        }
        for wrong in ["0..120", "0..120:0", "120..0:5", "0..1:70000", "0..1:x"] {
            assert!(wrong.parse::<Edges>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_asked() {
        let noise = NoiseStd::new(1.0).expect("noise");
        let histogram = |names: &[&str]| {
            let names = names.iter().map(|&name| name.to_owned()).collect();
            Query::new("h", Statistic::Histogram("region".into(), Bins::Categories(names), Weight::Person), None, noise)
        };
        assert!(histogram(&["a", "b"]).is_ok());
        assert!(histogram(&["a", "b", "a"]).expect_err("twice").to_string().contains("`a` is given twice"));
        assert!(histogram(&[]).is_err());
        assert!(Query::new("r", Statistic::Rows(0), None, noise).is_err());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-9, 1e300] {
            assert!(NoiseStd::new(bad).is_err() && (ClipNorm::new(bad).is_err() || bad == 1e-9), "{bad}");
        }
        assert!(Probability::new(0.0).is_err() && Probability::new(1.0).is_err() && Probability::new(0.5).is_ok());
    }
}
