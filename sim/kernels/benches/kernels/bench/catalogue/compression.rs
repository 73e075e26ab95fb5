//! Compression of feature maps. Noise is not the data that a lossy compressor is made for, so all contenders here get
//! smooth maps, about as large as the tensor.

use std::hint::black_box;

use super::{Entry, List};
use crate::bench::contender::{Contender, Tensors};
use crate::bench::crates::ByCrate;
use crate::bench::maps::maps;
use crate::bench::{Family, Limit};
use haversack_kernels::Isa;
use haversack_kernels::KernelError;
use haversack_kernels::compress::{Bound, Codec, CodecError, FeatureMap, Mode, Shape, decompress};

/// The error bound that is measured, as a share of the range.
const SHARE: f32 = 1e-3;

/// Kernels that read maps, and those that write them.
const READ: (Family, Limit) = (Family::Compression, Limit::Read);
const WRITE: (Family, Limit) = (Family::Compression, Limit::Write);

pub(super) fn add(list: &mut List) {
    let bounded = Mode::ErrorBounded { bound: Bound::OfTensor(SHARE) };
    add_mode(list, "bounded", "every channel predicted", bounded);
    let mixed = Mode::mixed(Bound::OfChannel(SHARE));
    add_mode(list, "mixed", "FedHybrid's mix of quantised and predicted channels", mixed);
    // Not a kernel but a second baseline for compression.
    if let Some(zstd) = ByCrate::ZstdMaps.contender() {
        let entry = Entry::new("compress-zstd3", "the same maps by zstd, level 3, without loss", READ, None);
        list.one(entry, |_, _| zstd);
    }
}

fn add_mode(list: &mut List, name: &str, about: &str, mode: Mode) {
    let (id, line) = (format!("compress-{name}"), format!("compression, {about}"));
    let entry = Entry::new(&id, &line, READ, ByCrate::LosslessMaps.contender());
    list.each(entry, |id, isa| compression(id, mode, isa));
    let (id, line) = (format!("decompress-{name}"), format!("decompression, {about}"));
    let entry = Entry::new(&id, &line, WRITE, ByCrate::ZstdBack.contender());
    list.each(entry, |id, isa| decompression(id, mode, isa));
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

/// A leaf moves one level down, and a leaf from the limit becomes its sibling.
fn impossible(error: CodecError) -> KernelError {
    match error {
        CodecError::Kernel(error) => error,
        _ => KernelError::Length { what: "the compressed tensor", found: 0, expected: 1 },
    }
}
