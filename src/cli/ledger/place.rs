//! A ledger from the command line: a file or a database that is opened, or a service that is asked.

use anyhow::Context;
use clap::Args;
use paygo_client::Client;
use paygo_ledger::entry::{AccountName, Digest, Role};
use paygo_ledger::ledger::Requester;
use paygo_ledger::store::Location;
use paygo_ledger::views::{AccountView, DatasetView, HeadView, Overview, TokenView};
use paygo_ledger::words::{
    Answer, BlockWord, Blocks, Cancel, Commit, Done, Granted, NewAllowance, NewBlocks, NewDataset, NewToken, Question,
    Reserve, Spend, WhatIf,
};
use paygo_ledger::{Ledger, LedgerError, Name};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tokio::runtime::Runtime;

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
    fn itself(&self) -> Self {
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
            let host = text.split('/').nth(2).unwrap_or_default();
            anyhow::ensure!(
                !host.contains('@'),
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

/// Which dataset of which ledger.
#[derive(Args)]
pub(crate) struct PlaceArguments {
    /// Charge this ledger: a file, postgres://user@host/database, or https://host of a service
    #[arg(long, value_name = "FILE|URL", requires = "dataset")]
    ledger: Option<Where>,
    /// Which dataset of the ledger
    #[arg(long, value_name = "NAME", requires = "ledger")]
    dataset: Option<Name>,
    /// Which blocks of the dataset, or `all`, where it has blocks
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "ledger")]
    blocks: Option<Vec<Name>>,
    #[command(flatten)]
    who: WhoArguments,
}

/// Who asks.
#[derive(Args)]
pub(crate) struct WhoArguments {
    /// Who asks: ids, reservations and allowances are theirs; a service knows by the token [default: the user of this machine]
    #[arg(long = "as", value_name = "NAME", env = "PAYGO_AS")]
    name: Option<Name>,
    /// For a service: a file with the token [default: PAYGO_TOKEN holds it]
    #[arg(long, value_name = "FILE", global = true)]
    token_file: Option<PathBuf>,
    /// For a service: a file with the certificate of its authority [default: the usual authorities]
    #[arg(long, value_name = "FILE", env = "PAYGO_CA", global = true)]
    ca: Option<PathBuf>,
}

impl WhoArguments {
    /// Whoever may write the ledger's file may do everything: no permission is asked for here.
    fn requester(&self) -> Requester {
        // Scheduled jobs and containers often have neither, but they have an owner.
        let owner = || {
            let id = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").ok()?);
            let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
            let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
            let mut named = fields.filter(|fields| fields.get(2) == Some(&id.to_string().as_str()));
            Some(named.next().map_or_else(|| format!("uid-{id}"), |fields| fields[0].to_owned()))
        };
        let user = || {
            let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok().or_else(owner)?;
            Name::new(user).ok()
        };
        let name = self.name.clone().or_else(user).unwrap_or_else(|| Name::new("somebody").expect("a name"));
        Requester { explicit_curves: true, ..Requester::new(name) }
    }

    fn client(&self, address: &str) -> anyhow::Result<Client> {
        let token = match &self.token_file {
            Some(path) => std::fs::read_to_string(path).with_context(|| path.display().to_string())?,
            None => std::env::var("PAYGO_TOKEN").map_err(|_| {
                anyhow::anyhow!("a service asks for a token: set PAYGO_TOKEN, or give --token-file FILE")
            })?,
        };
        if self.name.is_some() {
            eprintln!("note: --as is not told to a service, which knows who asks by the token");
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

impl PlaceArguments {
    /// The dataset, if a ledger was named.
    pub(crate) fn place(&self) -> anyhow::Result<Option<Place>> {
        self.named().map(|named| named.open(&self.who)).transpose()
    }

    /// The same in words, to be kept with a run.
    pub(crate) fn named(&self) -> Option<Named> {
        let (ledger, dataset) = (self.ledger.clone()?, self.dataset.clone()?);
        Some(Named { ledger, dataset, blocks: self.blocks.clone(), made: None })
    }

    /// Who asks.
    pub(crate) const fn who(&self) -> &WhoArguments {
        &self.who
    }
}

/// A dataset of a ledger, in words.
#[derive(Clone, PartialEq)]
pub(crate) struct Named {
    ledger: Where,
    dataset: Name,
    blocks: Option<Vec<Name>>,
    /// When the dataset was made, once it is known: another of that name is another.
    made: Option<u64>,
}

impl Named {
    /// Whether it is the same place, as far as both know.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.ledger.itself() == other.ledger.itself()
            && (&self.dataset, &self.blocks) == (&other.dataset, &other.blocks)
    }

    /// The same, reached as another says.
    pub(crate) fn reached_by(self, other: Self) -> Self {
        Self { ledger: other.ledger, ..self }
    }

    /// The dataset as it was opened is this one from now on.
    pub(crate) const fn keep(&mut self, place: &Place) {
        self.made = Some(place.dataset.at);
    }

    pub(crate) fn open(&self, who: &WhoArguments) -> anyhow::Result<Place> {
        let (place, dataset) = (&self.ledger, &self.dataset);
        let open = Open::new(place, who, Missing::IsAnError)?;
        if let Open::There(client) = &open {
            let me = client.me()?;
            anyhow::ensure!(
                me.role != Role::Auditor,
                "the token of {} is an auditor's: it may look, and not spend",
                me.holder
            );
        }
        let view = open.dataset(dataset).with_context(|| format!("dataset {dataset} of {place} cannot be charged"))?;
        anyhow::ensure!(
            self.made.is_none_or(|made| made == view.at),
            "dataset {dataset} of {place} is not the one that this run has charged; it was made at another time"
        );
        let blocks = super::blocks(self.blocks.as_ref());
        anyhow::ensure!(
            view.has_blocks == blocks.is_some(),
            "{}",
            if view.has_blocks {
                format!("dataset {dataset} has blocks: give --blocks NAMES, those that are touched, or --blocks all")
            } else {
                format!("dataset {dataset} is not divided into blocks; leave --blocks out")
            }
        );
        Ok(Place { open, dataset: view, blocks, at: place.to_string() })
    }

    /// To be kept with a run.
    pub(crate) fn json(&self) -> anyhow::Result<Value> {
        let ledger = match self.ledger.itself() {
            Where::Store(Location::File(path)) => {
                path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))?.to_owned()
            }
            Where::Store(Location::Postgres(url)) | Where::Service(url) => url,
        };
        Ok(json!({"ledger": ledger, "dataset": self.dataset, "blocks": self.blocks, "made": self.made}))
    }

    /// As it was kept; none where there was none.
    pub(crate) fn from_json(value: &Value) -> anyhow::Result<Option<Self>> {
        if value.is_null() {
            return Ok(None);
        }
        let ledger = value["ledger"].as_str().context("the checkpoint names no ledger")?.parse()?;
        let dataset = serde_json::from_value(value["dataset"].clone())?;
        let (blocks, made) = (serde_json::from_value(value["blocks"].clone())?, value["made"].as_u64());
        Ok(Some(Self { ledger, dataset, blocks, made }))
    }
}

/// A dataset of an open ledger, as it was when it was opened.
pub(crate) struct Place {
    pub(crate) open: Open,
    pub(crate) dataset: DatasetView,
    /// Which blocks are touched.
    pub(crate) blocks: Option<Blocks>,
    at: String,
}

impl Place {
    /// The blocks that are touched, by name.
    pub(crate) fn touched(&self) -> Option<Vec<Name>> {
        let every = || {
            let block = |account: &AccountView| match &account.account {
                AccountName::Block(name) => Some(name.clone()),
                AccountName::Dataset | AccountName::Allowance(_) => None,
            };
            self.dataset.accounts.iter().filter_map(block).collect()
        };
        self.blocks.as_ref().map(|blocks| match blocks {
            Blocks::Word(BlockWord::All) => every(),
            Blocks::These(names) => names.clone(),
        })
    }

    /// For people: `dataset sales of our.ledger`.
    pub(crate) fn told(&self) -> String {
        format!("dataset {} of {}", self.dataset.name, self.at)
    }
}

/// What to do about a ledger that is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Make it.
    IsMade,
    /// Say so.
    IsAnError,
}

/// A ledger that can be asked.
pub(crate) enum Open {
    /// Opened here, and who asks.
    Here(Here),
    /// Somewhere else.
    There(Client),
}

/// A ledger opened by this process.
pub(crate) struct Here {
    ledger: Ledger,
    who: Requester,
    runtime: Runtime,
}

impl Here {
    /// Waits for an answer.
    pub(super) fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        self.runtime.block_on(answer)
    }

    pub(super) const fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        self.runtime.block_on(self.ledger.close());
    }
}

/// Why a ledger could not be opened; nothing was asked of it yet.
pub(crate) fn opening(location: &Location, error: LedgerError) -> anyhow::Error {
    let hint = match location {
        Location::File(path) if path.is_file() => "\nhint: is this file a ledger?",
        Location::File(_) => "\nhint: is there such a folder?",
        Location::Postgres(_) => "",
    };
    match error {
        LedgerError::Unavailable(why) => anyhow::anyhow!("ledger {location} cannot be opened: {why}{hint}"),
        LedgerError::Broken(_) | LedgerError::Mistake(_) => {
            anyhow::Error::new(error).context(format!("ledger {location}"))
        }
    }
}

impl Open {
    /// A ledger in a file, made where there is none.
    pub(crate) fn file(path: &Path, who: Name) -> anyhow::Result<Self> {
        let who = WhoArguments { name: Some(who), token_file: None, ca: None };
        Self::new(&Where::Store(Location::File(path.to_owned())), &who, Missing::IsMade)
    }

    pub(super) fn new(place: &Where, who: &WhoArguments, missing: Missing) -> anyhow::Result<Self> {
        let location = match place {
            Where::Store(location) => location,
            Where::Service(address) => return Ok(Self::There(who.client(address)?)),
        };
        if let (Location::File(path), Missing::IsAnError) = (location, missing) {
            anyhow::ensure!(
                path.is_file(),
                "there is no ledger {location}\nhint: paygo ledger create makes one with its first dataset"
            );
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
        let ledger = runtime.block_on(Ledger::open(location)).map_err(|error| opening(location, error))?;
        Ok(Self::Here(Here { ledger, who: who.requester(), runtime }))
    }

    /// What needs the log itself.
    pub(super) fn here(&self) -> anyhow::Result<&Here> {
        match self {
            Self::Here(here) => Ok(here),
            Self::There(client) => {
                anyhow::bail!(
                    "this needs the log itself, not a service: do it where the file or the database of {} is\nhint: `paygo ledger backup FILE` \
                     copies its log, for `verify` too",
                    client.address()
                )
            }
        }
    }

    pub(super) fn datasets(&self) -> anyhow::Result<Vec<Overview>> {
        Ok(match self {
            Self::Here(here) => here.wait(here.ledger.overview(|_| true))?,
            Self::There(client) => client.datasets()?,
        })
    }

    pub(super) fn tokens(&self) -> anyhow::Result<Vec<TokenView>> {
        Ok(match self {
            Self::Here(here) => here.ledger.read(|state| state.tokens().map(TokenView::from).collect()),
            Self::There(client) => client.tokens()?,
        })
    }

    pub(super) fn dataset(&self, name: &Name) -> anyhow::Result<DatasetView> {
        Ok(match self {
            Self::Here(here) => here.wait(here.ledger.view(name))?,
            Self::There(client) => client.dataset(name)?,
        })
    }

    pub(super) fn head(&self) -> anyhow::Result<HeadView> {
        Ok(match self {
            Self::Here(here) => here.ledger.read(|state| HeadView::from(state)),
            Self::There(client) => client.head()?,
        })
    }

    pub(super) fn lines(&self, after: u64, most: u64) -> anyhow::Result<Vec<String>> {
        Ok(match self {
            Self::Here(here) => here.wait(here.ledger.lines(after, most))?,
            Self::There(client) => client.lines(after, most)?,
        })
    }

    pub(super) fn grant(&self, new: NewToken) -> anyhow::Result<Granted> {
        Ok(match self {
            Self::Here(here) => here.wait(here.ledger.grant(&here.who, new))?,
            Self::There(client) => client.grant(&new)?,
        })
    }

    pub(super) fn revoke(&self, hash: Digest) -> anyhow::Result<Done> {
        Ok(match self {
            Self::Here(here) => here.wait(here.ledger.revoke(&here.who, hash))?,
            Self::There(client) => client.revoke(&hash)?,
        })
    }

    pub(crate) fn create_dataset(&self, new: NewDataset) -> anyhow::Result<Done> {
        Ok(match self {
            Self::Here(here) => here.wait(here.ledger.create_dataset(&here.who, new))?,
            Self::There(client) => client.create_dataset(&new)?,
        })
    }

    pub(super) fn close_dataset(&self, dataset: &Name) -> anyhow::Result<Done> {
        Ok(match self {
            Self::Here(here) => here.wait(here.ledger.close_dataset(&here.who, dataset))?,
            Self::There(client) => client.close_dataset(dataset)?,
        })
    }
}

/// What is asked about a dataset in the same words here and there.
macro_rules! verbs {
    ($($(#[$about:meta])* $verb:ident($words:ty) -> $answer:ty;)*) => {
        impl Open {
            $($(#[$about])* pub(crate) fn $verb(&self, dataset: &Name, words: $words) -> anyhow::Result<$answer> {
                Ok(match self {
                    Self::Here(here) => here.wait(here.ledger.$verb(&here.who, dataset, words))?,
                    Self::There(client) => client.$verb(dataset, &words)?,
                })
            })*
        }
    };
}
verbs! {
    spend(Spend) -> Answer;
    reserve(Reserve) -> Answer;
    commit(Commit) -> Done;
    cancel(Cancel) -> Done;
    what_if(Question) -> WhatIf;
    add_blocks(NewBlocks) -> Done;
    set_allowance(NewAllowance) -> Done;
}
