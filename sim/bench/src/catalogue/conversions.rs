//! Conversions between floats and integers, masks, and the copy.

use std::hint::black_box;

use super::{Entry, List};
use crate::buffer::Buffer;
use crate::contender::{Contender, Tensors};
use crate::{Family, Limit, limit, peers};
use haversack_kernels::convert;
use haversack_kernels::quantise::mask;

pub(super) fn add(list: &mut List) {
    let peer = |id: &str, pass: fn(&mut Tensors)| Some(Contender::simple(id, pass));
    let entry = |id, about, peer| Entry { id, about, family: Family::Conversion, limit: Limit::Copy, peer };
    let saturating = peer("a loop of `as u32`, which saturates", |Tensors { values, integers, .. }| {
        peers::to_integers(black_box(values), black_box(integers));
    });
    list.each(&entry("f2i", "floats to integers by adding 2^23", saturating), |id, isa| {
        Contender::owning(id, move |_| {
            Ok(Box::new(move |Tensors { values, integers, .. }| {
                convert::to_integers(black_box(values), black_box(integers), isa)
            }))
        })
    });
    let signed = peer("a loop of `as i32 as f32`", |Tensors { integers, output, .. }| {
        peers::to_floats(black_box(integers), black_box(output));
    });
    list.each(&entry("i2f", "integers to floats by subtracting 2^23", signed), |id, isa| {
        Contender::owning(id, move |_| {
            Ok(Box::new(move |Tensors { integers, output, .. }| {
                convert::to_floats(black_box(integers), black_box(output), isa)
            }))
        })
    });
    add_masks(list);
    let standard = peer("copy_from_slice", |Tensors { values, output, .. }| {
        limit::copy(black_box(values), black_box(output));
    });
    let copy = Contender::simple("copy", |Tensors { values, output, .. }| {
        limit::copy_for_size(black_box(values), black_box(output));
    });
    list.one(&entry("copy", "a copy, by stores that bypass the caches from 16 MiB on", standard), copy);
}

/// One bit an element, as the backward pass of a rectifier needs.
fn add_masks(list: &mut List) {
    let loops = Contender::owning("a loop over words and bits, packing", |tensors| {
        let mut words = Buffer::zeroed(mask::mask_words(tensors.values.len()));
        Ok(Box::new(move |Tensors { values, .. }| {
            peers::mask(black_box(values), black_box(&mut words));
            Ok(())
        }))
    });
    let about = "one bit an element: whether it is above zero";
    let entry = Entry { id: "mask", about, family: Family::Conversion, limit: Limit::Read, peer: Some(loops) };
    list.each(&entry, |id, isa| {
        Contender::owning(id, move |tensors| {
            let mut words = Buffer::zeroed(mask::mask_words(tensors.values.len()));
            Ok(Box::new(move |Tensors { values, .. }| {
                mask::pack_positive(black_box(values), isa, black_box(&mut words))
            }))
        })
    });
    let loops = Contender::owning("a loop over words and bits, gating", |tensors| {
        let mut words = Buffer::zeroed(mask::mask_words(tensors.values.len()));
        peers::mask(&tensors.values, &mut words);
        Ok(Box::new(move |Tensors { output, .. }| {
            peers::gate(black_box(&words), black_box(output));
            Ok(())
        }))
    });
    let about = "zero, in place, where a mask has no bit";
    let entry = Entry { id: "gate", about, family: Family::Conversion, limit: Limit::Copy, peer: Some(loops) };
    list.each(&entry, |id, isa| {
        Contender::owning(id, move |tensors| {
            let mut words = Buffer::zeroed(mask::mask_words(tensors.values.len()));
            mask::pack_positive(&tensors.values, isa, &mut words)?;
            Ok(Box::new(move |Tensors { output, .. }| mask::gate(black_box(&words), isa, black_box(output))))
        })
    });
}
