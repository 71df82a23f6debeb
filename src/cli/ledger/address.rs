//! Where a ledger is: a file, a database, or a service.

use paygo_ledger::store::Location;
use std::str::FromStr;
use url::Url;

/// Where a ledger is.
#[derive(Clone, PartialEq)]
pub(crate) enum Where {
    /// Opened here.
    Store(Location),
    /// Kept by a service at this address.
    Service(String),
}

impl Where {
    /// The place, however it is reached: a file by its whole path, a database without a password.
    pub(super) fn itself(&self) -> Self {
        match self {
            Self::Store(Location::File(path)) => {
                Self::Store(Location::File(std::path::absolute(path).unwrap_or_else(|_| path.clone())))
            }
            Self::Store(database @ Location::Postgres(_)) => Self::Store(database.without_password()),
            Self::Service(address) => Self::Service(address.clone()),
        }
    }
}

impl FromStr for Where {
    type Err = anyhow::Error;
    fn from_str(text: &str) -> anyhow::Result<Self> {
        if text.starts_with("http://") || text.starts_with("https://") {
            let url = Url::parse(text).map_err(|error| anyhow::anyhow!("{text:?} is not an address: {error}"))?;
            anyhow::ensure!(
                url.username().is_empty() && url.password().is_none(),
                "a service is asked with a token: leave the user and password out of its address"
            );
            return Ok(Self::Service(text.to_owned()));
        }
        if text.parse::<std::net::SocketAddr>().is_ok() || text.starts_with("localhost:") {
            anyhow::bail!("{text} is an address; did you mean http://{text}, a paygo service?");
        }
        let expected = "expected a file, postgres://user@host/database, or https://host of a paygo service";
        Ok(Self::Store(text.parse().map_err(|_| anyhow::anyhow!("{text:?} is not a place for a ledger; {expected}"))?))
    }
}

impl std::fmt::Display for Where {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(location) => location.fmt(f),
            Self::Service(address) => f.write_str(address),
        }
    }
}
