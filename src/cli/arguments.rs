//! Numbers on the command line: decimal text, read to the side on which the answer is not too small.

use anyhow::Context;
use clap::Args;
use paygo_accounting::account::Question;
use paygo_accounting::params::{Count, Delta, Epsilon, OutOfDomain};
use paygo_accounting::wire::Number;
use std::path::PathBuf;

/// A decimal number, or a fraction of two, as it was typed.
#[derive(Clone, Debug)]
pub(crate) struct Decimal(String);

impl std::str::FromStr for Decimal {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match Number::Decimal(text.to_owned()).up("number") {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(_) => Err("expected a decimal number such as 0.1 or 1e-5".to_owned()),
        }
    }
}

impl Decimal {
    /// The least double at or above it.
    pub(crate) fn up(&self) -> f64 {
        self.number().up("number").unwrap_or(f64::NAN)
    }

    /// The greatest double at or below it.
    pub(crate) fn down(&self) -> f64 {
        self.number().down("number").unwrap_or(f64::NAN)
    }

    /// The nearest double: how it is echoed.
    pub(crate) fn typed(&self) -> f64 {
        self.number().nearest("number").unwrap_or(f64::NAN)
    }

    /// As it is written elsewhere.
    pub(crate) fn number(&self) -> Number {
        Number::Decimal(self.0.clone())
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The complaint, about the text that was typed.
    fn as_typed(&self, error: OutOfDomain) -> anyhow::Error {
        OutOfDomain { given: self.0.clone(), ..error }.into()
    }

    /// As a checked parameter, read up.
    pub(crate) fn up_as<T>(&self, new: impl Fn(f64) -> Result<T, OutOfDomain>) -> anyhow::Result<T> {
        new(self.up()).map_err(|error| self.as_typed(error))
    }

    /// As a checked parameter, read down.
    pub(crate) fn down_as<T>(&self, new: impl Fn(f64) -> Result<T, OutOfDomain>) -> anyhow::Result<T> {
        new(self.down()).map_err(|error| self.as_typed(error))
    }
}

/// A count as it was typed: an integer, or a decimal number that is one, such as 1e4.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountArgument(pub(crate) Count);

impl std::str::FromStr for CountArgument {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match Number::Decimal(text.to_owned()).count("count") {
            Ok(count) => Ok(Self(count)),
            Err(_) => Err("expected an integer from 1 to 2^53, such as 10000 or 1e4".to_owned()),
        }
    }
}

/// A path to which a picture is written.
pub(crate) fn svg_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg")) {
        Ok(path)
    } else {
        Err("pictures are written as SVG; expected a name that ends in .svg".to_owned())
    }
}

/// Which of ε and δ is given.
#[derive(Args, Clone, Debug)]
pub(crate) struct QuestionArguments {
    /// Compute epsilon at this delta, 0 <= delta < 1
    #[arg(long, value_name = "DELTA", allow_hyphen_values = true)]
    pub(crate) delta: Option<Decimal>,
    /// Compute delta at this epsilon, at least 0
    #[arg(long, value_name = "EPSILON", allow_hyphen_values = true)]
    pub(crate) epsilon: Option<Decimal>,
}

/// δ of a question: 0 is allowed (pure DP), 1 promises nothing and is refused.
pub(crate) fn delta(text: &Decimal) -> anyhow::Result<Delta> {
    let delta = Delta::new(text.down()).unwrap_or(Delta::ONE);
    anyhow::ensure!(delta < Delta::ONE, "delta = {} is outside its domain; expected 0 <= delta < 1", text.0);
    Ok(delta)
}

impl QuestionArguments {
    /// The question asked, if one was.
    pub(crate) fn question(&self) -> anyhow::Result<Option<Question>> {
        match (&self.delta, &self.epsilon) {
            (Some(_), Some(_)) => anyhow::bail!("give --delta or --epsilon, not both"),
            (Some(text), None) => Ok(Some(Question::EpsilonAt(delta(text)?))),
            (None, Some(text)) => Ok(Some(Question::DeltaAt(text.down_as(Epsilon::new)?))),
            (None, None) => Ok(None),
        }
    }

    /// The number that was asked for, as it was typed.
    pub(crate) fn asked(&self) -> Option<Number> {
        self.delta.as_ref().or(self.epsilon.as_ref()).map(Decimal::number)
    }

    /// The question asked.
    pub(crate) fn required(&self) -> anyhow::Result<Question> {
        self.question()?.context("give --delta to ask for epsilon, or --epsilon to ask for delta")
    }
}
