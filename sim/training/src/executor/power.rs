//! What the processors and DRAM draw, span by span, for the timeline.
//!
//! The run's joules are worked out from how long everything was busy; the power of the timeline integrates to the same.

use haversack_devices::processor::ProcessorKind;
use haversack_devices::units::{Bytes, Nanos, Watts};

use super::Executor;
use crate::timeline::Draw;

impl Executor<'_> {
    /// Notes that a processor was busy, and that DRAM moved `bytes` meanwhile.
    pub(super) fn note_power(&mut self, on: ProcessorKind, start: Nanos, busy: Nanos, bytes: Bytes) {
        let power = &self.power;
        let Some(timeline) = self.record.timeline.as_mut().filter(|_| busy > Nanos::ZERO) else { return };
        let drawn = match on {
            ProcessorKind::Cpu => power.cpu,
            ProcessorKind::Gpu => power.gpu - power.gpu_idle,
            ProcessorKind::Dsp => power.dsp + power.cpu_waiting,
        };
        let moving = power.dram.energy_per_byte * bytes;
        timeline.draws.push(Draw {
            start: start - self.started,
            duration: busy,
            power: drawn + Watts(moving.0 / busy.seconds()),
        });
    }
}
