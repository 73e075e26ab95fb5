//! The weight gradient of a batch from those of its micro-batches (Mandheling, section 3.5, equation 4).

use super::rescale::{LARGEST_SHIFT, Rounder, rounded};
use crate::simd::{Kernel, LANES, Simd, dispatch, words, words_mut};
use crate::{Isa, KernelError};

/// The most micro-batches whose sum is sure to fit in an i32: 2^24 times -128 is [`i32::MIN`].
const MOST_PARTIALS: usize = 1 << 24;

/// Elements that are summed before the next ones: 4 KiB, which fits in a first-level cache.
const BLOCK: usize = 1024;

/// The weight gradient of one micro-batch: `values * 2^scale`.
#[derive(Clone, Copy, Debug)]
pub struct Partial<'a> {
    /// Its values.
    pub values: &'a [i8],
    /// How many bits they have been shifted down by.
    pub scale: u32,
}

/// The sum of micro-batches' weight gradients at their common scale, which is returned: equation 4,
/// `W = sum of W_i * 2^(S_i - S)`, in i8 from -127 to 127.
///
/// `S_i` is never above `S`, so the factor is a shift down, [`rounded`] to the nearest integer, halves away from zero;
/// if `S_i` is `S`, which the paper finds to be the common case, there is nothing to round and the sum is exact. Sums
/// are wide, and only the last step saturates.
///
/// # Errors
/// [`KernelError::Length`] for gradients of another length than the sum, and [`KernelError::Overflow`] for more
/// than 2^24 of them. Nothing is written then.
pub fn accumulate(partials: &[Partial<'_>], sum: &mut [i8], isa: Isa) -> Result<u32, KernelError> {
    check(partials, sum.len())?;
    // `S = max S_i`: the scale of the widest micro-batch; 0 if there is none.
    let scale = partials.iter().map(|partial| partial.scale).max().unwrap_or(0);
    dispatch(isa, Narrow { partials, scale, sum });
    Ok(scale)
}

fn check(partials: &[Partial<'_>], expected: usize) -> Result<(), KernelError> {
    if partials.len() > MOST_PARTIALS {
        return Err(KernelError::Overflow { terms: partials.len(), most: MOST_PARTIALS });
    }
    let mut lengths = partials.iter().map(|partial| partial.values.len());
    lengths.try_for_each(|found| KernelError::expect_length("a micro-batch's gradient", found, expected))
}

struct Narrow<'a> {
    partials: &'a [Partial<'a>],
    scale: u32,
    sum: &'a mut [i8],
}

impl Kernel for Narrow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut wide = [0; BLOCK];
        let saturate = Rounder::new(simd, 0);
        for (sum, start) in self.sum.chunks_mut(BLOCK).zip((0..).step_by(BLOCK)) {
            let wide = &mut wide[..sum.len()];
            add_all(simd, self.partials, self.scale, start, wide);
            let ((wide, wide_rest), (sum, sum_rest)) = (wide.as_chunks(), sum.as_chunks_mut());
            for (wide, sum) in wide.iter().zip(sum) {
                simd.narrow(saturate.round(simd.load_words(words(wide))), sum);
            }
            for (&wide, sum) in wide_rest.iter().zip(sum_rest) {
                *sum = rounded(wide, 0);
            }
        }
    }
}

/// The sums of all micro-batches from element `start` on.
#[inline(always)]
fn add_all<S: Simd>(simd: S, partials: &[Partial<'_>], scale: u32, start: usize, sums: &mut [i32]) {
    sums.fill(0);
    for partial in partials {
        let values = &partial.values[start..][..sums.len()];
        // Nothing of an i8 is left after nine bits.
        match (scale - partial.scale).min(LARGEST_SHIFT) {
            0 => add(simd, values, sums, |word| word, i32::from),
            shift => {
                let rounder = Rounder::new(simd, shift);
                add(simd, values, sums, |word| rounder.round(word), |value| rounded(value.into(), shift).into());
            }
        }
    }
}

/// Adds values to sums, sixteen at a time by one function and the rest by its twin.
#[inline(always)]
fn add<S: Simd>(
    simd: S,
    values: &[i8],
    sums: &mut [i32],
    lanes: impl Fn(S::Words) -> S::Words,
    single: impl Fn(i8) -> i32,
) {
    let ((values, values_rest), (sums, sums_rest)) = (values.as_chunks::<LANES>(), sums.as_chunks_mut::<LANES>());
    for (values, sums) in values.iter().zip(sums) {
        let sum = simd.add(simd.load_words(words(sums)), lanes(simd.widen(values)));
        simd.store_words(sum, words_mut(sums));
    }
    for (&value, sum) in values_rest.iter().zip(sums_rest) {
        *sum += single(value);
    }
}
