//! How a reduction is spread over blocks and threads: the choices of DAF (sections 3.2.1 and 3.2.2) and of CUB, as
//! real algorithms with real atomics.
//!
//! A block is [`BLOCK`] elements, run by one host thread as it would be by one multiprocessor; threads get
//! consecutive blocks. Within a block, where a strategy asks for a tree, the registers' lanes are its leaves.
//!
//! What several blocks swap into one cell arrives in no fixed order. The extrema do not care. A sum would differ from
//! run to run, so the strategies that swap refuse it; those that keep partials add them in an order that depends on
//! the length alone, not on the number of threads.

mod atomic;
mod partials;
mod team;

use strum::{Display, IntoStaticStr};

use super::Statistic;
use super::extrema::{Farthest, Largest, Order, Smallest};
use super::sums::{Plain, Square, one_piece};
use crate::error::KernelError;
use crate::isa::Isa;

/// Elements of a block.
pub const BLOCK: usize = 4096;

/// Partials of the two-pass scheme for each resident block: `CUB_SUBSCRIPTION_FACTOR`.
pub const SUBSCRIPTION_FACTOR: usize = 5;

/// Blocks that the two-pass scheme takes to be resident: a constant, so that a sum does not depend on the threads.
pub const RESIDENT: usize = 16;

/// How partial results become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Strategy {
    /// A tree within each block, whose root goes to memory; then the same over the roots, until one is left
    /// (parallel reduction, DAF section 3.2.1).
    Tree,
    /// Every element by compare-and-swap into one cell, which is written even where it does not change (DAF's
    /// Algorithm 1).
    AtomicUnconditional,
    /// Every element is compared with the cell, and swapped only where it would change it.
    AtomicTested,
    /// A tree within each block, whose root is swapped into one cell (DAF's figure 4).
    Hybrid,
    /// Every element by compare-and-swap into the cell of its block, which is then swapped into one cell (DAF
    /// section 3.2.2, for GPUs that synchronise slowly).
    ThreadThenBlock,
    /// A bounded grid of ranges, one partial each, and a second pass over the partials (CUB's `DeviceReduce`).
    TwoPass,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Self; 6] =
        [Self::Tree, Self::AtomicUnconditional, Self::AtomicTested, Self::Hybrid, Self::ThreadThenBlock, Self::TwoPass];

    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it gives this statistic: the strategies that swap give only what is the same in any order.
    pub const fn gives(self, statistic: Statistic) -> bool {
        matches!(self, Self::Tree | Self::TwoPass) || statistic.is_order_free()
    }
}

/// What a reduction did on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Passes over memory: the data, and then the partials.
    pub passes: u64,
    /// Partials written to memory for a later pass.
    pub partials: u64,
    /// Compare-and-swaps that were issued, on the cells of blocks and the shared cell together.
    pub attempts: u64,
    /// Those of them that failed, because another thread had changed the cell.
    pub retries: u64,
}

impl Progress {
    fn and(self, other: Self) -> Self {
        Self {
            passes: self.passes + other.passes,
            partials: self.partials + other.partials,
            attempts: self.attempts + other.attempts,
            retries: self.retries + other.retries,
        }
    }
}

/// A statistic and how it was come by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduction {
    /// The statistic; an extremum is an f32, which an f64 holds exactly.
    pub value: f64,
    /// What it took.
    pub progress: Progress,
}

/// Reduces a tensor by one strategy, on `threads` threads (never more than there are blocks).
///
/// Extrema have the same bits under every strategy, instruction set and number of threads. Sums have the same bits
/// for every number of threads, and agree within 1e-6 of the sum of magnitudes otherwise.
///
/// # Errors
/// No threads, or a sum by a strategy that swaps.
pub fn reduce_with(
    strategy: Strategy,
    statistic: Statistic,
    data: &[f32],
    threads: usize,
    isa: Isa,
) -> Result<Reduction, KernelError> {
    let launch = |reason: String| KernelError::Launch { kernel: strategy.name(), reason };
    if threads == 0 {
        return Err(launch("0 threads; expected 1 or more".to_owned()));
    }
    let by_adding = |sum: fn(&[f32], Isa) -> f64| match strategy {
        Strategy::Tree => Ok(partials::sum_by_tree(data, threads, |block| sum(block, isa))),
        Strategy::TwoPass => Ok(partials::sum_by_two_passes(data, threads, |range| sum(range, isa))),
        _ => Err(launch(format!("a {statistic} that is swapped has no fixed order; expected tree or two-pass"))),
    };
    match statistic {
        Statistic::Minimum => Ok(by_strategy::<Smallest>(strategy, data, threads, isa)),
        Statistic::Maximum => Ok(by_strategy::<Largest>(strategy, data, threads, isa)),
        Statistic::AbsoluteMaximum => Ok(by_strategy::<Farthest>(strategy, data, threads, isa)),
        Statistic::Sum => by_adding(|data, isa| one_piece::<Plain, false>(data, isa).sum),
        Statistic::SumOfSquares => by_adding(|data, isa| one_piece::<Square, false>(data, isa).sum),
    }
}

fn by_strategy<O: Order>(strategy: Strategy, data: &[f32], threads: usize, isa: Isa) -> Reduction {
    match strategy {
        Strategy::Tree => partials::extremum_by_tree::<O>(data, threads, isa),
        Strategy::AtomicUnconditional => atomic::by_element::<O, false>(data, threads),
        Strategy::AtomicTested => atomic::by_element::<O, true>(data, threads),
        Strategy::Hybrid => atomic::hybrid::<O>(data, threads, isa),
        Strategy::ThreadThenBlock => atomic::thread_then_block::<O>(data, threads),
        Strategy::TwoPass => partials::extremum_by_two_passes::<O>(data, threads, isa),
    }
}
