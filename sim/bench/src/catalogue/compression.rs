//! Compression of feature maps. The tensor's noise is nothing that a lossy compressor meets: everybody here has smooth
//! maps instead, about as large as the tensor.

use std::hint::black_box;

use super::{Entry, List};
use crate::contender::{Contender, Tensors};
use crate::crates::ByCrate;
use crate::maps::maps;
use crate::{Family, Limit};
use haversack_kernels::Isa;
use haversack_kernels::KernelError;
use haversack_kernels::compress::{Bound, Codec, CodecError, FeatureMap, Mode, Shape, decompress};

/// The bound that is measured, as a share of the range.
const SHARE: f32 = 1e-3;

pub(super) fn add(list: &mut List) {
    let bounded = Mode::ErrorBounded { bound: Bound::OfTensor(SHARE) };
    add_mode(list, "bounded", "every channel predicted", bounded);
    let mixed = Mode::mixed(Bound::OfChannel(SHARE));
    add_mode(list, "mixed", "FedHybrid's mix of quantised and predicted channels", mixed);
    // Not a kernel but a second thing to hold compression against.
    if let Some(zstd) = ByCrate::ZstdMaps.contender() {
        list.one(&entry("compress-zstd3", "the same maps by zstd, level 3, without loss", Limit::Read, None), zstd);
    }
}

fn add_mode(list: &mut List, name: &str, about: &str, mode: Mode) {
    let (id, line) = (format!("compress-{name}"), format!("compression, {about}"));
    list.each(&entry(&id, &line, Limit::Read, ByCrate::LosslessMaps.contender()), |id, isa| compression(id, mode, isa));
    let (id, line) = (format!("decompress-{name}"), format!("decompression, {about}"));
    list.each(&entry(&id, &line, Limit::Write, ByCrate::ZstdBack.contender()), |id, isa| decompression(id, mode, isa));
}

fn entry<'a>(id: &'a str, about: &'a str, limit: Limit, peer: Option<Contender>) -> Entry<'a> {
    Entry { id, about, family: Family::Compression, limit, peer }
}

fn map(values: &[f32], Shape { channels, height, width }: Shape) -> FeatureMap<'_> {
    FeatureMap { values: black_box(values), channels, height, width }
}

fn compression(id: String, mode: Mode, isa: Isa) -> Contender {
    Contender::owning(id, move |tensors| {
        let ((values, shape), mut packed) = (maps(tensors), Vec::new());
        let codec = Codec::new(mode, isa).map_err(impossible)?;
        Ok(Box::new(move |_| {
            codec.compress(map(&values, shape), black_box(&mut packed)).map_err(impossible)?;
            Ok(())
        }))
    })
}

fn decompression(id: String, mode: Mode, isa: Isa) -> Contender {
    Contender::owning(id, move |tensors| {
        let ((values, shape), mut packed) = (maps(tensors), Vec::new());
        Codec::new(mode, isa).and_then(|codec| codec.compress(map(&values, shape), &mut packed)).map_err(impossible)?;
        Ok(Box::new(move |Tensors { output, .. }| {
            decompress(black_box(&packed), isa, black_box(output)).map_err(impossible)
        }))
    })
}

/// Of a codec and of bytes that are made here, nothing can be wrong but a kernel.
fn impossible(error: CodecError) -> KernelError {
    match error {
        CodecError::Kernel(error) => error,
        _ => KernelError::Length { what: "the compressed tensor", found: 0, expected: 1 },
    }
}
