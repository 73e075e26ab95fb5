//! The read limit: the fastest that a tensor can be read at all, beside which every reduction is measured.

use super::dispatch::Kernels;
use super::lanes::{Lanes, WIDEST};
use crate::isa::Isa;

/// Adds up a tensor in eight registers of f32 and nothing else: no f64, no care for NaN, no accuracy.
///
/// A yardstick for bandwidth; use [`sum`](super::sum()) for a sum.
#[must_use]
pub fn sum(data: &[f32], isa: Isa) -> f32 {
    Kernels::of(isa).limit(data)
}

const SPREAD: usize = 8;

/// The limit in the registers `V`.
///
/// # Safety
/// The processor has the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn limit<V: Lanes>(data: &[f32]) -> f32 {
    // SAFETY: every load is of `V::COUNT` elements from `at` on, and `at + V::COUNT <= data.len()` before it; the
    // instruction set is the caller's.
    unsafe {
        let start = data.as_ptr();
        // As the extrema do, so that neither is ahead by alignment.
        let head = start.align_offset(V::COUNT * size_of::<f32>()).min(data.len());
        let mut at = head;
        let mut so_far = [V::splat(0.0); SPREAD];
        while at + SPREAD * V::COUNT <= data.len() {
            for (k, register) in so_far.iter_mut().enumerate() {
                *register = register.plus(V::load(start.add(at + k * V::COUNT)));
            }
            at += SPREAD * V::COUNT;
        }
        let mut lanes = [0.0; WIDEST];
        let [a, b, c, d, e, f, g, h] = so_far;
        a.plus(b).plus(c.plus(d)).plus(e.plus(f).plus(g.plus(h))).store(lanes.as_mut_ptr());
        let ends = data.get_unchecked(..head).iter().chain(data.get_unchecked(at..));
        lanes.iter().chain(ends).sum()
    }
}
