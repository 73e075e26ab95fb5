//! The code that the kernels are compared with: what a user would write, or take from a crate.
//!
//! - plain iterators and loops, as the compiler makes them for the default target;
//! - products of matrices ([`products`]): a triple loop, and blocks in f32;
//! - with the feature `peers`, the crates `bitpacking`, behind a vectorised quantiser, and `lz4_flex` and `zstd`, lossless
//!   compressors of the same bytes.

#[cfg(feature = "peers")]
pub(crate) mod bitpacked;
#[cfg(feature = "peers")]
pub(crate) mod lossless;
pub(crate) mod products;

/// `iter().fold(f32::INFINITY, f32::min)`.
#[inline]
pub(crate) fn minimum(values: &[f32]) -> f32 {
    values.iter().copied().fold(f32::INFINITY, f32::min)
}

/// `iter().fold(f32::NEG_INFINITY, f32::max)`.
#[inline]
pub(crate) fn maximum(values: &[f32]) -> f32 {
    values.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

/// The sum of squares in f64, by an iterator.
pub(crate) fn sum_of_squares(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value) * f64::from(value)).sum()
}

/// One bit a value, whether it is above zero, by a loop over the words.
pub(crate) fn mask(values: &[f32], words: &mut [u32]) {
    words.iter_mut().zip(values.chunks(32)).for_each(|(word, values)| {
        *word = values.iter().enumerate().fold(0, |word, (bit, &value)| word | (u32::from(value > 0.0) << bit));
    });
}

/// Zero where the mask has no bit, by a loop over the words.
pub(crate) fn gate(words: &[u32], values: &mut [f32]) {
    words.iter().zip(values.chunks_mut(32)).for_each(|(word, values)| {
        values.iter_mut().enumerate().filter(|(bit, _)| word >> bit & 1 == 0).for_each(|(_, value)| *value = 0.0);
    });
}

/// A loop that shifts half up and clamps: halves go up, not away from zero.
pub(crate) fn round_shift(values: &[i32], shift: u32, narrow: &mut [i8]) {
    let half = (1_i64 << shift) >> 1;
    narrow.iter_mut().zip(values).for_each(|(narrow, &value)| {
        *narrow = ((i64::from(value) + half) >> shift).clamp(-127, 127) as i8;
    });
}

/// Equation 4 of Mandheling as the paper writes it: a factor in f32 for each micro-batch, over as many elements at a
/// time as there are `sums`.
pub(crate) fn gradients(partials: &[(&[i8], f32)], sums: &mut [f32], narrow: &mut [i8]) {
    let block = sums.len();
    for (start, narrow) in (0..).step_by(block).zip(narrow.chunks_mut(block)) {
        let sums = &mut sums[..narrow.len()];
        sums.fill(0.0);
        for (values, factor) in partials {
            let values = &values[start..start + sums.len()];
            sums.iter_mut().zip(values).for_each(|(sum, &value)| *sum += f32::from(value) * factor);
        }
        // `as` rounds towards zero, and saturates.
        narrow.iter_mut().zip(sums).for_each(|(narrow, sum)| *narrow = (*sum + 0.5_f32.copysign(*sum)) as i8);
    }
}
