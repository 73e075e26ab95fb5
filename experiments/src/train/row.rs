//! What an epoch has come to, on one part of the data.

use haversack_workloads::data::Part;

/// A row of `epochs.parquet`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    /// The number of the scenario, from zero.
    pub(super) run: u64,
    /// The seed of initial weights and of the order of samples.
    pub(super) seed: u64,
    /// The number of epochs so far, this one included.
    pub(super) epoch: u32,
    /// On what loss and accuracy were measured: of the train part as it was learned from.
    pub(super) split: Part,
    /// The mean cross-entropy, in nats.
    pub(super) loss: f64,
    /// The share of right answers.
    pub(super) accuracy: f64,
    /// What training has taken so far on the simulated device, in seconds.
    pub(super) simulated_time_s: f64,
    /// The energy so far, in joules.
    pub(super) energy_j: f64,
    /// The largest peak of an iteration of this epoch.
    pub(super) peak_memory_bytes: u64,
}

/// The parts, in the order of the rows.
pub(super) const PARTS: [Part; 3] = [Part::Train, Part::Validation, Part::Test];

/// A part's name in the table.
pub(super) const fn name(part: Part) -> &'static str {
    match part {
        Part::Train => "train",
        Part::Validation => "validation",
        Part::Test => "test",
    }
}
