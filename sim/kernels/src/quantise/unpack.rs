//! From packed words to f32, or to codes.

use super::block::{Block, Codes, Stored, decode, split};
use super::format::{Format, GROUP, Grouping, with_width};
use super::layout::Layout;
use super::pack::common_divisor;
use super::scale::Scale;
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::{Isa, KernelError};

/// Unpacks and dequantises a tensor of `out.len()` elements.
///
/// # Errors
/// [`KernelError::Length`] if `words` and `params` do not fit this many elements.
pub fn dequantise_into(
    words: &[u32],
    params: &[u32],
    format: Format,
    isa: Isa,
    out: &mut [f32],
) -> Result<(), KernelError> {
    format.check(out.len(), words.len(), params.len())?;
    dispatch(isa, Dequantise { words, stored: Stored { format, params }, out });
    Ok(())
}

struct Dequantise<'a> {
    words: &'a [u32],
    stored: Stored<'a>,
    out: &'a mut [f32],
}

impl Kernel for Dequantise<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { words, stored, out } = self;
        let block = LANES * stored.format.bits.per_word();
        let whole = match stored.format.layout {
            Layout::Interleaved => out.len() / block * block,
            Layout::Sequential | Layout::Unified(_) => 0,
        };
        if whole > 0 {
            with_width!(stored.format.bits, interleaved<S>, simd, words, stored, &mut out[..whole]);
        }
        blocks(simd, words, stored, whole, out);
    }
}

/// Unpacks whole interleaved blocks, from the first on.
#[inline(always)]
fn interleaved<S: Simd, const B: u32, const K: usize>(simd: S, words: &[u32], stored: Stored<'_>, out: &mut [f32]) {
    let params = stored.params;
    let blocks = words.as_chunks::<LANES>().0.iter().zip(out.as_chunks_mut::<LANES>().0.as_chunks_mut::<K>().0);
    // A run of vectors never crosses the border of a group.
    let run: usize = const { common_divisor(K, GROUP / LANES) };
    match stored.format.grouping {
        Grouping::Tensor => {
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
        Grouping::Group256 => {
            for (n, (word, block)) in blocks.enumerate() {
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

/// Maps the lowest code of each word to its value: from a table where one fits a register, by arithmetic otherwise.
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

    /// The table repeats itself, so the bits of the next codes need not be masked off.
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

/// Unpacks the elements from `start` on, block by block.
#[inline(always)]
fn blocks<S: Simd>(simd: S, words: &[u32], stored: Stored<'_>, start: usize, out: &mut [f32]) {
    let Stored { format, params } = stored;
    let mut codes: Codes = [0; _];
    for segment in format.segments(out.len()) {
        for block in Block::of(&segment, format.bits, start) {
            split(simd, format.layout, format.bits, &words[block.words(format.bits)], &mut codes[..block.count]);
            for piece in block.pieces(&segment, format.grouping) {
                let scale = Scale::stored(format, params, piece.element);
                let codes = &codes[piece.offset..piece.offset + piece.count];
                decode(simd, codes, scale, &mut out[piece.element..piece.element + piece.count]);
            }
        }
    }
}
