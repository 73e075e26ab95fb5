//! Random numbers of one purpose of one user.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// The last word of every key: another number is another family of streams.
const FAMILY: u64 = 2;

/// The stream of `user` for `purpose` under `seed`.
///
/// `ChaCha8` with the key (seed, FNV-1a of the user, FNV-1a of the purpose, 2), little-endian: adding a user, or
/// drawing more often for one purpose, changes nobody else's numbers, and the numbers are the same on every platform.
pub fn stream(seed: u64, user: &str, purpose: &str) -> ChaCha8Rng {
    let mut key = [0; 32];
    for (bytes, word) in key.chunks_exact_mut(8).zip([seed, fnv1a(user), fnv1a(purpose), FAMILY]) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    ChaCha8Rng::from_seed(key)
}

/// Fowler, Noll and Vo's hash, variant 1a, 64 bits.
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
