//! `ActNN`'s order: the codes of one feature's samples side by side in a byte.

use std::hint::black_box;

use super::super::{Entry, List};
use crate::buffer::Buffer;
use crate::contender::{Contender, Tensors};
use crate::crates::ByCrate;
use crate::{Family, Limit};
use haversack_kernels::KernelError;
use haversack_kernels::quantise::actnn::{self, SampleMajor};
use haversack_kernels::quantise::{Bits, Rounding};

/// Features of a sample, which divide every size.
const FEATURES: usize = 1024;

/// Packing and unpacking at one width. No crate packs in this order.
pub(super) fn add(list: &mut List, bits: u8) {
    let of =
        |what, how: &str| (format!("{what}{bits}-sample-major"), format!("{how}, the samples of a feature in a byte"));
    let (id, about) = of("pack", &format!("f32 to {bits} bits"));
    let entry = Entry::new(&id, &about, (Family::GroupPack, Limit::Read), ByCrate::Lossless.contender());
    let own = move |tensors: &Tensors| {
        let shape = shape(tensors, bits)?;
        Ok((shape, Buffer::<u8>::zeroed(shape.code_bytes()), Buffer::<u32>::zeroed(shape.params())))
    };
    list.one(entry, |id, _| {
        Contender::with(id, own, |(shape, codes, params), Tensors { values, .. }| {
            actnn::pack_into(black_box(values), *shape, Rounding::NearestEven, black_box(codes), black_box(params))
        })
    });
    let (id, about) = of("unpack", &format!("{bits} bits to f32"));
    let entry = Entry::new(&id, &about, (Family::GroupUnpack, Limit::Write), None);
    let packed = move |tensors: &Tensors| {
        let (shape, mut codes, mut params) = own(tensors)?;
        actnn::pack_into(&tensors.values, shape, Rounding::NearestEven, &mut codes, &mut params)?;
        Ok((shape, codes, params))
    };
    list.one(entry, |id, _| {
        Contender::with(id, packed, |(shape, codes, params), Tensors { output, .. }| {
            actnn::unpack_into(black_box(codes), black_box(params), *shape, black_box(output))
        })
    });
}

fn shape(tensors: &Tensors, bits: u8) -> Result<SampleMajor, KernelError> {
    SampleMajor::new(tensors.values.len() / FEATURES, FEATURES, Bits::new(bits)?)
}
