//! Reductions that keep partial results in memory: the tree of DAF's section 3.2.1 and the two passes of CUB.

use super::team::shares;
use super::{BLOCK, Progress, RESIDENT, Reduction, SUBSCRIPTION_FACTOR};
use crate::isa::Isa;
use crate::reduce::extrema::{Order, extremum};

/// An extremum by a tree.
pub(super) fn extremum_by_tree<O: Order>(data: &[f32], threads: usize, isa: Isa) -> Reduction {
    let of = |block: &[f32]| extremum::<O>(block, isa);
    let (root, progress) = by_tree(data, threads, of, of);
    Reduction { value: f64::from(root.unwrap_or(O::IDENTITY)), progress }
}

/// A sum by a tree.
pub(super) fn sum_by_tree(data: &[f32], threads: usize, sum: impl Fn(&[f32]) -> f64 + Sync) -> Reduction {
    let (root, progress) = by_tree(data, threads, sum, halved);
    Reduction { value: root.unwrap_or(0.0), progress }
}

/// The roots of one pass are the leaves of the next.
fn by_tree<T: Copy + Send + Sync>(
    data: &[f32],
    threads: usize,
    first: impl Fn(&[f32]) -> T + Sync,
    next: impl Fn(&[T]) -> T + Sync,
) -> (Option<T>, Progress) {
    let mut progress = Progress::default();
    let mut roots = pass(data, BLOCK, threads, first, &mut progress);
    while roots.len() > 1 {
        roots = pass(&roots, BLOCK, threads, &next, &mut progress);
    }
    (roots.first().copied(), progress)
}

/// An extremum in two passes.
pub(super) fn extremum_by_two_passes<O: Order>(data: &[f32], threads: usize, isa: Isa) -> Reduction {
    let of = |range: &[f32]| extremum::<O>(range, isa);
    by_two_passes(data, threads, of, |partials| f64::from(of(partials)))
}

/// A sum in two passes.
pub(super) fn sum_by_two_passes(data: &[f32], threads: usize, sum: impl Fn(&[f32]) -> f64 + Sync) -> Reduction {
    by_two_passes(data, threads, sum, halved)
}

/// A tensor of one range needs no second pass.
fn by_two_passes<T: Send>(
    data: &[f32],
    threads: usize,
    first: impl Fn(&[f32]) -> T + Sync,
    second: impl Fn(&[T]) -> f64,
) -> Reduction {
    let mut progress = Progress::default();
    let partials = pass(data, range(data.len()), threads, first, &mut progress);
    progress.passes += u64::from(partials.len() > 1);
    Reduction { value: second(&partials), progress }
}

/// Elements of each range of the grid: whole blocks, as even as they allow, in at most `SUBSCRIPTION_FACTOR` ranges
/// for each resident block.
fn range(len: usize) -> usize {
    let blocks = len.div_ceil(BLOCK);
    blocks.div_ceil(SUBSCRIPTION_FACTOR * RESIDENT).max(1) * BLOCK
}

/// One partial for every `block` elements.
fn pass<S: Sync, T: Send>(
    data: &[S],
    block: usize,
    threads: usize,
    of: impl Fn(&[S]) -> T + Sync,
    progress: &mut Progress,
) -> Vec<T> {
    let partials: Vec<T> = shares(data.len().div_ceil(block), threads, |blocks| {
        let end = data.len().min(blocks.end * block);
        let share = data.get(blocks.start * block..end).unwrap_or_default();
        share.chunks(block).map(&of).collect::<Vec<_>>()
    })
    .into_iter()
    .flatten()
    .collect();
    progress.passes += 1;
    // A single one is the answer, which nothing reads again.
    progress.partials += if partials.len() > 1 { partials.len() as u64 } else { 0 };
    partials
}

/// The sum of partials as a tree of halves, whose shape depends on their number alone.
fn halved(partials: &[f64]) -> f64 {
    match partials {
        [] => 0.0,
        [one] => *one,
        _ => {
            let (left, right) = partials.split_at(partials.len().div_ceil(2));
            halved(left) + halved(right)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::extrema::Largest;

    #[test]
    fn a_tree_passes_once_more_for_every_power_of_a_block() {
        let passes = |len: usize| extremum_by_tree::<Largest>(&vec![0.5; len], 2, Isa::Scalar).progress;
        // A block is one pass; 3 blocks leave 3 roots for a second; 4097 blocks leave 4097, then 2, then 1.
        assert_eq!(passes(BLOCK), Progress { passes: 1, ..Progress::default() });
        assert_eq!(passes(3 * BLOCK), Progress { passes: 2, partials: 3, ..Progress::default() });
        assert_eq!(passes(BLOCK * BLOCK + 1), Progress { passes: 3, partials: 4099, ..Progress::default() });
    }

    #[test]
    fn two_passes_keep_a_bounded_number_of_partials() {
        let partials =
            |len: usize| extremum_by_two_passes::<Largest>(&vec![0.5; len], 1, Isa::Scalar).progress.partials;
        // 80 blocks are 80 ranges of one; 81 are 41 ranges of two; 1000 are 77 of 13.
        assert_eq!([80, 81, 1000].map(|blocks| partials(blocks * BLOCK)), [80, 41, 77]);
    }
}
