//! Quantisation and packing, and the way back: 1, 2, 4 and 8 bits, per tensor and per group of 256.

mod sample_major;

use std::hint::black_box;

use super::{Entry, List, lossless};
use crate::buffer::Buffer;
use crate::contender::{Contender, Tensors};
use crate::peers::bitpacked::{BLOCK, Pipeline, Scale};
use crate::{Family, Limit};
use haversack_kernels::Isa;
use haversack_kernels::KernelError;
use haversack_kernels::quantise::{self, Bits, Format, Grouping, Layout, Rounding};

/// The widths that policies use: those that divide a word.
const WIDTHS: [u8; 4] = [1, 2, 4, 8];
/// Columns of the matrix that the unified layout sees, and the side of its tiles.
const COLUMNS: usize = 256;
const TILE: usize = 32;

pub(super) fn add(list: &mut List) {
    for bits in WIDTHS {
        add_packing(list, bits, Grouping::Tensor);
    }
    for bits in WIDTHS {
        add_packing(list, bits, Grouping::Group256);
        add_folded_pipeline(list, bits);
    }
    for bits in WIDTHS {
        add_unpacking(list, bits, Grouping::Tensor);
    }
    for bits in WIDTHS {
        add_unpacking(list, bits, Grouping::Group256);
    }
    add_stochastic(list, 2);
    for name in ["sequential", "unified"] {
        add_layout(list, 4, name);
    }
    sample_major::add(list, 2);
}

/// A format in the order that a CPU writes.
fn interleaved(bits: u8, grouping: Grouping) -> Result<Format, KernelError> {
    Ok(Format::new(Bits::new(bits)?, grouping, Layout::Interleaved))
}

/// A width in words.
fn width(bits: u8) -> String {
    if bits == 1 { "1 bit".to_owned() } else { format!("{bits} bits") }
}

/// How ids and descriptions speak of a grouping.
fn words_for(grouping: Grouping) -> (&'static str, &'static str) {
    match grouping {
        Grouping::Tensor => ("", "one scale"),
        Grouping::Group256 => ("-group256", "a scale for 256 elements"),
    }
}

fn add_packing(list: &mut List, bits: u8, grouping: Grouping) {
    let (suffix, scales) = words_for(grouping);
    let family = if grouping == Grouping::Tensor { Family::Pack } else { Family::GroupPack };
    let (id, about) = (format!("pack{bits}{suffix}"), format!("f32 to {} by {scales}", width(bits)));
    let entry = Entry { id: &id, about: &about, family, limit: Limit::Read, peer: Some(pipeline(bits, grouping)) };
    list.each(&entry, |id, isa| packing(id, isa, Rounding::NearestEven, move || interleaved(bits, grouping)));
    if grouping == Grouping::Tensor {
        add_known_scale(list, bits);
    }
}

/// The bitpacking crate with everything about it as fast as vectors make it.
fn pipeline(bits: u8, grouping: Grouping) -> Contender {
    let (_, scales) = words_for(grouping);
    Contender::owning(format!("bitpacking, {}, {scales}", width(bits)), move |tensors| {
        let pipeline = Pipeline::new(bits);
        let mut packed = Buffer::zeroed(pipeline.bytes(tensors.values.len()));
        let mut scales = vec![Scale::default(); tensors.values.len() / BLOCK];
        Ok(Box::new(move |Tensors { values, .. }| {
            let values = black_box(&**values);
            match grouping {
                Grouping::Tensor => pipeline.pack(values, pipeline.scale(values), black_box(&mut packed)),
                Grouping::Group256 => pipeline.pack_groups(values, black_box(&mut packed), black_box(&mut scales)),
            }
            Ok(())
        }))
    })
}

/// Not a kernel but a second thing to hold the packing of groups against: the crate as its user would put it to work,
/// every group's range by plain folds. Its own peer is the first, whose ranges are as fast as vectors make them.
fn add_folded_pipeline(list: &mut List, bits: u8) {
    let id = format!("bitpacking{bits}-group256-folds");
    let about = format!("f32 to {} by a scale for 256 elements: bitpacking, with ranges by folds", width(bits));
    let contender = Contender::owning(&id, move |tensors| {
        let pipeline = Pipeline::new(bits);
        let mut packed = Buffer::zeroed(pipeline.bytes(tensors.values.len()));
        let mut scales = vec![Scale::default(); tensors.values.len() / BLOCK];
        Ok(Box::new(move |Tensors { values, .. }| {
            pipeline.pack_groups_by_folds(black_box(values), black_box(&mut packed), black_box(&mut scales));
            Ok(())
        }))
    });
    let peer = Some(pipeline(bits, Grouping::Group256));
    list.one(&Entry { id: &id, about: &about, family: Family::GroupPack, limit: Limit::Read, peer }, contender);
}

/// Packing by a scale that was known before: what is left where a reduction was fused into the producer.
fn add_known_scale(list: &mut List, bits: u8) {
    let peer = Contender::owning(format!("bitpacking, {}, a known scale", width(bits)), move |tensors| {
        let pipeline = Pipeline::new(bits);
        let mut packed = Buffer::zeroed(pipeline.bytes(tensors.values.len()));
        let scale = pipeline.scale(&tensors.values);
        Ok(Box::new(move |Tensors { values, .. }| {
            pipeline.pack(black_box(values), scale, black_box(&mut packed));
            Ok(())
        }))
    });
    let isa = list.chosen;
    let (id, about) = (format!("pack{bits}-known"), format!("f32 to {} by a scale that was known before", width(bits)));
    let contender = Contender::owning(&id, move |tensors| {
        let format = interleaved(bits, Grouping::Tensor)?;
        let range = quantise::Scale::of(
            haversack_kernels::reduce::minimum(&tensors.values, isa),
            haversack_kernels::reduce::maximum(&tensors.values, isa),
            format.bits,
            Grouping::Tensor,
        )?;
        let mut words = Buffer::zeroed(format.words(tensors.values.len()));
        Ok(Box::new(move |Tensors { values, .. }| {
            let rounding = Rounding::NearestEven;
            quantise::pack_into(
                black_box(values),
                range,
                format.bits,
                format.layout,
                rounding,
                isa,
                black_box(&mut words),
            )
        }))
    });
    list.one(&Entry { id: &id, about: &about, family: Family::Pack, limit: Limit::Read, peer: Some(peer) }, contender);
}

fn add_unpacking(list: &mut List, bits: u8, grouping: Grouping) {
    let (suffix, scales) = words_for(grouping);
    let family = if grouping == Grouping::Tensor { Family::Unpack } else { Family::GroupUnpack };
    let peer = Contender::owning(format!("bitpacking, back from {}, {scales}", width(bits)), move |tensors| {
        let (pipeline, values) = (Pipeline::new(bits), &tensors.values);
        let mut packed = Buffer::zeroed(pipeline.bytes(values.len()));
        let mut scales = vec![Scale::default(); values.len() / BLOCK];
        let scale = pipeline.scale(values);
        match grouping {
            Grouping::Tensor => pipeline.pack(values, scale, &mut packed),
            Grouping::Group256 => pipeline.pack_groups(values, &mut packed, &mut scales),
        }
        Ok(Box::new(move |Tensors { output, .. }| {
            match grouping {
                Grouping::Tensor => pipeline.unpack(black_box(&packed), scale, black_box(output)),
                Grouping::Group256 => pipeline.unpack_groups(black_box(&packed), black_box(&scales), black_box(output)),
            }
            Ok(())
        }))
    });
    let (id, about) = (format!("unpack{bits}{suffix}"), format!("{} to f32 by {scales}", width(bits)));
    let entry = Entry { id: &id, about: &about, family, limit: Limit::Write, peer: Some(peer) };
    list.each(&entry, |id, isa| unpacking(id, isa, move || interleaved(bits, grouping)));
}

/// Rounding by chance, per group, as ActNN stores activations. No crate does it.
fn add_stochastic(list: &mut List, bits: u8) {
    let id = format!("pack{bits}-group256-stochastic");
    let about = format!("f32 to {bits} bits by a scale for 256 elements, rounded by chance");
    let entry = Entry { id: &id, about: &about, family: Family::GroupPack, limit: Limit::Read, peer: Some(lossless()) };
    let rounding = Rounding::Stochastic { seed: 1 };
    list.one(&entry, packing(id.clone(), list.chosen, rounding, move || interleaved(bits, Grouping::Group256)));
}

/// The orders that a GPU reads. No crate packs in them.
fn add_layout(list: &mut List, bits: u8, name: &str) {
    let unified = name == "unified";
    let format = move || {
        let layout = if unified { Layout::unified(COLUMNS, TILE, TILE)? } else { Layout::Sequential };
        Ok(Format::new(Bits::new(bits)?, Grouping::Tensor, layout))
    };
    let (id, about) = (format!("pack{bits}-{name}"), format!("f32 to {bits} bits by one scale, in the {name} layout"));
    let entry = Entry { id: &id, about: &about, family: Family::Pack, limit: Limit::Read, peer: Some(lossless()) };
    list.one(&entry, packing(id.clone(), list.chosen, Rounding::NearestEven, format));
    let (id, about) =
        (format!("unpack{bits}-{name}"), format!("{bits} bits to f32 by one scale, from the {name} layout"));
    let entry = Entry { id: &id, about: &about, family: Family::Unpack, limit: Limit::Write, peer: None };
    list.one(&entry, unpacking(id.clone(), list.chosen, format));
}

/// Quantises and packs into buffers of its own.
fn packing(
    id: String,
    isa: Isa,
    rounding: Rounding,
    format: impl Fn() -> Result<Format, KernelError> + 'static,
) -> Contender {
    Contender::owning(id, move |tensors| {
        let format = format()?;
        let len = tensors.values.len();
        let (mut words, mut params) = (Buffer::zeroed(format.words(len)), Buffer::zeroed(format.params(len)));
        Ok(Box::new(move |Tensors { values, .. }| {
            quantise::quantise_into(
                black_box(values),
                format,
                rounding,
                isa,
                black_box(&mut words),
                black_box(&mut params),
            )
        }))
    })
}

/// Unpacks what it packed beforehand.
fn unpacking(id: String, isa: Isa, format: impl Fn() -> Result<Format, KernelError> + 'static) -> Contender {
    Contender::owning(id, move |tensors| {
        let (format, values) = (format()?, &tensors.values);
        let mut words = Buffer::zeroed(format.words(values.len()));
        let mut params = Buffer::zeroed(format.params(values.len()));
        quantise::quantise_into(values, format, Rounding::NearestEven, isa, &mut words, &mut params)?;
        Ok(Box::new(move |Tensors { output, .. }| {
            quantise::dequantise_into(black_box(&words), black_box(&params), format, isa, black_box(output))
        }))
    })
}
