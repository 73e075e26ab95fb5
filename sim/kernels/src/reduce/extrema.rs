//! Minimum, maximum and absolute maximum: one order each, shared by the scalar twin and by every register.

use super::lanes::{Lanes, WIDEST};

/// Which of two elements an extremum keeps.
pub(super) trait Order {
    /// The extremum of nothing.
    const IDENTITY: f32;
    /// What of an element is compared.
    #[inline(always)]
    fn see(element: f32) -> f32 {
        element
    }
    /// Keeps `so_far` where `next`, which has been seen, is NaN or equal.
    fn keep(so_far: f32, next: f32) -> f32;
    /// Sees and keeps, for every lane.
    ///
    /// # Safety
    /// The processor has the instruction set of `V`.
    unsafe fn keep_lanes<V: Lanes>(so_far: V, next: V) -> V;
}

/// The order of the minimum.
pub(super) struct Smallest;
/// The order of the maximum.
pub(super) struct Largest;
/// The order of the absolute maximum.
pub(super) struct Farthest;

impl Order for Smallest {
    const IDENTITY: f32 = f32::INFINITY;
    #[inline(always)]
    fn keep(so_far: f32, next: f32) -> f32 {
        if next < so_far { next } else { so_far }
    }
    #[inline(always)]
    unsafe fn keep_lanes<V: Lanes>(so_far: V, next: V) -> V {
        // SAFETY: the caller's.
        unsafe { so_far.smaller(next) }
    }
}

impl Order for Largest {
    const IDENTITY: f32 = f32::NEG_INFINITY;
    #[inline(always)]
    fn keep(so_far: f32, next: f32) -> f32 {
        if next > so_far { next } else { so_far }
    }
    #[inline(always)]
    unsafe fn keep_lanes<V: Lanes>(so_far: V, next: V) -> V {
        // SAFETY: the caller's.
        unsafe { so_far.larger(next) }
    }
}

impl Order for Farthest {
    const IDENTITY: f32 = 0.0;
    #[inline(always)]
    fn see(element: f32) -> f32 {
        element.abs()
    }
    #[inline(always)]
    fn keep(so_far: f32, next: f32) -> f32 {
        Largest::keep(so_far, next)
    }
    #[inline(always)]
    unsafe fn keep_lanes<V: Lanes>(so_far: V, next: V) -> V {
        // SAFETY: the caller's.
        unsafe { so_far.larger(next.magnitude()) }
    }
}

/// Turns -0 into +0: which zero wins is the one thing about an extremum that shows the order of evaluation.
#[inline(always)]
pub(super) fn canonical(extremum: f32) -> f32 {
    extremum + 0.0
}

/// The registers that an extremum is spread over: enough that loads, not latencies, are what it waits for.
const SPREAD: usize = 8;

/// The extremum of a tensor, in the registers `V`.
///
/// # Safety
/// The processor has the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn extremum<O: Order, V: Lanes>(data: &[f32]) -> f32 {
    // SAFETY: every load is of `V::COUNT` elements from `at` on, and `at + V::COUNT <= data.len()` before it; the
    // instruction set is the caller's.
    unsafe {
        let start = data.as_ptr();
        let mut so_far = [V::splat(O::IDENTITY); SPREAD];
        let mut at = 0;
        if data.len() >= SPREAD * V::COUNT {
            // Reading some elements twice costs nothing here, and lets all later loads stay inside cache lines.
            so_far[0] = O::keep_lanes(so_far[0], V::load(start));
            at = start.align_offset(V::COUNT * size_of::<f32>()).min(V::COUNT);
        }
        while at + SPREAD * V::COUNT <= data.len() {
            for (k, register) in so_far.iter_mut().enumerate() {
                *register = O::keep_lanes(*register, V::load(start.add(at + k * V::COUNT)));
            }
            at += SPREAD * V::COUNT;
        }
        while at + V::COUNT <= data.len() {
            so_far[0] = O::keep_lanes(so_far[0], V::load(start.add(at)));
            at += V::COUNT;
        }
        let mut lanes = [O::IDENTITY; WIDEST];
        let [a, b, c, d, e, f, g, h] = so_far;
        let (ab, cd) = (O::keep_lanes(a, b), O::keep_lanes(c, d));
        let (ef, gh) = (O::keep_lanes(e, f), O::keep_lanes(g, h));
        O::keep_lanes(O::keep_lanes(ab, cd), O::keep_lanes(ef, gh)).store(lanes.as_mut_ptr());
        let rest = data.get_unchecked(at..);
        canonical(rest.iter().fold(tree::<O>(lanes), |so_far, &next| O::keep(so_far, O::see(next))))
    }
}

/// Halves the lanes until one is left.
#[inline(always)]
fn tree<O: Order>(mut lanes: [f32; WIDEST]) -> f32 {
    let mut half = WIDEST / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = O::keep(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}
