//! Families with one number that is charged as it stands.

/// The parameters of a family, how it is made and what it is on the wire, where all of that is one number.
macro_rules! one_number {
    ($(#[$doc:meta])* $family:ident, $fields:ident, $name:ident: $parameter:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
        pub struct $family {
            /// Its number.
            pub $name: crate::params::$parameter,
        }

        impl $family {
            /// With this number.
            ///
            /// # Errors
            /// [`OutOfDomain`](crate::params::OutOfDomain) when it is negative or NaN.
            pub fn new($name: f64) -> Result<Self, crate::params::OutOfDomain> {
                Ok(Self { $name: crate::params::$parameter::new($name)? })
            }
        }

        /// One number.
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(deny_unknown_fields)]
        pub struct $fields {
            /// The number.
            pub $name: crate::wire::Number,
        }

        impl TryFrom<&$fields> for $family {
            type Error = crate::params::OutOfDomain;
            fn try_from(fields: &$fields) -> Result<Self, crate::params::OutOfDomain> {
                use crate::params::$parameter;
                let $name = fields.$name.charged(stringify!($name), $parameter::new, $parameter::from_decimal)?;
                Ok(Self { $name })
            }
        }

        impl From<&$family> for $fields {
            fn from(family: &$family) -> Self {
                Self { $name: crate::wire::Number::charge(family.$name.get(), family.$name.exact()) }
            }
        }
    };
}
pub(super) use one_number;
