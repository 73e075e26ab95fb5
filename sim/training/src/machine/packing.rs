//! The costs of quantising on a machine: statistics, packing, unpacking.
//!
//! A GPU packs with kernels that reach the stack's share of DRAM bandwidth; CPU cores next to it stream through memory
//! with SIMD and share that memory with the GPU.
//!
//! Also the costs of compressing and swapping a tensor on a machine, as a policy profiles them.
//!
//! The codec's ratio for a map is the stack's, as measured on trained networks, by the kind of operator that made the
//! map. A run with data compresses the values themselves, and uses the resulting sizes.

use haversack_devices::{
    Bytes, BytesPerCycle, BytesPerSecond, CodecConstants, CodecRatios, CoreSelection, Cost, CpuCores, Frequency, Gpu,
    Nanos, OperatorKind, Precision, Processor, StackOnGpu, Stalls,
};
use haversack_gpu::Machine as Simt;
use haversack_gpu::baseline::framework;
use haversack_gpu::profile::{CONTROL, Profiler, Search};
use haversack_kernels::KernelError;
use haversack_kernels::quantise::{Bits, Layout};
use haversack_policies::{Compression, Control, Packing, RestoreProfile, Swapping};
use haversack_workloads::{MapKind, Phase, TensorId, TrainingGraph};

use super::Machine;

/// Values of a whole tensor are of four bytes.
const VALUE: u64 = 4;
/// Threads of a block of a product.
const THREADS: f64 = 256.0;

impl Machine {
    /// The cores that pack in parallel with a GPU.
    pub(crate) fn packing_cores(&self) -> Option<CpuCores> {
        match self.processor {
            Processor::Gpu(..) => self.device.cpu()?.choose(CoreSelection::All, Frequency::Highest).ok(),
            Processor::Cpu(..) => None,
        }
    }

    /// Statistics of `values` values: their minimum, their maximum and the sum of squares that importance needs.
    ///
    /// # Errors
    /// A GPU that the kernels do not fit.
    pub(crate) fn control_cost(&self, values: u64, control: Control) -> Result<Cost, KernelError> {
        let Processor::Gpu(gpu, on_gpu) = &self.processor else {
            let passes = if control == Control::Fused { 0 } else { 1 };
            return Ok(self.stream(Bytes(values * VALUE * passes), 0));
        };
        statistics_cost(gpu, on_gpu, values, control)
    }

    /// Packing `values` values to `bits` bits in a separate kernel on the processor that trains.
    pub(crate) fn packing_cost(&self, values: u64, bits: u8) -> Cost {
        self.stream(packing_traffic(values, bits), 1)
    }

    /// Packing `signs` signs or masks of a tensor of `whole` bytes likewise, to a bit each.
    pub(crate) fn signs_cost(&self, whole: Bytes, signs: u64) -> Cost {
        self.stream(whole + code_bytes(signs, 1), 1)
    }

    /// Unpacking packed values likewise. The kernel works tile by tile: of the CPU's interleaved order it loads, for
    /// every row of a tile, all words over which that row is spread.
    pub(crate) fn unpacking_cost(&self, values: u64, bits: u8, packing: Packing) -> Cost {
        let row = self.product_tile();
        let again = match (packing, Bits::new(bits)) {
            (Packing::Shared, Ok(bits)) if row.is_finite() => {
                let run = row as usize;
                let loaded = |layout: Layout| layout.words_of_run(run, bits) as f64;
                loaded(Layout::Interleaved) / loaded(Layout::Sequential)
            }
            _ => 1.0,
        };
        let loaded = code_bytes(values, bits).as_f64() * again;
        self.stream(Bytes(values * VALUE + loaded as u64), 1)
    }

    /// Unpacking `values` values inside a kernel that computes `columns` columns with them: once for each tile of
    /// columns, at the rate of a separate kernel, and without a launch.
    pub(crate) fn unpacking_within(&self, values: u64, bits: u8, columns: u64) -> Cost {
        let again = (columns as f64 / self.product_tile()).max(1.0);
        let busy = Nanos((self.unpacking_cost(values, bits, Packing::Unified).busy.0 as f64 * again) as u64);
        Cost { busy, dram: code_bytes(values, bits), occupancy: 1.0, stalls: by_dram(busy), ..Cost::default() }
    }

    /// The side of the square of outputs that a block of a product computes; an operand is read again for every one.
    fn product_tile(&self) -> f64 {
        match &self.processor {
            Processor::Gpu(_, on_gpu) => (THREADS * on_gpu.outputs_per_thread.value.0).sqrt(),
            Processor::Cpu(..) => f64::INFINITY,
        }
    }

    /// Whether quantised tensors are unpacked inside the kernels that read them.
    pub(crate) fn unpacks_within(&self, packing: Packing) -> bool {
        packing == Packing::Unified && matches!(self.processor, Processor::Gpu(..))
    }

    /// A system call for a block of memory.
    pub(crate) fn system_allocation(&self) -> Nanos {
        match &self.processor {
            Processor::Gpu(_, on_gpu) => on_gpu.system_allocation.value,
            Processor::Cpu(..) => Nanos::ZERO,
        }
    }

    /// Copying `bytes` from one place in memory to another.
    pub(crate) fn copying(&self, bytes: Bytes) -> Cost {
        let bandwidth = self.device.dram().bandwidth;
        let moved = Bytes(bytes.0 * 2);
        let busy = transfer(moved, bandwidth);
        Cost { busy, dram: moved, stalls: by_dram(busy), ..Cost::default() }
    }

    /// Kernels that stream `bytes` through packing code.
    fn stream(&self, bytes: Bytes, launches: u64) -> Cost {
        let bandwidth = self.device.dram().bandwidth;
        let (share, launch) = match &self.processor {
            Processor::Gpu(gpu, on_gpu) => {
                let launch = gpu.launch().0 as f64 * on_gpu.launch_factor.value.0;
                (on_gpu.packing_efficiency.value.0, on_gpu.operator_overhead.value + Nanos(launch as u64))
            }
            Processor::Cpu(_, on_cpu) => (1.0, on_cpu.operator_overhead.value),
        };
        let busy = transfer(bytes, BytesPerSecond(bandwidth.0 * share));
        Cost {
            launch: Nanos(launch.0 * launches),
            busy,
            dram: bytes,
            occupancy: 1.0,
            stalls: by_dram(busy),
            ..Cost::default()
        }
    }
}

/// The cost of the statistics of `values` values: as the epilogue of the kernel that makes them, by the plan that a
/// profile finds fastest, or by a framework's operators.
///
/// # Errors
/// A GPU that no kernel fits.
fn statistics_cost(gpu: &Gpu, on_gpu: &StackOnGpu, values: u64, control: Control) -> Result<Cost, KernelError> {
    let machine = Simt::of(gpu);
    let profiler = Profiler { gpu: gpu.clone(), machine, stack: Some(on_gpu.clone()), search: Search::default() };
    let time = match control {
        Control::Fused => profiler.fastest(&CONTROL, values, profiler.epilogue())?.time,
        Control::OwnKernels => profiler.time_of(&framework(&CONTROL, values, &machine)?),
    };
    Ok(time.cost())
}

/// Bytes that packing or unpacking moves: the values whole, and their codes.
pub(crate) fn packing_traffic(values: u64, bits: u8) -> Bytes {
    Bytes(values * VALUE) + code_bytes(values, bits)
}

/// Bytes of the codes only.
pub(crate) fn code_bytes(values: u64, bits: u8) -> Bytes {
    Bytes((values * u64::from(bits)).div_ceil(8))
}

/// All of `busy` waits for DRAM.
fn by_dram(busy: Nanos) -> Stalls {
    Stalls { dram: busy, ..Stalls::default() }
}

fn transfer(bytes: Bytes, bandwidth: BytesPerSecond) -> Nanos {
    Nanos::from_seconds(bytes.as_f64() / bandwidth.0)
}

/// The error bound of FedHybrid's codec, as a share of a tensor's range; the paper gives none.
pub const BOUND: f32 = 0.01;

/// The compression ratios of a graph's tensors, and the speed at which a machine compresses and swaps them.
pub(crate) struct CodecProfile<'a> {
    graph: &'a TrainingGraph,
    precision: Precision,
    /// Costs of compressing; `None` if the stack has no codec.
    codec: Option<Codec>,
    machine: &'a Machine,
}

/// A stack's codec on a machine.
struct Codec {
    /// Compression ratio of each tensor.
    ratios: Vec<f64>,
    compress: BytesPerSecond,
    decompress: BytesPerSecond,
}

impl<'a> CodecProfile<'a> {
    pub(crate) fn new(machine: &'a Machine, graph: &'a TrainingGraph, precision: Precision) -> Self {
        Self { graph, precision, codec: Codec::new(machine, graph), machine }
    }
}

impl RestoreProfile for CodecProfile<'_> {
    fn compression(&self, tensor: TensorId, samples: u64) -> Option<Compression> {
        let codec = self.codec.as_ref()?;
        let bytes = self.graph.tensor(tensor).bytes.at(samples) as f64;
        Some(Compression {
            bytes: Bytes((bytes / codec.ratios[tensor as usize]).ceil() as u64),
            compress: Nanos::from_seconds(bytes / codec.compress.0),
            decompress: Nanos::from_seconds(bytes / codec.decompress.0),
        })
    }

    fn swapping(&self, bytes: Bytes) -> Option<Swapping> {
        self.machine.swapping(bytes)
    }

    fn packing(&self, values: u64, bits: u8) -> Swapping {
        let [out, back] =
            [self.machine.packing_cost(values, bits), self.machine.unpacking_cost(values, bits, Packing::Gpu)];
        Swapping { out: out.alone(), back: back.alone() }
    }

    fn times_at(&self, samples: u64) -> Vec<Nanos> {
        self.machine.times(self.graph, samples, self.precision)
    }
}

impl Codec {
    /// The stack's codec on the cores of the machine; on all of the device's where a GPU trains.
    fn new(machine: &Machine, graph: &TrainingGraph) -> Option<Self> {
        let constants = machine.stack.constants.codec.as_ref()?;
        let beside = || machine.device.cpu()?.choose(CoreSelection::All, Frequency::Highest).ok();
        let cores = machine.cores().cloned().or_else(beside)?;
        let rate = |of_a_core: BytesPerCycle| BytesPerSecond(cycles(&cores) * of_a_core.0);
        Some(Self {
            ratios: ratios(constants, graph),
            compress: rate(constants.compress_rate.value),
            decompress: rate(constants.decompress_rate.value),
        })
    }
}

/// Cycles a second of all cores together.
fn cycles(cores: &CpuCores) -> f64 {
    cores.cores().iter().map(|core| core.frequency.0).sum()
}

/// Compression ratio of each tensor; 1 for tensors that are not maps.
fn ratios(codec: &CodecConstants, graph: &TrainingGraph) -> Vec<f64> {
    let ratio = |(kind, is_picture): (Option<MapKind>, bool)| {
        let ratios = if is_picture { &codec.pictures } else { &codec.tokens };
        kind.map_or(1.0, |kind| ratio_of(ratios, kind))
    };
    graph.map_kinds().into_iter().zip(pictures(graph)).map(ratio).collect()
}

/// The compression ratio of a stack's codec for tensors of a kind.
pub fn ratio_of(ratios: &CodecRatios, kind: MapKind) -> f64 {
    let own = match kind {
        MapKind::Dense => None,
        MapKind::Rectified => ratios.rectified.as_ref(),
        MapKind::Normalised => ratios.normalised.as_ref(),
        MapKind::Smooth => ratios.smooth.as_ref(),
        MapKind::Attention => ratios.attention.as_ref(),
    };
    own.unwrap_or(&ratios.dense).value.0
}

/// Whether each tensor has spatial maps: made by a convolution, or from such a tensor by an operator without a product.
fn pictures(graph: &TrainingGraph) -> Vec<bool> {
    let mut pictures = vec![false; graph.tensors.len()];
    for node in graph.nodes.iter().filter(|node| node.phase == Phase::Forward) {
        let is_picture = match node.work.kind {
            OperatorKind::Convolution | OperatorKind::DepthwiseConvolution => true,
            OperatorKind::Gemm => false,
            _ => node.inputs.iter().any(|&input| pictures[input as usize]),
        };
        node.outputs.iter().for_each(|&output| pictures[output as usize] = is_picture);
    }
    pictures
}
