//! The reductions.

use std::hint::black_box;

use super::{Entry, List};
use crate::bench::contender::Contender;
use crate::bench::{Family, Limit, peers};
use haversack_kernels::Isa;
use haversack_kernels::reduce;

pub(super) fn add(list: &mut List) {
    one(list, "min", "the smallest element", reduce::minimum, peers::minimum);
    one(list, "max", "the largest element", reduce::maximum, peers::maximum);
    one(list, "sumsq", "the sum of squares", reduce::sum_of_squares, peers::sum_of_squares);
}

/// A reduction `of` a tensor, its peer a plain iterator.
fn one<T, P>(list: &mut List, id: &str, about: &str, of: fn(&[f32], Isa) -> T, peer: fn(&[f32]) -> P)
where
    T: 'static,
    P: 'static,
{
    let peer = Contender::simple(format!("an iterator's {id}"), move |tensors| {
        black_box(peer(black_box(&tensors.values)));
    });
    list.each(Entry::new(id, about, (Family::Reduction, Limit::Read), Some(peer)), |id, isa| {
        Contender::simple(id, move |tensors| {
            black_box(of(black_box(&tensors.values), isa));
        })
    });
}
