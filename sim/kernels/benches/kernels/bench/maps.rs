//! Smooth feature maps, on which compressors are measured: noise is not the data that they are made for.

use haversack_kernels::compress::{Kind, Shape};

use crate::bench::buffer::Buffer;
use crate::bench::contender::Tensors;

/// The shape of smooth maps that fill a tensor with whole channels: of 112 × 112 where those
/// fit, otherwise smaller ones.
pub(crate) fn shape(elements: usize) -> Shape {
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
