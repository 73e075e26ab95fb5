//! From packed words to f32, or to codes.

use std::ops::Range;

use super::block::{Block, Codes, decode, split};
use super::format::{Format, GROUP, Grouping, with_width};
use super::layout::{Layout, Segment};
use super::pack::common_divisor;
use super::scale::Scale;
use crate::error::KernelError;
use crate::isa::Isa;
use crate::simd::{Kernel, LANES, Simd, dispatch};

/// Unpacks and dequantises a tensor of `out.len()` elements.
///
/// # Errors
/// [`KernelError::Length`] if `words` and `params` are not those of so many elements.
pub fn dequantise_into(
    words: &[u32],
    params: &[u32],
    format: Format,
    isa: Isa,
    out: &mut [f32],
) -> Result<(), KernelError> {
    View::new(words, params, format, out.len())?.dequantise_range(0..out.len(), isa, out)
}

/// A packed tensor of `len` elements, where its words and ranges lie.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    words: &'a [u32],
    params: &'a [u32],
    format: Format,
    len: usize,
}

impl<'a> View<'a> {
    /// Fails on words and ranges that are not those of so many elements.
    pub(super) fn new(words: &'a [u32], params: &'a [u32], format: Format, len: usize) -> Result<Self, KernelError> {
        format.check(len, words.len(), params.len())?;
        Ok(Self { words, params, format, len })
    }

    /// Unpacks and dequantises the elements `range`. Fails on a range that ends beyond the tensor, and on an output of
    /// another length.
    pub(super) fn dequantise_range(self, range: Range<usize>, isa: Isa, out: &mut [f32]) -> Result<(), KernelError> {
        if range.end > self.len {
            return Err(KernelError::Length { what: "the tensor", found: self.len, expected: range.end });
        }
        KernelError::expect_length("the output", out.len(), range.len())?;
        dispatch(isa, Dequantise { tensor: self, range, out });
        Ok(())
    }

    /// Unpacks and dequantises one tile of the unified layout, in the row-major order of the tile; other layouts have one:
    /// the tensor. Fails if there is no such tile, and on an output that is not as long.
    pub(super) fn dequantise_tile(self, tile: usize, isa: Isa, out: &mut [f32]) -> Result<(), KernelError> {
        let Some(segment) = self.format.segments(self.len).nth(tile) else {
            let found = self.format.segments(self.len).count();
            return Err(KernelError::Length { what: "the list of tiles", found, expected: tile + 1 });
        };
        KernelError::expect_length("the output", out.len(), segment.len())?;
        dispatch(isa, DequantiseTile { tensor: self, segment, out });
        Ok(())
    }
}

struct Dequantise<'a> {
    tensor: View<'a>,
    range: Range<usize>,
    out: &'a mut [f32],
}

impl Kernel for Dequantise<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { tensor, range, out } = self;
        let View { words, params, format, .. } = tensor;
        let whole = LANES * format.bits.per_word();
        let (first, last) = (range.start.div_ceil(whole), range.end / whole);
        if !matches!(format.layout, Layout::Interleaved) || first >= last {
            return blocks(simd, Dequantise { tensor, range, out });
        }
        let (before, rest) = out.split_at_mut(first * whole - range.start);
        let (inside, after) = rest.split_at_mut((last - first) * whole);
        let (words, grouped) = (&words[first * LANES..], (format.grouping, params));
        with_width!(format.bits, interleaved<S>, simd, words, first, grouped, inside);
        for (range, out) in [(range.start..first * whole, before), (last * whole..range.end, after)] {
            blocks(simd, Dequantise { tensor, range, out });
        }
    }
}

/// Whole interleaved blocks, the first of which is block `first` of the tensor.
#[inline(always)]
fn interleaved<S: Simd, const B: u32, const K: usize>(
    simd: S,
    words: &[u32],
    first: usize,
    (grouping, params): (Grouping, &[u32]),
    out: &mut [f32],
) {
    let blocks = words.as_chunks::<LANES>().0.iter().zip(out.as_chunks_mut::<LANES>().0.as_chunks_mut::<K>().0);
    // A run of vectors never crosses the border of a group.
    let run: usize = const { common_divisor(K, GROUP / LANES) };
    match (grouping, params) {
        (Grouping::Tensor, params) => {
            let [minimum, step] = [0, 1].map(|i| f32::from_bits(params[i]));
            let decoder = Decoder::<S, B>::new(simd, Scale { minimum, step });
            for (word, block) in blocks {
                let mut word = simd.load_words(word);
                for vector in block {
                    simd.store(decoder.values(word), vector);
                    word = simd.down(word, B);
                }
            }
        }
        (Grouping::Group256, params) => {
            for (n, (word, block)) in (first..).zip(blocks) {
                let mut word = simd.load_words(word);
                for (r, vectors) in block.chunks_exact_mut(run).enumerate() {
                    let group = (n * K + r * run) / (GROUP / LANES);
                    let decoder = Decoder::<S, B>::new(simd, Scale::from_group_param(params[group]));
                    for vector in vectors {
                        simd.store(decoder.values(word), vector);
                        word = simd.down(word, B);
                    }
                }
            }
        }
    }
}

/// The lowest code of each word to its value: from a table where one fits a register, by arithmetic otherwise.
#[derive(Clone, Copy)]
struct Decoder<S: Simd, const B: u32> {
    simd: S,
    mask: S::Words,
    minimum: S::Floats,
    step: S::Floats,
    table: S::Floats,
}

impl<S: Simd, const B: u32> Decoder<S, B> {
    #[inline(always)]
    fn new(simd: S, scale: Scale) -> Self {
        let mask = simd.splat_word((1 << B) - 1);
        let (minimum, step) = (simd.splat(scale.minimum), simd.splat(scale.step));
        let lane = simd.load_words(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        let table = simd.fused(simd.to_floats(simd.and(lane, mask)), step, minimum);
        Self { simd, mask, minimum, step, table }
    }

    /// The table repeats itself, so that the bits of the next codes need not be masked away.
    #[inline(always)]
    fn values(self, word: S::Words) -> S::Floats {
        let simd = self.simd;
        if B <= S::TABLE_BITS {
            simd.lookup(self.table, word)
        } else {
            simd.fused(simd.to_floats(simd.and(word, self.mask)), self.step, self.minimum)
        }
    }
}

/// The elements of the range, block by block.
#[inline(always)]
fn blocks<S: Simd>(simd: S, job: Dequantise<'_>) {
    let Dequantise { tensor: View { words, params, format, len }, range, out } = job;
    if range.is_empty() {
        return;
    }
    let mut codes: Codes = [0; _];
    for segment in format.segments(len) {
        let end = segment.first + (segment.rows - 1) * segment.stride + segment.columns;
        if segment.first >= range.end || end <= range.start {
            continue;
        }
        let from = if segment.rows == 1 { range.start.saturating_sub(segment.first) } else { 0 };
        for block in Block::of(&segment, format.bits, from) {
            if segment.rows == 1 && segment.first + block.start >= range.end {
                break;
            }
            split(simd, format.layout, format.bits, &words[block.words(format.bits)], &mut codes[..block.count]);
            for piece in block.pieces(&segment, format.grouping) {
                let start = piece.element.max(range.start);
                let end = (piece.element + piece.count).min(range.end);
                if start < end {
                    let offset = piece.offset + (start - piece.element);
                    let scale = Scale::stored(format, params, start);
                    let out = &mut out[start - range.start..end - range.start];
                    decode(simd, &codes[offset..offset + (end - start)], scale, out);
                }
            }
        }
    }
}

struct DequantiseTile<'a> {
    tensor: View<'a>,
    segment: Segment,
    out: &'a mut [f32],
}

impl Kernel for DequantiseTile<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { tensor: View { words, params, format, .. }, segment, out } = self;
        let mut codes: Codes = [0; _];
        for block in Block::of(&segment, format.bits, 0) {
            split(simd, format.layout, format.bits, &words[block.words(format.bits)], &mut codes[..block.count]);
            for piece in block.pieces(&segment, format.grouping) {
                let to = block.start + piece.offset;
                let scale = Scale::stored(format, params, piece.element);
                decode(simd, &codes[piece.offset..piece.offset + piece.count], scale, &mut out[to..to + piece.count]);
            }
        }
    }
}
