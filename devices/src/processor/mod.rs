//! Processors: from the counts of a [`Work`] to time, bytes and energy.
//!
//! A processor is costed as if it ran alone; contention for DRAM is the business of whoever runs several at once,
//! for which every cost names the bytes that it moves.

mod cpu;
mod dsp;
mod gpu;
mod power;
mod selection;

use thiserror::Error;

use crate::{Bytes, Celsius, Device, Fraction, Heat, Nanos, Stack, StackOnCpu, StackOnGpu, Thermal, Watts, Work};

pub use cpu::{Core, Cpu, CpuCores, framed};
pub use dsp::{Dsp, Offloader};
pub use gpu::{AtomicCounts, Gpu, GpuLimits, KernelCounts, KernelTime, ProgramCounts};
pub use power::Stalls;
pub use power::{Dram, Energy, Power, Usage};
pub use selection::{CoreSelection, Frequency, SelectionError};

/// What an operator costs on one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Time before the processor computes: framework and launches.
    pub launch: Nanos,
    /// What of `launch` prepares the operator, where a graph is prepared anew for every batch: its place in memory, and pages
    /// that are mapped anew.
    pub preparation: Nanos,
    /// What of `preparation` the system's kernel takes to bring pages in.
    pub touching: Nanos,
    /// Whether the host spends that time while the processor still works on what was launched before.
    pub ahead: bool,
    /// Time that it computes, or waits for its own bytes, when it runs alone.
    pub busy: Nanos,
    /// What of `busy` one thread of a CPU works in while the others have no part in it.
    pub serial: Nanos,
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
        let Stalls { dram, caches, waiting, indices } = self.stalls;
        Self {
            launch: of(self.launch),
            preparation: of(self.preparation),
            touching: of(self.touching),
            busy: of(self.busy),
            serial: of(self.serial),
            dram: Bytes((self.dram.as_f64() * share) as u64),
            stalls: Stalls { dram: of(dram), caches: of(caches), waiting: of(waiting), indices: of(indices) },
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

    /// The core, at its frequency, on which a thread runs that has been at work for a share `load` of the time of the
    /// fastest core at its highest frequency. `None` if no core's CoreMark is known, by which capacities are compared.
    ///
    /// Energy-aware scheduling takes the cluster of the least capacity that the load fits into, and the fastest where it
    /// fits into none; `schedutil` sets the frequency, at least the cluster's floor.
    pub fn core_for(&self, load: Fraction) -> Option<CpuCores> {
        let cpu = self.cpu()?;
        let mut clusters: Vec<(f64, CpuCores)> = Vec::new();
        for cluster in &self.constants.cpu {
            let Some(coremark) = &cluster.coremark else { continue };
            let one = CoreSelection::Some { class: cluster.class, count: 1 };
            let capacity = coremark.value.0 * cluster.frequency.value.0;
            clusters.push((capacity, cpu.choose(one, Frequency::Highest).ok()?));
        }
        clusters.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let most = clusters.last()?.0;
        let wanted = load.0.clamp(0.0, 1.0) * most;
        let place = clusters.iter().position(|(capacity, _)| wanted * MARGIN < *capacity);
        let (capacity, core) = clusters.swap_remove(place.unwrap_or(clusters.len() - 1));
        Some(Schedutil::settled(&core, Fraction(wanted / capacity)))
    }
}

// Governors: what load and heat make of the cores' frequency.
//
// Both give shares of the highest frequency; [`CpuCores::following`] and [`CpuCores::limited`] turn these into
// operating points.

/// Follows load, as Linux's `schedutil` does: 1.25 times the utilisation that PELT has averaged.
///
/// Utilisation does not depend on frequency: time busy counts by the share of the highest frequency at which it was
/// spent. A share becomes operating points by [`CpuCores::following`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Schedutil {
    floor: Fraction,
    utilisation: Fraction,
}

impl Schedutil {
    /// After so long half of what PELT knew is forgotten.
    pub(crate) const HALF_LIFE: Nanos = Nanos(32_000_000);
    /// The headroom over utilisation.
    const HEADROOM: f64 = 1.25;

    /// For `cores` that have been busy until now.
    pub fn new(cores: &CpuCores) -> Self {
        Self { floor: cores.floor(), utilisation: Fraction(1.0) }
    }

    /// `core` as it runs once its `utilisation`, a share of what it does at its highest frequency, has stayed the same for long.
    pub fn settled(core: &CpuCores, utilisation: Fraction) -> CpuCores {
        core.following(Self::wanted(utilisation))
    }

    /// The share of the highest frequency that it wants for a `utilisation` that has stayed the same for long; a floor may be
    /// above it.
    pub fn wanted(utilisation: Fraction) -> Fraction {
        Fraction((Self::HEADROOM * utilisation.0).min(1.0))
    }

    /// After a `span` of which the cores spent the share `busy` at work, at `share` of their highest frequency.
    pub fn after(self, span: Nanos, busy: Fraction, share: Fraction) -> Self {
        let remembered = (-(span.seconds() / Self::HALF_LIFE.seconds())).exp2();
        let seen = (busy.0 * share.0).clamp(0.0, 1.0);
        Self { utilisation: Fraction(self.utilisation.0 * remembered + seen * (1.0 - remembered)), ..self }
    }

    /// The share of the highest frequency that it wants: at least the floor, at most 1.
    pub fn share(&self) -> Fraction {
        Fraction((Self::HEADROOM * self.utilisation.0).max(self.floor.0).min(1.0))
    }
}

/// Keeps the die cool, as Linux's `step_wise` does: once a second, one operating point down while the die is above
/// the trip temperature and gets hotter, one up when it is below that less the hysteresis.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct StepWise {
    trip: Celsius,
    /// Operating points as shares of the highest frequency, rising.
    shares: Vec<Fraction>,
    /// How many of them are forbidden.
    forbidden: usize,
    seen: Celsius,
    /// Time since it last looked.
    waited: Nanos,
}

impl StepWise {
    /// It looks at the temperature so often.
    pub const PERIOD: Nanos = Nanos(1_000_000_000);
    /// As kernels usually set it for a zone of the CPU.
    pub(crate) const HYSTERESIS: Celsius = Celsius(2.0);

    /// For `cores` in a device that heats up like `thermal`; it limits nothing yet.
    pub fn new(cores: &CpuCores, thermal: &Thermal) -> Self {
        Self {
            trip: thermal.trip(),
            shares: cores.operating_shares(),
            forbidden: 0,
            seen: Celsius(f64::NEG_INFINITY),
            waited: Nanos::ZERO,
        }
    }

    /// The share of the highest frequency that it allows, for [`CpuCores::limited`].
    pub fn share(&self) -> Fraction {
        self.shares.iter().rev().nth(self.forbidden).copied().unwrap_or(Fraction(1.0))
    }

    /// Looks at the die once.
    pub fn poll(&mut self, die: Celsius) {
        if die.0 > self.trip.0 && die.0 > self.seen.0 {
            self.forbidden = (self.forbidden + 1).min(self.shares.len().saturating_sub(1));
        } else if die.0 < self.trip.0 - Self::HYSTERESIS.0 {
            self.forbidden = self.forbidden.saturating_sub(1);
        }
        self.seen = die;
    }

    /// Lets a `span` of constant `power` pass over `heat`, and looks whenever a period ends within it.
    ///
    /// What it decides within the span lowers no power in it: spans much longer than a period overshoot.
    pub fn watch(&mut self, thermal: &Thermal, heat: &mut Heat, power: Watts, span: Nanos) {
        let mut left = span;
        while self.waited + left >= Self::PERIOD {
            let step = Self::PERIOD.saturating_sub(self.waited);
            thermal.advance(heat, power, step);
            self.poll(heat.die);
            (self.waited, left) = (Nanos::ZERO, left - step);
        }
        thermal.advance(heat, power, left);
        self.waited += left;
    }
}

// The thread of the host that drives an accelerator: on which core Linux lets it run, and how fast.

/// What a cluster has to have for a load of one, so that a task fits: `fits_capacity` of `kernel/sched/fair.c`.
const MARGIN: f64 = 1280.0 / 1024.0;
