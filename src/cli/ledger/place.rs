//! A dataset of a ledger, as commands name it and runs keep it.

use super::address::Where;
use super::open::{AskError, Missing, Open};
use super::who::{HEADING, WhoArguments};
use anyhow::Context;
use clap::Args;
use paygo_ledger::Name;
use paygo_ledger::entry::{AccountName, Role};
use paygo_ledger::request::{Ask, Request, ShowDataset};
use paygo_ledger::store::Location;
use paygo_ledger::views::{AccountView, DatasetView};
use paygo_ledger::words::{BlockWord, Blocks};
use serde_json::{Value, json};

/// Which dataset of which ledger.
#[derive(Args)]
pub(crate) struct PlaceArguments {
    /// Charge this ledger: a file, postgres://user@host/database, or https://host.
    ///
    /// https://host is a service, and needs a token. Needs --dataset. See docs/ledger.md.
    #[arg(long, value_name = "FILE|URL", requires = "dataset", help_heading = HEADING)]
    ledger: Option<Where>,
    /// Name of the dataset to charge; needs --ledger
    #[arg(long, value_name = "NAME", requires = "ledger", help_heading = HEADING)]
    dataset: Option<Name>,
    /// Names of the blocks to charge, separated by commas, or `all`.
    ///
    /// Needed if the dataset has blocks, and only then.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "ledger", help_heading = HEADING)]
    blocks: Option<Vec<Name>>,
    #[command(flatten)]
    who: WhoArguments,
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
                "the token of {} is an auditor's: it can read, but not spend",
                me.holder
            );
        }
        let view = open.ask(dataset, ShowDataset).map_err(|error| open.with_known(error.into()));
        let view = view.with_context(|| format!("dataset {dataset} of {place} cannot be charged"))?;
        anyhow::ensure!(
            self.made.is_none_or(|made| made == view.at),
            "dataset {dataset} of {place} is not the one that this run charged before; it was made at another time"
        );
        let blocks = super::blocks(self.blocks.as_ref());
        anyhow::ensure!(
            view.has_blocks == blocks.is_some(),
            "{}",
            if view.has_blocks {
                format!("dataset {dataset} has blocks: give --blocks NAMES, those to be charged, or --blocks all")
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
    open: Open,
    pub(crate) dataset: DatasetView,
    /// Which blocks are touched.
    pub(crate) blocks: Option<Blocks>,
    at: String,
}

impl Place {
    /// Asks something about the dataset.
    pub(crate) fn ask<R: Request<About = Name>>(&self, request: R) -> Result<R::Answer, AskError> {
        self.open.ask(&self.dataset.name, request)
    }

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
