//! The reductions by one thread, and the minimum by two.

use std::hint::black_box;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::{Entry, List};
use crate::contender::Contender;
use crate::{Family, Limit, peers};
use haversack_kernels::Isa;
use haversack_kernels::reduce;
use haversack_kernels::reduce::Statistic;
use haversack_kernels::reduce::strategy::{Strategy, reduce_with};

/// Threads of the strategies: the fewest that contend.
const THREADS: usize = 2;

pub(super) fn add(list: &mut List) {
    one(list, "min", "the smallest element", reduce::minimum, peers::minimum);
    one(list, "max", "the largest element", reduce::maximum, peers::maximum);
    one(list, "absmax", "the largest magnitude", reduce::absolute_maximum, peers::absolute_maximum);
    one(list, "sum", "the sum", reduce::sum, peers::sum);
    one(list, "sumsq", "the sum of squares", reduce::sum_of_squares, peers::sum_of_squares);
    one(list, "triple", "minimum, maximum and sum of squares in one pass", reduce::triple, peers::triple);
    for strategy in Strategy::ALL {
        add_strategy(list, strategy);
    }
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

/// The minimum by a strategy, its peer rayon's own reduction. The limit stays that of one thread.
fn add_strategy(list: &mut List, strategy: Strategy) {
    let about = match strategy {
        Strategy::Tree => "a tree in each block, then a tree over the blocks",
        Strategy::AtomicUnconditional => "every element swapped into one cell, changed or not",
        Strategy::AtomicTested => "every element compared with one cell, and swapped where it is smaller",
        Strategy::Hybrid => "a tree in each block, whose root is swapped into one cell",
        Strategy::ThreadThenBlock => "every element swapped into its block's cell, then the blocks into one",
        Strategy::TwoPass => "a bounded number of partials, then a second pass over them",
    };
    let peer = Contender::simple("rayon's par_iter().reduce", |tensors| {
        let values: &[f32] = black_box(&tensors.values);
        black_box(values.par_iter().copied().reduce(|| f32::INFINITY, f32::min));
    });
    let (id, about) = (format!("min-{strategy}"), format!("the smallest element by {THREADS} threads: {about}"));
    let entry = Entry::new(&id, &about, (Family::Strategy, Limit::Read), Some(peer.on_the_wall()));
    list.one(entry, |id, isa| {
        let contender = Contender::fallible(id, move |tensors| {
            black_box(reduce_with(strategy, Statistic::Minimum, black_box(&tensors.values), THREADS, isa)?);
            Ok(())
        });
        contender.on_the_wall()
    });
}
