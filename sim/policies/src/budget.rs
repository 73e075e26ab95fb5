//! The memory budget of training next to a phone's apps: the rules that decide it from measurements, and when they
//! decide again.
//!
//! A rule gets measurements as they come and the outcome of each round of training; before a round it returns whether a
//! new plan is needed and for how much memory. The rules themselves are FedHybrid's (`fedhybrid/rule.rs`).

use haversack_devices::{Bytes, Nanos};
use thiserror::Error;

/// Where reclaimed pages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SwapKind {
    /// To flash.
    Flash,
    /// Into compressed DRAM, which takes DRAM away in turn.
    Zram,
}

impl SwapKind {
    /// α: how many high watermarks are kept free (FedHybrid, section 4.4.2).
    pub const fn watermarks(self) -> u64 {
        match self {
            Self::Flash => 1,
            Self::Zram => 2,
        }
    }
}

/// Memory as measured at one time.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// When.
    pub time: Nanos,
    /// `MemAvailable` of `/proc/meminfo`.
    pub available: Bytes,
    /// The watermark at which background reclaim stops.
    pub watermark_high: Bytes,
    /// Where reclaimed pages go.
    pub swap: SwapKind,
    /// `oom_score_adj` of every app's activity, −1000 to 1000.
    pub adjustments: &'a [i16],
}

impl Sample<'_> {
    /// M_safe: available memory less α high watermarks; nothing where they are more.
    pub fn safe(&self) -> Bytes {
        self.available.saturating_sub(Bytes(self.watermark_high.0.saturating_mul(self.swap.watermarks())))
    }
}

/// Why a sample is refused; the rule is unchanged then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SampleError {
    /// Time ran backwards.
    #[error("a sample at {found} after one at {last}; expected times that do not fall")]
    Reversed {
        /// The sample's time.
        found: Nanos,
        /// The time of the one before it.
        last: Nanos,
    },
    /// An adjustment that does not exist.
    #[error("an oom_score_adj of {0}; expected -1000 to 1000")]
    Adjustment(i16),
}

impl SampleError {
    /// Checks a sample that follows one at `last`.
    pub(crate) fn check(sample: &Sample<'_>, last: Option<Nanos>) -> Result<(), Self> {
        if let Some(last) = last.filter(|&last| sample.time < last) {
            return Err(Self::Reversed { found: sample.time, last });
        }
        match sample.adjustments.iter().find(|adjustment| !(-1000..=1000).contains(*adjustment)) {
            Some(&found) => Err(Self::Adjustment(found)),
            None => Ok(()),
        }
    }
}

/// The outcome of a round of training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Page faults of the trainer.
    pub page_faults: u64,
    /// How often the low-memory killer ended it.
    pub kills: u64,
}

/// Decides the memory that a plan may count on.
pub trait BudgetRule: Send + std::fmt::Debug {
    /// Records a measurement of memory. Amortised constant time.
    ///
    /// # Errors
    /// A sample from before the last one, or with an adjustment that does not exist; it is ignored.
    fn observe(&mut self, sample: &Sample<'_>) -> Result<(), SampleError>;

    /// A round is about to begin, or to begin again after a kill: returns the budget that a new plan is to be made for;
    /// `None` if the plan in force stays, or nothing was measured yet.
    fn begin_round(&mut self) -> Option<Bytes>;

    /// A round has ended.
    fn end_round(&mut self, round: Round);
}
