//! What is wrong with a request: the caller's mistake, about which nothing was written and nothing charged.

use crate::names::{Name, RequestId};
use paygo_accounting::charge::Unpriced;
use paygo_accounting::cost::CostError;
use paygo_accounting::params::OutOfDomain;
use paygo_accounting::wire::FilterError;

/// How a reservation ended.
pub(crate) const COMMITTED: &str = "committed; what it holds stays charged";
pub(crate) const CANCELLED: &str = "cancelled; what was not used of it is free again";
pub(crate) const EXPIRED: &str = "left to expire; what it holds stays charged";

/// A request that is not one. Nothing was charged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Mistake {
    /// There is none of that name.
    #[error("there is no dataset {0}")]
    UnknownDataset(Name),
    /// There is one of that name, and it is another.
    #[error("dataset {0} is there already, made otherwise; a budget is fixed for good, so take another name")]
    DatasetExists(Name),
    /// On a clock what was spent was paid for what was then left.
    #[error(
        "allowance {allowance} has a clock of epsilon {epsilon}, which can be raised but not lowered; give its members another one"
    )]
    LowerCeiling {
        /// Which.
        allowance: Name,
        /// What it has.
        epsilon: String,
    },
    /// It admits nothing any more.
    #[error("dataset {0} is closed")]
    Closed(Name),
    /// There is no such block.
    #[error("dataset {dataset} has no block {block}")]
    UnknownBlock {
        /// Where.
        dataset: Name,
        /// Which.
        block: Name,
    },
    /// A request must say which blocks it touches.
    #[error("dataset {0} has blocks; expected \"blocks\": a list of those that the request touches, or \"all\"")]
    BlocksNeeded(Name),
    /// There are none.
    #[error("dataset {0} is not divided into blocks; leave \"blocks\" out")]
    NoBlocks(Name),
    /// A request that touches nothing.
    #[error("blocks is empty; expected at least one block")]
    EmptyBlocks,
    /// The id is taken.
    #[error("id {0} was used before, for another request; a new request needs a new id")]
    IdUsed(RequestId),
    /// What only the client could know to be true.
    #[error("an explicit Rényi curve cannot be checked; it needs a permission of its own (explicit_curves)")]
    ExplicitCurve,
    /// There is none of that name.
    #[error("there is no reservation {0} of yours in this dataset")]
    UnknownReservation(RequestId),
    /// It is over.
    #[error("reservation {id} was {how}")]
    ReservationClosed {
        /// Which.
        id: RequestId,
        /// How it ended.
        how: &'static str,
    },
    /// More was used than reserved, or less than before.
    #[error("used = {given}; expected at least {least}, which was said before, and at most {most}, which was reserved")]
    Used {
        /// What was said.
        given: u64,
        /// What was said before.
        least: u64,
        /// What was reserved.
        most: u64,
    },
    /// Another word about it came first.
    #[error("more of reservation {0} was used meanwhile; ask again")]
    UsedMeanwhile(RequestId),
    /// Only the holder's word frees anything.
    #[error("a reservation is cancelled only on its holder's word: expected \"nothing_drawn\": true")]
    NothingDrawn,
    /// There is none.
    #[error("there is no such token")]
    UnknownToken,
    /// Whoever asked may no longer.
    #[error("the token was revoked, or has expired")]
    TokenGone,
    /// A limit of the ledger.
    #[error("{given} {what}; expected at most {most}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        given: usize,
        /// How many there may be.
        most: usize,
    },
    /// A mechanism that is not one, or not under the dataset's neighbors.
    #[error(transparent)]
    Cost(#[from] CostError),
    /// A mechanism without a price in the dataset's currency.
    #[error(transparent)]
    Unpriced(#[from] Unpriced),
    /// A filter that is not one.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// A parameter outside its domain.
    #[error(transparent)]
    OutOfDomain(#[from] OutOfDomain),
}

impl Mistake {
    /// The word for a dataset that is not there.
    pub const UNKNOWN_DATASET: &str = "unknown_dataset";
    /// The word for a reservation that is over.
    pub const RESERVATION_CLOSED: &str = "reservation_closed";

    /// A word for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::UnknownDataset(_) => Self::UNKNOWN_DATASET,
            Self::DatasetExists(_) => "dataset_exists",
            Self::Closed(_) => "dataset_closed",
            Self::LowerCeiling { .. } => "lower_ceiling",
            Self::UnknownBlock { .. } => "unknown_block",
            Self::BlocksNeeded(_) => "blocks_needed",
            Self::NoBlocks(_) => "no_blocks",
            Self::EmptyBlocks => "empty_blocks",
            Self::IdUsed(_) => "id_used",
            Self::ExplicitCurve => "explicit_curve",
            Self::UnknownReservation(_) => "unknown_reservation",
            Self::ReservationClosed { .. } => Self::RESERVATION_CLOSED,
            Self::Used { .. } => "used",
            Self::NothingDrawn => "nothing_drawn",
            Self::UnknownToken => "unknown_token",
            Self::TokenGone => "unauthenticated",
            Self::UsedMeanwhile(_) => "used_meanwhile",
            Self::TooMany { .. } => "too_many",
            Self::Cost(_) | Self::OutOfDomain(_) => "out_of_domain",
            Self::Unpriced(_) => "unpriced",
            Self::Filter(_) => "filter",
        }
    }
}
