//! The table of filters: each kind's name, rule and stored form, a line each.
//!
//! A kind is a [`Rule`] and how it is asked for, stored and changed ([`Kind`]), in one file. From this table come the
//! [`FilterKind`] that people write, the [`AnyRule`] that is known only at run time, and the [`StoredRule`] that files hold.

use super::{
    Approximate, Budget, Clock, FixedOrder, Gdp, Meter, Mixture, Pure, Rule, StoredClock, StoredFixedOrder, StoredGdp,
    StoredMixture, StoredPure, StoredUnion, StoredZcdp, Union, Zcdp,
};
use crate::charge::{Currency, Held, Lanes, Sums};
use crate::params::{Delta, Epsilon};
use crate::prior::Prior;
use crate::stored::LoadError;
use crate::wire::{FilterError, FilterWords};
use paygo_numeric::Amount;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How a rule is asked for, stored and changed.
pub trait Kind: Rule {
    /// What may be said beside ε and δ: the names of fields of [`FilterWords`].
    const TAKES: &'static [&'static str];
    /// Its parameters in a file.
    type Stored;

    /// The rule that was asked for.
    ///
    /// # Errors
    /// [`FilterError`] naming the field, what was given and what is allowed.
    fn from_words(words: &FilterWords) -> Result<Self, FilterError>;

    /// The same rule, with the same sums, for another budget: ε and δ, or ρ or μ where the kind takes them.
    ///
    /// # Errors
    /// [`FilterError`] naming the field, what was given and what is allowed.
    fn changed(&self, words: &FilterWords) -> Result<Self, FilterError>;

    /// Its parameters, never numbers derived from them.
    fn to_stored(&self) -> Self::Stored;

    /// The rule that was stored.
    ///
    /// # Errors
    /// [`LoadError`] when a parameter is outside its domain, or the budget serves nothing.
    fn from_stored(stored: &Self::Stored) -> Result<Self, LoadError>;
}

macro_rules! kinds {
    ($(#[doc = $help:literal] $word:literal: $rule:ident, $stored:ident;)*) => {
        /// The kinds of filters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(rename_all = "kebab-case")]
        pub enum FilterKind {
            $(#[doc = $help] $rule,)*
        }

        impl FilterKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$rule),*];

            /// Its name.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$rule => $word),* }
            }

            /// What it is for, in a line.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self { $(Self::$rule => $help.trim_ascii()),* }
            }

            /// Whether a field of [`FilterWords`] goes with it.
            pub(crate) fn takes(self, field: &str) -> bool {
                match self { $(Self::$rule => <$rule as Kind>::TAKES.contains(&field)),* }
            }

            /// The rule that was asked for.
            pub(crate) fn rule(self, words: &FilterWords) -> Result<AnyRule, FilterError> {
                match self { $(Self::$rule => $rule::from_words(words).map(AnyRule::from)),* }
            }
        }

        /// A rule whose kind is known only at run time.
        #[expect(clippy::large_enum_variant, reason = "there is one for each budget")]
        #[derive(Clone, Debug, PartialEq)]
        pub enum AnyRule {
            $(#[doc = $help] $rule($rule),)*
        }

        impl AnyRule {
            /// Its kind.
            #[must_use]
            pub const fn kind(&self) -> FilterKind {
                match self { $(Self::$rule(_) => FilterKind::$rule),* }
            }

            /// See [`Kind::changed`].
            ///
            /// # Errors
            /// [`FilterError`] naming the field, what was given and what is allowed.
            pub fn changed(&self, words: &FilterWords) -> Result<Self, FilterError> {
                match self { $(Self::$rule(rule) => rule.changed(words).map(Self::from)),* }
            }
        }

        $(impl From<$rule> for AnyRule {
            fn from(rule: $rule) -> Self {
                Self::$rule(rule)
            }
        })*

        impl Rule for AnyRule {
            fn word(&self) -> &'static str {
                self.kind().word()
            }
            fn currency(&self) -> &Arc<Currency> {
                match self { $(Self::$rule(rule) => rule.currency()),* }
            }
            fn slack(&self) -> Amount {
                match self { $(Self::$rule(rule) => rule.slack()),* }
            }
            fn after(&self, sums: &Sums, held: Option<&Held>, charge: &Lanes, times: u64) -> Sums {
                match self { $(Self::$rule(rule) => rule.after(sums, held, charge, times)),* }
            }
            fn to_hold(&self, sums: &Sums, held: Option<&Held>, charge: &Lanes) -> Held {
                match self { $(Self::$rule(rule) => rule.to_hold(sums, held, charge)),* }
            }
            fn with_held(&self, sums: &Sums, held: &Held) -> Sums {
                match self { $(Self::$rule(rule) => rule.with_held(sums, held)),* }
            }
            fn after_held(&self, sums: &Sums, held: Option<&Held>, mine: &Held, charge: &Lanes) -> Sums {
                match self { $(Self::$rule(rule) => rule.after_held(sums, held, mine, charge)),* }
            }
            fn may_follow(&self, before: &Self) -> bool {
                match (self, before) {
                    $((Self::$rule(rule), Self::$rule(before)) => rule.may_follow(before),)*
                    _ => false,
                }
            }
            fn allows(&self, lanes: &[Amount]) -> bool {
                match self { $(Self::$rule(rule) => rule.allows(lanes)),* }
            }
            fn meters(&self, lanes: &[Amount]) -> Vec<Meter> {
                match self { $(Self::$rule(rule) => rule.meters(lanes)),* }
            }
            fn promise(&self, delta: Delta) -> Epsilon {
                match self { $(Self::$rule(rule) => rule.promise(delta)),* }
            }
            fn budget(&self) -> Option<&Budget> {
                match self { $(Self::$rule(rule) => Rule::budget(rule)),* }
            }
            fn prior(&self) -> Prior {
                match self { $(Self::$rule(rule) => Rule::prior(rule)),* }
            }
        }

        /// A rule as it is stored.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        pub enum StoredRule {
            $(#[doc = $help] $rule($stored),)*
        }

        impl From<&AnyRule> for StoredRule {
            fn from(rule: &AnyRule) -> Self {
                match rule { $(AnyRule::$rule(rule) => Self::$rule(rule.to_stored())),* }
            }
        }

        impl TryFrom<&StoredRule> for AnyRule {
            type Error = LoadError;
            fn try_from(stored: &StoredRule) -> Result<Self, LoadError> {
                match stored { $(StoredRule::$rule(stored) => $rule::from_stored(stored).map(Self::from)),* }
            }
        }
    };
}

kinds! {
    /// The privacy-loss distribution as a filter: any mechanism, the tightest, the default
    "clock": Clock, StoredClock;
    /// A mixture of Rényi orders: any mechanism
    "mixture": Mixture, StoredMixture;
    /// The sum of mu squared: Gaussian noise only, and exact there
    "gdp": Gdp, StoredGdp;
    /// The sum of rho; with a slack also for approximate steps
    "zcdp": Zcdp, StoredZcdp;
    /// Pure-DP steps
    "pure": Pure, StoredPure;
    /// (epsilon, delta)-DP steps
    "approximate": Approximate, StoredPure;
    /// One Rényi order, fixed in advance
    "fixed-order": FixedOrder, StoredFixedOrder;
    /// Rényi orders that share delta
    "union": Union, StoredUnion;
}

#[expect(clippy::derivable_impls, reason = "the variants come from the table")]
impl Default for FilterKind {
    fn default() -> Self {
        Self::Clock
    }
}

impl std::str::FromStr for FilterKind {
    type Err = FilterError;
    fn from_str(word: &str) -> Result<Self, FilterError> {
        let known = Self::ALL.iter().find(|kind| kind.word() == word);
        known.copied().ok_or_else(|| FilterError::UnknownKind { given: word.to_owned(), known: names(|_| true) })
    }
}

/// The names of some kinds, as a sentence lists them.
pub(crate) fn names(which: impl Fn(FilterKind) -> bool) -> String {
    listed(FilterKind::ALL.iter().filter(|&&kind| which(kind)).map(|kind| kind.word()))
}

/// `a, b or c`.
pub(crate) fn listed<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.collect();
    match words.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}
