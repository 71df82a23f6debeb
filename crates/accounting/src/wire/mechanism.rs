//! A mechanism as it is written: its word, and its fields in the family's own file.

use super::Number;
use crate::mechanism::{self, Mechanism as Checked, Single, registry};
use crate::params::OutOfDomain;
use serde::{Deserialize, Serialize};

macro_rules! words {
    ($($(#[$doc:meta])* $word:ident: $family:ident, $fields:ident;)*) => {
        /// A mechanism as it is written: `{"gaussian": {"noise_multiplier": 1.1}}`.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(no_recursion))]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        pub enum Mechanism {
            $($(#[$doc])* $family(#[cfg_attr(feature = "openapi", schema(inline))] mechanism::$fields),)*
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

        impl Mechanism {
            /// What it is made of: what it repeats, all of them, or each group's; nothing for a single mechanism.
            #[must_use]
            pub fn parts(&self) -> &[Self] {
                match self {
                    Self::Repeat { of, .. } => std::slice::from_ref(of),
                    Self::AllOf(all) | Self::Parallel(all) => all,
                    $(Self::$family(_) => &[],)*
                }
            }
        }

        impl TryFrom<&Mechanism> for Checked {
            type Error = OutOfDomain;

            /// ROUNDING: each field to the side on which the cost is not smaller; the family says which.
            fn try_from(mechanism: &Mechanism) -> Result<Self, OutOfDomain> {
                let each = |all: &[Mechanism]| all.iter().map(Self::try_from).collect::<Result<_, _>>();
                Ok(match mechanism {
                    $(Mechanism::$family(fields) => mechanism::$family::try_from(fields)?.into(),)*
                    Mechanism::Repeat { count, of } => {
                        Self::Repeat { count: count.count("count")?, of: Box::new(Self::try_from(&**of)?) }
                    }
                    Mechanism::AllOf(all) => Self::AllOf(each(all)?),
                    Mechanism::Parallel(groups) => Self::Parallel(each(groups)?),
                })
            }
        }

        impl From<&Checked> for Mechanism {
            /// As it could have been written. Read again it is the same mechanism, or one that costs a hair more: a double is
            /// read as its text, and text has at most 18 places.
            fn from(mechanism: &Checked) -> Self {
                match mechanism {
                    $(Checked::Single(Single::$family(family)) => Self::$family(family.into()),)*
                    Checked::Repeat { count, of } => {
                        Self::Repeat { count: (*count).into(), of: Box::new(Self::from(&**of)) }
                    }
                    Checked::AllOf(all) => Self::AllOf(all.iter().map(Self::from).collect()),
                    Checked::Parallel(groups) => Self::Parallel(groups.iter().map(Self::from).collect()),
                }
            }
        }
    };
}
registry!(words);
