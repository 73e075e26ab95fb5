//! Masks of dropout, drawn from a counter: the same seed and element give the same mask again, whoever draws it and in
//! which parts.

use rayon::prelude::*;

use super::draw::draw;
use super::parallel::BLOCK;

/// Writes 0 with probability `p`, otherwise 1/(1 − p), for elements `first..` of a tensor whose draws belong to `seed`.
/// Dropout is the product with it, forward and backward. Nothing is kept if `p` is 1 or more.
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
