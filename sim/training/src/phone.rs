//! The phone around a run: its kernel's memory, its flash, the system's memory, and the apps that come and go.

mod apps;
mod at_rest;
mod flash;
mod in_use;
mod pool;
mod system;

pub use at_rest::AtRest;
pub use in_use::watch;
pub(crate) use in_use::{PhoneInUse, SECOND};

use haversack_devices::storage::Stream;
use haversack_devices::{Bytes, Driver, Flash, Fraction, Nanos};
use haversack_memory::phone::{Backing, Costs, PageMix, Settings};

use crate::machine::Machine;

/// A phone that is in use while it trains.
#[derive(Clone, Debug)]
pub struct Phone {
    /// The memory that its kernel manages.
    pub memory: Settings,
    /// The kernel's work on a page, on a core that trains.
    pub training: Costs,
    /// The same on the core on which the system and apps run.
    pub front: Costs,
    /// Cores of the phone: the maximum number of system processes that run, and stall, at the same time.
    pub cores: u32,
    /// The same on kswapd's core.
    pub kswapd: Costs,
    /// Whether kswapd's core is one of those that train.
    pub kswapd_shares: bool,
    /// Its flash, which pages and apps share.
    pub flash: Flash,
    /// The driver's work on a core that trains.
    pub driver: Driver,
    /// The same at the lower clock that results when the thread sleeps between faults.
    pub faulting: Driver,
    /// Input and output of one app in the background; repeated for each such app.
    pub background: Vec<Stream>,
    /// Files that the app in front reads, in addition to its faults.
    pub foreground: Vec<Stream>,
    /// The system's own memory.
    pub own: Vec<SystemMemory>,
    /// The process that trains.
    pub trainer: Trainer,
    /// How pages of apps compress in ZRAM.
    pub app_pages: PageMix,
    /// Changes of apps, in order of time from the start of the run.
    pub apps: Vec<AppChange>,
    /// Apps that are cached and frozen from before the run: they do nothing, and may be killed.
    pub cached: Vec<AppState>,
    /// Memory used by everything but the trainer, if a recording gives it.
    pub others: OtherMemory,
    /// From the start of the run until the system first touches its pages in use, less than a second.
    pub phase: Nanos,
}

/// The threads that train, each on its own core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Threads {
    /// Their number.
    pub(crate) count: u32,
    /// Whether they work between their faults, or wait for another processor.
    pub(crate) compute: bool,
}

impl Threads {
    /// No training.
    const NONE: Self = Self { count: 1, compute: false };

    /// The threads of a machine: one on each of its CPU's cores, or one that feeds its GPU.
    pub(crate) fn of(machine: &Machine) -> Self {
        let cores = machine.cores().map(|cores| cores.cores().len());
        Self { count: cores.map_or(1, |cores| u32::try_from(cores).unwrap_or(u32::MAX)), compute: cores.is_some() }
    }
}

/// Memory of system and apps together, from a recording of a phone: `MemTotal` less `MemAvailable`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtherMemory {
    /// In order of time; each value applies until the next, and the last one to the end of the run.
    pub series: Vec<HeldByOthers>,
    /// Of the memory beyond the system at rest, the share that is in use all the time.
    pub hot: Fraction,
}

/// Memory used by others from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldByOthers {
    /// When, from the start of the run.
    pub at: Nanos,
    /// All of it, including the system at rest.
    pub bytes: Bytes,
}

/// The process that trains.
#[derive(Clone, Copy, Debug)]
pub struct Trainer {
    /// Its `oom_score_adj`.
    pub adj: i32,
    /// How its pages compress in ZRAM.
    pub pages: PageMix,
    /// From a kill until its first instruction: the time of starting the process again.
    pub start: Nanos,
}

/// Memory of the system's own.
#[derive(Clone, Copy, Debug)]
pub struct SystemMemory {
    /// Its size.
    pub bytes: Bytes,
    /// Its backing storage.
    pub backing: Backing,
    /// The share that is in use all the time.
    pub hot: Fraction,
}

/// A change of an app.
#[derive(Clone, Debug)]
pub struct AppChange {
    /// When, from the start of the run.
    pub at: Nanos,
    /// The name of the app.
    pub app: String,
    /// Its state from then on; `None` if it has ended.
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

/// Memory on a phone in use, as a service in the background sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedSample {
    /// When, from the beginning.
    pub time: Nanos,
    /// Available memory (`MemAvailable`).
    pub available: Bytes,
    /// All memory that is not free.
    pub used: Bytes,
    /// The watermark at which kswapd stops.
    pub watermark_high: Bytes,
    /// `oom_score_adj` of every app.
    pub adjustments: Vec<i16>,
}
