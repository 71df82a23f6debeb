//! The words for a budget and its noise, checked against batches and model.

use super::config::Config;
use super::noise::Noise;
use super::plan::{self, MAX_ROUNDS, Rounds, covered, rounds_ahead};
use anyhow::Context;
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{AnyRule, Budget, Clock, Filter, FixedOrder, Mixture};
use paygo_accounting::params::{Neighbors, NoiseMultiplier, Order};
use paygo_accounting::schedule::Schedule;
use paygo_accounting::stored::StoredRule;
use paygo_accounting::wire::{FilterKind, FilterWords, Neighbors as NeighborWords, Number};
use paygo_training::batching::{Batching, Sampler};
use paygo_training::gradient::Clip;
use paygo_training::model::{Model as _, Network};
use paygo_training::personal::ExampleBudget;
use paygo_training::policy::Policy;
use serde::Deserialize;

/// What makes it private.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Privacy {
    pub(super) epsilon: Number,
    pub(super) delta: Number,
    #[serde(default = "add_remove")]
    neighbors: NeighborWords,
    #[serde(default = "record")]
    pub(super) privacy_unit: String,
    /// The kind of filter [default: the tightest that takes what is asked].
    filter: Option<FilterKind>,
    /// Each example's gradient is scaled down to this norm.
    pub(super) clip_norm: f64,
    /// Clip each layer instead, and pay for every layer.
    #[serde(default)]
    clip_by_layer: bool,
    noise: Noise,
    /// For filter fixed-order: the Rényi order, fixed in advance [default: the one at which the most rounds fit].
    order: Option<f64>,
    /// A budget for each example, instead of one for all.
    #[serde(default)]
    individual: bool,
}

/// Rényi orders to choose from.
const ORDERS: [f64; 16] = [1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0, 24.0, 32.0, 64.0, 128.0, 512.0];

const fn add_remove() -> NeighborWords {
    NeighborWords::AddRemove
}

fn record() -> String {
    "record".to_owned()
}

/// A privacy section, checked against sampler and model.
#[derive(Clone)]
pub(super) struct Checked {
    pub(super) clip: Clip,
    pub(super) policy: Policy,
    pub(super) filter: Filter<AnyRule>,
    /// The expected run: what filter and odometer are best at.
    pub(super) plan: Cost,
    pub(super) allowance: Option<ExampleBudget>,
}

/// The rule that a run keeps for good: where to stop must not depend on which version takes it up again.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    /// It is not begun yet.
    Fresh,
    Rule(Box<StoredRule>),
    /// It was begun by an earlier version, which kept none and made the same one again.
    Earlier,
}

/// Epochs of different noise that are looked ahead.
const MAX_AHEAD: u64 = 1000;

impl Checked {
    /// The noise of the first epoch.
    pub(super) fn first_noise(&self) -> anyhow::Result<NoiseMultiplier> {
        self.policy.noise_multiplier(0).context("the schedule has no noise for the first epoch")
    }

    /// The rounds of a schedule, from the first: so many as are wanted, but of no more epochs than are looked ahead.
    pub(super) fn rounds_ahead(&self, sampler: &Sampler, wanted: u64) -> anyhow::Result<Rounds> {
        rounds_ahead(&self.policy, sampler, wanted, MAX_AHEAD)
    }

    /// How many rounds the budget covers, of those that are wanted, where noise follows a schedule; all, where that would take long to
    /// find out.
    fn covered(&self, sampler: &Sampler, wanted: u64) -> anyhow::Result<u64> {
        let ahead = self.rounds_ahead(sampler, wanted)?;
        let covered = covered(&self.filter, &ahead)?;
        let is_cut = ahead.len() as u64 == MAX_AHEAD && covered == ahead.iter().map(|(_, count)| count).sum::<u64>();
        Ok(if is_cut { wanted } else { covered })
    }
}

/// The same noise throughout.
pub(super) const fn uniform(noise_multiplier: NoiseMultiplier) -> Policy {
    Policy::Schedule(Schedule::Uniform { initial: noise_multiplier })
}

impl Privacy {
    /// Whether each example has a budget of its own.
    pub(super) const fn is_individual(&self) -> bool {
        self.individual
    }

    /// Whether its noise depends on counts of correct private examples.
    pub(super) const fn counts(&self) -> bool {
        self.noise.counts()
    }

    /// Whether noise follows a schedule for all, whatever happens.
    pub(super) const fn is_scheduled(&self) -> bool {
        !self.individual && self.noise.is_scheduled()
    }

    pub(super) fn neighbors(&self) -> Neighbors {
        self.neighbors.into()
    }

    /// How many of these rounds the budget covers, and with which first noise it would cover all, if any will do; none where it does.
    pub(super) fn shortfall(
        &self,
        config: &Config,
        sampler: &Sampler,
        network: &Network,
        wanted: u64,
    ) -> anyhow::Result<Option<(u64, Option<f64>)>> {
        let covered = |factor: f64| -> anyhow::Result<u64> {
            let mut scaled = self.clone();
            *scaled.noise.first() *= factor;
            scaled.check(config, sampler, network, &Kept::Fresh)?.covered(sampler, wanted)
        };
        let now = covered(1.0)?;
        if now >= wanted {
            return Ok(None);
        }
        let (mut low, mut high) = (1.0, 2.0);
        while covered(high)? < wanted {
            if high > 64.0 {
                return Ok(Some((now, None)));
            }
            (low, high) = (high, 2.0 * high);
        }
        for _ in 0..8 {
            let middle = f64::midpoint(low, high);
            *(if covered(middle)? < wanted { &mut low } else { &mut high }) = middle;
        }
        // ROUNDING: up, to two places.
        let enough = *self.noise.clone().first() * high;
        Ok(Some((now, Some((enough * 100.0).ceil() / 100.0))))
    }

    /// The tightest filter that takes what is asked.
    const fn default_filter(&self, batching: Batching, integers: bool, kept: &Kept) -> FilterKind {
        match (self.individual, batching) {
            (true, Batching::Poisson { .. }) => FilterKind::FixedOrder,
            (_, Batching::Full) | (false, Batching::Shuffled { .. }) if !integers => FilterKind::Gdp,
            (_, Batching::Full | Batching::Shuffled { .. }) => FilterKind::Zcdp,
            // Known by a curve, which is dear on a clock.
            (_, Batching::BallsAndBins { .. }) => FilterKind::Mixture,
            (_, Batching::Poisson { .. }) => match kept {
                Kept::Earlier => FilterKind::Mixture,
                Kept::Fresh | Kept::Rule(_) => FilterKind::Clock,
            },
        }
    }

    /// The rule of a kind: a clock starts with the run as it is planned, as far as the budget pays for it, and the weights of a mixture are best at it.
    fn rule(
        &self,
        kind: FilterKind,
        budget: Budget,
        one: &Cost,
        plan: impl FnOnce() -> anyhow::Result<Rounds>,
    ) -> anyhow::Result<AnyRule> {
        if kind == FilterKind::FixedOrder {
            return Ok(self.fixed_order(budget, one)?.into());
        }
        if kind == FilterKind::Clock {
            return Ok(Clock::for_plan(budget, &plan()?, 0.0)?.into());
        }
        if kind == FilterKind::Mixture {
            // As many rounds as an even mixture would admit: the plan that the weights are best at.
            let even = Filter::new(Mixture::new(budget)?, one.neighbors());
            let count = even.room_for(&even.price(one)?, MAX_ROUNDS).max(1);
            return Ok(Mixture::for_plan(budget, &one.repeat(count)?)?.into());
        }
        let (epsilon, delta) = (Some(self.epsilon.clone()), Some(self.delta.clone()));
        Ok(FilterWords { kind, epsilon, delta, ..FilterWords::default() }.rule()?)
    }

    /// The rule at the order that the file names, or at the one at which the most rounds fit; it is known before any data is seen.
    fn fixed_order(&self, budget: Budget, round: &Cost) -> anyhow::Result<FixedOrder> {
        if let Some(order) = self.order {
            return Ok(FixedOrder::new(Order::new(order)?, budget)?);
        }
        let rounds = |rule: &FixedOrder| {
            let filter = Filter::new(rule.clone(), round.neighbors());
            filter.price(round).map_or(0, |price| filter.room_for(&price, MAX_ROUNDS))
        };
        let best =
            ORDERS.iter().filter_map(|&order| FixedOrder::new(Order::new(order).ok()?, budget).ok()).max_by_key(rounds);
        best.context("no Rényi order can meet this epsilon and delta; expected a larger budget")
    }

    /// How gradients are clipped.
    pub(super) fn clip(&self, network: &Network) -> anyhow::Result<Clip> {
        Ok(if self.clip_by_layer {
            Clip::by_layer(self.clip_norm, network.groups())?
        } else {
            Clip::whole(self.clip_norm)?
        })
    }

    /// Whether a kind of filter takes what is asked.
    fn check_kind(&self, kind: FilterKind, batching: Batching, integers: bool) -> anyhow::Result<()> {
        let is_full = matches!(batching, Batching::Full);
        let is_shuffled = matches!(batching, Batching::Shuffled { .. });
        anyhow::ensure!(
            kind != FilterKind::Gdp || is_full || (is_shuffled && !self.individual),
            "filter gdp takes full batches, or shuffled ones with one budget for all: sampled noise has no proved mu"
        );
        anyhow::ensure!(
            kind != FilterKind::Gdp || !integers,
            "filter gdp takes no noisy counts, principal components or selection: they have no proved mu\nhint: filter = \"zcdp\""
        );
        anyhow::ensure!(
            self.order.is_none() || kind == FilterKind::FixedOrder,
            "privacy.order goes with filter fixed-order, the one for poisson batches with a budget for each example"
        );
        Ok(())
    }

    /// With the rule that a run was begun with, where it was begun before.
    pub(super) fn check(
        &self,
        config: &Config,
        sampler: &Sampler,
        network: &Network,
        kept: &Kept,
    ) -> anyhow::Result<Checked> {
        // Their noise is exact, on integers, and has a ρ and no μ.
        let integers = config.releases_integers();
        let neighbors = Neighbors::from(self.neighbors);
        let clip = self.clip(network)?;
        anyhow::ensure!(
            !self.individual || neighbors == Neighbors::ZeroOut,
            "privacy.individual goes with neighbors = \"zero-out\", where the others keep their places; given {neighbors}"
        );
        let policy = self.noise.policy(sampler).context("privacy.noise")?;
        anyhow::ensure!(
            !self.privacy_unit.trim().is_empty(),
            "privacy.privacy_unit is empty; expected a name for what one row is"
        );
        let budget = Budget::from_decimal(&self.epsilon.text(), &self.delta.text())?;
        anyhow::ensure!(
            self.epsilon.up("epsilon")?.is_finite(),
            "privacy.epsilon = {}; expected less than 1e308",
            self.epsilon.text()
        );
        let noise = policy.noise_multiplier(0).context("the schedule has no noise for the first epoch")?;
        let one = sampler.round(noise)?.cost().clone();
        let kind = self.filter.unwrap_or_else(|| self.default_filter(sampler.batching(), integers, kept));
        self.check_kind(kind, sampler.batching(), integers)?;
        let whole = || plan::whole(config, sampler, &policy, config.rounds(sampler));
        let rule = match kept {
            Kept::Rule(rule) => AnyRule::try_from(&**rule)?,
            Kept::Fresh | Kept::Earlier => self.rule(kind, budget, &one, whole)?,
        };
        let allowance = if self.individual { Some(allowance_of(&rule)?) } else { None };
        let filter = Filter::new(rule, neighbors);
        let rounds = filter.room_for(&filter.price(&one)?, MAX_ROUNDS);
        anyhow::ensure!(
            rounds > 0 || allowance.is_some(),
            "the budget does not cover a single round: epsilon = {}, delta = {} with a noise_multiplier of {noise}\nhint: {}",
            self.epsilon.text(),
            self.delta.text(),
            hint(sampler.batching())
        );
        let rounds = rounds.max(1);
        Ok(Checked { clip, policy, filter, plan: one.repeat(rounds)?, allowance })
    }
}

/// What helps where a budget does not cover a round.
const fn hint(batching: Batching) -> &'static str {
    match batching {
        Batching::Poisson { .. } => {
            "more noise, a smaller sampling_probability, or a larger budget; `paygo calibrate noise` finds what fits"
        }
        Batching::Full | Batching::BallsAndBins { .. } | Batching::Shuffled { .. } => "more noise, or a larger budget",
    }
}

/// The budget of each example, where a rule has one.
fn allowance_of(rule: &AnyRule) -> anyhow::Result<ExampleBudget> {
    if let AnyRule::Gdp(rule) = rule {
        // ROUNDING: down, so that its square is within the limit.
        let mu = paygo_numeric::rounding::sqrt_down(rule.limit().to_f64_down());
        Ok(ExampleBudget::Gdp { mu: mu * (1.0 - 1e-12) })
    } else if let AnyRule::Zcdp(rule) = rule {
        Ok(ExampleBudget::Zcdp { rho: rule.limit().to_f64_down() })
    } else if let AnyRule::FixedOrder(rule) = rule {
        Ok(ExampleBudget::Renyi { order: rule.order().get(), limit: rule.limit().to_f64_down() })
    } else {
        anyhow::bail!("a budget for each example goes with filter gdp, zcdp or fixed-order")
    }
}
