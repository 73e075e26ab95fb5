//! Why a tensor cannot be compressed, or bytes not decompressed.

use thiserror::Error;

use super::Shape;
use crate::KernelError;

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
    /// Bytes that no compressor of this version wrote, in words: another's, or none's; they end too early, or too late.
    #[error("{0}")]
    Damaged(String),
    /// A kernel that quantisation calls.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

impl CodecError {
    pub(super) fn setting(what: &'static str, found: impl ToString, expected: &'static str) -> Self {
        Self::Setting { what, found: found.to_string(), expected }
    }

    pub(super) fn damaged(what: &str, reason: &str) -> Self {
        Self::Damaged(format!("{what} is damaged: {reason}"))
    }
}
