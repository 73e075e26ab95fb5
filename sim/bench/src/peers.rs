//! What the kernels are compared with: the code that one would write or take from a crate instead.
//!
//! - plain iterators and loops, as the compiler makes them for the default target;
//! - products of matrices ([`products`]): a triple loop, and blocks in f32;
//! - with the feature `peers`, the crates `bitpacking`, behind a vectorised quantiser, and `lz4_flex` and `zstd`, lossless
//!   compressors of the same bytes.

#[cfg(feature = "peers")]
pub(super) mod bitpacked;
#[cfg(feature = "peers")]
pub(super) mod lossless;
pub(super) mod products;

/// `iter().fold(f32::INFINITY, f32::min)`.
#[inline]
pub(super) fn minimum(values: &[f32]) -> f32 {
    values.iter().copied().fold(f32::INFINITY, f32::min)
}

/// `iter().fold(f32::NEG_INFINITY, f32::max)`.
#[inline]
pub(super) fn maximum(values: &[f32]) -> f32 {
    values.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

/// The largest magnitude, by a fold.
pub(super) fn absolute_maximum(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |largest, value| largest.max(value.abs()))
}

/// `iter().sum()` in f64.
pub(super) fn sum(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value)).sum()
}

/// The sum of squares in f64, by an iterator.
pub(super) fn sum_of_squares(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value) * f64::from(value)).sum()
}

/// Minimum, maximum and sum of squares in one fold.
pub(super) fn triple(values: &[f32]) -> (f32, f32, f64) {
    values.iter().fold((f32::INFINITY, f32::NEG_INFINITY, 0.0), |(minimum, maximum, squares), &value| {
        (minimum.min(value), maximum.max(value), squares + f64::from(value) * f64::from(value))
    })
}

/// `as u32`, which saturates.
pub(super) fn to_integers(values: &[f32], integers: &mut [u32]) {
    integers.iter_mut().zip(values).for_each(|(integer, &value)| *integer = value as u32);
}

/// `as i32 as f32`: the signed conversion, for which processors have an instruction.
pub(super) fn to_floats(integers: &[u32], values: &mut [f32]) {
    values.iter_mut().zip(integers).for_each(|(value, &integer)| *value = integer as i32 as f32);
}

/// One bit a value, whether it is above zero, by a loop over the words.
pub(super) fn mask(values: &[f32], words: &mut [u32]) {
    words.iter_mut().zip(values.chunks(32)).for_each(|(word, values)| {
        *word = values.iter().enumerate().fold(0, |word, (bit, &value)| word | (u32::from(value > 0.0) << bit));
    });
}

/// Zero where the mask has no bit, by a loop over the words.
pub(super) fn gate(words: &[u32], values: &mut [f32]) {
    words.iter().zip(values.chunks_mut(32)).for_each(|(word, values)| {
        values.iter_mut().enumerate().filter(|(bit, _)| word >> bit & 1 == 0).for_each(|(_, value)| *value = 0.0);
    });
}

/// The bits beyond seven of the largest magnitude, by a fold over leading zeros.
pub(super) fn scale(values: &[i32]) -> u32 {
    values.iter().fold(0, |scale, value| scale.max((32 - value.unsigned_abs().leading_zeros()).saturating_sub(7)))
}

/// A loop that shifts half up and clamps: halves go up, not away from zero.
pub(super) fn round_shift(values: &[i32], shift: u32, narrow: &mut [i8]) {
    let half = (1_i64 << shift) >> 1;
    narrow.iter_mut().zip(values).for_each(|(narrow, &value)| {
        *narrow = ((i64::from(value) + half) >> shift).clamp(-127, 127) as i8;
    });
}

/// Equation 4 of Mandheling as it stands: a factor for each micro-batch, in f32, as many elements at a time as there
/// are `sums`.
pub(super) fn gradients(partials: &[(&[i8], f32)], sums: &mut [f32], narrow: &mut [i8]) {
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

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [f32; 9] = [1.5, -2.0, 0.25, 3.0, -0.5, 0.0, 2.0, -1.0, 4.0];

    #[test]
    fn the_folds_answer_what_they_are_named_after() {
        assert_eq!((minimum(&VALUES), maximum(&VALUES), absolute_maximum(&VALUES)), (-2.0, 4.0, 4.0));
        // 1.5 − 2 + 0.25 + 3 − 0.5 + 2 − 1 + 4; 2.25 + 4 + 0.0625 + 9 + 0.25 + 4 + 1 + 16.
        assert_eq!((sum(&VALUES), sum_of_squares(&VALUES)), (7.25, 36.5625));
        assert_eq!(triple(&VALUES), (-2.0, 4.0, 36.5625));
    }

    #[test]
    fn the_conversions_and_the_mask_answer_what_they_are_named_after() {
        let mut integers = [9; 9];
        to_integers(&VALUES, &mut integers);
        assert_eq!(integers, [1, 0, 0, 3, 0, 0, 2, 0, 4]);
        let mut floats = [9.0; 9];
        to_floats(&integers, &mut floats);
        assert_eq!(floats, [1.0, 0.0, 0.0, 3.0, 0.0, 0.0, 2.0, 0.0, 4.0]);
        let mut words = [0];
        mask(&VALUES, &mut words);
        // Above zero are values 0, 2, 3, 6 and 8.
        assert_eq!(words, [0b1_0100_1101]);
        let mut values = VALUES;
        gate(&words, &mut values);
        assert_eq!(values, VALUES.map(|value| value.max(0.0)));
    }

    #[test]
    fn rescaling_and_gradients_answer_what_they_are_named_after() {
        // 1000 has ten bits. 1000/8 = 125, −12/8 = −1.5 → −1 with halves up, 5000/8 is held at 127.
        assert_eq!((scale(&[1000, -12]), scale(&[127])), (3, 0));
        let mut narrow = [0; 3];
        round_shift(&[1000, -12, 5000], 3, &mut narrow);
        assert_eq!(narrow, [125, -1, 127]);
        // 10 + 7/2 = 13.5 → 14, −10 − 7/2 → −14, 127 + 0 = 127.
        let partials: [(&[i8], f32); 2] = [(&[10, -10, 127], 1.0), (&[7, -7, 0], 0.5)];
        gradients(&partials, &mut [9.0; 2], &mut narrow);
        assert_eq!(narrow, [14, -14, 127]);
    }
}
