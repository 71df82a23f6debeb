//! Where randomness comes from.

use aes::Aes256;
use ctr::cipher::{Block, KeyIvInit as _, StreamCipherCore as _};
use ctr::{CtrCore, flavors};

/// The operating system gave no seed.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no random seed: {0}")]
pub struct NoSeed(String);

/// Words that are made at a time for those who want one.
const AHEAD: usize = 32;

/// AES-256 in counter mode under a key from the operating system: 256 bits, drawn once.
///
/// Noise for a large model is many megabytes a second, and processors have instructions for AES.
///
/// Neither `Clone` nor `Debug`-printable: a copy would draw the same noise again, and the state is a secret.
pub struct Source {
    cipher: Cipher,
    /// Made ahead; the first `used` are gone.
    ahead: [u64; AHEAD],
    used: usize,
}

type Cipher = CtrCore<Aes256, flavors::Ctr64LE>;

impl Source {
    /// A source with a fresh key from the operating system.
    ///
    /// # Errors
    /// [`NoSeed`] when the operating system has none.
    pub fn from_operating_system() -> Result<Self, NoSeed> {
        let mut key = [0; 4];
        getrandom::fill(bytemuck::must_cast_slice_mut(&mut key)).map_err(|error| NoSeed(error.to_string()))?;
        Ok(Self::with_key(key))
    }

    /// A source whose draws anyone can repeat. For tests: whoever knows the seed can subtract the noise.
    #[cfg(any(test, feature = "insecure"))]
    #[must_use]
    pub fn insecure_from_seed(seed: u64) -> Self {
        Self::with_key([seed, 0, 0, 0])
    }

    /// Each key is used for one stream only, so the counter starts at 0.
    fn with_key(key: [u64; 4]) -> Self {
        let key: [u8; 32] = bytemuck::must_cast(key.map(u64::to_le));
        Self { cipher: Cipher::new(&key.into(), &[0; 16].into()), ahead: [0; AHEAD], used: AHEAD }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        if self.used == AHEAD {
            stream(&mut self.cipher, &mut self.ahead);
            self.used = 0;
        }
        self.used += 1;
        self.ahead[self.used - 1]
    }

    /// Many times 64 random bits: the same that would come one at a time.
    pub fn fill(&mut self, words: &mut [u64]) {
        let (first, rest) = words.split_at_mut(words.len().min(AHEAD - self.used));
        first.copy_from_slice(&self.ahead[self.used..][..first.len()]);
        self.used += first.len();
        let (blocks, last) = rest.split_at_mut(rest.len() & !1);
        stream(&mut self.cipher, blocks);
        last.iter_mut().for_each(|word| *word = self.bits());
    }

    /// A source of its own, with 256 bits of this one as its key: so that threads can draw at once.
    #[must_use]
    pub fn child(&mut self) -> Self {
        Self::with_key(std::array::from_fn(|_| self.bits()))
    }
}

/// The next words of the stream, an even number of them. (A counter of 64 bits is not used up.)
fn stream(cipher: &mut Cipher, words: &mut [u64]) {
    let (blocks, _) = Block::<Cipher>::slice_as_chunks_mut(bytemuck::must_cast_slice_mut(words));
    cipher.write_keystream_blocks(blocks);
    // The same on every machine.
    words.iter_mut().for_each(|word| *word = u64::from_le(*word));
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Source(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bits are AES-256's: block after block is the counter, encrypted.
    #[test]
    fn words_are_the_cipher_of_the_counter() {
        use aes::cipher::{BlockCipherEncrypt as _, KeyInit as _};
        let mut source = Source::insecure_from_seed(7);
        let mut key = [0u8; 32];
        key[0] = 7;
        let cipher = Aes256::new(&key.into());
        for counter in 0..100u64 {
            let mut block = [0u8; 16];
            block[..8].copy_from_slice(&counter.to_le_bytes());
            let mut block = block.into();
            cipher.encrypt_block(&mut block);
            let words: [u64; 2] = bytemuck::must_cast(<[u8; 16]>::from(block));
            assert_eq!(words.map(u64::from_le), [source.bits(), source.bits()], "{counter}");
        }
    }

    /// Known answer: FIPS 197, appendix C.3.
    #[test]
    fn the_cipher_is_the_standard() {
        use aes::cipher::{BlockCipherEncrypt as _, KeyInit as _};
        let count = |step: u8| move |i: usize| u8::try_from(i).expect("a byte") * step;
        let key: [u8; 32] = std::array::from_fn(count(1));
        let mut block = std::array::from_fn::<u8, 16, _>(count(17)).into();
        Aes256::new(&key.into()).encrypt_block(&mut block);
        let expected = [0x8e, 0xa2, 0xb7, 0xca, 0x51, 0x67, 0x45, 0xbf, 0xea, 0xfc, 0x49, 0x90, 0x4b, 0x49, 0x60, 0x89];
        assert_eq!(<[u8; 16]>::from(block), expected);
    }

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
