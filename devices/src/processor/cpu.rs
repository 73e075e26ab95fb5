//! The CPU: clusters of cores, an even split that waits for the slowest, and cache levels.

use crate::device::{ClusterClass, ClusterConstants, DvfsCurve, PowerConstants};
use crate::processor::selection::{CoreSelection, Frequency, SelectionError};
use crate::processor::{Cost, Dram};
use crate::stack::{Int8Kernels, StackOnCpu};
use crate::units::{Bytes, BytesPerCycle, BytesPerSecond, FlopsPerCycle, FlopsPerSecond, Hertz, Nanos, Watts};
use crate::work::{OperatorKind, Precision, Work};

/// A core of a cluster at its operating frequency.
#[derive(Clone, Copy, Debug)]
pub struct Core {
    /// The class of its cluster.
    pub class: ClusterClass,
    /// Its frequency.
    pub frequency: Hertz,
    /// Its power while busy with vector kernels.
    pub power: Watts,
    vector: Bytes,
    fp32_rate: FlopsPerCycle,
    fp16_rate: FlopsPerCycle,
    int8_rate: FlopsPerCycle,
    int8_widening_rate: FlopsPerCycle,
    l1: Bytes,
    l2: Bytes,
    l1_rate: BytesPerCycle,
    l2_rate: BytesPerCycle,
    l3_rate: BytesPerCycle,
    dram_bandwidth: BytesPerSecond,
}

/// A cluster: how many cores, and one of them at either end of its range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cluster {
    cores: usize,
    highest: Core,
    lowest: Core,
}

impl Core {
    /// The cluster that `constants` describe.
    pub(crate) fn cluster(constants: &ClusterConstants, curve: Option<&DvfsCurve>, power: &PowerConstants) -> Cluster {
        let at = |frequency: Hertz| Core {
            class: constants.class,
            frequency,
            power: power_at(constants, curve, power, frequency),
            vector: constants.vector.value,
            fp32_rate: constants.fp32_rate.value,
            fp16_rate: constants.fp16_rate.value,
            int8_rate: constants.int8_rate.value,
            int8_widening_rate: constants.int8_widening_rate.as_ref().unwrap_or(&constants.fp32_rate).value,
            l1: constants.l1.value,
            l2: constants.l2.value,
            l1_rate: constants.l1_rate.value,
            l2_rate: constants.l2_rate.value,
            l3_rate: constants.l3_rate.value,
            dram_bandwidth: constants.dram_bandwidth.value,
        };
        Cluster {
            cores: constants.cores.value.0 as usize,
            highest: at(constants.frequency.value),
            lowest: at(constants.frequency_lowest.value),
        }
    }

    /// Operations a second in `precision`, every lane full, with the best instructions that there are.
    #[must_use]
    pub fn peak(&self, precision: Precision) -> FlopsPerSecond {
        self.peak_with(precision, Int8Kernels::DotProduct)
    }

    /// The same with a stack's way of multiplying eight-bit integers.
    #[must_use]
    pub fn peak_with(&self, precision: Precision, int8: Int8Kernels) -> FlopsPerSecond {
        let rate = match (precision, int8) {
            (Precision::Fp32 | Precision::Int32, _) => self.fp32_rate,
            (Precision::Fp16, _) => self.fp16_rate,
            (Precision::Int8, Int8Kernels::DotProduct) => self.int8_rate,
            (Precision::Int8, Int8Kernels::Widening) => self.int8_widening_rate,
            // Half the lanes of eight-bit ones.
            (Precision::Int16, _) => self.int8_widening_rate * 0.5,
        };
        rate * self.frequency
    }

    /// The bandwidth of the level that holds `share` of a working set, and whether it is DRAM.
    fn bandwidth(&self, share: f64, in_l3: bool, dram_share: f64) -> (f64, bool) {
        if share <= self.l1.as_f64() {
            ((self.l1_rate * self.frequency).0, false)
        } else if share <= self.l2.as_f64() {
            ((self.l2_rate * self.frequency).0, false)
        } else {
            let l3 = (self.l3_rate * self.frequency).0;
            if in_l3 { (l3, false) } else { (self.dram_bandwidth.0.min(l3).min(dram_share), true) }
        }
    }
}

/// Power of a busy core: on the measured curve, or by a power law from the one figure that is known.
fn power_at(
    constants: &ClusterConstants,
    curve: Option<&DvfsCurve>,
    power: &PowerConstants,
    frequency: Hertz,
) -> Watts {
    let scalar = curve.and_then(|curve| interpolate(curve, frequency)).unwrap_or_else(|| {
        let ratio = frequency.0 / constants.frequency.value.0;
        constants.power.value * ratio.powf(power.frequency_exponent.value.0)
    });
    scalar * power.vector_factor.value.0
}

/// The power on the curve at `frequency`; the nearest end outside it.
fn interpolate(curve: &DvfsCurve, frequency: Hertz) -> Option<Watts> {
    let mut points = curve.frequency.values.iter().zip(&curve.power.values);
    let (mut low, mut low_power) = points.next()?;
    if frequency.0 <= low.0 {
        return Some(*low_power);
    }
    for (high, high_power) in points {
        if frequency.0 <= high.0 {
            let share = (frequency.0 - low.0) / (high.0 - low.0);
            return Some(*low_power * (1.0 - share) + *high_power * share);
        }
        (low, low_power) = (high, high_power);
    }
    Some(*low_power)
}

/// All clusters of a device.
#[derive(Clone, Debug)]
pub struct Cpu {
    clusters: Vec<Cluster>,
    l3: Bytes,
    dram: Dram,
}

impl Cpu {
    pub(crate) fn new(clusters: Vec<Cluster>, l3: Bytes, dram: Dram) -> Self {
        Self { clusters, l3, dram }
    }

    /// The cores that `selection` names, at `frequency`.
    ///
    /// `big` counts the fastest cores first and goes on into the middle clusters, as papers do that run on "the four
    /// big cores" of a 1 + 3 + 4 chip; `middle` and `little` stay in their class.
    ///
    /// # Errors
    /// A class that the device lacks, or more cores of it than there are.
    pub fn choose(&self, selection: CoreSelection, frequency: Frequency) -> Result<CpuCores, SelectionError> {
        let mut cores: Vec<Core> = Vec::new();
        for cluster in &self.clusters {
            let core = match frequency {
                Frequency::Highest | Frequency::Governor => cluster.highest,
                Frequency::Lowest => cluster.lowest,
            };
            if selection.admits(core.class) {
                cores.extend(std::iter::repeat_n(core, cluster.cores));
            }
        }
        cores.sort_by(|a, b| {
            let peak = |core: &Core| core.peak(Precision::Fp32).0;
            a.class.cmp(&b.class).then(peak(b).total_cmp(&peak(a)))
        });
        if let CoreSelection::Some { class, count } = selection {
            if !self.clusters.iter().any(|cluster| cluster.highest.class == class) {
                let mut classes: Vec<_> = self.clusters.iter().map(|c| c.highest.class).collect();
                classes.sort();
                classes.dedup();
                return Err(SelectionError::NoSuchClass { class, classes });
            }
            if count > cores.len() {
                return Err(SelectionError::TooMany { class, count, available: cores.len() });
            }
            cores.truncate(count);
        }
        Ok(CpuCores { cores, l3: self.l3, dram: self.dram })
    }
}

/// The cores that a run uses, fastest first.
#[derive(Clone, Debug)]
pub struct CpuCores {
    cores: Vec<Core>,
    l3: Bytes,
    dram: Dram,
}

impl CpuCores {
    /// The cores, fastest class first.
    #[must_use]
    pub fn cores(&self) -> &[Core] {
        &self.cores
    }

    /// The peak of all cores together.
    #[must_use]
    pub fn peak(&self, precision: Precision) -> FlopsPerSecond {
        self.cores.iter().map(|core| core.peak(precision)).sum()
    }

    /// The bandwidth at which the cores together stream through memory, at most what DRAM achieves.
    #[must_use]
    pub fn streaming_bandwidth(&self) -> BytesPerSecond {
        let together = self.cores.iter().map(|core| core.dram_bandwidth.0).sum::<f64>();
        BytesPerSecond(together.min(self.dram.bandwidth.0))
    }

    /// Power while all cores are busy.
    #[must_use]
    pub fn power(&self) -> Watts {
        self.cores.iter().map(|core| core.power).sum()
    }

    /// What `work` costs under `stack`, alone.
    ///
    /// The work is split evenly over the cores, or over as many as it has outputs, and ends with the slowest. A
    /// level of private cache holds a core's share of the working set, L3 the whole of it, and a set beyond a level
    /// moves at the next level's bandwidth. What a product's tiles read again comes on top of its arithmetic.
    /// Shared-memory traffic and barriers are a GPU's and cost nothing here.
    #[must_use]
    pub fn cost(&self, work: &Work, stack: &StackOnCpu) -> Cost {
        if work.launches == 0 {
            return Cost { occupancy: 1.0, ..Cost::default() };
        }
        let outputs = work.parallelism.max(1.0);
        // A float cast saturates, and turns not-a-number into zero.
        let used = (outputs as usize).clamp(1, self.cores.len().max(1));
        let parts = used as f64;
        let efficiency = stack.efficiency.of(work.kind).0;
        let in_l3 = work.working_set <= self.l3;
        let bytes = work.traffic.dram.as_f64() / parts;
        let element = work.precision.bytes().as_f64() / Precision::Fp32.bytes().as_f64();
        let traffic = if work.kind.is_dense_product() { stack.product_traffic.value.0 * element } else { 0.0 };
        let tiles = work.flops.0 * traffic;
        let (mut slowest, mut moved, mut filled) = (0.0_f64, 0.0, 0.0);
        for core in self.cores.iter().take(used) {
            let lanes = core.vector.as_f64() / work.precision.bytes().as_f64();
            let vector = (outputs / parts / lanes.max(1.0)).min(1.0);
            let integer_rate = core.peak(Precision::Fp32).0 / 2.0;
            let peak = core.peak_with(work.precision, stack.int8);
            let compute = work.flops.0 / parts / (peak.0 * efficiency * vector)
                + work.integer_ops / parts / (integer_rate * vector);
            let share = work.working_set.as_f64() / parts;
            let dram_share = self.dram.bandwidth.0 / parts;
            let (bandwidth, from_dram) = core.bandwidth(share, in_l3, dram_share);
            let bandwidth = match &stack.irregular_rate {
                Some(rate) if work.kind == OperatorKind::Layout => bandwidth.min((rate.value * core.frequency).0),
                _ => bandwidth,
            };
            let again = tiles / parts;
            slowest = slowest.max(compute.max(bytes / bandwidth) + again / core.dram_bandwidth.0.min(dram_share));
            moved += again + if from_dram { bytes } else { 0.0 };
            filled += vector;
        }
        Cost {
            launch: stack.operator_overhead.value,
            busy: Nanos::from_seconds(slowest),
            dram: Bytes(moved.round() as u64),
            occupancy: filled / self.cores.len().max(1) as f64,
        }
    }
}
