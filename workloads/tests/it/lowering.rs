//! Sage's computable graph on networks small enough to count by hand, and invariants for every built-in model.

use haversack_devices::work::Precision;
use haversack_workloads::autograd::Optimiser;
use haversack_workloads::lowering::{Gradients, Variant, distinct_kernels, lower, node_counts};
use haversack_workloads::models::{self, MODELS};
use haversack_workloads::network::Network;
use haversack_workloads::operator::{Op, Unary, Window};
use haversack_workloads::{Phase, Role, TrainingGraph};

fn kernels(network: &Network, variant: Variant) -> TrainingGraph {
    lower(network, variant, Optimiser::Sgd, Gradients::Kept).unwrap()
}

fn names(graph: &TrainingGraph, phase: Phase) -> Vec<&str> {
    graph.nodes.iter().filter(|node| node.phase == phase).map(|node| node.name.as_str()).collect()
}

/// A 3×3 convolution, batch normalisation and ReLU, a dense layer and the loss.
fn conv_bn_relu() -> Network {
    let mut n = Network::new("conv-bn-relu");
    let x = n.input(&[2, 4, 4]);
    let x = n.convolution("conv", x, 3, Window::square(3, 1, 1), 1, false).unwrap();
    let x = n.batch_norm("bn", x).unwrap();
    let x = n.in_place("relu", x, Unary::Relu);
    let x = n.flatten("flatten", x).unwrap();
    let x = n.linear("linear", x, 5, true).unwrap();
    let target = n.target(1);
    n.cross_entropy("loss", x, target).unwrap();
    n
}

#[test]
fn nodes_of_a_normalised_convolution_are_those_counted_by_hand() {
    // Direct, forward: conv 1; BN 13 (mean, expand, sub, square, mean, add, rsqrt, expand, mul, expand, mul, expand,
    // add); ReLU 1; dense layer 3 (product, expand, add); loss 10 (max, expand, sub, exp, sum, log, expand, sub,
    // gather, mean) = 28.
    // Backward: loss 4 (exp, one-hot, sub, scale); dense layer 3 (bias, weight, input); ReLU 2 (greater, mul); BN 12
    // (mul and 2 sums; expand, expand, mul, add, scale, sub, mul, expand, mul); conv 1, as the samples need no
    // gradient = 22.
    // Original gathers windows in forward and for the weight's gradient, +2; and it transposes 2 operands
    // of 3 products, +6.
    // OF, forward: conv | mean | centred | square | variance and deviation | normal | affine and ReLU | dense layer |
    // max | shifted | exp | sum and log | log-probabilities | gather | mean = 15. Backward: one-hot | scores' gradient
    // | bias | weight | input and ReLU | mul | sum | sum | weight × deviation | normalisation's input | conv = 11.
    // SR removes the centred map (2 inputs, read by two products), the normal one (3 inputs) and the shifted
    // scores (2).
    assert_eq!(node_counts(&conv_bn_relu()).unwrap(), [58, 50, 26, 23]);
}

#[test]
fn fused_kernels_end_where_the_classes_say() {
    let graph = kernels(&conv_bn_relu(), Variant::Fused);
    let forward = [
        "conv.conv",
        "bn.reduce_mean",
        "bn.sub",
        "bn.mul",
        "bn.rsqrt",
        "bn.mul",
        "relu.max",
        "linear.add",
        "loss.reduce_max",
        "loss.sub",
        "loss.exp",
        "loss.log",
        "loss.sub",
        "loss.gather",
        "loss.reduce_mean",
    ];
    assert_eq!(names(&graph, Phase::Forward), forward);
    let backward = [
        "loss.one_hot",
        "loss.scale",
        "linear.reduce_sum",
        "linear.matmul",
        "relu.mul",
        "bn.mul",
        "bn.reduce_sum",
        "bn.reduce_sum",
        "bn.mul",
        "bn.mul",
        "conv.conv_weight_gradient",
    ];
    assert_eq!(names(&graph, Phase::Backward), backward);
    // Five weights: conv, BN's two, the dense layer's two.
    assert_eq!(names(&graph, Phase::Update).len(), 5);
}

#[test]
fn reduction_removes_the_centred_and_normalised_maps_but_not_the_output() {
    let graph = kernels(&conv_bn_relu(), Variant::Reduced);
    let forward = [
        "conv.conv",
        "bn.reduce_mean",
        "bn.mul",
        "bn.rsqrt",
        "relu.max",
        "linear.add",
        "loss.reduce_max",
        "loss.exp",
        "loss.log",
        "loss.sub",
        "loss.gather",
        "loss.reduce_mean",
    ];
    assert_eq!(names(&graph, Phase::Forward), forward);
    // The square of the centred map now reads the map and its mean, each once.
    let square = graph.nodes.iter().find(|node| node.name == "bn.mul").unwrap();
    let mut read: Vec<&str> = square.inputs.iter().map(|&input| graph.tensor(input).name.as_str()).collect();
    read.sort_unstable();
    assert_eq!(read, ["bn.reduce_mean", "conv.conv"]);
}

/// A normalised map that only symmetrical operations read: it is added to the input of its
/// normalisation, and once more.
fn normalised_and_added(layer: bool, relu: bool) -> Network {
    let mut n = Network::new("normalised");
    let x = n.input(&[6]);
    let x = n.linear("first", x, 4, false).unwrap();
    let mut y = if layer { n.layer_norm("norm", x, true) } else { n.batch_norm("norm", x).unwrap() };
    if relu {
        y = n.unary("relu", y, Unary::Relu);
    }
    let tanh = n.unary("tanh", y, Unary::Tanh);
    let sum = n.add("sum", y, tanh).unwrap();
    let scores = n.linear("second", sum, 3, false).unwrap();
    let target = n.target(1);
    n.cross_entropy("loss", scores, target).unwrap();
    n
}

#[test]
fn the_output_of_a_normalisation_has_five_inputs_and_is_kept() {
    for (layer, relu, root) in [(true, false, "norm.add"), (false, false, "norm.add"), (false, true, "relu.max")] {
        let network = normalised_and_added(layer, relu);
        let fused = kernels(&network, Variant::Fused);
        // Before reduction it reads the normal map, the weight and the bias.
        let count = |graph: &TrainingGraph, name: &str| {
            graph.nodes.iter().find(|node| node.name == name).map(|node| node.inputs.len())
        };
        assert_eq!(count(&fused, root), Some(3));
        // With the normal map computed again it reads the map, its mean, its deviation, the weight and the bias: five
        // inputs, not fewer than K_W = 5, though all of its readers are symmetrical.
        let reduced = kernels(&network, Variant::Reduced);
        assert_eq!(count(&reduced, root), Some(5), "{root}");
        // The centred map (x, mean) and the normal one (x, mean, deviation) are gone from forward.
        let gone =
            |graph: &TrainingGraph| names(graph, Phase::Forward).iter().filter(|name| **name == "norm.sub").count();
        assert_eq!((gone(&fused), gone(&reduced)), (1, 0));
    }
}

#[test]
fn a_deviation_is_never_computed_again() {
    // It ends in a reduction, and condition (i) requires symmetrical operations.
    let graph = kernels(&conv_bn_relu(), Variant::Reduced);
    assert_eq!(graph.nodes.iter().filter(|node| node.name == "bn.rsqrt").count(), 1);
}

/// The additional nodes of *Original*, which composes operations that *Direct* runs in one kernel:
/// operator by operator.
fn composed(network: &Network) -> u64 {
    let wants = |value: &u32| u64::from(network.value(*value).requires_grad);
    let mut more = 0;
    for node in &network.nodes {
        let trained = u64::from(node.parameters.first().is_some_and(|&weight| network.parameter(weight).trainable));
        let differentiated = wants(&node.output);
        more += match &node.op {
            // Windows gathered in forward and for the weight's gradient, and scattered for the input's.
            Op::Convolution { window, groups: 1 } if window.is_pointwise() => 0,
            Op::Convolution { groups: 1, .. } => 1 + trained + wants(&node.inputs[0]),
            // A grouped product makes a gradient a sample, which are then summed.
            Op::Convolution { .. } => 1 + 2 * trained + wants(&node.inputs[0]),
            // Two operands transposed a product: the product itself and one for each gradient.
            Op::Linear => 2 * (1 + trained + wants(&node.inputs[0])),
            Op::Matmul => 2 * (1 + wants(&node.inputs[0]) + wants(&node.inputs[1])),
            // Gathered windows; expand, equal, expand, mul, scatter instead of one kernel.
            Op::MaxPool(_) => 1 + 4 * differentiated,
            // Gathered windows; expand, scale, scatter instead of one kernel.
            Op::AveragePool { .. } => 1 + 2 * differentiated,
            Op::Copy(_) => 1 + differentiated,
            // The copy of its parts into one tensor.
            Op::Concat { .. } => 1,
            _ => 0,
        };
    }
    more
}

#[test]
fn direct_removes_the_copies_and_nothing_else() {
    // A windowed convolution between others has three: conv2 of LeNet-5.
    let lenet = models::build("lenet5", None).unwrap();
    let all = |graph: &TrainingGraph, tail: &str| {
        graph.nodes.iter().filter(|node| node.name == format!("conv2.{tail}")).count()
    };
    let (original, direct) = (kernels(&lenet, Variant::Original), kernels(&lenet, Variant::Direct));
    assert_eq!((all(&original, "im2col"), all(&original, "col2im")), (2, 1));
    assert_eq!((all(&direct, "im2col"), all(&direct, "col2im")), (0, 0));
    for model in MODELS.iter() {
        let network = models::build(model.id, None).unwrap();
        let [original, direct, ..] = node_counts(&network).unwrap();
        assert_eq!(original - direct, composed(&network), "{}", model.id);
        let left = kernels(&network, Variant::Direct);
        let copies = ["im2col", "col2im", "transpose", "permute", "concat"];
        let copy = left.nodes.iter().find(|node| copies.iter().any(|tail| node.name.ends_with(&format!(".{tail}"))));
        assert!(copy.is_none(), "{}: {:?}", model.id, copy.map(|node| &node.name));
    }
}

#[test]
fn nodes_fall_from_variant_to_variant() {
    for id in ["resnet50", "densenet121", "mobilenetv2", "bert-small"] {
        let network = models::build(id, None).unwrap();
        let counts = node_counts(&network).unwrap();
        assert!(counts.windows(2).all(|pair| pair[0] > pair[1]), "{id}: {counts:?}");
        for (variant, count) in Variant::ALL.into_iter().zip(counts) {
            // The graph that is executed has one kernel per node, plus one update per trained weight.
            let graph = kernels(&network, variant);
            let computed = graph.nodes.iter().filter(|node| node.phase != Phase::Update).count() as u64;
            let updates = graph.nodes.len() as u64 - computed;
            let trained = network.parameters.iter().filter(|parameter| parameter.trainable).count() as u64;
            assert_eq!((computed, updates), (count, trained), "{id} {}", variant.id());
            // Equal kernels are compiled once.
            let distinct = distinct_kernels(&network, variant).unwrap();
            assert!(distinct > 10 && distinct < count, "{id} {}: {distinct} of {count}", variant.id());
        }
    }
}

#[test]
fn every_model_is_in_an_order_of_execution_under_every_variant() {
    for model in MODELS.iter() {
        let network = models::build(model.id, None).unwrap();
        for variant in Variant::ALL {
            for gradients in [Gradients::Kept, Gradients::Streamed] {
                let graph = lower(&network, variant, Optimiser::Adam, gradients).unwrap();
                let place = |name: &str| format!("{} {} {gradients:?}: {name}", model.id, variant.id());
                let mut written: Vec<bool> = graph
                    .tensors
                    .iter()
                    .map(|t| t.role.is_state() || matches!(t.role, Role::Input | Role::Target))
                    .collect();
                let mut update = vec![0; graph.tensors.len()];
                for node in &graph.nodes {
                    for &tensor in node.inputs.iter().chain(&node.releases) {
                        assert!(written[tensor as usize], "{} reads {}", place(&node.name), graph.tensor(tensor).name);
                    }
                    for &output in &node.outputs {
                        written[output as usize] = true;
                        update[output as usize] +=
                            usize::from(matches!(graph.tensor(output).role, Role::Parameter { .. }));
                    }
                }
                // Exactly the trained weights are written, once each.
                for (tensor, times) in graph.tensors.iter().zip(&update) {
                    let trained = tensor.role == Role::Parameter { trainable: true };
                    assert_eq!(*times, usize::from(trained), "{}", place(&tensor.name));
                }
                let phases: Vec<Phase> = graph.nodes.iter().map(|node| node.phase).collect();
                let order =
                    |phase: &Phase| [Phase::Forward, Phase::Backward, Phase::Update].iter().position(|p| p == phase);
                assert!(phases.is_sorted_by_key(order), "{}", place("phases"));
                let streamed = gradients == Gradients::Streamed;
                assert_eq!(phases.contains(&Phase::Update), !streamed, "{}", place("update"));
            }
        }
    }
}

#[test]
fn an_optimisers_states_stand_beside_the_weights() {
    let network = conv_bn_relu();
    // 3 × 2 × 9 + 3 + 3 + 48 × 5 + 5 = 305 weights of four bytes, none, one or two states each.
    for (optimiser, states) in [(Optimiser::Sgd, 0), (Optimiser::Momentum, 1), (Optimiser::Adam, 2)] {
        let graph = lower(&network, Variant::Reduced, optimiser, Gradients::Kept).unwrap();
        assert_eq!(graph.bytes_of(|role| role == Role::OptimiserState).at(1), states * 1220);
        assert_eq!(graph.bytes_of(|role| matches!(role, Role::Parameter { .. })).at(1), 1220);
        assert_eq!(graph.bytes_of(|role| role == Role::ParameterGradient).at(1), 1220);
    }
}

#[test]
fn in_half_precision_intermediate_states_halve_and_weights_stay() {
    for variant in Variant::ALL {
        let whole = kernels(&conv_bn_relu(), variant);
        let half = whole.at_precision(Precision::Fp16);
        for (before, after) in whole.tensors.iter().zip(&half.tensors) {
            let is_state = matches!(before.role, Role::Activation | Role::Gradient);
            // Weights have no copy, and their gradients keep their precision; softmax and loss halve, too.
            let expected = if is_state { before.bytes.times(1, 2) } else { before.bytes };
            assert_eq!(after.bytes, expected, "{} {}", variant.id(), before.name);
        }
        // 305 weights of four bytes.
        assert_eq!(half.bytes_of(|role| matches!(role, Role::Parameter { .. })).at(1), 1220);
    }
}

#[test]
fn a_network_without_a_loss_is_refused_by_name() {
    let mut n = Network::new("headless");
    let x = n.input(&[4]);
    n.linear("linear", x, 2, true).unwrap();
    let error = lower(&n, Variant::Reduced, Optimiser::Sgd, Gradients::Kept).unwrap_err();
    assert!(error.to_string().contains("headless"), "{error}");
    assert!(node_counts(&n).is_err());
}

#[test]
fn who_reads_a_concatenation_reads_its_parts() {
    let mut n = Network::new("dense");
    let x = n.input(&[4, 8, 8]);
    let a = n.convolution("a", x, 3, Window::square(1, 1, 0), 1, false).unwrap();
    let b = n.convolution("b", a, 5, Window::square(1, 1, 0), 1, false).unwrap();
    let inner = n.concat("inner", &[x, a], 1).unwrap();
    let whole = n.concat("whole", &[inner, b], 1).unwrap();
    let y = n.convolution("y", whole, 2, Window::square(1, 1, 0), 1, false).unwrap();
    let y = n.flatten("flatten", y).unwrap();
    let target = n.target(1);
    n.cross_entropy("loss", y, target).unwrap();
    for (variant, read) in [(Variant::Original, 1), (Variant::Direct, 3), (Variant::Fused, 3), (Variant::Reduced, 3)] {
        let graph = kernels(&n, variant);
        let conv = graph.nodes.iter().find(|node| node.name == "y.conv").unwrap();
        // The weight and the input, as one tensor or as the three parts of the concatenation.
        assert_eq!(conv.inputs.len(), 1 + read, "{variant:?}");
    }
}
