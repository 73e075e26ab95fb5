//! `ActNN`'s sample-major packing (Chen et al., ICML 2021; `actnn/cpp_extension/quantization_cuda_kernel.cu`).
//!
//! A tensor is a matrix of samples and features. Each sample is padded with zeros to whole groups of 256; each (sample,
//! group) has a range of its own, and the padding counts in it. A byte holds the codes of `8 / b` consecutive samples at
//! one position, the first sample in the lowest bits; those of the padding are zero. Ranges are used in f32 to quantise and stored as bf16, as `ActNN`
//! does with f32 input: the dequantised values carry the error of that on top of half a step.
//!
//! One thing differs: `ActNN` does not clamp codes from above, and a rounding error can carry one into the bits of its
//! neighbour. Here the last code is the last.

use super::format::{Bits, GROUP};
use super::rounding::{MAGIC, Rounding, draw};
use super::scale::range_error;
use crate::error::KernelError;

/// What `ActNN` adds to a range, so that an empty one can be divided by.
const EPSILON: f32 = 2e-6;

/// The shape of a packed tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SampleMajor {
    samples: usize,
    features: usize,
    bits: Bits,
}

impl SampleMajor {
    /// `samples` x `features`, in 1, 2, 4 or 8 bits.
    ///
    /// # Errors
    /// [`KernelError::SampleMajorBits`] for other widths.
    pub const fn new(samples: usize, features: usize, bits: Bits) -> Result<Self, KernelError> {
        match bits.get() {
            1 | 2 | 4 | 8 => Ok(Self { samples, features, bits }),
            _ => Err(KernelError::SampleMajorBits { found: bits.get() as u8 }),
        }
    }

    /// Elements.
    pub const fn len(&self) -> usize {
        self.samples * self.features
    }

    /// Whether there are no elements.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Groups of a sample.
    pub const fn groups(&self) -> usize {
        self.features.div_ceil(GROUP)
    }

    /// Bytes of codes: `floor((b * N' * G * 256 + 8) / 8)`, N' being the samples rounded up to whole bytes. `ActNN`
    /// allocates one byte more than it fills.
    pub const fn code_bytes(&self) -> usize {
        let bits = self.bits.get() as usize;
        (bits * self.samples.next_multiple_of(8 / bits) * self.groups() * GROUP + 8) / 8
    }

    /// 32-bit words of ranges: one for each sample and group.
    pub const fn params(&self) -> usize {
        self.samples * self.groups()
    }

    /// Bytes that the tensor takes, codes and ranges.
    pub const fn bytes(&self) -> u64 {
        self.code_bytes() as u64 + 4 * self.params() as u64
    }

    /// Where the code of a sample's feature lies: the byte, and how many bits up in it.
    const fn place(&self, sample: usize, feature: usize) -> (usize, u32) {
        let each = 8 / self.bits.get() as usize;
        (sample / each * self.groups() * GROUP + feature, self.bits.get() * (sample % each) as u32)
    }
}

/// Quantises and packs a tensor. Each word of `params` holds the inverse step (upper half) and the minimum, as bf16.
///
/// # Errors
/// [`KernelError::Length`] on buffers of other lengths than the shape says; [`KernelError::Range`] for a group whose range
/// is not finite. A NaN takes the code 0 and does not count in the range.
pub fn pack_into(
    values: &[f32],
    shape: SampleMajor,
    rounding: Rounding,
    codes: &mut [u8],
    params: &mut [u32],
) -> Result<(), KernelError> {
    check(shape, values.len(), codes.len(), params.len())?;
    codes.fill(0);
    if shape.is_empty() {
        return Ok(());
    }
    let (groups, top) = (shape.groups(), shape.bits.top() as f32);
    for (sample, row) in values.chunks(shape.features).enumerate() {
        for (group, elements) in row.chunks(GROUP).enumerate() {
            let padding = if elements.len() < GROUP { 0.0 } else { f32::NAN };
            let minimum = elements.iter().fold(padding, |a, &x| a.min(x));
            let maximum = elements.iter().fold(padding, |a, &x| a.max(x));
            let scale = top / (maximum - minimum + EPSILON);
            // An infinite range has the scale 0, and one of nothing but NaN the scale NaN.
            let ranged = scale > 0.0;
            if !ranged || !f32::from_bits(bf16_nearest(minimum) << 16).is_finite() {
                return Err(range_error(minimum, maximum));
            }
            params[sample * groups + group] = bf16_nearest(scale) << 16 | bf16_nearest(minimum);
            let (first, shift) = shape.place(sample, group * GROUP);
            let codes = codes[first..].iter_mut().zip(elements);
            let code = |x: f32, chance: f32| nearest((x - minimum) * scale + chance, top) << shift;
            match rounding {
                // Nothing is drawn, so that the compiler makes vectors of this loop.
                Rounding::NearestEven => codes.for_each(|(byte, &x)| *byte |= code(x, 0.0)),
                Rounding::Stochastic { seed } => {
                    let element = sample * groups * GROUP + group * GROUP;
                    for (i, (byte, &x)) in codes.enumerate() {
                        *byte |= code(x, 0.5 - draw(seed, element + i));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Unpacks and dequantises a tensor: `code / scale + minimum`, from the stored bf16.
///
/// # Errors
/// [`KernelError::Length`] on buffers of other lengths than the shape says.
pub fn unpack_into(codes: &[u8], params: &[u32], shape: SampleMajor, out: &mut [f32]) -> Result<(), KernelError> {
    check(shape, out.len(), codes.len(), params.len())?;
    if shape.is_empty() {
        return Ok(());
    }
    let mask = shape.bits.top() as u8;
    for (sample, row) in out.chunks_mut(shape.features).enumerate() {
        for (group, elements) in row.chunks_mut(GROUP).enumerate() {
            let param = params[sample * shape.groups() + group];
            let (scale, minimum) = (f32::from_bits(param & 0xFFFF_0000), f32::from_bits(param << 16));
            let (first, shift) = shape.place(sample, group * GROUP);
            for (x, &byte) in elements.iter_mut().zip(&codes[first..]) {
                *x = f32::from(byte >> shift & mask) / scale + minimum;
            }
        }
    }
    Ok(())
}

fn check(shape: SampleMajor, len: usize, codes: usize, params: usize) -> Result<(), KernelError> {
    KernelError::expect_length("the tensor", len, shape.len())?;
    KernelError::expect_length("the buffer of codes", codes, shape.code_bytes())?;
    KernelError::expect_length("the buffer of ranges", params, shape.params())
}

/// The nearest of 0 to `top` <= 255, to even; 0 for NaN. Adding 2^23 leaves the integer in the last bits.
fn nearest(code: f32, top: f32) -> u8 {
    (code.max(0.0).min(top) + f32::from_bits(MAGIC)).to_bits() as u8
}

/// The nearest bf16, to even, as its sixteen bits. `x` is finite.
fn bf16_nearest(x: f32) -> u32 {
    let bits = x.to_bits();
    (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
}
