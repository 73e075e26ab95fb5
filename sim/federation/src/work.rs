//! The cost of a phone's part of a round: the result of the device simulator behind a trait, so that the caller of a
//! federation may look it up, compute it, or set it by hand.

use serde::{Deserialize, Serialize};

/// The widths of HeteroFL's networks, widest first, each half of the one before (Diao et al., ICLR 2021,
/// section 4: its levels a to e).
pub const WIDTHS: [f64; 5] = [1.0, 0.5, 0.25, 0.125, 0.0625];

/// A phone's part of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    /// The memory that training may use, in bytes.
    pub budget_bytes: u64,
    /// The number of the plan that it runs, in the caller's numbering.
    pub plan: u32,
    /// The width of the network that it trains: an index into [`WIDTHS`]; zero for all of it.
    pub width: u8,
    /// Bytes from the server: the model, and the plan if there is one.
    pub down_bytes: u64,
    /// Bytes to the server.
    pub up_bytes: u64,
    /// How long it trains, in seconds, with the wait for its plan.
    pub compute_s: f64,
    /// The energy of training and both transfers, in joules.
    pub energy_j: f64,
    /// How long after training has begun the system kills the process, in seconds; `None` if it does not.
    pub killed_after_s: Option<f64>,
}

/// Why a phone is left out for the whole federation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The system kills training on it even at rest, whatever the plan.
    NoPlan,
    /// It has no samples.
    NoSamples,
    /// The trace of its memory is shorter than a round.
    NoTrace,
}

/// A phone that is left out for the whole federation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The reason.
    pub why: Why,
    /// The same in words.
    pub reason: String,
}

/// The cost model of phones.
pub trait Work {
    /// Whether a phone can take part at all. Called once for each phone.
    ///
    /// # Errors
    /// Why the phone is left out.
    fn holds(&self, phone: u32) -> Result<(), LeftOut>;
    /// A phone's part of round number `round`, which begins at `now` seconds.
    fn job(&self, phone: u32, round: u32, now: f64) -> Job;
    /// How long a phone's part is expected to take, in seconds, with both transfers.
    fn expected_s(&self, phone: u32) -> f64;
    /// Its computing time for one batch without memory limits, in seconds.
    fn batch_s(&self, phone: u32) -> f64;
    /// Its expected budget over the memory that training needs.
    fn memory(&self, phone: u32) -> f64;
}
