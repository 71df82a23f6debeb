//! Everything that can be asked of a ledger, in one table: the store answers it, the service serves it, the client sends it.

use crate::entry::{Digest, Role};
use crate::names::Name;
use crate::state::Mistake;
use crate::views::{DatasetView, DecisionView, HeadView, Overview, TokenView};
use crate::words::{
    Answer, Cancel, Commit, Done, Granted, NewAllowance, NewBlocks, NewDataset, NewToken, Question, Reserve, Spend,
    WhatIf,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
#[cfg(feature = "store")]
use {
    crate::ledger::{Ledger, LedgerError},
    crate::state::Requester,
};

/// Asks a ledger and waits for the answer, wherever the ledger is.
///
/// ```no_run
/// # use paygo_ledger::request::{Ask, ShowDataset};
/// # use paygo_ledger::words::{Spend, Decision};
/// # fn example(ledger: &impl Ask, spend: Spend) -> Result<(), Box<dyn std::error::Error>> {
/// let sales = "sales".parse()?;
/// if ledger.ask(&sales, spend)?.decision == Decision::Admit {
///     println!("{:?}", ledger.ask(&sales, ShowDataset)?.accounts);
/// }
/// # Ok(()) }
/// ```
pub trait Ask {
    /// Why there is no answer.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The answer to a request about something.
    ///
    /// # Errors
    /// When it is not a request, is not allowed, or nobody answers.
    fn ask<R: Request>(&self, about: &R::About, request: R) -> Result<R::Answer, Self::Error>;

    /// At most `limit` lines of the log after an entry.
    ///
    /// # Errors
    /// When it is not allowed, or nobody answers.
    fn lines(&self, after: u64, limit: u64) -> Result<Vec<String>, Self::Error>;
}

/// Asks a ledger and lets others work meanwhile; otherwise as [`Ask`].
pub trait AskAsync {
    /// Why there is no answer.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The answer to a request about something.
    fn ask<R: Request>(
        &self,
        about: &R::About,
        request: R,
    ) -> impl Future<Output = Result<R::Answer, Self::Error>> + Send;

    /// At most `limit` lines of the log after an entry.
    fn lines(&self, after: u64, limit: u64) -> impl Future<Output = Result<Vec<String>, Self::Error>> + Send;
}

/// Something that can be asked. The table at the end of this file has all of them.
pub trait Request: Serialize + Send + Sync + Sized + 'static {
    /// What it is called: `spend`.
    const NAME: &'static str;
    /// What it does, in a sentence.
    const SENTENCE: &'static str;
    /// How it is asked over HTTP.
    const METHOD: Method;
    /// Where it is asked over HTTP; what it is about stands in braces.
    const PATH: &'static str;
    /// Who may ask.
    const NEEDS: Needs;
    /// Whether it has words of its own, which are the body of the request.
    const HAS_WORDS: bool;
    /// What it is about.
    type About: Subject;
    /// What is answered.
    type Answer: Serialize + DeserializeOwned + Send + 'static;

    /// The request in a body.
    ///
    /// # Errors
    /// When the body is not one.
    fn from_body(body: &[u8]) -> Result<Self, serde_json::Error>;

    /// The answer of an open ledger.
    #[cfg(feature = "store")]
    fn answer(
        self,
        ledger: &Ledger,
        by: &Requester,
        about: &Self::About,
    ) -> impl Future<Output = Result<Self::Answer, LedgerError>> + Send;

    /// How its subject, words and answer look, for a description of the API.
    #[cfg(feature = "openapi")]
    fn described() -> Described;
}

/// A method of HTTP, and whether a request whose answer got lost may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Changes nothing.
    Get,
    /// Asks for something; asked again, it hears the first answer.
    Post,
    /// `POST`, never sent again by itself: asked again, it would do something else.
    PostOnce,
    /// Takes something away; asked again, there is nothing left to take away.
    Delete,
}

impl Method {
    /// As HTTP writes it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post | Self::PostOnce => "POST",
            Self::Delete => "DELETE",
        }
    }

    /// Whether it may be sent again when no answer came.
    #[must_use]
    pub const fn is_repeatable(self) -> bool {
        matches!(self, Self::Get | Self::Post)
    }
}

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Any token; what it is not about is left out of the answer.
    AnyToken,
    /// A token about the dataset.
    Look,
    /// A spender, steward or admin of the dataset.
    Spend,
    /// A steward or admin of the dataset.
    Keep,
    /// An admin of all datasets.
    Administer,
    /// An auditor or admin of all datasets.
    Audit,
}

impl Needs {
    /// Whether a role is enough; what the token is about is another question.
    #[must_use]
    pub const fn allows(self, role: Role) -> bool {
        match self {
            Self::AnyToken | Self::Look => true,
            Self::Spend => matches!(role, Role::Admin | Role::Steward | Role::Spender),
            Self::Keep => matches!(role, Role::Admin | Role::Steward),
            Self::Administer => matches!(role, Role::Admin),
            Self::Audit => matches!(role, Role::Admin | Role::Auditor),
        }
    }

    /// Whether the token must be about all datasets.
    #[must_use]
    pub const fn is_everywhere(self) -> bool {
        matches!(self, Self::Administer | Self::Audit)
    }

    /// For whoever was refused.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::AnyToken | Self::Look => "it is not about this dataset",
            Self::Spend => "to spend takes a spender, steward or admin",
            Self::Keep => "this takes a steward or admin",
            Self::Administer => "this takes an admin of all datasets",
            Self::Audit => "this takes an auditor or admin of all datasets",
        }
    }
}

/// What a request is about: a dataset by its name, a token by its hash, or the ledger as a whole.
pub trait Subject: std::fmt::Debug + Clone + Send + Sync + Sized + 'static {
    /// What stands in braces in a path, if anything.
    const PLACEHOLDER: Option<&'static str>;

    /// What a path says in that place.
    ///
    /// # Errors
    /// [`Mistake`] when it names nothing.
    fn from_path(text: &str) -> Result<Self, Mistake>;

    /// What a path says in that place.
    fn in_path(&self) -> String;

    /// The dataset, if it is one.
    fn dataset(&self) -> Option<&Name>;

    /// What it looks like in a path, for a description of the API.
    #[cfg(feature = "openapi")]
    fn described(components: &mut Vec<(String, Schema)>) -> Option<Schema>;
}

impl Subject for () {
    const PLACEHOLDER: Option<&'static str> = None;
    fn from_path(_: &str) -> Result<Self, Mistake> {
        Ok(())
    }
    fn in_path(&self) -> String {
        String::new()
    }
    fn dataset(&self) -> Option<&Name> {
        None
    }
    #[cfg(feature = "openapi")]
    fn described(_: &mut Vec<(String, Schema)>) -> Option<Schema> {
        None
    }
}

impl Subject for Name {
    const PLACEHOLDER: Option<&'static str> = Some("dataset");
    fn from_path(text: &str) -> Result<Self, Mistake> {
        Ok(Self::new(text)?)
    }
    fn in_path(&self) -> String {
        self.to_string()
    }
    fn dataset(&self) -> Option<&Name> {
        Some(self)
    }
    #[cfg(feature = "openapi")]
    fn described(components: &mut Vec<(String, Schema)>) -> Option<Schema> {
        Some(reference::<Self>(components))
    }
}

impl Subject for Digest {
    const PLACEHOLDER: Option<&'static str> = Some("hash");
    fn from_path(text: &str) -> Result<Self, Mistake> {
        text.parse().map_err(|_| Mistake::UnknownToken)
    }
    fn in_path(&self) -> String {
        self.to_string()
    }
    fn dataset(&self) -> Option<&Name> {
        None
    }
    #[cfg(feature = "openapi")]
    fn described(components: &mut Vec<(String, Schema)>) -> Option<Schema> {
        Some(reference::<Self>(components))
    }
}

/// Does something with every kind of request.
pub trait Visit {
    /// One kind.
    fn visit<R: Request>(&mut self);
}

/// Where a request is sent.
#[must_use]
pub fn path<R: Request>(about: &R::About) -> String {
    match R::About::PLACEHOLDER {
        Some(placeholder) => R::PATH.replace(&format!("{{{placeholder}}}"), &about.in_path()),
        None => R::PATH.to_owned(),
    }
}

/// The parts of a description of a request.
#[cfg(feature = "openapi")]
pub struct Described {
    /// What it is about, where that stands in its path.
    pub about: Option<Schema>,
    /// The words, where it has any.
    pub words: Option<Schema>,
    /// The answer.
    pub answer: Schema,
    /// The types that these refer to, by name.
    pub components: Vec<(String, Schema)>,
}

/// How a type looks, or what it is called.
#[cfg(feature = "openapi")]
pub type Schema = utoipa::openapi::RefOr<utoipa::openapi::Schema>;

/// A type by its name; it and what it refers to become known.
#[cfg(feature = "openapi")]
fn reference<T: utoipa::ToSchema>(components: &mut Vec<(String, Schema)>) -> Schema {
    components.push((T::name().into_owned(), T::schema()));
    T::schemas(components);
    utoipa::openapi::Ref::from_schema_name(T::name()).into()
}

/// A line of the table: what it does; its name, words (`struct` makes a type for one without words) and subject; method and path; who may
/// ask; the answer (in brackets for a list); and how an open ledger answers.
macro_rules! requests {
    ($($(#[doc = $sentence:literal])+
        fn $name:ident($($words:tt)+) on $About:ty,
        $method:ident $path:literal, $needs:ident -> $answer:tt
        |$ledger:ident, $by:ident, $about:ident, $request:pat_param| $how:expr;)*) => { $(
        requests!(@declare [$($sentence)+] $($words)+);
        impl Request for requests!(@type $($words)+) {
            const NAME: &'static str = stringify!($name);
            const SENTENCE: &'static str = concat!($($sentence),+).trim_ascii();
            const METHOD: Method = Method::$method;
            const PATH: &'static str = $path;
            const NEEDS: Needs = Needs::$needs;
            const HAS_WORDS: bool = requests!(@has_words $($words)+);
            type About = $About;
            type Answer = requests!(@answer $answer);

            fn from_body(body: &[u8]) -> Result<Self, serde_json::Error> {
                requests!(@read body, $($words)+)
            }

            #[cfg(feature = "store")]
            async fn answer(self, $ledger: &Ledger, $by: &Requester, $about: &$About) -> Result<Self::Answer, LedgerError> {
                let $request = self;
                $how
            }

            #[cfg(feature = "openapi")]
            fn described() -> Described {
                let mut components = Vec::new();
                let about = <$About as Subject>::described(&mut components);
                let words = requests!(@described components, $($words)+);
                let answer = requests!(@list components, $answer);
                Described { about, words, answer, components }
            }
        }
    )*
        /// Visits every kind of request, in the order of the table.
        pub fn visit_all(visitor: &mut impl Visit) {
            $(visitor.visit::<requests!(@type $($words)+)>();)*
        }
    };
    (@declare [$($sentence:literal)+] struct $Words:ident) => {
        $(#[doc = $sentence])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        pub struct $Words;
    };
    (@declare [$($sentence:literal)+] $Words:ident) => {};
    (@type struct $Words:ident) => { $Words };
    (@type $Words:ident) => { $Words };
    (@has_words struct $Words:ident) => { false };
    (@has_words $Words:ident) => { true };
    (@read $body:ident, struct $Words:ident) => {{
        let _ = $body;
        Ok($Words)
    }};
    (@read $body:ident, $Words:ident) => { serde_json::from_slice($body) };
    (@described $components:ident, struct $Words:ident) => { None };
    (@described $components:ident, $Words:ident) => { Some(reference::<$Words>(&mut $components)) };
    (@answer [$One:ty]) => { Vec<$One> };
    (@answer $One:ty) => { $One };
    (@list $components:ident, [$One:ty]) => {
        utoipa::openapi::schema::ArrayBuilder::new().items(reference::<$One>(&mut $components)).into()
    };
    (@list $components:ident, $One:ty) => { reference::<$One>(&mut $components) };
}

requests! {
    /// All datasets that the token is about, in short.
    fn list_datasets(struct ListDatasets) on (), Get "/v1/datasets", AnyToken -> [Overview]
        |ledger, by, _about, Self| ledger.overview(ledger.covered(by)).await;
    /// Make a dataset with a budget, fixed for good.
    fn create_dataset(NewDataset) on (), Post "/v1/datasets", Administer -> Done
        |ledger, by, _about, new| ledger.create_dataset(by, new).await;
    /// A dataset: what is spent, left and held, by whom, and over time.
    fn show_dataset(struct ShowDataset) on Name, Get "/v1/datasets/{dataset}", Look -> DatasetView
        |ledger, _by, dataset, Self| ledger.view(dataset).await;
    /// The latest decisions, newest first, at most a hundred.
    fn list_decisions(struct ListDecisions) on Name, Get "/v1/datasets/{dataset}/decisions", Look -> [DecisionView]
        |ledger, _by, dataset, Self| ledger.decisions(dataset, 100).await;
    /// Ask, and be charged at once if admitted.
    fn spend(Spend) on Name, Post "/v1/datasets/{dataset}/spend", Spend -> Answer
        |ledger, by, dataset, spend| ledger.spend(by, dataset, spend).await;
    /// Ask, and hold what is admitted until it is committed or cancelled; what expires stays charged.
    fn reserve(Reserve) on Name, Post "/v1/datasets/{dataset}/reserve", Spend -> Answer
        |ledger, by, dataset, reserve| ledger.reserve(by, dataset, reserve).await;
    /// Say how much of a reservation was used.
    fn commit(Commit) on Name, Post "/v1/datasets/{dataset}/commit", Spend -> Done
        |ledger, by, dataset, commit| ledger.commit(by, dataset, commit).await;
    /// Give back what was not used of a reservation, on your word that nothing of it was drawn.
    fn cancel(Cancel) on Name, Post "/v1/datasets/{dataset}/cancel", Spend -> Done
        |ledger, by, dataset, cancel| ledger.cancel(by, dataset, cancel).await;
    /// What would be answered now; nothing is charged.
    fn what_if(Question) on Name, Post "/v1/datasets/{dataset}/what-if", Look -> WhatIf
        |ledger, by, dataset, question| ledger.what_if(by, dataset, question).await;
    /// Add blocks, each with the whole budget.
    fn add_blocks(NewBlocks) on Name, Post "/v1/datasets/{dataset}/blocks", Keep -> Done
        |ledger, by, dataset, new| ledger.add_blocks(by, dataset, new).await;
    /// Set a ceiling for some of those who ask, or set it anew.
    fn set_allowance(NewAllowance) on Name, Post "/v1/datasets/{dataset}/allowances", Keep -> Done
        |ledger, by, dataset, new| ledger.set_allowance(by, dataset, new).await;
    /// Close a dataset for good.
    fn close_dataset(struct CloseDataset) on Name, Post "/v1/datasets/{dataset}/close", Keep -> Done
        |ledger, by, dataset, Self| ledger.close_dataset(by, dataset).await;
    /// All tokens, by their hashes.
    fn list_tokens(struct ListTokens) on (), Get "/v1/tokens", Administer -> [TokenView]
        |ledger, _by, _about, Self| Ok(ledger.read(|state| state.tokens().map(TokenView::from).collect()));
    /// Grant a token. It is told once, here: one whose answer got lost is of no use to anybody, and another can be granted.
    fn grant_token(NewToken) on (), PostOnce "/v1/tokens", Administer -> Granted
        |ledger, by, _about, new| ledger.grant(by, new).await;
    /// Revoke a token.
    fn revoke_token(struct RevokeToken) on Digest, Delete "/v1/tokens/{hash}", Administer -> Done
        |ledger, by, hash, Self| ledger.revoke(by, *hash).await;
    /// Where the log ends: kept elsewhere, `paygo ledger verify --receipt` insists on it later.
    fn show_head(struct ShowHead) on (), Get "/v1/log/head", Audit -> HeadView
        |ledger, _by, _about, Self| Ok(ledger.read(|state| HeadView::from(state)));
}
