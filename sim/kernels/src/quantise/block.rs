//! One block of words by way of a buffer of codes: what every layout, ragged end and tile edge can be packed by.
//!
//! The fast paths of packing and unpacking skip the buffer; they hold for whole interleaved blocks of consecutive elements.

use super::format::{Bits, Format, GROUP, Grouping};
use super::layout::{Layout, Segment};
use super::rounding::Rounder;
use super::scale::Scale;
use super::simd::{LANES, Simd};

/// Codes of a block, one a word: at most 32 for each of 16 lanes.
pub(super) type Codes = [u32; LANES * 32];

/// Up to sixteen words of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// Its first word.
    pub(super) word: usize,
    /// Its first code, counted from the start of the segment.
    pub(super) start: usize,
    /// Its codes.
    pub(super) count: usize,
}

/// Consecutive elements of a block that share a range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The first element.
    pub(super) element: usize,
    /// Its code, counted from the start of the block.
    pub(super) offset: usize,
    /// How many elements.
    pub(super) count: usize,
}

impl Block {
    /// The blocks of a segment, from the one that holds code `from`.
    pub(super) fn of(segment: &Segment, bits: Bits, from: usize) -> impl Iterator<Item = Self> + use<> {
        let (word, len, whole) = (segment.word, segment.len(), LANES * bits.per_word());
        (from / whole..len.div_ceil(whole)).map(move |index| {
            let start = index * whole;
            Self { word: word + index * LANES, start, count: whole.min(len - start) }
        })
    }

    /// Its words, as indices.
    pub(super) fn words(&self, bits: Bits) -> std::ops::Range<usize> {
        self.word..self.word + self.count.div_ceil(bits.per_word())
    }

    /// Its elements, cut where a row of the segment or a group ends.
    #[inline(always)]
    pub(super) fn pieces(self, segment: &Segment, grouping: Grouping) -> impl Iterator<Item = Piece> + use<> {
        let Segment { first, columns, stride, .. } = *segment;
        let grouped = matches!(grouping, Grouping::Group256);
        let (row, mut column) = (self.start / columns, self.start % columns);
        let (mut line, mut offset) = (first + row * stride, 0);
        std::iter::from_fn(move || {
            if offset == self.count {
                return None;
            }
            let element = line + column;
            let count = (self.count - offset).min(columns - column);
            let count = if grouped { count.min(GROUP - element % GROUP) } else { count };
            let piece = Piece { element, offset, count };
            (offset, column) = (offset + count, column + count);
            if column == columns {
                (line, column) = (line + stride, 0);
            }
            Some(piece)
        })
    }
}

/// The codes of a block, each with the bias of `rounder`.
#[inline(always)]
pub(super) fn encode<S: Simd, R: Rounder<S>>(
    simd: S,
    rounder: R,
    values: &[f32],
    (format, params): (Format, &[u32]),
    (segment, block): (&Segment, Block),
    codes: &mut Codes,
) {
    let slope = |scale: Scale| (simd.splat(scale.minimum), simd.splat(-scale.inverse()));
    let mut range = slope(Scale::stored(format, params, segment.first));
    for piece in block.pieces(segment, format.grouping) {
        if matches!(format.grouping, Grouping::Group256) {
            range = slope(Scale::stored(format, params, piece.element));
        }
        let (minimum, slope) = range;
        let (vectors, rest) = values[piece.element..piece.element + piece.count].as_chunks::<LANES>();
        let (coded, coded_rest) = codes[piece.offset..piece.offset + piece.count].as_chunks_mut::<LANES>();
        for (i, (vector, coded)) in vectors.iter().zip(coded).enumerate() {
            let code = rounder.code(simd.load(vector), minimum, slope, piece.element + LANES * i);
            simd.store_words(code, coded);
        }
        if !rest.is_empty() {
            let (mut padded, mut padded_codes) = ([0.0; LANES], [0; LANES]);
            padded[..rest.len()].copy_from_slice(rest);
            let element = piece.element + LANES * vectors.len();
            simd.store_words(rounder.code(simd.load(&padded), minimum, slope, element), &mut padded_codes);
            coded_rest.copy_from_slice(&padded_codes[..rest.len()]);
        }
    }
}

/// The values of some codes that share a range.
#[inline(always)]
pub(super) fn decode<S: Simd>(simd: S, codes: &[u32], scale: Scale, out: &mut [f32]) {
    let (minimum, step) = (simd.splat(scale.minimum), simd.splat(scale.step));
    let (vectors, rest) = codes.as_chunks::<LANES>();
    let (decoded, decoded_rest) = out.as_chunks_mut::<LANES>();
    for (vector, decoded) in vectors.iter().zip(decoded) {
        simd.store(simd.fused(simd.to_floats(simd.load_words(vector)), step, minimum), decoded);
    }
    for (&code, out) in rest.iter().zip(decoded_rest) {
        *out = scale.value(code as u8);
    }
}

/// Packs the codes of a block, each with a bias of which `word_bias` takes all of a word's away.
#[inline(always)]
pub(super) fn combine<S: Simd>(simd: S, layout: Layout, bits: Bits, bias: u32, codes: &[u32], words: &mut [u32]) {
    let (b, k) = (bits.get(), bits.per_word());
    if matches!(layout, Layout::Sequential) {
        for (word, codes) in words.iter_mut().zip(codes.chunks(k)) {
            *word = codes.iter().rev().fold(0, |word, &code| word << b | code.wrapping_sub(bias));
        }
    } else if codes.len() == LANES * k
        && let Some(words) = words.first_chunk_mut::<LANES>()
    {
        let (vectors, _) = codes.as_chunks::<LANES>();
        let bias = simd.splat_word(bias.wrapping_neg());
        let word = vectors
            .iter()
            .rev()
            .fold(simd.splat_word(0), |word, code| simd.add(simd.up(word, b), simd.add(simd.load_words(code), bias)));
        simd.store_words(word, words);
    } else {
        let lanes = words.len();
        for (lane, word) in words.iter_mut().enumerate() {
            let mine = codes.iter().skip(lane).step_by(lanes);
            *word = mine.enumerate().fold(0, |word, (i, &code)| word | code.wrapping_sub(bias) << (b * i as u32));
        }
    }
}

/// The codes of a block.
#[inline(always)]
pub(super) fn split<S: Simd>(simd: S, layout: Layout, bits: Bits, words: &[u32], codes: &mut [u32]) {
    let (b, k, mask) = (bits.get(), bits.per_word(), bits.top());
    if matches!(layout, Layout::Sequential) {
        for (&word, codes) in words.iter().zip(codes.chunks_mut(k)) {
            for (i, code) in codes.iter_mut().enumerate() {
                *code = word >> (b * i as u32) & mask;
            }
        }
    } else if codes.len() == LANES * k
        && let Some(words) = words.first_chunk::<LANES>()
    {
        let (mut word, mask) = (simd.load_words(words), simd.splat_word(mask));
        for code in codes.as_chunks_mut::<LANES>().0 {
            simd.store_words(simd.and(word, mask), code);
            word = simd.down(word, b);
        }
    } else {
        let lanes = words.len();
        for (offset, code) in codes.iter_mut().enumerate() {
            *code = words[offset % lanes] >> (b * (offset / lanes) as u32) & mask;
        }
    }
}
