//! Packing and unpacking of one block of words through a buffer of codes: works for every layout,
//! ragged end and tile edge.
//!
//! The fast paths of packing and unpacking skip this; they apply to whole blocks of consecutive elements.

use super::format::{Bits, Format, GROUP, Grouping, with_width};
use super::layout::{Layout, Segment};
use super::rounding::Rounder;
use super::scale::Scale;
use crate::simd::{LANES, Simd};

/// Codes of a block, one a word: at most 32 for each of 16 lanes, and room for a vector that ends beyond the last.
pub(super) type Codes = [u32; LANES * 33];

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
    /// The number of elements.
    pub(super) count: usize,
}

impl Block {
    /// The blocks of a segment, from the one that contains code `from`.
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

/// The format of packed codes, and the ranges that are stored with them.
#[derive(Clone, Copy)]
pub(super) struct Stored<'a> {
    pub(super) format: Format,
    pub(super) params: &'a [u32],
}

/// The codes of a block, each with the bias of `rounder`.
#[inline(always)]
pub(super) fn encode<S: Simd, R: Rounder<S>>(
    simd: S,
    rounder: R,
    values: &[f32],
    stored: Stored<'_>,
    segment: &Segment,
    block: Block,
    codes: &mut Codes,
) {
    let Stored { format, params } = stored;
    let slope = |scale: Scale| (simd.splat(scale.minimum), simd.splat(-scale.inverse()));
    let mut range = slope(Scale::stored(format, params, segment.first));
    for piece in block.pieces(segment, format.grouping) {
        if matches!(format.grouping, Grouping::Group256) {
            range = slope(Scale::stored(format, params, piece.element));
        }
        let (minimum, slope) = range;
        // A vector may reach beyond the piece: what it writes there is overwritten, or never read.
        for i in (0..piece.count).step_by(LANES) {
            let (from, to) = (&values[piece.element + i..], &mut codes[piece.offset + i..]);
            let Some(to) = to.first_chunk_mut::<LANES>() else { break };
            let vector = match from.first_chunk::<LANES>() {
                Some(vector) => simd.load(vector),
                None => {
                    let mut padded = [0.0; LANES];
                    padded[..from.len()].copy_from_slice(from);
                    simd.load(&padded)
                }
            };
            simd.store_words(rounder.code(vector, minimum, slope, piece.element + i), to);
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

/// Packs the codes of a block, each with a bias; `word_bias` removes the biases of all codes of a word.
#[inline(always)]
pub(super) fn combine<S: Simd>(simd: S, layout: Layout, bits: Bits, bias: u32, codes: &[u32], words: &mut [u32]) {
    let (b, k) = (bits.get(), bits.per_word());
    if matches!(layout, Layout::Sequential) {
        with_width!(bits, combine_neighbours, bias, codes, words);
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
        with_width!(bits, split_neighbours, words, codes);
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

/// Packs each K neighbouring codes into a word, by plain shifts that the compiler unrolls.
#[inline(always)]
pub(super) fn combine_neighbours<const B: u32, const K: usize>(bias: u32, codes: &[u32], words: &mut [u32]) {
    let (whole, rest) = codes.as_chunks::<K>();
    if matches!(B, 1 | 2 | 4) && whole.len() == LANES {
        squeeze_block::<B, K>(bias, whole, words);
    } else {
        for (word, codes) in words.iter_mut().zip(whole) {
            *word = (0..K).fold(0, |word, i| word | codes[i].wrapping_sub(bias) << (B * i as u32));
        }
    }
    if let Some(word) = words.get_mut(whole.len()) {
        *word = rest.iter().rev().fold(0, |word, &code| word << B | code.wrapping_sub(bias));
    }
}

/// The same for a whole block of at most 4 bits a code: first one byte a code, then eight codes in a register.
#[inline(always)]
fn squeeze_block<const B: u32, const K: usize>(bias: u32, codes: &[[u32; K]], words: &mut [u32]) {
    let mut bytes = [0; 32 * LANES];
    for (byte, code) in bytes.iter_mut().zip(codes.as_flattened()) {
        *byte = code.wrapping_sub(bias) as u8;
    }
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<K>().0) {
        let (eights, _) = bytes.as_chunks();
        *word = (0..K / 8).fold(0, |word, i| word | squeeze::<B>(eights[i]) << (8 * B * i as u32));
    }
}

/// Eight codes of B <= 4 bits, side by side: pairs, then fours, then all of them.
#[inline(always)]
fn squeeze<const B: u32>(codes: [u8; 8]) -> u32 {
    let codes = u64::from_le_bytes(codes);
    let pairs = (codes | codes >> (8 - B)) & const { u64::MAX / 0xFFFF * ((1 << (2 * B)) - 1) };
    let fours = (pairs | pairs >> (16 - 2 * B)) & const { u64::MAX / 0xFFFF_FFFF * ((1 << (4 * B)) - 1) };
    (fours | fours >> (32 - 4 * B)) as u32 & (u32::MAX >> (32 - 8 * B))
}

/// Undoes [`combine_neighbours`].
#[inline(always)]
fn split_neighbours<const B: u32, const K: usize>(words: &[u32], codes: &mut [u32]) {
    let (whole, rest) = codes.as_chunks_mut::<K>();
    for (&word, codes) in words.iter().zip(&mut *whole) {
        for (i, code) in codes.iter_mut().enumerate() {
            *code = word >> (B * i as u32) & ((1 << B) - 1);
        }
    }
    if let Some(&word) = words.get(whole.len()) {
        for (i, code) in rest.iter_mut().enumerate() {
            *code = word >> (B * i as u32) & ((1 << B) - 1);
        }
    }
}
