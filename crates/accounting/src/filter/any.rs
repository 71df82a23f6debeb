//! A rule whose kind is known only at run time: what the command line and stored filters hold.

use super::{Approximate, FixedOrder, Gdp, Meter, Mixture, Pure, Rule, Union, Zcdp};
use crate::charge::Currency;
use crate::params::{Delta, Epsilon};
use paygo_numeric::Amount;
use std::sync::Arc;

macro_rules! any_rule {
    ($($variant:ident),* $(,)?) => {
        /// Any of the rules.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AnyRule {
            $(#[doc = concat!("See [`", stringify!($variant), "`].")] $variant($variant)),*
        }

        $(impl From<$variant> for AnyRule {
            fn from(rule: $variant) -> Self {
                Self::$variant(rule)
            }
        })*

        impl Rule for AnyRule {
            fn word(&self) -> &'static str {
                match self { $(Self::$variant(rule) => rule.word()),* }
            }
            fn currency(&self) -> &Arc<Currency> {
                match self { $(Self::$variant(rule) => rule.currency()),* }
            }
            fn slack(&self) -> Amount {
                match self { $(Self::$variant(rule) => rule.slack()),* }
            }
            fn allows(&self, lanes: &[Amount]) -> bool {
                match self { $(Self::$variant(rule) => rule.allows(lanes)),* }
            }
            fn meters(&self, lanes: &[Amount]) -> Vec<Meter> {
                match self { $(Self::$variant(rule) => rule.meters(lanes)),* }
            }
            fn promise(&self, delta: Delta) -> Epsilon {
                match self { $(Self::$variant(rule) => rule.promise(delta)),* }
            }
        }
    };
}

any_rule!(Mixture, Gdp, Zcdp, Pure, Approximate, FixedOrder, Union);
