//! A device under a software stack: the costs that the executor needs.

pub(crate) mod packing;

use haversack_devices::processor::Queue;
use haversack_devices::{
    Bytes, BytesPerSecond, CoreSelection, Cost, CpuCores, Device, Factor, Flops, Frequency, MemoryFormat, Nanos,
    Offloader, OperatorKind, Precision, Processor, ProcessorError, ProcessorKind, Product, ScalarSpeed, Stack, Traffic,
    Work,
};
use haversack_memory::phone::PAGE;
use haversack_policies::{Operations, Planner, Planning, Swapping};
use haversack_workloads::{KernelCost, Phase, TrainingGraph};
use thiserror::Error;

/// Why a device and a stack cannot form a machine.
#[derive(Debug, Error)]
pub enum MachineError {
    /// The processor is unavailable.
    #[error(transparent)]
    Processor(#[from] ProcessorError),
}

/// Which processors train.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Trains {
    /// The GPU if the device has one that the stack has kernels for and no cores were specified, otherwise the CPU.
    #[default]
    Either,
    /// CPU cores.
    Cpu,
    /// The device's GPU.
    Gpu,
    /// CPU cores, and the DSP for nodes that a policy offloads.
    CpuAndDsp,
}

/// A processor of a device, with the kernels of a stack.
#[derive(Clone, Debug)]
#[must_use]
pub struct Machine {
    /// The device and its constants.
    pub device: Device,
    /// The software stack.
    pub stack: Stack,
    /// The processor that trains.
    pub processor: Processor,
    /// The DSP that assists it, if a policy may use one.
    pub dsp: Option<Offloader>,
    /// Whether a governor moves the CPU's frequency from iteration to iteration.
    pub governed: bool,
    kernels: KernelCost,
    /// Whether its session was prepared in advance.
    prepared: bool,
    /// The selection that it was made with.
    chosen: (Trains, Option<CoreSelection>, Frequency),
}

/// The threads of the process that trains, and their behaviour while others work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Workers {
    /// Of an operator on the CPU.
    pub(crate) threads: f64,
    /// Of the time in which they spin, the share that the system's kernel takes; they sleep if it is not given.
    pub(crate) yielding: Option<f64>,
    /// The power of a core on which a thread spins, relative to one that runs a vector kernel; then of one that
    /// prepares a graph.
    pub(crate) spinning: f64,
    pub(crate) scalar: f64,
    /// Of the time in which an accelerator works, the share that the host's thread polls.
    pub(crate) polling: f64,
}

impl Machine {
    /// The processors of `device` that `trains` names under `stack`.
    ///
    /// # Errors
    /// A device without a processor that the stack can use, or cores that it does not have.
    pub fn new(
        device: Device,
        stack: Stack,
        trains: Trains,
        cores: Option<CoreSelection>,
        frequency: Frequency,
    ) -> Result<Self, MachineError> {
        let on_gpu = match trains {
            Trains::Either => cores.is_none() && device.gpu().is_some() && stack.gpu().is_some(),
            Trains::Gpu => true,
            Trains::Cpu | Trains::CpuAndDsp => false,
        };
        let kind = if on_gpu { ProcessorKind::Gpu } else { ProcessorKind::Cpu };
        let chosen = (trains, cores, frequency);
        let cores = cores.unwrap_or_default();
        let dsp = match trains {
            Trains::CpuAndDsp => Some(device.offloader(&stack)?),
            _ => None,
        };
        let processor = device.processor(kind, &stack, cores, frequency)?;
        let kernels = match &processor {
            Processor::Gpu(_, on_gpu) => KernelCost {
                index_ops: on_gpu.index_ops_per_access.value.0,
                direct_penalty: on_gpu.direct_penalty.value.0,
                winograd_saving: on_gpu.winograd_saving.value.0,
                winograd_of_fp32: on_gpu.library.is_some(),
                winograd_weight_batch: on_gpu
                    .library
                    .as_ref()
                    .and_then(|library| library.winograd_weight_batch.as_ref())
                    .map_or(1, |batch| batch.value.0 as u64),
                ..KernelCost::NONE
            },
            Processor::Cpu(_, on_cpu) => KernelCost {
                direct_penalty: on_cpu.direct_penalty.value.0,
                packed: on_cpu.packed == Some(true),
                winograd_tile: on_cpu.winograd_tile.as_ref().map_or(0, |side| side.value.0 as u64),
                ..KernelCost::NONE
            },
        };
        let governed = frequency == Frequency::Governor && !on_gpu;
        Ok(Self { device, stack, processor, dsp, governed, kernels, prepared: false, chosen })
    }

    /// The same processors, cores and frequency of another `device` under another `stack`.
    ///
    /// # Errors
    /// As [`Machine::new`].
    pub fn under(&self, device: Device, stack: Stack) -> Result<Self, MachineError> {
        let (trains, cores, frequency) = self.chosen;
        let machine = Self::new(device, stack, trains, cores, frequency)?;
        let machine = machine.with_memory_format(self.kernels.memory_format);
        Ok(if self.prepared { machine.prepared_before() } else { machine })
    }

    /// The same under a session that was prepared before and is run again and again: the graph and its tensors' memory
    /// exist already, as in inference (MNN's and TensorFlow Lite's sessions).
    pub fn prepared_before(mut self) -> Self {
        if let Processor::Cpu(cores, on_cpu) = &mut self.processor {
            (on_cpu.preparation, on_cpu.preparation_work, on_cpu.first_touch) = (None, None, None);
            // A session that is prepared once has its weights transformed, too.
            if let Some(rows) = on_cpu.tile_rows.as_ref().filter(|_| on_cpu.session_tiles) {
                let threads = cores.cores().len().max(1) as u64;
                (self.kernels.packed, self.kernels.winograd_tiles_at_once) = (true, threads * rows.value.0 as u64);
            }
        }
        Self { prepared: true, ..self }
    }

    /// The same, but pages touched for the first time are counted elsewhere: by a phone's kernel.
    pub(crate) fn faulted_by_a_kernel(mut self) -> Self {
        if let Processor::Cpu(_, on_cpu) = &mut self.processor {
            on_cpu.first_touch = None;
        }
        self
    }

    /// The same with image maps in the memory layout `format`.
    pub fn with_memory_format(self, format: MemoryFormat) -> Self {
        Self { kernels: KernelCost { memory_format: format, ..self.kernels }, ..self }
    }

    /// The same with other CPU cores, as a governor sets them.
    pub(crate) fn with_cores(&self, cores: CpuCores) -> Self {
        let processor = match &self.processor {
            Processor::Cpu(_, stack) => Processor::Cpu(cores, stack.clone()),
            Processor::Gpu(..) => self.processor.clone(),
        };
        Self { processor, ..self.clone() }
    }

    /// The same with a GPU that addresses all memory, to compute requirements regardless of the available memory.
    pub fn without_limit(&self) -> Self {
        let mut machine = self.clone();
        machine.device.constants.gpu.iter_mut().for_each(|gpu| gpu.memory_share = None);
        machine
    }

    /// The bytes that the processor can address; `None` if it can address all of the device's memory.
    pub fn addressable(&self) -> Option<Bytes> {
        let Processor::Gpu(..) = &self.processor else { return None };
        let share = self.device.constants.gpu.as_ref()?.memory_share.as_ref()?;
        Some(Bytes((self.device.ram().as_f64() * share.value.0) as u64))
    }

    /// The CPU cores of the machine: those that train, or drive the DSP.
    pub fn cores(&self) -> Option<&CpuCores> {
        match &self.processor {
            Processor::Cpu(cores, _) => Some(cores),
            Processor::Gpu(..) => None,
        }
    }

    /// The cost of node `id` of `graph` on the DSP with `samples` samples in parts of `split`, which equation 4 sums
    /// (Xu et al., MobiCom 2022, section 3.5); whole if `split` is 0. `None` if no DSP can run it.
    pub fn dsp_cost(
        &self,
        graph: &TrainingGraph,
        id: usize,
        samples: u64,
        precision: Precision,
        split: u64,
    ) -> Option<Cost> {
        let dsp = self.dsp.as_ref()?;
        let node = &graph.nodes[id];
        let part = if split == 0 { samples } else { split.min(samples) };
        let work = |samples| node.work.at(samples, precision, KernelCost::NONE);
        if !dsp.runs(&work(part)) {
            return None;
        }
        let whole = dsp.cost(&work(part));
        let parts = samples / part.max(1);
        let rest = samples % part.max(1);
        let mut cost = repeated(whole, parts);
        if rest > 0 {
            cost = together(cost, dsp.cost(&work(rest)));
        }
        let more = parts + u64::from(rest > 0) - 1;
        if more > 0 {
            cost = together(cost, repeated(self.accumulation(graph, id), more));
        }
        Some(cost)
    }

    /// The time of crossing between the CPU and the DSP with `bytes` to copy from one memory space to the other. Zero
    /// without a DSP.
    pub fn crossing(&self, bytes: Bytes) -> Nanos {
        let both = self.dsp.as_ref().zip(self.cores());
        both.map_or(Nanos::ZERO, |(dsp, cores)| dsp.crossing(bytes, cores))
    }

    /// The cost of adding one part's gradient to the sum of the others on the DSP; zero without one.
    pub(crate) fn accumulation(&self, graph: &TrainingGraph, id: usize) -> Cost {
        self.dsp.as_ref().map_or_else(Cost::default, |dsp| dsp.cost(&accumulation(graph, id)))
    }

    /// The time of writing `bytes` to idle flash and reading them back; `None` without flash.
    pub fn swapping(&self, bytes: Bytes) -> Option<Swapping> {
        let storage = self.device.constants.storage.as_ref()?;
        let at = |rate: BytesPerSecond| Nanos::from_seconds(bytes.as_f64() / rate.0);
        Some(Swapping { out: at(storage.sequential_write.value), back: at(storage.sequential_read.value) })
    }

    /// The cost of node `id` of `graph` with `samples` samples.
    pub fn cost(&self, graph: &TrainingGraph, id: usize, samples: u64, precision: Precision) -> Cost {
        self.cost_reading_less(graph, id, samples, precision, Bytes::ZERO)
    }

    /// Pages in the outputs of node `id` that are touched for the first time, if memory is mapped again for every
    /// batch: the number in the graph, plus the pages of forward's tensors or a share of them, since few are freed
    /// before forward ends. Later nodes reuse those pages.
    pub(crate) fn fresh_pages(&self, graph: &TrainingGraph, id: usize, samples: u64) -> u64 {
        let node = &graph.nodes[id];
        let Processor::Cpu(_, on_cpu) = &self.processor else { return 0 };
        if on_cpu.first_touch.is_none() || node.work.launches == 0 {
            return 0;
        }
        let made = if node.phase == Phase::Forward {
            let bytes: u64 = node.outputs.iter().map(|&output| graph.tensor(output).bytes.at(samples)).sum();
            (bytes as f64 * on_cpu.fresh_share.as_ref().map_or(1.0, |share| share.value.0)) as u64
        } else {
            0
        };
        (made + node.work.fresh.at(samples)).div_ceil(PAGE)
    }

    /// The threads that train.
    pub(crate) fn workers(&self) -> Workers {
        let polling = self.stack.constants.housekeeping.as_ref();
        let polling = match (&self.dsp, self.stack.dsp()) {
            (Some(_), Some(on_dsp)) => on_dsp.waiting_share.value.0,
            _ => polling.map_or(0.0, |housekeeping| housekeeping.polling.value.0),
        };
        match &self.processor {
            Processor::Cpu(cores, on_cpu) => Workers {
                threads: cores.cores().len().max(1) as f64,
                yielding: on_cpu.yielding.as_ref().map(|share| share.value.0),
                spinning: on_cpu.spinning_power.as_ref().map_or(1.0, |share| share.value.0),
                scalar: 1.0 / self.device.constants.power.vector_factor.value.0,
                polling,
            },
            Processor::Gpu(..) => Workers { threads: 1.0, polling, ..Workers::default() },
        }
    }

    /// The same if it reads `less` bytes fewer from memory than the graph defines.
    pub(crate) fn cost_reading_less(
        &self,
        graph: &TrainingGraph,
        id: usize,
        samples: u64,
        precision: Precision,
        less: Bytes,
    ) -> Cost {
        let mut work = graph.nodes[id].work.at(samples, precision, self.kernels);
        work.traffic.dram = work.traffic.dram.saturating_sub(less);
        let cost = self.processor.cost(&work);
        let Processor::Cpu(cores, on_cpu) = &self.processor else { return cost };
        let touching = cores.first_touch(self.fresh_pages(graph, id, samples), on_cpu);
        let [launch, preparation] = [cost.launch, cost.preparation].map(|before| before + touching);
        Cost { launch, preparation, touching, ..cost }
    }

    /// Workspace that a library takes while it runs node `id`: the operand that is copied for it, and the transformed
    /// tiles of Winograd's algorithm, of its maps and of its weights.
    pub fn workspace(&self, graph: &TrainingGraph, id: usize, samples: u64, precision: Precision) -> Bytes {
        let Processor::Gpu(_, on_gpu) = &self.processor else { return Bytes::ZERO };
        let work = &graph.nodes[id].work;
        let precision = work.precision.unwrap_or(precision);
        let of_output = on_gpu.winograd_workspace.value.0;
        let tiles = work.product.filter(|_| of_output > 1.0 && work.uses_winograd(samples, precision, self.kernels));
        let tiles = tiles.map_or(Bytes::ZERO, |product| winograd_tiles(&product, of_output, samples, precision));
        Bytes(work.copied.at(samples)) + tiles
    }

    /// Memory that the stack's libraries use from the first operator on.
    pub fn library_workspace(&self) -> Bytes {
        match &self.processor {
            Processor::Gpu(_, on_gpu) => on_gpu.library_workspace.value,
            Processor::Cpu(..) => Bytes::ZERO,
        }
    }

    /// The smallest micro-batch with which every forward product that matters fills the processor (Sage's MTP,
    /// section 3.4.3): products of at least a hundredth of the forward arithmetic. At least one, at most `batch`.
    pub fn filling_micro_batch(&self, graph: &TrainingGraph, batch: u64) -> u64 {
        let products = || {
            graph.nodes.iter().enumerate().filter(|(_, node)| {
                node.phase == Phase::Forward
                    && matches!(
                        node.work.kind,
                        OperatorKind::Convolution | OperatorKind::DepthwiseConvolution | OperatorKind::Gemm
                    )
            })
        };
        let total: f64 = products().map(|(_, node)| node.work.flops.per_sample as f64).sum();
        let matters =
            |node: &haversack_workloads::training_graph::Node| node.work.flops.per_sample as f64 >= 0.01 * total;
        let worst = products().filter(|(_, node)| matters(node)).map(|(id, _)| {
            let occupancy = self.cost(graph, id, 1, Precision::Fp32).occupancy;
            if occupancy > 0.0 { (1.0 / occupancy).ceil() as u64 } else { batch }
        });
        worst.max().unwrap_or(1).clamp(1, batch.max(1))
    }

    /// The time of each node of `graph` at `batch`, run alone.
    pub fn times(&self, graph: &TrainingGraph, batch: u64, precision: Precision) -> Vec<Nanos> {
        (0..graph.nodes.len()).map(|id| self.cost(graph, id, batch, precision).alone()).collect()
    }

    /// The time of one iteration of `graph` at `batch` without memory limits, from costs only.
    pub fn unbounded_time(&self, graph: &TrainingGraph, batch: u64, precision: Precision) -> Nanos {
        let mut queue = Queue::default();
        let costs = (0..graph.nodes.len()).map(|id| self.cost(graph, id, batch, precision));
        costs.map(|cost| queue.issue(&cost).alone()).sum()
    }

    /// From requesting a plan until it arrives; `None` if the stack defines no planning costs, or the device has no
    /// core with a known CoreMark.
    pub fn planning_time(&self, planning: &Planning) -> Option<Nanos> {
        let link = self.stack.constants.planning.as_ref()?.link.value;
        let sent = (planning.sent + planning.received).as_f64() / link.0;
        Some(self.making_time(planning.planner, planning.operations)? + Nanos::from_seconds(sent))
    }

    /// The time of a plan's `operations` on the core that makes it; `None` as in [`Machine::planning_time`].
    pub fn making_time(&self, planner: Planner, operations: Operations) -> Option<Nanos> {
        let constants = self.stack.constants.planning.as_ref()?;
        let speed = match planner {
            Planner::Server => ScalarSpeed::per_second(constants.server.value.0)?,
            Planner::Phone => self.background()?,
        };
        Some(speed.time(Factor(operations.total() as f64 * constants.operation.value.0)))
    }

    /// The core of services in the background: a little one, or the slowest if the device has none.
    fn background(&self) -> Option<ScalarSpeed> {
        let cpu = self.device.cpu()?;
        let little = BACKGROUND.parse::<CoreSelection>().ok().and_then(|one| cpu.choose(one, Frequency::Highest).ok());
        let cores = little.or_else(|| cpu.choose(CoreSelection::All, Frequency::Highest).ok())?;
        ScalarSpeed::of(&cores)
    }
}

/// `cost` repeated `times` times, one after the other.
fn repeated(cost: Cost, times: u64) -> Cost {
    Cost {
        launch: cost.launch * times,
        busy: cost.busy * times,
        dram: cost.dram * times,
        stalls: cost.stalls * times,
        ..cost
    }
}

/// Both costs, one after the other.
fn together(first: Cost, second: Cost) -> Cost {
    Cost {
        launch: first.launch + second.launch,
        busy: first.busy + second.busy,
        dram: first.dram + second.dram,
        stalls: first.stalls + second.stalls,
        ..first
    }
}

/// Adding one part's gradient to the sum of those before: two are read, one is written.
fn accumulation(graph: &TrainingGraph, id: usize) -> Work {
    let values: u64 = graph.nodes[id].outputs.iter().map(|&tensor| graph.tensor(tensor).bytes.at(1)).sum();
    let bytes = Bytes(3 * values);
    Work {
        flops: Flops(values as f64),
        traffic: Traffic { dram: bytes, shared: Bytes::ZERO },
        working_set: bytes,
        parallelism: values as f64,
        ..Work::empty(OperatorKind::ElementWise, Precision::Int8)
    }
}

// Costs of making and sending a plan on a machine.

/// Where services in the background run (Android's processor sets).
const BACKGROUND: &str = "little:1";

/// The transformed tiles of a 3×3 convolution of `samples` maps, with `of_output` values in a tile for each of its
/// outputs: 4 in F(2×2, 3×3), whose tiles of 4×4 give 2×2.
fn winograd_tiles(product: &Product, of_output: f64, samples: u64, precision: Precision) -> Bytes {
    let taps = 3;
    let side = ((taps - 1) as f64 / (of_output.sqrt() - 1.0)).round() as u64;
    let values = (side + taps - 1).pow(2);
    let tiles: u64 = product.output_size.iter().map(|length| length.div_ceil(side)).product();
    let maps = samples * tiles * (product.inputs + product.outputs);
    Bytes(values * (maps + product.inputs * product.outputs) * precision.bytes().0)
}
