//! How faithful a run's gradients are to those of the whole mini-batch in fp32: runs are compared within a class, or
//! with a better one.

use haversack_devices::Precision;
use haversack_policies::{BatchStatistics, WHOLE};
use haversack_workloads::{Role, TensorId, TrainingGraph};
use serde::{Deserialize, Serialize};

use crate::machine::packing::BOUND;

/// A run's gradients in one word; the worst class that applies to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FidelityClass {
    /// The mini-batch's own.
    #[default]
    Exact,
    /// A mini-batch in parts, whose batch normalisations use each part's statistics, at least in backward.
    BatchStatistics,
    /// Saved tensors have fewer bits.
    Stored,
    /// The arithmetic, or the weights, are of eight bits.
    Integer,
    /// Some gradients of weights are given up.
    WeightsSkipped,
}

impl FidelityClass {
    /// Its word in results.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// The losses in a run's gradients, over all its iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Fidelity {
    /// Gradients of weights that are not computed, in the iteration with most of them.
    pub gradients_given_up: u64,
    /// The fewest bits a value with which backward finds a saved tensor; 32 for all of them.
    pub least_bits: u8,
    /// The statistics that batch normalisations use; `None` unless a mini-batch with batch normalisation is trained in
    /// parts.
    pub batch_statistics: Option<BatchStatistics>,
    /// Whether the arithmetic or the weights are of eight bits.
    pub integer: bool,
}

impl Default for Fidelity {
    fn default() -> Self {
        Self { gradients_given_up: 0, least_bits: WHOLE, batch_statistics: None, integer: false }
    }
}

impl Fidelity {
    /// The fidelity of a run in `precision` before any tensor is stored: it trains `graph` instead of the full graph
    /// `whole`.
    pub(crate) fn of(whole: &TrainingGraph, graph: &TrainingGraph, precision: Precision) -> Self {
        let applied = |graph: &TrainingGraph| graph.applied_gradients().len();
        let size = |graph: &TrainingGraph, id: TensorId| graph.tensor(id).bytes.at(1);
        let bits = |id: &TensorId| u64::from(WHOLE) * size(graph, *id) / size(whole, *id).max(1);
        let is_weight = |id: &TensorId| matches!(graph.tensor(*id).role, Role::Parameter { .. });
        let least = graph.saved().iter().filter(|&&id| size(whole, id) > 0).map(bits).min();
        let of_precision = match precision {
            Precision::Fp32 | Precision::Int32 => WHOLE,
            Precision::Fp16 | Precision::Int16 => 16,
            Precision::Int8 => 8,
        };
        let mut weights = (0..graph.tensors.len() as TensorId).filter(is_weight);
        Self {
            gradients_given_up: applied(whole).saturating_sub(applied(graph)) as u64,
            least_bits: least.map_or(WHOLE, |least| least.min(u64::from(WHOLE)) as u8).min(of_precision),
            integer: !precision.is_float() || weights.any(|id| size(graph, id) < size(whole, id)),
            ..Self::default()
        }
    }

    /// A tensor was stored with `bits` bits a value.
    pub(crate) fn note_bits(&mut self, bits: u8) {
        self.least_bits = self.least_bits.min(bits);
    }

    /// A tensor was compressed.
    pub(crate) fn note_codec(&mut self) {
        if !self.integer {
            self.note_bits(codec_bits());
        }
    }

    /// The word for it.
    pub const fn class(&self) -> FidelityClass {
        if self.gradients_given_up > 0 {
            FidelityClass::WeightsSkipped
        } else if self.integer {
            FidelityClass::Integer
        } else if self.least_bits < WHOLE {
            FidelityClass::Stored
        } else if self.batch_statistics.is_some() {
            FidelityClass::BatchStatistics
        } else {
            FidelityClass::Exact
        }
    }

    /// The losses, one number per kind: a run may be compared with those that lose as much or more of every kind.
    pub fn losses(&self) -> [u64; 4] {
        let statistics = self.batch_statistics.map_or(0, |of| if of == BatchStatistics::Whole { 1 } else { 2 });
        let skips = u64::from(self.gradients_given_up > 0);
        [skips, u64::from(self.integer), u64::from(WHOLE.saturating_sub(self.least_bits)), statistics]
    }
}

/// The bits a value at which rounding errors are at least the codec's error bound.
pub(crate) fn codec_bits() -> u8 {
    (0.5 / f64::from(BOUND) + 1.0).log2() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_names_the_class_and_every_loss_counts() {
        let exact = Fidelity::default();
        let parts = Fidelity { batch_statistics: Some(BatchStatistics::Part), ..exact };
        let four = Fidelity { least_bits: 4, ..parts };
        let skipping = Fidelity { gradients_given_up: 3, integer: true, ..four };
        let classes = [exact, parts, four, Fidelity { integer: true, ..four }, skipping].map(|one| one.class());
        assert!(classes.is_sorted() && classes.windows(2).all(|two| two[0] != two[1]), "{classes:?}");
        // 28 bits less, and statistics of the parts.
        assert_eq!((exact.losses(), four.losses()), ([0; 4], [0, 0, 28, 2]));
        // An error of 1% of the range is better than the 1.6% of rounding to 31 steps, and worse than the 0.8% of 63.
        let mut compressed = exact;
        compressed.note_codec();
        assert_eq!(compressed.least_bits, 5);
    }
}
