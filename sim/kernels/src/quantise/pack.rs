//! From f32 to packed words.

use super::block::{Block, Codes, Stored, combine, combine_neighbours, encode};
use super::extremes::{Extremes, extremes, of_tensor};
use super::format::{Bits, Format, GROUP, Grouping, with_width};
use super::layout::Layout;
use super::rounding::{Chance, Nearest, Rounder, Rounding, word_bias};
use super::scale::Scale;
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::{Isa, KernelError};

/// Quantises `values` and packs them into `words` and `params`, which are [`Format::words`] and [`Format::params`] long.
///
/// With one range a tensor, the values are read twice, for the range and for the codes; with groups of 256, once from
/// memory. The distance of a value from its code's value is at most half a step (a whole step under stochastic
/// rounding), up to the rounding of f32 arithmetic: 2^-12 of a step and two units in the last place of the value.
///
/// # Errors
/// [`KernelError::Length`] on buffers of other lengths, [`KernelError::Range`] as the module describes; the contents of
/// the buffers are then undefined.
pub fn quantise_into(
    values: &[f32],
    format: Format,
    rounding: Rounding,
    isa: Isa,
    words: &mut [u32],
    params: &mut [u32],
) -> Result<(), KernelError> {
    format.check(values.len(), words.len(), params.len())?;
    dispatch(isa, Quantise { values, format, rounding, words, params })
}

struct Quantise<'a> {
    values: &'a [f32],
    format: Format,
    rounding: Rounding,
    words: &'a mut [u32],
    params: &'a mut [u32],
}

impl Kernel for Quantise<'_> {
    type Output = Result<(), KernelError>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let Self { values, format, rounding, words, params } = self;
        let packed = match format.grouping {
            Grouping::Tensor => {
                let [low, step] = &mut *params else { return Ok(()) };
                let Extremes { minimum, maximum, clean } = of_tensor(simd, values);
                let scale = Scale::of(minimum, maximum, format.bits, Grouping::Tensor)?;
                (*low, *step) = (scale.minimum.to_bits(), scale.step.to_bits());
                if clean && rounding == Rounding::NearestEven {
                    let rounder = Nearest::<S, false>::new(simd, format.bits);
                    whole_blocks(simd, rounder, values, scale, format, words)
                } else {
                    0
                }
            }
            Grouping::Group256 => groups(simd, values, format, rounding, words, params)?,
        };
        rest(simd, values, Stored { format, params }, rounding, words, packed);
        Ok(())
    }
}

/// Packs the whole blocks of a tensor where they are consecutive elements, and returns how many elements those are.
#[inline(always)]
fn whole_blocks<S: Simd, R: Rounder<S>>(
    simd: S,
    rounder: R,
    values: &[f32],
    scale: Scale,
    format: Format,
    words: &mut [u32],
) -> usize {
    let range = (simd.splat(scale.minimum), simd.splat(-scale.inverse()));
    match format.layout {
        Layout::Interleaved => {
            with_width!(format.bits, interleaved_blocks<S, _, _>, simd, rounder, values, |_| range, words)
        }
        Layout::Sequential => with_width!(format.bits, sequential_blocks<S, _>, simd, rounder, values, range, words),
        Layout::Unified(_) => 0,
    }
}

/// Packs whole interleaved blocks, for which `range` gives the range of each vector, and returns how
/// many elements those are.
#[inline(always)]
fn interleaved_blocks<S: Simd, R: Rounder<S>, F: Fn(usize) -> Range<S>, const B: u32, const K: usize>(
    simd: S,
    rounder: R,
    values: &[f32],
    range: F,
    words: &mut [u32],
) -> usize {
    let (blocks, _) = values.as_chunks::<LANES>().0.as_chunks::<K>();
    for (n, (block, word)) in blocks.iter().zip(words.as_chunks_mut::<LANES>().0).enumerate() {
        let packed = pack_block::<S, R, B, K>(simd, rounder, block, n * LANES * K, |vector| range(n * K + vector));
        simd.store_words(packed, word);
    }
    blocks.len() * LANES * K
}

/// Packs the whole sequential blocks of a tensor, and returns how many elements those are.
#[inline(always)]
fn sequential_blocks<S: Simd, R: Rounder<S>, const B: u32, const K: usize>(
    simd: S,
    rounder: R,
    values: &[f32],
    range: Range<S>,
    words: &mut [u32],
) -> usize {
    let (minimum, slope) = range;
    let (blocks, _) = values.as_chunks::<LANES>().0.as_chunks::<K>();
    let mut codes = [[0; LANES]; K];
    for (n, (block, words)) in blocks.iter().zip(words.as_chunks_mut::<LANES>().0).enumerate() {
        for (i, (vector, codes)) in block.iter().zip(&mut codes).enumerate() {
            simd.ask_ahead(vector);
            simd.store_words(rounder.code(simd.load(vector), minimum, slope, (n * K + i) * LANES), codes);
        }
        combine_neighbours::<B, K>(R::BIAS, codes.as_flattened(), words);
    }
    blocks.len() * LANES * K
}

/// Finds the ranges of a tensor's groups, and packs up to the first chunk that has a NaN: first the ranges of a chunk,
/// which stays in the first-level cache, then its codes. Returns how many elements are packed.
#[inline(always)]
fn groups<S: Simd>(
    simd: S,
    values: &[f32],
    format: Format,
    rounding: Rounding,
    words: &mut [u32],
    params: &mut [u32],
) -> Result<usize, KernelError> {
    let mut fast = matches!((format.layout, rounding), (Layout::Interleaved, Rounding::NearestEven));
    let rounder = Nearest::<S, false>::new(simd, format.bits);
    // Both a whole number of groups and a whole number of blocks: 16 groups, or the k groups of 16 blocks.
    let k = format.bits.per_word();
    let groups = if k.is_power_of_two() { LANES } else { k };
    let mut packed = 0;
    for (n, (chunk, params)) in values.chunks(groups * GROUP).zip(params.chunks_mut(groups)).enumerate() {
        let ranges = Ranges::of(simd, chunk, format.bits, params)?;
        fast &= ranges.clean;
        if fast {
            let first = n * groups * GROUP;
            let words = &mut words[first / k..];
            let range = |vector: usize| ranges.of_group(simd, vector / (GROUP / LANES) % LANES);
            packed = first + with_width!(format.bits, interleaved_blocks<S, _, _>, simd, rounder, chunk, range, words);
        }
    }
    Ok(packed)
}

/// The minimum of a range, and minus the inverse of its step, in every lane.
type Range<S> = (<S as Simd>::Floats, <S as Simd>::Floats);

/// The ranges of up to sixteen groups.
struct Ranges {
    minima: [f32; LANES],
    /// Minus the inverses of their steps.
    slopes: [f32; LANES],
    /// No element is NaN.
    clean: bool,
}

impl Ranges {
    #[inline(always)]
    fn of_group<S: Simd>(&self, simd: S, group: usize) -> Range<S> {
        (simd.splat(self.minima[group]), simd.splat(self.slopes[group]))
    }

    /// Finds the ranges of a chunk's groups, and stores them.
    #[inline(always)]
    fn of<S: Simd>(simd: S, chunk: &[f32], bits: Bits, params: &mut [u32]) -> Result<Self, KernelError> {
        let (mut minima, mut maxima, mut slopes) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        let mut all_clean = true;
        for (i, group) in chunk.chunks(GROUP).enumerate().take(LANES) {
            let Extremes { minimum, maximum, clean } = extremes(simd, group);
            (minima[i], maxima[i]) = (minimum, maximum);
            all_clean &= clean;
        }
        let (top, mut stored, mut finite) = (bits.top() as f32, [0; LANES], true);
        // All sixteen, needed or not: the loop becomes a few vector operations.
        let bounds = minima;
        for i in 0..LANES {
            let scale = Scale::raw(minima[i], maxima[i], top, Grouping::Group256);
            finite &= scale.is_finite(top);
            (minima[i], slopes[i], stored[i]) = (scale.minimum, -scale.inverse(), scale.to_group_param());
        }
        if !finite {
            for i in 0..params.len() {
                Scale::of(bounds[i], maxima[i], bits, Grouping::Group256)?;
            }
        }
        params.copy_from_slice(&stored[..params.len()]);
        Ok(Self { minima, slopes, clean: all_clean })
    }
}

/// Packs sixteen words from K vectors. `range` returns the minimum and the slope of a vector.
#[inline(always)]
fn pack_block<S: Simd, R: Rounder<S>, const B: u32, const K: usize>(
    simd: S,
    rounder: R,
    block: &[[f32; LANES]; K],
    element: usize,
    range: impl Fn(usize) -> Range<S>,
) -> S::Words {
    // A run of vectors never crosses the border of a group of sixteen.
    let run: usize = const { common_divisor(K, GROUP / LANES) };
    let mut word = simd.splat_word(0);
    for r in 0..K / run {
        let (minimum, slope) = range(r * run);
        // The shifts within a run are constants.
        let mut codes = simd.splat_word(0);
        for i in 0..run {
            let vector = &block[r * run + i];
            simd.ask_ahead(vector);
            let code = rounder.code(simd.load(vector), minimum, slope, element + LANES * (r * run + i));
            codes = simd.add(codes, simd.up(code, B * i as u32));
        }
        word = simd.add(word, simd.up(codes, B * (r * run) as u32));
    }
    simd.add(word, simd.splat_word(const { word_bias(R::BIAS, B, K).wrapping_neg() }))
}

pub(super) const fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// Packs the elements from `packed` on, block by block.
#[inline(always)]
fn rest<S: Simd>(simd: S, values: &[f32], stored: Stored<'_>, rounding: Rounding, words: &mut [u32], packed: usize) {
    match rounding {
        _ if packed == values.len() => {}
        Rounding::NearestEven => {
            let rounder = Nearest::<S, true>::new(simd, stored.format.bits);
            by_block(simd, rounder, values, stored, words, packed);
        }
        Rounding::Stochastic { seed } => {
            let rounder = Chance::new(simd, seed, stored.format.bits);
            by_block(simd, rounder, values, stored, words, packed);
        }
    }
}

#[inline(always)]
fn by_block<S: Simd, R: Rounder<S>>(
    simd: S,
    rounder: R,
    values: &[f32],
    stored: Stored<'_>,
    words: &mut [u32],
    packed: usize,
) {
    let format = stored.format;
    let mut codes: Codes = [0; _];
    for segment in format.segments(values.len()) {
        for block in Block::of(&segment, format.bits, packed) {
            encode(simd, rounder, values, stored, &segment, block, &mut codes);
            let words = &mut words[block.words(format.bits)];
            combine(simd, format.layout, format.bits, R::BIAS, &codes[..block.count], words);
        }
    }
}
