//! Sums, sums of squares and the fused triple over registers: f32 lanes, emptied into f64 before they lose digits.

use super::Triple;
use super::extrema::{Largest, Order, Smallest, canonical};
use super::lanes::{ADDITIONS, Lanes, MOST_SUMS, WIDEST};

/// What a sum adds for an element.
pub(super) trait Term {
    /// In f64, where products of f32 are exact.
    fn term(element: f32) -> f64;
    /// Adds it to lanes.
    ///
    /// # Safety
    /// The processor has the instruction set of `V`.
    unsafe fn add<V: Lanes>(so_far: V, next: V) -> V;
}

/// The element itself.
pub(super) struct Plain;
/// Its square.
pub(super) struct Square;

impl Term for Plain {
    #[inline(always)]
    fn term(element: f32) -> f64 {
        f64::from(element)
    }
    #[inline(always)]
    unsafe fn add<V: Lanes>(so_far: V, next: V) -> V {
        // SAFETY: the caller's.
        unsafe { so_far.plus(next) }
    }
}

impl Term for Square {
    #[inline(always)]
    fn term(element: f32) -> f64 {
        f64::from(element) * f64::from(element)
    }
    #[inline(always)]
    unsafe fn add<V: Lanes>(so_far: V, next: V) -> V {
        // SAFETY: the caller's.
        unsafe { so_far.plus_square(next) }
    }
}

/// Sees every register of a tensor that is being summed.
trait Watch<V: Lanes> {
    /// # Safety
    /// The processor has the instruction set of `V`.
    unsafe fn see(&mut self, k: usize, next: V);
}

/// Looks away.
struct Nobody;

impl<V: Lanes> Watch<V> for Nobody {
    #[inline(always)]
    unsafe fn see(&mut self, _: usize, _: V) {}
}

/// Keeps the extrema.
struct Range<V> {
    smallest: [V; MOST_SUMS],
    largest: [V; MOST_SUMS],
}

impl<V: Lanes> Watch<V> for Range<V> {
    #[inline(always)]
    unsafe fn see(&mut self, k: usize, next: V) {
        // SAFETY: the caller's.
        unsafe {
            self.smallest[k] = Smallest::keep_lanes(self.smallest[k], next);
            self.largest[k] = Largest::keep_lanes(self.largest[k], next);
        }
    }
}

/// The sum of the terms of a tensor.
///
/// # Safety
/// The processor has the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn sum<T: Term, V: Lanes>(data: &[f32]) -> f64 {
    // SAFETY: the caller's.
    unsafe { watched::<T, V>(data, &mut Nobody) }
}

/// Minimum, maximum and sum of squares in one pass.
///
/// # Safety
/// The processor has the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn triple<V: Lanes>(data: &[f32]) -> Triple {
    // SAFETY: the stores are of `V::COUNT` elements, at most `WIDEST`; the instruction set is the caller's.
    unsafe {
        let mut range =
            Range { smallest: [V::splat(f32::INFINITY); MOST_SUMS], largest: [V::splat(f32::NEG_INFINITY); MOST_SUMS] };
        let sum_of_squares = watched::<Square, V>(data, &mut range);
        let (mut smallest, mut largest) = (range.smallest[0], range.largest[0]);
        for k in 1..V::SUMS {
            smallest = smallest.smaller(range.smallest[k]);
            largest = largest.larger(range.largest[k]);
        }
        let mut lanes = ([f32::INFINITY; WIDEST], [f32::NEG_INFINITY; WIDEST]);
        smallest.store(lanes.0.as_mut_ptr());
        largest.store(lanes.1.as_mut_ptr());
        let rest = data.get_unchecked(data.len() - data.len() % V::COUNT..);
        let minimum = lanes.0.iter().chain(rest).fold(f32::INFINITY, |so_far, &next| Smallest::keep(so_far, next));
        let maximum = lanes.1.iter().chain(rest).fold(f32::NEG_INFINITY, |so_far, &next| Largest::keep(so_far, next));
        Triple { minimum: canonical(minimum), maximum: canonical(maximum), sum_of_squares }
    }
}

/// The sum of the terms of a tensor, shown to `watch` on the way; the last `len % V::COUNT` elements are not shown.
///
/// # Safety
/// The processor has the instruction set of `V`.
#[inline(always)]
unsafe fn watched<T: Term, V: Lanes>(data: &[f32], watch: &mut impl Watch<V>) -> f64 {
    // SAFETY: every load is of `V::COUNT` elements from `at` on, and `at + V::COUNT <= data.len()` before it; the
    // instruction set is the caller's.
    unsafe {
        let start = data.as_ptr();
        let mut total = V::nothing();
        let mut at = 0;
        let stride = V::SUMS * V::COUNT;
        while at + stride <= data.len() {
            let end = data.len().min(at + ADDITIONS * stride);
            let mut so_far = [V::splat(0.0); MOST_SUMS];
            while at + stride <= end {
                for (k, register) in so_far.iter_mut().enumerate().take(V::SUMS) {
                    let next = V::load(start.add(at + k * V::COUNT));
                    *register = T::add(*register, next);
                    watch.see(k, next);
                }
                at += stride;
            }
            total = folded(so_far).empty_into(total);
        }
        let mut last = V::splat(0.0);
        while at + V::COUNT <= data.len() {
            let next = V::load(start.add(at));
            last = T::add(last, next);
            watch.see(0, next);
            at += V::COUNT;
        }
        let lanes = V::total(last.empty_into(total));
        data.get_unchecked(at..).iter().fold(lanes, |total, &element| total + T::term(element))
    }
}

/// The sum of the registers that are in use, as a tree.
#[inline(always)]
unsafe fn folded<V: Lanes>(mut so_far: [V; MOST_SUMS]) -> V {
    let mut half = V::SUMS / 2;
    while half > 0 {
        for k in 0..half {
            // SAFETY: the caller's.
            so_far[k] = unsafe { so_far[k].plus(so_far[k + half]) };
        }
        half /= 2;
    }
    so_far[0]
}
