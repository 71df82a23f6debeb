//! Who asks a ledger: the user of this machine, or the holder of a token.

use anyhow::Context;
use clap::Args;
use paygo_client::Client;
use paygo_ledger::Name;
use paygo_ledger::ledger::Requester;
use std::path::PathBuf;

/// Where options about a ledger stand in the help of a command that can do without one.
pub(super) const HEADING: &str = "Options of a shared ledger";

/// Who asks.
#[derive(Args)]
pub(crate) struct WhoArguments {
    /// Name of whoever asks [default: the user of this machine]
    ///
    /// Ids, reservations and allowances belong to this name. A service takes the name from the token instead.
    #[arg(long = "as", value_name = "NAME", env = "PAYGO_AS", help_heading = HEADING)]
    name: Option<Name>,
    /// For a service: file with the token [default: the variable PAYGO_TOKEN]
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    token_file: Option<PathBuf>,
    /// For a service: file with the certificate of its authority, in PEM.
    ///
    /// By default, the public authorities are trusted.
    #[arg(long, value_name = "FILE", env = "PAYGO_CA", help_heading = HEADING)]
    ca: Option<PathBuf>,
}

impl WhoArguments {
    /// Somebody by name, for a ledger of this machine.
    pub(super) const fn named(name: Name) -> Self {
        Self { name: Some(name), token_file: None, ca: None }
    }

    /// Whoever may write the ledger's file may do everything: no permission is asked for here.
    pub(super) fn requester(&self) -> Requester {
        // Scheduled jobs and containers often have no name in their environment, but they have an owner.
        let owner = || {
            let id = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").ok()?);
            Some(whoami::username().unwrap_or_else(|_| format!("uid-{id}")))
        };
        let user = || {
            let named = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok();
            Name::new(named.or_else(owner)?).ok()
        };
        let name = self.name.clone().or_else(user).unwrap_or_else(|| Name::new("somebody").expect("a name"));
        Requester { explicit_curves: true, ..Requester::new(name) }
    }

    pub(super) fn client(&self, address: &str) -> anyhow::Result<Client> {
        let token = match &self.token_file {
            Some(path) => std::fs::read_to_string(path).with_context(|| path.display().to_string())?,
            None => std::env::var("PAYGO_TOKEN")
                .map_err(|_| anyhow::anyhow!("a service needs a token: set PAYGO_TOKEN, or give --token-file FILE"))?,
        };
        if self.name.is_some() {
            eprintln!("note: --as is ignored: a service knows from the token who asks");
        }
        Ok(match &self.ca {
            Some(path) => {
                let pem = std::fs::read(path).with_context(|| path.display().to_string())?;
                Client::with_authority(address, token, &pem)?
            }
            None => Client::new(address, token)?,
        })
    }
}
