//! The `bitpacking` crate as a quantiser: f32 to integers eight at a time, integers to bits by its `BitPacker8x`.
//!
//! The crate packs blocks of 256 integers by AVX2 and has no floats, so the steps before and after it are
//! written here as fast as possible: minimum and maximum in one pass, conversion by adding 2²³, dequantisation
//! by one fused multiply-add, all in loops over whole blocks, which the compiler turns into vectors of AVX2.
//! Only whole blocks are packed.

use std::hint::black_box;

use bitpacking::{BitPacker, BitPacker8x};
use haversack_kernels::quantise::Grouping;

use crate::bench::buffer::Buffer;
use crate::bench::contender::{Contender, Tensors};
use crate::bench::peers;

/// Integers in a block.
pub(crate) const BLOCK: usize = BitPacker8x::BLOCK_LEN;
/// 2²³ as f32: adding it to a small number leaves the number's integer part in the last bits.
const MAGIC: f32 = 8_388_608.0;
/// Lanes of a range: four registers each for the minimum and the maximum hide the latency of their instructions.
const LANES: usize = 32;

/// Where the scales of a tensor come from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scales {
    /// One for the tensor, found by vectors.
    OfTensor,
    /// One for each block, found by vectors.
    OfBlocks,
    /// One for each block, found by plain folds, as a user of the crate would write them.
    ByFolds,
}

/// Packing.
pub(crate) fn packing(id: String, bits: u8, by: Scales) -> Contender {
    Contender::owning(id, move |tensors| {
        let (pipeline, mut packed, mut scales) = made(bits, tensors);
        Ok(Box::new(move |Tensors { values, .. }| {
            let values = black_box(&**values);
            let ranges = match by {
                Scales::OfTensor => Ranges::Known(pipeline.scale(values)),
                Scales::OfBlocks => Ranges::Found(&mut scales),
                Scales::ByFolds => Ranges::Folded(&mut scales),
            };
            pipeline.pack(values, ranges, black_box(&mut packed));
            Ok(())
        }))
    })
}

/// Unpacking what was packed by one scale or by one for each block.
pub(crate) fn unpacking(id: String, bits: u8, grouping: Grouping) -> Contender {
    Contender::owning(id, move |tensors| {
        let (pipeline, mut packed, mut scales) = made(bits, tensors);
        match grouping {
            Grouping::Tensor => {
                let scale = pipeline.scale(&tensors.values);
                scales.fill(scale);
                pipeline.pack(&tensors.values, Ranges::Known(scale), &mut packed);
            }
            Grouping::Group256 => pipeline.pack(&tensors.values, Ranges::Found(&mut scales), &mut packed),
        }
        Ok(Box::new(move |Tensors { output, .. }| {
            pipeline.unpack(black_box(&packed), black_box(&scales), black_box(output));
            Ok(())
        }))
    })
}

/// A packer, and room for the packed tensor.
fn made(bits: u8, tensors: &Tensors) -> (Pipeline, Buffer<u8>, Vec<Scale>) {
    let pipeline = Pipeline { packer: BitPacker8x::new(), bits };
    let packed = Buffer::zeroed(pipeline.bytes(tensors.values.len()));
    (pipeline, packed, vec![Scale::default(); tensors.values.len() / BLOCK])
}

/// Codes between quantiser and packer: within the first-level cache, aligned.
#[repr(align(64))]
struct Codes([u32; BLOCK]);

/// The parameters that dequantise a block: the value of code 0 and the step between codes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Scale {
    pub(crate) minimum: f32,
    pub(crate) step: f32,
}

impl Scale {
    #[inline(always)]
    fn new((minimum, maximum): (f32, f32), bits: u8) -> Self {
        Self { minimum, step: (maximum - minimum) / ((1_u32 << bits) - 1) as f32 }
    }
}

/// Where the scales of blocks come from.
pub(crate) enum Ranges<'a> {
    /// One for all blocks.
    Known(Scale),
    /// One a block, found by vectors and stored.
    Found(&'a mut [Scale]),
    /// One a block, found by folds and stored.
    Folded(&'a mut [Scale]),
}

/// A packer of tensors at one width.
pub(crate) struct Pipeline {
    pub(crate) packer: BitPacker8x,
    pub(crate) bits: u8,
}

impl Pipeline {
    /// Bytes of the codes of `values` values.
    pub(crate) fn bytes(&self, values: usize) -> usize {
        values / BLOCK * self.block_bytes()
    }

    fn block_bytes(&self) -> usize {
        BLOCK * usize::from(self.bits) / 8
    }

    /// The scale of the tensor: one pass over the values.
    pub(crate) fn scale(&self, values: &[f32]) -> Scale {
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            // SAFETY: the processor has AVX2 and FMA.
            return Scale::new(unsafe { avx2::range(values) }, self.bits);
        }
        Scale::new(range(values), self.bits)
    }

    /// Packs the tensor: one pass.
    pub(crate) fn pack(&self, values: &[f32], ranges: Ranges<'_>, packed: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            // SAFETY: the processor has AVX2 and FMA.
            return unsafe { avx2::pack(self, values, ranges, packed) };
        }
        self.pack_blocks::<false>(values, ranges, packed);
    }

    /// Unpacks a tensor, by a scale for each block.
    pub(crate) fn unpack(&self, packed: &[u8], scales: &[Scale], values: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            // SAFETY: the processor has AVX2 and FMA.
            return unsafe { avx2::unpack(self, packed, scales, values) };
        }
        self.unpack_blocks::<false>(packed, scales, values);
    }

    #[inline(always)]
    fn pack_blocks<const FUSED: bool>(&self, values: &[f32], mut ranges: Ranges<'_>, packed: &mut [u8]) {
        let mut codes = Codes([0; BLOCK]);
        let blocks = values.as_chunks::<BLOCK>().0.iter().zip(packed.chunks_exact_mut(self.block_bytes()));
        for (i, (block, packed)) in blocks.enumerate() {
            let scale = match &mut ranges {
                Ranges::Known(scale) => *scale,
                Ranges::Found(scales) => {
                    scales[i] = Scale::new(range(block), self.bits);
                    scales[i]
                }
                Ranges::Folded(scales) => {
                    scales[i] = Scale::new((peers::minimum(block), peers::maximum(block)), self.bits);
                    scales[i]
                }
            };
            let inverse = if scale.step > 0.0 { 1.0 / scale.step } else { 0.0 };
            for (code, &value) in codes.0.iter_mut().zip(block) {
                *code = fused::<FUSED>(value - scale.minimum, inverse, MAGIC).to_bits() - MAGIC.to_bits();
            }
            self.packer.compress(&codes.0, packed, self.bits);
        }
    }

    #[inline(always)]
    fn unpack_blocks<const FUSED: bool>(&self, packed: &[u8], scales: &[Scale], values: &mut [f32]) {
        let mut codes = Codes([0; BLOCK]);
        let blocks = values.as_chunks_mut::<BLOCK>().0.iter_mut().zip(packed.chunks_exact(self.block_bytes()));
        for ((block, packed), scale) in blocks.zip(scales) {
            self.packer.decompress(packed, &mut codes.0, self.bits);
            for (value, &code) in block.iter_mut().zip(&codes.0) {
                *value = fused::<FUSED>(code as i32 as f32, scale.step, scale.minimum);
            }
        }
    }
}

/// `a * b + c`. Without the instruction a fused multiply-add would be a call.
#[inline(always)]
fn fused<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// Minimum and maximum in one pass; values after the last whole chunk are ignored.
#[inline(always)]
fn range(values: &[f32]) -> (f32, f32) {
    let (mut low, mut high) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
    for chunk in values.as_chunks::<LANES>().0 {
        for i in 0..LANES {
            low[i] = if chunk[i] < low[i] { chunk[i] } else { low[i] };
            high[i] = if chunk[i] > high[i] { chunk[i] } else { high[i] };
        }
    }
    (peers::minimum(&low), peers::maximum(&high))
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// The same loops, compiled for AVX2.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Pipeline, Ranges, Scale};

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn range(values: &[f32]) -> (f32, f32) {
        super::range(values)
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn pack(pipeline: &Pipeline, values: &[f32], ranges: Ranges<'_>, packed: &mut [u8]) {
        pipeline.pack_blocks::<true>(values, ranges, packed);
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn unpack(pipeline: &Pipeline, packed: &[u8], scales: &[Scale], values: &mut [f32]) {
        pipeline.unpack_blocks::<true>(packed, scales, values);
    }
}
