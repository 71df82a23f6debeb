//! The commands of `paygo ledger`, as they are written.

use super::address::Where;
use super::who::WhoArguments;
use crate::cli::arguments::Decimal;
use crate::cli::filter::FilterArguments;
use crate::cli::suggest::did_you_mean;
use clap::{Args, Subcommand, ValueEnum};
use paygo_accounting::wire::Mechanism;
use paygo_ledger::entry::{Digest, Role};
use paygo_ledger::{Name, Note, RequestId};
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "A ledger is one file, made with its first dataset, or a PostgreSQL database. Every decision \
    is durable before it is answered. A retry with the same id gets the first answer and is charged once. Whoever \
    can write the file can do everything.\n\n\
    Exit codes: 0 done or admitted, 1 refused, 2 something was wrong. With 1 and 2 nothing was charged, unless the \
    message says so.\n\n\
    Examples:\n  \
    paygo ledger --ledger our.ledger create sales --epsilon 3 --delta 1e-6 \\\n      \
    --privacy-unit customer\n  \
    paygo ledger --ledger our.ledger spend sales q1 \\\n      \
    '{\"gaussian\": {\"noise_multiplier\": 10}}'\n  \
    paygo ledger --ledger our.ledger show sales\n  \
    paygo ledger --ledger our.ledger verify\n\n\
    See docs/ledger.md for what is promised.",
    mut_args(|argument| argument.global(true).help_heading("Options of every ledger command")))]
pub(crate) struct Arguments {
    /// The ledger: a file, postgres://user@host/database, or https://host of a service
    #[arg(long, value_name = "FILE|URL", env = "PAYGO_LEDGER")]
    pub(super) ledger: Option<Where>,
    #[command(flatten)]
    pub(super) who: WhoArguments,
    /// Answer in JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Subcommand)]
pub(super) enum Command {
    /// Make a dataset with a budget, which cannot be changed later.
    Create(Box<CreateArguments>),
    /// Add blocks to a dataset, each with the whole budget.
    AddBlocks {
        /// Name of the dataset
        dataset: Name,
        /// Names of the new blocks
        #[arg(required = true)]
        blocks: Vec<Name>,
    },
    /// Set an allowance: a ceiling for some of those who ask.
    Allow(AllowArguments),
    /// Close a dataset: nothing more is admitted.
    Close {
        /// Name of the dataset
        dataset: Name,
    },
    /// Ask to run a mechanism; if admitted, it is charged at once.
    Spend(SpendArguments),
    /// Reserve budget for a mechanism, to be committed or cancelled later.
    ///
    /// A reservation is charged from the moment it is admitted. One that expires stays charged.
    Reserve {
        #[command(flatten)]
        spend: SpendArguments,
        /// Seconds in which it can be cancelled, at most 604800 [default: 3600]
        #[arg(long, value_name = "SECONDS")]
        expires_in: Option<u64>,
    },
    /// Say how much of a reservation was used.
    Commit {
        /// Name of the dataset
        dataset: Name,
        /// Id of the reservation
        id: RequestId,
        /// How many of the outermost `repeat` were used so far [default: all]
        ///
        /// Without it, everything was used, and the reservation is closed.
        #[arg(long)]
        used: Option<u64>,
    },
    /// Give back the unused part of a reservation.
    Cancel {
        /// Name of the dataset
        dataset: Name,
        /// Id of the reservation
        id: RequestId,
        /// Confirm that nothing was drawn beyond what was committed; required
        #[arg(long)]
        nothing_drawn: bool,
    },
    /// Show what would be answered now; nothing is charged.
    WhatIf(WhatIfArguments),
    /// Show all datasets, or one: what is spent, left and reserved, and by whom.
    Show {
        /// Name of the dataset [default: a line for each]
        dataset: Option<Name>,
    },
    /// Show the log, newest entry last.
    History {
        /// Name of the dataset [default: all]
        dataset: Option<Name>,
        /// Number of entries to show
        #[arg(long, default_value_t = 20, value_name = "N")]
        last: usize,
    },
    /// Grant a token for the service; it is shown once.
    Grant(GrantArguments),
    /// List the tokens that were granted, by their hashes.
    Tokens,
    /// Revoke a token.
    Revoke {
        /// Hash of the token, or its first digits; `paygo ledger tokens` lists them
        hash: String,
    },
    /// Check the log: every link of its hash chain, and every balance.
    ///
    /// Balances are derived from the log again, by other code than the code that decides.
    Verify {
        /// Entry that must be in the log, as NUMBER:DIGEST; may be given several times.
        ///
        /// NUMBER and DIGEST are the `entry` and the `receipt` of an answer.
        #[arg(long, value_name = "NUMBER:DIGEST", value_parser = receipt)]
        receipt: Vec<(u64, Digest)>,
        /// Also compute every price again: none may be below what its mechanism costs
        #[arg(long)]
        prices: bool,
    },
    /// Write the log to standard output, as JSON lines.
    Export,
    /// Make a new ledger from an exported log.
    ///
    /// Every link and every budget is checked. If one is wrong, nothing is imported.
    Import {
        /// The exported log; - reads standard input
        log: PathBuf,
    },
    /// Copy the ledger into a new ledger file, also while it is in use.
    Backup {
        /// The new file; it must not exist yet
        file: PathBuf,
    },
}

#[derive(Args)]
pub(super) struct CreateArguments {
    /// Name of the new dataset
    pub(super) dataset: Name,
    #[command(flatten)]
    pub(super) filter: FilterArguments,
    /// Names of blocks, disjoint parts of the data, each with the whole budget
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) blocks: Option<Vec<Name>>,
    /// Delta at which the odometer is read [default: the budget's, or 1e-6]
    #[arg(long, value_name = "DELTA")]
    pub(super) reading_delta: Option<Decimal>,
}

#[derive(Args)]
pub(super) struct AllowArguments {
    /// Name of the dataset
    pub(super) dataset: Name,
    /// Name of the allowance
    pub(super) allowance: Name,
    /// Names of those whose requests count against it, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', required = true)]
    pub(super) members: Vec<Name>,
    /// Epsilon of the allowance, at least 0
    #[arg(long)]
    pub(super) epsilon: Option<Decimal>,
    /// Delta of the allowance, 0 <= delta < 1 [default: the dataset's]
    #[arg(long)]
    pub(super) delta: Option<Decimal>,
    /// Rho of the allowance, for a dataset of the kind zcdp
    #[arg(long)]
    pub(super) rho: Option<Decimal>,
    /// Mu of the allowance, for a dataset of the kind gdp
    #[arg(long)]
    pub(super) mu: Option<Decimal>,
}

#[derive(Args)]
pub(super) struct SpendArguments {
    /// Name of the dataset
    pub(super) dataset: Name,
    /// Id of the request, of your choice.
    ///
    /// A retry with the same id gets the first answer and is not charged again. Another request needs another id.
    pub(super) id: RequestId,
    /// The mechanism, in JSON, such as '{"gaussian": {"noise_multiplier": 10}}'.
    ///
    /// Numbers with 16 or more digits should be in quotes. See docs/methods.md for the mechanisms.
    #[arg(value_parser = mechanism)]
    pub(super) mechanism: Mechanism,
    /// Names of the blocks to charge, separated by commas, or `all`.
    ///
    /// Needed if the dataset has blocks, and only then.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) blocks: Option<Vec<Name>>,
    /// Note for readers of the log, at most 256 bytes
    #[arg(long)]
    pub(super) note: Option<Note>,
}

#[derive(Args)]
pub(super) struct WhatIfArguments {
    /// Name of the dataset
    pub(super) dataset: Name,
    /// The mechanism, in JSON, such as '{"gaussian": {"noise_multiplier": 10}}'.
    ///
    /// Numbers with 16 or more digits should be in quotes. See docs/methods.md for the mechanisms.
    #[arg(value_parser = mechanism, required_unless_present = "plan")]
    pub(super) mechanism: Option<Mechanism>,
    /// A plan instead of one mechanism, in TOML or JSON: its releases, one after another.
    ///
    /// A plan of at most 65 different releases, each as often as it says.
    #[arg(long, value_name = "FILE", conflicts_with = "mechanism")]
    pub(super) plan: Option<PathBuf>,
    /// Names of the blocks to charge, separated by commas, or `all`.
    ///
    /// Needed if the dataset has blocks, and only then.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) blocks: Option<Vec<Name>>,
}

#[derive(Args)]
pub(super) struct GrantArguments {
    /// Name of the person or program that gets the token
    pub(super) holder: Name,
    /// What the token allows
    #[arg(long, value_enum)]
    pub(super) role: RoleArgument,
    /// Names of the datasets it is for, separated by commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) datasets: Option<Vec<Name>>,
    /// Also allow explicit Rényi curves, which the ledger cannot check
    #[arg(long)]
    pub(super) explicit_curves: bool,
    /// Days until the token expires, at least 1 [default: never]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) expires_in_days: Option<u32>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum RoleArgument {
    /// Everything, also new datasets and tokens
    Admin,
    /// What spenders may, and blocks, allowances and closing
    Steward,
    /// Spend, reserve, commit, cancel and read
    Spender,
    /// Read, also the log
    Auditor,
}

impl From<RoleArgument> for Role {
    fn from(role: RoleArgument) -> Self {
        match role {
            RoleArgument::Admin => Self::Admin,
            RoleArgument::Steward => Self::Steward,
            RoleArgument::Spender => Self::Spender,
            RoleArgument::Auditor => Self::Auditor,
        }
    }
}

fn mechanism(text: &str) -> Result<Mechanism, String> {
    serde_json::from_str(text).map_err(|error| {
        let said = error.to_string();
        let meant = did_you_mean(&said).map(|meant| format!("; {meant}")).unwrap_or_default();
        let shape = r#"'{"gaussian": {"noise_multiplier": 10}}'"#;
        let hint = if error.is_data() { meant } else { format!("; expected JSON such as {shape}") };
        format!("{said}{hint}")
    })
}

fn receipt(text: &str) -> Result<(u64, Digest), String> {
    let wrong = || "expected NUMBER:DIGEST: the entry and the receipt of an answer".to_owned();
    let (number, digest) = text.split_once(':').ok_or_else(wrong)?;
    Ok((number.parse().map_err(|_| wrong())?, digest.parse().map_err(|_| wrong())?))
}
