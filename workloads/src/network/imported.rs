//! The values in an imported file, in the file's layout.

use std::collections::HashMap;

use half::f16;
use prost::bytes::Bytes;

use super::StorageId;

/// The format of a number in a file, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberFormat {
    /// fp32.
    Single,
    /// fp64.
    Double,
    /// fp16.
    Half,
    /// The upper half of an fp32.
    Brain,
}

impl NumberFormat {
    /// Bytes of a number.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Single => 4,
            Self::Double => 8,
            Self::Half | Self::Brain => 2,
        }
    }
}

/// The values of one tensor: a part of the file's bytes, which is not copied.
#[derive(Clone, Debug)]
pub(crate) struct ImportedTensor {
    pub(crate) bytes: Bytes,
    pub(crate) format: NumberFormat,
    /// Rows and columns in the file, where the network stores the transposed matrix.
    pub(crate) transposed: Option<[u64; 2]>,
}

/// The contents of an imported file other than operators.
#[derive(Debug, Default)]
pub struct Imported {
    /// Values by the storage that they fill, if they were kept.
    pub(crate) tensors: HashMap<StorageId, ImportedTensor>,
    pub(crate) notes: Vec<String>,
    pub(crate) missing: Vec<String>,
}

impl Imported {
    /// Whether the file has values for `storage`.
    pub(super) fn holds(&self, storage: StorageId) -> bool {
        self.tensors.contains_key(&storage)
    }

    /// The values for `storage`, in fp32.
    pub(super) fn floats(&self, storage: StorageId) -> Option<Vec<f32>> {
        self.tensors.get(&storage).map(ImportedTensor::floats)
    }
}

impl ImportedTensor {
    /// The values in fp32, in the network's layout.
    #[expect(clippy::cast_possible_truncation, reason = "networks here compute in fp32")]
    pub(crate) fn floats(&self) -> Vec<f32> {
        let numbers = self.bytes.chunks_exact(self.format.bytes()).map(|bytes| match (self.format, bytes) {
            (NumberFormat::Single, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
            (NumberFormat::Half, &[low, high]) => f16::from_le_bytes([low, high]).to_f32(),
            (NumberFormat::Brain, &[low, high]) => f32::from_le_bytes([0, 0, low, high]),
            (_, bytes) => bytes.try_into().map_or(f32::NAN, |bytes| f64::from_le_bytes(bytes) as f32),
        });
        let numbers: Vec<f32> = numbers.collect();
        let Some([_, columns]) = self.transposed.filter(|[_, columns]| *columns > 0) else { return numbers };
        let column = |at: u64| numbers.iter().skip(at as usize).step_by(columns as usize).copied();
        (0..columns).flat_map(column).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8], format: NumberFormat, transposed: Option<[u64; 2]>) -> Vec<f32> {
        let tensor = ImportedTensor { bytes: Bytes::copy_from_slice(bytes), format, transposed };
        Imported { tensors: HashMap::from([(3, tensor)]), ..Imported::default() }.floats(3).unwrap()
    }

    #[test]
    fn every_format_is_read() {
        assert_eq!(of(&1.5_f32.to_le_bytes(), NumberFormat::Single, None), [1.5]);
        assert_eq!(of(&(-2.25_f64).to_le_bytes(), NumberFormat::Double, None), [-2.25]);
        // 0x3e00: exponent 15, fraction one half; 0x0001 the smallest, 2⁻²⁴; 0xfc00 minus infinity.
        let halves = of(&[0x00, 0x3e, 0x01, 0x00, 0x00, 0xfc], NumberFormat::Half, None);
        assert_eq!(halves, [1.5, 2.0_f32.powi(-24), f32::NEG_INFINITY]);
        assert_eq!(of(&[0xc0, 0x3f], NumberFormat::Brain, None), [1.5]);
    }

    #[test]
    fn a_transposed_matrix_is_read_by_columns() {
        let bytes: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        // 2 x 3 in the file: 1 2 3 / 4 5 6.
        assert_eq!(of(&bytes, NumberFormat::Single, Some([2, 3])), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    }
}
