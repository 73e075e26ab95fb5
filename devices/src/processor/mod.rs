//! Processors: turn the counts of a [`Work`] into time, bytes and energy.
//!
//! A cost assumes that the processor runs alone. Callers that run several processors simultaneously model contention
//! for DRAM; every cost gives the bytes that it moves for this purpose.

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

/// The cost of an operator on one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Time before the processor computes: framework and launches.
    pub launch: Nanos,
    /// The part of `launch` that prepares the operator, where a graph is rebuilt for every batch: memory planning,
    /// and mapping of fresh pages.
    pub preparation: Nanos,
    /// The part of `preparation` that the system's kernel spends on mapping pages.
    pub touching: Nanos,
    /// Whether the host spends `launch` while the processor still works on earlier kernels.
    pub ahead: bool,
    /// Time that it computes, or waits for its own bytes, when it runs alone.
    pub busy: Nanos,
    /// The part of `busy` in which only one thread of a CPU works.
    pub serial: Nanos,
    /// Bytes that a shared DRAM moves for it during `busy`; none if the working set fits in a cache.
    pub dram: Bytes,
    /// The share of the processor's lanes that the work can fill.
    pub occupancy: f64,
    /// The part of `busy` that is not arithmetic.
    pub stalls: Stalls,
}

impl Cost {
    /// The whole time when the processor runs alone.
    pub fn alone(&self) -> Nanos {
        self.launch + self.busy
    }

    /// The cost of a `share` of the work, from 0 to 1.
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
/// with an empty queue waits for its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// The GPU's remaining work after the host has launched the latest kernel.
    left: Nanos,
}

impl Queue {
    /// The host launches a kernel of `cost`. In the result, `launch` is only the time that the GPU waits for it. A
    /// kernel that is not launched ahead is unchanged.
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
        /// The requested processor.
        kind: ProcessorKind,
    },
    /// The stack has no kernels for it.
    #[error("the software stack {stack} has no kernels for a {kind}")]
    NoKernels {
        /// The stack's id.
        stack: String,
        /// The requested processor.
        kind: ProcessorKind,
    },
    /// The stack has kernels for such processors, but not for this one.
    #[error("the software stack {stack} runs on {on}; {device} has {has}")]
    Misfit {
        /// The stack's id.
        stack: String,
        /// The vendors or instruction sets that the stack supports.
        on: String,
        /// The device's id.
        device: String,
        /// Those of the device.
        has: String,
    },
    /// A DSP cannot train alone, since it has no floating-point operators.
    #[error("a DSP does not train alone: the CPU runs what it has no operator for")]
    NotAlone,
    /// No such cores exist.
    #[error(transparent)]
    Selection(#[from] SelectionError),
}

/// A processor with a software stack.
#[derive(Clone, Debug)]
pub enum Processor {
    /// CPU cores.
    Cpu(CpuCores, Box<StackOnCpu>),
    /// A GPU.
    Gpu(Gpu, Box<StackOnGpu>),
}

impl Processor {
    /// The cost of `work` on this processor with no other load.
    pub fn cost(&self, work: &Work) -> Cost {
        match self {
            Self::Cpu(cores, stack) => cores.cost(work, stack),
            Self::Gpu(gpu, stack) => gpu.cost(work, stack),
        }
    }

    /// The kind of processor.
    pub fn kind(&self) -> ProcessorKind {
        match self {
            Self::Cpu(..) => ProcessorKind::Cpu,
            Self::Gpu(..) => ProcessorKind::Gpu,
        }
    }
}

impl Device {
    /// The processor of `kind` under `stack`; `cores` and `frequency` apply to a CPU only.
    ///
    /// # Errors
    /// A device without that processor; a stack without kernels for it, or with kernels for other vendors or
    /// instruction sets only; cores that do not exist.
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

    /// The DSP under `stack`, for policies that offload work.
    ///
    /// # Errors
    /// A device without a DSP, a stack without kernels for one, or one with libraries for later generations only.
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

    /// The core, at its frequency, that runs a thread which would take the share `load` of the time of the fastest core
    /// at its highest frequency. `None` if no core's CoreMark is known, since capacities are compared by it.
    ///
    /// Energy-aware scheduling takes the cluster of the least capacity that the load fits into, and the fastest if it
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

// Governors: the cores' frequency as a function of load and heat.
//
// Both give shares of the highest frequency; [`CpuCores::following`] and [`CpuCores::limited`] turn these into
// operating points.

/// Follows load, as Linux's `schedutil` does: it wants 1.25 times the utilisation as averaged by PELT.
///
/// Utilisation is independent of frequency: busy time is weighted by the share of the highest frequency at which it was
/// spent. [`CpuCores::following`] turns a share into operating points.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Schedutil {
    floor: Fraction,
    utilisation: Fraction,
}

impl Schedutil {
    /// After this time the weight of past utilisation in PELT's average has halved.
    pub(crate) const HALF_LIFE: Nanos = Nanos(32_000_000);
    /// The headroom over utilisation.
    const HEADROOM: f64 = 1.25;

    /// For `cores` that have been busy until now.
    pub fn new(cores: &CpuCores) -> Self {
        Self { floor: cores.floor(), utilisation: Fraction(1.0) }
    }

    /// `core` at the frequency that it settles at when its `utilisation`, a share of its capacity at the highest
    /// frequency, stays constant for long.
    pub fn settled(core: &CpuCores, utilisation: Fraction) -> CpuCores {
        core.following(Self::wanted(utilisation))
    }

    /// The share of the highest frequency that it wants when `utilisation` stays constant for long; a floor may be
    /// above it.
    pub fn wanted(utilisation: Fraction) -> Fraction {
        Fraction((Self::HEADROOM * utilisation.0).min(1.0))
    }

    /// The state after a `span` in which the cores worked for the share `busy` of the time, at `share`
    /// of their highest frequency.
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

/// Keeps the die cool, as Linux's `step_wise` does. Once a second it goes one operating point down if the
/// die is above the trip temperature and heating up, and one up if the die is below the trip temperature by
/// more than the hysteresis.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct StepWise {
    trip: Celsius,
    /// Operating points as shares of the highest frequency, rising.
    shares: Vec<Fraction>,
    /// How many of them are forbidden.
    forbidden: usize,
    seen: Celsius,
    /// Time since it last read the temperature.
    waited: Nanos,
}

impl StepWise {
    /// Interval between its readings of the temperature.
    pub const PERIOD: Nanos = Nanos(1_000_000_000);
    /// The usual setting of kernels for a thermal zone of the CPU.
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

    /// Reads the die's temperature once and decides.
    pub fn poll(&mut self, die: Celsius) {
        if die.0 > self.trip.0 && die.0 > self.seen.0 {
            self.forbidden = (self.forbidden + 1).min(self.shares.len().saturating_sub(1));
        } else if die.0 < self.trip.0 - Self::HYSTERESIS.0 {
            self.forbidden = self.forbidden.saturating_sub(1);
        }
        self.seen = die;
    }

    /// Advances `heat` by a `span` of constant `power`, and polls at the end of each period within it.
    ///
    /// Its decisions within the span do not lower `power` in it: spans much longer than a period overshoot.
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

// The host's thread that drives an accelerator: the core and frequency that Linux gives it.

/// The capacity that a cluster needs for a task with a load of one: `fits_capacity` of `kernel/sched/fair.c`.
const MARGIN: f64 = 1280.0 / 1024.0;
