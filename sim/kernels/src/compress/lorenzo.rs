//! Prediction from decompressed neighbours, in integers.
//!
//! An element x becomes the step n = round(x / step), and is decompressed as n · step. The codec stores n less
//! Lorenzo's prediction (the paper's equation 8 in two dimensions, of first order): left + above − above left. These
//! are steps of decompressed values, so that no error adds up, and integers, so that all elements of a channel can be
//! predicted simultaneously.
//!
//! Each row continues the one above it, as on a helix: the left neighbour of a row's first element is the last of the
//! row above. Before the first element, all values are 0. So a channel is one run of elements, whatever its width.

use super::{BitReader, BitWriter, CodecError};
use crate::Isa;
use crate::simd::{Loops, compiled};

/// Added to a float of magnitude up to 2^22, it leaves no bits for a fraction: 1.5 · 2^23.
const MAGIC: f32 = 12_582_912.0;
/// Elements that are checked as a group: whether each has a step, whether any needs extra bits.
const STRIP: usize = 512;
/// From here on, the symbol of a miss gives only its number of bits.
const DIRECT: u32 = 224;
/// Bits of the first miss that is not a symbol of its own.
const DIRECT_BITS: u32 = 8;
/// The greatest symbol: a miss of 32 bits.
const LAST: u8 = (DIRECT + 32 - DIRECT_BITS) as u8;

/// The steps of a channel, after zeros for the neighbours before it.
#[derive(Debug, Default)]
pub(super) struct Steps {
    steps: Vec<i32>,
    margin: usize,
    width: usize,
}

impl Steps {
    /// Resizes for a channel of `plane` elements in rows of `width`; the values are left over from the last channel.
    pub(super) fn resize(&mut self, plane: usize, width: usize) {
        (self.margin, self.width) = (width + 1, width);
        self.steps.resize(self.margin + plane, 0);
        self.steps[..self.margin].fill(0);
    }

    /// The step of each element.
    pub(super) fn of_elements(&mut self) -> &mut [i32] {
        &mut self.steps[self.margin..]
    }

    /// Quantises a channel, and returns at which elements the error is not within `bound`, NaN and infinities
    /// included; their step is 0.
    pub(super) fn quantise(&mut self, values: &[f32], step: f32, bound: f32, isa: Isa) -> Vec<u32> {
        compiled(isa, Quantise { values, steps: self.of_elements(), step, bound })
    }

    /// Appends a symbol for each element: its difference from the prediction, or the number of bits of a large one.
    pub(super) fn predict(&self, isa: Isa, symbols: &mut Vec<u8>, extras: &mut BitWriter) {
        let start = symbols.len();
        symbols.resize(start + self.steps.len() - self.margin, 0);
        compiled(isa, Predict { grid: self, symbols: &mut symbols[start..], extras });
    }

    /// Restores a channel from its symbols.
    pub(super) fn restore(
        &mut self,
        symbols: &[u8],
        step: f32,
        isa: Isa,
        extras: &mut BitReader<'_>,
        values: &mut [f32],
    ) -> Result<(), CodecError> {
        compiled(isa, Restore { grid: self, symbols, step, extras, values })
    }
}

/// The step of an element, and the bits of its distance from the value of the step. The bits of magnitudes have the
/// order of magnitudes, with infinity and NaN above them.
///
/// If the distance, rounded to f32, is below a bound, the exact distance is not above it: rounding is monotone.
#[inline(always)]
fn quantised(x: f32, inverse: f32, step: f32) -> (i32, u32) {
    // Outside ±2^22 this is an arbitrary integer, which the distance then rejects.
    let n = ((x * inverse + MAGIC).to_bits() as i32).wrapping_sub(MAGIC.to_bits() as i32);
    (n, (x - n as f32 * step).abs().to_bits())
}

struct Quantise<'a> {
    values: &'a [f32],
    steps: &'a mut [i32],
    step: f32,
    bound: f32,
}

impl Loops for Quantise<'_> {
    type Output = Vec<u32>;

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> Vec<u32> {
        let Self { values, steps, step, bound } = self;
        let (inverse, mut missed) = (1.0 / step, Vec::new());
        for (strip, (values, steps)) in values.chunks(STRIP).zip(steps.chunks_mut(STRIP)).enumerate() {
            let mut farthest = 0;
            for (&x, n) in values.iter().zip(&mut *steps) {
                let (found, distance) = quantised(x, inverse, step);
                *n = found;
                farthest = distance.max(farthest);
            }
            if farthest >= bound.to_bits() {
                for (place, (&x, n)) in values.iter().zip(steps).enumerate() {
                    if quantised(x, inverse, step).1 >= bound.to_bits() {
                        *n = 0;
                        missed.push((strip * STRIP + place) as u32);
                    }
                }
            }
        }
        missed
    }
}

/// Maps small misses of either sign to small numbers: 0, -1, 1, -2 to 0, 1, 2, 3.
#[inline(always)]
fn fold(miss: i32) -> u32 {
    (miss << 1 ^ miss >> 31) as u32
}

/// Undoes [`fold`].
#[inline(always)]
fn unfold(folded: u32) -> i32 {
    (folded >> 1) as i32 ^ ((folded & 1) as i32).wrapping_neg()
}

struct Predict<'a> {
    grid: &'a Steps,
    symbols: &'a mut [u8],
    extras: &'a mut BitWriter,
}

impl Loops for Predict<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Steps { steps, margin, width } = self.grid;
        let plane = self.symbols.len();
        let here = &steps[*margin..][..plane];
        let left = &steps[margin - 1..][..plane];
        let above = &steps[margin - width..][..plane];
        let corner = &steps[margin - width - 1..][..plane];
        for (strip, symbols) in self.symbols.chunks_mut(STRIP).enumerate() {
            let strip = strip * STRIP..strip * STRIP + symbols.len();
            let (here, left) = (&here[strip.clone()], &left[strip.clone()]);
            let (above, corner) = (&above[strip.clone()], &corner[strip]);
            let folded = |i: usize| {
                let rise = here[i].wrapping_sub(above[i]);
                fold(rise.wrapping_sub(left[i].wrapping_sub(corner[i])))
            };
            let mut largest = 0;
            for (i, symbol) in symbols.iter_mut().enumerate() {
                let folded = folded(i);
                largest = folded.max(largest);
                *symbol = folded.min(255) as u8;
            }
            if largest >= DIRECT {
                for (i, symbol) in symbols.iter_mut().enumerate() {
                    let folded = folded(i);
                    if folded >= DIRECT {
                        let bits = 32 - folded.leading_zeros();
                        *symbol = (DIRECT + bits - DIRECT_BITS) as u8;
                        self.extras.push(folded ^ 1 << (bits - 1), bits - 1);
                    }
                }
            }
        }
    }
}

struct Restore<'a, 'b> {
    grid: &'a mut Steps,
    symbols: &'a [u8],
    step: f32,
    extras: &'a mut BitReader<'b>,
    values: &'a mut [f32],
}

impl Loops for Restore<'_, '_> {
    type Output = Result<(), CodecError>;

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> Self::Output {
        let Self { grid: Steps { steps, margin, width }, symbols, step, extras, values } = self;
        let (mut place, mut rise) = (*margin, 0);
        let mut rises = [0; STRIP];
        for (symbols, mut values) in symbols.chunks(STRIP).zip(values.chunks_mut(STRIP)) {
            let rises = &mut rises[..symbols.len()];
            misses(symbols, extras, rises)?;
            rise = sums::<WIDE>(rises, rise);
            // A piece no longer than a row never contains both an element and the one below it.
            for rises in rises.chunks(*width) {
                let (before, from_here) = steps.split_at_mut(place);
                let above = &before[place - *width..];
                let (here, rest) = values.split_at_mut(rises.len());
                for (((n, &above), &rise), x) in from_here.iter_mut().zip(above).zip(rises).zip(here) {
                    *n = above.wrapping_add(rise);
                    *x = *n as f32 * step;
                }
                (place, values) = (place + rises.len(), rest);
            }
        }
        Ok(())
    }
}

/// The misses of the prediction, from symbols and extra bits.
#[inline(always)]
fn misses(symbols: &[u8], extras: &mut BitReader<'_>, misses: &mut [i32]) -> Result<(), CodecError> {
    let mut largest = 0;
    for (&symbol, miss) in symbols.iter().zip(&mut *misses) {
        largest = symbol.max(largest);
        *miss = unfold(u32::from(symbol));
    }
    if u32::from(largest) >= DIRECT {
        for (&symbol, miss) in symbols.iter().zip(misses).filter(|(symbol, _)| u32::from(**symbol) >= DIRECT) {
            if symbol > LAST {
                return Err(CodecError::damaged("a frame", "it has a symbol without a meaning"));
            }
            let bits = u32::from(symbol) - DIRECT + DIRECT_BITS;
            *miss = unfold(1 << (bits - 1) | extras.take(bits - 1)?);
        }
    }
    Ok(())
}

/// Replaces each element by the sum of `carry` and of all elements up to it; returns the last sum.
#[inline(always)]
fn sums<const WIDE: bool>(values: &mut [i32], carry: i32) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if WIDE {
        // SAFETY: `WIDE` is set only if the processor has AVX2.
        return unsafe { x86::sums(values, carry) };
    }
    sums_one_by_one(values, carry)
}

#[inline(always)]
fn sums_one_by_one(values: &mut [i32], mut carry: i32) -> i32 {
    for value in values {
        carry = carry.wrapping_add(*value);
        *value = carry;
    }
    carry
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// [`super::sums_one_by_one`], eight at a time.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn sums(values: &mut [i32], carry: i32) -> i32 {
        let (vectors, rest) = values.as_chunks_mut::<8>();
        let mut carried = _mm256_set1_epi32(carry);
        let last = _mm256_set1_epi32(7);
        for vector in vectors {
            let at = vector.as_mut_ptr().cast::<__m256i>();
            // SAFETY: the array has eight i32; the load needs no alignment.
            let sum = unsafe { _mm256_loadu_si256(at) };
            // Sums within each half, then the lower half's onto the upper one.
            let sum = _mm256_add_epi32(sum, _mm256_slli_si256::<4>(sum));
            let sum = _mm256_add_epi32(sum, _mm256_slli_si256::<8>(sum));
            let lower = _mm256_permute2x128_si256::<0x08>(sum, sum);
            let sum = _mm256_add_epi32(sum, _mm256_shuffle_epi32::<0xFF>(lower));
            // Only this addition waits for the vector before.
            let total = _mm256_permutevar8x32_epi32(sum, last);
            let sum = _mm256_add_epi32(sum, carried);
            carried = _mm256_add_epi32(carried, total);
            // SAFETY: as for the load.
            unsafe { _mm256_storeu_si256(at, sum) };
        }
        super::sums_one_by_one(rest, _mm256_cvtsi256_si32(carried))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symbols and extra bits of steps in rows of `width`.
    fn predicted(steps: &[i32], width: usize, isa: Isa) -> (Vec<u8>, Vec<u8>) {
        let mut grid = Steps::default();
        grid.resize(steps.len(), width);
        grid.of_elements().copy_from_slice(steps);
        let (mut symbols, mut extras) = (Vec::new(), BitWriter::default());
        grid.predict(isa, &mut symbols, &mut extras);
        (symbols, extras.finish())
    }

    #[test]
    fn three_by_three_by_hand() {
        // 4 5 7     4  5-4           7-5                        =  4  1  2
        // 6 8 9     6-(7+4-0)        8-(6+5-4)    9-(8+7-5)     = -5  1 -1
        // 6 8 9     6-(9+6-7)        8-(6+8-6)    9-(8+9-8)     = -2  0  0
        // The left neighbour of row 2's first element is the last of row 1, 7; above that is 0, before the map.
        // A miss m is folded to 2m, or to -2m - 1 below zero.
        for isa in Isa::available() {
            let (symbols, extras) = predicted(&[4, 5, 7, 6, 8, 9, 6, 8, 9], 3, isa);
            assert_eq!(symbols, [8, 2, 4, 9, 2, 1, 3, 0, 0], "{isa}");
            assert!(extras.is_empty());
        }
    }

    #[test]
    fn a_large_miss_is_a_class_and_extra_bits() {
        // 112 folds to 224 = 0b1110_0000: eight bits, so the first class, and the seven below the leading one.
        // -113 - 112 = -225 folds to 449 = 0b1_1100_0001: nine bits, the second class, and eight extra bits.
        let (symbols, extras) = predicted(&[112, -113], 2, Isa::Scalar);
        assert_eq!(symbols, [224, 225]);
        assert_eq!(extras, (0b110_0000_u16 | 0b1100_0001 << 7).to_le_bytes());
    }

    #[test]
    fn elements_without_a_step_are_named_and_count_as_zero() {
        let values = [1.0, f32::NAN, -0.3, f32::NEG_INFINITY, 1e30, 0.0];
        for isa in Isa::available() {
            let mut grid = Steps::default();
            grid.resize(6, 6);
            // Steps of 0.25: 1 is 4, -0.3 the nearest of -1.2; 1e30 is beyond all steps.
            assert_eq!(grid.quantise(&values, 0.25, 0.13, isa), [1, 3, 4], "{isa}");
            assert_eq!(grid.of_elements(), [4, 0, -1, 0, 0, 0], "{isa}");
        }
    }

    #[test]
    fn every_width_and_every_isa_restores_what_was_predicted() {
        for (len, width) in [(1, 1), (9, 3), (49, 7), (600, 600), (1500, 1), (1540, 14), (2000, 40)] {
            let mut seed = 1_u32;
            let mut next = || {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Mostly small steps, now and then one of any size, which wraps around in the prediction.
                if seed >> 28 == 0 { seed as i32 } else { (seed >> 24) as i32 - 128 }
            };
            let steps: Vec<i32> = (0..len).map(|_| next()).collect();
            let (symbols, extras) = predicted(&steps, width, Isa::Scalar);
            for isa in Isa::available() {
                assert_eq!(predicted(&steps, width, isa), (symbols.clone(), extras.clone()), "{isa} {len} {width}");
                let (mut grid, mut values) = (Steps::default(), vec![0.0; len]);
                grid.resize(len, width);
                let mut reader = BitReader::new(&extras);
                grid.restore(&symbols, 0.5, isa, &mut reader, &mut values).unwrap();
                assert!(reader.finish().is_ok());
                assert!(values.iter().zip(&steps).all(|(&x, &n)| x == n as f32 * 0.5), "{isa} {len} {width}");
            }
        }
    }
}
