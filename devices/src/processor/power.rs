//! Energy above the idle device: power over busy spans, of parts that a run keeps awake also over idle ones, and that of
//! the DRAM, whose one bandwidth all processors share.
//!
//! What a kernel's time is bound by: of the terms that run at once the longest counts for all of it.

use std::ops::{Add, Mul};

use super::CpuCores;
use crate::device::{DramConstants, Form};
use crate::{Bytes, BytesPerSecond, Device, Joules, JoulesPerByte, Nanos, Stack, Watts};

/// How long each part of a device was at work within a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The whole span.
    pub span: Nanos,
    /// Time that the GPU was busy in it.
    pub gpu_busy: Nanos,
    /// Time that the chosen CPU cores were busy in it.
    pub cpu_busy: Nanos,
    /// Time that the DSP was busy in it; the chosen CPU cores waited for it where they had nothing else to do.
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
    /// All else.
    pub rest: Joules,
}

impl Energy {
    /// The whole.
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
    /// The chosen cores, all busy, and what they keep awake.
    pub cpu: Watts,
    /// The chosen cores, waiting for the DSP.
    pub cpu_waiting: Watts,
    /// The DSP under load.
    pub dsp: Watts,
    /// All that no processor owns, while training.
    pub rest: Watts,
    /// DRAM.
    pub dram: Dram,
}

impl Power {
    /// Energy of `usage`; busy spans longer than the whole count as the whole, and cores wait only while not busy.
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

    /// The same with `cores` that work beside the GPU that trains; what they keep awake counts as the rest of the chip.
    pub fn beside(self, cores: &CpuCores) -> Self {
        Self { cpu: cores.power(), ..self }
    }
}

impl Device {
    /// The powers of this device when a run under `stack` trains on `cores` of its CPU, or on its GPU.
    ///
    /// All are above the idle device, whose own power (`power.idle`) holds what its parts draw while they do nothing: the
    /// DRAM's refresh, and a GPU that sleeps while cores train. What a busy core draws was measured on the whole device,
    /// memory controller and rails included; what a card draws under load is its board's limit, memory and all.
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
    /// Bandwidth that well-shaped traffic reaches; what a shared resource divides.
    pub bandwidth: BytesPerSecond,
    /// Energy of a byte moved.
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

/// What a processor waits for while it is busy; the rest of that time it computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Stalls {
    /// Bytes that DRAM moves.
    pub dram: Nanos,
    /// Bytes that a cache, shared memory or a core's own path to memory moves.
    pub caches: Nanos,
    /// Barriers, contended atomics, and whatever works in the processor's place.
    pub waiting: Nanos,
    /// Integers that find the places of elements, in generic kernels.
    pub indices: Nanos,
}

impl Stalls {
    /// `seconds` more are bound by `limit`.
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

/// What one term of a kernel's time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Arithmetic,
    Dram,
    Caches,
    Waiting,
    Indices,
}

/// The longest of terms that run at once; of equal ones the first.
pub(crate) fn longest(terms: impl IntoIterator<Item = (f64, Limit)>) -> (f64, Limit) {
    let none = (0.0, Limit::Arithmetic);
    terms.into_iter().fold(none, |longest, term| if term.0 > longest.0 { term } else { longest })
}
