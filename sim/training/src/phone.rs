//! The phone around a run: its kernel's memory, its flash, what the system holds, and the apps that come and go.

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
    /// Cores of the phone: as many of the system's processes run, and stall, side by side.
    pub cores: u32,
    /// The same on kswapd's core.
    pub kswapd: Costs,
    /// Whether kswapd's core is one of those that train.
    pub kswapd_shares: bool,
    /// Its flash, which pages and apps share.
    pub flash: Flash,
    /// The driver's work on a core that trains.
    pub driver: Driver,
    /// The same where its clock has sunk since the thread sleeps between faults.
    pub faulting: Driver,
    /// Input and output of one app in the background; as many at once as there are.
    pub background: Vec<Stream>,
    /// What the app in front reads of files, beside its faults.
    pub foreground: Vec<Stream>,
    /// What the system itself holds.
    pub own: Vec<SystemMemory>,
    /// The process that trains.
    pub trainer: Trainer,
    /// What pages of apps are to ZRAM.
    pub app_pages: PageMix,
    /// What apps do, in order of time from the start of the run.
    pub apps: Vec<AppChange>,
    /// Apps that wait from before the run on, frozen: they do nothing, and may be ended.
    pub cached: Vec<AppState>,
    /// What is held of memory beside the trainer, where a recording says so.
    pub others: OtherMemory,
    /// From the start of the run until the system touches what it uses for the first time, less than a second.
    pub phase: Nanos,
}

/// The threads that train, each on a core of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Threads {
    /// How many there are.
    pub(crate) count: u32,
    /// Whether they work between their faults, or wait for another processor.
    pub(crate) compute: bool,
}

impl Threads {
    /// Nobody trains.
    const NONE: Self = Self { count: 1, compute: false };

    /// Those of a machine: one on each of its CPU's cores, or one that feeds its GPU.
    pub(crate) fn of(machine: &Machine) -> Self {
        let cores = machine.cores().map(|cores| cores.cores().len());
        Self { count: cores.map_or(1, |cores| u32::try_from(cores).unwrap_or(u32::MAX)), compute: cores.is_some() }
    }
}

/// Memory that system and apps hold together, by a recording of a phone: `MemTotal` less `MemAvailable`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtherMemory {
    /// In order of time; each holds until the next, and the last one to the end of the run.
    pub series: Vec<HeldByOthers>,
    /// The share of what is held beyond the system at rest that is in use all the time.
    pub hot: Fraction,
}

/// Memory that others hold from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldByOthers {
    /// When, from the start of the run.
    pub at: Nanos,
    /// All of it, what the system holds at rest included.
    pub bytes: Bytes,
}

/// The process that trains.
#[derive(Clone, Copy, Debug)]
pub struct Trainer {
    /// Its `oom_score_adj`.
    pub adj: i32,
    /// What its pages are to ZRAM.
    pub pages: PageMix,
    /// From a kill until its first instruction: the time of starting the process again.
    pub start: Nanos,
}

/// Memory of the system's own.
#[derive(Clone, Copy, Debug)]
pub struct SystemMemory {
    /// How much of it.
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
    /// The name of the app.
    pub app: String,
    /// What it is from then on; `None` if it has ended.
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
    /// What could be had (`MemAvailable`).
    pub available: Bytes,
    /// All that is not free.
    pub used: Bytes,
    /// The watermark at which kswapd stops.
    pub watermark_high: Bytes,
    /// `oom_score_adj` of every app.
    pub adjustments: Vec<i16>,
}
