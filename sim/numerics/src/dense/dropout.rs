//! Masks of dropout, drawn from a counter: the same seed and element always give the same mask, on any
//! thread and in any parts.

use rayon::prelude::*;

use super::parallel::BLOCK;

/// Writes 0 with probability `p`, otherwise 1/(1 − p), for elements `first..` of a tensor whose draws come from `seed`.
/// Dropout is the product with this mask, forward and backward. No element is kept if `p` is 1 or more.
pub fn mask(seed: u64, first: u64, p: f32, mask: &mut [f32]) {
    let kept = if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 };
    // A draw is 24 bits; those below the threshold are dropped.
    let threshold = (f64::from(p.clamp(0.0, 1.0)) * f64::from(1_u32 << 24)) as u64;
    mask.par_chunks_mut(BLOCK).enumerate().for_each(|(block, mask)| {
        let first = first.wrapping_add((block * BLOCK) as u64);
        for (i, element) in mask.iter_mut().enumerate() {
            *element = if draw(seed, first.wrapping_add(i as u64)) >> 40 < threshold { 0.0 } else { kept };
        }
    });
}

/// 64 random bits of an element: `SplitMix64` at that position of the stream that begins at a hash of the seed.
const fn draw(seed: u64, element: u64) -> u64 {
    finalise(finalise(seed).wrapping_add(element.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

/// The finaliser of `SplitMix64` (Steele, Lea and Flood 2014; Stafford's variant 13).
const fn finalise(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
