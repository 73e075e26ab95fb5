//! What reductions are compared with: CUB called for each statistic, and an eager framework's operators.
//!
//! CUB reduces one statistic a call, squares included, since it reads its input through an iterator: in one launch where
//! a block's tile holds all, in two otherwise (`cub::DeviceReduce`). PyTorch has an operator a statistic, a norm among
//! them, each of them one kernel (`aten/src/ATen/native/cuda/Reduce.cuh`): the last of its blocks to end, by a counter
//! that is cleared before, reduces what all of them found. Each operator costs the stack's overhead.

use haversack_devices::units::Bytes;
use haversack_devices::{KernelCounts, ProgramCounts};

use crate::block::Block;
use crate::counts::counts_of;
use crate::machine::{Kernel, Launch, Machine, Next};
use crate::memory::{Buffer, Memory, SECTOR, row_sectors};
use crate::plan::{MOST_ELEMENTS, Plan, Strategy};
use haversack_kernels::KernelError;
use haversack_kernels::reduce::Statistic;

/// Threads of a block of CUB's reductions and of element-wise kernels.
const THREADS: u32 = 256;
/// Elements of a thread of an element-wise kernel: one vector load.
const VECTOR: u32 = 4;
const NAME: &str = "an element-wise kernel";

/// Every statistic by a call of CUB's.
///
/// # Errors
/// No statistics; a GPU that cannot hold a block of 256 threads, or of the most that it can.
pub fn cub(statistics: &[Statistic], elements: u64, machine: &Machine) -> Result<ProgramCounts, KernelError> {
    let plan = Plan::new(Strategy::TwoPass, threads(machine));
    let mut counts = ProgramCounts::default();
    for statistic in statistics {
        counts.extend(counts_of(&plan, &[*statistic], elements, machine)?);
    }
    Ok(counts)
}

/// Every statistic by the operators of an eager framework.
///
/// # Errors
/// As [`cub`].
pub fn framework(statistics: &[Statistic], elements: u64, machine: &Machine) -> Result<ProgramCounts, KernelError> {
    let mut counts = ProgramCounts::default();
    for &statistic in statistics {
        let mut one = cub(&[statistic], elements, machine)?;
        if let [_, last] = one.kernels.as_mut_slice() {
            // What CUB launches again the last block does, once a memset has cleared its counter.
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

/// The squares of `data` as an element-wise kernel computes them, and what it did.
///
/// # Errors
/// As [`cub`].
pub fn squares(data: &[f32], machine: &Machine) -> Result<(Vec<f32>, KernelCounts), KernelError> {
    let mut memory = Memory::new();
    let (from, to) = (memory.share(data), memory.fill(data.len(), 0.0_f32));
    let launch = map_launch(data.len() as u64, machine)?;
    let counts = machine.run(&mut memory, &Squares { from, to, length: data.len() }, &launch)?;
    Ok((memory.words(to).to_vec(), counts))
}

fn map_launch(elements: u64, machine: &Machine) -> Result<Launch, KernelError> {
    if elements > MOST_ELEMENTS {
        let reason = format!("{elements} elements are more than any memory holds");
        return Err(KernelError::Launch { kernel: NAME, reason });
    }
    let threads = threads(machine);
    let blocks = elements.div_ceil(u64::from(threads * VECTOR)).max(1);
    let blocks_per_unit = machine.blocks_per_unit(NAME, threads, Bytes::ZERO)?;
    Ok(Launch { blocks, threads, blocks_per_unit, epilogue: false })
}

/// What [`squares`] counts.
///
/// # Errors
/// As [`cub`].
pub fn map_counts(elements: u64, machine: &Machine) -> Result<KernelCounts, KernelError> {
    let launch = map_launch(elements, machine)?;
    let resident = (u64::from(machine.limits.units) * u64::from(launch.blocks_per_unit)).min(launch.blocks);
    let (threads, lanes) = (u64::from(launch.threads), u64::from(machine.lanes));
    let (rows, tail) = (elements / threads, elements % threads);
    let row = |start, length| SECTOR * row_sectors(4, start, length, machine.lanes);
    let moved = Bytes(rows * row(0, threads) + row(rows * threads, tail));
    let first = elements.div_ceil(threads).min(u64::from(VECTOR));
    Ok(KernelCounts {
        launches: 1,
        blocks: launch.blocks,
        threads: launch.threads,
        resident_blocks: resident,
        waves: launch.blocks.div_ceil(resident),
        read: moved,
        written: moved,
        working_set: Bytes(2 * (4 * elements).div_ceil(SECTOR) * SECTOR),
        round_trips: u64::from(elements > 0),
        operations: 3 * first,
        lane_operations: 3 * (rows * threads.div_ceil(lanes) + tail.div_ceil(lanes)) * lanes,
        ..KernelCounts::default()
    })
}

struct Squares {
    from: Buffer<f32>,
    to: Buffer<f32>,
    length: usize,
}

impl Kernel for Squares {
    type Registers = ();
    const NAME: &'static str = NAME;

    fn start(&self, _: &mut Block<'_, '_>) -> Result<(), KernelError> {
        Ok(())
    }

    fn phase(&self, _: u32, (): &mut (), block: &mut Block<'_, '_>) -> Result<Next, KernelError> {
        let tile = block.threads() * VECTOR as usize;
        let first = block.index() as usize * tile;
        let last = (first + tile).min(self.length);
        let mut rows = Vec::new();
        for row in (first..last).step_by(block.threads()) {
            let active = (last - row).min(block.threads());
            rows.push((row, block.load_row(self.from, row, active)?.to_vec()));
        }
        for (row, mut words) in rows {
            block.operate(1, words.len());
            words.iter_mut().for_each(|word| *word *= *word);
            block.store_row(self.to, row, &words)?;
        }
        Ok(Next::Done)
    }
}
