//! The checkpoint of a course: the row of its part in the log, with the results of its epochs.

use haversack_numerics::{Contents, Eight, Meter};
use haversack_policies::Learned;
use haversack_workloads::data::Part;
use haversack_workloads::{Role, TrainingGraph};
use serde::{Deserialize, Serialize};

use crate::work::bits;

/// The values of a tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Values {
    Floats(#[serde(with = "bits")] Vec<f32>),
    Integers(#[serde(with = "bits")] Vec<i64>),
    Codes(Coded),
}

impl Values {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Floats(values) => values.len(),
            Self::Integers(values) => values.len(),
            Self::Codes(held) => held.codes.len(),
        }
    }
}

/// A tensor of the graph with its values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Held {
    pub(super) tensor: u32,
    pub(super) values: Values,
}

/// A row of `epochs.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The number of the scenario, from zero.
    pub run: u64,
    /// The seed of the initial weights and of the order of samples.
    pub seed: u64,
    /// The number of epochs so far, including this one.
    pub epoch: u32,
    /// The part of the data behind loss and accuracy; for the train part they are measured while learning.
    pub split: Part,
    /// The mean cross-entropy, in nats.
    pub loss: f64,
    /// The fraction of right answers.
    pub accuracy: f64,
    /// The training time so far on the simulated device, in seconds.
    pub simulated_time_s: f64,
    /// The energy so far, in joules.
    pub energy_j: f64,
    /// The largest memory peak of an iteration in this epoch.
    pub peak_memory_bytes: u64,
}

/// The checkpoint of a course.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Saved {
    /// Epochs and updates so far.
    pub(super) epoch: u32,
    pub(super) update: u64,
    /// Simulated time so far, in nanoseconds, and energy.
    pub(super) time_ns: u64,
    pub(super) energy: f64,
    /// The rows of its epochs.
    pub(super) rows: Vec<Row>,
    /// Moving averages of the importance of tensors, for policies.
    #[serde(with = "bits")]
    pub(super) importance: Vec<f64>,
    /// The scale factors of integer training, by tensor.
    pub(super) factors: Vec<Option<u32>>,
    /// The policy's knowledge about the data.
    pub(super) learned: Learned,
    /// Weights, running averages and the optimiser's state.
    pub(super) tensors: Vec<Held>,
}

/// The part of a course's checkpoint that the files show.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Shown {
    pub(super) epoch: u32,
    pub(super) rows: Vec<Row>,
}

/// Codes of eight bits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Coded {
    #[serde(with = "bits")]
    pub(super) codes: Vec<i8>,
    /// The factor that a code is multiplied by.
    pub(super) step: f32,
}

impl Coded {
    pub(super) fn contents(&self, meter: &Meter) -> Contents {
        Contents::Eight(Eight { codes: meter.copy(&self.codes), step: self.step })
    }
}

/// The kind of product that a scale factor belongs to.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::Display, strum::EnumIter,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Made {
    /// The output of a layer.
    Output,
    /// The gradient of its input.
    InputGradient,
    /// The gradient of its weight.
    WeightGradient,
}

impl From<Role> for Made {
    fn from(role: Role) -> Self {
        match role {
            Role::Gradient => Self::InputGradient,
            Role::ParameterGradient => Self::WeightGradient,
            _ => Self::Output,
        }
    }
}

/// The scale factors of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factors {
    /// The tensor's name.
    pub tensor: String,
    /// Its kind.
    pub made: Made,
    /// The factor in every batch, in bits.
    pub each: Vec<u32>,
}

impl Factors {
    /// The factors of every tensor that `graph` rescales, in the order of an iteration; `taken` has the factors of
    /// each batch, by tensor.
    pub(super) fn of(graph: &TrainingGraph, taken: &[&[Option<u32>]]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for id in graph.nodes.iter().filter_map(|node| node.rescales) {
            let tensor = graph.tensor(id);
            if all.iter().any(|known| known.tensor == tensor.name) {
                continue;
            }
            let factor = |batch: &&[Option<u32>]| batch.get(id as usize).copied().flatten();
            let each: Option<Vec<u32>> = taken.iter().map(factor).collect();
            let found = each.filter(|each| !each.is_empty());
            let (tensor, made) = (tensor.name.clone(), tensor.role.into());
            all.extend(found.map(|each| Self { tensor, made, each }));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_saved_comes_back_to_the_bit() {
        let row = Row {
            run: 2,
            seed: 7,
            epoch: 1,
            split: Part::Test,
            loss: 0.1 + 0.2,
            accuracy: 1.0 / 3.0,
            simulated_time_s: 1e-300,
            energy_j: 3.0,
            peak_memory_bytes: u64::MAX,
        };
        let floats = Held { tensor: 4, values: Values::Floats(vec![0.1, f32::MIN_POSITIVE, -0.0]) };
        let integers = Held { tensor: 9, values: Values::Integers(vec![i64::MIN, 10]) };
        let codes = Held { tensor: 10, values: Values::Codes(Coded { codes: vec![-127, 0, 3], step: 0.1 }) };
        let saved = Saved {
            epoch: 1,
            update: 156,
            time_ns: 5,
            energy: 0.3,
            importance: vec![0.7],
            factors: vec![None, Some(11)],
            learned: serde_json::json!([u64::MAX, 3]),
            rows: vec![row],
            tensors: vec![floats, integers, codes],
        };
        let text = serde_json::to_string(&saved).unwrap();
        assert_eq!(serde_json::from_str::<Saved>(&text).unwrap(), saved);
        let shown: Shown = serde_json::from_str(&text).unwrap();
        assert_eq!((shown.epoch, shown.rows), (1, vec![row]));
        crate::fuzz::against("training-checkpoint", &[text.into_bytes()], |bytes| {
            let _ = serde_json::from_slice::<Saved>(bytes);
        });
    }
}
