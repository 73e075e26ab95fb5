//! The phone kernel's statistics of a run.

use haversack_devices::{Bytes, Nanos};
use haversack_memory::phone::{Counters, Kill, Psi};

use crate::timeline::Pressure;

/// The phone kernel's statistics of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhoneReport {
    /// All memory that the kernel manages.
    pub managed: Bytes,
    /// The last iteration.
    pub iteration: PhoneSpan,
    /// All iterations together.
    pub run: PhoneSpan,
    /// Apps that the low-memory killer ended in the whole run.
    pub apps_killed: u64,
    /// How often the trainer was ended in the whole run, and when.
    pub kills: Vec<TrainerKill>,
}

/// A span of time on a phone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PhoneSpan {
    /// How long it is.
    pub time: Nanos,
    /// Mean memory in use.
    pub used_mean: Bytes,
    /// Mean unavailable memory: all memory less `MemAvailable`.
    pub unavailable_mean: Bytes,
    /// Peak memory in use.
    pub used_peak: Bytes,
    /// Peak unavailable memory.
    pub unavailable_peak: Bytes,
    /// The kernel's counters.
    pub counters: Counters,
    /// States of the thread that trains.
    pub states: ThreadStates,
    /// For how long memory kept threads from working.
    pub pressure: Pressure,
    /// Stalls of the process that trains: the tensors of one operator are touched at a time.
    pub trainer: Stalls,
    /// Stalls of the system's processes: they touch the memory they use every second; a stall ends when all of it is in
    /// memory.
    pub system: Stalls,
    /// Stalls of apps, as they change and every second in front.
    pub apps: Stalls,
    /// Apps that came to the front, new or from behind, until their pages were in.
    pub launches: Stalls,
}

/// How often a process had to wait for memory, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// How often.
    pub count: u64,
    /// All together.
    pub total: Nanos,
    /// The longest.
    pub longest: Nanos,
}

impl Stalls {
    /// Adds a stall of `span`; zero is not counted.
    pub(crate) fn add(&mut self, span: Nanos) {
        self.count += u64::from(span > Nanos::ZERO);
        self.total += span;
        self.longest = self.longest.max(span);
    }
}

impl PhoneSpan {
    /// Pages evicted, that is, freed by reclaim.
    pub const fn evicted(&self) -> u64 {
        self.counters.pgsteal_anon + self.counters.pgsteal_file
    }

    /// Evicted pages that were needed again.
    pub const fn refaults(&self) -> u64 {
        self.counters.workingset_refault_anon + self.counters.workingset_refault_file
    }

    /// Pages that were written to flash by reclaim.
    pub const fn written_to_flash(&self) -> u64 {
        self.counters.pswpout - self.counters.zram_out + self.counters.file_out
    }

    /// Pages that were read from flash, for faults.
    pub const fn read_from_flash(&self) -> u64 {
        self.counters.pswpin - self.counters.zram_in + self.counters.file_in
    }
}

/// The time of the thread that trains, by its state (FedHybrid, figure 2b).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadStates {
    /// On a core, the kernel's work for it included.
    pub running: Nanos,
    /// In uninterruptible sleep.
    pub sleeping: Nanos,
    /// Ready, waiting for a core.
    pub runnable: Nanos,
}

/// The trainer was ended and has started again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainerKill {
    /// The iteration that was interrupted, counted from zero; earlier ones stay finished.
    pub iteration: u32,
    /// The killer's report.
    pub kill: Kill,
    /// The time lost: the work of the iteration so far, and starting again.
    pub lost: Nanos,
    /// When the new process had started, from the start of the run.
    pub until: Nanos,
}

/// Statistics over a span of time: of an iteration, or of all of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watch {
    pub(crate) since: Nanos,
    /// In use: byte-nanoseconds, and the most.
    pub(crate) used: u128,
    /// Unavailable memory, in byte-nanoseconds.
    pub(crate) unavailable: u128,
    pub(crate) peak: Bytes,
    pub(crate) unavailable_peak: Bytes,
    /// The kernel's counters at the start.
    before: Counters,
    stalled_before: Pressure,
    pub(crate) states: ThreadStates,
    /// Faults of the trainer only.
    pub(crate) faults: u64,
    pub(crate) trainer: Stalls,
    pub(crate) system: Stalls,
    pub(crate) apps: Stalls,
    pub(crate) launches: Stalls,
}

impl Watch {
    /// From `since` on, when the kernel had counted `counters` and `psi`.
    pub(crate) fn new(since: Nanos, before: Counters, psi: &Psi) -> Self {
        Self { since, before, stalled_before: Pressure::of(psi), ..Self::default() }
    }

    /// The statistics up to `now`, when the kernel had counted `counters` and `psi`.
    pub(crate) fn span(&self, now: Nanos, counters: &Counters, psi: &Psi) -> PhoneSpan {
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
