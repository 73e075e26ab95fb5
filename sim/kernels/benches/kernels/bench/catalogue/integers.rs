//! The other steps of INT8 training, besides products: rescaling, and sums of the gradients of micro-batches.

use std::hint::black_box;

use super::{Entry, List};
use crate::bench::buffer::Buffer;
use crate::bench::contender::{Contender, Tensors};
use crate::bench::{Family, Limit, peers};
use haversack_kernels::Isa;
use haversack_kernels::int8::{self, Partial};

/// The shift that is measured; every other shift takes the same time.
const SHIFT: u32 = 24;
/// Micro-batches whose gradients are added.
const PARTIALS: usize = 4;

pub(super) fn add(list: &mut List) {
    let narrow = |tensors: &Tensors| Ok(Buffer::<i8>::zeroed(tensors.values.len()));
    let peer = Contender::with("a loop of shift and clamp", narrow, |narrow, Tensors { values, .. }| {
        peers::round_shift(words(black_box(values)), black_box(SHIFT), black_box(narrow));
        Ok(())
    });
    list.each(entry("int8-round", "i32 to the nearest i8 by a known shift", peer), |id, isa| {
        Contender::with(id, narrow, move |narrow, Tensors { values, .. }| {
            int8::round_shift(words(black_box(values)), black_box(SHIFT), black_box(narrow), isa)
        })
    });
    let about = "the weight gradients of four micro-batches of one scale, added";
    list.each(entry("int8-gradients", about, in_f32([9; PARTIALS])), |id, isa| gradients(id, [9; PARTIALS], isa));
    let (id, about) = ("int8-gradients-mixed", "the same, of which one has a scale below the others'");
    let scales = [9, 9, 8, 9];
    list.one(entry(id, about, in_f32(scales)), |id, isa| gradients(id, scales, isa));
}

fn entry(id: &str, about: &str, peer: Contender) -> Entry {
    Entry::new(id, about, (Family::Rescaling, Limit::Read), Some(peer))
}

/// Equation 4 over the four quarters of the tensor.
fn gradients(id: String, scales: [u32; PARTIALS], isa: Isa) -> Contender {
    Contender::owning(id, move |tensors| {
        let mut sum = Buffer::zeroed(tensors.values.len());
        Ok(Box::new(move |Tensors { values, .. }| {
            let quarters = bytes(black_box(values)).chunks(sum.len().max(1)).zip(scales);
            let partials: Vec<Partial<'_>> = quarters.map(|(values, scale)| Partial { values, scale }).collect();
            black_box(int8::accumulate(&partials, black_box(&mut sum), isa)?);
            Ok(())
        }))
    })
}

/// The same with factors in f32.
fn in_f32(scales: [u32; PARTIALS]) -> Contender {
    let widest = scales.into_iter().max().unwrap_or_default();
    let id = format!("the same in f32, scales {scales:?}");
    Contender::owning(id, move |tensors| {
        let mut narrow = Buffer::zeroed(tensors.values.len());
        let mut sums = [0.0; BLOCK];
        Ok(Box::new(move |Tensors { values, .. }| {
            let quarters = bytes(black_box(values)).chunks(narrow.len().max(1)).zip(scales);
            let partials: Vec<(&[i8], f32)> =
                quarters.map(|(values, scale)| (values, 1.0 / (1_u32 << (widest - scale)) as f32)).collect();
            peers::gradients(black_box(&partials), &mut sums, black_box(&mut narrow));
            Ok(())
        }))
    })
}

/// Elements that the peer adds before the next ones: their sums fit in the first-level cache.
const BLOCK: usize = 4096;

/// The bits of a tensor as integers, small and large.
fn words(values: &[f32]) -> &[i32] {
    // SAFETY: both have 4 bytes, no padding and one alignment, and every bit pattern is an i32.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// The bytes of a tensor as integers.
fn bytes(values: &[f32]) -> &[i8] {
    // SAFETY: floats have no padding and bytes no alignment; the length is that of the slice in bytes.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}
