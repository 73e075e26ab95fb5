//! Where the operands of a node are stored: the interface between the arithmetic and the owner of the tensors.

use std::ops::Deref;

use haversack_workloads::TensorId;

use crate::meter::{Buffer, Element};
use crate::{Bytes, Eight, Floats, Integers, Meter, ProgramError};

/// The contents of a tensor in the form in which it was made.
#[derive(Clone, Debug)]
#[must_use]
pub enum Contents {
    /// fp32 values.
    Floats(Floats),
    /// 64-bit integers: labels, ids, positions.
    Integers(Integers),
    /// Eight-bit values.
    Eight(Eight),
}

impl Contents {
    /// Keeps the first `len` elements.
    pub fn truncate(&mut self, len: usize) {
        match self {
            Self::Floats(values) => values.truncate(len),
            Self::Integers(values) => values.truncate(len),
            Self::Eight(values) => values.codes.truncate(len),
        }
    }

    /// A copy in buffers that `meter` counts.
    pub fn copied(&self, meter: &Meter) -> Self {
        match self {
            Self::Floats(values) => Self::Floats(meter.copy(values)),
            Self::Integers(values) => Self::Integers(meter.copy(values)),
            Self::Eight(held) => Self::Eight(Eight { codes: meter.copy(&held.codes), step: held.step }),
        }
    }

    /// The values of contents that are stored in fewer bits; `None` for all others.
    pub fn decoded(&self, meter: &Meter) -> Option<Floats> {
        match self {
            Self::Eight(held) => Some(held.values(meter)),
            Self::Floats(_) | Self::Integers(_) => None,
        }
    }
}

/// Values to read: the stored ones, or a copy that was made for the reader.
#[derive(Debug)]
pub enum Seen<'a, T: Element = f32> {
    /// The stored values.
    Held(&'a [T]),
    /// A copy in the order that the reader needs.
    Copy(Buffer<T>),
}

/// Integers to read.
pub type SeenIntegers<'a> = Seen<'a, i64>;

impl<T: Element> Deref for Seen<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Held(values) => values,
            Self::Copy(values) => values,
        }
    }
}

/// The operand of a gradient that passes where an output was positive.
#[derive(Debug)]
pub enum Signs<'a> {
    /// The output itself.
    Values(Seen<'a>),
    /// A bit an element, the lowest first.
    Bits(Bytes),
}

/// Tensors by id, as a node reads and writes them. A store that keeps a tensor in another form
/// gives it back in this one.
pub trait Memory {
    /// The values of a tensor.
    ///
    /// # Errors
    /// A tensor that is not in memory, or has integers.
    fn floats(&self, tensor: TensorId) -> Result<Seen<'_>, ProgramError>;

    /// The integers of a tensor.
    ///
    /// # Errors
    /// A tensor that is not in memory, or has values.
    fn integers(&self, tensor: TensorId) -> Result<SeenIntegers<'_>, ProgramError>;

    /// Which elements of a tensor are positive.
    ///
    /// # Errors
    /// A tensor that is not in memory.
    fn signs(&self, tensor: TensorId) -> Result<Signs<'_>, ProgramError> {
        self.floats(tensor).map(Signs::Values)
    }

    /// From now on these bits, the lowest first, define which elements of a tensor let a gradient
    /// through, whatever its contents.
    fn keep_signs(&mut self, _tensor: TensorId, _bits: Bytes) {}

    /// The tensor if it is stored in eight bits; `None` otherwise.
    fn eight(&self, _tensor: TensorId) -> Option<&Eight> {
        None
    }

    /// The scale factor that `tensor` keeps in this iteration, by which the sums of its values are shifted; `None` if
    /// the rescaling of `rescaled` has to determine a new one.
    fn kept_factor(&self, _rescaled: TensorId, _tensor: TensorId) -> Option<u32> {
        None
    }

    /// Records that the sums of a tensor's values were shifted by `factor` bits.
    fn note_factor(&mut self, _tensor: TensorId, _factor: u32) {}

    /// Takes a tensor out to write it; `None` if it is not in memory because nothing needs it.
    fn take(&mut self, tensor: TensorId) -> Option<Contents>;

    /// Puts a tensor back that was taken out.
    fn put(&mut self, tensor: TensorId, contents: Contents);

    /// The meter that counts the bytes of buffers.
    fn meter(&self) -> &Meter;
}
