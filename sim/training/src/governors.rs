//! What moves from iteration to iteration: the device's heat, and the frequency that governors set.

use haversack_devices::processor::{CpuCores, Schedutil, StepWise, Usage};
use haversack_devices::units::{Fraction, Hertz, Nanos, Watts};
use haversack_devices::{Heat, Thermal};

use crate::error::RunError;
use crate::job::Job;
use crate::machine::Machine;
use crate::record::{HeatPoint, Record};

/// The governors of a run, and how hot the device is.
pub(crate) struct Governors {
    /// The cores as they were chosen; `None` if a GPU trains.
    base: Option<CpuCores>,
    /// The cores as they run now.
    cores: Option<CpuCores>,
    load: Option<Schedutil>,
    limit: Option<StepWise>,
    heat: Option<(Thermal, Heat)>,
    /// The share of its time that a core that waits for the DSP runs.
    waiting: Fraction,
    elapsed: Nanos,
    seen: Vec<HeatPoint>,
}

impl Governors {
    /// Before the first iteration.
    pub(crate) fn start(machine: &Machine, job: &Job<'_>) -> Result<Self, RunError> {
        let base = machine.cores().cloned();
        let governed = base.as_ref().filter(|_| machine.governed);
        let heat = match job.ambient {
            None => None,
            Some(ambient) => {
                let thermal = machine.device.thermal();
                let thermal = thermal.ok_or_else(|| RunError::NoThermalModel(machine.device.id.clone()))?;
                let heat = thermal.start(ambient)?;
                Some((thermal, heat))
            }
        };
        Ok(Self {
            load: governed.map(Schedutil::new),
            limit: governed.zip(heat.as_ref()).map(|(cores, (thermal, _))| StepWise::new(cores, thermal)),
            cores: base.clone(),
            base,
            heat,
            waiting: machine.dsp.as_ref().map_or(Fraction::ZERO, |offloader| offloader.stack.waiting_share.value),
            elapsed: Nanos::ZERO,
            seen: Vec::new(),
        })
    }

    /// How hot the device was after each iteration.
    pub(crate) fn into_seen(self) -> Vec<HeatPoint> {
        self.seen
    }

    /// After an iteration: how hot the device is now, and the cores as they run from here where they change.
    pub(crate) fn after(&mut self, record: &Record, usage: &Usage) -> Result<Option<CpuCores>, RunError> {
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
            let frequency = self.cores.as_ref().and_then(|cores| cores.cores().first());
            self.seen.push(HeatPoint {
                at: self.elapsed,
                die: heat.die,
                chassis: heat.chassis,
                battery: heat.battery,
                frequency: frequency.map_or(Hertz::ZERO, |core| core.frequency),
            });
            thermal.check(heat)?;
        }
        let (Some(load), Some(base), Some(cores)) = (self.load, &self.base, &self.cores) else { return Ok(None) };
        // Cores that wait run for a share of the time: they poll.
        let polled = usage.dsp_busy.seconds() * self.waiting.0;
        let busy = Fraction((usage.cpu_busy.seconds() + polled) / seconds.max(f64::MIN_POSITIVE));
        let load = load.after(record.iteration, busy, cores.share());
        self.load = Some(load);
        let mut next = base.following(load.share());
        if let Some(limit) = &self.limit {
            next = next.limited(limit.share());
        }
        self.cores = Some(next.clone());
        Ok(Some(next))
    }
}
