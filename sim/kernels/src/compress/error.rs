//! Why a tensor cannot be compressed, or bytes cannot be decompressed.

use thiserror::Error;

use super::Shape;
use crate::KernelError;

/// Why a tensor cannot be compressed, or bytes cannot be decompressed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodecError {
    /// An invalid setting.
    #[error("{what} is {found}; expected {expected}")]
    Setting {
        /// The setting.
        what: &'static str,
        /// Its value, as text.
        found: String,
        /// The valid values.
        expected: &'static str,
    },
    /// Elements that do not fill their shape, or a shape whose dimensions do not fit 32 bits.
    #[error("{found} elements for {} channels of {} x {}", .shape.channels, .shape.height, .shape.width)]
    Shape {
        /// The number of elements.
        found: usize,
        /// The shape that they should fill.
        shape: Shape,
    },
    /// Bytes that no compressor of this version wrote: those of another version, unrelated ones, too few, or too
    /// many. The reason in words.
    #[error("{0}")]
    Damaged(String),
    /// An error of a kernel that quantisation calls.
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
