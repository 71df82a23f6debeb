//! What things are called: checked once, so that they fit into addresses, files and pages as they are. Cheap to clone: every
//! request has some, and every entry holds them.

use paygo_accounting::params::OutOfDomain;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// The name of a dataset, a block, an allowance, a token or whoever asks.
///
/// ```
/// use paygo_ledger::Name;
/// assert!(Name::new("sales-2026.q4").is_ok());
/// assert!(Name::new("../etc").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = String, min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._@-]*$"))]
#[serde(try_from = "String")]
pub struct Name(Arc<str>);

impl Name {
    /// The longest name.
    pub const MAX_BYTES: usize = 64;

    /// # Errors
    /// [`OutOfDomain`] when it is empty, too long, begins with a dot or a dash, or has a character that names do not have.
    pub fn new(name: impl Into<String>) -> Result<Self, OutOfDomain> {
        let name = name.into();
        let fits = (1..=Self::MAX_BYTES).contains(&name.len())
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-@".contains(c));
        if fits {
            return Ok(Self(name.into()));
        }
        let allowed = "1 to 64 of the letters a-z, A-Z, 0-9, '.', '_', '-', '@', the first a letter or digit";
        Err(OutOfDomain::new("name", format!("{:?}", shortened(&name)), allowed))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The id that a client makes for a request and keeps: a retry with the same id hears the first answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = String, min_length = 1, max_length = 128))]
#[serde(try_from = "String")]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// The longest id.
    pub const MAX_BYTES: usize = 128;

    /// # Errors
    /// [`OutOfDomain`] when it is empty, longer than 128 bytes, or has a control character.
    pub fn new(id: impl Into<String>) -> Result<Self, OutOfDomain> {
        let id = id.into();
        if (1..=Self::MAX_BYTES).contains(&id.len()) && !id.chars().any(char::is_control) {
            return Ok(Self(id.into()));
        }
        Err(OutOfDomain::new("id", format!("{:?}", shortened(&id)), "1 to 128 bytes without control characters"))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a request was for, in a few words for those who read the log.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = String, max_length = 256))]
#[serde(try_from = "String")]
pub struct Note(Arc<str>);

impl Note {
    /// # Errors
    /// [`OutOfDomain`] when it is longer than 256 bytes or has a control character.
    pub fn new(note: impl Into<String>) -> Result<Self, OutOfDomain> {
        let note = note.into();
        if note.len() <= 256 && !note.chars().any(char::is_control) {
            return Ok(Self(note.into()));
        }
        Err(OutOfDomain::new("note", format!("{:?}", shortened(&note)), "at most 256 bytes without control characters"))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

macro_rules! text {
    ($($name:ident),*) => {$(
        impl TryFrom<String> for $name {
            type Error = OutOfDomain;
            fn try_from(text: String) -> Result<Self, OutOfDomain> {
                Self::new(text)
            }
        }
        impl std::str::FromStr for $name {
            type Err = OutOfDomain;
            fn from_str(text: &str) -> Result<Self, OutOfDomain> {
                Self::new(text)
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}
text!(Name, RequestId, Note);
