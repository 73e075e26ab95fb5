//! Processors: from the counts of a [`Work`] to time, bytes and energy.
//!
//! A processor is costed as if it ran alone; contention for DRAM is the business of whoever runs several at once,
//! for which every cost names the bytes that it moves.

mod cpu;
mod dsp;
mod governor;
mod gpu;
mod host;
mod power;
mod selection;
mod stalls;

pub use cpu::{Core, Cpu, CpuCores, framed};
pub use dsp::{Dsp, Offloader};
pub use governor::{Schedutil, StepWise};
pub use gpu::{AtomicCounts, Gpu, GpuLimits, KernelCounts, KernelTime, ProgramCounts};
pub use power::{Dram, Energy, Power, Usage};
pub use selection::{CoreSelection, Frequency, SelectionError};
pub use stalls::Stalls;
use thiserror::Error;

use crate::device::Device;
use crate::stack::{Stack, StackOnCpu, StackOnGpu};
use crate::units::{Bytes, Nanos};
use crate::work::Work;

/// What an operator costs on one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Time before the processor computes: framework and launches.
    pub launch: Nanos,
    /// Whether the host spends that time while the processor still works on what was launched before.
    pub ahead: bool,
    /// Time that it computes, or waits for its own bytes, when it runs alone.
    pub busy: Nanos,
    /// Bytes that a shared DRAM moves for it during `busy`; none where a cache holds the working set.
    pub dram: Bytes,
    /// The share of the processor's lanes that the work can fill.
    pub occupancy: f64,
    /// What of `busy` is not arithmetic.
    pub stalls: Stalls,
}

impl Cost {
    /// The whole time when the processor runs alone.
    pub fn alone(&self) -> Nanos {
        self.launch + self.busy
    }

    /// What a `share` of the work costs, from 0 to 1.
    pub fn part(&self, share: f64) -> Self {
        let of = |time: Nanos| Nanos((time.0 as f64 * share) as u64);
        let Stalls { dram, caches, waiting } = self.stalls;
        Self {
            launch: of(self.launch),
            busy: of(self.busy),
            dram: Bytes((self.dram.as_f64() * share) as u64),
            stalls: Stalls { dram: of(dram), caches: of(caches), waiting: of(waiting) },
            ..*self
        }
    }
}

/// A queue of kernels between an eager framework's host and its GPU: the host launches while the GPU works, and a GPU
/// that has come to the end of the queue waits for its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// What the GPU has still to do when the host has launched the latest kernel.
    left: Nanos,
}

impl Queue {
    /// The host launches a kernel of `cost`, of whose launch only what the GPU waits for is left. A kernel that is not
    /// launched ahead stays as it is.
    pub fn issue(&mut self, cost: &Cost) -> Cost {
        if !cost.ahead {
            return *cost;
        }
        let waits = cost.launch.saturating_sub(self.left);
        self.left = self.left.saturating_sub(cost.launch) + cost.busy;
        Cost { launch: waits, ..*cost }
    }
}

/// The kinds of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display)]
#[strum(serialize_all = "UPPERCASE")]
pub enum ProcessorKind {
    /// The chosen CPU cores.
    Cpu,
    /// The GPU.
    Gpu,
    /// The DSP.
    Dsp,
}

/// Why a device and a stack make no such processor.
#[derive(Debug, Error)]
pub enum ProcessorError {
    /// The device has none.
    #[error("{device} has no modelled {kind}")]
    Absent {
        /// The device's id.
        device: String,
        /// The processor that was asked for.
        kind: ProcessorKind,
    },
    /// The stack has no kernels for it.
    #[error("the software stack {stack} has no kernels for a {kind}")]
    NoKernels {
        /// The stack's id.
        stack: String,
        /// The processor that was asked for.
        kind: ProcessorKind,
    },
    /// The stack runs on others of that kind.
    #[error("the software stack {stack} runs on {on}; {device} has {has}")]
    Misfit {
        /// The stack's id.
        stack: String,
        /// What it runs on.
        on: String,
        /// The device's id.
        device: String,
        /// What that has.
        has: String,
    },
    /// Floating-point work is not a DSP's.
    #[error("a DSP does not train alone: the CPU runs what it has no operator for")]
    NotAlone,
    /// No such cores.
    #[error(transparent)]
    Selection(#[from] SelectionError),
}

/// A processor under a software stack.
#[derive(Clone, Debug)]
pub enum Processor {
    /// CPU cores.
    Cpu(CpuCores, Box<StackOnCpu>),
    /// A GPU.
    Gpu(Gpu, Box<StackOnGpu>),
}

impl Processor {
    /// What `work` costs here, alone.
    pub fn cost(&self, work: &Work) -> Cost {
        match self {
            Self::Cpu(cores, stack) => cores.cost(work, stack),
            Self::Gpu(gpu, stack) => gpu.cost(work, stack),
        }
    }

    /// Which kind it is.
    pub fn kind(&self) -> ProcessorKind {
        match self {
            Self::Cpu(..) => ProcessorKind::Cpu,
            Self::Gpu(..) => ProcessorKind::Gpu,
        }
    }
}

impl Device {
    /// The processor of `kind` under `stack`; `cores` and `frequency` matter to a CPU only.
    ///
    /// # Errors
    /// A device without that processor, a stack without kernels for it or for those of others, cores that do not exist.
    pub fn processor(
        &self,
        kind: ProcessorKind,
        stack: &Stack,
        cores: CoreSelection,
        frequency: Frequency,
    ) -> Result<Processor, ProcessorError> {
        let absent = || ProcessorError::Absent { device: self.id.clone(), kind };
        let no_kernels = || ProcessorError::NoKernels { stack: stack.id.clone(), kind };
        let fits = |misfit: Option<[String; 2]>| match misfit {
            None => Ok(()),
            Some(misfit) => Err(self.misfit(stack, misfit)),
        };
        match kind {
            ProcessorKind::Cpu => {
                let cpu = self.cpu().ok_or_else(absent)?;
                let on_cpu = stack.cpu().ok_or_else(no_kernels)?;
                fits(on_cpu.misfit(self))?;
                Ok(Processor::Cpu(cpu.choose(cores, frequency)?, Box::new(on_cpu.clone())))
            }
            ProcessorKind::Gpu => {
                let gpu = self.gpu().ok_or_else(absent)?;
                let on_gpu = stack.gpu().ok_or_else(no_kernels)?;
                fits(on_gpu.misfit(self))?;
                Ok(Processor::Gpu(gpu, Box::new(on_gpu.clone())))
            }
            ProcessorKind::Dsp => Err(ProcessorError::NotAlone),
        }
    }

    /// The DSP under `stack`, for what a policy offloads.
    ///
    /// # Errors
    /// A device without a DSP, a stack without kernels for one, or with libraries for later generations only.
    pub fn offloader(&self, stack: &Stack) -> Result<Offloader, ProcessorError> {
        let kind = ProcessorKind::Dsp;
        let absent = || ProcessorError::Absent { device: self.id.clone(), kind };
        let version = self.constants.dsp.as_ref().ok_or_else(absent)?.version;
        let on_dsp = stack.dsp().ok_or_else(|| ProcessorError::NoKernels { stack: stack.id.clone(), kind })?;
        let offloader = self.dsp().and_then(|dsp| dsp.under(on_dsp));
        offloader.ok_or_else(|| {
            let from = on_dsp.library.iter().map(|library| library.from).min();
            let on = from.map(|from| format!("Hexagon {from} and later")).unwrap_or_default();
            self.misfit(stack, [on, format!("a Hexagon {version}")])
        })
    }

    fn misfit(&self, stack: &Stack, [on, has]: [String; 2]) -> ProcessorError {
        ProcessorError::Misfit { stack: stack.id.clone(), on, device: self.id.clone(), has }
    }
}
