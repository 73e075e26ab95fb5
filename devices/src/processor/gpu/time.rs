//! The time of counted kernels.
//!
//! A program's time is that of its launches and memsets, one after the other, and for every kernel the longest of
//! several overlapping terms: the bytes, the chain of one thread times the waves, the issue slots, shared memory, and
//! the atomics that one cell serves. A thread's chain consists of its round trips to memory, its barriers, its
//! operations and the atomics on its block's shared cell. Since a thread waits for every round trip, few resident
//! threads do not reach the bandwidth (Little's law). A round trip takes `atomic_latency`, the only latency of the
//! memory system in the calibrations.
//!
//! The work of GPU kernels, counted while they ran or predicted by a closed form. They contain no
//! timing constants of a device.
//!
//! Counts of atomics are real numbers, since a closed form gives their expectation.

use super::{Gpu, PIPELINE, by_dram};
use crate::processor::power::{Limit, Stalls, longest};
use crate::{Bytes, Cost, Interval, Nanos, StackOnGpu};

/// Cycles of an atomic on shared memory, which reads and writes its bank at one word per cycle (CUDA C++ Programming
/// Guide, on shared memory).
const SHARED_ATOMIC: f64 = 2.0;

/// The time of a program on a GPU, by cause. The terms of a kernel overlap: `busy` sums the longest of each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KernelTime {
    /// The framework, before anything is launched.
    pub overhead: Interval,
    /// Launches and memsets.
    pub launch: Interval,
    /// Bytes over the bandwidth of DRAM, or of the L2 if the working set fits in it and its bandwidth is known.
    pub memory: Interval,
    /// Round trips to memory, one after the other.
    pub round_trips: Interval,
    /// Barriers, over all waves.
    pub barriers: Interval,
    /// Operations of one thread, over all waves.
    pub operations: Interval,
    /// Atomics on the shared cell of one block, over all waves.
    pub shared_atomics: Interval,
    /// Operations of all lanes over the lanes' issue rate.
    pub issue: Interval,
    /// Time that a unit's path to shared memory is busy: with the bytes of all its blocks, or their
    /// atomics if these take longer.
    pub shared: Interval,
    /// Atomics on the slowest global cell.
    pub atomics: Interval,
    /// From the start of each kernel to its end, summed.
    pub busy: Interval,
    /// Bytes that DRAM moves.
    pub dram: Bytes,
    /// The part of `busy` that is neither operations nor issue slots.
    pub stalls: Stalls,
}

impl KernelTime {
    /// The whole time.
    pub fn total(&self) -> Nanos {
        Nanos::from_seconds((self.overhead + self.launch + self.busy).0)
    }

    /// The same as an operator's cost, for use next to other operators; the GPU counts as full.
    pub fn cost(&self) -> Cost {
        Cost {
            launch: Nanos::from_seconds((self.overhead + self.launch).0),
            busy: Nanos::from_seconds(self.busy.0),
            dram: self.dram,
            occupancy: 1.0,
            stalls: self.stalls,
            ..Cost::default()
        }
    }
}

impl Gpu {
    /// The time of the counted `program` with no other load; `stack` adds its overhead per operator
    /// and its factor per launch.
    pub fn time_of(&self, program: &ProgramCounts, stack: Option<&StackOnGpu>) -> KernelTime {
        let factor = stack.map_or(1.0, |stack| stack.launch_factor.value.0);
        let overhead = stack.map_or(Nanos::ZERO, |stack| stack.operator_overhead.value);
        let launches = program.launches() + program.memsets;
        let mut time = KernelTime {
            overhead: Interval(overhead.seconds() * f64::from(program.operators)),
            launch: Interval(self.constants.launch.value.seconds() * factor * f64::from(launches)),
            ..KernelTime::default()
        };
        for kernel in &program.kernels {
            self.add(kernel, &mut time);
        }
        time
    }

    fn add(&self, kernel: &KernelCounts, time: &mut KernelTime) {
        let bytes = kernel.read + kernel.written;
        let (bandwidth, dram) = self.served_by(kernel.working_set, bytes);
        let memory = Interval(bytes.as_f64() / bandwidth.0);
        let waves = kernel.waves as f64;
        let cycle = Interval(1.0 / self.constants.clock.value.0);
        let round_trips = self.constants.atomic_latency.value * (kernel.round_trips as f64 * waves);
        let barriers = self.constants.barrier.value * (kernel.barriers as f64 * waves);
        let operations = cycle * (PIPELINE * kernel.operations as f64 * waves);
        let shared_atomics = cycle * (SHARED_ATOMIC * kernel.shared_attempts * waves);
        let chain = round_trips + barriers + operations + shared_atomics;
        // A unit without a block neither issues nor moves shared bytes.
        let working = (kernel.blocks as f64 / self.constants.units.value.0).clamp(f64::MIN_POSITIVE, 1.0);
        let issue = Interval(kernel.lane_operations as f64 / (self.integer_rate() * working));
        let shared = Interval(kernel.shared.as_f64() / (self.shared_bandwidth.0 * working));
        // The atomics of all blocks of a unit go through its one path to shared memory.
        let queue = cycle
            * (SHARED_ATOMIC * kernel.shared_attempts * kernel.blocks as f64
                / (self.constants.units.value.0 * working));
        let shared = Interval(shared.0.max(queue.0));
        let cells = kernel.atomics.iter().map(|cell| self.one_cell(cell.attempts, cell.refetches).0);
        let atomics = Interval(cells.fold(0.0, f64::max));
        let (busy, limit) = longest([
            (chain.0, Limit::Waiting),
            (issue.0, Limit::Arithmetic),
            (shared.0, Limit::Caches),
            (atomics.0, Limit::Waiting),
            (memory.0, by_dram(dram)),
        ]);
        // A thread computes its operations while it waits for its chain.
        let computed = if chain.0 >= busy { operations.0 } else { 0.0 };
        time.stalls.add(limit, busy - computed);
        time.memory += memory;
        time.round_trips += round_trips;
        time.barriers += barriers;
        time.operations += operations;
        time.shared_atomics += shared_atomics;
        time.issue += issue;
        time.shared += shared;
        time.atomics += atomics;
        time.busy += Interval(busy);
        time.dram += dram;
    }

    /// The limits on blocks and threads resident on the GPU.
    pub fn limits(&self) -> GpuLimits {
        GpuLimits {
            units: (self.constants.units.value.0 as u32).max(1),
            threads: self.constants.threads.value.0 as u32,
            blocks: self.constants.blocks.value.0 as u32,
            shared: self.constants.shared.value,
        }
    }
}

/// Limits on blocks and threads resident on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuLimits {
    /// Units: streaming multiprocessors, shader processors or shader cores.
    pub units: u32,
    /// Threads resident on a unit, and so the largest block.
    pub threads: u32,
    /// Blocks resident on a unit.
    pub blocks: u32,
    /// Shared memory of a unit.
    pub shared: Bytes,
}

impl GpuLimits {
    /// Resident blocks per unit, for blocks of `threads` threads with `shared` bytes of shared memory each;
    /// zero if a block is too large.
    pub fn blocks_per_unit(&self, threads: u32, shared: Bytes) -> u32 {
        let by_threads = self.threads / threads.max(1);
        let by_shared = self.shared.0.checked_div(shared.0).unwrap_or(u64::MAX);
        self.blocks.min(by_threads).min(u32::try_from(by_shared).unwrap_or(u32::MAX))
    }
}

/// Atomic updates of one memory cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[must_use]
pub struct AtomicCounts {
    /// Updates that threads had to make.
    pub issued: f64,
    /// Attempts that the memory served one by one. For a compare-and-swap they include failed ones; an update that a
    /// preceding test skipped has none.
    pub attempts: f64,
    /// Attempts that failed because another thread had changed the cell.
    pub retries: f64,
    /// Attempts that changed the value of the cell.
    pub changes: f64,
    /// Changes after which threads had to read memory again: for a compare-and-swap those that made others fail, with a
    /// preceding test all of them, for a native atomic none.
    pub refetches: f64,
}

impl AtomicCounts {
    /// The cells that may take longest, most attempts first: for each of them, no other cell has both as many
    /// attempts and as many refetches.
    pub fn most_contended(mut cells: Vec<Self>) -> Vec<Self> {
        let heavier = |a: &Self, b: &Self| b.attempts.total_cmp(&a.attempts).then(b.refetches.total_cmp(&a.refetches));
        cells.sort_by(heavier);
        let mut most = f64::NEG_INFINITY;
        cells.retain(|cell| {
            let stays = cell.refetches > most;
            most = most.max(cell.refetches);
            stays
        });
        cells
    }
}

/// The counts of one kernel. Counts per thread or per block are the maximum over all threads or blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelCounts {
    /// Launches: one, or zero if the kernel is the epilogue of another that is launched anyway.
    pub launches: u32,
    /// Blocks (work-groups) of the grid.
    pub blocks: u64,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks that are resident simultaneously, on all units.
    pub resident_blocks: u64,
    /// Rounds in which the resident blocks run the grid.
    pub waves: u64,
    /// Bytes read from global memory, in whole sectors.
    pub read: Bytes,
    /// Bytes written to global memory, in whole sectors.
    pub written: Bytes,
    /// Bytes of global memory touched at least once; decides which cache serves the traffic.
    pub working_set: Bytes,
    /// Bytes moved to and from shared memory, over all blocks.
    pub shared: Bytes,
    /// Shared memory of a block.
    pub shared_held: Bytes,
    /// Barriers that one block passes.
    pub barriers: u64,
    /// Barriers over all blocks.
    pub barriers_of_all: u64,
    /// Warp shuffles over all blocks, counted once per warp.
    pub shuffles: u64,
    /// Round trips to global memory that one thread waits for, one after the other.
    pub round_trips: u64,
    /// Operations that one thread executes in sequence.
    pub operations: u64,
    /// Lane slots over all blocks: what the warps issue, idle lanes included.
    pub lane_operations: u64,
    /// Attempts on the most contended shared cell of a block, the mean over the blocks.
    pub shared_attempts: f64,
    /// Atomics on each of the most contended global cells: see [`AtomicCounts::most_contended`].
    pub atomics: Vec<AtomicCounts>,
    /// Global cells with atomics.
    pub atomic_cells: u64,
}

/// Kernels that run one after the other in a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramCounts {
    /// The kernels, in order.
    pub kernels: Vec<KernelCounts>,
    /// Memsets that clear result cells before the kernels; each costs as much as a launch.
    pub memsets: u32,
    /// Operators of a framework that call them; each costs the stack's overhead.
    pub operators: u32,
}

impl ProgramCounts {
    /// Launches of kernels, without memsets.
    pub fn launches(&self) -> u32 {
        self.kernels.iter().map(|kernel| kernel.launches).sum()
    }

    /// Runs `other` after this.
    pub fn extend(&mut self, other: Self) {
        self.kernels.extend(other.kernels);
        self.memsets += other.memsets;
        self.operators += other.operators;
    }
}
