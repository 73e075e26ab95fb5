//! Flash storage: one command queue, the driver's work on a core, a write cache, and other apps' commands.
//!
//! [`Flash`] gives the cost of a command in the device, [`Driver`] its cost on a core, and [`FlashQueue`] is the
//! resource: requests of many commands that pass through a driver and one queue. Nothing here knows who makes a
//! request, or why. Drivers on several cores meet at one lock, which they hand to each other.
//!
//! Concurrent commands: a command that runs alone keeps a share of the device busy, which is its occupation over
//! its time alone. Commands fall on dies at random, so together they keep 1 − Π(1 − share) of the device busy where
//! they would need Σ share, and all slow down by the quotient. If each command alone keeps the device fully busy,
//! this is processor sharing.

mod flash;
mod queue;
mod sharing;

pub use flash::Flash;
pub use queue::{Completed, FlashQueue, RequestId};

use crate::{Bytes, BytesPerSecond, CpuCores, Factor, Fraction, Nanos};

/// A page of memory, and the smallest read or write of the flash.
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
    /// The largest number of its commands in the driver, the queue and the device together; at least one.
    pub depth: u32,
}

/// Steady input or output of other apps: commands at equal intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    /// Which way.
    pub direction: Direction,
    /// The mean rate.
    pub rate: BytesPerSecond,
    /// Bytes of each command; at least a page.
    pub command: Bytes,
    /// Largest number of its commands in the queue. While it is reached, the stream issues none,
    /// and does not catch up later.
    pub depth: u32,
}

/// How fast a core runs branchy scalar code, in CoreMark iterations a second; positive and finite.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct ScalarSpeed(f64);

impl ScalarSpeed {
    /// This number of CoreMark iterations per second; `None` unless it is positive and finite.
    pub fn per_second(iterations: f64) -> Option<Self> {
        (iterations.is_finite() && iterations > 0.0).then_some(Self(iterations))
    }

    /// The speed of the fastest of the cores at its present frequency; `None` if its CoreMark is not known.
    pub fn of(cores: &CpuCores) -> Option<Self> {
        // A million iterations take long enough that whole nanoseconds do not round.
        const ITERATIONS: f64 = 1e6;
        Self::per_second(ITERATIONS / cores.scalar_time(ITERATIONS)?.seconds())
    }

    /// A `share` of this speed, as on a core whose clock was lowered.
    ///
    /// A share that is not positive changes nothing.
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
/// The work after a command's completion, the interrupt and waking the waiting thread, is counted here too, before the
/// command. For a single command the sum is the same, and in a stream of commands the core is as busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Driver {
    /// Time per command.
    pub command: Nanos,
    /// Time per page that passes through the page cache.
    pub page: Nanos,
    /// Time between a command that another core has put into the queue and the next, in which the
    /// lock moves from core to core.
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

    /// The same for pages that bypass the page cache, so that only commands cost time.
    pub fn in_place(self) -> Self {
        Self { page: Nanos::ZERO, ..self }
    }
}
