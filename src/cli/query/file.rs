//! Questions in a file, and how a question becomes a query.

use super::noise::{Sizing, Wanted};
use anyhow::Context;
use clap::ValueEnum;
use paygo_analysis::{
    Bins, ClipNorm, ClipRange, Condition, Edges, Mode, NoiseStd, PersonBudget, Probability, Query, Settings, Statistic,
    Tier, Weight,
};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file of questions.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueryFile {
    pub(super) person: Option<String>,
    #[serde(default, deserialize_with = "allowance")]
    pub(super) budget: Option<PersonBudget>,
    pub(super) mode: Option<Mode>,
    pub(super) accounts: Option<PathBuf>,
    pub(super) tiers: Option<Tiers>,
    #[serde(default)]
    pub(super) queries: Vec<QuerySpec>,
}

/// Budgets by the value of a column.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tiers {
    column: String,
    budgets: BTreeMap<String, String>,
}

/// One question as it is written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuerySpec {
    pub(super) name: Option<String>,
    pub(super) count: Option<Counted>,
    pub(super) sum: Option<String>,
    pub(super) mean: Option<String>,
    pub(super) histogram: Option<String>,
    pub(super) quantile: Option<String>,
    pub(super) clip: Option<String>,
    pub(super) clip_norm: Option<f64>,
    pub(super) categories: Option<Vec<String>>,
    pub(super) grid: Option<String>,
    pub(super) at: Option<Vec<f64>>,
    #[serde(rename = "where")]
    pub(super) condition: Option<String>,
    pub(super) missing: Option<MissingWord>,
    pub(super) noise_std: Option<f64>,
    pub(super) spend: Option<String>,
    pub(super) within: Option<f64>,
}

/// What becomes of missing values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum MissingWord {
    /// Stop with an error, wherever in the column they are
    Refuse,
    /// Leave out their rows
    Skip,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Counted {
    /// People who have a selected row
    People,
    /// Selected rows
    Rows,
}

fn allowance<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PersonBudget>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

impl QueryFile {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let file: Self = toml::from_str(&text).with_context(|| path.display().to_string())?;
        anyhow::ensure!(!file.queries.is_empty(), "{}: no [[queries]]; expected at least one", path.display());
        Ok(file)
    }
}

impl Tiers {
    pub(super) fn settings(&self, person: &str, mode: Mode) -> anyhow::Result<Settings> {
        let tier = |(name, budget): (&String, &String)| {
            let budget = budget.parse().map_err(anyhow::Error::msg).with_context(|| format!("tier `{name}`"))?;
            anyhow::Ok(Tier { name: name.clone(), budget })
        };
        let tiers: Vec<Tier> = self.budgets.iter().map(tier).collect::<anyhow::Result<_>>()?;
        anyhow::ensure!((1..=256).contains(&tiers.len()), "{} tiers; expected 1 to 256", tiers.len());
        Ok(Settings { person: person.to_owned(), mode, tier_column: Some(self.column.clone()), tiers })
    }
}

impl QuerySpec {
    /// The query, every part of the question used and none missing.
    pub(super) fn query(&self, sizing: &Sizing<'_>) -> anyhow::Result<Query> {
        let asked: Vec<&str> = [
            ("count", self.count.is_some()),
            ("sum", self.sum.is_some()),
            ("mean", self.mean.is_some()),
            ("histogram", self.histogram.is_some()),
            ("quantile", self.quantile.is_some()),
        ]
        .into_iter()
        .filter_map(|(word, given)| given.then_some(word))
        .collect();
        let [word] = asked[..] else {
            anyhow::bail!(
                "{}; expected one of count, sum, mean, histogram, quantile",
                if asked.is_empty() {
                    "a query asks nothing".to_owned()
                } else {
                    format!("{} in one query", asked.join(" and "))
                }
            )
        };
        let name = self.name.clone().unwrap_or_else(|| self.usual_name(word));
        self.build(word, &name, sizing).with_context(|| format!("query `{name}`"))
    }

    fn build(&self, word: &str, name: &str, sizing: &Sizing<'_>) -> anyhow::Result<Query> {
        self.check_options(word)?;
        let (statistic, wanted) = (self.statistic(word)?, self.wanted()?);
        let condition: Option<Condition> = self.condition.as_deref().map(str::parse).transpose()?;
        let build = |noise: NoiseStd| -> anyhow::Result<Query> {
            let query = Query::new(name, statistic.clone(), condition.clone(), noise)?;
            Ok(if self.missing == Some(MissingWord::Skip) { query.skipping_missing() } else { query })
        };
        build(wanted.noise_std(sizing, &statistic, build)?)
    }

    fn counts_rows(&self) -> bool {
        self.count == Some(Counted::Rows)
    }

    /// That no option is given that goes with another question.
    fn check_options(&self, word: &str) -> anyhow::Result<()> {
        let binned = self.histogram.is_some() || self.quantile.is_some();
        for (given, option, fits) in [
            (self.clip.is_some(), "clip", self.counts_rows() || self.sum.is_some() || self.mean.is_some()),
            (self.clip_norm.is_some(), "clip_norm", binned),
            (self.categories.is_some(), "categories", self.histogram.is_some()),
            (self.grid.is_some(), "grid", binned),
            (self.at.is_some(), "at", self.quantile.is_some()),
        ] {
            anyhow::ensure!(!given || fits, "{option} does not go with {word}");
        }
        Ok(())
    }

    fn statistic(&self, word: &str) -> anyhow::Result<Statistic> {
        Ok(match (&self.sum, &self.mean, &self.histogram, &self.quantile) {
            (Some(column), _, _, _) => Statistic::Sum(column.clone(), self.clip_range(word)?),
            (_, Some(column), _, _) => Statistic::Mean(column.clone(), self.clip_range(word)?),
            (_, _, Some(column), _) => Statistic::Histogram(column.clone(), self.bins()?, self.weight()?),
            (_, _, _, Some(column)) => {
                let at = self.at.clone().unwrap_or_else(|| vec![0.5]);
                let at = at.into_iter().map(Probability::new).collect::<Result<_, _>>()?;
                Statistic::Quantile(column.clone(), self.edges(word)?, self.weight()?, at)
            }
            (None, None, None, None) if self.counts_rows() => {
                let clip = self.clip_range(word)?;
                let most = clip.high();
                let whole = clip.low() == 0.0 && most.fract() == 0.0 && most <= f64::from(u32::MAX);
                anyhow::ensure!(whole, "clip = {}..{most} is no number of rows; expected 0..N", clip.low());
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
                Statistic::Rows(most as u32)
            }
            (None, None, None, None) => Statistic::People,
        })
    }

    fn clip_range(&self, word: &str) -> anyhow::Result<ClipRange> {
        let clip = self.clip.as_ref().with_context(|| format!("{word} needs clip (--clip LOW..HIGH)"))?;
        Ok(clip.parse()?)
    }

    fn edges(&self, word: &str) -> anyhow::Result<Edges> {
        let grid = self.grid.as_ref().with_context(|| format!("{word} needs grid (--grid LOW..HIGH:BINS)"))?;
        Ok(grid.parse()?)
    }

    fn bins(&self) -> anyhow::Result<Bins> {
        match (&self.categories, &self.grid) {
            (Some(categories), None) => Ok(Bins::Categories(categories.clone())),
            (None, Some(_)) => Ok(Bins::Edges(self.edges("histogram")?)),
            (_, _) => {
                anyhow::bail!("histogram needs categories (--categories A,B) or grid (--grid LOW..HIGH:BINS)")
            }
        }
    }

    fn weight(&self) -> anyhow::Result<Weight> {
        Ok(match self.clip_norm {
            Some(norm) => Weight::Rows(ClipNorm::new(norm)?),
            None => Weight::Person,
        })
    }

    /// How the noise was asked for.
    fn wanted(&self) -> anyhow::Result<Wanted<'_>> {
        match (self.noise_std, &self.spend, self.within) {
            (Some(noise), None, None) => Ok(Wanted::Std(noise)),
            (None, Some(share), None) => Ok(Wanted::Spend(share)),
            (None, None, Some(half)) => Ok(Wanted::Within(half)),
            (_, _, _) => anyhow::bail!(
                "give the noise in one way: spend (--spend \"5 %\" of everybody's budget, in the worst case), within (--within 1000: \
                 half of the interval), or noise_std (--noise-std), its standard deviation"
            ),
        }
    }

    /// `sum amount where day = 1`
    fn usual_name(&self, word: &str) -> String {
        let column = [&self.sum, &self.mean, &self.histogram, &self.quantile].into_iter().flatten().next();
        let rows = if self.count == Some(Counted::Rows) { " rows" } else { "" };
        let column = column.map(|column| format!(" {column}")).unwrap_or_default();
        let condition = self.condition.as_ref().map(|condition| format!(" where {condition}")).unwrap_or_default();
        format!("{word}{rows}{column}{condition}")
    }
}
