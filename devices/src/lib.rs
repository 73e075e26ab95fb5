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
//! [`load`] gives a [`Device`], [`load_stack`] a software [`Stack`] and [`load_system`] an operating [`System`]; each is a
//! [`calibration::Calibrated`] file, whose constants have a unit, a source and a kind and can be listed and overridden by
//! name. `device.gpu()`, `device.cpu()` and `device.dsp()` give models whose `cost` turns [`Work`] into time and bytes,
//! `device.flash()` the storage. Constants live in `calibrations/*.toml`, mechanisms here: a new device is a new file
//! there and no code. [`text`] guesses mistyped names and reads TOML strictly, and [`stream`] draws random numbers, for every
//! crate of the house. Nothing here knows networks, policies or events.
//!
//! Modules depend on one another in one direction: units, text ← calibration ← device ← stack ← thermal, processor ←
//! storage ← system ← registry.
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

pub use calibration::{Calibrated, CalibrationError, Constant, ConstantEntry, Kind};
pub use device::{ClusterClass, Device, Form, GpuVendor, HexagonVersion, InstructionSet};
pub use processor::{
    AtomicCounts, CoreSelection, Cost, Cpu, CpuCores, Dram, Dsp, Energy, Frequency, Gpu, GpuLimits, KernelCounts,
    KernelTime, Offloader, Power, Processor, ProcessorError, ProcessorKind, ProgramCounts, Schedutil, SelectionError,
    StepWise, Usage,
};
pub use registry::{Listing, list, list_stacks, list_systems, load, load_stack, load_system, stacks_that_fit};
pub use stack::{
    AllocatorKind, DspLibrary, Efficiency, Fold, Int8Kernels, Stack, StackGraph, StackOnCpu, StackOnDsp, StackOnGpu,
    fitted_constants,
};
pub use storage::{Flash, FlashQueue, ScalarSpeed};
pub use system::System;
pub use thermal::{Heat, Thermal, ThermalError};
pub use work::{OperatorKind, Precision, Product, ProductRole, Traffic, Work};
