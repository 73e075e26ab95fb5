//! Software stacks: the performance of a framework's kernels on a processor, and the overhead of calling them.
//!
//! A stack is a property of the run, not of the device.
//!
//! On a DSP, a stack consists of the vendor's libraries, each for certain generations, and of the host that drives it.

use crate::calibration::{BuiltIn, Contradiction, STACKS, against, section, words, zero_divisor};
use crate::{
    Bytes, BytesPerCycle, BytesPerFlop, BytesPerSecond, Calibrated, Constant, ConstantEntry, Count, Device, Factor,
    Fraction, GpuVendor, HexagonVersion, HostThread, InstructionSet, Interval, Kind, Nanos, OperatorKind, Schema,
    Visit,
};

section! {
    /// The share of a processor's peak that the stack's kernels reach, by kind of operator.
    pub struct Efficiency {
        /// Dense and grouped convolutions.
        pub convolution: Constant<Fraction>,
        /// Depthwise convolutions.
        pub depthwise_convolution: Constant<Fraction>,
        /// Matrix products.
        pub gemm: Constant<Fraction>,
        /// Element-wise maps.
        pub element_wise: Constant<Fraction>,
        /// Reductions.
        pub reduction: Constant<Fraction>,
        /// Copies.
        pub layout: Constant<Fraction>,
        /// Gathers and scatters.
        pub gather: Constant<Fraction>,
        /// Parameter updates.
        pub optimiser: Constant<Fraction>,
    }
}

impl Efficiency {
    /// The share for `kind`.
    pub fn of(&self, kind: OperatorKind) -> Fraction {
        match kind {
            OperatorKind::Convolution => self.convolution.value,
            OperatorKind::DepthwiseConvolution => self.depthwise_convolution.value,
            OperatorKind::Gemm => self.gemm.value,
            OperatorKind::ElementWise => self.element_wise.value,
            OperatorKind::Reduction => self.reduction.value,
            OperatorKind::Layout => self.layout.value,
            OperatorKind::Gather => self.gather.value,
            OperatorKind::Optimiser => self.optimiser.value,
        }
    }
}

section! {
    /// `[gpu]`: the stack on a GPU.
    pub struct StackOnGpu {
        /// The vendors of the GPUs that it runs on. Default: all.
        pub vendors: Option<Vec<GpuVendor>>,
        /// Shares of the peak.
        pub efficiency: Efficiency,
        /// Multiplies these shares on tensor cores, which starve before general units do.
        pub tensor_factor: Constant<Factor>,
        /// Outputs that one thread computes (its register tile).
        pub outputs_per_thread: Constant<Count>,
        /// Integer operations that an index-translating kernel spends on each element access. Lowering a graph
        /// multiplies it by the number of accesses to get `Work::integer_ops`.
        pub index_ops_per_access: Constant<Count>,
        /// The framework's time for an operator, without its launches.
        pub operator_overhead: Constant<Nanos>,
        /// The same as scalar work of the host's fastest core, in millionths of a CoreMark iteration;
        /// `operator_overhead` then applies only to hosts of unknown CoreMark.
        pub operator_work: Option<Constant<Factor>>,
        /// The framework's work for each launch, in the same unit. Default: zero.
        pub launch_work: Option<Constant<Factor>>,
        /// The cost of a launch in multiples of the device's figure.
        pub launch_factor: Constant<Factor>,
        /// A convolution or product in a single kernel takes this multiple of the time of its im2col or transposed
        /// form. Applied when a graph is lowered.
        pub direct_penalty: Constant<Factor>,
        /// Compilation time of each distinct kernel, once per run.
        pub compile: Constant<Nanos>,
        /// Winograd's algorithm divides the products of a dense 3×3 convolution of stride 1 by this; 1 if the
        /// stack does not use it.
        pub winograd_saving: Constant<Factor>,
        /// Values in a transformed tile per output, of maps and weights that are kept as workspace: 4 in F(2×2, 3×3),
        /// 2.25 in F(4×4, 3×3); 0 if none is kept.
        pub winograd_workspace: Constant<Factor>,
        /// Memory that the stack's libraries occupy from the first operator on.
        pub library_workspace: Constant<Bytes>,
        /// The share of DRAM's achievable bandwidth in kernels that pack and unpack bits.
        pub packing_efficiency: Constant<Fraction>,
        /// Duration of a call that allocates a block of memory from the system, or frees one.
        pub system_allocation: Constant<Nanos>,
        /// The vendor's library of products behind the stack; without it, the stack has its own simple kernels.
        pub library: Option<Library>,
    }
}

section! {
    /// `[gpu.library]`: products by a vendor's library (cuDNN, cuBLAS), called by an eager framework whose
    /// host runs ahead of the GPU.
    pub struct Library {
        /// The share of tensor cores' peak that the inner loops of forward convolutions reach.
        pub tensor_convolution: Constant<Fraction>,
        /// The same for their gradients, whose operands are strided and transposed.
        pub tensor_convolution_gradient: Constant<Fraction>,
        /// The share that matrix products reach.
        pub tensor_gemm: Constant<Fraction>,
        /// Integer operations per output of a depthwise convolution's own kernel, to compute indices.
        pub depthwise_output_ops: Constant<Count>,
        /// The same per tap of an output.
        pub depthwise_tap_ops: Constant<Count>,
        /// The same in the gradient of its weight, per output of the layer, in addition to those per tap.
        pub depthwise_weight_ops: Constant<Count>,
        /// The same per output in channels-last, where a different kernel reads adjacent channels.
        pub depthwise_channels_last: Constant<Factor>,
        /// In channels-last, the time of grouped convolutions without a kernel of their own, as a multiple of that of
        /// dense convolutions with the same tiles.
        pub grouped_channels_last: Constant<Factor>,
        /// The share of DRAM's achievable bandwidth that the framework's own kernels reach: maps, normalisations,
        /// copies.
        pub bandwidth: Constant<Fraction>,
        /// The longer side of its smallest tile. Default: no limit.
        pub least_tile: Option<Constant<Count>>,
        /// The first batch size for which it computes gradients of weights by Winograd's algorithm. Default: all.
        pub winograd_weight_batch: Option<Constant<Count>>,
        /// Kernels of an update; `update_traffic` is the bytes that they move as a multiple of the operands.
        pub update_launches: Constant<Count>,
        /// See `update_launches`.
        pub update_traffic: Constant<Factor>,
        /// Copies of the trained weights that an update by Adam holds. Default: none.
        pub adam_copies: Option<Constant<Count>>,
    }
}

impl StackOnGpu {
    /// The GPUs that the stack supports, and the one in `device`; `None` if it is among them.
    pub(crate) fn misfit(&self, device: &Device) -> Option<[String; 2]> {
        let (vendors, has) = (self.vendors.as_ref()?, device.constants.gpu.as_ref()?.vendor?);
        let made = |vendor: &GpuVendor| format!("GPUs of {vendor}");
        (!vendors.contains(&has)).then(|| [listed(vendors, made), format!("one of {has}")])
    }
}

impl StackOnCpu {
    /// Whether plain loops of scalar code compute operators of `kind`.
    pub fn sweeps(&self, kind: OperatorKind) -> bool {
        match kind {
            OperatorKind::Gather => true,
            OperatorKind::Reduction => !self.vector_reductions,
            OperatorKind::ElementWise | OperatorKind::Optimiser => !self.vector_maps,
            _ => false,
        }
    }

    /// The instruction sets that the stack supports, and that of `device`; `None` if it is among them.
    pub(crate) fn misfit(&self, device: &Device) -> Option<[String; 2]> {
        let (sets, has) = (self.instruction_sets.as_ref()?, device.constants.instruction_set?);
        let cores = |set: &InstructionSet| format!("{set} cores");
        (!sets.contains(&has)).then(|| [listed(sets, cores), format!("{has} cores")])
    }
}

fn listed<T>(all: &[T], name: impl Fn(&T) -> String) -> String {
    all.iter().map(name).collect::<Vec<_>>().join(" and ")
}

words! {
    /// How a stack multiplies eight-bit integers on a CPU.
    #[derive(Default)]
    pub enum Int8Kernels {
        /// By dot-product instructions (SDOT), four products a lane.
        #[default]
        DotProduct,
        /// By widening multiplications, as on cores without dot products.
        Widening,
    }

    /// The graph that a stack executes.
    pub enum StackGraph {
        /// Whole operators, as an eager framework records them.
        Eager,
        /// Operators decomposed into simpler ones, unoptimised.
        Decomposed,
        /// The same, optimised as the run specifies (Sage).
        Optimised,
        /// The commands that MNN 1.1 generates from its expressions.
        Commands,
        /// MNN's expressions, with their layout transformations.
        Expressions,
        /// None: the stack only runs inference.
        Inference,
    }

    /// The allocator of a stack's tensors.
    #[derive(Default)]
    pub enum AllocatorKind {
        /// A plan made before the run: every tensor has its own exact block.
        #[default]
        Exact,
        /// PyTorch's caching allocator.
        Caching,
        /// MNN's pool, which splits and merges its blocks.
        Pool,
    }

    /// How attention is computed.
    #[derive(Default)]
    pub enum Attention {
        /// Its products and its softmax as separate kernels, with the scores in memory.
        #[default]
        Math,
        /// In one kernel that computes a tile of the scores at a time (Dao et al., arXiv 2205.14135).
        Fused,
    }

    /// Operators that an inference engine merges into the preceding convolution or dense layer when it prepares a
    /// network.
    pub enum Fold {
        /// Batch normalisation with fixed statistics, merged into the weights.
        BatchNorm,
        /// ReLU and similar functions, applied as results are written.
        Activation,
    }
}

section! {
    /// `[cpu]`: the stack on a CPU.
    pub struct StackOnCpu {
        /// The instruction sets that it is compiled for. Default: all.
        pub instruction_sets: Option<Vec<InstructionSet>>,
        /// Shares of the peak.
        pub efficiency: Efficiency,
        /// The framework's time for an operator.
        pub operator_overhead: Constant<Nanos>,
        /// The same as scalar work, in millionths of a CoreMark iteration; the time then applies only to
        /// cores of unknown CoreMark.
        pub operator_work: Option<Constant<Factor>>,
        /// Time to start threads on an operator and to wait for the last of them, per doubling of their number, as a
        /// multiple of an operator's overhead. Default: zero.
        pub fork_join: Option<Constant<Factor>>,
        /// Whether layouts are packed: a convolution lays out its windows in vectors of channels before it multiplies,
        /// and threads divide products into whole vectors of output channels. Default: no.
        pub packed: Option<bool>,
        /// Outputs per side of the tiles of Winograd's algorithm, F(4×4, 3×3) for 4, for dense 3×3 convolutions of
        /// stride 1 in packed layouts. Default: no such algorithm.
        pub winograd_tile: Option<Constant<Count>>,
        /// Whether inference, which prepares a network once and runs it many times, chooses Winograd tiles for each map
        /// by their operations (MNN's `bestWinogradUnit`). Training does not, since its weights change.
        #[serde(default)]
        pub session_tiles: bool,
        /// Number of output channels that read the transformed tiles of all inputs together, ahead of the arithmetic;
        /// each further group reads them again. Default: tiles are read once.
        pub winograd_rows: Option<Constant<Count>>,
        /// Rows of the left matrix in a tile of a product. Threads get whole tiles, so products with few rows use few
        /// threads. Default, and for a single row: all threads take part in every product.
        pub tile_rows: Option<Constant<Count>>,
        /// As for a GPU.
        pub direct_penalty: Constant<Factor>,
        /// The host's time to prepare an operator, if a graph is rebuilt for every training batch. Default: zero.
        /// Inference pays neither this nor first touches, since a session is prepared once and run many times (MNN's
        /// wiki, session; TensorFlow Lite's `AllocateTensors`).
        pub preparation: Option<Constant<Nanos>>,
        /// The same as scalar work, in millionths of a CoreMark iteration; `preparation` then applies only to
        /// cores of unknown CoreMark.
        pub preparation_work: Option<Constant<Factor>>,
        /// The kernel's work on the first touch of a page, in millionths of a CoreMark iteration, if the allocator maps
        /// fresh memory for every training batch. Default: the allocator keeps its pages.
        pub first_touch: Option<Constant<Factor>>,
        /// The share of forward operators' outputs in such pages. Default: all.
        pub fresh_share: Option<Constant<Fraction>>,
        /// Idle threads of an operator spin until they have work, which keeps the cores busy; this is the share
        /// of the spinning time that the system's kernel takes, since they yield the core again and again.
        /// Default: idle threads sleep.
        pub yielding: Option<Constant<Fraction>>,
        /// Power of a core with a spinning thread, as a share of that with a vector kernel. Default: the same power.
        pub spinning_power: Option<Constant<Fraction>>,
        /// The share of DRAM's bandwidth that its kernels reach, both in total and per core. Default: all of it.
        pub bandwidth: Option<Constant<Fraction>>,
        /// `dot-product` or `widening`.
        pub int8: Int8Kernels,
        /// Bytes that the tiles of a dense product move through memory per FP32 operation; in other formats, in
        /// proportion to the element size. They do not overlap with the arithmetic.
        pub product_traffic: Constant<BytesPerFlop>,
        /// Bytes of operands and results that a core lays out per cycle, before and after a convolution's
        /// multiplications and without overlap. Default: laying out takes no time.
        pub convolution_operands: Option<Constant<BytesPerCycle>>,
        /// The same for matrix products.
        pub gemm_operands: Option<Constant<BytesPerCycle>>,
        /// Number of positions that a convolution computes together in framed maps. It also computes the window's
        /// overlap at the end of each row, and the rest of the last group of positions (`src/processor/cpu.rs`).
        pub frame: Option<Constant<Count>>,
        /// Work per operation of element-wise maps, reductions, gathers and updates if they are scalar code, in
        /// millionths of a CoreMark iteration; their efficiency then applies only to cores of unknown CoreMark.
        pub sweep_work: Option<Constant<Factor>>,
        /// Whether element-wise maps and updates are vector code nevertheless, so that their efficiency applies.
        #[serde(default)]
        pub vector_maps: bool,
        /// The same for reductions.
        #[serde(default)]
        pub vector_reductions: bool,
        /// The efficiency of a core's DRAM traffic in a copy of single elements, each of which moves a whole cache
        /// line. Default: as efficient as a stream.
        pub irregular_share: Option<Constant<Fraction>>,
    }
}

section! {
    /// `[codec]`: compression of feature maps within an error bound, on the cores that train.
    pub struct CodecConstants {
        /// Bytes of uncompressed values that a core compresses per cycle.
        pub compress_rate: Constant<BytesPerCycle>,
        /// Bytes of uncompressed values that a core decompresses per cycle.
        pub decompress_rate: Constant<BytesPerCycle>,
        /// Compression ratios of maps of pictures.
        pub pictures: CodecRatios,
        /// Compression ratios of maps of tokens.
        pub tokens: CodecRatios,
    }
}

section! {
    /// `[codec.pictures]` and `[codec.tokens]`: compression ratios of maps, by the operator that
    /// produced them. Default: `dense`.
    pub struct CodecRatios {
        /// Outputs of products and sums.
        pub dense: Constant<Factor>,
        /// Outputs of ReLUs.
        pub rectified: Option<Constant<Factor>>,
        /// Outputs of normalisations.
        pub normalised: Option<Constant<Factor>>,
        /// Outputs of smooth functions, such as GELU.
        pub smooth: Option<Constant<Factor>>,
        /// Outputs of softmax.
        pub attention: Option<Constant<Factor>>,
    }
}

section! {
    /// `[planning]`: one thread makes memory plans, and they are sent over a link.
    pub struct PlanningConstants {
        /// Work per operation, which scores a tensor or visits an operator, in millionths of a CoreMark iteration.
        pub operation: Constant<Factor>,
        /// CoreMark iterations per second of the server's core.
        pub server: Constant<Factor>,
        /// The rate of the link to the server.
        pub link: Constant<BytesPerSecond>,
    }
}

section! {
    /// `[factors]`: scale factors of integer training, late in training. For each kind of tensor, the standard
    /// deviation between mini-batches of log₂ of its largest magnitude, in bits.
    pub struct FactorConstants {
        /// Outputs of layers.
        pub output: Constant<Factor>,
        /// Gradients of their inputs. Default: as outputs.
        pub input_gradient: Option<Constant<Factor>>,
        /// Gradients of their weights. Default: as outputs.
        pub weight_gradient: Option<Constant<Factor>>,
    }
}

impl CodecRatios {
    /// The name of a ratio below one, by which maps would become larger.
    fn below_one(&self) -> Option<String> {
        let mut below = None;
        self.clone().visit("", &mut |name, constant| {
            if constant.entry("", "").value < 1.0 {
                below = Some(name.to_owned());
            }
        });
        below
    }
}

section! {
    /// `[housekeeping]`: the work of the host's thread, which drives the accelerator and keeps the run's tables.
    pub struct Housekeeping {
        /// The share of its waiting time for the accelerator that it polls; in the rest it sleeps until it is woken.
        pub polling: Constant<Fraction>,
        /// Work of comparing two entries of a page table, in thousandths of a CoreMark iteration.
        pub table_comparison: Constant<Factor>,
        /// Work of moving or relinking one of them, in the same unit.
        pub table_move: Constant<Factor>,
    }
}

section! {
    /// All constants of a stack's calibration: the top level of the file.
    pub struct StackConstants {
        /// Another stack of which this one overrides a few numbers: an id, or a file in the same folder.
        pub base: Option<String>,
        /// The stack.
        pub name: String,
        /// Choices and doubts worth knowing.
        pub remark: Option<String>,
        /// `eager`, `decomposed`, `optimised`, `commands`, `expressions` or `inference`.
        pub graph: StackGraph,
        /// The operators that are folded into products for inference, where networks are prepared with their weights in
        /// the run's format. Without it, only a stack whose graph is `eager` runs inference, on the unchanged network.
        pub folds: Option<Vec<Fold>>,
        /// `exact`, `caching` or `pool`.
        pub allocator: AllocatorKind,
        /// `math` or `fused`: how the framework computes attention on a GPU.
        #[serde(default)]
        pub attention: Attention,
        /// Bytes per element of a dropout mask.
        pub dropout_mask: Constant<Bytes>,
        /// Allocations are rounded up to a multiple of this.
        pub allocation_rounding: Constant<Bytes>,
        /// Whether an in-place activation saves its result, where other stacks save a copy of its input.
        #[serde(default)]
        pub saves_results: bool,
        /// Memory of a training process other than tensors: the context of a GPU, libraries, an interpreter. It counts
        /// against the device's memory. Default: zero.
        pub process: Option<Constant<Bytes>>,
        /// On a GPU.
        pub gpu: Option<StackOnGpu>,
        /// On a CPU.
        pub cpu: Option<StackOnCpu>,
        /// On a DSP.
        pub dsp: Option<StackOnDsp>,
        /// The host's thread.
        pub housekeeping: Option<Housekeeping>,
        /// Speed and ratios of compression; without it, policies cannot compress.
        pub codec: Option<CodecConstants>,
        /// The cost of planning; without it, planning operations are counted but take no time.
        pub planning: Option<PlanningConstants>,
        /// The variation of scale factors; without it, their changes cannot be drawn.
        pub factors: Option<FactorConstants>,
    }
}

/// A software stack: the constants of its calibration, and the file that they come from.
pub type Stack = Calibrated<StackConstants>;

impl Stack {
    /// The stack on a GPU, if it has kernels for one.
    pub fn gpu(&self) -> Option<&StackOnGpu> {
        self.constants.gpu.as_ref()
    }

    /// The stack on a CPU, if it has kernels for one.
    pub fn cpu(&self) -> Option<&StackOnCpu> {
        self.constants.cpu.as_ref()
    }

    /// The stack on a DSP, if it has kernels for one.
    pub fn dsp(&self) -> Option<&StackOnDsp> {
        self.constants.dsp.as_ref()
    }

    /// Memory of a training process other than tensors.
    pub fn process(&self) -> Bytes {
        self.constants.process.as_ref().map_or(Bytes::ZERO, |process| process.value)
    }

    /// Whether it has kernels for the CPU or the GPU of `device`.
    pub fn runs_on(&self, device: &Device) -> bool {
        let [cpu, gpu, _] = self.processors_of(device);
        cpu || gpu
    }

    /// Whether it has kernels for the CPU, the GPU and the DSP of `device`, with its vendor and instruction set.
    pub fn processors_of(&self, device: &Device) -> [bool; 3] {
        let cpu = self.cpu().filter(|_| device.cpu().is_some());
        let gpu = self.gpu().filter(|_| device.gpu().is_some());
        [
            cpu.is_some_and(|cpu| cpu.misfit(device).is_none()),
            gpu.is_some_and(|gpu| gpu.misfit(device).is_none()),
            self.dsp().is_some() && device.constants.dsp.is_some(),
        ]
    }

    /// The time of the host's thread on `device` for a number of comparisons and moves of table entries, on the core
    /// and at the frequency that Linux gives to a thread with the other load in `host`; `None` if the stack or the
    /// device lacks a constant for this.
    pub fn table_time(&self, device: &Device, comparisons: u64, moves: u64, host: &HostThread) -> Option<Nanos> {
        let housekeeping = self.constants.housekeeping.as_ref()?;
        let comparing = comparisons as f64 * housekeeping.table_comparison.value.0;
        let moving = moves as f64 * housekeeping.table_move.value.0;
        let iterations = (comparing + moving) * 1e-3;
        let fastest = device.core_for(Fraction(1.0))?;
        let working = (host.working + fastest.scalar_time(iterations)?).seconds() / host.span.seconds();
        let waiting = (1.0 - working).max(0.0) * housekeeping.polling.value.0;
        device.core_for(Fraction(working + waiting))?.scalar_time(iterations)
    }
}

/// Divisors other than rates and efficiencies.
const DIVISORS: &[&str] = &[
    "gpu.packing_efficiency",
    "gpu.winograd_saving",
    "gpu.tensor_factor",
    "gpu.library.tensor_convolution",
    "gpu.library.tensor_convolution_gradient",
    "gpu.library.tensor_gemm",
    "gpu.library.bandwidth",
    "dsp.library.product_efficiency",
    "dsp.library.gradient_efficiency",
    "cpu.winograd_tile",
    "cpu.winograd_rows",
    "cpu.tile_rows",
    "cpu.frame",
    "planning.server",
    "planning.link",
];

impl Schema for StackConstants {
    const WHAT: &'static str = "software stack";
    const BUILT_IN: &'static [BuiltIn] = STACKS;

    fn line(&self) -> String {
        self.name.clone()
    }

    fn contradiction(&self) -> Option<Contradiction> {
        let gpu = self.gpu.iter().map(|gpu| ("gpu", &gpu.efficiency));
        let cpu = self.cpu.iter().map(|cpu| ("cpu", &cpu.efficiency));
        for (section, efficiency) in gpu.chain(cpu) {
            if let Some(kind) = OperatorKind::ALL.iter().find(|&&kind| efficiency.of(kind).0 <= 0.0) {
                return against(section, format!("the efficiency of {kind} is zero: no work would ever end"));
            }
        }
        if let Some(contradiction) = self.dsp.as_ref().and_then(StackOnDsp::contradiction) {
            return Some(contradiction);
        }
        let codec = self.codec.iter();
        let ratios = codec.flat_map(|codec| [("codec.pictures", &codec.pictures), ("codec.tokens", &codec.tokens)]);
        for (section, ratios) in ratios {
            if let Some(name) = ratios.below_one() {
                return against(section, format!("{name} is below one: what would become larger is not compressed"));
            }
        }
        zero_divisor(self, DIVISORS)
    }
}

/// The constants of a device and a stack that were fitted to reference numbers, for `run.json`.
pub fn fitted_constants(device: &Device, stack: &Stack) -> Vec<ConstantEntry> {
    let mut entries = device.entries();
    entries.extend(stack.entries());
    entries.retain(|entry| entry.kind == Kind::Fitted);
    entries
}

// The graph that a stack executes, the operators that it folds for inference, and the allocator of its tensors.

section! {
    /// `[dsp]`: the stack on a DSP, with the host that drives it.
    pub struct StackOnDsp {
        /// Dispatch of an operator within a subgraph.
        pub operator_overhead: Constant<Nanos>,
        /// Preparing a subgraph: its memory and its references.
        pub preparation: Constant<Nanos>,
        /// Products of at most this depth in samples run unpadded.
        pub short_depth: Constant<Count>,
        /// Deeper ones are padded to a multiple of it.
        pub depth_padding: Constant<Count>,
        /// Bytes per cycle at which operands stream from L2.
        pub l2_rate: Constant<BytesPerCycle>,
        /// The wait per line that misses L2: DRAM's latency divided by the number of lines in flight.
        pub miss: Constant<Interval>,
        /// The host's time per cache line of a buffer that crosses between the processors, on cores of unknown
        /// CoreMark: to lay it out for the other side, and to clean or invalidate it.
        pub line: Constant<Interval>,
        /// The same as scalar work, in millionths of a CoreMark iteration. Default: `line` on all cores.
        pub line_work: Option<Constant<Factor>>,
        /// The share of the time that the host's cores run while they wait for the DSP, and thus
        /// the share of their power.
        pub waiting_share: Constant<Fraction>,
        /// The libraries that it calls.
        pub library: Vec<DspLibrary>,
    }
}

section! {
    /// `[[dsp.library]]`: the performance of one of the vendor's libraries on its generations of the DSP.
    pub struct DspLibrary {
        /// The library.
        pub name: String,
        /// The oldest generation that it runs on. It also serves all later ones up to the `from` of the next library.
        pub from: HexagonVersion,
        /// The share of the vector units' eight-bit peak that its products reach.
        pub product_efficiency: Constant<Fraction>,
        /// The same for weights' gradients, convolutions whose depth is the batch. Default: `product_efficiency`.
        pub gradient_efficiency: Option<Constant<Fraction>>,
        /// Bytes that a hardware thread reads and writes per cycle in operators that move elements one by one in scalar
        /// code: transposition, rotation, slicing. Default: as fast as a stream.
        pub irregular_rate: Option<Constant<BytesPerCycle>>,
    }
}

impl StackOnDsp {
    /// The library for a DSP of `version`: the latest that is not newer. `None` if all are.
    pub fn library(&self, version: HexagonVersion) -> Option<&DspLibrary> {
        self.library.iter().filter(|library| library.from <= version).max_by_key(|library| library.from)
    }

    fn contradiction(&self) -> Option<Contradiction> {
        if self.depth_padding.value.0 < 1.0 {
            return against("dsp", "depth_padding is below one: work is divided by it");
        }
        if self.library.is_empty() {
            return against("dsp", "it needs a [[dsp.library]]");
        }
        let begun_by = |from| self.library.iter().filter(move |library| library.from == from).count();
        let twice = self.library.iter().find(|library| begun_by(library.from) > 1)?;
        against("dsp.library", format!("two libraries begin with {}", twice.from))
    }
}
