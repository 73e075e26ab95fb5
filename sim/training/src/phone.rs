//! The phone around a run: its kernel's memory, its flash, what the system holds, and the apps that come and go.

use haversack_devices::storage::{Driver, Flash, Stream};
use haversack_devices::units::{Bytes, Count, Fraction, Nanos};
use haversack_memory::phone::{Backing, Costs, Counters, Kill, Settings};

/// A phone that is in use while it trains.
#[derive(Clone, Debug)]
pub struct Phone {
    /// The memory that its kernel manages.
    pub memory: Settings,
    /// The kernel's work on a page, on a core that trains.
    pub training: Costs,
    /// The same on kswapd's core.
    pub kswapd: Costs,
    /// Its flash.
    pub flash: Flash,
    /// The driver's work on a core that trains.
    pub driver: Driver,
    /// Input and output of one app in the background; as many at once as there are.
    pub background: Vec<Stream>,
    /// What the system itself holds.
    pub own: Vec<Holding>,
    /// The process that trains.
    pub trainer: Trainer,
    /// How much smaller ZRAM makes the pages of apps.
    pub app_ratio: Count,
    /// What apps do, in order of time from the start of the run.
    pub apps: Vec<AppChange>,
}

/// The process that trains.
#[derive(Clone, Copy, Debug)]
pub struct Trainer {
    /// Its `oom_score_adj`.
    pub adj: i32,
    /// How much smaller ZRAM makes its pages.
    pub ratio: Count,
    /// From a kill until its first instruction: the time of starting the process again.
    pub start: Nanos,
}

/// Memory of the system's own.
#[derive(Clone, Copy, Debug)]
pub struct Holding {
    /// How much.
    pub bytes: Bytes,
    /// What is behind it.
    pub backing: Backing,
    /// The share that is in use all the time.
    pub hot: Fraction,
}

/// A change of an app.
#[derive(Clone, Debug)]
pub struct AppChange {
    /// When, from the start of the run.
    pub at: Nanos,
    /// Which.
    pub app: String,
    /// What it is from then on; nothing where it has ended.
    pub state: Option<AppState>,
}

/// An app that is alive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AppState {
    /// Its `oom_score_adj`.
    pub adj: i32,
    /// Its anonymous memory.
    pub anonymous: Bytes,
    /// Pages of files that it maps.
    pub file: Bytes,
    /// The share of both that it touches now, and every second while it is in front.
    pub touched: Fraction,
}

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
    /// Its length.
    pub time: Nanos,
    /// The mean of what was in use.
    pub used_mean: Bytes,
    /// The most that was in use.
    pub used_peak: Bytes,
    /// What the kernel counted.
    pub counters: Counters,
    /// What the thread that trains did.
    pub states: ThreadStates,
}

impl PhoneSpan {
    /// Pages that were evicted: what reclaim has freed.
    #[must_use]
    pub const fn evicted(&self) -> u64 {
        self.counters.pgsteal_anon + self.counters.pgsteal_file
    }

    /// Evicted pages that were wanted again.
    #[must_use]
    pub const fn refaults(&self) -> u64 {
        self.counters.workingset_refault_anon + self.counters.workingset_refault_file
    }

    /// Pages that were read from flash, for faults.
    #[must_use]
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
    /// The iteration that was under way, from nought; those before it are finished and stay so.
    pub iteration: u32,
    /// What the killer says.
    pub kill: Kill,
    /// What was lost: the work of the iteration so far, and starting again.
    pub lost: Nanos,
    /// When the new process was there, from the start of the run.
    pub until: Nanos,
}

/// Memory on a phone in use, as a service in the background sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedSample {
    /// When, from the beginning.
    pub time: Nanos,
    /// What could be had (`MemAvailable`).
    pub available: Bytes,
    /// All that is not free.
    pub used: Bytes,
    /// The watermark at which kswapd stops.
    pub watermark_high: Bytes,
    /// `oom_score_adj` of every app.
    pub adjustments: Vec<i16>,
}
