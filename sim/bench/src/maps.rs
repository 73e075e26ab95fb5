//! Smooth feature maps: what compressors are measured on, since noise is nothing that they meet.

use haversack_kernels::compress::{Kind, Shape};

use crate::buffer::Buffer;
use crate::contender::Tensors;

/// Smooth maps that fill a tensor as far as whole channels do: of 112 × 112 where those fit, otherwise smaller ones.
fn shape(elements: usize) -> Shape {
    let edge = [112, 128, 80, 64, 16, 1].into_iter().find(|edge| elements.is_multiple_of(edge * edge)).unwrap_or(1);
    Shape { channels: elements / (edge * edge), height: edge, width: edge }
}

/// Smooth maps as large as the tensor.
pub(crate) fn maps(tensors: &Tensors) -> (Buffer<f32>, Shape) {
    let shape = shape(tensors.values.len());
    let mut values = Buffer::zeroed(tensors.values.len());
    values.copy_from_slice(&Kind::Smooth.generate(shape));
    (values, shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FEATURE_MAPS, SIZES};

    #[test]
    fn maps_fill_every_tensor_that_is_measured() {
        for size in SIZES.into_iter().chain([FEATURE_MAPS]) {
            let elements = size.0 as usize / 4;
            assert_eq!(shape(elements).elements(), Some(elements));
            assert!(shape(elements).width >= 16, "{size:?}");
        }
        assert_eq!(shape(FEATURE_MAPS.0 as usize / 4), Shape { channels: 64, height: 112, width: 112 });
    }
}
