//! What an epoch has come to, on one part of the data.

use haversack_workloads::data::Part;

/// A row of `epochs.parquet`.
#[derive(Clone, Copy, Debug, PartialEq)]
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

/// A row as JSON: its epoch, the place of its split, the bits of loss, accuracy, time and energy, and the peak.
pub(super) type RowHead = (u32, usize, [u64; 4], u64);

impl Row {
    pub(super) fn head(&self) -> RowHead {
        let split = PARTS.iter().position(|&part| part == self.split).unwrap_or(0);
        let reals = [self.loss, self.accuracy, self.simulated_time_s, self.energy_j].map(f64::to_bits);
        (self.epoch, split, reals, self.peak_memory_bytes)
    }

    /// The row of scenario number `run` and `seed`; `None` if its split is none.
    pub(super) fn of((run, seed): (u64, u64), (epoch, split, reals, peak_memory_bytes): RowHead) -> Option<Self> {
        let [loss, accuracy, simulated_time_s, energy_j] = reals.map(f64::from_bits);
        let split = *PARTS.get(split)?;
        Some(Self { run, seed, epoch, split, loss, accuracy, simulated_time_s, energy_j, peak_memory_bytes })
    }
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
