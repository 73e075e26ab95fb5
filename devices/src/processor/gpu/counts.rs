//! What GPU kernels did, counted while they ran or foretold by a closed form; no device is named.
//!
//! Counts of atomics are real numbers, since a closed form gives their expectation.

use crate::units::Bytes;

/// What a GPU holds at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuLimits {
    /// Units: streaming multiprocessors, shader processors or shader cores.
    pub units: u32,
    /// Threads resident on a unit, and so the most that a block has.
    pub threads: u32,
    /// Blocks resident on a unit.
    pub blocks: u32,
    /// Shared memory of a unit.
    pub shared: Bytes,
}

impl GpuLimits {
    /// Blocks of `threads` threads that hold `shared` bytes each, resident on one unit; none where a block is too large.
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
    /// Updates that threads had to make, in updates.
    pub issued: f64,
    /// Attempts that the memory served one by one, in attempts: of a compare-and-swap, the failed ones too; none for an
    /// update that a test before it made needless.
    pub attempts: f64,
    /// Attempts that failed because another thread had changed the cell.
    pub retries: f64,
    /// Attempts that changed the value of the cell.
    pub changes: f64,
    /// Changes that made threads go to memory once more: of a compare-and-swap those that failed others, of one behind
    /// a test all, of a native atomic none.
    pub refetches: f64,
}

impl AtomicCounts {
    /// Of the counts of several cells those that can take longest, most attempts first: no other of them has both as
    /// many attempts and as many refetches.
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

/// One kernel, in counts. What is counted per thread or per block is the most that any of them did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelCounts {
    /// Launches: one, or none if the kernel is the epilogue of another that is launched anyway.
    pub launches: u32,
    /// Blocks (work-groups) of the grid.
    pub blocks: u64,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks that are resident at once, on all units.
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
    /// Shared memory that a block holds.
    pub shared_held: Bytes,
    /// Barriers that one block passes.
    pub barriers: u64,
    /// Barriers over all blocks.
    pub barriers_of_all: u64,
    /// Warp shuffles over all blocks, one a warp.
    pub shuffles: u64,
    /// Trips to global memory that one thread has to wait for in turn.
    pub round_trips: u64,
    /// Operations that one thread does in turn.
    pub operations: u64,
    /// Lane slots over all blocks: what the warps issue, idle lanes included.
    pub lane_operations: u64,
    /// Attempts on the most contended shared cell of a block, the mean over the blocks.
    pub shared_attempts: f64,
    /// Atomics on each of the most contended global cells: see [`AtomicCounts::most_contended`].
    pub atomics: Vec<AtomicCounts>,
    /// Global cells that atomics touch.
    pub atomic_cells: u64,
}

/// Kernels that run one after the other in a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramCounts {
    /// The kernels, in order.
    pub kernels: Vec<KernelCounts>,
    /// Clearings of a result cell before the kernels; each costs as much as a launch.
    pub memsets: u32,
    /// Operators of a framework that call them; each costs the stack's overhead.
    pub operators: u32,
}

impl ProgramCounts {
    /// Launches of kernels, memsets not among them.
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
