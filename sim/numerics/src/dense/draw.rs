//! Random numbers by counter: the same stream and place give the same number again, whoever draws it.

/// 64 random bits of an element: `SplitMix64` at that place of the stream that begins at a hash of the seed.
pub(crate) const fn draw(seed: u64, element: u64) -> u64 {
    finalise(finalise(seed).wrapping_add(element.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

/// The finaliser of `SplitMix64` (Steele, Lea and Flood 2014; Stafford's variant 13).
const fn finalise(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
