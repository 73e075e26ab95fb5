//! Where the operands of a node lie: what the arithmetic asks of whoever holds the tensors.

use std::ops::Deref;

use haversack_workloads::TensorId;

use crate::meter::{Buffer, Element};
use crate::{Bytes, Eight, Floats, Integers, Meter, ProgramError};

/// The contents of a tensor as it was made.
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

    /// The values of what is held in fewer bits; `None` of all else.
    pub fn decoded(&self, meter: &Meter) -> Option<Floats> {
        match self {
            Self::Eight(held) => Some(held.values(meter)),
            Self::Floats(_) | Self::Integers(_) => None,
        }
    }
}

/// Values to read: those that are held, or a copy that was made for the reader.
#[derive(Debug)]
pub enum Seen<'a, T: Element = f32> {
    /// Those that are held.
    Held(&'a [T]),
    /// A copy in the order in which they are wanted.
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

/// What a gradient that passes where an output was positive reads.
#[derive(Debug)]
pub enum Signs<'a> {
    /// The output itself.
    Values(Seen<'a>),
    /// A bit an element, the lowest first.
    Bits(Bytes),
}

/// Tensors by id, as a node reads and writes them. What is stored otherwise is given as the store gives it back.
pub trait Memory {
    /// The values of a tensor.
    ///
    /// # Errors
    /// A tensor that is not there, or holds integers.
    fn floats(&self, tensor: TensorId) -> Result<Seen<'_>, ProgramError>;

    /// The integers of a tensor.
    ///
    /// # Errors
    /// A tensor that is not there, or holds values.
    fn integers(&self, tensor: TensorId) -> Result<SeenIntegers<'_>, ProgramError>;

    /// Which elements of a tensor are positive.
    ///
    /// # Errors
    /// A tensor that is not there.
    fn signs(&self, tensor: TensorId) -> Result<Signs<'_>, ProgramError> {
        self.floats(tensor).map(Signs::Values)
    }

    /// From now on these bits say which elements of a tensor let a gradient through, the lowest first, whatever it holds.
    fn keep_signs(&mut self, _tensor: TensorId, _bits: Bytes) {}

    /// The tensor if it is held in eight bits; `None` if it is held otherwise.
    fn eight(&self, _tensor: TensorId) -> Option<&Eight> {
        None
    }

    /// The scale factor that `tensor` keeps in this iteration, by which the sums of its values are shifted; `None` if it is
    /// taken anew, which the rescaling of `rescaled` says.
    fn kept_factor(&self, _rescaled: TensorId, _tensor: TensorId) -> Option<u32> {
        None
    }

    /// The sums of a tensor's values were shifted by `factor` bits.
    fn note_factor(&mut self, _tensor: TensorId, _factor: u32) {}

    /// Takes a tensor out to write it; `None` if it is not there, since nobody wants it.
    fn take(&mut self, tensor: TensorId) -> Option<Contents>;

    /// Puts a tensor back that was taken out.
    fn put(&mut self, tensor: TensorId, contents: Contents);

    /// Who counts the bytes of buffers.
    fn meter(&self) -> &Meter;
}
