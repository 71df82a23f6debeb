//! Where a ledger is: a file, or a PostgreSQL database.

use super::StoreError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where a ledger is.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// One file, with SQLite inside.
    File(PathBuf),
    /// A PostgreSQL database, `postgres://user@host/database`.
    Postgres(String),
}

impl Location {
    /// The address for the database driver.
    pub(super) fn url(&self) -> String {
        match self {
            Self::File(path) => format!("sqlite://{}?mode=rwc", escaped(path)),
            Self::Postgres(url) => url.clone(),
        }
    }
}

impl Location {
    /// The same without a password, which is then asked for elsewhere: `PGPASSWORD`, or the file of passwords.
    #[must_use]
    pub fn without_password(&self) -> Self {
        let Self::Postgres(url) = self else { return self.clone() };
        let Some((scheme, rest)) = url.split_once("://") else { return self.clone() };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        // A password may hold anything: what follows the last @ is the place.
        let rest = match rest.rsplit_once('@') {
            Some((who, place)) => format!("{}@{place}", who.split(':').next().unwrap_or(who)),
            None => rest.to_owned(),
        };
        let query: Vec<&str> =
            query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("password=")).collect();
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        Self::Postgres(format!("{scheme}://{rest}{query}"))
    }
}

impl FromStr for Location {
    type Err = StoreError;
    fn from_str(text: &str) -> Result<Self, StoreError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        if text.is_empty() || text.contains("://") {
            return Err(StoreError::Location(format!(
                "{text:?} is not a place for a ledger; expected a file, or postgres://user@host/database"
            )));
        }
        Ok(Self::File(text.into()))
    }
}

/// Without a password.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Postgres(url) => {
                let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
                // A password may hold anything: what follows the last @ is the place.
                let rest = rest.split('?').next().unwrap_or(rest);
                write!(f, "postgres://{}", rest.rsplit_once('@').map_or(rest, |(_, place)| place))
            }
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A path inside an address.
fn escaped(path: &Path) -> String {
    let mut escaped = String::new();
    for &byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let file: Location = "a b?.ledger".parse().expect("a file");
        assert_eq!(file.url(), "sqlite://a%20b%3F.ledger?mode=rwc");
        let database: Location = "postgres://me:secret@db:5432/paygo?sslmode=require".parse().expect("a database");
        assert_eq!(
            (database.to_string(), format!("{database:?}")),
            ("postgres://db:5432/paygo".into(), "postgres://db:5432/paygo".into())
        );
        let odd: Location = "postgres://me:S3C@RET@db/paygo".parse().expect("a database");
        assert_eq!(odd.to_string(), "postgres://db/paygo");
        for (given, without) in [
            ("postgres://me:S3C@RET@db/paygo", "postgres://me@db/paygo"),
            (
                "postgresql://db/paygo?user=me&password=x&sslmode=require",
                "postgresql://db/paygo?user=me&sslmode=require",
            ),
            ("postgres://me@db/paygo?password=x", "postgres://me@db/paygo"),
        ] {
            let location: Location = given.parse().expect("a database");
            assert!(location.without_password() == Location::Postgres(without.to_owned()), "{given}");
        }
        for wrong in ["", "mysql://x", "http://127.0.0.1:8080"] {
            assert!(Location::from_str(wrong).is_err(), "{wrong}");
        }
    }
}
