//! Energy above that of the idle device: each processor's power over its busy time, that of parts that a run keeps
//! awake over idle time too, and DRAM's, whose bandwidth all processors share.
//!
//! The cause that bounds a kernel's time: of overlapping terms, the longest counts for the whole time.

use std::ops::{Add, Mul};

use super::CpuCores;
use crate::device::{DramConstants, Form};
use crate::{Bytes, BytesPerSecond, Device, Joules, JoulesPerByte, Nanos, Stack, Watts};

/// How long each part of a device worked within a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The whole span.
    pub span: Nanos,
    /// Time that the GPU was busy in it.
    pub gpu_busy: Nanos,
    /// Time that the chosen CPU cores were busy in it.
    pub cpu_busy: Nanos,
    /// Time that the DSP was busy in it; the chosen CPU cores waited for it when they were not busy themselves.
    pub dsp_busy: Nanos,
    /// Bytes that DRAM moved in it.
    pub dram: Bytes,
}

/// Energy by part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy {
    /// The GPU, busy, or idle between kernels.
    pub gpu: Joules,
    /// The chosen CPU cores while busy or waiting for the DSP; their idle power is the platform's.
    pub cpu: Joules,
    /// The DSP while busy.
    pub dsp: Joules,
    /// DRAM.
    pub dram: Joules,
    /// Everything else.
    pub rest: Joules,
}

impl Energy {
    /// The sum.
    pub fn total(&self) -> Joules {
        self.gpu + self.cpu + self.dsp + self.dram + self.rest
    }
}

/// The powers of a device in training.
#[derive(Clone, Copy, Debug, Default)]
pub struct Power {
    /// The GPU under load.
    pub gpu: Watts,
    /// The GPU while idle and awake.
    pub gpu_idle: Watts,
    /// The chosen cores, all busy, and the shared parts that they keep awake.
    pub cpu: Watts,
    /// The chosen cores while they wait for the DSP.
    pub cpu_waiting: Watts,
    /// The DSP under load.
    pub dsp: Watts,
    /// Power of everything else while training.
    pub rest: Watts,
    /// DRAM.
    pub dram: Dram,
}

impl Power {
    /// Energy of `usage`. Busy times longer than the span count as the span, and cores wait only while they are not
    /// busy.
    pub fn energy(&self, usage: &Usage) -> Energy {
        let gpu_busy = usage.gpu_busy.min(usage.span);
        let gpu_idle = usage.span.saturating_sub(gpu_busy);
        let cpu_busy = usage.cpu_busy.min(usage.span);
        let dsp_busy = usage.dsp_busy.min(usage.span);
        let waiting = dsp_busy.min(usage.span.saturating_sub(cpu_busy));
        Energy {
            gpu: self.gpu * gpu_busy + self.gpu_idle * gpu_idle,
            cpu: self.cpu * cpu_busy + self.cpu_waiting * waiting,
            dsp: self.dsp * dsp_busy,
            dram: self.dram.energy(usage.dram),
            rest: self.rest * usage.span,
        }
    }

    /// The same for a GPU that trains while `cores` work too; the shared parts that the cores keep awake
    /// count as the rest of the chip.
    pub fn beside(self, cores: &CpuCores) -> Self {
        Self { cpu: cores.power(), ..self }
    }
}

impl Device {
    /// The powers of this device when a run under `stack` trains on `cores` of its CPU, or on its GPU.
    ///
    /// All powers are above the idle device. The device's own idle power (`power.idle`) includes the power of inactive
    /// parts: DRAM refresh, and a GPU that sleeps while cores train. A busy core's power was measured on the whole
    /// device, memory controller and rails included; a card's power under load is its board's limit, memory included.
    pub fn power(&self, cores: Option<&CpuCores>, stack: &Stack) -> Power {
        let gpu = self.constants.gpu.as_ref().filter(|_| cores.is_none());
        let rest = if cores.is_none() { self.constants.power.rest_of_soc.value } else { Watts::ZERO };
        let of_cores = cores.map_or(Watts::ZERO, CpuCores::power);
        let awake = self.constants.power.awake.as_ref().filter(|_| cores.is_some());
        let awake = awake.map_or(Watts::ZERO, |awake| awake.value);
        let dsp = self.constants.dsp.as_ref().zip(stack.dsp());
        let mut dram = self.dram();
        if gpu.is_some() && self.constants.form == Some(Form::Gpu) {
            dram.energy_per_byte = JoulesPerByte::ZERO;
        }
        Power {
            gpu: gpu.map_or(Watts::ZERO, |gpu| gpu.power.value),
            gpu_idle: gpu.map_or(Watts::ZERO, |gpu| gpu.power_idle.value),
            cpu: of_cores + awake,
            cpu_waiting: dsp.map_or(Watts::ZERO, |(_, on_dsp)| of_cores * on_dsp.waiting_share.value.0 + awake),
            dsp: dsp.map_or(Watts::ZERO, |(dsp, _)| dsp.power.value),
            rest,
            dram,
        }
    }

    /// The DRAM that all processors share.
    pub fn dram(&self) -> Dram {
        Dram::new(&self.constants.dram)
    }
}

/// The DRAM of a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dram {
    /// Bandwidth that well-shaped traffic reaches; processors share it.
    pub bandwidth: BytesPerSecond,
    /// Energy per byte moved.
    pub energy_per_byte: JoulesPerByte,
}

impl Dram {
    fn new(constants: &DramConstants) -> Self {
        Self { bandwidth: constants.peak.value * constants.achievable.value.0, energy_per_byte: constants.energy.value }
    }

    /// Energy of moving `bytes`.
    pub fn energy(&self, bytes: Bytes) -> Joules {
        self.energy_per_byte * bytes
    }
}

/// The causes for which a processor waits while it is busy; the rest of that time it computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Stalls {
    /// Transfers limited by DRAM.
    pub dram: Nanos,
    /// Transfers limited by a cache, shared memory or a core's own path to memory.
    pub caches: Nanos,
    /// Barriers, contended atomics, and time in which something else works instead of the processor.
    pub waiting: Nanos,
    /// Integer arithmetic that computes elements' indices, in generic kernels.
    pub indices: Nanos,
}

impl Stalls {
    /// Adds `seconds` that are bound by `limit`.
    pub(crate) fn add(&mut self, limit: Limit, seconds: f64) {
        let part = match limit {
            Limit::Arithmetic => return,
            Limit::Dram => &mut self.dram,
            Limit::Caches => &mut self.caches,
            Limit::Waiting => &mut self.waiting,
            Limit::Indices => &mut self.indices,
        };
        *part = Nanos(part.0.saturating_add(Nanos::from_seconds(seconds).0));
    }
}

impl Add for Stalls {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            dram: self.dram + other.dram,
            caches: self.caches + other.caches,
            waiting: self.waiting + other.waiting,
            indices: self.indices + other.indices,
        }
    }
}

impl Mul<u64> for Stalls {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self {
            dram: self.dram * times,
            caches: self.caches * times,
            waiting: self.waiting * times,
            indices: self.indices * times,
        }
    }
}

/// The kind of a term of a kernel's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Arithmetic,
    Dram,
    Caches,
    Waiting,
    Indices,
}

/// The longest of overlapping terms; the first if several are equal.
pub(crate) fn longest(terms: impl IntoIterator<Item = (f64, Limit)>) -> (f64, Limit) {
    let none = (0.0, Limit::Arithmetic);
    terms.into_iter().fold(none, |longest, term| if term.0 > longest.0 { term } else { longest })
}
