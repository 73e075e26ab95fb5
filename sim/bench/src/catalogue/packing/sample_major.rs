//! `ActNN`'s order: the codes of one feature's samples side by side in a byte.

use std::hint::black_box;

use super::super::{Entry, List, lossless};
use crate::buffer::Buffer;
use crate::contender::{Contender, Tensors};
use crate::{Family, Limit};
use haversack_kernels::KernelError;
use haversack_kernels::quantise::actnn::{self, SampleMajor};
use haversack_kernels::quantise::{Bits, Rounding};

/// Features of a sample, which divide every size.
const FEATURES: usize = 1024;

/// Packing and unpacking at one width. No crate packs in this order.
pub(super) fn add(list: &mut List, bits: u8) {
    let (id, about) =
        (format!("pack{bits}-sample-major"), format!("f32 to {bits} bits, the samples of a feature in a byte"));
    let entry = Entry { id: &id, about: &about, family: Family::GroupPack, limit: Limit::Read, peer: Some(lossless()) };
    let packing = Contender::owning(&id, move |tensors| {
        let shape = shape(tensors, bits)?;
        let (mut codes, mut params) = (Buffer::zeroed(shape.code_bytes()), Buffer::zeroed(shape.params()));
        Ok(Box::new(move |Tensors { values, .. }| {
            let rounding = Rounding::NearestEven;
            actnn::pack_into(black_box(values), shape, rounding, black_box(&mut codes), black_box(&mut params))
        }))
    });
    list.one(&entry, packing);
    let (id, about) =
        (format!("unpack{bits}-sample-major"), format!("{bits} bits to f32, the samples of a feature in a byte"));
    let entry = Entry { id: &id, about: &about, family: Family::GroupUnpack, limit: Limit::Write, peer: None };
    let unpacking = Contender::owning(&id, move |tensors| {
        let shape = shape(tensors, bits)?;
        let (mut codes, mut params) = (Buffer::zeroed(shape.code_bytes()), Buffer::zeroed(shape.params()));
        actnn::pack_into(&tensors.values, shape, Rounding::NearestEven, &mut codes, &mut params)?;
        Ok(Box::new(move |Tensors { output, .. }| {
            actnn::unpack_into(black_box(&codes), black_box(&params), shape, black_box(output))
        }))
    });
    list.one(&entry, unpacking);
}

fn shape(tensors: &Tensors, bits: u8) -> Result<SampleMajor, KernelError> {
    SampleMajor::new(tensors.values.len() / FEATURES, FEATURES, Bits::new(bits)?)
}
