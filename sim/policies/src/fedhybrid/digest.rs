//! FNV-1a of numbers: which graph, times and choices a plan is for.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A digest, written as 16 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(pub(super) u64);

impl Digest {
    /// Of nothing.
    pub(super) const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    /// Of `numbers`, in order.
    pub(super) fn of(numbers: impl IntoIterator<Item = u64>) -> Self {
        let bytes = numbers.into_iter().flat_map(u64::to_le_bytes);
        Self(bytes.fold(Self::EMPTY.0, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map(Self).map_err(D::Error::custom)
    }
}
