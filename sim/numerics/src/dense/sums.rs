//! Sums in a fixed order that vectors can compute: sixteen partial sums, then their sum.

/// Partial sums that are computed in parallel.
const LANES: usize = 16;

/// Σ f(a, b) over two slices of the same length.
#[inline(always)]
pub(super) fn sum_of(a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut lanes = [0.0_f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for i in 0..LANES {
            lanes[i] += f(a[i], b[i]);
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(&a, &b)| f(a, b)).sum();
    lanes.iter().sum::<f32>() + rest
}

/// Σ x.
#[inline(always)]
pub(super) fn sum(x: &[f32]) -> f32 {
    sum_of(x, x, |x, _| x)
}

/// The largest element; NaN is ignored.
#[inline(always)]
pub(super) fn largest(x: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let (x, rest) = x.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for x in x {
        for i in 0..LANES {
            lanes[i] = larger(lanes[i], x[i]);
        }
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |most, &x| larger(most, x))
}
