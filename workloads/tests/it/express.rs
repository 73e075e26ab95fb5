//! MNN's expressions: invariants for every built-in model, and the blocks and the memory counted by hand.

use std::collections::BTreeSet;

use haversack_devices::work::OperatorKind::{self, Convolution, DepthwiseConvolution, ElementWise, Gemm, Layout};
use haversack_devices::work::ProductRole;
use haversack_workloads::autograd::{EagerRules, Optimiser, differentiate};
use haversack_workloads::counts::count;
use haversack_workloads::express::{Version, express};
use haversack_workloads::models::{self, MODELS};
use haversack_workloads::network::Network;
use haversack_workloads::operator::{Part, Unary, Window};
use haversack_workloads::training_graph::{Need, Node, NodeWork};
use haversack_workloads::{Extent, Phase, Role, Shape, TensorId, TrainingGraph};

use crate::saved_bytes;

fn expressed(network: &Network) -> TrainingGraph {
    express(network, Optimiser::Sgd, Version::V2).unwrap()
}

fn of_model(id: &str) -> TrainingGraph {
    expressed(&models::build(id, None).unwrap())
}

/// The nodes of `modules` in `phase`, by name.
fn names<'g>(graph: &'g TrainingGraph, phase: Phase, modules: &[&str]) -> Vec<&'g str> {
    of_modules(graph, modules).filter(|node| node.phase == phase).map(|node| node.name.as_str()).collect()
}

fn of_modules<'g>(graph: &'g TrainingGraph, modules: &[&str]) -> impl Iterator<Item = &'g Node> {
    graph.nodes.iter().filter(move |node| modules.contains(&node.name.split('.').next().unwrap()))
}

fn names_of(graph: &TrainingGraph, tensors: &[TensorId]) -> Vec<String> {
    tensors.iter().map(|&tensor| graph.tensor(tensor).name.clone()).collect()
}

/// The largest number of bytes alive at a time, if every tensor lives from its first writer to its last user.
fn peak(graph: &TrainingGraph, batch: u64) -> u64 {
    let bytes = |tensor: TensorId| graph.tensor(tensor).bytes.at(batch);
    let mut last_use = vec![0; graph.tensors.len()];
    for (place, node) in graph.nodes.iter().enumerate() {
        node.uses().for_each(|tensor| last_use[tensor as usize] = place);
    }
    let starts = |role: Role| role.is_state() || matches!(role, Role::Input | Role::Target);
    let mut alive: Vec<bool> = graph.tensors.iter().map(|tensor| starts(tensor.role)).collect();
    let mut live = graph.bytes_of(starts).at(batch);
    let mut most = live;
    for (place, node) in graph.nodes.iter().enumerate() {
        for &output in &node.outputs {
            if !std::mem::replace(&mut alive[output as usize], true) {
                live += bytes(output);
            }
        }
        most = most.max(live);
        for tensor in node.uses() {
            let dies = last_use[tensor as usize] == place && !graph.tensor(tensor).role.is_state();
            if dies && std::mem::replace(&mut alive[tensor as usize], false) {
                live -= bytes(tensor);
            }
        }
    }
    most
}

#[test]
fn every_model_is_in_an_order_of_execution() {
    for model in MODELS.iter() {
        let graph = of_model(model.id);
        let starts = |role: Role| role.is_state() || matches!(role, Role::Input | Role::Target);
        let mut written: Vec<bool> = graph.tensors.iter().map(|tensor| starts(tensor.role)).collect();
        for node in &graph.nodes {
            for &tensor in &node.inputs {
                assert!(written[tensor as usize], "{}: {} reads {}", model.id, node.name, graph.tensor(tensor).name);
            }
            for &output in &node.outputs {
                // No expression writes over another's output; only state is written twice.
                let again = std::mem::replace(&mut written[output as usize], true);
                assert!(!again || graph.tensor(output).role.is_state(), "{}: {}", model.id, node.name);
            }
            // Gradients are copied out of the pool between the two.
            let of_no_layer = node.phase == Phase::Update || node.name == "gradient";
            assert_eq!(node.origin.is_none(), of_no_layer, "{}: {}", model.id, node.name);
        }
        assert!(written.iter().all(|&written| written), "{}: a tensor that no node makes", model.id);
        let order = |phase: &Phase| [Phase::Forward, Phase::Backward, Phase::Update].iter().position(|p| p == phase);
        assert!(graph.nodes.iter().map(|node| node.phase).is_sorted_by_key(|phase| order(&phase)), "{}", model.id);
    }
}

#[test]
fn every_gradient_is_read() {
    for model in MODELS.iter() {
        let graph = of_model(model.id);
        let read: BTreeSet<u32> = graph.nodes.iter().flat_map(|node| &node.inputs).copied().collect();
        for node in graph.nodes.iter().filter(|node| node.phase == Phase::Backward) {
            assert!(node.outputs.iter().any(|output| read.contains(output)), "{}: {}", model.id, node.name);
        }
    }
}

#[test]
fn every_trained_weight_has_one_gradient_and_one_update() {
    // MNN's stochastic gradient descent keeps a momentum whether it is used or not.
    for (optimiser, states) in [(Optimiser::Sgd, 1), (Optimiser::Momentum, 1), (Optimiser::Adam, 2)] {
        for model in MODELS.iter() {
            let network = models::build(model.id, None).unwrap();
            let graph = express(&network, optimiser, Version::V2).unwrap();
            let trained: Vec<u64> = network.parameters.iter().filter(|p| p.trainable).map(|p| p.elements).collect();
            let of = |role: Role| graph.tensors.iter().filter(|tensor| tensor.role == role).count();
            assert_eq!(of(Role::ParameterGradient), trained.len(), "{}", model.id);
            assert_eq!(of(Role::OptimiserState), states * trained.len(), "{}", model.id);
            let bytes = graph.bytes_of(|role| role == Role::ParameterGradient);
            assert_eq!(bytes, Extent::fixed(4 * trained.iter().sum::<u64>()), "{}", model.id);
            let updates = graph.nodes.iter().filter(|node| node.phase == Phase::Update).count();
            assert_eq!(updates, trained.len(), "{}", model.id);
        }
    }
}

#[test]
fn products_are_those_of_the_eager_graph() {
    for model in MODELS.iter() {
        let network = models::build(model.id, None).unwrap();
        let of_taps = |work: &NodeWork| {
            let role = work.product.map(|product| product.role);
            work.kind == DepthwiseConvolution && role == Some(ProductRole::WeightGradient)
        };
        let [eager, expressed] =
            [differentiate(&network, EagerRules::default()).unwrap(), expressed(&network)].map(|graph| {
                let products = graph
                    .nodes
                    .into_iter()
                    .filter(|node| matches!(node.work.kind, Convolution | DepthwiseConvolution | Gemm))
                    // The gradient of a depthwise weight is made tap by tap, by sums.
                    .filter(|node| !of_taps(&node.work));
                let mut products: Vec<_> = products
                    .map(|node| {
                        let work = node.work;
                        let layer = format!("{:?} {:?} {:?}", work.kind, node.phase, work.product);
                        (node.origin, layer, work.flops.at(3), work.columns, work.winograd)
                    })
                    .collect();
                products.sort();
                products
            });
        assert_eq!(eager, expressed, "{}", model.id);
        // The products that PyTorch's tools count, with which the eager graph is compared elsewhere; taps are
        // sums, not products.
        let taps: u64 = differentiate(&network, EagerRules::default())
            .unwrap()
            .nodes
            .iter()
            .filter(|node| of_taps(&node.work))
            .map(|node| node.work.flops.at(3))
            .sum();
        let flops: u64 = expressed.iter().map(|product| product.2).sum();
        assert_eq!(flops + taps, count(&network, 3).training_flops, "{}", model.id);
    }
}

#[test]
fn more_is_kept_than_by_an_eager_framework() {
    for model in MODELS.iter() {
        let network = models::build(model.id, None).unwrap();
        let eager = differentiate(&network, EagerRules::default()).unwrap();
        let [least, kept] = [saved_bytes(&eager, 8), saved_bytes(&expressed(&network), 8)];
        assert!(kept >= least, "{}: {kept} bytes, where PyTorch saves {least}", model.id);
    }
}

#[test]
fn traffic_is_what_is_read_and_written() {
    for model in MODELS.iter() {
        let graph = of_model(model.id);
        for node in graph.nodes.iter().filter(|node| node.phase != Phase::Update) {
            let all: u64 = node.inputs.iter().chain(&node.outputs).map(|&t| graph.tensor(t).bytes.at(4)).sum();
            let written: u64 = node.outputs.iter().map(|&t| graph.tensor(t).bytes.at(4)).sum();
            let dram = node.work.dram.at(4);
            // Zeros, slices and look-ups touch less than all of what they refer to.
            let partial = ["zeros_like", "slice", "gather"].iter().any(|label| node.name.ends_with(label));
            // Products have workspace, sums over the batch take it map on map, and copies read only the
            // elements that they pick.
            let commands = [
                "windows",
                "scatter",
                "sample",
                "input_gradient",
                "weight_gradient",
                "reduce_sum",
                "reduce_mean",
                "eltwise_sum",
            ];
            let is_command = commands.iter().any(|label| node.name.ends_with(label));
            assert!(
                match (partial, is_command) {
                    (true, _) => dram >= written && dram <= 3 * all,
                    (_, true) => dram > 0 && dram <= 3 * all,
                    _ => dram == all,
                },
                "{}: {dram} of {all}",
                node.name
            );
        }
    }
}

/// A pointwise convolution, then a 3×3 one with batch normalisation and ReLU6, over maps of 8×6×6; a mean
/// and a classifier.
fn conv_bn_relu6() -> Network {
    let mut n = Network::new("conv-bn-relu6");
    let x = n.input(&[4, 6, 6]);
    let x = n.convolution("first", x, 8, Window::square(1, 1, 0), 1, false).unwrap();
    let x = n.convolution("conv", x, 8, Window::square(3, 1, 1), 1, false).unwrap();
    let x = n.batch_norm("bn", x).unwrap();
    let x = n.in_place("relu", x, Unary::Relu6);
    let x = n.adaptive_average_pool("pool", x, 1).unwrap();
    let x = n.flatten("flatten", x).unwrap();
    let x = n.linear("linear", x, 5, true).unwrap();
    let target = n.target(1);
    n.cross_entropy("loss", x, target).unwrap();
    n
}

const BLOCK: [&str; 3] = ["conv", "bn", "relu"];
/// 8 × 6 × 6 values of four bytes.
const MAP: u64 = 1152;

#[test]
fn a_normalised_convolution_is_written_step_by_step() {
    let graph = expressed(&conv_bn_relu6());
    #[rustfmt::skip]
    let forward = [
        "conv.convolution", "bn.convert",
        // Over the batch, then over positions.
        "bn.reduce_mean", "bn.reduce_mean", "bn.subtract", "bn.square", "bn.reduce_mean", "bn.reduce_mean",
        "bn.add_constant", "bn.sqrt", "bn.reciprocal", "bn.multiply", "bn.multiply", "bn.add", "bn.running_statistics",
        "bn.convert", "relu.relu6",
    ];
    assert_eq!(names(&graph, Phase::Forward, &BLOCK), forward);
    #[rustfmt::skip]
    let backward = [
        // (0 < x) · (x < 6) · dy, into rows.
        "relu.greater", "relu.cast", "relu.less", "relu.cast", "relu.multiply", "relu.multiply", "bn.convert",
        // The bias; the weight and the normalised map; the reciprocal deviation and the centred map.
        "bn.reduce_sum", "bn.reduce_sum", "bn.multiply", "bn.multiply", "bn.reduce_sum", "bn.reduce_sum",
        "bn.multiply", "bn.multiply", "bn.reduce_sum", "bn.reduce_sum",
        // Through the reciprocal and the root to the variance, then through the mean of squares.
        "bn.pow", "bn.negative", "bn.multiply", "bn.scale", "bn.abs", "bn.maximum", "bn.sign", "bn.divide", "bn.multiply",
        "bn.scale", "bn.zeros_like", "bn.add", "bn.multiply", "bn.add", "bn.accumulate",
        // The mean, and the map itself, which products gather in its layout.
        "bn.negative", "bn.reduce_sum", "bn.reduce_sum", "bn.scale", "bn.zeros_like", "bn.add", "bn.accumulate",
        "conv.gather", "conv.input_gradient", "conv.scatter", "conv.reduce_sum", "conv.windows", "conv.weight_gradient",
    ];
    assert_eq!(names(&graph, Phase::Backward, &BLOCK), backward);
}

#[test]
fn a_normalised_convolution_keeps_six_maps_and_sweeps_twenty_five_times() {
    let graph = expressed(&conv_bn_relu6());
    let maps: Vec<_> =
        graph.saved().into_iter().filter(|&tensor| graph.tensor(tensor).bytes == Extent::per_sample(MAP)).collect();
    // The block's input is the first convolution's output. Then, in rows: the map, it less its mean, its square and the
    // normalised one; in blocks, what the activation reads, and what it writes for the pooling: six maps of its own.
    let expected =
        ["first.convolution", "bn.convert", "bn.subtract", "bn.square", "bn.multiply", "bn.convert", "relu.relu6"];
    assert_eq!(names_of(&graph, &maps), expected);

    // Forward: subtract, square, two products, a sum and ReLU6 = 6. Backward: ReLU6 6; weight 2, deviation 2; zeros and
    // sum below the variance 2, the square's 2, accumulated 1; negative 1; zeros and sum below the mean 2, accumulated
    // 1 = 19.
    let sweeps = |phase| {
        let whole =
            |node: &&Node| node.work.kind == ElementWise && node.work.parallelism == Extent::per_sample(MAP / 4);
        of_modules(&graph, &BLOCK).filter(whole).filter(|node| node.phase == phase).count()
    };
    assert_eq!([sweeps(Phase::Forward), sweeps(Phase::Backward)], [6, 19]);

    // Maps read and written, where a sum over the batch reads two and writes one. Forward: convolution 2, conversion 2,
    // mean 3, subtract 2, square 2, mean 3, products 2 and 2, sum 2, conversion 2, ReLU6 2 = 24. Backward: ReLU6 2 + 2
    // + 2 + 2 + 3 + 3 = 14; conversion 2; bias 3; weight 2 + 3 + 3; deviation 2 + 3 + 3; zeros 1, sum 2, square 3 + 2,
    // accumulated 3; negative 2, sum 3, zeros 1, sum 2, accumulated 3 = 57. The convolution: gathered 2, a product to
    // nine maps 1 + 9, those scattered 18 and added up 27; the windows of a map in blocks 18 + 2 and their product 9 +
    // 1 = 87. Layout kernels are three conversions, the gathering, the scattering, and the windows: 6 + 2 + 18 + 20.
    let moved = |wanted: fn(OperatorKind) -> bool| -> u64 {
        of_modules(&graph, &BLOCK).filter(|n| wanted(n.work.kind)).map(|n| n.work.dram.per_sample).sum()
    };
    assert_eq!(moved(|_| true), (24 + 57 + 87) * MAP);
    assert_eq!(moved(|kind| kind == Layout), 46 * MAP);
}

#[test]
fn backward_says_what_it_needs_of_what_is_kept() {
    let graph = expressed(&conv_bn_relu6());
    let need = |name: &str, place: usize| {
        let node = graph.nodes.iter().find(|node| node.phase == Phase::Backward && node.name == name).unwrap();
        node.need_of(node.inputs[place])
    };
    // Which elements lie between the bounds; the map's zeros have its shape; the deviation is one value a channel.
    assert_eq!([need("relu.greater", 0), need("relu.less", 0)], [Need::Signs; 2]);
    assert_eq!(need("bn.zeros_like", 0), Need::Shape);
    assert_eq!(need("bn.pow", 0), Need::Statistics);
}

#[test]
fn blocks_hold_a_multiple_of_four_channels() {
    let mut n = Network::new("blocks");
    let x = n.input(&[3, 6, 6]);
    let x = n.convolution("conv", x, 5, Window::square(1, 1, 0), 1, true).unwrap();
    let x = n.unary("relu", x, Unary::Relu);
    let x = n.convolution("next", x, 2, Window::square(6, 1, 0), 1, false).unwrap();
    let x = n.flatten("flatten", x).unwrap();
    let target = n.target(1);
    n.cross_entropy("loss", x, target).unwrap();
    let graph = expressed(&n);
    let bytes = |name: &str| graph.tensors.iter().find(|tensor| tensor.name == name).unwrap().bytes;
    // The samples' 3 channels lie in a block of 4, the 5 of the convolution in two: 36 positions × 4 bytes.
    assert_eq!(bytes("conv.convert"), Extent::per_sample(4 * 144));
    assert_eq!(bytes("conv.convolution"), Extent::per_sample(8 * 144));
    // Between two convolutions nothing is converted; the last one's scores are, to be reshaped. In backward products
    // gather and scatter; the activation wants its gradient in blocks, and the bias is summed in rows.
    let layouts = |phase| {
        let nodes = graph.nodes.iter().filter(move |node| node.phase == phase && node.work.kind == Layout);
        nodes.map(|node| node.name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(layouts(Phase::Forward), ["conv.convert", "flatten.convert"]);
    #[rustfmt::skip]
    let backward = [
        "next.gather", "next.scatter", "next.windows", "relu.convert", "conv.gather", "conv.windows", "conv.convert",
        "gradient", "gradient", "gradient",
    ];
    assert_eq!(layouts(Phase::Backward), backward);
    // relu(sign(x)) · dy.
    assert_eq!(names(&graph, Phase::Backward, &["relu"]), ["relu.sign", "relu.relu", "relu.convert", "relu.multiply"]);
}

#[test]
fn parts_of_a_whole_are_split_and_joined_once() {
    let mut n = Network::new("halves");
    let x = n.input(&[4, 2, 2]);
    let x = n.convolution("conv", x, 8, Window::square(1, 1, 0), 1, false).unwrap();
    let half = Shape::batched(&[4, 2, 2]);
    let cut = |half: u64| Part::whole(4).from(1, 4 * half, 1);
    let parts = [0, 1].map(|i| n.slice(&format!("half{i}"), x, cut(i), half.clone(), false));
    let relu = n.unary("relu", parts[1], Unary::Relu);
    let x = n.concat("cat", &[parts[0], relu], 1).unwrap();
    let corner = n.slice("corner", x, Part::whole(4), Shape::batched(&[8, 1, 1]), false);
    let x = n.flatten("flatten", corner).unwrap();
    let target = n.target(1);
    n.cross_entropy("loss", x, target).unwrap();
    let graph = expressed(&n);
    let modules = ["half0", "half1", "cat", "corner"];
    // One operator writes both halves. A corner is a single part: its gradient is written into zeros.
    assert_eq!(names(&graph, Phase::Forward, &modules), ["half0.split", "cat.concat", "corner.slice"]);
    let backward = ["corner.zeros_like", "corner.slice_write", "cat.split", "half0.concat"];
    assert_eq!(names(&graph, Phase::Backward, &modules), backward);
    let split = graph.nodes.iter().find(|node| node.name == "half0.split").unwrap();
    assert_eq!((split.outputs.len(), split.work.dram), (2, Extent::per_sample(2 * 8 * 4 * 4)));
}

#[test]
fn what_moves_around_is_cut_and_joined_along_each_axis() {
    let mut n = Network::new("rolled");
    let x = n.input(&[4, 6, 6]);
    let x = n.convolution("conv", x, 8, Window::square(1, 1, 0), 1, false).unwrap();
    let x = n.permute("rows", x, &[0, 2, 3, 1]).unwrap();
    let x = n.pad("pad", x, Shape::batched(&[6, 6, 8]));
    let x = n.roll("roll", x, &[0, 2, 4, 0]);
    let x = n.flatten("flatten", x).unwrap();
    let x = n.linear("linear", x, 5, false).unwrap();
    let target = n.target(1);
    n.cross_entropy("loss", x, target).unwrap();
    let graph = expressed(&n);
    // A padding of zero elements is read through. For each of two axes two parts, and one concatenation.
    let axis = ["roll.slice", "roll.slice", "roll.concat"];
    let forward = names(&graph, Phase::Forward, &["pad", "roll"]);
    assert_eq!(forward, [&["pad.permute"][..], &axis, &axis].concat());
    // Parts read and write a map together, as the concatenation does: along each axis two maps are read
    // and two written.
    let moved: u64 = of_modules(&graph, &["roll"])
        .filter(|node| node.phase == Phase::Forward)
        .map(|node| node.work.dram.per_sample)
        .sum();
    assert_eq!(moved, 2 * 4 * MAP);
    // Along the first axis 2 of 6 rows go before the other 4.
    let rows = |place: usize| of_modules(&graph, &["roll"]).nth(place).unwrap().work.flops;
    assert_eq!([rows(0), rows(1)], [2, 4].map(|rows| Extent::per_sample(rows * 6 * 8)));
    // Either part's gradient is written into zeros of the whole, and the two are summed.
    let back = ["split", "zeros_like", "slice_write", "zeros_like", "slice_write", "accumulate"];
    let backward = names(&graph, Phase::Backward, &["roll"]);
    let expected: Vec<String> = back.iter().chain(&back).map(|name| format!("roll.{name}")).collect();
    assert_eq!(backward, expected);
}

#[test]
fn gelu_keeps_its_input_and_two_steps() {
    let mut n = Network::new("gelu");
    let x = n.input(&[6]);
    let x = n.linear("up", x, 8, false).unwrap();
    let x = n.unary("gelu", x, Unary::Gelu);
    let x = n.linear("down", x, 3, false).unwrap();
    let target = n.target(1);
    n.cross_entropy("loss", x, target).unwrap();
    let graph = expressed(&n);
    let forward = ["gelu.scale", "gelu.erf", "gelu.add_constant", "gelu.multiply", "gelu.scale"];
    assert_eq!(names(&graph, Phase::Forward, &["gelu"]), forward);
    // ½; to x and to 1 + erf; 2/√π · exp(−(x/√2)²) · dy; 1/√2; and both of x's.
    #[rustfmt::skip]
    let backward = [
        "gelu.scale", "gelu.multiply", "gelu.multiply", "gelu.square", "gelu.negative", "gelu.exp", "gelu.scale",
        "gelu.multiply", "gelu.scale", "gelu.accumulate",
    ];
    assert_eq!(names(&graph, Phase::Backward, &["gelu"]), backward);
    // x, x/√2 and 1 + erf; for the weights, what either layer reads, in blocks: the first one's input as it was
    // converted and the activation. The loss keeps its softmax, its labels as numbers and the product that is summed,
    // and the sums that are averaged.
    #[rustfmt::skip]
    let kept = [
        "up.convert", "up.convert", "gelu.scale", "gelu.add_constant", "down.convert", "loss.softmax", "loss.one_hot",
        "loss.multiply", "loss.reduce_sum",
    ];
    assert_eq!(names_of(&graph, &graph.saved()), kept);
}

#[test]
fn a_sum_is_as_large_as_its_larger_side() {
    let mut n = Network::new("broadcast");
    let x = n.input(&[6]);
    let small = n.linear("small", x, 1, false).unwrap();
    let large = n.linear("large", x, 8, false).unwrap();
    let sum = n.add("sum", small, large).unwrap();
    let target = n.target(1);
    n.cross_entropy("loss", sum, target).unwrap();
    let graph = expressed(&n);
    let sum = graph.nodes.iter().find(|node| node.name == "sum.add").unwrap();
    // One and eight values of four bytes are read, eight written.
    assert_eq!((sum.work.flops, sum.work.dram), (Extent::per_sample(8), Extent::per_sample(4 + 32 + 32)));
    // One thread loops over the rows; in 1.1 the smaller is written out, and all threads add.
    assert_eq!(sum.work.parts, Extent::fixed(1));
    let older = express(&n, Optimiser::Sgd, Version::V1).unwrap();
    let written = names(&older, Phase::Forward, &["sum"]);
    let all = older.nodes.iter().find(|node| node.name == "sum.add").unwrap().work.parts;
    assert_eq!((written, all), (vec!["sum.broadcast", "sum.add"], Extent::ZERO));
    // The larger side is given the gradient itself, the smaller its sum over each row.
    assert_eq!(names(&graph, Phase::Backward, &["sum"]), ["sum.reduce_sum"]);
}

#[test]
fn an_update_sweeps_a_weight_six_or_fourteen_times() {
    for (optimiser, sweeps, moved) in [(Optimiser::Sgd, 6, 21), (Optimiser::Adam, 14, 39)] {
        let graph = express(&conv_bn_relu6(), optimiser, Version::V2).unwrap();
        let update = graph.nodes.iter().find(|node| node.name == "linear.weight.update").unwrap();
        // 8 × 5 weights. Descent: decay 1 + 1, momentum 2 + 1, weight 1; three sweeps move two values and three move
        // three = 15. Adam: decay 1 + 1, first moment 2 + 1, second 3 + 1, root, ε, quotient and rate 4, weight 1 = 14,
        // of which nine move two and five three = 33. Three copies move two each.
        assert_eq!((update.work.flops, update.work.dram), (Extent::fixed(40 * sweeps), Extent::fixed(160 * moved)));
    }
}

#[test]
fn attention_permutes_four_times_a_layer_each_way() {
    // BERT-small has 4 layers: queries, keys (transposed in the same copy), values and the context are copied into
    // heads or out of them.
    let graph = of_model("bert-small-s64");
    for phase in [Phase::Forward, Phase::Backward] {
        let permuted: Vec<u64> = laid_out(&graph, phase, "permute").map(|node| node.work.dram.per_sample).collect();
        // 64 tokens × 512 features × 4 bytes, read and written.
        assert_eq!(permuted, [2 * 64 * 512 * 4; 4 * 4]);
        // The classifier's token is cut out once.
        let cut = laid_out(&graph, phase, "slice").chain(laid_out(&graph, phase, "slice_write")).count();
        assert_eq!(cut, 1);
    }
}

#[test]
fn linear_layers_are_convolutions_between_conversions() {
    // BERT-small: in each of 4 layers queries, keys and values share what their input is converted to; the context's
    // and the two inner layers have one each, and all six convert what they give. Two more layers make the head.
    let graph = of_model("bert-small-s64");
    assert_eq!(laid_out(&graph, Phase::Forward, "convert").count(), 4 * (4 + 6) + 2 * 2);
    // Backward's products gather their operands from rows, and biases are summed in rows. Only the gradients of what
    // queries, keys and values share are added up in blocks: three conversions, and one of the sum.
    assert_eq!(laid_out(&graph, Phase::Backward, "convert").count(), 4 * 4);
    // 64 tokens are 64 pictures of one pixel, whose 2,048 features are the channels of the widest.
    let widest = laid_out(&graph, Phase::Forward, "convert").map(|node| node.work.dram.per_sample).max();
    assert_eq!(widest, Some(2 * 64 * 2048 * 4));
}

/// The layout nodes with the name `label`.
fn laid_out<'g>(graph: &'g TrainingGraph, phase: Phase, label: &str) -> impl Iterator<Item = &'g Node> {
    let suffix = format!(".{label}");
    let of_kind = graph.nodes.iter().filter(move |node| node.phase == phase && node.work.kind == Layout);
    of_kind.filter(move |node| node.name.ends_with(&suffix))
}

#[test]
fn mobilenet_at_batch_32_is_the_largest_below_5500_megabytes() {
    let graph = of_model("mobilenetv2");
    // Six maps a normalised and activated convolution, five a normalised one, where PyTorch saves three or one: twice
    // PyTorch's 77.5 MB a sample.
    let a_sample = (saved_bytes(&graph, 9) - saved_bytes(&graph, 8)) as f64 * 1e-6;
    assert!((150.0..165.0).contains(&a_sample), "{a_sample} MB");
    // On a phone that leaves a process 5,500 MB, MNN trains batches of 32 and not of 40.
    let [fits, does_not] = [peak(&graph, 32), peak(&graph, 40)].map(|bytes| bytes as f64 * 1e-9);
    assert!((4.4..5.5).contains(&fits), "{fits} GB at batch 32");
    assert!(does_not > 5.5, "{does_not} GB at batch 40");
}

#[test]
fn a_network_without_a_loss_is_refused() {
    let mut n = Network::new("endless");
    let x = n.input(&[6]);
    n.linear("only", x, 2, true).unwrap();
    let message = express(&n, Optimiser::Sgd, Version::V2).unwrap_err().to_string();
    assert_eq!(message, "network 'endless' has no loss: nothing to differentiate");
}
