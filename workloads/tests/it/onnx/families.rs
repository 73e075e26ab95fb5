//! The computation and the saved bytes of each family of operators, by hand.

use haversack_workloads::counts::{Counts, count};
use haversack_workloads::network::Network;
use haversack_workloads::onnx::{self, Reading};

use super::wire::{A, FLOAT, G, batched};

const BATCH: u64 = 8;
/// Bytes of a map of 8 × 4 × 6 × 6 floats.
const MAP: u64 = BATCH * 4 * 6 * 6 * 4;

fn import(graph: &G) -> Network {
    onnx::import_bytes("family", &graph.file(), &Reading::default()).unwrap()
}

fn counts(graph: &G) -> Counts {
    count(&import(graph), BATCH)
}

/// A convolution of 4 channels of 6 × 6 positions, `h`; it saves the samples, which are not an activation.
fn start() -> G {
    G::default().input("input", FLOAT, &batched(&[4, 6, 6])).weight("k", &[4, 4, 1, 1]).node(
        "Conv",
        &["input", "k"],
        &["h"],
        &[("kernel_shape", A::Ints(&[1, 1]))],
    )
}

/// `y` of `channels` channels through a convolution, a mean and the loss.
fn end(graph: G, channels: i64) -> G {
    graph
        .weight("last", &[5, channels, 1, 1])
        .node("Conv", &["y", "last"], &["map"], &[("kernel_shape", A::Ints(&[1, 1]))])
        .node("GlobalAveragePool", &["map"], &["mean"], &[])
        .node("Flatten", &["mean"], &["scores"], &[])
        .output("scores")
}

/// The bytes saved except for the input of the last convolution (`y` bytes) and the loss: 8 × 5
/// log-probabilities and a weight.
fn saved(graph: &G, y: u64) -> u64 {
    counts(graph).saved_act_bytes - y - (BATCH * 5 * 4 + 4)
}

fn names(network: &Network) -> Vec<&'static str> {
    network.nodes.iter().map(|node| node.op.name()).collect()
}

#[test]
fn functions_save_their_input_or_their_output() {
    let saved_by = |operator: &str| saved(&end(start().node(operator, &["h"], &["y"], &[]), 4), MAP);
    for by_input in ["HardSwish", "HardSigmoid", "Elu", "Softplus", "Mish", "Log", "Erf", "Abs", "Sin", "Gelu", "Swish"]
    {
        assert_eq!(saved_by(by_input), MAP, "{by_input}");
    }
    // The output, which the last convolution saves too; of rounding nothing, for its derivative is zero.
    for by_output in ["Sigmoid", "Tanh", "Exp", "Sqrt", "Reciprocal", "Floor"] {
        assert_eq!(saved_by(by_output), 0, "{by_output}");
    }
}

#[test]
fn a_leaky_relu_runs_in_place_where_nobody_else_reads_its_input() {
    let slope = [("alpha", A::F(0.1))];
    let alone = start().node("LeakyRelu", &["h"], &["y"], &slope);
    assert_eq!(saved(&end(alone, 4), MAP), 0);
    // Here its input is read again, so that both its input and its output stay; the sum saves nothing.
    let shared = start().node("LeakyRelu", &["h"], &["l"], &slope).node("Add", &["l", "h"], &["y"], &[]);
    assert_eq!(saved(&end(shared, 4), MAP), MAP);
}

#[test]
fn a_hard_sigmoid_times_its_input_is_a_hard_swish_and_a_mish_is_one_kernel() {
    let gate = [("alpha", A::F(1.0 / 6.0))];
    let hard = start().node("HardSigmoid", &["h"], &["g"], &gate).node("Mul", &["h", "g"], &["y"], &[]);
    assert_eq!(names(&import(&end(hard, 4)))[1], "hard_swish");
    let mish = start().node("Softplus", &["h"], &["s"], &[]).node("Tanh", &["s"], &["t"], &[]).node(
        "Mul",
        &["h", "t"],
        &["y"],
        &[],
    );
    assert_eq!(names(&import(&end(mish, 4)))[1..3], ["mish", "convolution"]);
}

#[test]
fn reductions_save_what_their_derivative_needs() {
    let reduced = |operator: &str| {
        let graph = start().node(operator, &["h"], &["r"], &[("axes", A::Ints(&[2, 3]))]);
        end(graph.node("Mul", &["h", "r"], &["y"], &[]), 4)
    };
    // The product with the whole map saves both of its sides: the map and 8 × 4 values.
    let both = MAP + BATCH * 4 * 4;
    for operator in ["ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2"] {
        assert_eq!(saved(&reduced(operator), MAP), both, "{operator}");
    }
    // Without the product, a sum saves nothing; a maximum saves its input and its output, which the convolution also
    // saves.
    let alone = |operator: &str| {
        let graph = start().node(operator, &["h"], &["y"], &[("axes", A::Ints(&[2, 3]))]);
        saved(&end(graph, 4), BATCH * 4 * 4)
    };
    assert_eq!((alone("ReduceSum"), alone("ReduceMax"), alone("GlobalMaxPool")), (0, MAP, MAP));
}

#[test]
fn group_normalisation_saves_its_input_and_two_statistics_a_group() {
    let weights = || start().weight("g", &[4]).weight("b", &[4]);
    let groups = [("num_groups", A::I(2))];
    let group = end(weights().node("GroupNormalization", &["h", "g", "b"], &["y"], &groups), 4);
    // Two groups a sample, a mean and an inverse deviation each.
    assert_eq!(saved(&group, MAP), MAP + 2 * BATCH * 2 * 4);
    // As it is exported before operator set 18: an instance normalisation of channels that are groups.
    let exported = weights()
        .ints("to", &[0, 2, -1])
        .ints("back", &[0, 4, 6, 6])
        .ints("axes", &[1, 2])
        .node("Reshape", &["h", "to"], &["r"], &[])
        .values("ones", &[2], &[1.0, 1.0])
        .node("InstanceNormalization", &["r", "ones", "ones"], &["n"], &[])
        .node("Reshape", &["n", "back"], &["m"], &[])
        .node("Unsqueeze", &["g", "axes"], &["gain"], &[])
        .node("Unsqueeze", &["b", "axes"], &["shift"], &[])
        .node("Mul", &["m", "gain"], &["s"], &[])
        .node("Add", &["s", "shift"], &["y"], &[]);
    assert_eq!(counts(&end(exported, 4)), counts(&group));
    let instance = end(weights().node("InstanceNormalization", &["h", "g", "b"], &["y"], &[]), 4);
    assert_eq!(saved(&instance, MAP), MAP + 2 * BATCH * 4 * 4);
}

#[test]
fn a_transposed_convolution_multiplies_each_position_with_a_window() {
    let window = [("kernel_shape", A::Ints(&[2, 2])), ("strides", A::Ints(&[2, 2]))];
    let graph = start().weight("t", &[4, 3, 2, 2]).weight("u", &[3]);
    let graph = end(graph.node("ConvTranspose", &["h", "t", "u"], &["y"], &window), 3);
    // Three channels of 12 × 12; the input is saved.
    let y = BATCH * 3 * 12 * 12 * 4;
    assert_eq!(saved(&graph, y), MAP);
    let product =
        |inputs: u64, positions: u64, outputs: u64, taps: u64| 2 * BATCH * inputs * positions * outputs * taps;
    let forward = product(4, 36, 4, 1) + product(4, 36, 3, 4) + product(3, 144, 5, 1);
    assert_eq!(counts(&graph).forward_flops, forward);
    // Each has two gradients, but for the first, whose samples need none.
    assert_eq!(counts(&graph).training_flops, 3 * forward - product(4, 36, 4, 1));
    assert_eq!(counts(&graph).parameters, 16 + (4 * 3 * 4 + 3) + 15);
}

#[test]
fn one_spatial_axis_is_a_picture_of_height_one() {
    let graph = G::default()
        .input("input", FLOAT, &batched(&[4, 36]))
        .weight("k", &[4, 4, 3])
        .weight("last", &[5, 4, 1])
        .node("Conv", &["input", "k"], &["h"], &[("kernel_shape", A::Ints(&[3])), ("pads", A::Ints(&[1, 1]))])
        .node("MaxPool", &["h"], &["y"], &[("kernel_shape", A::Ints(&[2])), ("strides", A::Ints(&[2]))])
        .node("Conv", &["y", "last"], &["map"], &[("kernel_shape", A::Ints(&[1]))])
        .node("GlobalAveragePool", &["map"], &["mean"], &[])
        .node("Flatten", &["mean"], &["scores"], &[])
        .output("scores");
    // 36 positions of 4 × 4 × 3 products, then 18 of 4 × 5.
    assert_eq!(counts(&graph).forward_flops, 2 * BATCH * (36 * 4 * 4 * 3 + 18 * 4 * 5));
    // Pooling saves its input and an index of 64 bits for each output.
    let y = BATCH * 4 * 18 * 4;
    assert_eq!(saved(&graph, y), BATCH * 4 * 36 * 4 + 2 * y);
}

#[test]
fn dilated_and_unevenly_padded_windows_fit() {
    let dilated =
        [("kernel_shape", A::Ints(&[3, 3])), ("dilations", A::Ints(&[2, 2])), ("pads", A::Ints(&[2, 2, 2, 2]))];
    let graph = end(start().weight("d", &[4, 4, 3, 3]).node("Conv", &["h", "d"], &["y"], &dilated), 4);
    assert_eq!(saved(&graph, MAP), MAP);
    // One zero below and to the right: 7 × 7 positions in storage of their own, seen by windows of 2 × 2.
    let uneven = [("kernel_shape", A::Ints(&[2, 2])), ("pads", A::Ints(&[0, 0, 1, 1]))];
    let graph = end(start().weight("d", &[4, 4, 2, 2]).node("Conv", &["h", "d"], &["y"], &uneven), 4);
    assert_eq!(saved(&graph, MAP), BATCH * 4 * 7 * 7 * 4);
}

#[test]
fn other_sizes_and_places_save_nothing_but_indices() {
    let resized = start().ints("sizes", &[8, 4, 12, 12]);
    let resized = end(resized.node("Resize", &["h", "", "", "sizes"], &["y"], &[("mode", A::Text("linear"))]), 4);
    assert_eq!(saved(&resized, 4 * MAP), 0);
    let blocks = end(start().node("DepthToSpace", &["h"], &["y"], &[("blocksize", A::I(2))]), 1);
    assert_eq!(saved(&blocks, MAP), 0);
    let padded = start().ints("pads", &[0, 0, 1, 1, 0, 0, 1, 1]);
    let padded = end(padded.node("Pad", &["h", "pads"], &["y"], &[]), 4);
    assert_eq!(saved(&padded, BATCH * 4 * 8 * 8 * 4), 0);
    // Three of the six rows: three indices of 64 bits.
    let rows = start().ints("rows", &[5, 0, 3]);
    let rows = end(rows.node("Gather", &["h", "rows"], &["y"], &[("axis", A::I(2))]), 4);
    assert_eq!(saved(&rows, MAP / 2), 3 * 8);
}

#[test]
fn a_quotient_saves_both_of_its_sides() {
    let graph = start().node("Exp", &["h"], &["e"], &[]).node("Div", &["h", "e"], &["y"], &[]);
    // The exponential saves its output, which is the divisor; the dividend is the map.
    assert_eq!(saved(&end(graph, 4), MAP), 2 * MAP);
}

#[test]
fn stochastic_depth_saves_a_factor_a_sample() {
    let graph = start()
        .float("keep", 0.9)
        .ints("axes", &[1])
        .node("ReduceMean", &["h"], &["m"], &[("axes", A::Ints(&[1, 2, 3]))])
        .node("RandomUniformLike", &["m"], &["random"], &[])
        .node("Less", &["random", "keep"], &["kept"], &[])
        .node("Cast", &["kept"], &["as_float"], &[("to", A::I(1))])
        .node("Div", &["as_float", "keep"], &["factor"], &[])
        .node("Mul", &["h", "factor"], &["y"], &[]);
    let network = import(&end(graph, 4));
    let factors: u64 = network
        .nodes
        .iter()
        .filter(|node| node.op.name() == "mul")
        .flat_map(|node| &node.saved)
        .map(|&saved| network.storage(saved).bytes.at(BATCH))
        .sum();
    assert_eq!(factors, BATCH * 4);
}

#[test]
fn a_contraction_is_a_batched_product() {
    let graph = G::default()
        .input("input", FLOAT, &batched(&[6, 4]))
        .weight("w", &[4, 4])
        .node("MatMul", &["input", "w"], &["h"], &[])
        .node("Einsum", &["h", "h"], &["square"], &[("equation", A::Text("bic,bjc->bij"))])
        .weight("c", &[6, 5])
        .node("MatMul", &["square", "c"], &["rows"], &[])
        .node("ReduceMean", &["rows"], &["scores"], &[("axes", A::Ints(&[1])), ("keepdims", A::I(0))])
        .output("scores");
    let network = import(&graph);
    assert!(names(&network).contains(&"matmul"), "{:?}", names(&network));
    // 6 × 4 × 4, then 6 × 6 × 4, then 6 × 6 × 5, two operations each.
    assert_eq!(count(&network, BATCH).forward_flops, 2 * BATCH * (6 * 4 * 4 + 6 * 6 * 4 + 6 * 6 * 5));
    let three = graph.clone().node("Einsum", &["h", "h"], &["other"], &[("equation", A::Text("bic,bjc,k->bij"))]);
    let error =
        onnx::import_bytes("three", &three.output("other").file(), &Reading::default()).unwrap_err().to_string();
    assert!(error.contains("two operands"), "{error}");
}

/// Five steps of seven features into eleven units.
fn sequence(operator: &str, gates: i64, directions: i64) -> G {
    let direction = if directions == 2 { "bidirectional" } else { "forward" };
    let wide = 11 * directions;
    G::default()
        .input("input", FLOAT, &batched(&[5, 7]))
        .node("Transpose", &["input"], &["x"], &[("perm", A::Ints(&[1, 0, 2]))])
        .weight("w", &[directions, gates * 11, 7])
        .weight("r", &[directions, gates * 11, 11])
        .weight("b", &[directions, 2 * gates * 11])
        .node(
            operator,
            &["x", "w", "r", "b"],
            &["all"],
            &[("hidden_size", A::I(11)), ("direction", A::Text(direction))],
        )
        .ints("to", &[5, -1, wide])
        .node("Transpose", &["all"], &["turned"], &[("perm", A::Ints(&[0, 2, 1, 3]))])
        .node("Reshape", &["turned", "to"], &["flat"], &[])
        .node("ReduceMean", &["flat"], &["mean"], &[("axes", A::Ints(&[0])), ("keepdims", A::I(0))])
        .weight("c", &[wide, 5])
        .node("MatMul", &["mean", "c"], &["scores"], &[])
        .output("scores")
}

#[test]
fn recurrent_layers_save_what_pytorch_saves() {
    // Measured with saved-tensor hooks: PyTorch 2.15 on a CPU without oneDNN, five steps, three samples,
    // seven features, eleven units, one direction and two. The layer's input, 420 bytes, is among them: here
    // a copy of the samples.
    let measured = [("LSTM", 4, [5040, 9660]), ("GRU", 3, [5040, 9660]), ("RNN", 1, [1212, 2004])];
    for (operator, gates, bytes) in measured {
        for (directions, bytes) in [1, 2].into_iter().zip(bytes) {
            let network = import(&sequence(operator, gates, directions));
            let counts = count(&network, 3);
            // The classifier saves the mean of the states; the loss 3 × 5 log-probabilities and a weight.
            let rest = 3 * 11 * directions as u64 * 4 + 3 * 5 * 4 + 4;
            assert_eq!(counts.saved_act_bytes - rest, bytes, "{operator} {directions}");
            let layer = (directions * gates * 11 * (7 + 11 + 2)) as u64;
            assert_eq!(counts.parameters, layer + 11 * directions as u64 * 5, "{operator} {directions}");
            let products = (directions * gates * 11 * (7 + 11)) as u64 * 5 * 3;
            assert_eq!(counts.forward_flops, 2 * (products + 3 * 11 * directions as u64 * 5), "{operator}");
        }
    }
}

#[test]
fn a_map_of_scores_has_a_label_at_every_position() {
    let graph = start().weight("o", &[3, 4, 1, 1]).node("Conv", &["h", "o"], &["scores"], &[]).output("scores");
    let network = import(&graph);
    let target = network.storages.iter().find(|storage| storage.name == "target").unwrap();
    // 36 labels of 64 bits a sample.
    assert_eq!(target.bytes.at(BATCH), BATCH * 36 * 8);
    // The second convolution saves its input, the loss 36 × 3 log-probabilities a sample and a weight.
    assert_eq!(count(&network, BATCH).saved_act_bytes, MAP + BATCH * 36 * 3 * 4 + 4);
}

#[test]
fn a_standardised_weight_is_the_weight_of_its_convolution() {
    // As timm writes it: the weight is normalised as one sample whose channels are its outputs, and scaled by a gain.
    let graph = start()
        .weight("w", &[4, 4, 3, 3])
        .weight("gain", &[4, 1, 1, 1])
        .weight("zeros", &[4])
        .float("share", 0.5)
        .ints("flat", &[1, 4, -1])
        .ints("row", &[-1])
        .ints("whole", &[4, 4, 3, 3])
        .node("Reshape", &["w", "flat"], &["sample"], &[])
        .node("Mul", &["gain", "share"], &["scaled"], &[])
        .node("Reshape", &["scaled", "row"], &["scale"], &[])
        .node("BatchNormalization", &["sample", "scale", "zeros", "zeros", "zeros"], &["normal"], &[])
        .node("Reshape", &["normal", "whole"], &["standard"], &[])
        .node("Conv", &["h", "standard"], &["y"], &[("pads", A::Ints(&[1, 1, 1, 1]))]);
    let counts = counts(&end(graph, 4));
    assert_eq!(counts.parameters, 16 + 4 * 4 * 9 + 4 + 20);
    assert_eq!(counts.forward_flops, 2 * BATCH * 36 * (4 * 4 + 4 * 4 * 9 + 4 * 5));
}

#[test]
fn padding_may_be_computed_of_sizes() {
    // max(n − 5, 0) zeros behind each of the two axes of n = 6 positions, as padding to the same size is traced.
    let graph = start()
        .ints("two", &[2])
        .ints("three", &[3])
        .float("least", 0.0)
        .node("Shape", &["h"], &["sizes"], &[])
        .node("Slice", &["sizes", "two", "three"], &["size"], &[])
        .node("Cast", &["size"], &["real"], &[("to", A::I(1))])
        .node("Constant", &[], &["less"], &[("value_float", A::F(5.0))])
        .node("Sub", &["real", "less"], &["more"], &[])
        .node("Clip", &["more", "least"], &["clipped"], &[])
        .node("Cast", &["clipped"], &["pad"], &[("to", A::I(7))])
        .ints("fixed", &[0, 0, 0, 0, 0, 0])
        .node("Concat", &["fixed", "pad", "pad"], &["pads"], &[("axis", A::I(0))])
        .node("Pad", &["h", "pads"], &["y"], &[]);
    assert_eq!(saved(&end(graph, 4), BATCH * 4 * 7 * 7 * 4), 0);
}
