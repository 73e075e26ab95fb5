//! What makes a saved tensor, as far as its values depend on it.

use haversack_workloads::operator::Unary;
use haversack_workloads::training_graph::Need;
use haversack_workloads::{Network, Op, Phase, TensorId, TrainingGraph};

/// What made the values of a saved tensor. Poolings, looks and copies make what they were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "lowercase")]
pub(in crate::artefacts) enum MapKind {
    /// A ReLU: many values are zero, none is below.
    Rectified,
    /// A product, a sum or a table: any values.
    Dense,
    /// A normalisation of a batch or of a layer.
    Normalised,
    /// A function without a kink: GELU and its like.
    Smooth,
    /// A softmax: shares of one.
    Attention,
}

/// The saved tensors of values with what made them, by id.
pub(super) fn saved(network: &Network, graph: &TrainingGraph) -> Vec<(TensorId, MapKind)> {
    let mut kinds: Vec<Option<MapKind>> = vec![None; graph.tensors.len()];
    for node in graph.nodes.iter().filter(|node| node.phase == Phase::Forward) {
        let Some(operator) = node.origin.and_then(|origin| network.nodes.get(origin as usize)) else { continue };
        let given = node.inputs.first().and_then(|&input| kinds[input as usize]);
        // Whatever writes a tensor last has made what is saved.
        let made = made_by(&operator.op).or(given);
        node.outputs.iter().for_each(|&output| kinds[output as usize] = made);
    }
    let is_read = |tensor: TensorId| {
        let backward = graph.nodes.iter().filter(|node| node.phase == Phase::Backward && node.inputs.contains(&tensor));
        backward.map(|node| node.need_of(tensor)).any(|need| matches!(need, Need::Values | Need::Signs))
    };
    let saved = graph.saved().into_iter().filter(|&tensor| is_read(tensor));
    saved.filter_map(|tensor| Some((tensor, kinds[tensor as usize]?))).collect()
}

/// What an operator makes; `None` for one that makes what it was given, or nothing that is a map.
const fn made_by(op: &Op) -> Option<MapKind> {
    Some(match op {
        Op::Unary { function: Unary::Relu | Unary::Relu6 | Unary::Clip { .. }, .. } => MapKind::Rectified,
        Op::Unary { function: Unary::Gelu | Unary::GeluTanh | Unary::Silu | Unary::Sigmoid | Unary::Tanh, .. } => {
            MapKind::Smooth
        }
        Op::Softmax => MapKind::Attention,
        Op::BatchNorm { .. } | Op::LayerNorm { .. } => MapKind::Normalised,
        Op::Convolution { .. }
        | Op::Linear
        | Op::Matmul
        | Op::Add
        | Op::Subtract
        | Op::Mul
        | Op::Embedding
        | Op::IndexTable => MapKind::Dense,
        _ => return None,
    })
}
