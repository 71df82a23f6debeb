//! Sampler, mechanism and charge as one object: whoever trains on batches drawn one way cannot be charged for another.
//!
//! A [`Round`] is what is charged at once: one step, or for samplers that pass over everybody a whole epoch. It knows what it costs;
//! only a permit for that cost makes it tell its batches.

use paygo_accounting::cost::{Cost, CostError};
use paygo_accounting::filter::Permit;
use paygo_accounting::mechanism::{
    Assignment, BallsAndBinsEpoch, Gaussian, Mechanism, PartitionedEpoch, PoissonSampledGaussian, Single,
};
use paygo_accounting::params::{Count, Neighbors, NoiseMultiplier, OutOfDomain, SamplingProbability};
use paygo_noise::{Source, coin};

/// How examples come to batches.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Batching {
    /// Everybody, every step.
    Full,
    /// Each example by its own coin, every step anew (T30).
    Poisson {
        /// The chance that an example is in a batch.
        sampling_probability: f64,
    },
    /// Each example to one of the batches of an epoch, by its own coin (T44).
    BallsAndBins {
        /// Public: how many batches an epoch has.
        batches: u64,
    },
    /// All examples shuffled, then cut into batches of this size. Taking one away would move others, so the number of examples must
    /// be public (E12, T26).
    Shuffled {
        /// Examples in a batch.
        size: u64,
    },
}

/// What cannot be sampled, or not be charged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BatchingError {
    /// A parameter out of its domain.
    #[error(transparent)]
    OutOfDomain(#[from] OutOfDomain),
    /// The batching is not accounted under the neighbor relation.
    #[error(transparent)]
    Cost(#[from] CostError),
}

/// A permit for something else. It is gone, and what it cost stays spent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the permit was given for another round; it is used up, and nothing was drawn")]
pub struct NotCovered;

/// Draws batches of a data set, and says what they cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampler {
    batching: Batching,
    neighbors: Neighbors,
    public_size: u64,
    /// Sums are made ready for half as many more examples than this: the public size, of the whole where this is a part.
    capacity: u64,
    examples: u32,
}

impl Sampler {
    /// `public_size` is the number that sums are divided by: a constant that must not be read off the private examples. Where
    /// neighbors have the same number of examples, it is that number.
    ///
    /// # Errors
    /// [`BatchingError`] when a parameter is out of its domain, or the batching is not accounted under the neighbor relation.
    pub fn new(
        batching: Batching,
        neighbors: Neighbors,
        public_size: u64,
        examples: usize,
    ) -> Result<Self, BatchingError> {
        Self::within(batching, neighbors, public_size, public_size, examples)
    }

    /// For a part of the examples, whose sums are divided by a smaller number. However many of all examples coins put into it, it is
    /// never too large.
    ///
    /// # Errors
    /// As [`Sampler::new`].
    pub fn part(&self, public_size: u64, examples: usize) -> Result<Self, BatchingError> {
        Self::within(self.batching, self.neighbors, public_size, self.capacity.max(public_size), examples)
    }

    fn within(
        batching: Batching,
        neighbors: Neighbors,
        public_size: u64,
        capacity: u64,
        examples: usize,
    ) -> Result<Self, BatchingError> {
        let few = u32::try_from(examples).map_err(|_| OutOfDomain::new("examples", examples, "fewer than 2^32"))?;
        if public_size == 0 {
            return Err(OutOfDomain::new("public_size", public_size, "at least 1").into());
        }
        // For the eyes of whoever has the examples, like every error about them.
        if capacity.saturating_mul(3) < 2 * u64::from(few) {
            let allowed = "at least two thirds of the examples there are: sums of so many more would round more than is accounted for";
            return Err(OutOfDomain::new("public_size", public_size, allowed).into());
        }
        if neighbors != Neighbors::AddRemove && public_size != u64::from(few) {
            let allowed = "the number of examples, which is public where neighbors have equally many";
            return Err(OutOfDomain::new("public_size", public_size, allowed).into());
        }
        match batching {
            Batching::Full | Batching::Poisson { .. } => {}
            Batching::BallsAndBins { batches } => {
                if !(1..=u64::from(u32::MAX)).contains(&batches) {
                    return Err(OutOfDomain::new("batches", batches, "1 <= batches < 2^32").into());
                }
            }
            Batching::Shuffled { size } => {
                if !(1..=public_size).contains(&size) {
                    return Err(OutOfDomain::new("size", size, "1 <= size <= the number of examples").into());
                }
            }
        }
        let sampler = Self { batching, neighbors, public_size, capacity, examples: few };
        // Whatever can be wrong with a round is wrong with this one.
        sampler.round(NoiseMultiplier::new(1.0)?)?;
        Ok(sampler)
    }

    /// How examples come to batches.
    #[must_use]
    pub const fn batching(&self) -> Batching {
        self.batching
    }

    /// Which databases are neighbors.
    #[must_use]
    pub const fn neighbors(&self) -> Neighbors {
        self.neighbors
    }

    /// How many examples it draws from.
    pub(crate) const fn examples(&self) -> usize {
        self.examples as usize
    }

    /// The same with another batching.
    ///
    /// # Errors
    /// As [`Sampler::new`].
    pub fn with(&self, batching: Batching) -> Result<Self, BatchingError> {
        Self::within(batching, self.neighbors, self.public_size, self.capacity, self.examples as usize)
    }

    /// The public number that a batch's sum is divided by: its expected size.
    #[must_use]
    pub fn divisor(&self) -> f64 {
        self.batch_of(self.public_size)
    }

    #[expect(clippy::cast_precision_loss, reason = "below 2^53 in any memory")]
    fn batch_of(&self, size: u64) -> f64 {
        let size = size as f64;
        match self.batching {
            Batching::Full => size,
            Batching::Poisson { sampling_probability } => size * sampling_probability,
            Batching::BallsAndBins { batches } => size / batches as f64,
            Batching::Shuffled { size } => size as f64,
        }
    }

    /// Public: how many examples a batch has, about.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of examples")]
    pub fn expected(&self) -> usize {
        (self.divisor().round() as usize).max(1)
    }

    /// Public: how large a batch sums are made ready for.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of examples")]
    pub(crate) fn prepared_for(&self) -> usize {
        (self.batch_of(self.capacity).round() as usize).max(1)
    }

    /// Public: how many rounds are a pass over the data.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "one over a probability")]
    pub fn rounds_per_epoch(&self) -> u64 {
        match self.batching {
            Batching::Poisson { sampling_probability } => ((1.0 / sampling_probability).round() as u64).max(1),
            Batching::Full | Batching::BallsAndBins { .. } | Batching::Shuffled { .. } => 1,
        }
    }

    /// Public: how many steps a round has.
    #[must_use]
    pub const fn steps_per_round(&self) -> u64 {
        match self.batching {
            Batching::Full | Batching::Poisson { .. } => 1,
            Batching::BallsAndBins { batches } => batches,
            Batching::Shuffled { size } => self.public_size.div_ceil(size),
        }
    }

    /// What two neighbors can do to a sum of clipped gradients, over the clip norm: replacing an example takes one away and adds another.
    #[must_use]
    pub const fn reach(&self) -> f64 {
        match self.neighbors {
            Neighbors::AddRemove | Neighbors::ZeroOut => 1.0,
            Neighbors::ReplaceOne => 2.0,
        }
    }

    /// The next round with this noise, relative to the sensitivity, as in a plan: what two neighbors can do to the sum.
    ///
    /// # Errors
    /// [`BatchingError`] when the batching is not accounted under the neighbor relation.
    pub fn round(&self, noise_multiplier: NoiseMultiplier) -> Result<Round, BatchingError> {
        let single = match self.batching {
            Batching::Full => Single::Gaussian(Gaussian { noise_multiplier }),
            Batching::Poisson { sampling_probability } => Single::PoissonSampledGaussian(PoissonSampledGaussian {
                sampling_probability: positive(sampling_probability)?,
                noise_multiplier,
            }),
            Batching::BallsAndBins { batches } => {
                Single::BallsAndBinsEpoch(BallsAndBinsEpoch { batches: Count::new(batches)?, noise_multiplier })
            }
            Batching::Shuffled { .. } => {
                let batches = usize::try_from(self.steps_per_round()).unwrap_or(usize::MAX);
                let noise = vec![noise_multiplier; batches];
                Single::PartitionedEpoch(PartitionedEpoch::new(Assignment::Reshuffled, noise)?)
            }
        };
        let cost = Cost::of(&Mechanism::Single(single), self.neighbors)?;
        Ok(Round { sampler: self.clone(), noise_multiplier, cost })
    }
}

fn positive(probability: f64) -> Result<SamplingProbability, OutOfDomain> {
    if probability > 0.0 {
        SamplingProbability::new(probability)
    } else {
        Err(OutOfDomain::new("sampling_probability", probability, "0 < sampling_probability <= 1"))
    }
}

/// What is charged at once: its price, and after that its batches.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    sampler: Sampler,
    noise_multiplier: NoiseMultiplier,
    cost: Cost,
}

/// The batches of a round that was charged, and the noise each must have.
#[derive(Debug)]
pub struct Batches {
    noise_multiplier: NoiseMultiplier,
    divisor: f64,
    batches: std::vec::IntoIter<Vec<u32>>,
}

/// One batch of a round that was charged: positions in increasing order.
#[derive(Debug)]
pub struct Batch {
    pub(crate) indices: Vec<u32>,
    pub(crate) noise_multiplier: NoiseMultiplier,
    pub(crate) divisor: f64,
}

impl Round {
    /// What it costs.
    #[must_use]
    pub const fn cost(&self) -> &Cost {
        &self.cost
    }

    /// The noise of every step.
    #[must_use]
    pub const fn noise_multiplier(&self) -> NoiseMultiplier {
        self.noise_multiplier
    }

    /// Draws its batches.
    ///
    /// # Errors
    /// [`NotCovered`] when the permit was given for something else.
    pub fn draw(self, permit: Permit, source: &mut Source) -> Result<Batches, NotCovered> {
        // The permit was moved in: it cannot be used a second time.
        if *permit.cost() == self.cost { Ok(self.batches(source)) } else { Err(NotCovered) }
    }

    /// Draws its batches without a permit: for training that is not private, and where people have budgets of their own.
    pub(crate) fn batches(self, source: &mut Source) -> Batches {
        let examples = self.sampler.examples;
        let batches = match self.sampler.batching {
            Batching::Full => vec![(0..examples).collect()],
            Batching::Poisson { sampling_probability } => vec![poisson(examples, sampling_probability, source)],
            Batching::BallsAndBins { batches } => {
                let count = usize::try_from(batches).unwrap_or(usize::MAX);
                let mut all = vec![Vec::new(); count];
                for example in 0..examples {
                    let batch = coin::below(u128::from(batches), source);
                    all[usize::try_from(batch).unwrap_or(0)].push(example);
                }
                all
            }
            Batching::Shuffled { size } => shuffled(examples, usize::try_from(size).unwrap_or(usize::MAX), source),
        };
        let divisor = self.sampler.divisor();
        Batches { noise_multiplier: self.noise_multiplier, divisor, batches: batches.into_iter() }
    }
}

impl Iterator for Batches {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        let indices = self.batches.next()?;
        Some(Batch { indices, noise_multiplier: self.noise_multiplier, divisor: self.divisor })
    }
}

/// Each of `0..examples` with this probability, rounded down to a multiple of 2⁻⁶⁴.
pub(crate) fn poisson(examples: u32, probability: f64, source: &mut Source) -> Vec<u32> {
    // ROUNDING: down; the cast saturates, and a probability of 1 takes everybody.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a probability times 2^64, saturated")]
    let threshold = (probability * 2f64.powi(64)) as u64;
    let mut words = [0u64; 1024];
    let mut batch = Vec::new();
    for start in (0..examples).step_by(words.len()) {
        let end = examples.min(start + 1024);
        let words = &mut words[..(end - start) as usize];
        source.fill(words);
        batch.extend(
            (start..end).zip(words).filter(|(_, word)| **word < threshold || probability >= 1.0).map(|(i, _)| i),
        );
    }
    batch
}

/// A uniform permutation (Fisher and Yates), cut into batches, each in increasing order.
fn shuffled(examples: u32, size: usize, source: &mut Source) -> Vec<Vec<u32>> {
    let mut order: Vec<u32> = (0..examples).collect();
    for last in (1..order.len()).rev() {
        let other = usize::try_from(coin::below(last as u128 + 1, source)).unwrap_or(0);
        order.swap(last, other);
    }
    let sorted = |batch: &[u32]| {
        let mut batch = batch.to_vec();
        batch.sort_unstable();
        batch
    };
    order.chunks(size).map(sorted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use paygo_accounting::filter::{Decision, Filter, Zcdp};
    use paygo_numeric::Amount;

    const ALL: [Batching; 4] = [
        Batching::Full,
        Batching::Poisson { sampling_probability: 0.1 },
        Batching::BallsAndBins { batches: 10 },
        Batching::Shuffled { size: 100 },
    ];

    fn sampler(batching: Batching, neighbors: Neighbors) -> Result<Sampler, BatchingError> {
        Sampler::new(batching, neighbors, 1000, 1000)
    }

    fn noise(multiplier: f64) -> NoiseMultiplier {
        NoiseMultiplier::new(multiplier).expect("noise")
    }

    /// The charge is that of the mechanism, under exactly the relations for which it is proved.
    #[test]
    fn rounds_cost_what_their_sampler_costs() {
        let cost = |batching, neighbors| sampler(batching, neighbors)?.round(noise(2.0)).map(|round| round.cost);
        let expect = |mechanism: &str, neighbors| {
            let mechanism: paygo_accounting::wire::Mechanism = serde_json::from_str(mechanism).expect("words");
            Cost::of(&Mechanism::try_from(&mechanism).expect("a mechanism"), neighbors).expect("a cost")
        };
        use Neighbors::{AddRemove, ReplaceOne, ZeroOut};
        let gaussian = r#"{"gaussian": {"noise_multiplier": 2.0}}"#;
        let poisson = r#"{"poisson_sampled_gaussian": {"sampling_probability": 0.1, "noise_multiplier": 2.0}}"#;
        let bins = r#"{"balls_and_bins_epoch": {"batches": 10, "noise_multiplier": 2.0}}"#;
        for neighbors in [AddRemove, ZeroOut] {
            assert_eq!(cost(ALL[0], neighbors), Ok(expect(gaussian, neighbors)));
            assert_eq!(cost(ALL[1], neighbors), Ok(expect(poisson, neighbors)));
            assert_eq!(cost(ALL[2], neighbors), Ok(expect(bins, neighbors)));
        }
        // Noise is relative to the sensitivity, as in a plan; replacing has twice the sensitivity, and gets twice the noise.
        assert_eq!(cost(ALL[0], ReplaceOne), Ok(expect(gaussian, ReplaceOne)));
        let reach = [AddRemove, ZeroOut, ReplaceOne].map(|neighbors| sampler(ALL[0], neighbors).expect("one").reach());
        assert_eq!(reach, [1.0, 1.0, 2.0]);
        let rho = |batching, neighbors| cost(batching, neighbors).expect("a cost").rho().expect("a rho").get();
        assert_eq!((rho(ALL[3], ZeroOut), rho(ALL[3], ReplaceOne)), (0.125, 0.125));
        for (batching, neighbors) in [(ALL[1], ReplaceOne), (ALL[2], ReplaceOne), (ALL[3], AddRemove)] {
            assert!(matches!(cost(batching, neighbors), Err(BatchingError::Cost(_))), "{batching:?} {neighbors:?}");
        }
    }

    /// Whatever share of all examples coins put into a part, its size is no error: an error would tell something about them.
    #[test]
    fn no_part_is_too_large() {
        let whole = Sampler::new(Batching::Full, Neighbors::AddRemove, 1000, 1500).expect("a sampler");
        assert!(Sampler::new(Batching::Full, Neighbors::AddRemove, 250, 1500).is_err());
        for examples in [0, 250, 376, 1500] {
            let part = whole.part(250, examples).expect("a part");
            assert_eq!((part.divisor(), part.prepared_for()), (250.0, 1000));
        }
    }

    #[test]
    fn what_cannot_be_sampled_is_refused() {
        let refused = |batching| sampler(batching, Neighbors::ZeroOut).expect_err("refused").to_string();
        assert!(refused(Batching::Poisson { sampling_probability: 0.0 }).contains("0 < sampling_probability <= 1"));
        assert!(refused(Batching::Poisson { sampling_probability: f64::NAN }).contains("sampling_probability"));
        assert!(refused(Batching::Poisson { sampling_probability: 1.5 }).contains("sampling_probability"));
        assert!(refused(Batching::BallsAndBins { batches: 0 }).contains("batches"));
        assert!(refused(Batching::Shuffled { size: 1001 }).contains("size"));
        assert!(Sampler::new(ALL[0], Neighbors::ZeroOut, 999, 1000).is_err());
        assert!(Sampler::new(ALL[0], Neighbors::AddRemove, 0, 1000).is_err());
        assert!(Sampler::new(ALL[0], Neighbors::AddRemove, 999, 1000).is_ok());
    }

    #[test]
    fn batches_are_what_their_names_say() {
        let mut source = Source::insecure_from_seed(1);
        let mut batches = |batching| {
            let neighbors =
                if matches!(batching, Batching::Shuffled { .. }) { Neighbors::ZeroOut } else { Neighbors::AddRemove };
            let round = sampler(batching, neighbors).expect("a sampler").round(noise(1.0)).expect("a round");
            round.batches(&mut source).map(|batch| batch.indices).collect::<Vec<_>>()
        };
        let everybody: Vec<u32> = (0..1000).collect();
        assert_eq!(batches(Batching::Full), std::slice::from_ref(&everybody));
        let certain = Batching::Poisson { sampling_probability: 1.0 };
        assert_eq!(batches(certain), std::slice::from_ref(&everybody));
        let mut sizes = Vec::new();
        for batching in [ALL[2], ALL[3], Batching::Shuffled { size: 300 }] {
            let drawn = batches(batching);
            let mut all = drawn.concat();
            assert!(drawn.iter().all(|batch| batch.is_sorted()));
            assert_ne!(all, everybody, "in order");
            all.sort_unstable();
            assert_eq!(all, everybody, "everybody once");
            sizes.push(drawn.iter().map(Vec::len).collect::<Vec<_>>());
        }
        assert!(sizes[0].len() == 10 && sizes[0].iter().any(|&size| size != 100), "independent coins: {:?}", sizes[0]);
        assert_eq!(sizes[1..], [vec![100; 10], vec![300, 300, 300, 100]]);
        // Every example is in a Poisson batch as often as another.
        let mut counts = vec![0u32; 1000];
        for _ in 0..2000 {
            for index in batches(ALL[1]).concat() {
                counts[index as usize] += 1;
            }
        }
        let total: u32 = counts.iter().sum();
        assert!((198_000..202_000).contains(&total), "{total}");
        assert!(counts.iter().all(|count| (130..280).contains(count)));
    }

    #[test]
    fn only_a_permit_for_the_same_round_opens_it() {
        let mut source = Source::insecure_from_seed(2);
        let rule = Zcdp::with_limit(Amount::ONE, Amount::ZERO).expect("a rule");
        let mut filter = Filter::new(rule, Neighbors::AddRemove);
        let sampler = sampler(ALL[1], Neighbors::AddRemove).expect("a sampler");
        let (round, other) =
            (sampler.round(noise(10.0)).expect("a round"), sampler.round(noise(9.0)).expect("a round"));
        let Decision::Admitted(permit) = filter.request(round.cost()).expect("a price") else { panic!("refused") };
        assert!(other.draw(permit, &mut source).is_err());
        let Decision::Admitted(permit) = filter.request(round.cost()).expect("a price") else { panic!("refused") };
        assert_eq!(round.draw(permit, &mut source).expect("covered").count(), 1);
    }
}
