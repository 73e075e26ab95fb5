//! Mixed-precision training as a rewrite of the eager graph (Mandheling, sections 2.2 and 3.2).
//!
//! An [`Algorithm`] is data; [`rewrite`] knows none of them by name. Products become products of integers, followed
//! by the node that takes their scale anew; operators that stay in fp32 stand between a dequantisation and a
//! quantisation; what an algorithm's networks do not have vanishes; weights get a master where their update wants one.
//! Which processor runs what, and in which iterations scales are taken anew, is for others to decide.

mod algorithm;
mod arithmetic;
mod computes;
mod description;
mod initial;
mod plan;
mod product;
mod rewriter;

use std::sync::LazyLock;

pub use algorithm::{
    Algorithm, Backpropagation, BiasFormat, GradientFormat, Initialiser, Layers, Loss, Operand, OperatorName,
    OptimiserChoice, Pass, StateFormat, Sweep, Translation, Update, WeightFormat, WeightRules,
};
pub use arithmetic::{Arithmetic, FixedSteps, Rate, Rounding, Scaling};
pub use computes::{Computes, Rewritten};
pub use initial::with_initial_weights;

use haversack_devices::text::nearest;

use crate::autograd::{EagerRules, Optimiser, differentiate};
use crate::error::WorkloadError;
use crate::network::Network;
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
