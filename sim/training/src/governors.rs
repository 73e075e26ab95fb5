//! The governors of a run: one sets the cores' frequency by load within an iteration, one bounds it by heat between
//! iterations.

use haversack_devices::{CpuCores, Fraction, Heat, Hertz, Nanos, Schedutil, StepWise, Thermal, Usage, Watts};

use crate::error::Result;
use crate::{HeatPoint, Job, Machine, Record, RunError};

/// The governor that follows the load of the cores, as the kernel sees it at every tick.
pub(crate) struct LoadGovernor {
    /// The cores as they were chosen.
    base: CpuCores,
    /// The cores as they run now.
    cores: CpuCores,
    load: Schedutil,
    /// The share of the highest frequency that heat allows.
    allowed: Option<Fraction>,
    /// The share of its time that a core that waits for the DSP runs.
    waiting: Fraction,
    /// The time and usage at its last look.
    seen: (Nanos, Usage),
}

impl LoadGovernor {
    /// The interval at which the kernel looks at the load: Android's `CONFIG_HZ` is 250.
    pub(crate) const TICK: Nanos = Nanos(4_000_000);

    /// The governor of a machine whose frequencies are left to one.
    pub(crate) fn of(machine: &Machine) -> Option<Self> {
        let base = machine.cores().filter(|_| machine.governed)?.clone();
        Some(Self {
            cores: base.clone(),
            load: Schedutil::new(&base),
            allowed: None,
            waiting: machine.dsp.as_ref().map_or(Fraction::ZERO, |offloader| offloader.stack.waiting_share.value),
            seen: (Nanos::ZERO, Usage::default()),
            base,
        })
    }

    /// An iteration begins, and usage is counted from zero.
    pub(crate) fn begin_iteration(&mut self, now: Nanos) {
        self.seen = (now, Usage::default());
    }

    /// Heat allows a share of the highest frequency.
    pub(crate) fn allow(&mut self, share: Fraction) {
        self.allowed = Some(share);
    }

    /// Whether cores at work would run faster than they do now.
    pub(crate) fn can_rise(&self) -> bool {
        self.cores.share().0 < self.set(Fraction(1.0)).share().0
    }

    /// The cores where a `share` of the highest frequency is wanted.
    fn set(&self, share: Fraction) -> CpuCores {
        let wanted = self.base.following(share);
        self.allowed.map_or_else(|| wanted.clone(), |allowed| wanted.limited(allowed))
    }

    /// Time has advanced to `now`, with everything busy as given by `usage`; returns the cores in their new state if it
    /// has changed.
    pub(crate) fn come_to(&mut self, now: Nanos, usage: &Usage) -> Option<CpuCores> {
        let (since, before) = std::mem::replace(&mut self.seen, (now, *usage));
        let mut left = now - since;
        // Waiting cores run for a share of the time: they poll.
        let polled = (usage.dsp_busy - before.dsp_busy).seconds() * self.waiting.0;
        let worked = (usage.cpu_busy - before.cpu_busy).seconds() + polled;
        let busy = Fraction((worked / left.seconds().max(f64::MIN_POSITIVE)).min(1.0));
        let (mut wanted, mut changed) = (self.load.share(), false);
        while left > Nanos::ZERO {
            let tick = left.min(Self::TICK);
            left -= tick;
            self.load = self.load.after(tick, busy, self.cores.share());
            if std::mem::replace(&mut wanted, self.load.share()) != self.load.share() || self.allowed.is_some() {
                let next = self.set(self.load.share());
                changed |= next.share() != self.cores.share();
                self.cores = next;
            }
        }
        changed.then(|| self.cores.clone())
    }
}

/// The device's temperature, and the frequency that it allows.
pub(crate) struct Governors {
    limit: Option<StepWise>,
    heat: Option<(Thermal, Heat)>,
    elapsed: Nanos,
    /// How hot the device was after each iteration.
    pub(crate) seen: Vec<HeatPoint>,
}

impl Governors {
    /// The governors before the first iteration.
    pub(crate) fn start(machine: &Machine, job: &Job<'_>) -> Result<Self> {
        let heat = match job.ambient {
            None => None,
            Some(ambient) => {
                let thermal = machine.device.thermal();
                let thermal = thermal.ok_or_else(|| RunError::NoThermalModel(machine.device.id.clone()))?;
                let heat = thermal.start(ambient)?;
                Some((thermal, heat))
            }
        };
        let governed = machine.cores().filter(|_| machine.governed);
        Ok(Self {
            limit: governed.zip(heat.as_ref()).map(|(cores, (thermal, _))| StepWise::new(cores, thermal)),
            heat,
            elapsed: Nanos::ZERO,
            seen: Vec::new(),
        })
    }

    /// Called after an iteration run by `cores`: updates the device's temperature, and returns the share of the highest
    /// frequency that it allows, if a governor applies it.
    pub(crate) fn after(&mut self, record: &Record, cores: Option<&CpuCores>) -> Result<Option<Fraction>> {
        self.elapsed += record.iteration;
        let seconds = record.iteration.seconds();
        if let Some((thermal, heat)) = &mut self.heat
            && seconds > 0.0
        {
            let power = Watts(record.energy.0 / seconds);
            match &mut self.limit {
                Some(limit) => limit.watch(thermal, heat, power, record.iteration),
                None => thermal.advance(heat, power, record.iteration),
            }
            let frequency = cores.and_then(|cores| cores.cores().first());
            self.seen.push(HeatPoint {
                at: self.elapsed,
                die: heat.die,
                chassis: heat.chassis,
                battery: heat.battery,
                frequency: frequency.map_or(Hertz::ZERO, |core| core.frequency),
            });
            thermal.check(heat)?;
        }
        Ok(self.limit.as_ref().map(StepWise::share))
    }
}
