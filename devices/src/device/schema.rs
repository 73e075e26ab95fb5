//! What a device's calibration holds: each struct is a table, each field a key.

use strum::{Display, IntoStaticStr};

use crate::calibration::{Curve, section};
use crate::{
    Bytes, BytesPerCycle, BytesPerSecond, Celsius, Constant, Count, Factor, FlopsPerCycle, FlopsPerSecond, Fraction,
    Hertz, HexagonVersion, Interval, Joules, JoulesPerByte, JoulesPerKelvin, KelvinPerWatt, Nanos, Visit, Watts,
};

/// What a device is, as far as somebody would choose it by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, IntoStaticStr, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Form {
    /// Carried around, with a display and a battery.
    Phone,
    /// A computer on a module, for robots and the like.
    Board,
    /// A graphics card; its host is not modelled.
    Gpu,
    /// A core of a machine that others share.
    Server,
    /// A thought experiment of a paper.
    Idealised,
}

impl Visit for Form {}

/// The classes of CPU clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, IntoStaticStr, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ClusterClass {
    /// The fastest cores, a prime core included.
    Big,
    /// Cores of the same kind as the big ones, but slower; part of what papers call "big cores".
    Middle,
    /// The efficiency cores.
    Little,
}

impl ClusterClass {
    /// All classes, the fastest first.
    pub const ALL: [Self; 3] = [Self::Big, Self::Middle, Self::Little];

    /// The word for it in calibrations and selections of cores.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

impl Visit for ClusterClass {}

/// Who makes a GPU, and so which software runs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GpuVendor {
    /// NVIDIA: CUDA.
    #[serde(rename = "nvidia")]
    #[strum(to_string = "NVIDIA")]
    Nvidia,
    /// Qualcomm's Adreno.
    Qualcomm,
    /// Arm's Mali.
    Arm,
    /// Nobody: a thought experiment.
    #[strum(to_string = "nobody (an idealised one)")]
    Idealised,
}

impl Visit for GpuVendor {}

/// The instructions that a CPU runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, serde::Deserialize)]
pub enum InstructionSet {
    /// 64-bit Arm.
    #[serde(rename = "arm64")]
    #[strum(to_string = "arm64")]
    Arm64,
    /// 64-bit x86.
    #[serde(rename = "x86-64")]
    #[strum(to_string = "x86-64")]
    X86,
}

impl Visit for InstructionSet {}

section! {
    /// A CPU cluster: `[[cpu]]`, one table a cluster.
    pub struct ClusterConstants {
        /// `big`, `middle` or `little`.
        pub class: ClusterClass,
        /// The core's marketing name.
        pub core: String,
        /// Cores in the cluster.
        pub cores: Constant<Count>,
        /// The highest operating point; points of the cluster's curve beyond it are not used.
        pub frequency: Constant<Hertz>,
        /// The operating point that the governor falls to when there is little to do, and that `lowest` holds.
        pub frequency_lowest: Constant<Hertz>,
        /// Width of a vector register.
        pub vector: Constant<Bytes>,
        /// Pipes that multiply and add a vector in each cycle.
        pub pipes: Option<Constant<Count>>,
        /// FP32 operations a core and cycle: two of each pipe and lane where it is not given.
        #[serde(default = "Constant::unknown")]
        pub fp32_rate: Constant<FlopsPerCycle>,
        /// The share of its floating-point rate that products of matrices reach, which multiply a vector by one element of
        /// another: issue slots of loads, and pipes that do it every other cycle; all of it where it is not given.
        pub by_element: Option<Constant<Fraction>>,
        /// FP16 operations a core and cycle: twice FP32 where it is not given, as ARMv8.2 has them.
        #[serde(default = "Constant::unknown")]
        pub fp16_rate: Constant<FlopsPerCycle>,
        /// INT8 operations a core and cycle, with dot-product instructions where it has them: then four times FP32, which it is
        /// where it is not given.
        #[serde(default = "Constant::unknown")]
        pub int8_rate: Constant<FlopsPerCycle>,
        /// The same with widening multiplications alone; as FP32 where it is not given.
        pub int8_widening_rate: Option<Constant<FlopsPerCycle>>,
        /// L1 data cache of a core.
        pub l1: Constant<Bytes>,
        /// L2 cache of a core.
        pub l2: Constant<Bytes>,
        /// Bytes a core moves from L1.
        pub l1_rate: Constant<BytesPerCycle>,
        /// Bytes a core moves from L2.
        pub l2_rate: Constant<BytesPerCycle>,
        /// Bytes a core moves from L3; also its ceiling from DRAM.
        pub l3_rate: Constant<BytesPerCycle>,
        /// DRAM bandwidth that one core can draw.
        pub dram_bandwidth: Constant<BytesPerSecond>,
        /// Power of one busy core at its highest frequency, above idle.
        pub power: Constant<Watts>,
        /// CoreMark iterations a second for each MHz: what branchy scalar code gets from the core.
        pub coremark: Option<Constant<Factor>>,
    }
}

section! {
    /// `[cache]`: what the clusters share.
    pub struct CacheConstants {
        /// L3 (DynamIQ shared) cache.
        pub l3: Option<Constant<Bytes>>,
        /// Cores that draw from it at once as fast as one alone; all of them where it is not given.
        pub l3_ports: Option<Constant<Count>>,
    }
}

section! {
    /// `[gpu]`. A unit is a streaming multiprocessor, shader processor or shader core.
    pub struct GpuConstants {
        /// Marketing name.
        pub name: String,
        /// `nvidia`, `qualcomm`, `arm` or `idealised`; every stack that has kernels for a GPU runs on one without.
        pub vendor: Option<GpuVendor>,
        /// Units.
        pub units: Constant<Count>,
        /// Clock under load.
        pub clock: Constant<Hertz>,
        /// FP32 operations a unit and cycle.
        pub fp32_rate: Constant<FlopsPerCycle>,
        /// FP16 operations of the general units of a unit, a cycle: twice FP32 where it is not given.
        #[serde(default = "Constant::unknown")]
        pub fp16_rate: Constant<FlopsPerCycle>,
        /// INT8 operations of the general units of a unit, a cycle: four times FP32 where it is not given.
        #[serde(default = "Constant::unknown")]
        pub int8_rate: Constant<FlopsPerCycle>,
        /// FP16 operations of the tensor cores of a unit, a cycle.
        pub fp16_tensor_rate: Option<Constant<FlopsPerCycle>>,
        /// The same where sums are FP32, as mixed precision trains; as fast where it is not given.
        pub fp16_tensor_rate_fp32_sums: Option<Constant<FlopsPerCycle>>,
        /// INT8 operations of the tensor cores of a unit, a cycle.
        pub int8_tensor_rate: Option<Constant<FlopsPerCycle>>,
        /// The peaks of all units, as a data sheet gives them: what they say follows from units, clock and rates, so that they
        /// are held against these and forgotten; a rate that is not given is what its peak says.
        pub(super) fp32_peak: Option<Constant<FlopsPerSecond>>,
        pub(super) fp16_peak: Option<Constant<FlopsPerSecond>>,
        pub(super) int8_peak: Option<Constant<FlopsPerSecond>>,
        pub(super) fp16_tensor_peak: Option<Constant<FlopsPerSecond>>,
        pub(super) fp16_tensor_peak_fp32_sums: Option<Constant<FlopsPerSecond>>,
        pub(super) int8_tensor_peak: Option<Constant<FlopsPerSecond>>,
        /// Threads that issue together (a warp or wave); 32 where it is not given.
        pub lanes: Option<Constant<Count>>,
        /// Whether it adds floats to memory atomically, without a loop of compare-and-swap.
        #[serde(default)]
        pub native_float_atomics: bool,
        /// Threads resident on a unit.
        pub threads: Constant<Count>,
        /// Blocks (work-groups) resident on a unit.
        pub blocks: Constant<Count>,
        /// Shared (local) memory of a unit.
        pub shared: Constant<Bytes>,
        /// Bytes a unit moves to and from its shared memory.
        pub shared_rate: Constant<BytesPerCycle>,
        /// The cache before DRAM.
        pub l2: Option<Constant<Bytes>>,
        /// Its bandwidth, where it is known; without it every byte moves at DRAM bandwidth.
        pub l2_bandwidth: Option<Constant<BytesPerSecond>>,
        /// Time from one kernel of a queue to the next.
        pub launch: Constant<Nanos>,
        /// Time of an empty kernel that the host waits for.
        pub round_trip: Constant<Nanos>,
        /// A barrier of one block.
        pub barrier: Constant<Interval>,
        /// Service interval of atomics to one address.
        pub atomic_interval: Constant<Interval>,
        /// Round trip of an atomic to the memory system.
        pub atomic_latency: Constant<Interval>,
        /// Power under load; of a card its board's limit, which holds what the memory draws.
        pub power: Constant<Watts>,
        /// Power while idle and awake.
        pub power_idle: Constant<Watts>,
        /// The share of the device's memory that it can address, where a driver bounds it.
        pub memory_share: Option<Constant<Fraction>>,
    }
}

section! {
    /// `[dsp]`.
    pub struct DspConstants {
        /// Marketing name.
        pub name: String,
        /// Instruction-set version.
        pub version: HexagonVersion,
        /// Width of a vector register.
        pub vector: Constant<Bytes>,
        /// Hardware threads.
        pub threads: Constant<Count>,
        /// Vector contexts.
        pub contexts: Constant<Count>,
        /// Tightly coupled memory.
        pub vtcm: Constant<Bytes>,
        /// L2 cache.
        pub l2: Constant<Bytes>,
        /// Line of the L2 cache.
        pub l2_line: Constant<Bytes>,
        /// Clock under load.
        pub clock: Constant<Hertz>,
        /// The peak of its vector units, as a source gives it, which follows from structure and clock: held against them and
        /// forgotten.
        pub(super) int8_peak: Option<Constant<FlopsPerSecond>>,
        /// Memory that a process may map on the DSP.
        pub memory: Constant<Bytes>,
        /// A FastRPC call without buffers.
        pub fastrpc: Constant<Nanos>,
        /// A call through the polled queue.
        pub queue: Constant<Nanos>,
        /// Time that the driver polls before it sleeps.
        pub poll: Constant<Nanos>,
        /// Power under load.
        pub power: Constant<Watts>,
    }
}

section! {
    /// `[thermal]`: a chain of heat capacities from the die to the surroundings.
    pub struct ThermalConstants {
        /// Heat capacity of the die and its package.
        pub die_capacity: Constant<JoulesPerKelvin>,
        /// Resistance from the die to the chassis.
        pub die_resistance: Constant<KelvinPerWatt>,
        /// Heat capacity of the chassis.
        pub chassis_capacity: Constant<JoulesPerKelvin>,
        /// Resistance from the chassis to the battery and back.
        pub chassis_resistance: Constant<KelvinPerWatt>,
        /// Heat capacity of the battery and all else.
        pub battery_capacity: Constant<JoulesPerKelvin>,
        /// Resistance from there to the surroundings.
        pub battery_resistance: Constant<KelvinPerWatt>,
        /// The governor lowers frequencies while the die is hotter.
        pub trip: Constant<Celsius>,
        /// The device does not start, or shuts down, above it.
        pub limit: Constant<Celsius>,
    }
}

section! {
    /// `[dram]`.
    pub struct DramConstants {
        /// Technology and width.
        pub technology: String,
        /// Peak bandwidth of the interface.
        pub peak: Constant<BytesPerSecond>,
        /// Share of the peak that well-shaped traffic reaches.
        pub achievable: Constant<Fraction>,
        /// Energy of a byte moved, interface included; a card's is in its `gpu.power`.
        pub energy: Constant<JoulesPerByte>,
        /// Power while nothing moves.
        pub power_idle: Constant<Watts>,
    }
}

section! {
    /// `[storage]`: the flash storage. [`crate::storage`] makes a model of it.
    pub struct StorageConstants {
        /// `ufs21` … `ufs40`, `emmc51`.
        pub class: String,
        /// What files reach in practice: sequential reads of all requests together.
        pub sequential_read: Constant<BytesPerSecond>,
        /// The same of writes while the write cache has room.
        pub sequential_write: Constant<BytesPerSecond>,
        /// The same behind a full write cache.
        pub sustained_write: Constant<BytesPerSecond>,
        /// The data sheet's sequential reads: how fast a command's bytes move once they do. As in practice where none
        /// is known.
        pub datasheet_read: Option<Constant<BytesPerSecond>>,
        /// The same of writes.
        pub datasheet_write: Option<Constant<BytesPerSecond>>,
        /// Random reads of 4 KiB with the queue full.
        pub random_read: Constant<BytesPerSecond>,
        /// Random writes of 4 KiB with the queue full.
        pub random_write: Constant<BytesPerSecond>,
        /// A read of 4 KiB alone in the device (queue depth 1); the driver's work comes on top.
        pub latency_read: Constant<Nanos>,
        /// A write of 4 KiB alone in the device.
        pub latency_write: Constant<Nanos>,
        /// Bytes that the faster tier of the flash takes before writes fall to the sustained rate.
        pub write_cache: Constant<Bytes>,
        /// Slots of the command queue.
        pub queue_depth: Constant<Count>,
        /// Slots of them kept for managing the device.
        pub reserved_slots: Constant<Count>,
        /// The cells behind the controller; where they are not given nobody waits for a program or an erase, and a full write cache
        /// is emptied while nothing else is to be done alone.
        pub nand: Option<NandConstants>,
    }
}

section! {
    /// `[storage.nand]`: what the flash does within, where its write cache is full or it has none.
    pub struct NandConstants {
        /// Dies that work side by side.
        pub dies: Constant<Count>,
        /// What the write cache holds in a block of all planes of a die, which is erased when it was moved.
        pub block: Constant<Bytes>,
        /// Erasing a block.
        pub erase: Constant<Nanos>,
        /// How long a read waits for a die that programs until that is suspended.
        pub program_wait: Constant<Nanos>,
        /// The same of a die that erases.
        pub erase_wait: Constant<Nanos>,
    }
}

section! {
    /// `[memory]`: what the device says about its memory's management.
    pub struct MemoryConstants {
        /// Pixels across the display.
        pub display_width: Constant<Count>,
        /// Pixels down the display.
        pub display_height: Constant<Count>,
    }
}

section! {
    /// `[power]`: what no single processor owns.
    pub struct PowerConstants {
        /// Platform power while idle, screen off.
        pub idle: Constant<Watts>,
        /// Power of all else while training: host cores that feed a GPU, memory controller, rails.
        pub rest_of_soc: Constant<Watts>,
        /// What any busy core keeps awake beside itself, above the idle device, where all of it sleeps: the cluster's cache,
        /// the interconnect, the memory controller. Nothing where it is not given.
        pub awake: Option<Constant<Watts>>,
        /// Vector kernels draw this multiple of the power of the scalar benchmark behind a core's figure.
        pub vector_factor: Constant<Factor>,
        /// The voltage towards standstill, of that at the highest frequency, to which it rises evenly: where no curve is known, a
        /// core's power is as its frequency and the square of its voltage.
        pub voltage_lowest: Constant<Fraction>,
    }
}

section! {
    /// A measured DVFS curve: `[[dvfs]]`; one busy core of the cluster, above idle.
    pub struct DvfsCurve {
        /// The `core` of the cluster that it belongs to.
        pub core: String,
        /// The measurement's own name.
        pub run: String,
        /// Operating points, rising.
        pub frequency: Curve<Hertz>,
        /// Power at each.
        pub power: Curve<Watts>,
    }
}

section! {
    /// All that a device's calibration holds; the top of the file.
    pub struct DeviceConstants {
        /// Another device of which this one overrides a few numbers: an id, or a file beside this one.
        pub base: Option<String>,
        /// The product.
        pub name: String,
        /// Its system on a chip.
        pub soc: String,
        /// `phone`, `board`, `gpu`, `server` or `idealised`; one without belongs to no group of devices.
        pub form: Option<Form>,
        /// `arm64` or `x86-64`, of all cores; every stack that has kernels for a CPU runs where it is not given.
        pub instruction_set: Option<InstructionSet>,
        /// Choices and doubts that a reader should know.
        pub remark: Option<String>,
        /// The software stack where a run names none: an id, or a `.toml` file from this file's folder.
        pub default_stack: String,
        /// Memory: of the board or phone, or of the card.
        pub ram: Constant<Bytes>,
        /// What the operating system of a board holds of it, and what is kept for devices; a phone's system has files of its
        /// own (`systems/`).
        pub system_memory: Option<Constant<Bytes>>,
        /// What a phone's firmware, modem and other processors keep of it from the kernel.
        pub carve_outs: Option<Constant<Bytes>>,
        /// Energy of a full battery.
        pub battery: Option<Constant<Joules>>,
        /// Storage.
        pub storage: Option<StorageConstants>,
        /// What sets the reserves of its memory.
        pub memory: Option<MemoryConstants>,
        /// CPU clusters; empty if the host is not modelled.
        #[serde(default)]
        pub cpu: Vec<ClusterConstants>,
        /// Shared caches.
        pub cache: Option<CacheConstants>,
        /// The GPU.
        pub gpu: Option<GpuConstants>,
        /// The DSP.
        pub dsp: Option<DspConstants>,
        /// Heat.
        pub thermal: Option<ThermalConstants>,
        /// DRAM.
        pub dram: DramConstants,
        /// Power.
        pub power: PowerConstants,
        /// DVFS curves.
        #[serde(default)]
        pub dvfs: Vec<DvfsCurve>,
    }
}
