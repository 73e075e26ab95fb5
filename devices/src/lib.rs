//! Units, work and the calibrated models of phones and boards.
//!
//! ```text
//! calibrations/*.toml ── text (strict TOML) ──▶ calibration::Calibrated<…Constants>
//!                                                 │ = Device, Stack, System
//!                work::Work ─────────────┐        ▼
//!                                        ├─▶ processor (CPU, GPU, DSP) ─▶ Cost: time, bytes, occupancy
//!                units (Nanos, Bytes …) ─┘   storage (flash queue) · thermal · system (page costs, reserves)
//! ```
//!
//! [`load`] gives a [`Device`], [`load_stack`] a software [`Stack`] and [`load_system`] an operating [`System`]; each
//! is a [`calibration::Calibrated`] file, whose constants have a unit, a source and a kind and can be listed and
//! overridden by name. `device.gpu()`, `device.cpu()` and `device.dsp()` give models whose `cost` turns [`Work`] into
//! time and bytes, `device.flash()` a model of the storage. Constants live in `calibrations/*.toml`, mechanisms here: a
//! new device is a new file there and needs no code. For all crates of the workspace, [`text`] guesses mistyped names
//! and reads TOML strictly, and [`stream`] draws random numbers. Nothing here knows networks, policies or events.
//!
//! Modules depend on one another in one direction only: units, text ← calibration ← device ← stack ← thermal, processor
//! ← storage ← system ← registry.
//!
//! ```
//! use haversack_devices::units::Nanos;
//!
//! let mut phone = haversack_devices::load("galaxy-s10")?;
//! phone.set("gpu.launch", 20.0)?;
//! let launch = phone.constants.gpu.as_ref().map(|gpu| gpu.launch.value);
//! assert_eq!(launch, Some(Nanos(20_000)));
//! let error = phone.set("gpu.lanuch", 20.0).unwrap_err().to_string();
//! assert!(error.ends_with("no constant is named `gpu.lanuch` (did you mean `gpu.launch`?)"));
//! # Ok::<(), haversack_devices::CalibrationError>(())
//! ```

/// Returns an error from the enclosing function if the condition is false, like `anyhow::ensure!` but for any error
/// type.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $error:expr) => {
        if !$condition {
            return Err($error);
        }
    };
}

pub mod calibration;
pub mod device;
pub mod processor;
pub mod registry;
pub mod stack;
pub mod storage;
pub mod stream;
pub mod system;
pub mod text;
pub mod thermal;
pub mod units;
pub mod work;

pub use calibration::{Calibrated, CalibrationError, Constant, ConstantEntry, Digest, Kind, Schema, Visit};
pub use device::{
    ClusterClass, ClusterConstants, Device, DspConstants, Form, GpuConstants, GpuVendor, HexagonVersion, InstructionSet,
};
pub use processor::{
    AtomicCounts, CoreSelection, Cost, Cpu, CpuCores, Dram, Dsp, Energy, Frequency, Gpu, GpuLimits, KernelCounts,
    KernelTime, Offloader, Power, Processor, ProcessorError, ProcessorKind, ProgramCounts, Schedutil, SelectionError,
    Stalls, StepWise, Usage,
};
pub use registry::{Listing, list, list_stacks, list_systems, load, load_stack, load_system, stacks_that_fit};
pub use stack::{
    AllocatorKind, Attention, CodecConstants, CodecRatios, DspLibrary, Efficiency, FactorConstants, Fold, Int8Kernels,
    Stack, StackGraph, StackOnCpu, StackOnDsp, StackOnGpu, fitted_constants,
};
pub use storage::{Direction, Driver, Flash, FlashQueue, Request, ScalarSpeed};
pub use stream::Stream;
pub use system::{PageCosts, PageLists, System};
pub use text::{TomlDocument, TomlError};
pub use thermal::{Heat, Thermal, ThermalError};
pub use units::{
    Bytes, BytesPerCycle, BytesPerFlop, BytesPerSecond, Celsius, Count, Dimension, Factor, Flops, FlopsPerCycle,
    FlopsPerSecond, Fraction, Hertz, Interval, Joules, JoulesPerByte, JoulesPerKelvin, KelvinPerWatt, Nanos, Watts,
};
pub use work::{HostThread, MemoryFormat, OperatorKind, Precision, Product, ProductRole, Traffic, Work};
