//! Why a tensor cannot be compressed, or bytes not decompressed.

use thiserror::Error;

use super::Shape;
use crate::error::KernelError;

/// Why a tensor cannot be compressed, or bytes not decompressed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodecError {
    /// A setting that no codec can have.
    #[error("{what} is {found}; expected {expected}")]
    Setting {
        /// Which.
        what: &'static str,
        /// What was asked for, as text.
        found: String,
        /// What could be.
        expected: &'static str,
    },
    /// Elements that do not fill their shape, or a shape whose dimensions do not fit 32 bits.
    #[error("{found} elements for {} channels of {} x {}", .shape.channels, .shape.height, .shape.width)]
    Shape {
        /// Elements that there are.
        found: usize,
        /// The shape that they should fill.
        shape: Shape,
    },
    /// Bytes that a compressor of another version wrote, or no compressor at all.
    #[error("not a compressed tensor of version {expected}: {found}")]
    Version {
        /// What they begin with, as text.
        found: String,
        /// The version that can be read.
        expected: u8,
    },
    /// Bytes that end too early, or too late.
    #[error("{what} has {found} bytes; expected {expected}")]
    Length {
        /// What was being read.
        what: &'static str,
        /// Bytes that there are.
        found: u64,
        /// Bytes that are needed.
        expected: u64,
    },
    /// Bytes that no compressor writes.
    #[error("{what} is damaged: {reason}")]
    Damaged {
        /// What was being read.
        what: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A kernel that quantisation calls.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

impl CodecError {
    pub(super) fn setting(what: &'static str, found: impl ToString, expected: &'static str) -> Self {
        Self::Setting { what, found: found.to_string(), expected }
    }

    pub(super) const fn damaged(what: &'static str, reason: &'static str) -> Self {
        Self::Damaged { what, reason }
    }
}
