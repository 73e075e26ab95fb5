//! What is noted of a span of time on a phone: of an iteration, or of all of them.

use haversack_devices::units::{Bytes, Nanos};
use haversack_memory::phone::{Counters, Psi};

use crate::pressure::Pressure;
use crate::record::{PhoneSpan, Stalls, ThreadStates};

/// What is noted of a span of time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watch {
    pub(super) since: Nanos,
    /// In use: byte-nanoseconds, and the most.
    pub(super) used: u128,
    /// What could not be had, in byte-nanoseconds.
    pub(super) unavailable: u128,
    pub(super) peak: Bytes,
    pub(super) unavailable_peak: Bytes,
    /// What the kernel had counted before.
    before: Counters,
    stalled_before: Pressure,
    pub(super) states: ThreadStates,
    /// Faults of the trainer alone.
    pub(super) faults: u64,
    pub(super) trainer: Stalls,
    pub(super) system: Stalls,
    pub(super) apps: Stalls,
    pub(super) launches: Stalls,
}

impl Watch {
    /// From `since` on, when the kernel had counted `counters` and `psi`.
    pub(super) fn new(since: Nanos, before: Counters, psi: &Psi) -> Self {
        Self { since, before, stalled_before: Pressure::of(psi), ..Self::default() }
    }

    /// What was noted up to `now`, when the kernel had counted `counters` and `psi`.
    pub(super) fn span(&self, now: Nanos, counters: &Counters, psi: &Psi) -> PhoneSpan {
        let time = now.saturating_sub(self.since);
        let mean = |sum: u128| {
            let mean = sum.checked_div(u128::from(time.0)).unwrap_or(0);
            Bytes(u64::try_from(mean).unwrap_or(u64::MAX))
        };
        let waited = self.states.sleeping + self.states.runnable;
        let Pressure { some, full } = Pressure::of(psi);
        PhoneSpan {
            time,
            used_mean: mean(self.used),
            unavailable_mean: mean(self.unavailable),
            used_peak: self.peak,
            unavailable_peak: self.unavailable_peak,
            counters: counters.since(&self.before),
            states: ThreadStates { running: time.saturating_sub(waited), ..self.states },
            pressure: Pressure { some: some - self.stalled_before.some, full: full - self.stalled_before.full },
            trainer: self.trainer,
            system: self.system,
            apps: self.apps,
            launches: self.launches,
        }
    }
}
