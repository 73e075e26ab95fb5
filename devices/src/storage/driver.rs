//! What storage costs a core: block layer, driver, interrupt and page cache.

use crate::processor::CpuCores;
use crate::storage::PAGE;
use crate::units::{Bytes, Factor, Nanos};

/// How fast a core runs branchy scalar code, in CoreMark iterations a second; positive and finite.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct ScalarSpeed(f64);

impl ScalarSpeed {
    /// This number of CoreMark iterations a second; `None` if that is no speed.
    #[must_use]
    pub fn per_second(iterations: f64) -> Option<Self> {
        (iterations.is_finite() && iterations > 0.0).then_some(Self(iterations))
    }

    /// Of the fastest of the cores at its present frequency; `None` if its CoreMark is not known.
    #[must_use]
    pub fn of(cores: &CpuCores) -> Option<Self> {
        // A million iterations take long enough that whole nanoseconds do not round.
        const ITERATIONS: f64 = 1e6;
        Self::per_second(ITERATIONS / cores.scalar_time(ITERATIONS)?.seconds())
    }

    /// The time of `work`, in millionths of a CoreMark iteration.
    #[must_use]
    pub fn time(self, work: Factor) -> Nanos {
        Nanos::from_seconds(work.0 * 1e-6 / self.0)
    }
}

/// The driver's work on one core: it prepares one command after another.
///
/// What follows a command's completion, the interrupt and the wake-up of who waits, is counted here too, before the
/// command: for a command alone the sum is the same, and in a stream of them the core is as busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Driver {
    /// For each command.
    pub command: Nanos,
    /// For each page of it that passes through the page cache.
    pub page: Nanos,
}

impl Driver {
    /// The time of a command of `bytes`.
    #[must_use]
    pub fn time(&self, bytes: Bytes) -> Nanos {
        self.command + self.pages(bytes)
    }

    /// The time of the pages of `bytes`.
    #[must_use]
    pub fn pages(&self, bytes: Bytes) -> Nanos {
        Nanos(self.page.0.saturating_mul(bytes.0.div_ceil(PAGE.0)))
    }

    /// The same for pages that are written from where they are: only commands cost.
    #[must_use]
    pub fn in_place(self) -> Self {
        Self { page: Nanos::ZERO, ..self }
    }
}
