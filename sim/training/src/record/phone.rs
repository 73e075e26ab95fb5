//! What the phone's kernel saw of a run.

use haversack_devices::units::{Bytes, Nanos};
use haversack_memory::phone::{Counters, Kill};

use crate::pressure::Pressure;

/// What the phone's kernel saw of a run.
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
    /// The mean of what was in use.
    pub used_mean: Bytes,
    /// The mean of what could not be had: all memory less `MemAvailable`.
    pub unavailable_mean: Bytes,
    /// The most that was in use.
    pub used_peak: Bytes,
    /// The most that could not be had.
    pub unavailable_peak: Bytes,
    /// What the kernel counted.
    pub counters: Counters,
    /// What the thread that trains did.
    pub states: ThreadStates,
    /// For how long memory kept threads from working.
    pub pressure: Pressure,
    /// Stalls of the process that trains: an operator's tensors are touched at a time.
    pub trainer: Stalls,
    /// Stalls of the system's processes: what they use is touched every second, and counts when all of it is in.
    pub system: Stalls,
    /// Stalls of apps, as they change and every second in front.
    pub apps: Stalls,
    /// Apps that came to the front, new or from behind, until their pages were in.
    pub launches: Stalls,
}

/// How often somebody had to wait for memory, and for how long.
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
    /// One more that took `span`; nothing is none.
    pub(crate) fn add(&mut self, span: Nanos) {
        self.count += u64::from(span > Nanos::ZERO);
        self.total += span;
        self.longest = self.longest.max(span);
    }
}

impl PhoneSpan {
    /// Pages that were evicted: what reclaim has freed.
    pub const fn evicted(&self) -> u64 {
        self.counters.pgsteal_anon + self.counters.pgsteal_file
    }

    /// Evicted pages that were wanted again.
    pub const fn refaults(&self) -> u64 {
        self.counters.workingset_refault_anon + self.counters.workingset_refault_file
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
    /// The iteration that was under way, counted from zero; those before it are finished and stay so.
    pub iteration: u32,
    /// What the killer says.
    pub kill: Kill,
    /// What was lost: the work of the iteration so far, and starting again.
    pub lost: Nanos,
    /// When the new process was there, from the start of the run.
    pub until: Nanos,
}
