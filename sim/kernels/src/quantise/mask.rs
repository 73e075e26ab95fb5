//! One bit an element: which elements a `ReLU` or a dropout let through.
//!
//! Bit `i % 32` of word `i / 32` belongs to element i; the bits after the last element are zero.

use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::{Isa, KernelError};

/// Words for the mask of `len` elements.
pub const fn mask_words(len: usize) -> usize {
    len.div_ceil(32)
}

/// Sets the elements that are not marked to zero: the backward pass of a `ReLU`.
///
/// # Errors
/// [`KernelError::Length`] if `words` are not the [`mask_words`] of `values`.
pub fn gate(words: &[u32], isa: Isa, values: &mut [f32]) -> Result<(), KernelError> {
    KernelError::expect_length("the mask", words.len(), mask_words(values.len()))?;
    dispatch(isa, Gate { words, values });
    Ok(())
}

struct Gate<'a> {
    words: &'a [u32],
    values: &'a mut [f32],
}

impl Kernel for Gate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (pairs, rest) = self.values.as_chunks_mut::<{ 2 * LANES }>();
        for (pair, word) in pairs.iter_mut().zip(self.words) {
            for (i, half) in pair.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
                simd.store(simd.keep(simd.load(half), (*word >> (LANES * i)) as u16), half);
            }
        }
        for (i, x) in rest.iter_mut().enumerate() {
            *x = if self.words[pairs.len()] >> i & 1 == 1 { *x } else { 0.0 };
        }
    }
}
