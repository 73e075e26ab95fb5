//! The tables of a federation: a row for each round, for each phone of a round, and for each phone that is left out.

use serde::{Deserialize, Serialize};

use crate::round::{Outcome, Part};
use crate::work::Why;

/// A round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundRow {
    /// Its number, from one.
    pub round: u32,
    /// When it began, in seconds.
    pub start_s: f64,
    /// How long it took, in seconds.
    pub duration_s: f64,
    /// Phones that began it.
    pub selected: u32,
    /// Those whose updates were accepted.
    pub completed: u32,
    /// Those that stopped being ready before they had finished.
    pub dropped: u32,
    /// Those whose process the operating system killed.
    pub killed: u32,
    /// Those that the round did not wait for.
    pub timed_out: u32,
    /// Bytes to the server.
    pub up_bytes: u64,
    /// Bytes from the server.
    pub down_bytes: u64,
    /// The energy of all its phones, in joules.
    pub energy_j: f64,
    /// The share of test samples that the server's weights classify correctly afterwards;
    /// `None` if it was not measured.
    pub accuracy: Option<f64>,
}

/// A phone of a round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientRow {
    /// The round.
    pub round: u32,
    /// The phone.
    pub client: u32,
    /// The device that it is modelled after, by number.
    pub device: u8,
    /// Its memory class, by number.
    pub memory_class: u8,
    /// The memory that training may use, in bytes.
    pub budget_bytes: u64,
    /// The plan that it ran, by number.
    pub plan: u32,
    /// How long it trains, in seconds.
    pub compute_s: f64,
    /// How long it sends, in seconds.
    pub up_s: f64,
    /// How long it receives, in seconds.
    pub down_s: f64,
    /// The energy that it used, in joules.
    pub energy_j: f64,
    /// Its outcome.
    pub outcome: Outcome,
}

/// A phone that is left out for the whole federation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExclusionRow {
    /// The round in which it was first considered.
    pub round: u32,
    /// The phone.
    pub client: u32,
    /// The reason.
    pub why: Why,
    /// The same in words.
    pub reason: String,
}

impl RoundRow {
    /// The row of a round of `parts`, which end with the round at the latest.
    pub(crate) fn of(round: u32, start_s: f64, duration_s: f64, parts: &[Part]) -> Self {
        let count = |outcome| parts.iter().filter(|part| part.outcome == outcome).count() as u32;
        let bytes = |place: usize| parts.iter().map(|part| part.bytes()[place]).sum();
        Self {
            round,
            start_s,
            duration_s,
            selected: parts.len() as u32,
            completed: count(Outcome::Completed),
            dropped: count(Outcome::Dropped),
            killed: count(Outcome::Killed),
            timed_out: count(Outcome::TimedOut),
            up_bytes: bytes(1),
            down_bytes: bytes(0),
            energy_j: parts.iter().map(|part| part.energy_j).sum(),
            accuracy: None,
        }
    }
}
