//! The run as it is expected to go: what a clock starts with, and how much of it the budget covers.

use super::config::Config;
use super::select;
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{AnyRule, Filter};
use paygo_accounting::loss::clock::MAX_KINDS;
use paygo_accounting::schedule::Schedule;
use paygo_training::batching::Sampler;
use paygo_training::pca;
use paygo_training::policy::{Policy, Question, count};

/// Rounds that a run has at most.
pub(super) const MAX_ROUNDS: u64 = 10_000_000;
/// Epochs that are looked at, to see how often counts are taken.
const SOME: u64 = 1000;

/// Rounds one after another: what one costs, and how often it comes in a row.
pub(super) type Rounds = Vec<(Cost, u64)>;

/// Everything that a run asks for if nothing makes its policy change its mind, and `wanted` rounds; without an end, as many as there can be.
pub(super) fn whole(
    config: &Config,
    sampler: &Sampler,
    policy: &Policy,
    wanted: Option<u64>,
) -> anyhow::Result<Rounds> {
    let mut all = Rounds::new();
    if let Some(components) = &config.data.principal_components {
        all.push((pca::cost(components.noise()?, sampler.neighbors())?, 1));
    }
    if let (Some(words), Some(noise)) = (&config.select, policy.noise_multiplier(0)) {
        all.push((select::selection(words, sampler, noise)?.cost(sampler.neighbors())?, 1));
    }
    let wanted = wanted.unwrap_or(MAX_ROUNDS);
    all.extend(rounds_ahead(policy, sampler, wanted, MAX_KINDS as u64)?);
    let epochs = wanted / sampler.rounds_per_epoch().max(1);
    let some = epochs.min(SOME);
    // Counts of the policy and of the target, each as often as among the first epochs.
    let target = config.stop().target;
    let target = target.map(|target| (target.noise_std, some / target.period.max(1)));
    let asked = (1..=some).filter_map(|epoch| match policy.question(epoch) {
        Question::NoisyCount { noise_std } => Some(noise_std),
        Question::Nothing | Question::PublicAccuracy => None,
    });
    let asked: Vec<f64> = asked.collect();
    let asked = asked.first().map(|noise_std| (*noise_std, asked.len() as u64));
    for (noise_std, often) in target.into_iter().chain(asked) {
        let times = often.saturating_mul(epochs) / some.max(1);
        if times > 0 {
            all.push((count(noise_std)?.cost(sampler.neighbors())?, times));
        }
    }
    Ok(all)
}

/// The rounds of a policy if nothing makes it change its mind, from the first: so many as are wanted, of so many epochs at most.
pub(super) fn rounds_ahead(policy: &Policy, sampler: &Sampler, wanted: u64, epochs: u64) -> anyhow::Result<Rounds> {
    let changes = matches!(policy, Policy::Schedule(schedule) if !matches!(schedule, Schedule::Uniform { .. }));
    let at_once = if changes { sampler.rounds_per_epoch() } else { wanted };
    let (mut ahead, mut left) = (Rounds::new(), wanted);
    for epoch in 0..epochs {
        let Some(noise) = policy.noise_multiplier(epoch).filter(|_| left > 0) else { break };
        let count = at_once.min(left);
        ahead.push((sampler.round(noise)?.cost().clone(), count));
        left -= count;
    }
    Ok(ahead)
}

/// How many of these rounds a filter admits would admit, one after another.
pub(super) fn covered(filter: &Filter<AnyRule>, rounds: &[(Cost, u64)]) -> anyhow::Result<u64> {
    let charges: Vec<_> = rounds.iter().map(|(cost, _)| filter.price(cost)).collect::<Result<_, _>>()?;
    Ok(filter.room_in_turn(charges.iter().zip(rounds).map(|(charge, (_, count))| (charge, *count))))
}
