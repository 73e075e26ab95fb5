//! What an epoch has come to, on one part of the data.

use haversack_workloads::data::Part;
use serde::{Deserialize, Serialize};

/// A row of `epochs.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The number of the scenario, from zero.
    pub run: u64,
    /// The seed of initial weights and of the order of samples.
    pub seed: u64,
    /// The number of epochs so far, this one included.
    pub epoch: u32,
    /// On what loss and accuracy were measured: of the train part as it was learned from.
    pub split: Part,
    /// The mean cross-entropy, in nats.
    pub loss: f64,
    /// The share of right answers.
    pub accuracy: f64,
    /// What training has taken so far on the simulated device, in seconds.
    pub simulated_time_s: f64,
    /// The energy so far, in joules.
    pub energy_j: f64,
    /// The largest peak of an iteration of this epoch.
    pub peak_memory_bytes: u64,
}

/// A part's name in the table.
pub(super) const fn name(part: Part) -> &'static str {
    match part {
        Part::Train => "train",
        Part::Validation => "validation",
        Part::Test => "test",
    }
}
