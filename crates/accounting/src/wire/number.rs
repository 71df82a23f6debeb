//! Numbers as they are written, and the side to which each is read.

use crate::params::{Count, NoiseMultiplier, OutOfDomain};
use paygo_numeric::Amount;
use paygo_numeric::decimal::{parse_down, parse_nearest, parse_up, shown_down, shown_up, spelled};
use paygo_numeric::rounding::{div_down, div_up};
use serde::{Deserialize, Serialize};

/// A number: as a JSON or TOML number, or as text in quotes.
///
/// What counts is the text that somebody wrote. Text in quotes is taken exactly: a decimal number, or a fraction of two
/// such as `"256/60000"`. A JSON number reaches us as a double; its text is known again where it had at most 15 digits, because no
/// two such numbers share a double, and is then taken exactly too: `0.1` fits ten times into 1. A double with more digits came
/// out of a computation and is taken as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged, expecting = "a number, or a decimal number in quotes")]
pub enum Number {
    /// An integer.
    Integer(i64),
    /// A double.
    Float(f64),
    /// Decimal text, or a fraction.
    Decimal(String),
}

/// The most digits with which no two decimal numbers share a double.
const MAX_EXACT_DIGITS: usize = 15;

impl Number {
    /// The value, rounded up to a double.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the text is not a number.
    pub fn up(&self, field: &'static str) -> Result<f64, OutOfDomain> {
        self.read(field, |text| match fraction(text) {
            Some((over, under)) => Some(div_up(parse_up(over)?, parse_down(under)?)),
            None => parse_up(text),
        })
    }

    /// The value, rounded down to a double.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the text is not a number.
    pub fn down(&self, field: &'static str) -> Result<f64, OutOfDomain> {
        self.read(field, |text| match fraction(text) {
            Some((over, under)) => Some(div_down(parse_down(over)?, parse_up(under)?)),
            None => parse_down(text),
        })
    }

    fn read(&self, field: &'static str, parse: impl Fn(&str) -> Option<f64>) -> Result<f64, OutOfDomain> {
        let given = match self {
            #[expect(clippy::cast_precision_loss, reason = "re-read as text below when it would lose digits")]
            Self::Integer(n) if n.unsigned_abs() <= Count::MAX => return Ok(*n as f64),
            Self::Integer(n) => n.to_string(),
            Self::Float(x) => match written(*x) {
                Some(text) => text,
                None => return Ok(*x),
            },
            Self::Decimal(text) => text.clone(),
        };
        parse(&given).ok_or_else(|| OutOfDomain::new(field, given, "a decimal number, or a fraction in quotes"))
    }

    /// The value as noise over sensitivity. ROUNDING: down.
    pub(crate) fn noise(&self) -> Result<NoiseMultiplier, OutOfDomain> {
        NoiseMultiplier::new(self.down("noise_multiplier")?)
    }

    /// The value as a parameter that is charged as it stands: decimal text exactly, everything else rounded up.
    pub(crate) fn charged<T>(
        &self,
        field: &'static str,
        new: impl Fn(f64) -> Result<T, OutOfDomain>,
        from_decimal: impl Fn(&str) -> Result<T, OutOfDomain>,
    ) -> Result<T, OutOfDomain> {
        let text = match self {
            Self::Float(x) => written(*x),
            Self::Decimal(text) => Some(text.clone()).filter(|text| fraction(text).is_none()),
            Self::Integer(_) => None,
        };
        text.map_or_else(|| new(self.up(field)?), |text| from_decimal(&text))
    }

    /// A parameter that was charged as it stands: its exact decimal where it has one, else the double.
    pub(crate) fn charge(value: f64, exact: Option<Amount>) -> Self {
        exact.map_or(Self::double(value), |exact| Self::Decimal(exact.to_string()))
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
            Self::Float(x) => spelled(*x),
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

    /// The nearest double, of a fraction one beside it at most: for what is a choice or was stored as a double, not a bound.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the text is not a number.
    pub fn nearest(&self, field: &'static str) -> Result<f64, OutOfDomain> {
        self.read(field, |text| match fraction(text) {
            Some((over, under)) => Some(parse_nearest(over)? / parse_nearest(under)?),
            None => parse_nearest(text),
        })
    }

    /// The value as a limit: the decimal number as it is written, rounded down to 18 places.
    ///
    /// # Errors
    /// [`OutOfDomain`] when it is not a number, or negative.
    pub fn amount_down(&self, field: &'static str) -> Result<Amount, OutOfDomain> {
        let text = self.text();
        if fraction(&text).is_some() {
            // ROUNDING: down; a fraction is finite.
            return Ok(Amount::from_f64_down(self.down(field)?).unwrap_or(Amount::ZERO));
        }
        Amount::from_decimal_down(&text).ok_or_else(|| OutOfDomain::new(field, text, "a number that is not negative"))
    }
}

/// The decimal text of a double, where it is certain that this is what was written.
fn written(x: f64) -> Option<String> {
    let digits = format!("{x:e}").bytes().take_while(|&c| c != b'e').filter(u8::is_ascii_digit).count();
    (digits <= MAX_EXACT_DIGITS && (x == 0.0 || x.is_normal())).then(|| x.to_string())
}

/// The two numbers of a fraction; `None` when the text is not one.
fn fraction(text: &str) -> Option<(&str, &str)> {
    let (over, under) = text.split_once('/').map(|(over, under)| (over.trim(), under.trim()))?;
    let positive = parse_down(under).is_some_and(|under| under > 0.0) && !over.starts_with('-');
    positive.then_some((over, under))
}

/// The side on which a shown number may err.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What was spent.
    Up,
    /// What is left.
    Down,
}

impl From<Count> for Number {
    fn from(count: Count) -> Self {
        // At most 2⁵³.
        i64::try_from(count.get()).map_or_else(|_| Self::Decimal(count.get().to_string()), Self::Integer)
    }
}

impl From<NoiseMultiplier> for Number {
    fn from(noise: NoiseMultiplier) -> Self {
        Self::double(noise.get())
    }
}

/// The same complaint under the name that the user wrote.
pub(crate) fn renamed(parameter: &'static str, allowed: &'static str) -> impl Fn(OutOfDomain) -> OutOfDomain {
    move |error| OutOfDomain { parameter, allowed, ..error }
}
