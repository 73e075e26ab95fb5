//! Named random streams: the component and the purpose determine the numbers.

use std::convert::Infallible;

use rand::rngs::ChaCha8Rng;
use rand::{SeedableRng, TryRng};

use crate::calibration::fnv1a;

/// The random numbers of one purpose of one component, user or item.
///
/// A stream depends only on its seed and its two names: adding a component, or drawing more often in one, leaves all
/// other streams unchanged, so policies are compared under the same draws. A stream cannot be cloned, since two owners
/// would draw the same numbers.
///
/// # Derivation
///
/// The stream is `ChaCha8` with the 32-byte key
///
/// | bytes | content, little-endian |
/// |---|---|
/// | 0–7 | the seed |
/// | 8–15 | FNV-1a, 64 bits, of the UTF-8 bytes of the component or user; of an item, of its purpose |
/// | 16–23 | FNV-1a, 64 bits, of the purpose's UTF-8 bytes; of an item, its number |
/// | 24–31 | the family: 1 for a component, 2 for a user, 3 for an item |
///
/// The names are hashed apart, so that ("ab", "c") and ("a", "bc") have different keys. `ChaCha` mixes related keys
/// into unrelated streams; two names can only meet where FNV-1a collides. The numbers are the same on every platform.
///
/// ```
/// use haversack_devices::stream::Stream;
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
        Self::keyed([seed, fnv1a(component.bytes()), fnv1a(purpose.bytes()), 1])
    }

    /// The stream of `user` for `purpose` under `seed`.
    pub fn of_user(seed: u64, user: &str, purpose: &str) -> Self {
        Self::keyed([seed, fnv1a(user.bytes()), fnv1a(purpose.bytes()), 2])
    }

    /// The stream of item number `item` (a sample, an epoch) for `purpose` under `seed`.
    pub fn of_item(seed: u64, purpose: &str, item: u64) -> Self {
        Self::keyed([seed, fnv1a(purpose.bytes()), item, 3])
    }

    fn keyed(words: [u64; 4]) -> Self {
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
