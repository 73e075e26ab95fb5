//! Exponential delays from SplitMix64: the same numbers for every loop.

/// The state of SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    #[inline]
    pub(crate) fn exponential(&mut self, mean: f64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        // 53 bits in (0, 1].
        let uniform = ((z >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64);
        (-mean * uniform.ln()) as u64
    }
}
