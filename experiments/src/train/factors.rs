//! The scale factors that training in integers takes, tensor by tensor.

use haversack_workloads::{Role, TrainingGraph};
use serde::{Deserialize, Serialize};

/// What a product makes whose scale factor is taken.
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
    /// What it is.
    pub made: Made,
    /// The factor of every batch, in bits.
    pub each: Vec<u32>,
}

impl Factors {
    /// Those of every tensor that `graph` rescales, in the order of an iteration; `taken` are those of each batch, by tensor.
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
