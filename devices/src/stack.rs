//! Software stacks: what a framework's kernels make of a processor, and what it costs to call them.
//!
//! A stack is a property of the run, not of the device.
//!
//! A stack on a DSP: the libraries of its vendor, each for the generations that it is built for, and the host that drives it.

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
        /// Whose GPUs it runs on; everybody's where it is not given.
        pub vendors: Option<Vec<GpuVendor>>,
        /// Shares of the peak.
        pub efficiency: Efficiency,
        /// The share of the share that is left on tensor cores, which starve before general units do.
        pub tensor_factor: Constant<Factor>,
        /// Outputs that one thread computes (its register tile).
        pub outputs_per_thread: Constant<Count>,
        /// Integer operations that an index-translating kernel spends on each element access. Whoever lowers the
        /// graph multiplies it by the accesses into `Work::integer_ops`.
        pub index_ops_per_access: Constant<Count>,
        /// Framework cost of an operator, beside its launches.
        pub operator_overhead: Constant<Nanos>,
        /// The same as scalar work of the host's fastest core, in millionths of a CoreMark iteration; `operator_overhead` is for
        /// hosts whose CoreMark is not known.
        pub operator_work: Option<Constant<Factor>>,
        /// The framework's work for each launch, likewise; none where it is not given.
        pub launch_work: Option<Constant<Factor>>,
        /// The cost of a launch in multiples of the device's figure.
        pub launch_factor: Constant<Factor>,
        /// A single-kernel convolution or product takes this multiple of the im2col or transposed form. Applied by
        /// whoever lowers the graph.
        pub direct_penalty: Constant<Factor>,
        /// Compilation of a distinct kernel, once a run.
        pub compile: Constant<Nanos>,
        /// Winograd's algorithm divides the products of a dense 3×3 convolution of stride 1 by this; 1 if the
        /// stack does not use it.
        pub winograd_saving: Constant<Factor>,
        /// Values in a transformed tile for each output of it, of maps and weights that are kept as workspace: 4 in
        /// F(2×2, 3×3), 2.25 in F(4×4, 3×3); 0 if none is kept.
        pub winograd_workspace: Constant<Factor>,
        /// Memory that the stack's libraries hold from the first operator on.
        pub library_workspace: Constant<Bytes>,
        /// The share of DRAM's achievable bandwidth that kernels which pack and unpack bits reach.
        pub packing_efficiency: Constant<Fraction>,
        /// Time of a call that asks the system for a block of memory, or gives one back.
        pub system_allocation: Constant<Nanos>,
        /// The vendor's library of products behind the stack; the stack has simple kernels of its own where it is absent.
        pub library: Option<Library>,
    }
}

section! {
    /// `[gpu.library]`: products by a vendor's library (cuDNN, cuBLAS), called by an eager framework whose host runs ahead
    /// of the GPU.
    pub struct Library {
        /// The share of tensor cores' peak that the inner loops of convolutions reach in forward.
        pub tensor_convolution: Constant<Fraction>,
        /// The same for their gradients, whose operands come by strides and transposed.
        pub tensor_convolution_gradient: Constant<Fraction>,
        /// The share that matrix products reach.
        pub tensor_gemm: Constant<Fraction>,
        /// Integer operations that a depthwise convolution's own kernel spends on an output: finding its place.
        pub depthwise_output_ops: Constant<Count>,
        /// Those that it spends on each tap of an output.
        pub depthwise_tap_ops: Constant<Count>,
        /// Those that the gradient of its weight spends on an output of the layer, beside those on its taps.
        pub depthwise_weight_ops: Constant<Count>,
        /// The same of an output in channels-last, where another kernel reads channels side by side.
        pub depthwise_channels_last: Constant<Factor>,
        /// How many times longer than dense convolutions of their tiles those in groups take in channels-last that have no
        /// kernel of their own.
        pub grouped_channels_last: Constant<Factor>,
        /// The share of DRAM's achievable bandwidth that the framework's own kernels reach: maps, normalisations, copies.
        pub bandwidth: Constant<Fraction>,
        /// The longer side of its smallest tile; as small as any where it is not given.
        pub least_tile: Option<Constant<Count>>,
        /// The first batch for which it computes gradients of weights by Winograd's algorithm; any where it is not given.
        pub winograd_weight_batch: Option<Constant<Count>>,
        /// Kernels of an update, and the bytes that they move as a multiple of the operands.
        pub update_launches: Constant<Count>,
        /// See `update_launches`.
        pub update_traffic: Constant<Factor>,
    }
}

impl StackOnGpu {
    /// What it runs on, and what `device` has instead; `None` if they fit.
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

    /// What it runs on, and what `device` has instead; `None` if they fit.
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
        /// By widening multiplications, as on cores without them.
        Widening,
    }

    /// The graph that a stack executes.
    pub enum StackGraph {
        /// Whole operators, as an eager framework records them.
        Eager,
        /// Operators decomposed into computable ones, as they are.
        Decomposed,
        /// The same, optimised as far as a run asks for (Sage).
        Optimised,
        /// The commands that MNN 1.1 makes of its expressions.
        Commands,
        /// MNN's expressions, with their layout transformations.
        Expressions,
        /// None: the stack runs networks and does not train them.
        Inference,
    }

    /// Where a stack's tensors come from.
    #[derive(Default)]
    pub enum AllocatorKind {
        /// A plan made before the run: every tensor its own exact piece.
        #[default]
        Exact,
        /// PyTorch's caching allocator.
        Caching,
        /// MNN's pool, which splits and merges its blocks.
        Pool,
    }

    /// What an inference engine computes within the convolution or the dense layer before it, when it prepares a network.
    pub enum Fold {
        /// Batch normalisation by known statistics, in the weights.
        BatchNorm,
        /// ReLU and its like, as results are written.
        Activation,
    }
}

section! {
    /// `[cpu]`: the stack on a CPU.
    pub struct StackOnCpu {
        /// The instruction sets that it is compiled for; all where it is not given.
        pub instruction_sets: Option<Vec<InstructionSet>>,
        /// Shares of the peak.
        pub efficiency: Efficiency,
        /// Framework cost of an operator.
        pub operator_overhead: Constant<Nanos>,
        /// The same as scalar work, in millionths of a CoreMark iteration; the time is for cores whose CoreMark is not known.
        pub operator_work: Option<Constant<Factor>>,
        /// Starting threads on a part of an operator and waiting for the last of them, for every doubling of their number,
        /// as a multiple of the cost of an operator. Threads cost nothing where it is not given.
        pub fork_join: Option<Constant<Factor>>,
        /// Whether layouts are packed: a convolution lays out its windows in vectors of channels before it multiplies, and
        /// threads share products by whole vectors of output channels. Not where it is not given.
        pub packed: Option<bool>,
        /// Outputs on the side of a tile of Winograd's algorithm, F(4×4, 3×3) for 4, by which packed layouts compute dense 3×3
        /// convolutions of stride 1; they do not where it is not given.
        pub winograd_tile: Option<Constant<Count>>,
        /// Whether a network that is prepared once and run many times has tiles of Winograd's algorithm, each map's by its
        /// operations (MNN's `bestWinogradUnit`); training, whose weights change, does without.
        #[serde(default)]
        pub session_tiles: bool,
        /// Output channels that read the transformed tiles of all inputs at once, ahead of the arithmetic; the next as many
        /// read them again. Tiles are read once where it is not given.
        pub winograd_rows: Option<Constant<Count>>,
        /// Rows of the left matrix in a tile of a product: threads have whole tiles, so that few rows are few threads' work. All
        /// have a part in every product where it is not given, or where there is one row.
        pub tile_rows: Option<Constant<Count>>,
        /// As on the GPU.
        pub direct_penalty: Constant<Factor>,
        /// The host's time to prepare an operator, where a graph is prepared anew for every batch of training; none is where
        /// it is not given. Inference pays for neither this nor first touches: a session is prepared once and run many times
        /// (MNN's wiki, session; TensorFlow Lite's `AllocateTensors`).
        pub preparation: Option<Constant<Nanos>>,
        /// The same as scalar work, in millionths of a CoreMark iteration; `preparation` is for cores whose CoreMark is not
        /// known.
        pub preparation_work: Option<Constant<Factor>>,
        /// The kernel's work on each page that is touched for the first time, in millionths of a CoreMark iteration, where
        /// the allocator maps memory anew for every batch of training; it keeps its pages where it is not given.
        pub first_touch: Option<Constant<Factor>>,
        /// The share of what forward's operators make that lies in such pages; all of it where it is not given.
        pub fresh_share: Option<Constant<Fraction>>,
        /// Threads that have no part in an operator spin until they have, and so busy the cores: the share of that which the
        /// system's kernel takes, which they give the core to again and again. They sleep where it is not given.
        pub yielding: Option<Constant<Fraction>>,
        /// What a core draws on which a thread spins, as a share of one that runs a vector kernel; as much where it is not given.
        pub spinning_power: Option<Constant<Fraction>>,
        /// The share of DRAM's bandwidth, together and of a core alone, that its kernels reach; all of it where it is not given.
        pub bandwidth: Option<Constant<Fraction>>,
        /// `dot-product` or `widening`.
        pub int8: Int8Kernels,
        /// Bytes that the tiles of a dense product move through memory for each FP32 operation, in proportion to the
        /// element in other formats; the arithmetic does not hide them.
        pub product_traffic: Constant<BytesPerFlop>,
        /// Bytes of its operands and results that a core lays out for a convolution in each cycle, before it multiplies and
        /// after, which the arithmetic does not hide; nothing where it is not given.
        pub convolution_operands: Option<Constant<BytesPerCycle>>,
        /// The same for a product of matrices.
        pub gemm_operands: Option<Constant<BytesPerCycle>>,
        /// Positions that a convolution computes side by side where maps lie in frames: the window's overlap at the end of
        /// each row is computed too, and so is the rest of the last group of positions (`src/processor/cpu/frames.rs`).
        pub frame: Option<Constant<Count>>,
        /// Work of one operation of element-wise maps, reductions, gathers and updates where they are scalar code, in
        /// millionths of a CoreMark iteration; their efficiency is for cores whose CoreMark is not known.
        pub sweep_work: Option<Constant<Factor>>,
        /// Whether element-wise maps and updates are vector code all the same, so that their efficiency counts.
        #[serde(default)]
        pub vector_maps: bool,
        /// The same of reductions.
        #[serde(default)]
        pub vector_reductions: bool,
        /// The share of what a core draws from DRAM that a copy of single elements uses: a line is moved for each. As much
        /// as a stream where it is not given.
        pub irregular_share: Option<Constant<Fraction>>,
    }
}

section! {
    /// `[codec]`: compression of feature maps within an error bound, on the cores that train.
    pub struct CodecConstants {
        /// Bytes of values that a core compresses in a cycle.
        pub compress_rate: Constant<BytesPerCycle>,
        /// Bytes of values that a core gets back in a cycle.
        pub decompress_rate: Constant<BytesPerCycle>,
        /// How many times smaller it makes maps of pictures.
        pub pictures: CodecRatios,
        /// The same of tokens.
        pub tokens: CodecRatios,
    }
}

section! {
    /// `[codec.pictures]` and `[codec.tokens]`: how many times smaller maps become, by what made them; what is not given is
    /// as `dense`.
    pub struct CodecRatios {
        /// What products and sums make.
        pub dense: Constant<Factor>,
        /// What ReLUs make.
        pub rectified: Option<Constant<Factor>>,
        /// What normalisations make.
        pub normalised: Option<Constant<Factor>>,
        /// What functions without a kink make, GELU and its like.
        pub smooth: Option<Constant<Factor>>,
        /// What softmax makes.
        pub attention: Option<Constant<Factor>>,
    }
}

section! {
    /// `[planning]`: making plans for memory, which one thread does, and sending them.
    pub struct PlanningConstants {
        /// Work of one operation, the scoring of a tensor or the visit of an operator, in millionths of a CoreMark
        /// iteration.
        pub operation: Constant<Factor>,
        /// CoreMark iterations a second of the server's core.
        pub server: Constant<Factor>,
        /// The rate of the link to the server.
        pub link: Constant<BytesPerSecond>,
    }
}

section! {
    /// `[factors]`: the scale factors of training in integers, late in training. Of each kind of tensor the standard
    /// deviation of log₂ of its largest magnitude from mini-batch to mini-batch, in bits.
    pub struct FactorConstants {
        /// Outputs of layers.
        pub output: Constant<Factor>,
        /// Gradients of their inputs; as outputs where it is not given.
        pub input_gradient: Option<Constant<Factor>>,
        /// Gradients of their weights; as outputs where it is not given.
        pub weight_gradient: Option<Constant<Factor>>,
    }
}

impl CodecRatios {
    /// The name of a ratio that says that maps become larger.
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
    /// `[housekeeping]`: the host's thread, which drives the accelerator and keeps the run's tables, and what that takes.
    pub struct Housekeeping {
        /// The share of the time that it waits for the accelerator in which it polls; in the rest it sleeps until it is woken.
        pub polling: Constant<Fraction>,
        /// Work of comparing two entries of a page table, in thousandths of a CoreMark iteration.
        pub table_comparison: Constant<Factor>,
        /// Work of moving or relinking one of them, likewise.
        pub table_move: Constant<Factor>,
    }
}

section! {
    /// All that a stack's calibration holds; the top of the file.
    pub struct StackConstants {
        /// Another stack of which this one overrides a few numbers: an id, or a file beside this one.
        pub base: Option<String>,
        /// The stack.
        pub name: String,
        /// Choices and doubts that a reader should know.
        pub remark: Option<String>,
        /// `eager`, `decomposed`, `optimised`, `commands`, `expressions` or `inference`.
        pub graph: StackGraph,
        /// What is folded into products where networks are run and not trained; they are prepared for that, with their
        /// weights in the format of the run. Without it only a stack whose graph is `eager` runs them, as they are.
        pub folds: Option<Vec<Fold>>,
        /// `exact`, `caching` or `pool`.
        pub allocator: AllocatorKind,
        /// Bytes an element of a dropout mask.
        pub dropout_mask: Constant<Bytes>,
        /// Allocations are rounded up to a multiple of this.
        pub allocation_rounding: Constant<Bytes>,
        /// Whether an activation in place saves its result, where others save a copy of its input.
        #[serde(default)]
        pub saves_results: bool,
        /// What a process that trains holds beside tensors: the context of a GPU, libraries, an interpreter. It counts against
        /// the device's memory; nothing where it is not given.
        pub process: Option<Constant<Bytes>>,
        /// On a GPU.
        pub gpu: Option<StackOnGpu>,
        /// On a CPU.
        pub cpu: Option<StackOnCpu>,
        /// On a DSP.
        pub dsp: Option<StackOnDsp>,
        /// Who keeps tables.
        pub housekeeping: Option<Housekeeping>,
        /// How fast tensors are compressed; without it policies cannot.
        pub codec: Option<CodecConstants>,
        /// What plans cost; without it they are counted and take no time.
        pub planning: Option<PlanningConstants>,
        /// How scale factors scatter; without it nobody can draw when they change.
        pub factors: Option<FactorConstants>,
    }
}

/// A software stack: what its calibration holds, and the file that this is from.
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

    /// What a process that trains holds beside tensors.
    pub fn process(&self) -> Bytes {
        self.constants.process.as_ref().map_or(Bytes::ZERO, |process| process.value)
    }

    /// Whether it has kernels for a CPU or a GPU of `device`, and runs on the one that is there.
    pub fn runs_on(&self, device: &Device) -> bool {
        let [cpu, gpu, _] = self.processors_of(device);
        cpu || gpu
    }

    /// Whether it has kernels for the CPU, the GPU and the DSP of `device`, of that vendor and instruction set.
    pub fn processors_of(&self, device: &Device) -> [bool; 3] {
        let cpu = self.cpu().filter(|_| device.cpu().is_some());
        let gpu = self.gpu().filter(|_| device.gpu().is_some());
        [
            cpu.is_some_and(|cpu| cpu.misfit(device).is_none()),
            gpu.is_some_and(|gpu| gpu.misfit(device).is_none()),
            self.dsp().is_some() && device.constants.dsp.is_some(),
        ]
    }

    /// The time that the host's thread on `device` takes for a number of comparisons and moves of table entries, on the
    /// core and at the frequency at which Linux lets a thread run that is loaded as `host` says beside them; `None` if the
    /// stack or the device does not say.
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

/// What work is divided by beside the rates and the efficiencies.
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

// What a stack executes, what it makes of a network that it only runs, and where its tensors come from.

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
        /// Bytes a cycle at which operands stream from L2.
        pub l2_rate: Constant<BytesPerCycle>,
        /// The wait for each line that misses L2: DRAM's latency, over the lines that are fetched at a time.
        pub miss: Constant<Interval>,
        /// The host's time for a cache line of a buffer that crosses between the processors, on cores whose CoreMark is not
        /// known: to lay it out for the other side, and to clean or invalidate it.
        pub line: Constant<Interval>,
        /// The same as scalar work, in millionths of a CoreMark iteration; always that time where it is not given.
        pub line_work: Option<Constant<Factor>>,
        /// The share of the time, and so of their power, for which the host's cores run while they wait for the DSP.
        pub waiting_share: Constant<Fraction>,
        /// The libraries that it calls.
        pub library: Vec<DspLibrary>,
    }
}

section! {
    /// `[[dsp.library]]`: what a library of the vendor's reaches on the generations of the DSP that it is built for.
    pub struct DspLibrary {
        /// The library.
        pub name: String,
        /// The oldest generation that it runs on; it also serves all later ones that no other library begins with.
        pub from: HexagonVersion,
        /// The share of the vector units' eight-bit peak that its products reach.
        pub product_efficiency: Constant<Fraction>,
        /// The same of weights' gradients, convolutions whose depth is the batch; that of products where it is not given.
        pub gradient_efficiency: Option<Constant<Fraction>>,
        /// Bytes that a hardware thread reads and writes in a cycle of operators that move elements one by one, where they
        /// are scalar code: transposition, rotation, cuts. As fast as a stream where it is not given.
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
