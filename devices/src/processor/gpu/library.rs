//! Products as a vendor's library runs them on a GPU.
//!
//! A product is cut into tiles of its outputs, which the units compute in whole waves. If there are too few tiles to
//! fill the units, the sum is split: every part computes a tile of partial sums in fp32, and a second pass adds them
//! (split-K; Kerr et al., CUTLASS, and Osama et al., arXiv 2301.03598). Every tile reads its own operands through the
//! L2 cache. The library takes the fastest of its kernels, as cuDNN's benchmark mode does. Tensor cores need adjacent
//! channels: in NCHW, separate passes convert operands and results.

use crate::processor::gpu::by_dram;
use crate::processor::power::{Limit, longest};
use crate::stack::Library;
use crate::work::Matrices;
use crate::{Bytes, Gpu, MemoryFormat, OperatorKind, Precision, Product, ProductRole, StackOnGpu, Work};

/// Rows and columns of the tiles in the kernels of CUTLASS and cuDNN.
const TILES: [(u64, u64); 8] = [(256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (64, 32), (32, 32)];

/// Terms of the sum per step of a tile's loop (CUTLASS's threadblock shapes).
const STEP: f64 = 32.0;

/// Channels that tensor cores read together; fewer are padded (NVIDIA, Deep Learning Performance Guide).
const VECTOR: u64 = 8;

/// Bytes per unit and cycle of an L2 cache of unknown bandwidth (Jia et al., arXiv 1804.06826: a V100 reads 26.5).
const L2_RATE: f64 = 32.0;

/// The GPU's work for an operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Seconds, and what they are bound by.
    pub busy: (f64, Limit),
    /// Bytes that DRAM moves.
    pub dram: Bytes,
    /// Kernels after the first.
    pub kernels: u32,
}

/// The units that a product may run on.
struct Units {
    /// Operations per second of the inner loops.
    rate: f64,
    /// Whether they are tensor cores.
    tensor: bool,
}

impl Gpu {
    /// The run of `work` by the kernels of `library`.
    pub(super) fn by_library(&self, work: &Work, stack: &StackOnGpu, library: &Library) -> Run {
        match work.product {
            Some(product) if work.flops.0 > 0.0 => {
                let is_depthwise = work.kind == OperatorKind::DepthwiseConvolution && product.inputs <= product.groups;
                if is_depthwise {
                    self.depthwise(work, &product, library)
                } else {
                    self.product(work, &product, stack, library)
                }
            }
            _ => self.sweep(work, stack, library),
        }
    }

    /// A framework kernel that streams its operands.
    fn sweep(&self, work: &Work, stack: &StackOnGpu, library: &Library) -> Run {
        let factor = if work.kind == OperatorKind::Optimiser { library.update_traffic.value.0 } else { 1.0 };
        let traffic = Bytes((work.traffic.dram.as_f64() * factor) as u64) + work.passes;
        let (bandwidth, dram) = self.served_by(work.working_set, traffic);
        let bytes = traffic.as_f64() / (bandwidth.0 * library.bandwidth.value.0);
        let (peak, _) = self.peak(work);
        let filled = self.issue_rate(self.waves(work, stack).min(1.0));
        let arithmetic = work.flops.0 / (peak.0 * stack.efficiency.of(work.kind).0 * filled)
            + work.integer_ops / (self.integer_rate() * filled)
            + self.barriers(work, stack);
        let shared = work.traffic.shared.as_f64() / self.shared_bandwidth.0;
        let further = if work.kind == OperatorKind::Optimiser {
            (library.update_launches.value.0 as u32).saturating_sub(1)
        } else {
            0
        };
        let busy = longest([
            (arithmetic, Limit::Arithmetic),
            (bytes, by_dram(dram)),
            (shared, Limit::Caches),
            (self.atomics(work.atomics), Limit::Waiting),
        ]);
        Run { busy, dram, kernels: further }
    }

    /// A depthwise convolution by its own kernel on general units, with sums in fp32.
    fn depthwise(&self, work: &Work, product: &Product, library: &Library) -> Run {
        let taps = product.multiply_adds(work.samples);
        let area = |size: [u64; 2]| (size[0] * size[1] * work.samples) as f64;
        let (find, outputs, tap) =
            (library.depthwise_output_ops.value.0, product.outputs as f64, &library.depthwise_tap_ops);
        let operations = match product.role {
            ProductRole::Forward => area(product.output_size) * outputs * find + taps * tap.value.0,
            // The kernel looks at every tap of every input, even where a stride leaves it without an output.
            ProductRole::InputGradient => {
                let every = (product.taps[0] * product.taps[1]) as f64;
                area(product.input_size) * product.inputs as f64 * (find + every * tap.value.0)
            }
            ProductRole::WeightGradient => {
                let find = library.depthwise_weight_ops.value.0;
                area(product.output_size) * outputs * find + taps * tap.value.0
            }
        };
        let faster = match work.memory_format {
            MemoryFormat::Contiguous => 1.0,
            MemoryFormat::ChannelsLast => library.depthwise_channels_last.value.0,
        };
        let arithmetic = operations * faster / self.integer_rate();
        let dram = work.traffic.dram + work.passes;
        let bytes = dram.as_f64() / self.dram.bandwidth.0;
        Run { busy: longest([(arithmetic, Limit::Indices), (bytes, Limit::Dram)]), dram, kernels: 0 }
    }

    /// A product by the fastest kernel.
    fn product(&self, work: &Work, product: &Product, stack: &StackOnGpu, library: &Library) -> Run {
        let convolves = work.kind != OperatorKind::Gemm;
        let matrices = product.matrices(work.samples);
        let kind = if convolves { OperatorKind::Convolution } else { OperatorKind::Gemm };
        let rate = self.constants.general_peak(work.precision).0 * stack.efficiency.of(kind).0;
        let general = Units { rate, tensor: false };
        let simple = self.fastest_tile(work, product, matrices, &general, library);
        let Some(peak) = self.tensor_peak(work) else { return simple };
        let share = match (convolves, product.role) {
            (false, _) => &library.tensor_gemm,
            (true, ProductRole::Forward) => &library.tensor_convolution,
            (true, ProductRole::InputGradient | ProductRole::WeightGradient) => &library.tensor_convolution_gradient,
        };
        let mut tensor = Units { rate: peak * share.value.0, tensor: true };
        let channels_last = work.memory_format == MemoryFormat::ChannelsLast;
        let width = product.outputs / product.groups.max(1);
        let is_grouped = convolves && product.groups > 1;
        if is_grouped && !channels_last {
            // Assumption, inferred from measured steps that may be fitted: tensor cores have no
            // kernels for groups in NCHW.
            return simple;
        }
        // Inferred from the same steps: channels-last has kernels for groups whose width is a power of two up to 32
        // channels, and a slow one for all others.
        let slow = is_grouped && !(width.is_power_of_two() && width <= 32);
        if slow {
            tensor.rate /= library.grouped_channels_last.value.0;
        }
        let mut fast = self.fastest_tile(work, product, matrices, &tensor, library);
        if convolves && !channels_last && !is_matrix_product(work, product) {
            // Read in one layout and written in the other.
            let moved = Bytes(2 * maps(work, product));
            fast.busy.0 += moved.as_f64() / (self.dram.bandwidth.0 * library.bandwidth.value.0);
            fast.dram += moved;
            fast.kernels += 2;
        }
        if slow || fast.busy.0 <= simple.busy.0 { fast } else { simple }
    }

    /// The peak of tensor cores in the format of `work`, with sums of 32 bits.
    fn tensor_peak(&self, work: &Work) -> Option<f64> {
        let constants = &self.constants;
        let sums = constants.fp16_tensor_rate_fp32_sums.as_ref().filter(|_| work.precision == Precision::Fp16);
        let peak = sums.map_or_else(|| constants.tensor_peak(work.precision), |rate| Some(constants.peak(rate)));
        peak.map(|peak| peak.0)
    }

    /// The fastest tile, each with its sum whole or split so that the units are full.
    fn fastest_tile(&self, work: &Work, product: &Product, matrices: Matrices, on: &Units, library: &Library) -> Run {
        let parts = self.constants.units.value.0.max(1.0);
        // Winograd's algorithm and the penalty of a direct kernel change the arithmetic of all
        // tiles by the same factor.
        let exact = 2.0 * product.multiply_adds(work.samples).max(1.0);
        let scale = work.flops.0 / exact;
        let matrices = if on.tensor { padded(product, matrices) } else { matrices };
        let mut fastest: Option<Run> = None;
        let least = library.least_tile.as_ref().map_or(0, |side| side.value.0 as u64);
        for tile in TILES.into_iter().filter(|tile| tile.0.max(tile.1) >= least) {
            let across = matrices.rows.div_ceil(tile.0) * matrices.columns.div_ceil(tile.1);
            let tiles = (matrices.count * across) as f64;
            let fill = (parts / tiles).floor().max(1.0).min((matrices.depth / STEP).ceil().max(1.0));
            let twice = (2.0 * parts / tiles).floor().max(1.0).min((matrices.depth / STEP).ceil().max(1.0));
            for split in [1.0, fill, twice] {
                let run = self.tiled(work, &matrices, tile, tiles, split, on.rate / scale);
                if fastest.is_none_or(|fastest| run.busy.0 < fastest.busy.0) {
                    fastest = Some(run);
                }
                if fill <= 1.0 {
                    break;
                }
            }
        }
        fastest.unwrap_or(Run { busy: (0.0, Limit::Arithmetic), dram: Bytes::ZERO, kernels: 0 })
    }

    /// A product in `tiles` tiles whose sums are split into `split` parts.
    fn tiled(&self, work: &Work, matrices: &Matrices, tile: (u64, u64), tiles: f64, split: f64, rate: f64) -> Run {
        let units = self.constants.units.value.0.max(1.0);
        let terms = (matrices.depth / split / STEP).ceil().max(1.0) * STEP;
        let outputs = (tile.0 * tile.1) as f64;
        let waves = (tiles * split / units).ceil();
        let arithmetic = waves * units * 2.0 * outputs * terms / rate;
        let width = work.precision.bytes().as_f64();
        let operands = tiles * split * (tile.0 + tile.1) as f64 * terms * width;
        let dram = work.traffic.dram + work.passes;
        let bytes = dram.as_f64() / self.dram.bandwidth.0;
        let loops =
            [(arithmetic, Limit::Arithmetic), (operands / self.l2_bandwidth(), Limit::Caches), (bytes, Limit::Dram)];
        let mut run = Run { busy: longest(loops), dram, kernels: 0 };
        if split > 1.0 {
            // The parts write them, the second pass reads them.
            let sums = matrices.count as f64 * matrices.rows as f64 * matrices.columns as f64;
            let partial = Bytes((2.0 * split * sums * 4.0) as u64);
            let (bandwidth, moved) = self.served_by(partial, partial);
            run.busy.0 += partial.as_f64() / bandwidth.0;
            run.dram += moved;
            run.kernels += 1;
        }
        run
    }

    /// The bandwidth of the cache before DRAM.
    fn l2_bandwidth(&self) -> f64 {
        let units = self.constants.units.value.0 * self.constants.clock.value.0;
        self.constants.l2_bandwidth.as_ref().map_or(units * L2_RATE, |bandwidth| bandwidth.value.0)
    }
}

/// The products with their channels padded for tensor cores.
fn padded(product: &Product, matrices: Matrices) -> Matrices {
    let groups = product.groups.max(1);
    let up = |channels: u64| {
        let of_group = (channels / groups).max(1);
        of_group.next_multiple_of(VECTOR) as f64 / of_group as f64
    };
    let wider = |size: u64, factor: f64| (size as f64 * factor) as u64;
    match product.role {
        ProductRole::Forward => Matrices { depth: matrices.depth * up(product.inputs), ..matrices },
        ProductRole::InputGradient => Matrices { depth: matrices.depth * up(product.outputs), ..matrices },
        ProductRole::WeightGradient => Matrices { columns: wider(matrices.columns, up(product.inputs)), ..matrices },
    }
}

/// Whether a convolution in NCHW is a plain matrix product: pointwise, with rows of positions that tensor cores can
/// load as whole vectors. Inferred from measured steps that may be fitted; no source states it.
fn is_matrix_product(work: &Work, product: &Product) -> bool {
    let positions = product.output_size[0] * product.output_size[1];
    let same = product.taps == [1, 1] && product.input_size == product.output_size;
    same && product.groups == 1 && work.kind == OperatorKind::Convolution && positions.is_multiple_of(VECTOR)
}

/// Bytes of the maps that the layer reads and writes, except those of a single position, which are
/// the same in every layout.
fn maps(work: &Work, product: &Product) -> u64 {
    let of = |channels: u64, size: [u64; 2]| if size == [1, 1] { 0 } else { channels * size[0] * size[1] };
    let values = of(product.inputs, product.input_size) + of(product.outputs, product.output_size);
    values * work.samples * work.precision.bytes().0
}
