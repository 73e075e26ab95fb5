//! Random numbers for tests.

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) with its state: the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Draws(pub u64);

impl Draws {
    /// Sixty-four random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which counts as 1 if it is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % end.max(1) as u64) as usize
    }

    /// A number from 0 to below 1, of 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        // The first outputs of the reference implementation for the seed 1234567.
        let mut draws = Draws(1_234_567);
        assert_eq!([draws.bits(), draws.bits()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn draws_stay_in_their_range() {
        let mut draws = Draws(1);
        assert!((0..100).all(|_| draws.below(3) < 3 && (0.0..1.0).contains(&draws.unit())));
        assert_eq!(draws.below(0), 0);
    }
}
