//! Quantisation and packing, and the way back: 1, 2, 4 and 8 bits, per tensor and per group of 256.

use std::hint::black_box;

use super::{Entry, List};
use crate::bench::buffer::Buffer;
use crate::bench::contender::{Contender, Tensors};
use crate::bench::crates::{ByCrate, width};
use crate::bench::{Family, Limit};
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
}

/// A format in the order that a CPU writes.
fn interleaved(bits: u8, grouping: Grouping) -> Result<Format, KernelError> {
    Ok(Format::new(Bits::new(bits)?, grouping, Layout::Interleaved))
}

/// How ids and descriptions name a grouping, and the families of its packing and of its unpacking.
fn words_for(grouping: Grouping) -> (&'static str, &'static str, [Family; 2]) {
    match grouping {
        Grouping::Tensor => ("", "one scale", [Family::Pack, Family::Unpack]),
        Grouping::Group256 => ("-group256", "a scale for 256 elements", [Family::GroupPack, Family::GroupUnpack]),
    }
}

fn add_packing(list: &mut List, bits: u8, grouping: Grouping) {
    let (suffix, scales, [family, _]) = words_for(grouping);
    let (id, about) = (format!("pack{bits}{suffix}"), format!("f32 to {} by {scales}", width(bits)));
    let entry = Entry::new(&id, &about, (family, Limit::Read), ByCrate::Pack(bits, grouping).contender());
    list.each(entry, |id, isa| packing(id, isa, Rounding::NearestEven, move || interleaved(bits, grouping)));
}

/// Not a kernel but a second baseline for the packing of groups: the crate as its user would call it, with every
/// group's range found by plain folds. The kernel's peer instead finds the ranges by vectors.
fn add_folded_pipeline(list: &mut List, bits: u8) {
    let Some(contender) = ByCrate::PackByFolds(bits).contender() else { return };
    let about = format!("f32 to {} by a scale for 256 elements: bitpacking, with ranges by folds", width(bits));
    let peer = ByCrate::Pack(bits, Grouping::Group256).contender();
    list.one(Entry::new(&contender.id, &about, (Family::GroupPack, Limit::Read), peer), |_, _| contender.clone());
}

fn add_unpacking(list: &mut List, bits: u8, grouping: Grouping) {
    let (suffix, scales, [_, family]) = words_for(grouping);
    let (id, about) = (format!("unpack{bits}{suffix}"), format!("{} to f32 by {scales}", width(bits)));
    let entry = Entry::new(&id, &about, (family, Limit::Write), ByCrate::Unpack(bits, grouping).contender());
    list.each(entry, |id, isa| unpacking(id, isa, move || interleaved(bits, grouping)));
}

/// Stochastic rounding, per group, as ActNN stores activations. No crate does it.
fn add_stochastic(list: &mut List, bits: u8) {
    let id = format!("pack{bits}-group256-stochastic");
    let about = format!("f32 to {bits} bits by a scale for 256 elements, rounded by chance");
    let entry = Entry::new(&id, &about, (Family::GroupPack, Limit::Read), ByCrate::Lossless.contender());
    let rounding = Rounding::Stochastic { seed: 1 };
    list.one(entry, |id, isa| packing(id, isa, rounding, move || interleaved(bits, Grouping::Group256)));
}

/// The orders that a GPU reads. No crate packs in them.
fn add_layout(list: &mut List, bits: u8, name: &str) {
    let unified = name == "unified";
    let format = move || {
        let layout = if unified { Layout::unified(COLUMNS, TILE, TILE)? } else { Layout::Sequential };
        Ok(Format::new(Bits::new(bits)?, Grouping::Tensor, layout))
    };
    let (id, about) = (format!("pack{bits}-{name}"), format!("f32 to {bits} bits by one scale, in the {name} layout"));
    let entry = Entry::new(&id, &about, (Family::Pack, Limit::Read), ByCrate::Lossless.contender());
    list.one(entry, |id, isa| packing(id, isa, Rounding::NearestEven, format));
    let (id, about) =
        (format!("unpack{bits}-{name}"), format!("{bits} bits to f32 by one scale, from the {name} layout"));
    let entry = Entry::new(&id, &about, (Family::Unpack, Limit::Write), None);
    list.one(entry, |id, isa| unpacking(id, isa, format));
}

/// Quantises and packs into buffers of its own.
fn packing(
    id: String,
    isa: Isa,
    rounding: Rounding,
    format: impl Fn() -> Result<Format, KernelError> + 'static,
) -> Contender {
    let own = move |tensors: &Tensors| {
        let (format, len) = (format()?, tensors.values.len());
        Ok((format, Buffer::<u32>::zeroed(format.words(len)), Buffer::<u32>::zeroed(format.params(len))))
    };
    Contender::with(id, own, move |(format, words, params), Tensors { values, .. }| {
        quantise::quantise_into(black_box(values), *format, rounding, isa, black_box(words), black_box(params))
    })
}

/// Unpacks what it packed beforehand.
fn unpacking(id: String, isa: Isa, format: impl Fn() -> Result<Format, KernelError> + 'static) -> Contender {
    let own = move |tensors: &Tensors| {
        let (format, values) = (format()?, &tensors.values);
        let mut words = Buffer::<u32>::zeroed(format.words(values.len()));
        let mut params = Buffer::<u32>::zeroed(format.params(values.len()));
        quantise::quantise_into(values, format, Rounding::NearestEven, isa, &mut words, &mut params)?;
        Ok((format, words, params))
    };
    Contender::with(id, own, move |(format, words, params), Tensors { output, .. }| {
        quantise::dequantise_into(black_box(words), black_box(params), *format, isa, black_box(output))
    })
}
