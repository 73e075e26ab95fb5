//! Mixed-precision training as a rewrite of the eager graph (Mandheling, sections 2.2 and 3.2).
//!
//! An [`Algorithm`] is data; [`rewrite`] knows none of them by name. Products become products of integers, followed
//! by the node that takes their scale anew; operators that stay in fp32 stand between a dequantisation and a
//! quantisation; what an algorithm's networks do not have vanishes; weights get a master where their update wants one.
//! Which processor runs what, and in which iterations scales are taken anew, is for others to decide.

mod algorithm;
mod computes;
mod description;
mod plan;
mod product;
mod rewriter;

use std::sync::LazyLock;

pub use algorithm::{
    Algorithm, Arithmetic, Backpropagation, BiasFormat, GradientFormat, Initialiser, Layers, Loss, Operand,
    OperatorName, OptimiserChoice, Pass, Rounding, StateFormat, Sweep, Translation, Update, WeightFormat, WeightRules,
};
pub use computes::{Computes, Rewritten};

use haversack_devices::text::nearest;

use crate::autograd::{EagerRules, Optimiser, differentiate};
use crate::error::WorkloadError;
use crate::network::Initial;
use crate::network::Network;
use crate::operator::Op;
use crate::training_graph::TrainingGraph;

macro_rules! built_in {
    ($($file:literal),+) => {
        [$(($file, include_str!(concat!("../algorithms/", $file)))),+]
    };
}

/// In the order of Mandheling's table 1.
static BUILT_IN: LazyLock<Result<Vec<Algorithm>, WorkloadError>> = LazyLock::new(|| {
    let files = built_in!["niti.toml", "octo.toml", "adaptive-fixed-point.toml", "wageubn.toml", "mls.toml"];
    files.into_iter().map(|(file, text)| Algorithm::parse(file, text)).collect()
});

/// The built-in algorithms, in the order of Mandheling's table 1.
///
/// # Errors
/// A built-in description that does not load.
pub fn algorithms() -> Result<&'static [Algorithm], WorkloadError> {
    BUILT_IN.as_deref().map_err(Clone::clone)
}

/// The built-in algorithm called `id`.
///
/// # Errors
/// An unknown id, with the nearest one.
pub fn algorithm(id: &str) -> Result<&'static Algorithm, WorkloadError> {
    let all = algorithms()?;
    let ids = || all.iter().map(|algorithm| algorithm.id.as_str());
    all.iter().find(|algorithm| algorithm.id == id).ok_or_else(|| WorkloadError::UnknownAlgorithm {
        id: id.to_owned(),
        nearest: nearest(id, ids()).map(str::to_owned),
        valid: ids().collect::<Vec<_>>().join(", "),
    })
}

/// The graph of one iteration of `network` in the mixed precision of `algorithm`.
///
/// # Errors
/// A network without a loss, or with an operator that the algorithm does not translate.
pub fn rewrite(network: &Network, algorithm: &Algorithm, optimiser: Optimiser) -> Result<TrainingGraph, WorkloadError> {
    Ok(rewritten(network, algorithm, optimiser)?.graph)
}

/// The same with what its nodes compute.
///
/// # Errors
/// As [`rewrite`].
pub fn rewritten(network: &Network, algorithm: &Algorithm, optimiser: Optimiser) -> Result<Rewritten, WorkloadError> {
    // Integer engines draw a mask of one byte an element.
    let eager = differentiate(network, EagerRules { dropout_mask_bytes: 1, optimiser, ..EagerRules::default() })?;
    let plan = plan::RewritePlan::new(network, &eager, algorithm)?;
    let (graph, computes, stands_for) = rewriter::Rewriter::new(network, &eager, algorithm, plan).run();
    Ok(Rewritten { algorithm: algorithm.clone(), graph, eager, computes, stands_for })
}

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
