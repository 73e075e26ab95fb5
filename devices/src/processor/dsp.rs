//! The DSP: wide integer vectors, a small memory close to them, an L2 cache, and calls from the CPU
//! that cost considerable time.
//!
//! The vendor's libraries have operators of eight- and sixteen-bit integers; work on floating-point numbers or on sums
//! of 32 bits stays on the CPU (Xu et al., MobiCom 2022, table 3). The gradient of a weight is a convolution whose
//! depth is the batch: its filter is the output's gradient, as large as the map, and streams through the vector units
//! for every input channel and every row of taps. If the filter fits in the tightly coupled memory, only the first
//! reading counts. From L2 the stream overlaps with the arithmetic, and the longer of the two counts; the DSP waits for
//! L2 misses (table 4). The share of the peak that kernels reach, and whether copies are vector code, depend on the
//! library; each generation of the DSP has its own.

use std::sync::Arc;

use crate::device::{Device, DspConstants};
use crate::processor::power::{Limit, Stalls, longest};
use crate::units::{Bytes, FlopsPerSecond, Fraction, Nanos};
use crate::{Cost, CpuCores, DspLibrary, OperatorKind, Precision, Product, ProductRole, StackOnDsp, Work};

/// A DSP.
#[derive(Clone, Debug)]
pub struct Dsp {
    /// Eight-bit operations per second of products, every lane full.
    product_peak: FlopsPerSecond,
    vector_rate: FlopsPerSecond,
    constants: Arc<DspConstants>,
}

/// A DSP under a stack, with the library of its generation.
#[derive(Clone, Debug)]
pub struct Offloader {
    /// The DSP.
    pub dsp: Dsp,
    /// The stack on it.
    pub stack: Arc<StackOnDsp>,
    library: DspLibrary,
}

/// The sizes of a weight gradient's operands in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Streams {
    /// The output's gradient, laid out as a filter.
    filter: f64,
    /// One channel of the input.
    image: f64,
    /// How often the filter is read.
    passes: f64,
}

impl Device {
    /// The DSP model, if the device has a DSP.
    pub fn dsp(&self) -> Option<Dsp> {
        self.constants.dsp.as_ref().map(Dsp::new)
    }
}

impl Dsp {
    fn new(constants: &DspConstants) -> Self {
        Self {
            product_peak: constants.int8_peak(),
            vector_rate: constants.vector_rate(),
            constants: Arc::new(constants.clone()),
        }
    }

    /// Memory that a process may map.
    pub fn memory(&self) -> Bytes {
        self.constants.memory.value
    }

    /// Duration of a call from the CPU and back, without tensors.
    pub fn call(&self) -> Nanos {
        self.constants.fastrpc.value
    }

    /// This DSP under `stack`; `None` if none of the stack's libraries runs on this generation.
    pub(super) fn under(self, stack: &StackOnDsp) -> Option<Offloader> {
        let library = stack.library(self.constants.version)?.clone();
        Some(Offloader { dsp: self, stack: Arc::new(stack.clone()), library })
    }
}

impl Offloader {
    /// Cache maintenance for buffers of `bytes` that cross between the processors, which share no cache: the fastest
    /// of the host's `cores` lays out every line for the other side, cleans the lines that the DSP reads, and
    /// invalidates those that it wrote.
    pub fn maintenance(&self, bytes: Bytes, cores: &CpuCores) -> Nanos {
        let lines = (bytes.as_f64() / self.dsp.constants.l2_line.value.as_f64()).ceil();
        let work = self.stack.line_work.as_ref().map(|each| lines * each.value.0 * 1e-6);
        let time = work.and_then(|iterations| cores.scalar_time(iterations));
        time.unwrap_or_else(|| Nanos::from_seconds(lines * self.stack.line.value.0))
    }

    /// Crossing with a copy of `bytes` from one processor's memory space to the other's: a call, cache maintenance line
    /// by line, and the copy at the speed at which the host's `cores` read and write.
    pub fn crossing(&self, bytes: Bytes, cores: &CpuCores) -> Nanos {
        let copy = 2.0 * bytes.as_f64() / cores.streaming_bandwidth().0;
        self.dsp.call() + self.maintenance(bytes, cores) + Nanos::from_seconds(copy)
    }

    /// Whether the vendor's library has an operator for `work`.
    pub fn runs(&self, work: &Work) -> bool {
        matches!(work.precision, Precision::Int8 | Precision::Int16)
    }

    /// The cost of `work` within a subgraph, with no other load; only for work that it [runs](Self::runs).
    pub fn cost(&self, work: &Work) -> Cost {
        if work.launches == 0 {
            return Cost { occupancy: 1.0, ..Cost::default() };
        }
        let width = work.precision.bytes().as_f64();
        let mut stalls = Stalls::default();
        let ((seconds, limit), moved) = match (work.kind, work.product) {
            (OperatorKind::Layout, _) => self.layout(work),
            (kind, product) if is_product(kind) => match product {
                Some(layer) if layer.role == ProductRole::WeightGradient && layer.is_dense() => {
                    self.weight_gradient(&layer, work, &mut stalls)
                }
                _ => (self.product(work, self.library.product_efficiency.value), self.dram_bytes(work)),
            },
            _ => {
                let compute = (work.flops.0 * width / self.dsp.vector_rate.0, Limit::Arithmetic);
                (longest([compute, self.streaming(work)]), self.dram_bytes(work))
            }
        };
        let missed = stalls.dram.seconds();
        stalls.add(limit, seconds - missed);
        Cost {
            launch: self.stack.operator_overhead.value,
            busy: Nanos::from_seconds(seconds),
            dram: Bytes(moved.round() as u64),
            occupancy: 1.0,
            stalls,
            ..Cost::default()
        }
    }

    /// Reordering operands, by scalar code or as a stream: seconds with their limit, and bytes from DRAM.
    fn layout(&self, work: &Work) -> ((f64, Limit), f64) {
        let Some(rate) = &self.library.irregular_rate else { return (self.streaming(work), self.dram_bytes(work)) };
        let of_thread = rate.value * self.dsp.constants.clock.value;
        let operands = work.traffic.dram.as_f64();
        ((operands / (of_thread.0 * self.dsp.constants.threads.value.0), Limit::Dram), operands)
    }

    /// Seconds to read and write the operands once, and the limit.
    fn streaming(&self, work: &Work) -> (f64, Limit) {
        let bytes = work.traffic.dram.as_f64();
        if self.in_l2(work) { (self.l2_seconds(bytes), Limit::Caches) } else { (self.miss_seconds(bytes), Limit::Dram) }
    }

    fn in_l2(&self, work: &Work) -> bool {
        work.working_set <= self.dsp.constants.l2.value
    }

    /// Seconds to stream `bytes` from L2.
    fn l2_seconds(&self, bytes: f64) -> f64 {
        bytes / (self.stack.l2_rate.value * self.dsp.constants.clock.value).0
    }

    /// Seconds that the DSP waits for `bytes` that miss L2.
    fn miss_seconds(&self, bytes: f64) -> f64 {
        bytes / self.dsp.constants.l2_line.value.as_f64() * self.stack.miss.value.0
    }

    /// Bytes that come from DRAM.
    fn dram_bytes(&self, work: &Work) -> f64 {
        if self.in_l2(work) { 0.0 } else { work.traffic.dram.as_f64() }
    }

    /// Seconds of a product whose operands are read once, at this `efficiency`, and the limit.
    fn product(&self, work: &Work, efficiency: Fraction) -> (f64, Limit) {
        let width = work.precision.bytes().as_f64();
        let arithmetic = work.flops.0 * width / (self.dsp.product_peak.0 * efficiency.0);
        longest([(arithmetic, Limit::Arithmetic), self.streaming(work)])
    }

    /// Seconds with their limit, and bytes from DRAM; time spent on L2 misses is added to `stalls`.
    fn weight_gradient(&self, layer: &Product, work: &Work, stalls: &mut Stalls) -> ((f64, Limit), f64) {
        let DspLibrary { gradient_efficiency, product_efficiency, .. } = &self.library;
        let efficiency = gradient_efficiency.as_ref().unwrap_or(product_efficiency).value;
        let (once, bytes) = (self.product(work, efficiency), self.dram_bytes(work));
        let width = work.precision.bytes().as_f64();
        let streams = streams(layer, depth(work.samples, &self.stack), width);
        if streams.filter <= self.dsp.constants.vtcm.value.as_f64() {
            return (once, bytes);
        }
        let missed = miss_share((streams.filter + streams.image) / self.dsp.constants.l2.value.as_f64());
        let moved = streams.passes * streams.filter;
        let hidden = self.l2_seconds(moved * (1.0 - missed));
        let waited = self.miss_seconds(moved * missed);
        stalls.add(Limit::Dram, waited);
        let (seconds, limit) = longest([once, (hidden, Limit::Caches)]);
        ((seconds + waited, limit), bytes.max(moved * missed))
    }
}

fn is_product(kind: OperatorKind) -> bool {
    matches!(kind, OperatorKind::Convolution | OperatorKind::DepthwiseConvolution | OperatorKind::Gemm)
}

/// The padded depth at which the library runs `samples` samples.
fn depth(samples: u64, stack: &StackOnDsp) -> f64 {
    let (short, padding) = (stack.short_depth.value.0, stack.depth_padding.value.0);
    let samples = samples as f64;
    if samples <= short { samples } else { (samples / padding).ceil() * padding }
}

fn streams(layer: &Product, depth: f64, width: f64) -> Streams {
    let area = |size: [u64; 2]| size[0] as f64 * size[1] as f64;
    let padded = [layer.input_size[0] + layer.taps[0] - 1, layer.input_size[1] + layer.taps[1] - 1];
    Streams {
        filter: area(layer.output_size) * depth * layer.outputs as f64 * width,
        image: area(padded) * depth * width,
        passes: layer.inputs as f64 * layer.taps[0] as f64,
    }
}

/// The miss rate of a cache with random replacement when data of `excess` times its size is read cyclically.
///
/// A line survives from one reading to the next with probability exp(−excess × misses): between them, that many of
/// the cache's lines were replaced at random. The miss rate m solves 1 − m = exp(−excess m); data up to the
/// cache's size always hits.
fn miss_share(excess: f64) -> f64 {
    if excess <= 1.0 {
        return 0.0;
    }
    // 1 − exp(−excess m) − m is positive from zero to the solution and negative beyond it.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..f64::MANTISSA_DIGITS {
        let middle = (low + high) / 2.0;
        if -(-excess * middle).exp_m1() > middle {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The simulated miss rate of a cache of 2¹⁰ lines with random replacement, when `excess` times as
    /// many lines are read in turn.
    fn simulated(excess: f64) -> f64 {
        const LINES: usize = 1 << 10;
        const TURNS: usize = 60;
        let cycle = (excess * LINES as f64).round() as usize;
        let mut held = [usize::MAX; LINES];
        let mut place = vec![None; cycle];
        let (mut state, mut misses) = (1_u64, 0);
        for turn in 0..TURNS {
            for line in 0..cycle {
                if place[line].is_some() {
                    continue;
                }
                // The first half of the turns warms the cache up.
                misses += usize::from(turn >= TURNS / 2);
                // Knuth's linear congruential generator; its upper bits are the random ones.
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let victim = (state >> 54) as usize;
                if let Some(slot) = place.get_mut(held[victim]) {
                    *slot = None;
                }
                (held[victim], place[line]) = (line, Some(victim));
            }
        }
        misses as f64 / (cycle * (TURNS - TURNS / 2)) as f64
    }

    #[test]
    fn misses_are_those_of_a_cache_with_random_replacement() {
        for excess in [0.7, 1.2, 1.5, 2.0, 4.0] {
            let (law, cache) = (miss_share(excess), simulated(excess));
            assert!((law - cache).abs() < 0.01, "{excess}: {law} and {cache}");
        }
    }

    #[test]
    fn the_first_misses_are_twice_the_excess_and_in_the_end_all_miss() {
        // 1 − m = 1 − xm + x²m²/2 for small m: m = 2 (x − 1) / x².
        for over in [1e-9, 1e-6, 1e-4] {
            let ratio = miss_share(1.0 + over) / (2.0 * over);
            assert!((ratio - 1.0).abs() < 1e-3, "{over}: {ratio}");
        }
        assert_eq!((miss_share(0.0), miss_share(1.0)), (0.0, 0.0));
        assert!((miss_share(1e3) - 1.0).abs() < 1e-12);
        assert_eq!(miss_share(f64::INFINITY), 1.0);
    }
}
