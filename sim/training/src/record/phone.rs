//! What the phone's kernel saw of a run.

use haversack_devices::units::{Bytes, Nanos};
use haversack_memory::phone::{Counters, Kill};

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
    /// What the kernel counted.
    pub counters: Counters,
    /// What the thread that trains did.
    pub states: ThreadStates,
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
