//! Seeded numbers for made-up examples and fixed splits. Never for noise that protects anybody.

/// `SplitMix64`: Steele, Lea and Flood, *Fast Splittable Pseudorandom Number Generators*, OOPSLA 2014. The same numbers on
/// every machine.
#[derive(Clone, Debug)]
pub(super) struct Seeded(u64);

impl Seeded {
    /// One of many streams of a seed.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        // Twice mixed: streams of one seed differ, and the stream of another seed is found nowhere near.
        Self(Self(Self(seed).next().wrapping_add(stream)).next())
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = self.0;
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `0..count`. Its bias, below `count / 2⁶⁴`, is nothing for what this is used for.
    pub(super) fn below(&mut self, count: usize) -> usize {
        let product = u128::from(self.next()) * count as u128;
        usize::try_from(product >> 64).expect("below count")
    }

    /// Uniform in `low..high`, on a grid of 2²⁴ points.
    pub(super) fn between(&mut self, low: f32, high: f32) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "24 bits are exact")]
        let unit = (self.next() >> 40) as f32 / 16_777_216.0;
        low + unit * (high - low)
    }

    /// Mean 0, standard deviation 1, within ±√12: four uniform numbers added, which every machine adds alike.
    pub(super) fn bell(&mut self) -> f32 {
        let sum: f32 = (0..4).map(|_| self.between(-1.0, 1.0)).sum();
        sum * (3.0_f32 / 4.0).sqrt()
    }

    /// Puts the items in one of their orders (Fisher and Yates).
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first values from the authors' reference code for seed 1234567.
    #[test]
    fn numbers_are_those_of_the_reference() {
        let mut random = Seeded(1_234_567);
        let first = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423_u64];
        assert_eq!(first, [random.next(), random.next(), random.next()]);
    }

    #[test]
    fn streams_differ() {
        let mut first: Vec<u64> =
            (0..100).flat_map(|seed| (0..100).map(move |stream| Seeded::new(seed, stream).next())).collect();
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 10_000);
    }

    #[test]
    fn ranges_are_kept_and_filled() {
        let mut random = Seeded::new(1, 2);
        let mut seen = [0; 7];
        (0..7000).for_each(|_| seen[random.below(7)] += 1);
        assert!(seen.iter().all(|count| (850..1150).contains(count)), "{seen:?}");
        let bells: Vec<f32> = (0..10_000).map(|_| random.bell()).collect();
        let variance = bells.iter().map(|x| x * x).sum::<f32>() / 10_000.0;
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
        let mut items: Vec<usize> = (0..100).collect();
        random.shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
