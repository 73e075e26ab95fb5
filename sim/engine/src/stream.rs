//! Named random streams: who draws, and for what, decides the numbers.

use std::convert::Infallible;

use rand::rngs::ChaCha8Rng;
use rand::{SeedableRng, TryRng};

/// The last word of every key. Another number is another family of streams.
const FAMILY: u64 = 1;

/// The random numbers of one purpose of one component.
///
/// A stream depends on its seed and its two names only: adding a component, or drawing more often in
/// one, changes nobody else's numbers, so that policies are compared under the same draws. A stream
/// cannot be cloned: two owners would draw the same numbers.
///
/// # Derivation
///
/// The stream is `ChaCha8` with the 32-byte key
///
/// | bytes | content, little-endian |
/// |---|---|
/// | 0–7 | the seed |
/// | 8–15 | FNV-1a, 64 bits, of the component's UTF-8 bytes |
/// | 16–23 | FNV-1a, 64 bits, of the purpose's UTF-8 bytes |
/// | 24–31 | 1, the family |
///
/// The names are hashed apart, so that ("ab", "c") and ("a", "bc") have different keys. `ChaCha`
/// mixes related keys into unrelated streams; two names can only meet where FNV-1a collides. The
/// numbers are the same on every platform.
///
/// ```
/// use haversack_engine::Stream;
/// use rand::RngExt;
///
/// let mut arrivals = Stream::new(42, "background apps", "arrival");
/// let share: f64 = arrivals.random();
/// assert!((0.0..1.0).contains(&share));
/// ```
#[derive(Debug)]
#[must_use]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream of `component` for `purpose` under `seed`.
    pub fn new(seed: u64, component: &str, purpose: &str) -> Self {
        let words = [seed, fnv1a(component), fnv1a(purpose), FAMILY];
        let mut key = [0; 32];
        for (bytes, word) in key.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Self(ChaCha8Rng::from_seed(key))
    }
}

/// Makes [`rand::Rng`] and [`rand::RngExt`] available.
impl TryRng for Stream {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0.try_next_u32()
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0.try_next_u64()
    }

    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> Result<(), Infallible> {
        self.0.try_fill_bytes(destination)
    }
}

/// Fowler, Noll and Vo's hash, variant 1a (draft-eastlake-fnv, 64-bit parameters).
fn fnv1a(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        // Test vectors of the FNV draft, appendix C: "", "a" and "foobar".
        assert_eq!(fnv1a(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
    }
}
