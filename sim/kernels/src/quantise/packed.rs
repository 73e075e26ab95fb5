//! A packed tensor that owns its words.

use super::format::Format;
use super::pack::quantise_into;
use super::rounding::Rounding;
use super::scale::Scale;
use super::unpack::dequantise_into;
use crate::{Isa, KernelError};

/// A packed tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    words: Vec<u32>,
    params: Vec<u32>,
    len: usize,
    format: Format,
}

impl Packed {
    /// Quantises and packs a tensor.
    ///
    /// # Errors
    /// As [`quantise_into`].
    pub fn quantise(values: &[f32], format: Format, rounding: Rounding, isa: Isa) -> Result<Self, KernelError> {
        let len = values.len();
        let (mut words, mut params) = (vec![0; format.words(len)], vec![0; format.params(len)]);
        quantise_into(values, format, rounding, isa, &mut words, &mut params)?;
        Ok(Self { words, params, len, format })
    }

    /// A packed tensor from the results of [`words`](Self::words) and [`params`](Self::params).
    ///
    /// # Errors
    /// [`KernelError::Length`] if they are not those of `len` elements.
    pub fn from_parts(words: Vec<u32>, params: Vec<u32>, len: usize, format: Format) -> Result<Self, KernelError> {
        format.check(len, words.len(), params.len())?;
        Ok(Self { words, params, len, format })
    }

    /// The codes, as [`Format::slot`] places them.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The ranges: the bits of the minimum and of the step as f32 (per tensor), or both as bf16 in one word a group, the
    /// minimum in the upper half.
    pub fn params(&self) -> &[u32] {
        &self.params
    }

    /// Elements.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the tensor is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its format.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Its size, equal to [`Format::bytes`].
    pub fn bytes(&self) -> u64 {
        4 * (self.words.len() as u64 + self.params.len() as u64)
    }

    /// The scale of an element; `None` outside the tensor.
    pub fn scale(&self, element: usize) -> Option<Scale> {
        (element < self.len).then(|| Scale::stored(self.format, &self.params, element))
    }

    /// Its codes, one a byte, in the tensor's order, as [`Format::slot`] places them.
    pub fn codes(&self) -> Vec<u8> {
        let slots = (0..self.len).filter_map(|element| self.format.slot(element, self.len));
        slots.map(|slot| (self.words[slot.word] >> slot.shift & self.format.bits.top()) as u8).collect()
    }

    /// Its values.
    pub fn dequantise(&self, isa: Isa) -> Vec<f32> {
        let mut values = vec![0.0; self.len];
        // The lengths fit: every constructor has checked them.
        let fits = self.dequantise_into(isa, &mut values);
        debug_assert_eq!(fits, Ok(()));
        values
    }

    /// Writes its values.
    ///
    /// # Errors
    /// [`KernelError::Length`] if `out` is not as long as the tensor.
    pub fn dequantise_into(&self, isa: Isa, out: &mut [f32]) -> Result<(), KernelError> {
        KernelError::expect_length("the output", out.len(), self.len)?;
        dequantise_into(&self.words, &self.params, self.format, isa, out)
    }
}
