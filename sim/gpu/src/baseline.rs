//! The baselines of reductions: a CUB call per statistic, and an eager framework's operators.
//!
//! CUB reduces one statistic per call, including squares, since it reads its input through an iterator: in one
//! launch if a single block's tile covers all elements, otherwise in two (`cub::DeviceReduce`). PyTorch has one
//! operator per statistic, including a norm, each of them one kernel (`aten/src/ATen/native/cuda/Reduce.cuh`): the
//! last block to end, found by a counter that was cleared before, reduces the results of all blocks. Each operator
//! costs the stack's overhead.

use haversack_devices::{Bytes, KernelCounts, ProgramCounts};
use haversack_kernels::{KernelError, Statistic};

use crate::counts::{SECTOR, counts_of, row_sectors};
use crate::machine::Machine;
use crate::plan::{MOST_ELEMENTS, Plan, Strategy};

/// Threads of a block of CUB's reductions and of element-wise kernels.
const THREADS: u32 = 256;
/// Elements per thread of an element-wise kernel: one vector load.
const VECTOR: u32 = 4;
const NAME: &str = "an element-wise kernel";

/// Computes every statistic by a CUB call.
///
/// # Errors
/// No statistics; a GPU without room for a block of 256 threads, or of its largest block if that is smaller.
pub fn cub(statistics: &[Statistic], elements: u64, machine: &Machine) -> Result<ProgramCounts, KernelError> {
    let plan = Plan::new(Strategy::TwoPass, threads(machine));
    let mut counts = ProgramCounts::default();
    for statistic in statistics {
        counts.extend(counts_of(&plan, &[*statistic], elements, machine)?);
    }
    Ok(counts)
}

/// Computes every statistic by an operator of an eager framework.
///
/// # Errors
/// Those of [`cub`].
pub fn framework(statistics: &[Statistic], elements: u64, machine: &Machine) -> Result<ProgramCounts, KernelError> {
    let mut counts = ProgramCounts::default();
    for &statistic in statistics {
        let mut one = cub(&[statistic], elements, machine)?;
        if let [_, last] = one.kernels.as_mut_slice() {
            // The last block does the work of CUB's second launch, once a memset has cleared its counter.
            last.launches = 0;
            one.memsets += 1;
        }
        counts.extend(one);
    }
    Ok(counts)
}

fn threads(machine: &Machine) -> u32 {
    THREADS.min(1 << machine.limits.threads.max(1).ilog2())
}

/// The counts of an element-wise kernel with one input and one output.
///
/// # Errors
/// Those of [`cub`]; more elements than fit in any memory.
pub fn map_counts(elements: u64, machine: &Machine) -> Result<KernelCounts, KernelError> {
    if elements > MOST_ELEMENTS {
        let reason = format!("{elements} elements are more than any memory holds");
        return Err(KernelError::Launch { kernel: NAME, reason });
    }
    let threads = threads(machine);
    let blocks = elements.div_ceil(u64::from(threads * VECTOR)).max(1);
    let resident = machine.resident(machine.blocks_per_unit(NAME, threads, Bytes::ZERO)?, blocks);
    let (per_block, lanes) = (u64::from(threads), u64::from(machine.lanes));
    let (rows, tail) = (elements / per_block, elements % per_block);
    let row = |start, length| SECTOR * row_sectors(4, start, length, machine.lanes);
    let moved = Bytes(rows * row(0, per_block) + row(rows * per_block, tail));
    let first = elements.div_ceil(per_block).min(u64::from(VECTOR));
    Ok(KernelCounts {
        launches: 1,
        blocks,
        threads,
        resident_blocks: resident,
        waves: blocks.div_ceil(resident),
        read: moved,
        written: moved,
        working_set: Bytes(2 * (4 * elements).div_ceil(SECTOR) * SECTOR),
        round_trips: u64::from(elements > 0),
        operations: 3 * first,
        lane_operations: 3 * (rows * per_block.div_ceil(lanes) + tail.div_ceil(lanes)) * lanes,
        ..KernelCounts::default()
    })
}
