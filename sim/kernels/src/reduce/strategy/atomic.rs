//! Extrema by compare-and-swap on reinterpreted bits (DAF's Algorithm 1), per element and per block.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::team::shares;
use super::{BLOCK, Progress, Reduction};
use crate::isa::Isa;
use crate::reduce::extrema::{Order, canonical, extremum};

/// An extremum that threads share, alone in its cache lines.
#[repr(align(128))]
struct Cell<O> {
    bits: AtomicU32,
    order: PhantomData<fn() -> O>,
}

impl<O: Order> Cell<O> {
    fn new() -> Self {
        Self { bits: AtomicU32::new(O::IDENTITY.to_bits()), order: PhantomData }
    }

    fn value(&self) -> f32 {
        f32::from_bits(self.bits.load(Relaxed))
    }

    /// Algorithm 1: the swap is issued even where it changes nothing, unless `TESTED`. Nothing else is published through
    /// the cell, so relaxed order is enough.
    fn swap<const TESTED: bool>(&self, value: f32, progress: &mut Progress) {
        let mut old = self.bits.load(Relaxed);
        loop {
            let new = O::keep(f32::from_bits(old), value).to_bits();
            if TESTED && new == old {
                return;
            }
            progress.attempts += 1;
            match self.bits.compare_exchange(old, new, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => old = now,
            }
            progress.retries += 1;
        }
    }
}

/// Every element by Algorithm 1 into one cell, if `TESTED` only where it would change it.
pub(super) fn by_element<O: Order, const TESTED: bool>(data: &[f32], threads: usize) -> Reduction {
    by_block::<O>(data, threads, |block, cell, progress| {
        for &element in block {
            cell.swap::<TESTED>(O::see(element), progress);
        }
    })
}

/// The root of each block's tree by Algorithm 1 into one cell.
pub(super) fn hybrid<O: Order>(data: &[f32], threads: usize, isa: Isa) -> Reduction {
    by_block::<O>(data, threads, |block, cell, progress| cell.swap::<false>(extremum::<O>(block, isa), progress))
}

/// Every element by Algorithm 1 into its block's cell, and that into one cell.
pub(super) fn thread_then_block<O: Order>(data: &[f32], threads: usize) -> Reduction {
    by_block::<O>(data, threads, |block, cell, progress| {
        // Stays in the cache of the core that runs the block, as shared memory stays in a multiprocessor.
        let own = Cell::<O>::new();
        for &element in block {
            own.swap::<false>(O::see(element), progress);
        }
        cell.swap::<false>(own.value(), progress);
    })
}

fn by_block<O: Order>(
    data: &[f32],
    threads: usize,
    into: impl Fn(&[f32], &Cell<O>, &mut Progress) + Sync,
) -> Reduction {
    let cell = Cell::<O>::new();
    let progress = shares(data.len().div_ceil(BLOCK), threads, |blocks| {
        let mut progress = Progress::default();
        let end = data.len().min(blocks.end * BLOCK);
        for block in data.get(blocks.start * BLOCK..end).unwrap_or_default().chunks(BLOCK) {
            into(block, &cell, &mut progress);
        }
        progress
    });
    let progress = progress.into_iter().fold(Progress { passes: 1, ..Progress::default() }, Progress::and);
    Reduction { value: f64::from(canonical(cell.value())), progress }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::extrema::Smallest;

    #[test]
    fn the_unconditional_swap_is_issued_for_every_element_and_the_tested_one_for_records() {
        // 5, 7, 3, 3, NaN, 4: all six are swapped; only 5 and 3 are below what came before.
        let data = [5.0, 7.0, 3.0, 3.0, f32::NAN, 4.0];
        let all = by_element::<Smallest, false>(&data, 1);
        let records = by_element::<Smallest, true>(&data, 1);
        assert_eq!((all.value, all.progress.attempts, all.progress.retries), (3.0, 6, 0));
        assert_eq!((records.value, records.progress.attempts, records.progress.retries), (3.0, 2, 0));
    }

    #[test]
    fn a_block_swaps_once_into_the_shared_cell() {
        // 2.5 blocks are 3: hybrid swaps 3 times, beside what it tries again because the other thread was first;
        // thread-then-block 3 times more than there are elements.
        let data = vec![1.5; BLOCK * 5 / 2];
        let progress = hybrid::<Smallest>(&data, 2, Isa::Scalar).progress;
        assert_eq!(progress.attempts - progress.retries, 3);
        let both = thread_then_block::<Smallest>(&data, 1).progress.attempts;
        assert_eq!(both, data.len() as u64 + 3);
    }
}
