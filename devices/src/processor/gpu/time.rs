//! The time of counted kernels.
//!
//! A program takes its launches and memsets, one after the other, and for every kernel the longest of what runs at
//! once: the bytes, the chain of one thread times the waves, the issue slots, shared memory, and the atomics that one
//! cell serves. The chain of a thread is its trips to memory, its barriers, its operations and the
//! atomics on its block's shared cell; since a thread waits for every trip, few resident threads do not reach the
//! bandwidth (Little's law). A trip takes `atomic_latency`, the only latency of the memory system in the calibrations.

use crate::processor::Cost;
use crate::processor::gpu::by_dram;
use crate::processor::gpu::{Gpu, GpuLimits, KernelCounts, PIPELINE, ProgramCounts};
use crate::processor::stalls::{Limit, Stalls, longest};
use crate::stack::StackOnGpu;
use crate::units::{Bytes, Interval, Nanos};

/// Cycles of an atomic on shared memory, whose bank it reads and writes at a word a cycle (CUDA C++ Programming Guide,
/// on shared memory).
const SHARED_ATOMIC: f64 = 2.0;

/// What a program takes on a GPU, and of what. The terms of a kernel run at once: `busy` sums the longest of each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KernelTime {
    /// The framework, before anything is launched.
    pub overhead: Interval,
    /// Launches and memsets.
    pub launch: Interval,
    /// Bytes over the bandwidth of DRAM, or of the L2 where it holds the working set and its bandwidth is known.
    pub memory: Interval,
    /// Trips to memory, waited for in turn.
    pub round_trips: Interval,
    /// Barriers of all waves.
    pub barriers: Interval,
    /// Operations of a thread in turn, of all waves.
    pub operations: Interval,
    /// Atomics on the shared cell of one block, of all waves.
    pub shared_atomics: Interval,
    /// Operations of all lanes over what the lanes issue.
    pub issue: Interval,
    /// What a unit's path to shared memory is busy with: the bytes of all its blocks, or their atomics if they take
    /// longer.
    pub shared: Interval,
    /// Atomics on the global cell that takes longest.
    pub atomics: Interval,
    /// From the start of each kernel to its end, summed.
    pub busy: Interval,
    /// Bytes that DRAM moves.
    pub dram: Bytes,
    /// What of `busy` is neither operations nor issue slots.
    pub stalls: Stalls,
}

impl KernelTime {
    /// The whole time.
    pub fn total(&self) -> Nanos {
        Nanos::from_seconds((self.overhead + self.launch + self.busy).0)
    }

    /// The same as what an operator costs, for whoever runs it beside others; the GPU counts as full.
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
    /// What the counted `program` takes, alone; `stack` adds its overhead an operator and its factor a launch.
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
        // A thread that waits for its chain computes its operations meanwhile.
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

    /// What the GPU holds at once.
    pub fn limits(&self) -> GpuLimits {
        GpuLimits {
            units: (self.constants.units.value.0 as u32).max(1),
            threads: self.constants.threads.value.0 as u32,
            blocks: self.constants.blocks.value.0 as u32,
            shared: self.constants.shared.value,
        }
    }
}
