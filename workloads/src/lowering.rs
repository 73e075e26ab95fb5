//! Sage's graph side: differentiable operations lowered to computable ones, and the optimisations
//! of that graph (In Gim and JeongGil Ko, MobiSys 2022, sections 3.1 to 3.3).
//!
//! A differentiable operation (DO) becomes computable operations (CO) both in forward and in backward: batch
//! normalisation, softmax and attention are composed of element-wise operations, reductions and broadcasts, so the
//! graph that is evaluated contains forward and backward together and can be altered freely. DOs are high-level, and
//! each comes with its derivative (section 3.1), so that a normalisation has the closed form. The authors' public code,
//! which is younger than the paper, has no such level: it differentiates everything through its arithmetic. The counts
//! of nodes are those of this graph; it is executed as a [`TrainingGraph`] with one node per kernel or fused group.

mod backward;
mod computable;
mod forward;
mod fusion;
mod kernels;

use std::collections::HashSet;

use crate::error::Result;
use crate::{Extent, Network, Optimiser, TrainingGraph};
use computable::ComputableGraph;
use fusion::Kernel;

/// How far Sage's optimisations have gone; each includes the ones before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Variant {
    /// Composite tensor operations with their copies: gathered windows, transposed operands.
    Original,
    /// *Direct*: single-kernel convolution and product, layout by index translation (section 3.3).
    Direct,
    /// *OF*: operator fusion by the three classes (section 3.2.1).
    #[strum(serialize = "of")]
    Fused,
    /// *SR*: subgraph reduction, cheap shared operations computed again in each consumer (section 3.2.2).
    #[default]
    #[strum(serialize = "sr")]
    Reduced,
}

impl Variant {
    /// All variants, in order.
    pub const ALL: [Self; 4] = [Self::Original, Self::Direct, Self::Fused, Self::Reduced];

    /// Its id on the command line.
    pub fn id(self) -> &'static str {
        self.into()
    }
}

/// When a weight's gradient is applied to the weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Gradients {
    /// After backward, as frameworks do: all gradients are kept until then.
    #[default]
    Kept,
    /// As soon as it is computed: only one gradient exists at a time.
    Streamed,
}

/// The kernels of one training iteration under `variant`.
///
/// # Errors
/// A network without a loss.
pub fn lower(network: &Network, variant: Variant, optimiser: Optimiser, gradients: Gradients) -> Result<TrainingGraph> {
    let graph = computable(network, variant)?;
    Ok(kernels::emit(&graph, &group(&graph, variant), network, optimiser, gradients, variant))
}

/// The number of nodes of the computable graph under each variant, in the order of [`Variant::ALL`].
///
/// # Errors
/// A network without a loss.
pub fn node_counts(network: &Network) -> Result<[u64; 4]> {
    let mut counts = [0; 4];
    for (count, variant) in counts.iter_mut().zip(Variant::ALL) {
        let graph = computable(network, variant)?;
        *count = group(&graph, variant).len() as u64;
    }
    Ok(counts)
}

fn computable(network: &Network, variant: Variant) -> Result<ComputableGraph> {
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
        Variant::Reduced => fusion::reduce(graph, fusion::fuse(graph)),
    }
}

/// The number of kernels of `variant` that differ in their operations or their sizes: a run compiles each of them once
/// (section 3.2.3).
///
/// # Errors
/// A network without a loss.
pub fn distinct_kernels(network: &Network, variant: Variant) -> Result<u64> {
    let graph = computable(network, variant)?;
    let signature = |kernel: &Kernel| -> Vec<(&'static str, Extent)> {
        let nodes = kernel.iter().map(|&id| &graph.nodes[id as usize]);
        nodes.map(|node| (node.operator, graph.elements_of(node.output))).collect()
    };
    let distinct: HashSet<_> = group(&graph, variant).iter().map(signature).collect();
    Ok(distinct.len() as u64)
}

#[cfg(test)]
mod tests {
    //! Properties that only the computable graph shows: the nodes of each kernel, and the limits of subgraph reduction.

    use haversack_devices::work::OperatorKind;

    use super::computable::{Class, ComputableGraph};
    use super::fusion::{Kernel, external_inputs, fuse, reduce};
    use super::{Variant, computable, group};
    use crate::counts::count;
    use crate::models::{self, MODELS};
    use crate::network::{Initial, Network};
    use crate::operator::Window;
    use crate::shape::Extent;
    use crate::training_graph::{Phase, Role, Tensor, TensorId};

    fn every_model() -> impl Iterator<Item = Network> {
        MODELS.iter().map(|model| models::build(model.id, None).unwrap())
    }

    /// A graph in forward, with `leaves` inputs of 100 elements.
    fn graph(leaves: usize) -> (ComputableGraph, Vec<TensorId>) {
        let mut graph = ComputableGraph { phase: Some(Phase::Forward), ..ComputableGraph::default() };
        let leaf = Tensor::new("", Extent::per_sample(400), Role::Input);
        let leaves = (0..leaves).map(|_| graph.leaf(leaf.clone(), Extent::per_sample(100))).collect();
        (graph, leaves)
    }

    fn members(graph: &ComputableGraph, kernels: &[Kernel]) -> Vec<String> {
        let name = |&id: &u32| graph.nodes[id as usize].operator;
        kernels.iter().map(|kernel| kernel.iter().map(name).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn fusion_follows_the_three_classes() {
        let (mut g, x) = graph(2);
        let a = g.symmetrical("scale", &[x[0]]);
        let one = Extent::per_sample(1);
        // A reduction reads elements in several places: the scaling before it is a separate kernel.
        let sum = g.reduce("reduce_sum", a, one);
        let root = g.symmetrical("sqrt", &[sum]);
        // A broadcast is an index into a tensor that exists, and is translated in the kernel that reads it.
        let wide = g.translate("expand", root, Extent::per_sample(100));
        let b = g.symmetrical("sub", &[x[1], wide]);
        let looked_up = g.opaque("gather", &[b], Extent::per_sample(100));
        let last = g.symmetrical("exp", &[looked_up]);
        g.loss = Some(last);
        assert_eq!(members(&g, &fuse(&g)), ["scale", "reduce_sum sqrt", "expand sub", "gather", "exp"]);
    }

    #[test]
    fn of_two_products_that_meet_one_takes_the_sum() {
        let (mut g, x) = graph(3);
        let size = Extent::per_sample(100);
        let first = g.contract("matmul", OperatorKind::Gemm, &[x[0], x[1]], size, size);
        let second = g.contract("conv", OperatorKind::Convolution, &[x[1], x[2]], size, size);
        let sum = g.symmetrical("add", &[first, second]);
        g.loss = Some(sum);
        // Never a second asymmetrical one: the convolution is left alone.
        assert_eq!(members(&g, &fuse(&g)), ["conv", "matmul add"]);
    }

    #[test]
    fn a_tensor_with_two_readers_ends_a_kernel() {
        let (mut g, x) = graph(1);
        let shared = g.symmetrical("scale", &[x[0]]);
        let one = g.symmetrical("exp", &[shared]);
        let other = g.symmetrical("tanh", &[shared]);
        let sum = g.symmetrical("add", &[one, other]);
        g.loss = Some(sum);
        assert_eq!(members(&g, &fuse(&g)), ["scale", "exp tanh add"]);
    }

    /// A shared tensor made by `operations` operations on `inputs` leaves, read by an exponential and a sine, which two
    /// reductions keep apart; the kernels after reduction.
    fn shared_by_two(inputs: usize, operations: usize) -> Vec<String> {
        let (mut g, x) = graph(inputs);
        let mut shared = x[0];
        for other in &x[1..] {
            shared = g.symmetrical("add", &[shared, *other]);
        }
        for _ in g.nodes.len()..operations {
            shared = g.symmetrical("scale", &[shared]);
        }
        for name in ["exp", "sin"] {
            let read = g.symmetrical(name, &[shared]);
            let sum = g.reduce("reduce_sum", read, Extent::per_sample(1));
            g.tensors[sum as usize].role = Role::ParameterGradient;
        }
        let fused = fuse(&g);
        assert_eq!(fused[0].len(), operations);
        members(&g, &reduce(&g, fused))
    }

    #[test]
    fn reduction_ends_at_five_inputs() {
        // K_W = 5: three sums of four inputs are computed again in both readers, four sums of five inputs are not.
        assert_eq!(shared_by_two(4, 3), ["add add add exp", "reduce_sum", "add add add sin", "reduce_sum"]);
        assert_eq!(shared_by_two(5, 4), ["add add add add", "exp", "reduce_sum", "sin", "reduce_sum"]);
        // The number of operations does not count where there are several inputs: one sum and eight
        // scalings of two inputs.
        assert_eq!(shared_by_two(2, 9).len(), 4);
    }

    #[test]
    fn reduction_ends_at_five_operations_on_one_input() {
        // K_H = 5.
        assert_eq!(
            shared_by_two(1, 4),
            ["scale scale scale scale exp", "reduce_sum", "scale scale scale scale sin", "reduce_sum"]
        );
        assert_eq!(shared_by_two(1, 5), ["scale scale scale scale scale", "exp", "reduce_sum", "sin", "reduce_sum"]);
    }

    #[test]
    fn what_an_asymmetrical_operation_reads_is_kept() {
        let (mut g, x) = graph(1);
        let shared = g.symmetrical("scale", &[x[0]]);
        for name in ["reduce_sum", "reduce_max"] {
            let result = g.reduce(name, shared, Extent::per_sample(1));
            g.tensors[result as usize].role = Role::ParameterGradient;
        }
        let fused = fuse(&g);
        assert_eq!(members(&g, &reduce(&g, fused)), ["scale", "reduce_sum", "reduce_max"]);
    }

    #[test]
    fn a_removed_tensor_is_computed_again_inside_what_is_removed_after_it() {
        let (mut g, x) = graph(2);
        let first = g.symmetrical("sub", &[x[0], x[1]]);
        let second = g.symmetrical("abs", &[first]);
        for (name, of) in [("exp", first), ("sin", second), ("cos", second)] {
            let read = g.symmetrical(name, &[of]);
            let sum = g.reduce("reduce_sum", read, Extent::per_sample(1));
            g.tensors[sum as usize].role = Role::ParameterGradient;
        }
        // `first` is read by abs and exp, `second` by sin and cos; both have at most two inputs.
        let fused = fuse(&g);
        let reduced = reduce(&g, fused);
        let sums = ["reduce_sum"; 3];
        assert_eq!(members(&g, &reduced), ["sub exp", sums[0], "sub abs sin", sums[1], "sub abs cos", sums[2]]);
        // The kernels of the cosine read the leaves, not what was removed.
        assert_eq!(external_inputs(&g, &reduced[4]), [x[0], x[1]]);
    }

    fn classes(graph: &ComputableGraph, kernel: &Kernel, class: Class) -> usize {
        kernel.iter().filter(|&&id| graph.nodes[id as usize].class == class).count()
    }

    #[test]
    fn kernels_of_every_model_obey_the_classes() {
        for network in every_model() {
            for variant in Variant::ALL {
                let graph = computable(&network, variant).unwrap();
                let grouping = group(&graph, variant);
                let place = || format!("{} {}", network.name, variant.id());
                let mut made = vec![false; graph.tensors.len()];
                for kernel in &grouping {
                    assert!(classes(&graph, kernel, Class::Asymmetrical) <= 1, "{}", place());
                    let opaque = classes(&graph, kernel, Class::Opaque);
                    assert!(opaque == 0 || kernel.len() == 1, "{}", place());
                    let inputs = external_inputs(&graph, kernel);
                    // 1,024 bytes of arguments are 128 buffers: the output is one of them.
                    assert!(inputs.len() < 128, "{}: {} buffers", place(), inputs.len() + 1);
                    for input in inputs {
                        let ready = graph.producer[input as usize].is_none() || made[input as usize];
                        assert!(ready, "{}: a kernel reads tensor {input} before it is made", place());
                    }
                    let root = &graph.nodes[*kernel.last().unwrap() as usize];
                    assert!(!made[root.output as usize], "{}: made twice", place());
                    made[root.output as usize] = true;
                }
                // Results are always made, fused or not.
                let results = graph.weight_gradients.iter().flatten().chain(&graph.loss);
                assert!(results.copied().all(|result| made[result as usize]), "{}", place());
            }
        }
    }

    #[test]
    fn nothing_is_computed_that_nobody_reads() {
        let mut dead = Vec::new();
        for network in every_model() {
            let graph = computable(&network, Variant::Direct).unwrap();
            let consumers = graph.consumers();
            for node in &graph.nodes {
                if consumers[node.output as usize].is_empty() && !graph.is_result(node.output) {
                    let module = &network.nodes[node.origin as usize].module;
                    dead.push(format!("{}: {module}.{} ({:?})", network.name, node.operator, node.phase));
                }
            }
        }
        assert!(dead.is_empty(), "{} dead nodes:\n{}", dead.len(), dead.join("\n"));
    }

    /// A network that multiplies a map by one factor a channel (squeeze and excitation), and has a frozen weight.
    fn gated() -> Network {
        let mut n = Network::new("gated");
        let x = n.input(&[4, 6, 6]);
        let x = n.convolution("conv", x, 8, Window::square(3, 1, 1), 1, false).unwrap();
        let gate = n.adaptive_average_pool("pool", x, 1).unwrap();
        let frozen = n.weight("frozen", &[64], Initial::Constant(0.0), false);
        let gate = n.convolution_with("squeeze", gate, 8, Window::square(1, 1, 0), 1, frozen, None).unwrap();
        let x = n.mul("gate", x, gate).unwrap();
        let frozen = n.weight("frozen_depthwise", &[72], Initial::Constant(0.0), false);
        let x = n.convolution_with("depthwise", x, 8, Window::square(3, 1, 1), 8, frozen, None).unwrap();
        let x = n.flatten("flatten", x).unwrap();
        let x = n.linear("linear", x, 3, true).unwrap();
        let target = n.target(1);
        n.cross_entropy("loss", x, target).unwrap();
        n
    }

    #[test]
    fn symmetrical_operations_read_tensors_of_one_shape() {
        for network in every_model().chain([gated()]) {
            let graph = computable(&network, Variant::Original).unwrap();
            for node in graph.nodes.iter().filter(|node| node.class == Class::Symmetrical) {
                let output = graph.elements_of(node.output);
                for &input in &node.inputs {
                    let module = &network.nodes[node.origin as usize].module;
                    assert_eq!(
                        graph.elements_of(input),
                        output,
                        "{} {module}.{} ({:?})",
                        network.name,
                        node.operator,
                        node.phase
                    );
                }
            }
        }
    }

    #[test]
    fn every_trained_parameter_has_one_gradient_and_no_other_has_any() {
        for network in every_model().chain([gated()]) {
            for variant in Variant::ALL {
                let graph = computable(&network, variant).unwrap();
                for (parameter, gradient) in network.parameters.iter().zip(&graph.weight_gradients) {
                    let place = format!("{} {} {}", network.name, variant.id(), parameter.name);
                    assert_eq!(gradient.is_some(), parameter.trainable, "{place}");
                    if let Some(gradient) = *gradient {
                        assert_eq!(graph.elements_of(gradient), Extent::fixed(parameter.elements), "{place}");
                    }
                }
                let marked = graph.tensors.iter().filter(|tensor| tensor.role == Role::ParameterGradient).count();
                let trained = network.parameters.iter().filter(|parameter| parameter.trainable).count();
                assert_eq!(marked, trained, "{} {}", network.name, variant.id());
            }
        }
    }

    #[test]
    fn a_shared_weight_sums_the_gradients_of_its_uses() {
        let network = models::build("albert-base", None).unwrap();
        let graph = computable(&network, Variant::Direct).unwrap();
        // One layer's weights are used 12 times: 12 parts and 11 sums, of which the last is the gradient.
        let uses = |name: &str| {
            let id = network.parameters.iter().position(|p| p.name.ends_with(name)).unwrap();
            let users = network.nodes.iter().filter(|node| node.parameters.contains(&(id as u32))).count();
            let mut sums = 0;
            let mut tensor = graph.weight_gradients[id].unwrap();
            while let Some(node) = graph.producer[tensor as usize]
                .map(|node| &graph.nodes[node as usize])
                .filter(|node| node.operator == "add")
            {
                sums += 1;
                tensor = node.inputs[0];
            }
            (users, sums)
        };
        assert_eq!(uses("attention.self.query.weight"), (12, 11));
        assert_eq!(uses("intermediate.dense.bias"), (12, 11));
    }

    #[test]
    fn products_cost_the_same_under_every_variant() {
        for network in every_model().chain([gated()]) {
            // PyTorch's counts for a batch of three.
            let expected = count(&network, 3).training_flops;
            for variant in Variant::ALL {
                let graph = computable(&network, variant).unwrap();
                let grouping = group(&graph, variant);
                let product = |node: &&super::computable::ComputableNode| {
                    matches!(
                        node.kind,
                        OperatorKind::Convolution | OperatorKind::DepthwiseConvolution | OperatorKind::Gemm
                    )
                };
                let nodes = grouping.iter().flatten().map(|&id| &graph.nodes[id as usize]);
                let flops: u64 = nodes.filter(product).map(|node| node.flops.at(3)).sum();
                assert_eq!(flops, expected, "{} {}", network.name, variant.id());
            }
        }
    }
}
