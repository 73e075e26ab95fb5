//! Small graphs: refolding, in-place functions, ties, batches.

use haversack_workloads::counts::{Counts, count};
use haversack_workloads::network::Network;
use haversack_workloads::onnx::{self, Reading};
use haversack_workloads::operator::{Op, Unary};

use super::wire::{A, D, FLOAT, G, INT64, batched};

fn import(graph: &G) -> Network {
    onnx::import_bytes("small", &graph.file(), &Reading::default()).unwrap()
}

fn counts(graph: &G) -> Counts {
    count(&import(graph), 8)
}

fn names(network: &Network) -> Vec<&'static str> {
    network.nodes.iter().map(|node| node.op.name()).collect()
}

/// `input` of 16 features through a product with a bias into `h`.
fn hidden() -> G {
    G::default()
        .input("input", FLOAT, &batched(&[16]))
        .weight("w", &[16, 16])
        .weight("b", &[16])
        .node("MatMul", &["input", "w"], &["product"], &[])
        .node("Add", &["product", "b"], &["h"], &[])
}

/// `y` through a classifier of 10 classes.
fn classified(graph: G) -> G {
    graph.weight("c", &[10, 16]).node("Gemm", &["y", "c"], &["scores"], &[("transB", A::I(1))]).output("scores")
}

#[test]
fn a_product_and_a_sum_are_a_linear_layer_with_a_bias() {
    let network = import(&classified(hidden().node("Tanh", &["h"], &["y"], &[])));
    assert_eq!(names(&network), ["linear", "tanh", "linear", "cross_entropy"]);
    assert_eq!(network.nodes[0].parameters.len(), 2);
    // 16·16 + 16 weights, then 16·10 without a bias.
    assert_eq!(count(&network, 8).parameters, 272 + 160);
    // A sum whose operands have another reader remains a sum.
    let shared = hidden().node("Mul", &["h", "product"], &["y"], &[]);
    assert_eq!(names(&import(&classified(shared)))[..3], ["linear", "index_table", "add"]);
}

#[test]
fn the_error_function_gelu_is_put_together_in_every_order() {
    let start = || {
        let graph = hidden().float("root", 2.0_f32.sqrt()).float("one", 1.0).float("half", 0.5);
        graph.node("Div", &["h", "root"], &["d"], &[]).node("Erf", &["d"], &["e"], &[]).node(
            "Add",
            &["e", "one"],
            &["a"],
            &[],
        )
    };
    let endings = [
        start().node("Mul", &["h", "a"], &["m"], &[]).node("Mul", &["m", "half"], &["y"], &[]),
        start().node("Mul", &["half", "a"], &["m"], &[]).node("Mul", &["m", "h"], &["y"], &[]),
        start().node("Mul", &["h", "half"], &["m"], &[]).node("Mul", &["m", "a"], &["y"], &[]),
    ];
    for graph in endings {
        let network = import(&classified(graph));
        assert_eq!(names(&network), ["linear", "gelu", "linear", "cross_entropy"]);
        // GELU saves its input, the linear layers theirs: the hidden and the activated map of 8 × 16 floats.
        let loss = 8 * 10 * 4 + 4;
        assert_eq!(count(&network, 8).saved_act_bytes, 2 * 8 * 16 * 4 + loss);
    }
}

#[test]
fn a_sigmoid_times_its_input_is_a_silu() {
    let sigmoid = || hidden().node("Sigmoid", &["h"], &["s"], &[]);
    for graph in [
        sigmoid().node("Mul", &["h", "s"], &["y"], &[]),
        sigmoid().node("Mul", &["s", "h"], &["y"], &[]),
        hidden().node("Swish", &["h"], &["y"], &[]),
    ] {
        assert_eq!(names(&import(&classified(graph))), ["linear", "silu", "linear", "cross_entropy"]);
    }
    let alone = sigmoid().node("Tanh", &["s"], &["y"], &[]);
    assert_eq!(names(&import(&classified(alone)))[..3], ["linear", "sigmoid", "tanh"]);
    let steeper = hidden().node("Swish", &["h"], &["y"], &[("alpha", A::F(2.0))]);
    let error =
        onnx::import_bytes("steeper", &classified(steeper).file(), &Reading::default()).unwrap_err().to_string();
    assert!(error.contains("n2") && error.contains("alpha of 1"), "{error}");
}

#[test]
fn a_decomposed_layer_norm_is_put_together() {
    let decomposed = hidden()
        .float("two", 2.0)
        .float("epsilon", 1e-3)
        .weight("g", &[16])
        .weight("s", &[16])
        .node("ReduceMean", &["h"], &["mean"], &[("axes", A::Ints(&[-1]))])
        .node("Sub", &["h", "mean"], &["centred"], &[])
        .node("Pow", &["centred", "two"], &["square"], &[])
        .node("ReduceMean", &["square"], &["variance"], &[("axes", A::Ints(&[-1]))])
        .node("Add", &["variance", "epsilon"], &["safe"], &[])
        .node("Sqrt", &["safe"], &["deviation"], &[])
        .node("Div", &["centred", "deviation"], &["normal"], &[])
        .node("Mul", &["normal", "g"], &["scaled"], &[])
        .node("Add", &["scaled", "s"], &["y"], &[]);
    let whole = hidden().weight("g", &[16]).weight("s", &[16]);
    let whole = whole.node("LayerNormalization", &["h", "g", "s"], &["y"], &[]);
    let epsilon = |graph: &G| {
        import(graph).nodes.iter().find_map(|node| match node.op {
            Op::LayerNorm { epsilon } => Some(epsilon),
            _ => None,
        })
    };
    assert_eq!(epsilon(&classified(decomposed.clone())), Some(1e-3));
    assert_eq!(counts(&classified(decomposed)), counts(&classified(whole)));
}

#[test]
fn relu_runs_in_place_only_where_nobody_else_reads_its_input() {
    let in_place = |network: &Network| {
        network.nodes.iter().find_map(|node| match node.op {
            Op::Unary { function: Unary::Relu | Unary::Relu6, in_place } => Some(in_place),
            _ => None,
        })
    };
    let alone = import(&classified(hidden().node("Relu", &["h"], &["y"], &[])));
    assert_eq!(in_place(&alone), Some(true));
    let read_twice = hidden().node("Relu", &["h"], &["r"], &[]).node("Add", &["r", "h"], &["y"], &[]);
    assert_eq!(in_place(&import(&classified(read_twice))), Some(false));
    let under_another_name = hidden()
        .node("Identity", &["h"], &["alias"], &[])
        .node("Relu", &["alias"], &["r"], &[])
        .node("Add", &["r", "h"], &["y"], &[]);
    assert_eq!(in_place(&import(&classified(under_another_name))), Some(false));
    // The hyperbolic tangent saves its output, which must stay.
    let saved = hidden().node("Tanh", &["h"], &["t"], &[]).node("Relu", &["t"], &["y"], &[]);
    assert_eq!(in_place(&import(&classified(saved))), Some(false));
    // In place, ReLU6 saves a clone of its input: one map of 8 × 16 floats more than ReLU.
    let relu6 = hidden().float("zero", 0.0).float("six", 6.0).node("Clip", &["h", "zero", "six"], &["y"], &[]);
    let relu = hidden().node("Relu", &["h"], &["y"], &[]);
    let difference = counts(&classified(relu6)).saved_act_bytes - counts(&classified(relu)).saved_act_bytes;
    assert_eq!(difference, 8 * 16 * 4);
}

#[test]
fn dropout_drops_unless_its_ratio_is_zero() {
    let with = |ratio: f32| classified(hidden().float("ratio", ratio).node("Dropout", &["h", "ratio"], &["y"], &[]));
    assert_eq!(names(&import(&with(0.1)))[1], "dropout");
    assert_eq!(names(&import(&with(0.0)))[1], "linear");
}

#[test]
fn a_weight_that_is_read_twice_counts_once() {
    // Token ids of 6 positions, a table of 50 × 16, and the table again as the head.
    let tied = G::default()
        .input("ids", INT64, &batched(&[6]))
        .weight("table", &[50, 16])
        .node("Gather", &["table", "ids"], &["x"], &[])
        .node("Tanh", &["x"], &["t"], &[])
        .node("Transpose", &["table"], &["turned"], &[("perm", A::Ints(&[1, 0]))])
        .node("MatMul", &["t", "turned"], &["scores"], &[])
        .output("scores");
    let counted = counts(&tied);
    assert_eq!(counted.parameters, 50 * 16);
    // 8 × 6 rows of 16 by 50 multiply-adds, and a label for each row.
    assert_eq!(counted.forward_flops, 2 * 8 * 6 * 16 * 50);
    // The tangent's output (its own saved tensor and the head's), the log-probabilities and the total weight.
    assert_eq!(counted.saved_act_bytes, 8 * 6 * 16 * 4 + 8 * 6 * 50 * 4 + 4);
    assert_eq!(counted.saved_bytes - counted.saved_act_bytes, 2 * 8 * 6 * 8);
}

#[test]
fn positions_that_are_computed_from_the_tokens_are_saved() {
    // RoBERTa counts positions from the tokens that are not padding: Not(Equal) → Cast → CumSum → Mul → Add.
    let graph = G::default()
        .input("ids", INT64, &batched(&[6]))
        .weight("words", &[50, 16])
        .weight("places", &[9, 16])
        .ints("padding", &[1])
        .ints("axis", &[1])
        .node("Gather", &["words", "ids"], &["x"], &[])
        .node("Equal", &["ids", "padding"], &["is"], &[])
        .node("Not", &["is"], &["not"], &[])
        .node("Cast", &["not"], &["mask"], &[("to", A::I(6))])
        .node("CumSum", &["mask", "axis"], &["sum"], &[])
        .node("Mul", &["sum", "mask"], &["masked"], &[])
        .node("Add", &["masked", "padding"], &["positions"], &[])
        .node("Gather", &["places", "positions"], &["p"], &[])
        .node("Add", &["x", "p"], &["s"], &[])
        .node("Gather", &["s", "first"], &["y"], &[("axis", A::I(1))])
        .node("Constant", &[], &["first"], &[("value_int", A::I(0))]);
    let counted = counts(&classified(graph));
    // The positions (8 × 6 integers) are new; the head saves the storage that its row is cut from; then the loss.
    assert_eq!(counted.saved_act_bytes, 8 * 6 * 8 + 8 * 6 * 16 * 4 + 8 * 10 * 4 + 4);
    assert_eq!(counted.saved_bytes - counted.saved_act_bytes, 8 * 6 * 8 + 8 * 8);
}

/// An image classifier whose reshape names the batch as `batch`.
fn reshaped(batch: D, target: &[i64]) -> G {
    G::default()
        .input("input", FLOAT, &[batch, D::N(3), D::N(8), D::N(8)])
        .weight("k", &[4, 3, 3, 3])
        .weight("c", &[10, 144])
        .ints("target", target)
        .node("Conv", &["input", "k"], &["x"], &[])
        .node("Reshape", &["x", "target"], &["flat"], &[])
        .node("Gemm", &["flat", "c"], &["scores"], &[("transB", A::I(1))])
        .output("scores")
}

#[test]
fn the_batch_is_symbolic_whatever_it_was_when_exported() {
    // 8 − 3 + 1 = 6 positions each way, of 4 channels: 144 values a sample.
    let expected = counts(&reshaped(D::P("batch"), &[-1, 144]));
    assert_eq!(expected.forward_flops, 8 * (2 * 27 * 144 + 2 * 144 * 10));
    for (batch, target) in [
        (D::P("N"), vec![0, -1]),
        (D::N(1), vec![1, 144]),
        (D::N(1), vec![1, -1]),
        (D::N(5), vec![5, 144]),
        (D::N(5), vec![-1, 144]),
    ] {
        assert_eq!(counts(&reshaped(batch, &target)), expected);
    }
    let read = onnx::import_bytes("five", &reshaped(D::N(5), &[5, 144]).file(), &Reading::default());
    assert!(read.is_ok());
    let file = std::env::temp_dir().join(format!("haversack-{}.onnx", std::process::id()));
    std::fs::write(&file, reshaped(D::N(5), &[5, 144]).file()).unwrap();
    let notes = onnx::read(&file, &Reading::default()).unwrap().notes().to_vec();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(notes[0], "the first dimension of input 'input', 5, is taken as the batch");
}

#[test]
fn a_learned_token_stands_before_each_sample() {
    // A vision transformer's class token: expanded to the batch by the shape of the samples.
    let graph = G::default()
        .input("input", FLOAT, &batched(&[4, 16]))
        .weight("token", &[1, 1, 16])
        .ints("zero", &[0])
        .ints("rest", &[1, 16])
        .node("Shape", &["input"], &["shape"], &[])
        .node("Gather", &["shape", "zero"], &["size"], &[])
        .node("Concat", &["size", "rest"], &["target"], &[("axis", A::I(0))])
        .node("Expand", &["token", "target"], &["tokens"], &[])
        .node("Concat", &["tokens", "input"], &["all"], &[("axis", A::I(1))])
        .node("Constant", &[], &["first"], &[("value_int", A::I(0))])
        .node("Gather", &["all", "first"], &["y"], &[("axis", A::I(1))]);
    let counted = counts(&classified(graph));
    assert_eq!(counted.parameters, 16 + 160);
    // The head saves the storage of all five positions.
    assert_eq!(counted.saved_act_bytes, 8 * 5 * 16 * 4 + 8 * 10 * 4 + 4);
}

#[test]
fn channels_are_split_shuffled_and_joined() {
    // ShuffleNet: half of the channels pass by, then two groups are interleaved.
    let graph = G::default()
        .input("input", FLOAT, &batched(&[3, 8, 8]))
        .weight("k", &[8, 3, 1, 1])
        .weight("c", &[10, 8])
        .ints("grouped", &[0, 2, 4, 8, 8])
        .ints("joined", &[0, 8, 8, 8])
        .node("Conv", &["input", "k"], &["x"], &[])
        .node("Split", &["x"], &["left", "right"], &[("axis", A::I(1))])
        .node("Concat", &["right", "left"], &["j"], &[("axis", A::I(1))])
        .node("Reshape", &["j", "grouped"], &["g"], &[])
        .node("Transpose", &["g"], &["t"], &[("perm", A::Ints(&[0, 2, 1, 3, 4]))])
        .node("Reshape", &["t", "joined"], &["s"], &[])
        .node("ReduceMean", &["s"], &["m"], &[("axes", A::Ints(&[2, 3])), ("keepdims", A::I(0))])
        .node("Gemm", &["m", "c"], &["scores"], &[("transB", A::I(1))])
        .output("scores");
    let network = import(&graph);
    let expected = [
        "convolution",
        "slice",
        "slice",
        "concat",
        "view",
        "view",
        "copy",
        "view",
        "global_average_pool",
        "linear",
        "cross_entropy",
    ];
    assert_eq!(names(&network), expected);
}

#[test]
fn scores_may_stay_logarithms_and_other_outputs_are_left_out() {
    let graph = hidden().node("Tanh", &["h"], &["y"], &[]).output("h");
    let plain = classified(graph.clone());
    let logarithms = graph
        .weight("c", &[10, 16])
        .node("Gemm", &["y", "c"], &["raw"], &[("transB", A::I(1))])
        .node("LogSoftmax", &["raw"], &["scores"], &[("axis", A::I(1))])
        .output("scores");
    assert_eq!(counts(&plain), counts(&logarithms));
}

#[test]
fn the_tanh_gelu_of_gpt2_keeps_four_maps() {
    let graph = hidden()
        .float("three", 3.0)
        .float("a", 0.044_715)
        .float("b", 0.797_885)
        .float("one", 1.0)
        .float("half", 0.5)
        .node("Mul", &["h", "half"], &["halved"], &[])
        .node("Pow", &["h", "three"], &["cube"], &[])
        .node("Mul", &["cube", "a"], &["small"], &[])
        .node("Add", &["h", "small"], &["sum"], &[])
        .node("Mul", &["sum", "b"], &["scaled"], &[])
        .node("Tanh", &["scaled"], &["t"], &[])
        .node("Add", &["t", "one"], &["raised"], &[])
        .node("Mul", &["halved", "raised"], &["y"], &[]);
    // The power's input, the tangent's output, both factors, and the head's input: five maps of 8 × 16; then the loss.
    assert_eq!(counts(&classified(graph)).saved_act_bytes, 5 * 8 * 16 * 4 + 8 * 10 * 4 + 4);
}

#[test]
fn causal_attention_saves_what_eager_pytorch_saves() {
    // GPT-2: one product for q, k and v, split; 2 heads of 8 over 6 positions; a mask cut from a wide
    // buffer of booleans.
    let graph = G::default()
        .input("input", FLOAT, &batched(&[6, 16]))
        .weight("w", &[16, 48])
        .weight("wb", &[48])
        .weight("c", &[16, 10])
        .ints("heads", &[0, 0, 2, 8])
        .ints("joined", &[0, 0, 16])
        .ints("wide", &[1, 1, 32, 32])
        .ints("zero", &[0])
        .ints("six", &[6])
        .ints("rows", &[2])
        .ints("columns", &[3])
        .float("root", 8.0_f32.sqrt())
        .float("least", f32::MIN)
        .node("MatMul", &["input", "w"], &["p"], &[])
        .node("Add", &["p", "wb"], &["qkv"], &[])
        .node("Split", &["qkv"], &["q0", "k0", "v0"], &[("axis", A::I(2))])
        .node("Reshape", &["q0", "heads"], &["q1"], &[])
        .node("Reshape", &["k0", "heads"], &["k1"], &[])
        .node("Reshape", &["v0", "heads"], &["v1"], &[])
        .node("Transpose", &["q1"], &["q"], &[("perm", A::Ints(&[0, 2, 1, 3]))])
        .node("Transpose", &["k1"], &["k"], &[("perm", A::Ints(&[0, 2, 3, 1]))])
        .node("Transpose", &["v1"], &["v"], &[("perm", A::Ints(&[0, 2, 1, 3]))])
        .node("MatMul", &["q", "k"], &["raw"], &[])
        .node("Div", &["raw", "root"], &["scores"], &[])
        .node("ConstantOfShape", &["wide"], &["ones"], &[])
        .node("Cast", &["ones"], &["causal"], &[("to", A::I(9))])
        .node("Slice", &["causal", "zero", "six", "rows"], &["tall"], &[])
        .node("Slice", &["tall", "zero", "six", "columns"], &["mask"], &[])
        .node("Where", &["mask", "scores", "least"], &["masked"], &[])
        .node("Softmax", &["masked"], &["probabilities"], &[("axis", A::I(-1))])
        .node("MatMul", &["probabilities", "v"], &["context"], &[])
        .node("Transpose", &["context"], &["turned"], &[("perm", A::Ints(&[0, 2, 1, 3]))])
        .node("Reshape", &["turned", "joined"], &["y"], &[])
        .node("MatMul", &["y", "c"], &["out"], &[])
        .output("out");
    let counted = counts(&graph);
    let map = 8 * 6 * 16 * 4;
    // Copies of q, k and v, the probabilities (one storage with the product's operand), the context in order, and the
    // log-probabilities of 48 rows with the total weight.
    assert_eq!(counted.saved_act_bytes, 3 * map + 8 * 2 * 6 * 6 * 4 + map + 48 * 10 * 4 + 4);
    // Projections of 16 → 48 and 16 → 10 on 48 rows; two products of 6 × 8 × 6 for each of 16 heads.
    assert_eq!(counted.forward_flops, 2 * 48 * 16 * (48 + 10) + 2 * 2 * 16 * 6 * 8 * 6);
}
