//! Pseudo-random numbers, the same ones every time.

/// Marsaglia's xorshift: the contents of a tensor and the order of a race need no better randomness.
pub(crate) struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Random {
    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A float from −2 to 2 whose density falls linearly from the middle, as activations crowd around zero.
    pub(crate) fn next_float(&mut self) -> f32 {
        let bits = self.next();
        // 24 bits each, which an f32 represents exactly.
        let unit = |bits: u64| (bits & 0xff_ffff) as f32 / 8_388_608.0 - 1.0;
        unit(bits) + unit(bits >> 24)
    }
}
