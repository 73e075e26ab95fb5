//! Sage's graph side: differentiable operations lowered to computable ones, and the optimisations
//! of that graph (In Gim and JeongGil Ko, MobiSys 2022, sections 3.1 to 3.3).
//!
//! A differentiable operation (DO) becomes computable operations (CO) both in forward and in
//! backward: batch normalisation, softmax and attention are composed of element-wise operations,
//! reductions and broadcasts, so the graph that is evaluated holds forward and backward together
//! and can be altered freely. The counts of nodes are those of this graph, and its execution is a
//! [`TrainingGraph`] of one kernel a node, or a fused group.

mod backward;
mod computable;
mod forward;
mod fusion;
mod kernels;
mod reduction;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use crate::autograd::Optimiser;
use crate::error::WorkloadError;
use crate::network::Network;
use crate::shape::Extent;
use crate::training_graph::TrainingGraph;
use computable::ComputableGraph;
use fusion::Kernel;

/// How far Sage's optimisations have gone; each includes the ones before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Variant {
    /// Composite tensor operations with their copies: gathered windows, transposed operands.
    Original,
    /// *Direct*: single-kernel convolution and product, layout by index translation (section 3.3).
    Direct,
    /// *OF*: operator fusion by the three classes (section 3.2.1).
    Fused,
    /// *SR*: subgraph reduction, cheap shared operations computed again in each consumer (section 3.2.2).
    #[default]
    Reduced,
}

impl Variant {
    /// All variants, in order.
    pub const ALL: [Self; 4] = [Self::Original, Self::Direct, Self::Fused, Self::Reduced];

    /// Its id on the command line.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::Direct => "direct",
            Self::Fused => "of",
            Self::Reduced => "sr",
        }
    }
}

/// When a weight's gradient is applied to the weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Gradients {
    /// After backward, as frameworks do: all gradients are held until then.
    #[default]
    Kept,
    /// As soon as it is computed: only one gradient is held at a time.
    Streamed,
}

/// The kernels of one training iteration under `variant`.
///
/// # Errors
/// A network without a loss.
pub fn lower(
    network: &Network,
    variant: Variant,
    optimiser: Optimiser,
    gradients: Gradients,
) -> Result<TrainingGraph, WorkloadError> {
    let graph = computable(network, variant)?;
    Ok(kernels::emit(&graph, &group(&graph, variant), network, optimiser, gradients, variant))
}

/// The number of nodes of the computable graph under each variant, in the order of [`Variant::ALL`].
///
/// # Errors
/// A network without a loss.
pub fn node_counts(network: &Network) -> Result<[u64; 4], WorkloadError> {
    let mut counts = [0; 4];
    for (count, variant) in counts.iter_mut().zip(Variant::ALL) {
        let graph = computable(network, variant)?;
        *count = group(&graph, variant).len() as u64;
    }
    Ok(counts)
}

fn computable(network: &Network, variant: Variant) -> Result<ComputableGraph, WorkloadError> {
    let mut lowering = forward::Lowering::new(network, variant == Variant::Original);
    lowering.forward();
    lowering.backward()?;
    Ok(lowering.graph)
}

/// The kernels of `variant`, in an order of execution.
fn group(graph: &ComputableGraph, variant: Variant) -> Vec<Kernel> {
    match variant {
        Variant::Original | Variant::Direct => (0..graph.nodes.len() as u32).map(|id| vec![id]).collect(),
        Variant::Fused => fusion::fuse(graph),
        Variant::Reduced => reduction::reduce(graph, fusion::fuse(graph)),
    }
}

/// The number of kernels of `variant` that differ in their operations or their sizes: what a run
/// compiles, once each (section 3.2.3).
///
/// # Errors
/// A network without a loss.
pub fn distinct_kernels(network: &Network, variant: Variant) -> Result<u64, WorkloadError> {
    let graph = computable(network, variant)?;
    let signature = |kernel: &Kernel| -> Vec<(&'static str, Extent)> {
        let nodes = kernel.iter().map(|&id| &graph.nodes[id as usize]);
        nodes.map(|node| (node.operator, graph.elements_of(node.output))).collect()
    };
    let distinct: HashSet<_> = group(&graph, variant).iter().map(signature).collect();
    Ok(distinct.len() as u64)
}
