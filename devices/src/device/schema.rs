//! The schema of a device's calibration: each struct is a table, each field a key.

use strum::{Display, IntoStaticStr};

use crate::calibration::{Curve, section};
use crate::{
    Bytes, BytesPerCycle, BytesPerSecond, Celsius, Constant, Count, Factor, FlopsPerCycle, FlopsPerSecond, Fraction,
    Hertz, HexagonVersion, Interval, Joules, JoulesPerByte, JoulesPerKelvin, KelvinPerWatt, Nanos, Visit, Watts,
};

/// The kind of device, as one would choose it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, IntoStaticStr, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Form {
    /// A phone, with a display and a battery.
    Phone,
    /// A computer on a module, for robots and the like.
    Board,
    /// A graphics card; its host is not modelled.
    Gpu,
    /// One core of a shared machine.
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

/// The maker of a GPU, which decides the software that runs on it.
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
    /// A thought experiment without a maker.
    #[strum(to_string = "no vendor (idealised)")]
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
        /// The operating point at light load; the setting `lowest` fixes this one.
        pub frequency_lowest: Constant<Hertz>,
        /// Width of a vector register.
        pub vector: Constant<Bytes>,
        /// Pipes that execute a vector multiply-add each cycle.
        pub pipes: Option<Constant<Count>>,
        /// FP32 operations per core and cycle. Default: two per pipe and lane.
        #[serde(default = "Constant::unknown")]
        pub fp32_rate: Constant<FlopsPerCycle>,
        /// The share of its floating-point rate that matrix products reach, which multiply a vector by one
        /// element of another. It covers issue slots spent on loads, and pipes that do this every other cycle
        /// only. Default: all of it.
        pub by_element: Option<Constant<Fraction>>,
        /// FP16 operations per core and cycle. Default: twice FP32, as in ARMv8.2.
        #[serde(default = "Constant::unknown")]
        pub fp16_rate: Constant<FlopsPerCycle>,
        /// INT8 operations per core and cycle, with dot-product instructions where the core has them (four
        /// times FP32, the default).
        #[serde(default = "Constant::unknown")]
        pub int8_rate: Constant<FlopsPerCycle>,
        /// The same with widening multiplications only. Default: as FP32.
        pub int8_widening_rate: Option<Constant<FlopsPerCycle>>,
        /// L1 data cache of a core.
        pub l1: Constant<Bytes>,
        /// L2 cache of a core.
        pub l2: Constant<Bytes>,
        /// Bytes per cycle that a core moves from L1.
        pub l1_rate: Constant<BytesPerCycle>,
        /// Bytes per cycle that a core moves from L2.
        pub l2_rate: Constant<BytesPerCycle>,
        /// Bytes per cycle that a core moves from L3; also its limit from DRAM.
        pub l3_rate: Constant<BytesPerCycle>,
        /// DRAM bandwidth that one core can draw.
        pub dram_bandwidth: Constant<BytesPerSecond>,
        /// Power of one busy core at its highest frequency, above idle.
        pub power: Constant<Watts>,
        /// CoreMark iterations per second and MHz: the core's speed on branchy scalar code.
        pub coremark: Option<Constant<Factor>>,
    }
}

section! {
    /// `[cache]`: the cache that the clusters share.
    pub struct CacheConstants {
        /// L3 (DynamIQ shared) cache.
        pub l3: Option<Constant<Bytes>>,
        /// Cores that can use it simultaneously, each at the speed of a single one. Default: all of them.
        pub l3_ports: Option<Constant<Count>>,
    }
}

section! {
    /// `[gpu]`. A unit is a streaming multiprocessor, shader processor or shader core.
    pub struct GpuConstants {
        /// Marketing name.
        pub name: String,
        /// `nvidia`, `qualcomm`, `arm` or `idealised`. Without it, every stack with GPU kernels runs.
        pub vendor: Option<GpuVendor>,
        /// Units.
        pub units: Constant<Count>,
        /// Clock under load.
        pub clock: Constant<Hertz>,
        /// FP32 operations per unit and cycle.
        pub fp32_rate: Constant<FlopsPerCycle>,
        /// FP16 operations of the general units, per unit and cycle. Default: twice FP32.
        #[serde(default = "Constant::unknown")]
        pub fp16_rate: Constant<FlopsPerCycle>,
        /// INT8 operations of the general units, per unit and cycle. Default: four times FP32.
        #[serde(default = "Constant::unknown")]
        pub int8_rate: Constant<FlopsPerCycle>,
        /// FP16 operations of the tensor cores, per unit and cycle.
        pub fp16_tensor_rate: Option<Constant<FlopsPerCycle>>,
        /// The same with FP32 sums, as in mixed-precision training. Default: the same rate.
        pub fp16_tensor_rate_fp32_sums: Option<Constant<FlopsPerCycle>>,
        /// INT8 operations of the tensor cores, per unit and cycle.
        pub int8_tensor_rate: Option<Constant<FlopsPerCycle>>,
        /// The peaks of all units together, from a data sheet. They follow from units, clock and rates, so loading
        /// checks them against these, takes missing rates from them, and then drops them.
        pub(super) fp32_peak: Option<Constant<FlopsPerSecond>>,
        pub(super) fp16_peak: Option<Constant<FlopsPerSecond>>,
        pub(super) int8_peak: Option<Constant<FlopsPerSecond>>,
        pub(super) fp16_tensor_peak: Option<Constant<FlopsPerSecond>>,
        pub(super) fp16_tensor_peak_fp32_sums: Option<Constant<FlopsPerSecond>>,
        pub(super) int8_tensor_peak: Option<Constant<FlopsPerSecond>>,
        /// Threads that issue together (a warp or wave). Default: 32.
        pub lanes: Option<Constant<Count>>,
        /// Whether it has atomic float additions to memory; without them kernels loop over compare-and-swap.
        #[serde(default)]
        pub native_float_atomics: bool,
        /// Threads resident on a unit.
        pub threads: Constant<Count>,
        /// Blocks (work-groups) resident on a unit.
        pub blocks: Constant<Count>,
        /// Shared (local) memory of a unit.
        pub shared: Constant<Bytes>,
        /// Bytes per cycle between a unit and its shared memory.
        pub shared_rate: Constant<BytesPerCycle>,
        /// The cache before DRAM.
        pub l2: Option<Constant<Bytes>>,
        /// Its bandwidth. Without it, every byte moves at DRAM bandwidth.
        pub l2_bandwidth: Option<Constant<BytesPerSecond>>,
        /// Time from one kernel of a queue to the next.
        pub launch: Constant<Nanos>,
        /// Time of an empty kernel that the host waits for.
        pub round_trip: Constant<Nanos>,
        /// Duration of a barrier in one block.
        pub barrier: Constant<Interval>,
        /// Service interval of atomics to one address.
        pub atomic_interval: Constant<Interval>,
        /// Round trip of an atomic to the memory system.
        pub atomic_latency: Constant<Interval>,
        /// Power under load; for a card its board's limit, memory included.
        pub power: Constant<Watts>,
        /// Power while idle and awake.
        pub power_idle: Constant<Watts>,
        /// The share of the device's memory that it can address, where a driver limits it.
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
        /// The peak of its vector units, from a source. It follows from structure and clock, so loading checks it
        /// against these and drops it.
        pub(super) int8_peak: Option<Constant<FlopsPerSecond>>,
        /// Memory that a process may map on the DSP.
        pub memory: Constant<Bytes>,
        /// Duration of a FastRPC call without buffers.
        pub fastrpc: Constant<Nanos>,
        /// Duration of a call through the polled queue.
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
        /// Thermal resistance from the die to the chassis.
        pub die_resistance: Constant<KelvinPerWatt>,
        /// Heat capacity of the chassis.
        pub chassis_capacity: Constant<JoulesPerKelvin>,
        /// Thermal resistance between chassis and battery.
        pub chassis_resistance: Constant<KelvinPerWatt>,
        /// Heat capacity of the battery and everything else.
        pub battery_capacity: Constant<JoulesPerKelvin>,
        /// Thermal resistance from there to the surroundings.
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
        /// Energy per byte moved, interface included; for a card it is part of `gpu.power`.
        pub energy: Constant<JoulesPerByte>,
        /// Power while idle.
        pub power_idle: Constant<Watts>,
    }
}

section! {
    /// `[storage]`: the flash storage. [`crate::storage`] makes a model of it.
    pub struct StorageConstants {
        /// `ufs21` … `ufs40`, `emmc51`.
        pub class: String,
        /// Sequential reads of files in practice, all requests together.
        pub sequential_read: Constant<BytesPerSecond>,
        /// Sequential writes of files in practice, while the write cache has room.
        pub sequential_write: Constant<BytesPerSecond>,
        /// The same once the write cache is full.
        pub sustained_write: Constant<BytesPerSecond>,
        /// The data sheet's sequential reads: the transfer speed of one command's bytes. Default: the rate in practice.
        pub datasheet_read: Option<Constant<BytesPerSecond>>,
        /// The data sheet's sequential writes.
        pub datasheet_write: Option<Constant<BytesPerSecond>>,
        /// Random reads of 4 KiB with the queue full.
        pub random_read: Constant<BytesPerSecond>,
        /// Random writes of 4 KiB with the queue full.
        pub random_write: Constant<BytesPerSecond>,
        /// Latency of a single 4 KiB read (queue depth 1), without the driver's work.
        pub latency_read: Constant<Nanos>,
        /// Latency of a single 4 KiB write.
        pub latency_write: Constant<Nanos>,
        /// Bytes that the faster tier of the flash takes before writes fall to the sustained rate.
        pub write_cache: Constant<Bytes>,
        /// Slots of the command queue.
        pub queue_depth: Constant<Count>,
        /// Slots of them kept for managing the device.
        pub reserved_slots: Constant<Count>,
        /// The cells behind the controller. Without them no command waits for a program or an erase, and a full write
        /// cache is emptied only while the device is idle.
        pub nand: Option<NandConstants>,
    }
}

section! {
    /// `[storage.nand]`: the flash's internal work, which matters when its write cache is full or it has none.
    pub struct NandConstants {
        /// Dies that work in parallel.
        pub dies: Constant<Count>,
        /// Write-cache data per block over all planes of a die; the block is erased once its data has moved.
        pub block: Constant<Bytes>,
        /// Duration of a block's erase.
        pub erase: Constant<Nanos>,
        /// How long a read waits for a programming die until the program is suspended.
        pub program_wait: Constant<Nanos>,
        /// The same for an erasing die.
        pub erase_wait: Constant<Nanos>,
    }
}

section! {
    /// `[memory]`: properties of the device that the management of its memory depends on.
    pub struct MemoryConstants {
        /// Pixels across the display.
        pub display_width: Constant<Count>,
        /// Pixels down the display.
        pub display_height: Constant<Count>,
    }
}

section! {
    /// `[power]`: power of the device as a whole.
    pub struct PowerConstants {
        /// Platform power while idle, screen off.
        pub idle: Constant<Watts>,
        /// Power of everything else while training: host cores that feed a GPU, memory controller, rails.
        pub rest_of_soc: Constant<Watts>,
        /// Power, above the idle device, of shared parts that any busy core keeps awake and that sleep otherwise: the
        /// cluster's cache, the interconnect, the memory controller. Default: zero.
        pub awake: Option<Constant<Watts>>,
        /// Vector kernels draw this multiple of a core's `power`, which was measured on a scalar benchmark.
        pub vector_factor: Constant<Factor>,
        /// Used where no curve is known: the voltage extrapolated to zero frequency, as a fraction of that at
        /// the highest frequency, to which it rises linearly. A core's power is then proportional to
        /// frequency times voltage squared.
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
    /// All constants of a device's calibration: the top level of the file.
    pub struct DeviceConstants {
        /// Another device of which this one overrides a few numbers: an id, or a file in the same folder.
        pub base: Option<String>,
        /// The product.
        pub name: String,
        /// Its system on a chip.
        pub soc: String,
        /// `phone`, `board`, `gpu`, `server` or `idealised`. A device without a form belongs to no group of devices.
        pub form: Option<Form>,
        /// `arm64` or `x86-64`, for all cores. Without it, every stack with CPU kernels runs.
        pub instruction_set: Option<InstructionSet>,
        /// Choices and doubts worth knowing.
        pub remark: Option<String>,
        /// The software stack of runs that name none: an id, or a `.toml` file relative to this file's folder.
        pub default_stack: String,
        /// Memory: of the board or phone, or of the card.
        pub ram: Constant<Bytes>,
        /// The part of RAM that a board's operating system uses and reserves for devices; phones have files for
        /// their system (`systems/`).
        pub system_memory: Option<Constant<Bytes>>,
        /// The part of RAM that a phone's firmware, modem and other processors keep from the kernel.
        pub carve_outs: Option<Constant<Bytes>>,
        /// Energy of a full battery.
        pub battery: Option<Constant<Joules>>,
        /// Storage.
        pub storage: Option<StorageConstants>,
        /// Constants that decide how much memory the system keeps in reserve.
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
