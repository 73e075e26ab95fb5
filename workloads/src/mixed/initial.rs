//! How the weights of products start under an algorithm.

use super::algorithm::{Algorithm, Initialiser};
use crate::network::{Initial, Network};
use crate::operator::Op;

impl Initialiser {
    /// The standard deviation with which a weight of the dimensions `dims` (outputs, inputs, positions) is drawn; `None` if the
    /// network says it.
    pub fn deviation(self, dims: &[u64]) -> Option<f32> {
        let positions: u64 = dims.iter().skip(2).product();
        let fan = |axis: usize| (dims.get(axis).copied().unwrap_or(1) * positions).max(1) as f32;
        let (fan_out, fan_in) = (fan(0), fan(1));
        match self {
            Self::XavierNormal => Some((2.0 / (fan_in + fan_out)).sqrt()),
            Self::KaimingNormal => Some((2.0 / fan_in).sqrt()),
            Self::Network => None,
        }
    }
}

/// `network` with the weights of its products drawn as `algorithm` says, unless they are those of an imported file.
pub fn with_initial_weights(network: &Network, algorithm: &Algorithm) -> Network {
    let mut network = network.clone();
    for node in network.nodes.iter().filter(|node| matches!(node.op, Op::Convolution { .. } | Op::Linear)) {
        let Some(&weight) = node.parameters.first() else { continue };
        let parameter = &network.parameters[weight as usize];
        let held = &mut network.storages[parameter.storage as usize];
        let deviation = algorithm.weight.initialiser.deviation(&parameter.dims);
        if let (Some(deviation), true) = (deviation, held.initial != Some(Initial::Imported)) {
            held.initial = Some(Initial::Normal { deviation });
        }
    }
    network
}
