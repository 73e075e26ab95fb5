//! From more bits to fewer, in place: a page store does this to an activation that has become less important.

use super::block::{Block, Codes, combine, split};
use super::format::{Bits, Format, Grouping};
use super::rounding::{Nearest, Rounder};
use super::scale::{Scale, range_error};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::{Isa, KernelError};

/// Packs a tensor of `len` elements with fewer bits, over the same range, and returns its new format.
///
/// The result is in the first [`Format::words`] of `words`; the rest is free. It is what dequantising and quantising to
/// the nearest code would give over the stored range, so that a value ends up at most half an old step and half a new
/// one from the original (a whole old step and half a new one, if it was rounded stochastically). Going down in several
/// steps adds half a step each. The same number of bits as before changes nothing.
///
/// # Errors
/// [`KernelError::Widen`] for more bits than there are, [`KernelError::Length`] on buffers that do not fit, and
/// [`KernelError::Range`] if a group's bf16 step, rounded up, leaves the range of f32. Nothing is changed then.
pub fn requantise(
    words: &mut [u32],
    params: &mut [u32],
    format: Format,
    len: usize,
    bits: Bits,
    isa: Isa,
) -> Result<Format, KernelError> {
    format.check(len, words.len(), params.len())?;
    let narrow = Format { bits, ..format };
    if bits > format.bits {
        return Err(KernelError::Widen { from: format.bits.get() as u8, to: bits.get() as u8 });
    }
    if bits == format.bits || len == 0 {
        return Ok(narrow);
    }
    for scale in stored_scales(format, params) {
        narrowed(scale, format, bits)?;
    }
    dispatch(isa, Requantise { words, params, format, narrow, len });
    for i in 0..format.params(len) {
        match format.grouping {
            Grouping::Tensor if i == 0 => {
                params[1] = narrowed(Scale::stored(format, params, 0), format, bits)?.step.to_bits();
            }
            Grouping::Tensor => {}
            Grouping::Group256 => {
                params[i] = narrowed(Scale::from_group_param(params[i]), format, bits)?.to_group_param();
            }
        }
    }
    Ok(narrow)
}

fn stored_scales(format: Format, params: &[u32]) -> impl Iterator<Item = Scale> {
    let count = match format.grouping {
        Grouping::Tensor => 1,
        Grouping::Group256 => params.len(),
    };
    (0..count).map(move |i| Scale::stored(format, params, i * super::GROUP))
}

/// The scale of the same range with fewer codes.
fn narrowed(scale: Scale, format: Format, bits: Bits) -> Result<Scale, KernelError> {
    let (old, new) = (format.bits.top(), bits.top());
    let narrow = scale.stretched(old as f32, new as f32, format.grouping);
    if narrow.is_finite(new as f32) {
        Ok(narrow)
    } else {
        Err(range_error(scale.minimum, (old as f32).mul_add(scale.step, scale.minimum)))
    }
}

struct Requantise<'a> {
    words: &'a mut [u32],
    params: &'a [u32],
    format: Format,
    narrow: Format,
    len: usize,
}

impl Kernel for Requantise<'_> {
    type Output = ();

    /// Reading stays ahead of writing: a word of the result has at least as many codes as one of the source.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { words, params, format, narrow, len } = self;
        let mut codes: Codes = [0; _];
        // Codes that have been read but not written yet: less than a block of the result, and a block of the source.
        let mut waiting = [0_u32; 2 * LANES * 32];
        let rounder = Nearest::<S, true>::new(simd, narrow.bits);
        for (from, to) in format.segments(len).zip(narrow.segments(len)) {
            let mut blocks = Block::of(&to, narrow.bits, 0).peekable();
            let mut held = 0;
            for block in Block::of(&from, format.bits, 0) {
                split(simd, format.layout, format.bits, &words[block.words(format.bits)], &mut codes[..block.count]);
                for piece in block.pieces(&from, format.grouping) {
                    let ratio = Scale::stored(format, params, piece.element).ratio(format, narrow.bits);
                    let codes = &codes[piece.offset..piece.offset + piece.count];
                    map(simd, rounder, ratio, codes, &mut waiting[held + piece.offset..][..piece.count]);
                }
                held += block.count;
                while let Some(block) = blocks.next_if(|block| block.count <= held) {
                    let bias = <Nearest<S, true> as Rounder<S>>::BIAS;
                    let words = &mut words[block.words(narrow.bits)];
                    combine(simd, narrow.layout, narrow.bits, bias, &waiting[..block.count], words);
                    waiting.copy_within(block.count..held, 0);
                    held -= block.count;
                }
            }
        }
    }
}

/// The nearest codes to codes times `ratio`, with the bias of `rounder`.
#[inline(always)]
fn map<S: Simd, R: Rounder<S>>(simd: S, rounder: R, ratio: f32, from: &[u32], to: &mut [u32]) {
    let (zero, slope) = (simd.splat(0.0), simd.splat(-ratio));
    let (vectors, rest) = from.as_chunks::<LANES>();
    let (mapped, mapped_rest) = to.as_chunks_mut::<LANES>();
    for (vector, mapped) in vectors.iter().zip(mapped) {
        simd.store_words(rounder.code(simd.to_floats(simd.load_words(vector)), zero, slope, 0), mapped);
    }
    let (mut padded, mut padded_codes) = ([0; LANES], [0; LANES]);
    padded[..rest.len()].copy_from_slice(rest);
    simd.store_words(rounder.code(simd.to_floats(simd.load_words(&padded)), zero, slope, 0), &mut padded_codes);
    mapped_rest.copy_from_slice(&padded_codes[..rest.len()]);
}

impl Scale {
    /// The same range in `new` steps instead of `old`.
    fn stretched(self, old: f32, new: f32, grouping: Grouping) -> Self {
        // In f64, because the range may exceed f32 although the values do not.
        let step = (f64::from(self.step) * f64::from(old) / f64::from(new)) as f32;
        Self { step: Self::stored_step(step, grouping), ..self }
    }

    /// The factor of a code on the way to fewer bits.
    fn ratio(self, format: Format, bits: Bits) -> f32 {
        self.step * self.stretched(format.bits.top() as f32, bits.top() as f32, format.grouping).inverse()
    }
}
