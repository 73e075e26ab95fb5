//! Numbers without a pattern, the same ones every time.

/// Marsaglia's xorshift: the contents of a tensor and the order of a race need no better randomness.
pub(super) struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Random {
    /// The next 64 bits.
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A float from −2 to 2 whose density falls linearly from the middle, as activations crowd around zero.
    pub(super) fn next_float(&mut self) -> f32 {
        let bits = self.next();
        // 24 bits each, which an f32 holds exactly.
        let unit = |bits: u64| (bits & 0xff_ffff) as f32 / 8_388_608.0 - 1.0;
        unit(bits) + unit(bits >> 24)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_fill_their_range_around_zero() {
        let mut random = Random::default();
        let floats: Vec<f64> = (0..10_000).map(|_| f64::from(random.next_float())).collect();
        // The sum of two uniform numbers on −1 to 1: mean 0, variance 2/3; the mean of 10 000 is within 5 · 0.0082.
        let mean = floats.iter().sum::<f64>() / 1e4;
        let variance = floats.iter().map(|float| float * float).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.041 && (variance - 2.0 / 3.0).abs() < 0.05, "{mean} {variance}");
        assert!(floats.iter().all(|float| float.abs() <= 2.0) && floats.iter().any(|float| float.abs() > 1.9));
    }
}
