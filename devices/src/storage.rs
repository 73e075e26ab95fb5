//! Flash storage: one command queue, the work of its driver on a core, a write cache, and others' commands beside.
//!
//! [`Flash`] knows what a command costs the device, [`Driver`] what it costs a core, and [`FlashQueue`] is the
//! resource: requests of many commands that pass through a driver and one queue. Who asks, and why, is not known here.
//! Drivers on several cores meet at one lock, which they hand to each other.
//!
//! Commands side by side: one alone keeps a share of the device busy, its occupation over its time alone. Commands fall
//! on dies at random, so that together they keep 1 − Π(1 − share) busy where they ask for Σ share, and all slow down
//! by the quotient. Where one alone keeps the device fully busy this is processor sharing.

mod flash;
mod queue;
mod sharing;

pub use flash::Flash;
pub use queue::{Completed, FlashQueue, RequestId};

use crate::{Bytes, BytesPerSecond, CpuCores, Factor, Fraction, Nanos};

/// A page of memory, and the least that the flash reads or writes.
pub const PAGE: Bytes = Bytes(4096);

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the flash.
    Read,
    /// To the flash.
    Write,
}

/// A transfer, cut into commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which way.
    pub direction: Direction,
    /// How much.
    pub bytes: Bytes,
    /// Bytes of each command but for the last; at least a page.
    pub command: Bytes,
    /// Commands that may be under way at once, in the driver, in the queue or in the device; at least one.
    pub depth: u32,
}

/// Somebody else's steady input or output: commands at equal intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    /// Which way.
    pub direction: Direction,
    /// How much in the mean.
    pub rate: BytesPerSecond,
    /// Bytes of each command; at least a page.
    pub command: Bytes,
    /// Commands of it that may be in the queue; while that many are, it issues none and makes up for none.
    pub depth: u32,
}

/// How fast a core runs branchy scalar code, in CoreMark iterations a second; positive and finite.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct ScalarSpeed(f64);

impl ScalarSpeed {
    /// This number of CoreMark iterations a second; `None` if that is no speed.
    pub fn per_second(iterations: f64) -> Option<Self> {
        (iterations.is_finite() && iterations > 0.0).then_some(Self(iterations))
    }

    /// Of the fastest of the cores at its present frequency; `None` if its CoreMark is not known.
    pub fn of(cores: &CpuCores) -> Option<Self> {
        // A million iterations take long enough that whole nanoseconds do not round.
        const ITERATIONS: f64 = 1e6;
        Self::per_second(ITERATIONS / cores.scalar_time(ITERATIONS)?.seconds())
    }

    /// A `share` of it, as a core has it whose clock has sunk.
    ///
    /// A share that is none (not positive) changes nothing.
    #[must_use]
    pub fn at(self, share: Fraction) -> Self {
        Self::per_second(self.0 * share.0).unwrap_or(self)
    }

    /// The time of `work`, in millionths of a CoreMark iteration.
    pub fn time(self, work: Factor) -> Nanos {
        Nanos::from_seconds(work.0 * 1e-6 / self.0)
    }
}

/// The driver's work on one core: it prepares one command after another.
///
/// What follows a command's completion, the interrupt and the wake-up of who waits, is counted here too, before the
/// command: for a command alone the sum is the same, and in a stream of them the core is as busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Driver {
    /// For each command.
    pub command: Nanos,
    /// For each page of it that passes through the page cache.
    pub page: Nanos,
    /// Between a command that another core has handed to the queue and the next: the lock goes from core to core.
    pub handover: Nanos,
}

impl Driver {
    /// The time of a command of `bytes`.
    pub fn time(&self, bytes: Bytes) -> Nanos {
        self.command + self.pages(bytes)
    }

    /// The time of the pages of `bytes`.
    pub fn pages(&self, bytes: Bytes) -> Nanos {
        Nanos(self.page.0.saturating_mul(bytes.0.div_ceil(PAGE.0)))
    }

    /// The same for pages that are written from where they are: only commands cost.
    pub fn in_place(self) -> Self {
        Self { page: Nanos::ZERO, ..self }
    }
}
