//! Data about people who do not exist.

/// A small generator for made-up data; never for noise. The same numbers every time.
pub(super) struct Generator(pub(super) u64);

impl Generator {
    pub(super) fn below(&mut self, n: u64) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % n).unwrap_or(0)
    }
}
