//! The GPU: a roofline whose compute side falls with occupancy.
//!
//! Occupancy is smooth, min(1, outputs / (resident threads × outputs a thread)): a grid that half fills the machine has
//! half its threads. Rounding waves up to whole numbers would put the methods of Sage's figure 10 (MobiSys 2022) in the
//! wrong order. With 16 outputs a thread (a 4 × 4 register tile) a Mali-G76 MP12 is full at 5.9 samples of ResNet-50's
//! last stage, where Sage reports its MTP of 6; the tile size was chosen to match. Serial costs follow the law of GPU
//! reductions: barriers per wave, and atomics of contending resident blocks, which one memory cell serves in turn.

mod library;
mod time;

pub use time::KernelTime;
pub use time::{AtomicCounts, GpuLimits, KernelCounts, ProgramCounts};

use std::sync::Arc;

use crate::processor::power::{Limit, longest};
use crate::{
    Bytes, BytesPerSecond, Cost, Count, Device, Dram, FlopsPerSecond, Fraction, GpuConstants, Interval, Nanos,
    Precision, StackOnGpu, Stalls, Work,
};

/// Cycles of a multiply-add: 4 on Volta and Turing (Jia et al., arXiv 1903.07486) and on Ampere (arXiv 2208.11174), and
/// assumed for mobile GPUs, whose makers do not publish it.
const PIPELINE: f64 = 4.0;

/// CoreMark iterations that take some seconds.
const MANY: f64 = 1e5;

/// H(k) ≈ ln k + γ, the expected number of new minima in k values in random order.
const EULER_GAMMA: f64 = 0.577_215_664_901_532_9;

/// A GPU and its path to DRAM.
#[derive(Clone, Debug)]
pub struct Gpu {
    constants: Arc<GpuConstants>,
    resident_threads: Count,
    /// The smallest occupancy at which every lane has a thread to issue from.
    covering: f64,
    resident_blocks: Count,
    shared_bandwidth: BytesPerSecond,
    dram: Dram,
    /// CoreMark iterations per second of the host's fastest core, if known.
    host: Option<f64>,
}

impl Device {
    /// The GPU model, if the device has a GPU.
    pub fn gpu(&self) -> Option<Gpu> {
        let core = self.core_for(Fraction(1.0)).and_then(|core| core.scalar_time(MANY));
        let host = core.map(|time| MANY / time.seconds());
        Some(Gpu { host, ..Gpu::new(self.constants.gpu.as_ref()?, self.dram()) })
    }
}

impl Gpu {
    fn new(constants: &GpuConstants, dram: Dram) -> Self {
        let units = constants.units.value.0;
        Self {
            resident_threads: constants.threads.value * units,
            covering: constants.fp32_rate.value.0 / 2.0 * PIPELINE / constants.threads.value.0.max(1.0),
            resident_blocks: constants.blocks.value * units,
            shared_bandwidth: constants.shared_rate.value * constants.clock.value * units,
            constants: Arc::new(constants.clone()),
            dram,
            host: None,
        }
    }

    /// Time from one kernel of a queue to the next.
    pub fn launch(&self) -> Nanos {
        self.constants.launch.value
    }

    /// The highest peak available to `work`, and whether it is that of tensor cores.
    fn peak(&self, work: &Work) -> (FlopsPerSecond, bool) {
        match self.constants.tensor_peak(work.precision) {
            Some(tensor) if work.kind.is_dense_product() => (tensor, true),
            _ => (self.constants.general_peak(work.precision), false),
        }
    }

    /// Integer operations per second: one per lane and cycle, where a multiply-add counts as two.
    fn integer_rate(&self) -> f64 {
        self.constants.general_peak(Precision::Int32).0 / 2.0
    }

    /// The number of full grids in the work; below one, the share of the GPU's lanes in use.
    fn waves(&self, work: &Work, stack: &StackOnGpu) -> f64 {
        let at_once = self.resident_threads.0 * stack.outputs_per_thread.value.0.max(1.0);
        work.parallelism.max(1.0) / at_once
    }

    /// The share of the GPU's lanes that `work` fills.
    pub fn occupancy(&self, work: &Work, stack: &StackOnGpu) -> f64 {
        self.waves(work, stack).min(1.0)
    }

    /// The share of the peak at `occupancy`: o (1 + h) / (o + h), where h is the occupancy at which every lane has a
    /// thread for each stage of its pipeline. A few threads already issue from most lanes; hiding the remaining
    /// latency needs all of them.
    fn issue_rate(&self, occupancy: f64) -> f64 {
        occupancy * (1.0 + self.covering) / (occupancy + self.covering)
    }

    /// The cost of `work` under `stack` with no other load.
    pub fn cost(&self, work: &Work, stack: &StackOnGpu) -> Cost {
        if work.launches == 0 {
            return Cost { occupancy: 1.0, ..Cost::default() };
        }
        let occupancy = self.occupancy(work, stack);
        if let Some(library) = &stack.library {
            let run = self.by_library(work, stack, library);
            let mut stalls = Stalls::default();
            stalls.add(run.busy.1, run.busy.0);
            let launch = self.launching(work.launches + run.kernels, stack);
            let busy = Nanos::from_seconds(run.busy.0);
            return Cost { launch, ahead: true, busy, dram: run.dram, occupancy, stalls, ..Cost::default() };
        }
        let (peak, tensor) = self.peak(work);
        let starved = if tensor { stack.tensor_factor.value.0 } else { 1.0 };
        let issued = self.issue_rate(occupancy);
        let rate = peak.0 * stack.efficiency.of(work.kind).0 * starved * issued;
        let indices = work.integer_ops / (self.integer_rate() * issued);
        let arithmetic = work.flops.0 / rate + indices;
        let barriers = self.barriers(work, stack);
        let (bandwidth, dram) = self.served_by(work.working_set, work.traffic.dram);
        let bytes = work.traffic.dram.as_f64() / bandwidth.0;
        let shared = work.traffic.shared.as_f64() / self.shared_bandwidth.0;
        let (busy, limit) = longest([
            (arithmetic + barriers, Limit::Arithmetic),
            (bytes, by_dram(dram)),
            (shared, Limit::Caches),
            (self.atomics(work.atomics), Limit::Waiting),
        ]);
        let mut stalls = Stalls::default();
        match limit {
            Limit::Arithmetic => {
                stalls.add(Limit::Waiting, barriers);
                stalls.add(Limit::Indices, indices);
            }
            other => stalls.add(other, busy),
        }
        let launch = self.launching(work.launches, stack);
        Cost { launch, busy: Nanos::from_seconds(busy), dram, occupancy, stalls, ..Cost::default() }
    }

    /// Seconds that the barriers of `work` take, wave by wave.
    fn barriers(&self, work: &Work, stack: &StackOnGpu) -> f64 {
        self.waves(work, stack).max(1.0) * f64::from(work.barriers) * self.constants.barrier.value.0
    }

    /// Time of the framework and of `launches` launches.
    fn launching(&self, launches: u32, stack: &StackOnGpu) -> Nanos {
        let count = f64::from(launches);
        let launches = Nanos::from_seconds(count * self.constants.launch.value.seconds() * stack.launch_factor.value.0);
        let (Some(speed), Some(work)) = (self.host, &stack.operator_work) else {
            return launches + stack.operator_overhead.value;
        };
        let each = stack.launch_work.as_ref().map_or(0.0, |work| work.value.0);
        launches + Nanos::from_seconds((work.value.0 + count * each) * 1e-6 / speed)
    }

    /// The bandwidth for `bytes` of traffic within `working_set`, and the bytes of them that DRAM moves.
    fn served_by(&self, working_set: Bytes, bytes: Bytes) -> (BytesPerSecond, Bytes) {
        match (&self.constants.l2, &self.constants.l2_bandwidth) {
            (Some(size), Some(bandwidth)) if working_set <= size.value => (bandwidth.value, Bytes::ZERO),
            _ => (self.dram.bandwidth, bytes),
        }
    }

    /// The law of atomics: one cell serves its attempts in turn, and after a change the contending threads fetch it
    /// again.
    fn one_cell(&self, attempts: f64, refetches: f64) -> Interval {
        self.constants.atomic_interval.value * attempts + self.constants.atomic_latency.value * refetches
    }

    /// Seconds that one cell needs for `atomics` unconditional compare-and-swaps in random order, of which only the
    /// number is known: k + Q·H(k) attempts and H(k) changes, with Q the blocks that contend, since each change fails
    /// the attempts in flight.
    fn atomics(&self, atomics: u64) -> f64 {
        if atomics == 0 {
            return 0.0;
        }
        let k = atomics as f64;
        let contenders = k.min(self.resident_blocks.0);
        let changes = k.ln() + EULER_GAMMA;
        self.one_cell(k + contenders * changes, changes).0
    }
}

/// The limit of a transfer of which DRAM moves `dram`.
fn by_dram(dram: Bytes) -> Limit {
    if dram > Bytes::ZERO { Limit::Dram } else { Limit::Caches }
}
