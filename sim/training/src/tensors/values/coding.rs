//! From the values of a saved tensor to the bytes in which it is stored, and back.
//!
//! A quantised tensor is stored as the copies of its packed values, a bit for each element that lets a gradient
//! through, and a byte for each position within a window: exactly the bytes that [`Quantised`] computes. Code that
//! trains without an executor uses [`GivesBack`] to get the values that a store gives back, by the same kernels but
//! without time and memory.

use half::f16;
use half::slice::HalfFloatSliceExt;
use haversack_kernels::compress::{Bound, Codec, CodecError, FeatureMap, Mode, decompress};
use haversack_kernels::quantise::{self as kernel, Bits, Format, GROUP, Grouping, Layout, Packed, requantise};
use haversack_kernels::{Isa, KernelError, reduce};
use haversack_memory::pages::PageError;
use haversack_numerics::dense::transcendental::{exp, ln};
use haversack_numerics::program::{Positions, Scale};
use haversack_numerics::{Bytes, Contents, Floats, Integers, Map, Memory, Meter, Passes, Program};
use haversack_policies::{Quantised, Rounding, Storage, StoredParts, WHOLE};
use haversack_workloads::TensorId;
use thiserror::Error;

use crate::machine::packing::BOUND;
use crate::record::StoredForms;

/// Why values cannot be stored, or not be restored.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StoreError {
    /// A kernel refuses them, such as a range that is not finite.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The codec refuses them.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The arena does not have them.
    #[error(transparent)]
    Arena(#[from] PageError),
    /// No values to store or restore.
    #[error("nothing is stored of it")]
    NoValues,
}

/// The result of storing.
pub(super) type Result<T = (), E = StoreError> = std::result::Result<T, E>;

/// How values are stored in a run.
pub(super) struct Coding<'g> {
    program: &'g Program,
    meter: Meter,
    quantised: Option<Quantised>,
    rounding: Rounding,
    /// The seed of random rounding.
    pub(super) draw: u64,
    codec: Codec,
    isa: Isa,
}

/// A tensor with a number of samples, and its number of bits a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) tensor: TensorId,
    pub(super) bits: u8,
    pub(super) samples: u64,
}

impl<'g> Coding<'g> {
    pub(super) fn new(
        program: &'g Program,
        quantised: Option<Quantised>,
        rounding: Rounding,
        meter: Meter,
    ) -> Result<Self> {
        let isa = Isa::chosen()?;
        let codec = Codec::new(Mode::mixed(Bound::OfTensor(BOUND)), isa)?;
        Ok(Self { program, meter, quantised, rounding, draw: 0, codec, isa })
    }

    /// How a copy of a tensor is rounded.
    const fn rounding(&self, tensor: TensorId, copy: u64) -> kernel::Rounding {
        match self.rounding {
            Rounding::Nearest => kernel::Rounding::NearestEven,
            Rounding::Stochastic => {
                kernel::Rounding::Stochastic { seed: self.draw ^ (tensor as u64) << 32 ^ copy << 24 }
            }
        }
    }

    /// The mean variance that one step over the range of each group of values adds to them: a step's square over
    /// twelve.
    pub(super) fn spread(&self, values: &[f32]) -> f64 {
        let of_group = |group: &[f32]| {
            let range = reduce::maximum(group, self.isa) - reduce::minimum(group, self.isa);
            f64::from(range).powi(2) / 12.0 * group.len() as f64
        };
        values.chunks(GROUP).map(of_group).sum::<f64>() / values.len().max(1) as f64
    }

    /// Replaces values by those that the store gives back.
    fn give_back(&self, tensor: TensorId, storage: Storage, values: &mut [f32]) -> Result {
        match storage {
            Storage::Flash | Storage::Quantised(WHOLE) => {}
            Storage::Compressed => {
                let bytes = self.compress(tensor, values)?;
                values.copy_from_slice(&self.decompress(tensor, &bytes)?);
            }
            Storage::Quantised(0) => values.fill(0.0),
            Storage::Quantised(16) => {
                values.iter_mut().for_each(|value| *value = f16::from_f32(*value).to_f32());
            }
            Storage::Quantised(bits) => {
                let exponentials = self.exponentials(tensor, bits, values);
                let stored = exponentials.as_deref().unwrap_or(values);
                let packed = Packed::quantise(stored, format(bits)?, self.rounding(tensor, 0), self.isa)?;
                packed.dequantise_into(self.isa, values)?;
                if exponentials.is_some() {
                    values.iter_mut().for_each(|value| *value = ln(*value));
                }
            }
        }
        Ok(())
    }

    /// The sum of squares.
    pub(super) fn squares(&self, values: &[f32]) -> f64 {
        reduce::sum_of_squares(values, self.isa)
    }

    fn parts(&self, of: Parts) -> StoredParts {
        let parts = self.quantised.as_ref().and_then(|quantised| quantised.parts(of.tensor, of.samples));
        parts.unwrap_or_default()
    }

    /// The bytes in which `whole` is stored.
    pub(super) fn encode(&self, of: Parts, whole: &Contents) -> Result<Bytes> {
        let parts = self.parts(of);
        let mut bytes = self.meter.bytes(parts.bytes_at(of.bits) as usize);
        match whole {
            Contents::Floats(values) => {
                let (packed, aside) = bytes.split_at_mut(parts.packed_bytes(of.bits) as usize);
                let exponentials = self.exponentials(of.tensor, of.bits, values);
                let values = exponentials.as_deref().unwrap_or(values);
                for (number, copy) in (0..).zip(packed.chunks_exact_mut((parts.copy_bytes(of.bits) as usize).max(1))) {
                    self.pack(values, of.bits, self.rounding(of.tensor, number), copy)?;
                }
                if of.bits != WHOLE && parts.bits > 0 {
                    mark(values.iter().copied(), self.program.passes(of.tensor), aside);
                }
            }
            // Values that already have fewer bits are never packed.
            Contents::Eight(_) => return Err(StoreError::NoValues),
            Contents::Integers(positions) => put_integers(positions, self.windows(of), &mut bytes),
        }
        Ok(bytes)
    }

    fn pack(&self, values: &[f32], bits: u8, rounding: kernel::Rounding, bytes: &mut [u8]) -> Result {
        match bits {
            0 => {}
            WHOLE => put(values.iter().map(|value| value.to_bits()), bytes),
            16 => {
                let halves = values.iter().map(|&value| f16::from_f32(value).to_le_bytes());
                halves.zip(bytes.chunks_exact_mut(2)).for_each(|(half, bytes)| bytes.copy_from_slice(&half));
            }
            bits => {
                let packed = Packed::quantise(values, format(bits)?, rounding, self.isa)?;
                put(packed.words().iter().chain(packed.params()).copied(), bytes);
            }
        }
        Ok(())
    }

    /// The values as they come back.
    pub(super) fn decode(&self, of: Parts, bytes: &[u8]) -> Result<Contents> {
        let (parts, len) = (self.parts(of), self.program.elements(of.tensor, of.samples));
        if self.program.is_integer(of.tensor) {
            let mut positions = self.meter.integers(len);
            get_integers(bytes, self.windows(of), &mut positions);
            return Ok(Contents::Integers(positions));
        }
        let mut values = self.meter.floats(len);
        let copy = parts.copy_bytes(of.bits) as usize;
        // Signs without values: a reader that needs values computes them again.
        let bits = if copy == 0 { 0 } else { of.bits };
        self.unpack(bits, &bytes[..copy.min(bytes.len())], &mut values)?;
        if self.is_exponential(of.tensor, of.bits) {
            values.iter_mut().for_each(|value| *value = ln(*value));
        }
        Ok(Contents::Floats(values))
    }

    fn unpack(&self, bits: u8, bytes: &[u8], values: &mut [f32]) -> Result {
        match bits {
            0 => values.fill(0.0),
            WHOLE => values.iter_mut().zip(words(bytes)).for_each(|(value, word)| *value = f32::from_bits(word)),
            16 => {
                let halves: Vec<f16> = bytes.as_chunks().0.iter().map(|&half| f16::from_le_bytes(half)).collect();
                halves.convert_to_f32_slice(values);
            }
            bits => packed(bytes, values.len(), bits)?.dequantise_into(self.isa, values)?,
        }
        Ok(())
    }

    /// The bits of the elements that let a gradient through; `None` if none are kept.
    pub(super) fn signs(&self, of: Parts, bytes: &[u8]) -> Option<Bytes> {
        let range = self.parts(of).bit_range(of.bits);
        (!range.is_empty()).then(|| self.meter.copy(&bytes[range]))
    }

    /// The same tensor with fewer bits a value.
    pub(super) fn requantise(&self, of: Parts, bytes: &[u8], bits: u8) -> Result<Bytes> {
        if of.bits == WHOLE && self.program.scale(of.tensor) == Scale::Exponential {
            return self.encode(Parts { bits, ..of }, &self.decode(of, bytes)?);
        }
        let parts = self.parts(of);
        let mut narrow = self.meter.bytes(parts.bytes_at(bits) as usize);
        let held = &bytes[..(parts.copy_bytes(of.bits) as usize).min(bytes.len())];
        let packed = parts.packed_bytes(bits) as usize;
        let (copies, aside) = narrow.split_at_mut(packed);
        for copy in copies.chunks_exact_mut((parts.copy_bytes(bits) as usize).max(1)) {
            self.narrow(held, of.bits, bits, parts.values as usize, copy)?;
        }
        let kept = bytes.get(parts.packed_bytes(of.bits) as usize..).unwrap_or(&[]);
        aside.iter_mut().zip(kept).for_each(|(to, &from)| *to = from);
        Ok(narrow)
    }

    /// One copy of the values with fewer bits.
    fn narrow(&self, from: &[u8], old: u8, new: u8, len: usize, to: &mut [u8]) -> Result {
        if (1..=8).contains(&old) && (1..=8).contains(&new) {
            let held = packed(from, len, old)?;
            let (mut words, mut params) = (held.words().to_vec(), held.params().to_vec());
            let narrow = requantise(&mut words, &mut params, held.format(), len, Bits::new(new)?, self.isa)?;
            put(words[..narrow.words(len)].iter().chain(&params).copied(), to);
            return Ok(());
        }
        let mut values = vec![0.0; len];
        self.unpack(old, from, &mut values)?;
        self.pack(&values, new, kernel::Rounding::NearestEven, to)
    }

    /// Integers without loss: positions by their place in a window, others as they are.
    pub(super) fn compress_integers(&self, tensor: TensorId, integers: &[i64]) -> Bytes {
        let windows = self.program.positions(tensor);
        let mut bytes = self.meter.bytes(integers.len() * if windows.is_some() { 1 } else { size_of::<i64>() });
        put_integers(integers, windows, &mut bytes);
        bytes
    }

    /// The inverse of [`compress_integers`](Self::compress_integers).
    pub(super) fn decompress_integers(&self, tensor: TensorId, bytes: &[u8]) -> Integers {
        let windows = self.program.positions(tensor);
        let mut integers = self.meter.integers(bytes.len() / if windows.is_some() { 1 } else { size_of::<i64>() });
        get_integers(bytes, windows, &mut integers);
        integers
    }

    /// The codec's output for the maps of all samples, one after the other, each behind its length.
    pub(super) fn compress(&self, tensor: TensorId, values: &[f32]) -> Result<Bytes> {
        let (mut all, mut one, map) = (Vec::new(), Vec::new(), self.program.map_of(tensor));
        for sample in values.chunks_exact(map.elements().max(1)) {
            let channelled = map.channels_first(sample);
            let Map { channels, height, width, .. } = map;
            self.codec.compress(FeatureMap { values: &channelled, channels, height, width }, &mut one)?;
            all.extend((one.len() as u32).to_le_bytes());
            all.extend(&one);
        }
        Ok(self.meter.copy(&all))
    }

    /// The values as the codec gives them back.
    pub(super) fn decompress(&self, tensor: TensorId, mut bytes: &[u8]) -> Result<Floats> {
        let (mut samples, map) = (Vec::new(), self.program.map_of(tensor));
        while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
            let (one, rest) =
                rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(StoreError::NoValues)?;
            let mut values = vec![0.0; map.elements()];
            decompress(one, self.isa, &mut values)?;
            samples.extend(map.channels_back(values));
            bytes = rest;
        }
        Ok(self.meter.copy(&samples))
    }

    /// The exponentials of values that are stored as such with `bits` bits; `None` if they are stored as they are.
    fn exponentials(&self, tensor: TensorId, bits: u8, values: &[f32]) -> Option<Floats> {
        self.is_exponential(tensor, bits).then(|| {
            let mut exponentials = self.meter.copy(values);
            exponentials.iter_mut().for_each(|value| *value = exp(*value));
            exponentials
        })
    }

    fn is_exponential(&self, tensor: TensorId, bits: u8) -> bool {
        bits != WHOLE && self.program.scale(tensor) == Scale::Exponential
    }

    /// The windows by which positions are stored with fewer bits; `None` for integers that are stored as they are.
    fn windows(&self, of: Parts) -> Option<&Positions> {
        self.program.positions(of.tensor).filter(|_| of.bits != WHOLE)
    }
}

/// The tensors that a run stores between forward and backward and that are restored with different values.
#[derive(Clone, Debug)]
pub struct GivesBack {
    forms: StoredForms,
}

impl GivesBack {
    /// The lossy ones among `forms`; `None` if all tensors are restored exactly.
    pub fn of(mut forms: StoredForms) -> Option<Self> {
        forms.tensors.retain(|(_, storage)| !matches!(storage, Storage::Flash | Storage::Quantised(WHOLE)));
        (!forms.tensors.is_empty()).then_some(Self { forms })
    }

    /// Replaces values by those restored between forward and backward. The elements that a ReLU or a mask lets through
    /// are kept in addition to quantised ones, and positions within windows are restored exactly. `draw` is the seed of
    /// random rounding.
    ///
    /// # Errors
    /// Values that cannot be stored, such as those that are not finite.
    pub fn give_back(&self, program: &Program, memory: &mut dyn Memory, draw: u64) -> Result {
        let mut coding = Coding::new(program, None, self.forms.rounding, memory.meter().clone())?;
        coding.draw = draw;
        for &(tensor, storage) in &self.forms.tensors {
            let Some(mut contents) = memory.take(tensor) else { continue };
            if let Contents::Floats(values) = &mut contents {
                if matches!(storage, Storage::Quantised(_)) {
                    let mut bits = coding.meter.bytes(values.len().div_ceil(8));
                    mark(values.iter().copied(), program.passes(tensor), &mut bits);
                    memory.keep_signs(tensor, bits);
                }
                coding.give_back(tensor, storage, values)?;
            }
            memory.put(tensor, contents);
        }
        Ok(())
    }
}

fn format(bits: u8) -> Result<Format, KernelError> {
    Ok(Format::new(Bits::new(bits)?, Grouping::Group256, Layout::Interleaved))
}

/// A packed copy of `len` values from its bytes.
fn packed(bytes: &[u8], len: usize, bits: u8) -> Result<Packed, KernelError> {
    let format = format(bits)?;
    let mut words: Vec<u32> = words(bytes).collect();
    let params = words.split_off(format.words(len).min(words.len()));
    Packed::from_parts(words, params, len, format)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word))
}

fn put(words: impl Iterator<Item = u32>, bytes: &mut [u8]) {
    for (word, bytes) in words.zip(bytes.as_chunks_mut().0) {
        *bytes = word.to_le_bytes();
    }
}

fn put_integers(integers: &[i64], windows: Option<&Positions>, bytes: &mut [u8]) {
    match windows {
        Some(windows) => windows.within(integers, bytes),
        None => {
            integers.iter().zip(bytes.as_chunks_mut().0).for_each(|(integer, bytes)| *bytes = integer.to_le_bytes())
        }
    }
}

fn get_integers(bytes: &[u8], windows: Option<&Positions>, integers: &mut [i64]) {
    match windows {
        Some(windows) => windows.in_plane(bytes, integers),
        None => integers
            .iter_mut()
            .zip(bytes.as_chunks().0)
            .for_each(|(integer, bytes)| *integer = i64::from_le_bytes(*bytes)),
    }
}

/// A bit for each element, the lowest first: whether it lets a gradient through.
pub(super) fn mark(mut values: impl Iterator<Item = f32>, passes: Passes, bits: &mut [u8]) {
    for bits in bits {
        let some = values.by_ref().take(8).enumerate();
        *bits = some.fold(0, |bits, (place, value)| bits | u8::from(passes.lets(value)) << place);
    }
}
