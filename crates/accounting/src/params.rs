//! The numbers of differential privacy, each checked once.
//!
//! A value of one of these types is inside its domain for good: NaN, a negative noise or a δ of 2 cannot be written
//! down. Two different parameters never add up: `Epsilon + Rho` does not compile.

use paygo_numeric::Amount;
use paygo_numeric::decimal::{parse_up, spelled};
use paygo_numeric::rounding::{add_up, sub_down};

/// A parameter outside its domain: which, what was given, what is allowed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{parameter} = {given} is outside its domain; expected {allowed}")]
pub struct OutOfDomain {
    /// The parameter's name as users write it.
    pub parameter: &'static str,
    /// What was given.
    pub given: String,
    /// What is allowed.
    pub allowed: &'static str,
}

impl OutOfDomain {
    /// What was given, and what is allowed. A double is spelled without a line of zeros.
    #[must_use]
    pub fn new(parameter: &'static str, given: impl ToString, allowed: &'static str) -> Self {
        let text = given.to_string();
        let given = match text.parse::<f64>() {
            Ok(x) if x.to_string() == text => spelled(x),
            Ok(_) | Err(_) => text,
        };
        Self { parameter, given, allowed }
    }
}

/// A number in a message; with a width or a precision, as any double.
fn show(x: f64, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    let is_plain = f.width().is_none() && f.precision().is_none();
    if is_plain { f.write_str(&spelled(x)) } else { std::fmt::Display::fmt(&x, f) }
}

macro_rules! parameter {
    ($(#[$doc:meta])* $name:ident, $word:literal, $allowed:literal, |$value:ident| $inside:expr) => {
        $(#[$doc])*
        #[doc = concat!("\n\nDomain: ", $allowed, "; never NaN.")]
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
        pub struct $name(f64);

        impl $name {
            #[doc = concat!("Checks that the value is inside its domain: ", $allowed, ".")]
            ///
            /// # Errors
            /// [`OutOfDomain`] when it is not.
            pub fn new($value: f64) -> Result<Self, OutOfDomain> {
                // Say the invariant, not its negation: NaN fails it. `+ 0.0` turns −0.0 into 0.0.
                if $inside { Ok(Self($value + 0.0)) } else { Err(OutOfDomain::new($word, $value, $allowed)) }
            }

            /// The value.
            #[must_use]
            pub const fn get(self) -> f64 {
                self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                show(self.0, f)
            }
        }
    };
}

/// A parameter that is charged as it stands: a double, and the exact amount where decimal text named a smaller one.
macro_rules! charged_parameter {
    ($(#[$doc:meta])* $name:ident, $word:literal, $allowed:literal, |$value:ident| $inside:expr) => {
        $(#[$doc])*
        #[doc = concat!("\n\nDomain: ", $allowed, "; never NaN.")]
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            value: f64,
            /// Set only where it is less than the double, rounded up.
            exact: Option<Amount>,
        }

        impl $name {
            #[doc = concat!("Checks that the value is inside its domain: ", $allowed, ".")]
            ///
            /// # Errors
            /// [`OutOfDomain`] when it is not.
            pub fn new($value: f64) -> Result<Self, OutOfDomain> {
                // Say the invariant, not its negation: NaN fails it. `+ 0.0` turns −0.0 into 0.0.
                if $inside { Ok(Self::of($value + 0.0)) } else { Err(OutOfDomain::new($word, $value, $allowed)) }
            }

            /// Reads decimal text: as a double it is rounded up, as an [`Amount`] it is exact to 18 places.
            ///
            /// # Errors
            /// [`OutOfDomain`] when it is not a decimal number or not inside its domain.
            pub fn from_decimal(text: &str) -> Result<Self, OutOfDomain> {
                let value = parse_up(text).ok_or_else(|| OutOfDomain::new($word, text, "a decimal number"))?;
                let parsed = Self::new(value).map_err(|error| OutOfDomain { given: text.to_owned(), ..error })?;
                // At the upper end of the domain the double stands: what is rounded up to 1 is treated as 1.
                let inside = Self::new(value.next_up()).is_ok();
                let exact = Amount::from_decimal_up(text).filter(|&exact| inside && exact < parsed.amount());
                Ok(Self { exact, ..parsed })
            }

            /// The value; rounded up when it was read from text that no double holds.
            #[must_use]
            pub const fn get(self) -> f64 {
                self.value
            }

            /// The exact decimal it was read from, where that is less than the double.
            #[must_use]
            pub(crate) const fn exact(self) -> Option<Amount> {
                self.exact
            }

            /// What it adds to a sum: the exact decimal it was read from, else the double, rounded up to 10⁻¹⁸.
            #[must_use]
            pub fn amount(self) -> Amount {
                self.exact.unwrap_or_else(|| Amount::from_f64_up(self.value))
            }

            const fn of(value: f64) -> Self {
                Self { value, exact: None }
            }
        }

        /// By the double, then by the exact amount, which is never more.
        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.value.partial_cmp(&other.value)?.then_with(|| self.amount().cmp(&other.amount())))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                show(self.value, f)
            }
        }
    };
}

charged_parameter! {
    /// The ε of a guarantee.
    Epsilon, "epsilon", "0 <= epsilon <= inf", |value| 0.0 <= value
}
charged_parameter! {
    /// The δ of a guarantee.
    Delta, "delta", "0 <= delta <= 1", |value| (0.0..=1.0).contains(&value)
}
charged_parameter! {
    /// The ρ of zero-concentrated differential privacy (zCDP).
    Rho, "rho", "0 <= rho <= inf", |value| 0.0 <= value
}
charged_parameter! {
    /// The μ of Gaussian differential privacy (GDP).
    Mu, "mu", "0 <= mu <= inf", |value| 0.0 <= value
}
parameter! {
    /// The order α of a Rényi divergence.
    Order, "order", "1 < order <= inf", |value| 1.0 < value
}
parameter! {
    /// A Rényi divergence at some order, or an upper bound on one.
    Divergence, "divergence", "0 <= divergence <= inf", |value| 0.0 <= value
}
parameter! {
    /// Standard deviation of the noise over the ℓ2 sensitivity, under the neighbor relation in use.
    NoiseMultiplier, "noise_multiplier", "0 < noise_multiplier < inf", |value| 0.0 < value && value < f64::INFINITY
}
parameter! {
    /// Scale of Laplace noise over the ℓ1 sensitivity.
    Scale, "scale", "0 < scale < inf", |value| 0.0 < value && value < f64::INFINITY
}
parameter! {
    /// The chance that one record joins a Poisson batch.
    SamplingProbability, "sampling_probability", "0 <= sampling_probability <= 1", |value| (0.0..=1.0).contains(&value)
}
parameter! {
    /// Batch size over dataset size, for batches of a fixed size.
    BatchFraction, "batch_fraction", "0 < batch_fraction <= 1", |value| 0.0 < value && value <= 1.0
}

/// How often a mechanism runs, or how many batches an epoch has: at least one, at most 2⁵³.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(u64);

impl Count {
    /// The largest count: every smaller integer is a double.
    pub const MAX: u64 = 1 << 53;
    /// Once.
    pub const ONE: Self = Self(1);

    /// Checks that the count is between 1 and 2⁵³.
    ///
    /// # Errors
    /// [`OutOfDomain`] when it is not.
    pub fn new(value: u64) -> Result<Self, OutOfDomain> {
        if (1..=Self::MAX).contains(&value) {
            Ok(Self(value))
        } else {
            Err(OutOfDomain::new("count", value, "1 <= count <= 2^53"))
        }
    }

    /// The count.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The count as a double, exactly.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "at most 2^53, hence exact")]
    pub const fn to_f64(self) -> f64 {
        self.0 as f64
    }

    /// The product with another count.
    ///
    /// # Errors
    /// [`OutOfDomain`] when it passes 2⁵³.
    pub fn times(self, other: Self) -> Result<Self, OutOfDomain> {
        Self::new(self.0.saturating_mul(other.0))
    }
}

impl Epsilon {
    /// No loss at all.
    pub const ZERO: Self = Self::of(0.0);
    /// No promise at all.
    pub const INFINITE: Self = Self::of(f64::INFINITY);

    /// An upper bound as it came out of a computation: NaN becomes +∞ (doubt costs, it never pays), a negative bound 0.
    #[must_use]
    pub fn from_upper_bound(value: f64) -> Self {
        if value.is_nan() { Self::INFINITE } else { Self::of(value.max(0.0)) }
    }
}

impl Delta {
    /// Never.
    pub const ZERO: Self = Self::of(0.0);
    /// Always.
    pub const ONE: Self = Self::of(1.0);

    /// An upper bound as it came out of a computation: NaN and anything above 1 become 1, a negative bound 0.
    #[must_use]
    pub fn from_upper_bound(value: f64) -> Self {
        if value.is_nan() { Self::ONE } else { Self::of(value.clamp(0.0, 1.0)) }
    }

    /// What is left of δ when a part is set aside, rounded down; `None` when the part is more than δ, and nothing can be promised.
    #[must_use]
    pub fn less(self, part: f64) -> Option<Self> {
        Self::new(sub_down(self.value, part)).ok()
    }
}

impl Rho {
    /// No loss at all.
    pub const ZERO: Self = Self::of(0.0);

    /// An upper bound as it came out of a computation; NaN becomes +∞.
    #[must_use]
    pub fn from_upper_bound(value: f64) -> Self {
        if value.is_nan() { Self::of(f64::INFINITY) } else { Self::of(value.max(0.0)) }
    }

    /// A budget as it came out of a computation, a lower bound; NaN and negative values become 0.
    #[must_use]
    pub fn from_lower_bound(value: f64) -> Self {
        Self::of(if value > 0.0 { value } else { 0.0 })
    }
}

impl Divergence {
    /// The laws are equal.
    pub const ZERO: Self = Self(0.0);
    /// Nothing is known.
    pub const INFINITE: Self = Self(f64::INFINITY);

    /// An upper bound as it came out of a computation: NaN becomes +∞, a negative bound 0.
    #[must_use]
    pub fn from_upper_bound(value: f64) -> Self {
        if value.is_nan() { Self::INFINITE } else { Self(value.max(0.0)) }
    }

    /// A sum as it is kept, rounded up.
    #[must_use]
    pub fn from_sum(sum: Amount) -> Self {
        Self(sum.to_f64_up())
    }

    /// As a limit on sums, rounded down.
    #[must_use]
    pub fn limit(self) -> Option<Amount> {
        Amount::from_f64_down(self.0)
    }

    /// The tighter of two bounds.
    #[must_use]
    pub const fn least(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// The weaker of two bounds.
    #[must_use]
    pub const fn most(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
}

/// Composition: the sum, rounded up.
impl std::ops::Add for Divergence {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(add_up(self.0, other.0))
    }
}

impl Mu {
    /// An upper bound as it came out of a computation; NaN becomes +∞.
    #[must_use]
    pub fn from_upper_bound(value: f64) -> Self {
        if value.is_nan() { Self::of(f64::INFINITY) } else { Self::of(value.max(0.0)) }
    }
}

/// Basic composition of δ: the sum, rounded up, at most 1.
impl std::ops::Add for Delta {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::from_upper_bound(add_up(self.value, other.value))
    }
}

/// Composition of zCDP bounds: the sum, rounded up.
impl std::ops::Add for Rho {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::of(add_up(self.value, other.value))
    }
}

/// Which datasets are neighbors, and so what a guarantee protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Neighbors {
    /// One record more or less.
    AddRemove,
    /// One record replaced by another.
    ReplaceOne,
    /// One record replaced by a null record that contributes nothing.
    ZeroOut,
}

impl Neighbors {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::AddRemove, Self::ReplaceOne, Self::ZeroOut];

    /// The relation as it is written on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::AddRemove => "add-remove",
            Self::ReplaceOne => "replace-one",
            Self::ZeroOut => "zero-out",
        }
    }
}

impl std::fmt::Display for Neighbors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_no_line_of_zeros() {
        let said = |value: f64| NoiseMultiplier::new(value).expect_err("outside").to_string();
        assert!(said(-1e-300).starts_with("noise_multiplier = -1e-300 is outside"), "{}", said(-1e-300));
        assert!(said(-0.0).starts_with("noise_multiplier = 0 is outside"), "{}", said(-0.0));
        assert_eq!(OutOfDomain::new("name", "-0 or 1.50", "a number").given, "-0 or 1.50");
        let tiny = Epsilon::new(1e-300).expect("an epsilon");
        assert_eq!((format!("{tiny}"), format!("{tiny:.1}")), ("1e-300".to_owned(), "0.0".to_owned()));
    }

    #[test]
    fn domains() {
        for bad in [f64::NAN, -1.0, f64::NEG_INFINITY, -f64::MIN_POSITIVE] {
            assert!(Epsilon::new(bad).is_err() && Delta::new(bad).is_err() && Rho::new(bad).is_err());
            assert!(Order::new(bad).is_err() && NoiseMultiplier::new(bad).is_err() && Mu::new(bad).is_err());
            assert!(SamplingProbability::new(bad).is_err() && BatchFraction::new(bad).is_err());
        }
        assert!(Order::new(1.0).is_err() && Order::new(f64::INFINITY).is_ok());
        assert!(NoiseMultiplier::new(0.0).is_err() && NoiseMultiplier::new(f64::INFINITY).is_err());
        assert!(Delta::new(1.0).is_ok() && Delta::new(1.0f64.next_up()).is_err());
        assert!(Count::new(0).is_err() && Count::new(Count::MAX).is_ok() && Count::new(Count::MAX + 1).is_err());
        assert!(Rho::new(-0.0).is_ok_and(|rho| rho.get().is_sign_positive()));
    }

    #[test]
    fn an_error_names_the_parameter_the_value_and_the_domain() {
        let error = SamplingProbability::new(1.5).expect_err("out of range").to_string();
        assert_eq!(error, "sampling_probability = 1.5 is outside its domain; expected 0 <= sampling_probability <= 1");
    }

    #[test]
    fn decimal_text_is_charged_exactly_and_a_double_as_the_double_it_is() {
        let tenth = Rho::from_decimal("0.1").expect("a rho");
        assert_eq!(tenth.amount().times(10), Amount::ONE);
        assert_eq!(tenth.get(), 0.1);
        assert!(Rho::new(0.1).expect("a rho").amount() > tenth.amount());
        assert_eq!(Rho::from_decimal("0.5").expect("a rho"), Rho::new(0.5).expect("a rho"));
        assert!(Rho::from_decimal("-0.1").is_err() && Rho::from_decimal("a tenth").is_err());
        assert_eq!(Delta::from_decimal("1.5").expect_err("out of range").given, "1.5");
        assert!(tenth < Rho::new(0.1).expect("a rho"));
        assert_eq!(Delta::from_decimal("0.9999999999999999999").expect("a delta"), Delta::ONE);
    }

    #[test]
    fn doubt_costs() {
        assert_eq!(Epsilon::from_upper_bound(f64::NAN), Epsilon::INFINITE);
        assert_eq!(Delta::from_upper_bound(f64::NAN), Delta::ONE);
        assert_eq!(Rho::from_lower_bound(f64::NAN), Rho::ZERO);
        let delta = Delta::new(1e-5).expect("a delta");
        assert_eq!(
            (delta.less(1e-5), delta.less(1e-5f64.next_up()), delta.less(f64::NAN)),
            (Some(Delta::ZERO), None, None)
        );
        assert!(delta.less(1e-25).is_some_and(|rest| rest < delta), "rounded down");
    }
}
