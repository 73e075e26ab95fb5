//! Masks and the copy.

use std::hint::black_box;

use haversack_kernels::quantise::mask;

use super::{Entry, List};
use crate::bench::buffer::Buffer;
use crate::bench::contender::{Contender, Tensors};
use crate::bench::{Family, Limit, peers, yardstick};

/// Bytes from which a copy bypasses the caches: it would evict more data than is read again.
const PAST_CACHES_FROM: usize = 16 << 20;

pub(super) fn add(list: &mut List) {
    let entry = |id, about, limit, peer| Entry::new(id, about, (Family::Copy, limit), Some(peer));
    // One bit an element, as the backward pass of a rectifier needs.
    let marked = |tensors: &Tensors| {
        let mut words = Buffer::<u32>::zeroed(mask::mask_words(tensors.values.len()));
        peers::mask(&tensors.values, &mut words);
        Ok(words)
    };
    let gating = Contender::with("a loop over words and bits, gating", marked, |words, Tensors { output, .. }| {
        peers::gate(black_box(words), black_box(output));
        Ok(())
    });
    list.each(entry("gate", "zero, in place, where a mask has no bit", Limit::Update, gating), |id, isa| {
        Contender::with(id, marked, move |words, Tensors { output, .. }| {
            mask::gate(black_box(words), isa, black_box(output))
        })
    });
    let standard = Contender::simple("copy_from_slice", |Tensors { values, output, .. }| {
        black_box(output).copy_from_slice(black_box(values));
    });
    let about = "a copy, by stores that bypass the caches from 16 MiB on";
    list.one(entry("copy", about, Limit::Copy, standard), |id, isa| {
        Contender::simple(id, move |Tensors { values, output, .. }| {
            let past_caches = size_of_val(&**values) >= PAST_CACHES_FROM;
            yardstick::copy(black_box(values), black_box(output), past_caches, isa);
        })
    });
}
