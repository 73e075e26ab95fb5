//! Compression of feature maps. The tensor's noise is nothing that a lossy compressor meets: everybody here has smooth
//! maps instead, about as large as the tensor.

use std::hint::black_box;

use super::{Entry, List};
use crate::buffer::Buffer;
use crate::contender::{Contender, Tensors};
use crate::{Family, Limit, peers};
use haversack_kernels::Isa;
use haversack_kernels::KernelError;
use haversack_kernels::compress::{Bound, Codec, CodecError, FeatureMap, Kind, Mode, Shape, decompress};

/// The bound that is measured, as a share of the range.
const SHARE: f32 = 1e-3;
/// zstd's default level, and its fastest.
const DEFAULT_LEVEL: i32 = 3;
const FASTEST_LEVEL: i32 = 1;

pub(super) fn add(list: &mut List) {
    let bounded = Mode::ErrorBounded { bound: Bound::OfTensor(SHARE) };
    add_mode(list, "bounded", "every channel predicted", bounded);
    let mixed = Mode::mixed(Bound::OfChannel(SHARE));
    add_mode(list, "mixed", "FedHybrid's mix of quantised and predicted channels", mixed);
    let entry = entry("compress-zstd3", "the same maps by zstd, level 3, without loss", Limit::Read, None);
    list.one(&entry, zstd("compress-zstd3", DEFAULT_LEVEL));
}

fn add_mode(list: &mut List, name: &str, about: &str, mode: Mode) {
    let (id, line) = (format!("compress-{name}"), format!("compression, {about}"));
    list.each(&entry(&id, &line, Limit::Read, Some(lz4())), |id, isa| compression(id, mode, isa));
    let (id, line) = (format!("decompress-{name}"), format!("decompression, {about}"));
    list.each(&entry(&id, &line, Limit::Write, Some(zstd_back())), |id, isa| decompression(id, mode, isa));
}

fn entry<'a>(id: &'a str, about: &'a str, limit: Limit, peer: Option<Contender>) -> Entry<'a> {
    Entry { id, about, family: Family::Compression, limit, peer }
}

/// Smooth maps that fill a tensor as far as whole channels do: of 112 × 112 where those fit, otherwise smaller ones.
fn shape(elements: usize) -> Shape {
    let edge = [112, 128, 80, 64, 16, 1].into_iter().find(|edge| elements.is_multiple_of(edge * edge)).unwrap_or(1);
    Shape { channels: elements / (edge * edge), height: edge, width: edge }
}

fn maps(tensors: &Tensors) -> (Buffer<f32>, Shape) {
    let shape = shape(tensors.values.len());
    let mut values = Buffer::zeroed(tensors.values.len());
    values.copy_from_slice(&Kind::Smooth.generate(shape));
    (values, shape)
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

fn lz4() -> Contender {
    Contender::owning("lz4_flex on the same maps", |tensors| {
        let (values, _) = maps(tensors);
        let mut packed = Buffer::zeroed(peers::lz4_bound(values.len()));
        Ok(Box::new(move |_| {
            black_box(peers::lz4(black_box(&values), black_box(&mut packed))?);
            Ok(())
        }))
    })
}

fn zstd(id: &str, level: i32) -> Contender {
    Contender::owning(id, move |tensors| {
        let (values, _) = maps(tensors);
        let mut packed = Buffer::zeroed(zstd::zstd_safe::compress_bound(size_of_val(&*values)));
        Ok(Box::new(move |_| {
            peers::zstd(black_box(&values), level, black_box(&mut packed))?;
            Ok(())
        }))
    })
}

fn zstd_back() -> Contender {
    Contender::owning("zstd, level 1, back to the same maps", |tensors| {
        let (values, _) = maps(tensors);
        let mut packed = Buffer::zeroed(zstd::zstd_safe::compress_bound(size_of_val(&*values)));
        let length = peers::zstd(&values, FASTEST_LEVEL, &mut packed)?;
        let mut bytes = Buffer::zeroed(size_of_val(&*values));
        Ok(Box::new(move |_| peers::zstd_back(black_box(&packed[..length]), black_box(&mut bytes))))
    })
}

/// Of a codec and of bytes that are made here, nothing can be wrong but a kernel.
fn impossible(error: CodecError) -> KernelError {
    match error {
        CodecError::Kernel(error) => error,
        _ => KernelError::Length { what: "the compressed tensor", found: 0, expected: 1 },
    }
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
