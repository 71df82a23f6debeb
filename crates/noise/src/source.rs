//! Where randomness comes from.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// The operating system gave no seed.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no random seed: {0}")]
pub struct NoSeed(String);

/// ChaCha20 seeded by the operating system: 256 bits, drawn once.
///
/// Neither `Clone` nor `Debug`-printable: a copy would draw the same noise again, and the state is a secret.
pub struct Source(ChaCha20Rng);

impl Source {
    /// A source with a fresh seed from the operating system.
    ///
    /// # Errors
    /// [`NoSeed`] when the operating system has none.
    pub fn from_operating_system() -> Result<Self, NoSeed> {
        let mut seed = [0u8; 32];
        getrandom::fill(&mut seed).map_err(|error| NoSeed(error.to_string()))?;
        Ok(Self(ChaCha20Rng::from_seed(seed)))
    }

    /// A source whose draws anyone can repeat. For tests: whoever knows the seed can subtract the noise.
    #[cfg(any(test, feature = "insecure"))]
    #[must_use]
    pub fn insecure_from_seed(seed: u64) -> Self {
        Self(ChaCha20Rng::seed_from_u64(seed))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Many times 64 random bits.
    pub fn fill(&mut self, words: &mut [u64]) {
        self.0.fill_bytes(bytemuck::must_cast_slice_mut(words));
        // The same on every machine.
        words.iter_mut().for_each(|word| *word = u64::from_le(*word));
    }

    /// A source of its own, seeded with 256 bits of this one: so that threads can draw at once.
    #[must_use]
    pub fn child(&mut self) -> Self {
        let mut seed = [0u8; 32];
        self.0.fill_bytes(&mut seed);
        Self(ChaCha20Rng::from_seed(seed))
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Source(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_differ_from_their_parent_and_from_each_other() {
        let mut parent = Source::insecure_from_seed(1);
        let (mut one, mut two) = (parent.child(), parent.child());
        let mut words = [[0; 300]; 3];
        for (source, words) in [&mut parent, &mut one, &mut two].into_iter().zip(&mut words) {
            source.fill(words);
        }
        let mut all: Vec<u64> = words.concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 900);
        // Words are the same bits that come one at a time.
        let mut again = Source::insecure_from_seed(1);
        let _ = (again.child(), again.child());
        assert!(words[0].iter().all(|&word| word == again.bits()));
    }
}
