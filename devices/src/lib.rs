//! Units, work and the calibrated models of phones and boards.
//!
//! [`load`] gives a [`Device`], [`load_stack`] a software [`Stack`] and [`load_system`] an operating [`System`];
//! `device.gpu()` and `device.cpu()` give models whose `cost` turns [`Work`] into time and bytes, and
//! `device.flash()` the storage. [`text`] guesses mistyped names and reads TOML strictly, for every crate of the house. Constants live in `calibrations/*.toml`, mechanisms here. Nothing here knows networks, policies or events.

pub mod calibration;
pub mod device;
pub mod processor;
pub mod registry;
pub mod stack;
pub mod storage;
pub mod system;
pub mod text;
pub mod thermal;
pub mod units;
pub mod work;

pub use calibration::{CalibrationError, Constant, ConstantEntry, Kind};
pub use device::{ClusterClass, Device};
pub use processor::{
    AtomicCounts, CoreSelection, Cost, Cpu, CpuCores, Dram, Dsp, Energy, Frequency, Gpu, GpuLimits, KernelCounts,
    KernelTime, Power, Processor, ProcessorError, ProcessorKind, ProgramCounts, Schedutil, SelectionError, StepWise,
    Usage,
};
pub use registry::{Listing, list, list_stacks, list_systems, load, load_stack, load_system};
pub use stack::{
    Efficiency, Int8Kernels, Stack, StackAllocator, StackGraph, StackOnCpu, StackOnDsp, StackOnGpu, fitted_constants,
};
pub use storage::{Flash, FlashQueue, ScalarSpeed};
pub use system::System;
pub use thermal::{Heat, Thermal, ThermalError};
pub use work::{OperatorKind, Precision, Product, ProductRole, Traffic, Work};
