//! The CPU: clusters of cores that share work evenly and wait for the slowest, and the levels of their caches.

mod cluster;

use std::sync::Arc;

use crate::processor::power::{Limit, longest};
use crate::{
    Bytes, BytesPerSecond, ClusterClass, CoreSelection, Cost, Device, Dram, Flops, FlopsPerSecond, Fraction, Frequency,
    Hertz, Int8Kernels, Nanos, OperatorKind, Precision, ProductRole, SelectionError, StackOnCpu, Stalls, Watts, Work,
};

pub(crate) use cluster::Cluster;

/// A core of a cluster at its operating frequency.
#[derive(Clone, Debug)]
pub struct Core {
    /// The class of its cluster.
    pub class: ClusterClass,
    /// Its frequency.
    pub frequency: Hertz,
    /// Its power while busy with vector kernels.
    pub power: Watts,
    /// The frequency chosen for it; a limit may lower `frequency` below it for a while.
    chosen: Hertz,
    cluster: Arc<Cluster>,
}

impl Core {
    fn of(cluster: &Arc<Cluster>, frequency: Hertz) -> Self {
        Self {
            class: cluster.constants.class,
            frequency,
            power: cluster.power_at(frequency),
            chosen: frequency,
            cluster: Arc::clone(cluster),
        }
    }

    /// The same core at `frequency`, with its chosen frequency unchanged.
    fn at(&self, frequency: Hertz) -> Self {
        Self { chosen: self.chosen, ..Self::of(&self.cluster, frequency) }
    }

    /// The frequency that limits are fractions of.
    fn highest(&self) -> Hertz {
        self.cluster.highest
    }

    /// Operations per second in `precision` with every lane full, using the best available instructions.
    pub fn peak(&self, precision: Precision) -> FlopsPerSecond {
        self.peak_with(precision, Int8Kernels::DotProduct)
    }

    /// The same with the stack's kernels for eight-bit integers.
    pub(crate) fn peak_with(&self, precision: Precision, int8: Int8Kernels) -> FlopsPerSecond {
        self.cluster.rate(precision, int8) * self.frequency
    }

    /// Seconds of the floating-point (or product) operations of `work`, and of the integer operations that
    /// compute indices, with the share `vector` of the lanes filled. Scalar code of a stack runs at the core's
    /// speed on branchy scalar code.
    fn arithmetic(&self, work: &Work, stack: &StackOnCpu, vector: f64) -> [f64; 2] {
        let indices = work.integer_ops / (self.peak(Precision::Fp32).0 / 2.0 * vector);
        let operations = match (&stack.sweep_work, self.cluster.coremark) {
            (Some(each), Some(coremark)) if stack.sweeps(work.kind) => {
                work.flops.0 * each.value.0 * 1e-6 / (coremark.0 * self.frequency.0)
            }
            _ => {
                let peak = self.peak_with(work.precision, stack.int8).0 * self.by_element(work);
                work.flops.0 / (peak * stack.efficiency.of(work.kind).0 * vector)
            }
        };
        [operations, indices]
    }

    /// The share of its rate that it reaches in floating-point products, which multiply vectors by single elements.
    fn by_element(&self, work: &Work) -> f64 {
        let is_float = matches!(work.precision, Precision::Fp32 | Precision::Fp16);
        let share = self.cluster.constants.by_element.as_ref().filter(|_| is_float && work.kind.is_dense_product());
        share.map_or(1.0, |share| share.value.0)
    }

    /// Seconds of the transforms of `work`, which run like element-wise maps.
    fn transforms(&self, work: &Work, stack: &StackOnCpu) -> f64 {
        let rate = self.peak_with(work.precision, stack.int8).0 * stack.efficiency.of(OperatorKind::ElementWise).0;
        work.transforms.0 / rate
    }

    /// Elements of a vector in `precision`, at least one.
    fn lanes(&self, precision: Precision) -> u64 {
        (self.cluster.constants.vector.value.0 / precision.bytes().0.max(1)).max(1)
    }

    /// The core's DRAM bandwidth, if its share of the total is `share`.
    fn drawn(&self, share: f64) -> f64 {
        self.cluster.constants.dram_bandwidth.value.0.min(share)
    }

    /// The core's private cache that fits `share` bytes of a working set, or else `beyond`.
    fn level(&self, share: f64, beyond: Level) -> Level {
        let own = &self.cluster.constants;
        let near = [(&own.l1, &own.l1_rate), (&own.l2, &own.l2_rate)];
        let holds = near.into_iter().find(|(size, _)| share <= size.value.as_f64());
        holds.map_or(beyond, |(_, rate)| Level { rate: (rate.value * self.frequency).0, in_dram: false })
    }
}

/// All clusters of a device.
#[derive(Clone, Debug)]
pub struct Cpu {
    clusters: Vec<Arc<Cluster>>,
    l3: L3,
    dram: Dram,
}

/// The cache that the clusters share.
#[derive(Clone, Copy, Debug)]
struct L3 {
    size: Bytes,
    /// Cores that get their full rate from it simultaneously.
    ports: f64,
}

/// A cache, or DRAM, as a core sees it.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// Bytes per second.
    rate: f64,
    in_dram: bool,
}

impl Device {
    /// The CPU model, if the device's host is modelled.
    pub fn cpu(&self) -> Option<Cpu> {
        let constants = &self.constants;
        if constants.cpu.is_empty() {
            return None;
        }
        let clusters = constants.cpu.iter().map(|cluster| {
            let curve = constants.dvfs.iter().find(|curve| curve.core == cluster.core);
            Cluster::new(cluster, curve, &constants.power)
        });
        let cache = constants.cache.as_ref();
        let size = cache.and_then(|cache| cache.l3.as_ref()).map_or(Bytes::ZERO, |l3| l3.value);
        let ports = cache.and_then(|cache| cache.l3_ports.as_ref()).map_or(f64::INFINITY, |ports| ports.value.0);
        Some(Cpu::new(clusters, L3 { size, ports }, self.dram()))
    }
}

impl Cpu {
    fn new(clusters: impl Iterator<Item = Cluster>, l3: L3, dram: Dram) -> Self {
        Self { clusters: clusters.map(Arc::new).collect(), l3, dram }
    }

    /// The cores that `selection` names, at `frequency`.
    ///
    /// `big` takes the fastest cores first and continues into the middle clusters, as papers do that run on
    /// "the four big cores" of a 1 + 3 + 4 chip; `middle` and `little` stay in their class. A fixed frequency
    /// applies to the fastest of them; the others run at their highest operating point up to it. Under a
    /// governor they start at the highest.
    ///
    /// # Errors
    /// A class that the device lacks; more cores of the class than it has; a fixed frequency
    /// without an operating point.
    pub fn choose(&self, selection: CoreSelection, frequency: Frequency) -> Result<CpuCores, SelectionError> {
        let chosen = self.chosen(selection)?;
        let fixed = match (frequency, chosen.first()) {
            (Frequency::Fixed(asked), Some(fastest)) => Some(operating_point(fastest, asked)?),
            _ => None,
        };
        let at = |cluster: &&Arc<Cluster>| match (frequency, fixed) {
            (Frequency::Fixed(_), Some(point)) => cluster.at_or_below(point),
            (Frequency::Lowest, _) => cluster.floor,
            _ => cluster.highest,
        };
        let cores = chosen.iter().map(|cluster| Core::of(cluster, at(cluster))).collect();
        Ok(CpuCores { cores, l3: self.l3, dram: self.dram })
    }

    /// Checks that some core has an operating point at `frequency`.
    ///
    /// # Errors
    /// No core has one; the error names the neighbouring points of the first cluster.
    pub fn check_point(&self, frequency: Hertz) -> Result<(), SelectionError> {
        let mut points = self.clusters.iter().map(|cluster| operating_point(cluster, frequency));
        let Some(first) = points.next() else { return Ok(()) };
        if first.is_ok() || points.any(|point| point.is_ok()) { Ok(()) } else { first.map(|_| ()) }
    }

    /// The cluster of each chosen core, fastest first.
    fn chosen(&self, selection: CoreSelection) -> Result<Vec<&Arc<Cluster>>, SelectionError> {
        let admitted = self.clusters.iter().filter(|cluster| selection.admits(cluster.constants.class));
        let mut chosen: Vec<_> = admitted
            .flat_map(|cluster| std::iter::repeat_n(cluster, cluster.constants.cores.value.0 as usize))
            .collect();
        chosen.sort_by(|a, b| {
            let peak = |cluster: &Cluster| (cluster.rate(Precision::Fp32, Int8Kernels::default()) * cluster.highest).0;
            a.constants.class.cmp(&b.constants.class).then(peak(b).total_cmp(&peak(a)))
        });
        if let CoreSelection::Some { class, count } = selection {
            if !self.clusters.iter().any(|cluster| cluster.constants.class == class) {
                let mut classes: Vec<_> = self.clusters.iter().map(|cluster| cluster.constants.class).collect();
                classes.sort();
                classes.dedup();
                return Err(SelectionError::NoSuchClass { class, classes });
            }
            ensure!(count <= chosen.len(), SelectionError::TooMany { class, count, available: chosen.len() });
            chosen.truncate(count);
        }
        Ok(chosen)
    }
}

/// The operating point of `cluster` for the requested frequency.
fn operating_point(cluster: &Cluster, asked: Hertz) -> Result<Hertz, SelectionError> {
    cluster.point(asked).map_err(|[below, above]| SelectionError::NoOperatingPoint {
        core: cluster.constants.core.clone(),
        asked,
        below,
        above,
        range: [cluster.lowest(), cluster.highest],
    })
}

/// The cores that a run uses, fastest first.
#[derive(Clone, Debug)]
#[must_use]
pub struct CpuCores {
    cores: Vec<Core>,
    l3: L3,
    dram: Dram,
}

impl CpuCores {
    /// The cores, fastest class first.
    pub fn cores(&self) -> &[Core] {
        &self.cores
    }

    /// The same cores under a limit: each at its highest operating point at or below `share` of its highest
    /// frequency, but never below its lowest operating point, nor above the frequency that it was chosen at.
    pub fn limited(&self, share: Fraction) -> Self {
        self.each_at(|core| {
            let point = core.cluster.at_or_below(core.highest() * share.0);
            if point.0 < core.chosen.0 { point } else { core.chosen }
        })
    }

    /// The same cores under a governor that wants `share` of the highest frequency: each at its lowest
    /// operating point at or above that, but never below its cluster's floor. [`limited`](Self::limited) then
    /// takes this as the chosen frequency.
    pub fn following(&self, share: Fraction) -> Self {
        let followed = self.each_at(|core| {
            let wanted = core.highest() * share.0;
            if wanted.0 > core.cluster.floor.0 { core.cluster.at_or_above(wanted) } else { core.cluster.floor }
        });
        let cores = followed.cores.into_iter().map(|core| Core { chosen: core.frequency, ..core });
        Self { cores: cores.collect(), ..followed }
    }

    fn each_at(&self, frequency: impl Fn(&Core) -> Hertz) -> Self {
        let cores = self.cores.iter().map(|core| core.at(frequency(core)));
        Self { cores: cores.collect(), l3: self.l3, dram: self.dram }
    }

    /// The frequency of the fastest core, as a share of its highest.
    pub fn share(&self) -> Fraction {
        self.of_fastest(|core| core.frequency)
    }

    /// The governor's lower bound for the fastest core, as a share of its highest frequency.
    pub fn floor(&self) -> Fraction {
        self.of_fastest(|core| core.cluster.floor)
    }

    fn of_fastest(&self, frequency: impl Fn(&Core) -> Hertz) -> Fraction {
        Fraction(self.cores.first().map_or(1.0, |core| frequency(core).0 / core.highest().0))
    }

    /// The operating points of the fastest core up to its present frequency, as shares of its highest, rising; at
    /// least one.
    pub fn operating_shares(&self) -> Vec<Fraction> {
        let Some(core) = self.cores.first() else { return vec![Fraction(1.0)] };
        let below = core.cluster.points().filter(|point| point.0 < core.frequency.0);
        below.chain([core.frequency]).map(|point| Fraction(point.0 / core.highest().0)).collect()
    }

    /// The peak of all cores together.
    pub fn peak(&self, precision: Precision) -> FlopsPerSecond {
        self.cores.iter().map(|core| core.peak(precision)).sum()
    }

    /// The bandwidth of all cores streaming through memory together, at most DRAM's achievable bandwidth.
    pub fn streaming_bandwidth(&self) -> BytesPerSecond {
        let together = self.cores.iter().map(|core| core.cluster.constants.dram_bandwidth.value.0).sum::<f64>();
        BytesPerSecond(together.min(self.dram.bandwidth.0))
    }

    /// The time that the fastest core takes for this number of CoreMark iterations; `None` if its CoreMark is not
    /// known.
    pub fn scalar_time(&self, iterations: f64) -> Option<Nanos> {
        let core = self.cores.first()?;
        Some(Nanos::from_seconds(iterations / (core.cluster.coremark?.0 * core.frequency.0)))
    }

    /// Power while all cores are busy.
    pub fn power(&self) -> Watts {
        self.cores.iter().map(|core| core.power).sum()
    }

    /// The kernel's time to map `pages` on first touch, where `stack` gets fresh memory from the system for every
    /// batch; zero on cores without a CoreMark.
    pub fn first_touch(&self, pages: u64, stack: &StackOnCpu) -> Nanos {
        let iterations = stack.first_touch.as_ref().map_or(0.0, |each| pages as f64 * each.value.0 * 1e-6);
        self.scalar_time(iterations).unwrap_or_default()
    }

    /// The cost of `work` under `stack` with no other load.
    ///
    /// The work is split evenly over the cores, or over as many cores as it has outputs, and ends with the slowest. A
    /// stack with packed layouts distributes whole vectors of output channels. Starting and joining threads costs time.
    /// A private cache serves a core's share of the working set if that fits, L3 the whole set; a set larger than a
    /// level moves at the next level's bandwidth. Bytes that a product's tiles read again add to its arithmetic. They
    /// come from DRAM, unless a known operand fits in a cache; each core gets an even share of DRAM's bandwidth, and no
    /// more than its own maximum. Laying out operands before a product is a separate step that does not overlap with
    /// arithmetic; one thread may do part of it while the others wait. Shared-memory traffic and barriers exist only on
    /// a GPU and cost nothing here.
    pub fn cost(&self, work: &Work, stack: &StackOnCpu) -> Cost {
        if work.launches == 0 {
            return Cost { occupancy: 1.0, ..Cost::default() };
        }
        let (used, parts) = self.split(work, stack);
        let mut slowest = Part::default();
        let (mut moved, mut filled) = (0.0, 0.0);
        for core in self.cores.iter().take(used) {
            let part = self.part(work, stack, core, parts, used as f64);
            (moved, filled) = (moved + part.dram, filled + part.filled);
            if part.seconds > slowest.seconds {
                slowest = part;
            }
        }
        let alone = self.alone(work, stack);
        let mut stalls = slowest.stalls;
        stalls.add(alone.1, alone.0);
        let preparation = self.preparation(stack) * u64::from(work.launches);
        let serial = alone.0 + if used == 1 { slowest.seconds } else { 0.0 };
        moved += if alone.1 == Limit::Dram { work.laid_out_alone.as_f64() } else { 0.0 };
        Cost {
            launch: self.dispatch(work, stack) + preparation,
            preparation,
            touching: Nanos::ZERO,
            ahead: false,
            busy: Nanos::from_seconds(slowest.seconds + alone.0),
            serial: Nanos::from_seconds(serial),
            dram: Bytes(moved.round() as u64),
            occupancy: filled / self.cores.len().max(1) as f64,
            stalls,
        }
    }

    /// The time and traffic of `core` for one of `parts` equal parts of `work`, while `sharers` cores use DRAM.
    fn part(&self, work: &Work, stack: &StackOnCpu, core: &Core, parts: f64, sharers: f64) -> Part {
        let lanes = core.cluster.constants.vector.value.as_f64() / work.precision.bytes().as_f64();
        let vector = (work.parallelism.max(1.0) / parts / lanes.max(1.0)).min(1.0);
        let each = computed(work, stack) / parts;
        let [operations, indices] = core.arithmetic(work, stack, vector).map(|seconds| seconds * each);
        let level = |set: Bytes| core.level(set.as_f64() / parts, self.beyond(core, set, sharers, stack));
        let streams = level(work.working_set);
        let limit = if streams.in_dram { Limit::Dram } else { Limit::Caches };
        let scatters = work.kind == OperatorKind::Layout && !work.by_rows && work.working_set > self.l3.size;
        let irregular = stack.irregular_share.as_ref().filter(|_| scatters);
        let by_elements =
            irregular.map_or(f64::INFINITY, |of| core.drawn(self.dram.bandwidth.0 / sharers) * of.value.0);
        let moving = work.traffic.dram.as_f64() / parts / streams.rate.min(by_elements);
        let tiles = self.tiles(work, stack, core, sharers);
        let tiled = tiles.bytes / parts / tiles.from.rate;
        let of_tiles = if tiles.from.in_dram { Limit::Dram } else { Limit::Caches };
        let (hidden, tiled) = if tiles.ahead { (tiled, 0.0) } else { (0.0, tiled) };
        let (once, limit) = longest([(operations + indices, Limit::Arithmetic), (moving, limit), (hidden, of_tiles)]);
        let laid_out = work.laid_out.as_f64();
        let lies = level(work.laid_out);
        let laying = laid_out / parts / lies.rate + laying(work, core.frequency, stack) / parts;
        let transforming = core.transforms(work, stack) / parts;
        let mut stalls = Stalls::default();
        stalls.add(limit, once);
        if limit == Limit::Arithmetic && indices > 0.0 {
            stalls.add(Limit::Indices, once * indices / (operations + indices));
        }
        stalls.add(of_tiles, tiled);
        stalls.add(if lies.in_dram { Limit::Dram } else { Limit::Caches }, laying);
        let moved = [(streams, work.traffic.dram.as_f64()), (tiles.from, tiles.bytes), (lies, laid_out)];
        let dram: f64 = moved.into_iter().filter(|(level, _)| level.in_dram).map(|(_, bytes)| bytes).sum();
        Part { seconds: once + tiled + laying + transforming, dram: dram / sharers, filled: vector, stalls }
    }

    /// The bytes that a product's tiles read again, and from where. An operand that fits in the core's own cache costs
    /// nothing beyond the arithmetic; one of unknown size comes from DRAM.
    fn tiles(&self, work: &Work, stack: &StackOnCpu, core: &Core, sharers: f64) -> Tiles {
        let own = core.cluster.constants.l2.value;
        let winograd = stack.winograd_rows.as_ref().filter(|_| work.transforms > Flops::ZERO).zip(work.product);
        if let Some((rows, product)) = winograd {
            let values = work.flops.0 / 2.0 / product.outputs.max(1) as f64;
            let tiles = Bytes((values * work.precision.bytes().as_f64()) as u64);
            let groups = if tiles <= own { 0.0 } else { (product.outputs as f64 / rows.value.0).ceil() };
            let from = self.beyond(core, tiles, sharers, stack);
            return Tiles { bytes: tiles.as_f64() * groups, from, ahead: true };
        }
        let element = work.precision.bytes().as_f64() / Precision::Fp32.bytes().as_f64();
        let traffic = if work.kind.is_dense_product() { stack.product_traffic.value.0 * element } else { 0.0 };
        let weights = work.product.filter(|product| product.role == ProductRole::Forward && product.is_dense());
        let weights = weights.map_or(0, |of| of.inputs * of.outputs * of.taps[0] * of.taps[1]);
        let operand = if work.reread > Bytes::ZERO { work.reread } else { work.precision.bytes() * weights };
        let is_held = operand > Bytes::ZERO && operand <= own;
        let set = if operand > Bytes::ZERO { operand } else { Bytes(u64::MAX) };
        let bytes = if is_held { 0.0 } else { work.flops.0 * traffic };
        Tiles { bytes, from: self.beyond(core, set, sharers, stack), ahead: false }
    }

    /// The level beyond the core's own caches that serves a `set` which `sharers` cores stream through together.
    fn beyond(&self, core: &Core, set: Bytes, sharers: f64, stack: &StackOnCpu) -> Level {
        let widest = (core.cluster.constants.l3_rate.value * core.frequency).0;
        if set <= self.l3.size {
            return Level { rate: widest * (self.l3.ports / sharers).min(1.0), in_dram: false };
        }
        let reached = stack.bandwidth.as_ref().map_or(1.0, |share| share.value.0);
        let rate = core.drawn(self.dram.bandwidth.0 / sharers) * reached;
        Level { rate: rate.min(widest), in_dram: true }
    }

    /// Seconds that the fastest core spends laying out data for all cores, and the limit of that step.
    fn alone(&self, work: &Work, stack: &StackOnCpu) -> (f64, Limit) {
        let bytes = work.laid_out_alone;
        let Some(core) = self.cores.first().filter(|_| bytes > Bytes::ZERO) else { return (0.0, Limit::Arithmetic) };
        let level = core.level(bytes.as_f64(), self.beyond(core, bytes, 1.0, stack));
        (bytes.as_f64() / level.rate, if level.in_dram { Limit::Dram } else { Limit::Caches })
    }

    /// The time of one thread to prepare an operator.
    fn preparation(&self, stack: &StackOnCpu) -> Nanos {
        let work = stack.preparation_work.as_ref().and_then(|work| self.scalar_time(work.value.0 * 1e-6));
        work.or(stack.preparation.as_ref().map(|each| each.value)).unwrap_or_default()
    }

    /// The number of cores that take part in `work`, and the divisor of the work on the core with the largest part.
    ///
    /// Parts are even, unless packed layouts distribute whole vectors of output channels: 24 channels in vectors of 8
    /// are three parts for any number of threads, so with two threads one has two of them.
    fn split(&self, work: &Work, stack: &StackOnCpu) -> (usize, f64) {
        let threads = self.cores.len().max(1);
        let packed = work.product.filter(|_| stack.packed == Some(true)).zip(self.cores.first());
        if let Some((product, core)) = packed {
            let vectors = product.outputs.div_ceil(core.lanes(work.precision)).max(1);
            let used = vectors.min(threads as u64);
            return (used as usize, vectors as f64 / vectors.div_ceil(used) as f64);
        }
        // A float cast saturates, and turns NaN into zero.
        let used = (work.parallelism as usize).clamp(1, threads);
        let tiles = stack.tile_rows.as_ref().zip(work.product).filter(|(_, product)| product.is_dense());
        let tiles = tiles.map_or(0, |(rows, product)| match product.matrices(work.samples).rows {
            // A vector is multiplied column by column.
            1 => 0,
            all => all.div_ceil((rows.value.0 as u64).max(1)),
        });
        match if work.parts > 0 { work.parts } else { tiles } {
            0 => (used, used as f64),
            parts => {
                let used = (parts as usize).min(used);
                (used, parts as f64 / parts.div_ceil(used as u64) as f64)
            }
        }
    }

    /// The cost of starting an operator: its dispatch, and for each of its steps starting and joining the threads. A
    /// product that lays out its operands first has two steps. Threads form a tree, with a level for every doubling.
    fn dispatch(&self, work: &Work, stack: &StackOnCpu) -> Nanos {
        let core = self.cores.iter().find_map(|core| Some(core.cluster.coremark?.0 * core.frequency.0));
        let scalar = stack.operator_work.as_ref().zip(core).map(|(work, speed)| work.value.0 * 1e-6 / speed);
        let Some(fork_join) = &stack.fork_join else {
            return scalar.map_or(stack.operator_overhead.value, Nanos::from_seconds);
        };
        let steps = if work.laid_out > Bytes::ZERO { 2.0 } else { 1.0 };
        let levels = (self.cores.len().max(1) as f64).log2();
        let alone = scalar.unwrap_or(stack.operator_overhead.value.seconds());
        Nanos::from_seconds(alone * (1.0 + fork_join.value.0 * steps * levels))
    }
}

/// One core's part of an operator.
#[derive(Clone, Copy, Default)]
struct Part {
    seconds: f64,
    /// Bytes that DRAM moves for it.
    dram: f64,
    /// The share of its lanes that it fills.
    filled: f64,
    stalls: Stalls,
}

/// Bytes that the tiles of a product read again.
struct Tiles {
    bytes: f64,
    /// The cache or memory that they come from.
    from: Level,
    /// Whether they are prefetched, overlapping with the arithmetic.
    ahead: bool,
}

// Convolutions over framed maps, and the time of laying out the operands of products.
//
// In a frame each row of a map is followed by the zero padding that the window reads, so a tap has the same offset at
// every position. A kernel then computes all positions of the frame in sequence, including those between two rows, and
// drops the latter (`sim/numerics/src/dense/convolution.rs`).

/// The factor by which a stack with frames increases the arithmetic of `work`; 1 for other work and other stacks.
fn computed(work: &Work, stack: &StackOnCpu) -> f64 {
    stack.frame.as_ref().map_or(1.0, |group| framed(work, group.value.0 as u64))
}

/// The same factor for a stack that computes `group` positions at a time.
pub fn framed(work: &Work, group: u64) -> f64 {
    let is_convolution = matches!(work.kind, OperatorKind::Convolution | OperatorKind::DepthwiseConvolution);
    let Some(product) = work.product.filter(|_| is_convolution) else { return 1.0 };
    let size = if product.role == ProductRole::InputGradient { product.input_size } else { product.output_size };
    let [rows, columns] = size.map(|side| side.max(1));
    // The stride, from the sizes of input and output.
    let stride = (product.input_size[1] as f64 / product.output_size[1].max(1) as f64).round().max(1.0) as u64;
    let pitch = columns + product.taps[1].saturating_sub(1) / stride;
    let positions = (rows - 1) * pitch + columns;
    positions.next_multiple_of(group.max(1)) as f64 / (rows * columns) as f64
}

/// Seconds that a core at `frequency` takes alone to lay out the operands and the result of `work`.
fn laying(work: &Work, frequency: Hertz, stack: &StackOnCpu) -> f64 {
    let rate = match work.kind {
        OperatorKind::Convolution => &stack.convolution_operands,
        OperatorKind::Gemm => &stack.gemm_operands,
        _ => &None,
    };
    rate.as_ref().map_or(0.0, |rate| work.traffic.dram.as_f64() / (rate.value * frequency).0)
}

// How an operator is shared out over threads, one per core, and the cost of starting it.
