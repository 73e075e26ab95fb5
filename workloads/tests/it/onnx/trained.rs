//! The trained tensors of a file, the outputs that the loss covers, and files with a fixed batch.

use haversack_workloads::counts::{Counts, count};
use haversack_workloads::network::Network;
use haversack_workloads::onnx::{self, Reading};

use super::wire::{A, D, FLOAT, G, INT64, batched};

fn read(graph: &G, reading: &Reading) -> Network {
    onnx::import_bytes("small", &graph.file(), reading).unwrap()
}

fn import(graph: &G) -> Network {
    read(graph, &Reading::default())
}

fn counts(graph: &G, batch: u64) -> Counts {
    count(&import(graph), batch)
}

/// Numbers that no table has.
fn drawn(count: u32) -> Vec<f32> {
    (0..count).map(|at| (at * 7919 % 101) as f32 / 50.0 - 1.0).collect()
}

/// `x` of 6 rows of 8 through `w` into `h`, then what `make` adds makes `y`, then 5 classes for each row.
fn rows(make: impl Fn(G) -> G) -> G {
    let start = G::default().input("x", FLOAT, &batched(&[6, 8])).values("w", &[8, 8], &drawn(64));
    make(start.node("MatMul", &["x", "w"], &["h"], &[]))
        .values("o", &[8, 5], &drawn(40))
        .node("MatMul", &["y", "o"], &["scores"], &[])
        .output("scores")
}

/// Weights of [`rows`].
const WEIGHTS: u64 = 64 + 40;

#[test]
fn numbers_and_tables_are_not_trained() {
    let wave: Vec<f32> = (0..48).map(|at| ((at / 8) as f32 * 0.5_f32.powi(at % 8)).cos()).collect();
    let mask: Vec<f32> = (0..48).map(|at| if at % 8 > at / 8 { f32::NEG_INFINITY } else { 0.0 }).collect();
    let trained = |dims: &[i64], values: &[f32]| {
        counts(&rows(|graph| graph.values("t", dims, values).node("Mul", &["h", "t"], &["y"], &[])), 2)
            .trainable_parameters
            - WEIGHTS
    };
    assert_eq!(trained(&[6, 8], &wave), 0);
    assert_eq!(trained(&[6, 8], &mask), 0);
    assert_eq!(trained(&[1], &[0.125]), 0);
    assert_eq!(trained(&[6, 8], &drawn(48)), 48);
    // A scale for each feature, which begins with ones, is a weight.
    assert_eq!(trained(&[8], &[1.0; 8]), 8);
}

#[test]
fn what_samples_are_normalised_with_is_not_trained() {
    let start = || G::default().input("x", FLOAT, &batched(&[3, 8, 8])).values("mean", &[3, 1, 1], &[0.4, 0.5, 0.6]);
    let end = |graph: G| {
        graph
            .weight("k", &[4, 3, 8, 8])
            .node("Conv", &["y", "k"], &["c"], &[])
            .node("Flatten", &["c"], &["scores"], &[])
            .output("scores")
    };
    let before = end(start().node("Sub", &["x", "mean"], &["y"], &[]));
    assert_eq!(counts(&before, 2).parameters, 4 * 3 * 64);
    // The same behind a weight is a bias.
    let behind = start().weight("j", &[3, 3, 1, 1]).node("Conv", &["x", "j"], &["h"], &[]);
    assert_eq!(counts(&end(behind.node("Sub", &["h", "mean"], &["y"], &[])), 2).parameters, 4 * 3 * 64 + 9 + 3);
}

#[test]
fn a_signature_says_what_is_trained_and_what_is_missing() {
    let lines = "# inputs\np_w: PARAMETER target='w'\np_o: PARAMETER target='o'\nb_t: BUFFER target='t'\n\
                 p_n: PARAMETER target='n.weight'\nb_n: BUFFER target='n.running_mean'\nx: USER_INPUT\n";
    let graph =
        rows(|graph| graph.values("t", &[6, 8], &drawn(48)).node("Mul", &["h", "t"], &["y"], &[]).signature(lines));
    let network = import(&graph);
    assert_eq!(count(&network, 2).parameters, WEIGHTS);
    assert_eq!(network.missing_parameters(), ["n.weight"]);
    assert!(network.notes().iter().any(|note| note.contains("exported for inference") && note.contains("n.weight")));
    let frozen = rows(|graph| {
        graph.node("Relu", &["h"], &["y"], &[]).signature(&lines.replace("PARAMETER target='w'", "FROZEN target='w'"))
    });
    let counted = counts(&frozen, 2);
    assert_eq!((counted.parameters, counted.trainable_parameters), (WEIGHTS, 40));
}

#[test]
fn parameters_that_an_exporter_merged_are_those_of_their_modules() {
    let names = ["a.weight", "a.bias", "b.weight", "b.bias", "c.weight", "c.bias", "table.weight"];
    let lines: String = names.iter().map(|name| format!("p: PARAMETER target='{name}'\n")).collect();
    let graph = G::default()
        .input("x", FLOAT, &batched(&[8]))
        .values("val_1", &[8, 8], &drawn(64))
        .values("val_2", &[8, 8], &drawn(64))
        .values("val_3", &[8, 8], &drawn(64))
        .values("b.bias", &[8], &[0.0; 8])
        .values("c.weight", &[8, 5], &drawn(40))
        .within("a")
        .node("MatMul", &["x", "val_1"], &["h1"], &[])
        .node("Add", &["h1", "b.bias"], &["h2"], &[])
        // The same layer once more.
        .node("MatMul", &["h2", "val_2"], &["h3"], &[])
        .within("b")
        .node("MatMul", &["h3", "val_3"], &["h4"], &[])
        .node("Add", &["h4", "b.bias"], &["h5"], &[])
        .within("c")
        .node("Gemm", &["h5", "c.weight"], &["scores"], &[])
        .output("scores")
        .signature(&lines);
    let network = import(&graph);
    assert_eq!(count(&network, 2).trainable_parameters, 2 * (64 + 8) + 40 + 5);
    assert_eq!(network.missing_parameters(), ["table.weight"]);
    // A matrix that two modules read is tied; a module that never runs has a third name for it.
    let tied = rows(|graph| {
        let lines = ["w", "o", "e.weight", "t.weight", "shared.weight", "n.weight"]
            .map(|name| format!("p: PARAMETER target='{name}'\n"));
        graph
            .values("t.weight", &[8, 8], &drawn(64))
            .within("e")
            .node("MatMul", &["h", "t.weight"], &["g"], &[])
            .node("MatMul", &["g", "t.weight"], &["y"], &[])
            .signature(&(lines.concat() + "b: BUFFER target='n.running_mean'\n"))
    });
    assert_eq!(import(&tied).missing_parameters(), ["n.weight"]);
    // A parameter that another module reads is unchanged, if its elements differ.
    let other = graph.values("b.bias", &[8], &drawn(8));
    assert_eq!(count(&import(&other), 2).trainable_parameters, 2 * 64 + 8 + 40 + 5);
}

#[test]
fn every_input_has_the_batch_first_whatever_it_is_called() {
    let graph = G::default()
        .input("x", FLOAT, &[D::P("s72"), D::N(8)])
        .input("mask", FLOAT, &[D::P("s43"), D::N(8)])
        .values("o", &[8, 5], &drawn(40))
        .node("Mul", &["x", "mask"], &["y"], &[])
        .node("MatMul", &["y", "o"], &["scores"], &[])
        .output("scores");
    assert_eq!(counts(&graph, 2).parameters, 40);
    // Without names it is the first that is free, also behind the layers of a state.
    let graph = G::default()
        .input("x", FLOAT, &[D::N(0), D::N(8)])
        .input("state", FLOAT, &[D::N(2), D::N(0), D::N(8)])
        .values("o", &[8, 5], &drawn(40))
        .node("ReduceMean", &["state"], &["s"], &[("axes", A::Ints(&[0])), ("keepdims", A::I(0))])
        .node("Mul", &["x", "s"], &["y"], &[])
        .node("MatMul", &["y", "o"], &["scores"], &[])
        .output("scores");
    assert_eq!(counts(&graph, 2).parameters, 40);
}

#[test]
fn the_branch_that_is_known_to_be_taken_stands_in_place_of_its_node() {
    let wide = G::default().values("v", &[8, 6], &drawn(48)).node("MatMul", &["h", "v"], &["of"], &[]).output("of");
    let narrow = G::default().values("u", &[8, 3], &drawn(24)).node("MatMul", &["h", "u"], &["of"], &[]).output("of");
    let graph = |of: &str| {
        G::default()
            .input("x", FLOAT, &batched(&[8]))
            .input("rate", INT64, &[])
            .values("w", &[8, 8], &drawn(64))
            .ints("eight", &[8])
            .ints("one", &[1])
            .node("MatMul", &["x", "w"], &["h"], &[])
            .node("Shape", &["h"], &["shape"], &[])
            .node("Gather", &["shape", "one"], &["size"], &[])
            .node("Equal", &["size", "eight"], &["is_eight"], &[])
            .node("Not", &["is_eight"], &["is_other"], &[])
            .node("Equal", &["rate", "eight"], &["is_known"], &[])
            .node("If", &[of], &["scores"], &[("then_branch", A::Body(&wide)), ("else_branch", A::Body(&narrow))])
            .output("scores")
    };
    let found = |of| count(&import(&graph(of)), 2).trainable_parameters;
    assert_eq!((found("is_eight"), found("is_other")), (64 + 48, 64 + 24));
    let network = import(&graph("is_known"));
    assert_eq!(count(&network, 2).trainable_parameters, 64 + 48);
    assert!(network.notes().iter().any(|note| note.contains("depends on the samples: it is taken as true")));
}

#[test]
fn patterns_choose_what_is_trained() {
    let graph = rows(|graph| graph.node("Relu", &["h"], &["y"], &[]));
    let trained = |trainable: &[&str], frozen: &[&str]| {
        let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let reading = Reading { trainable: list(trainable), frozen: list(frozen), ..Reading::default() };
        count(&read(&graph, &reading), 2)
    };
    let head = trained(&["o*"], &[]);
    assert_eq!((head.parameters, head.trainable_parameters), (WEIGHTS, 40));
    // The head's input, 2 × 6 rows of 8, then 12 labels, 12 × 5 log-probabilities and a weight.
    assert_eq!(head.saved_bytes, 384 + 96 + 240 + 4);
    assert_eq!(trained(&[], &["w"]), head);
    let reading = Reading { trainable: vec!["heads".to_owned()], ..Reading::default() };
    let error = onnx::import_bytes("small", &graph.file(), &reading).unwrap_err().to_string();
    assert!(error.contains("'heads' matches no weight"), "{error}");
}

#[test]
fn weights_may_be_constants() {
    let weights = drawn(128);
    let graph = G::default()
        .input("x", FLOAT, &[D::N(-1), D::N(8)])
        .node("Constant", &[], &["w"], &[("value", A::Floats(&[8, 16], &weights))])
        .node("Constant", &[], &["b"], &[("value", A::Floats(&[16], &weights[..16]))])
        .node("Constant", &[], &["s"], &[("value", A::Floats(&[16], &weights[..16]))])
        .ints("sizes", &[5, 16])
        .node("ConstantOfShape", &["sizes"], &["o"], &[])
        .node("MatMul", &["x", "w"], &["p"], &[])
        .node("Add", &["p", "b"], &["h"], &[])
        .node("Mul", &["h", "s"], &["y"], &[])
        .node("Gemm", &["y", "o"], &["scores"], &[("transB", A::I(1))])
        .output("scores");
    // The product's operand, and its bias; the factor stays a constant.
    assert_eq!(counts(&graph, 2).parameters, 128 + 16 + 80);
}

#[test]
fn a_loss_is_over_all_outputs_or_those_that_are_named() {
    let heads = |first: &str, second: &str| {
        rows(|graph| {
            graph.node("Relu", &["h"], &["y"], &[]).weight("p", &[8, 3]).node("MatMul", &["y", "p"], &["more"], &[])
        })
        .node("ArgMax", &["more"], &["place"], &[("axis", A::I(2))])
        .output(first)
        .output(second)
    };
    let both = import(&heads("more", "place"));
    assert_eq!(count(&both, 2).parameters, WEIGHTS + 24);
    assert!(
        both.notes().iter().any(|note| note.contains("left out of the loss: output 'place'")),
        "{:?}",
        both.notes()
    );
    // The samples and the map, 2 × 48 floats each; 2 labels, log-probabilities of 6 × (5 + 3), and a weight.
    assert_eq!(count(&both, 2).saved_bytes, 2 * 384 + 16 + 2 * 48 * 4 + 4);
    let reading = Reading { outputs: vec!["scores".to_owned()], ..Reading::default() };
    assert_eq!(count(&read(&heads("more", "place"), &reading), 2).parameters, WEIGHTS);
    let reading = Reading { outputs: vec!["score".to_owned()], ..Reading::default() };
    let error = onnx::import_bytes("small", &heads("more", "place").file(), &reading).unwrap_err().to_string();
    assert!(error.contains("the network has no output 'score'") && error.contains("did you mean 'scores'"), "{error}");
}

#[test]
fn a_batch_that_is_baked_into_a_file_is_taken_as_it_is() {
    let table = drawn(96);
    let graph = |first: i64| {
        G::default()
            .input("ids", INT64, &[D::N(first), D::N(6)])
            .weight("e", &[20, 8])
            .node("Constant", &[], &["places"], &[("value", A::Floats(&[2, 6, 8], &table))])
            .node("Gather", &["e", "ids"], &["g"], &[])
            .node("Add", &["g", "places"], &["y"], &[])
            .weight("o", &[8, 5])
            .node("MatMul", &["y", "o"], &["scores"], &[])
            .output("scores")
    };
    let network = import(&graph(2));
    assert!(network.notes().iter().any(|note| note.contains("fixes a batch of 2")), "{:?}", network.notes());
    assert_eq!(count(&network, 2).forward_flops, 2 * 2 * 6 * 8 * 5);
    assert_eq!(count(&network, 6).forward_flops, 3 * count(&network, 2).forward_flops);
    assert!(onnx::import_bytes("three", &graph(3).file(), &Reading::default()).is_err());
}

#[test]
fn a_reshape_leaves_the_batch_where_row_major_order_has_it() {
    let graph = |to: &[i64]| {
        G::default()
            .input("x", FLOAT, &[D::N(1), D::N(6), D::N(8)])
            .weight("w", &[8, 8])
            .ints("to", to)
            .node("Transpose", &["x"], &["t"], &[("perm", A::Ints(&[1, 0, 2]))])
            .node("MatMul", &["t", "w"], &["h"], &[])
            .node("Reshape", &["h", "to"], &["r"], &[])
            .node("ReduceMean", &["r"], &["scores"], &[("axes", A::Ints(&[0])), ("keepdims", A::I(0))])
            .output("scores")
    };
    for to in [[6, 1, 8], [6, 1, -1], [6, -1, 8], [-1, 1, 8], [0, 1, 8]] {
        let network = import(&graph(&to));
        assert_eq!(network.shape(network.nodes.last().unwrap().inputs[0]).to_string(), "Bx8", "{to:?}");
        assert!(!network.notes().iter().any(|note| note.contains("fixes a batch")), "{:?}", network.notes());
    }
}

#[test]
fn comparisons_have_no_derivative() {
    // The guard of a masked softmax: its condition, 2 × 48 booleans, is saved.
    let graph = rows(|graph| {
        graph
            .float("zero", 0.0)
            .node("Softmax", &["h"], &["p"], &[("axis", A::I(-1))])
            .node("IsNaN", &["p"], &["bad"], &[])
            .node("Where", &["bad", "zero", "p"], &["y"], &[])
    });
    assert_eq!(counts(&graph, 2).saved_bytes, 384 + 384 + 96 + 384 + 340);
    let both = rows(|graph| {
        graph.node("Tanh", &["h"], &["a"], &[]).node("Less", &["a", "h"], &["less"], &[]).node(
            "Where",
            &["less", "a", "h"],
            &["y"],
            &[],
        )
    });
    // The samples, the tangent, the condition, what is chosen, and the loss.
    assert_eq!(counts(&both, 2).saved_bytes, 384 + 384 + 96 + 384 + 340);
}

#[test]
fn functions_in_parts_save_what_the_whole_saves() {
    // A gated linear unit keeps its input, 2 × 6 rows of 16, and nothing of its own.
    let gated = rows(|graph| {
        graph
            .weight("u", &[8, 16])
            .node("MatMul", &["h", "u"], &["wide"], &[])
            .node("Split", &["wide"], &["a", "b"], &[("axis", A::I(2))])
            .node("Sigmoid", &["b"], &["s"], &[])
            .node("Mul", &["a", "s"], &["y"], &[])
    });
    assert_eq!(counts(&gated, 2).saved_bytes, 384 + 384 + 768 + 384 + 340);
    // A weight of a direction and a length keeps a norm for each row, and is kept itself by what it multiplies.
    let normed = rows(|graph| {
        graph
            .weight("v", &[8, 8])
            .weight("g", &[8, 1])
            .ints("all", &[12, 8])
            .ints("back", &[2, 6, 8])
            .node("ReduceL2", &["v"], &["n"], &[("axes", A::Ints(&[1]))])
            .node("Div", &["v", "n"], &["d"], &[])
            .node("Mul", &["d", "g"], &["u"], &[])
            .node("MatMul", &["h", "u"], &["y"], &[])
    });
    assert_eq!(counts(&normed, 2).saved_bytes, 384 + 384 + 8 * 4 + 256 + 384 + 340);
    // A maximum whose places are read keeps those: 2 × 6 of 64 bits.
    let largest = rows(|graph| {
        graph
            .node("ReduceMax", &["h"], &["m"], &[("axes", A::Ints(&[2]))])
            .node("ArgMax", &["h"], &["places"], &[("axis", A::I(2))])
            .node("Cast", &["places"], &["real"], &[("to", A::I(1))])
            .node("Add", &["m", "real"], &["s"], &[])
            .node("Add", &["h", "s"], &["y"], &[])
    });
    assert_eq!(counts(&largest, 2).saved_bytes, 384 + 2 * 6 * 8 + 384 + 340);
}

#[test]
fn an_operator_set_that_does_not_exist_is_refused() {
    let graph = rows(|graph| graph.node("Relu", &["h"], &["y"], &[]));
    for version in [0, 99] {
        let error = onnx::import_bytes("far", &graph.file_of(version), &Reading::default()).unwrap_err().to_string();
        assert!(error.contains(&format!("version {version} of the standard operators does not exist")), "{error}");
    }
}

#[test]
fn operators_of_newer_sets_are_run_in_parts() {
    let made = |operator: &str, attributes: &[(&str, A<'_>)], more: &[&str]| {
        let graph = rows(|graph| {
            let inputs: Vec<&str> = ["h"].into_iter().chain(more.iter().copied()).collect();
            graph.weight("g", &[8]).node(operator, &inputs, &["y"], attributes)
        });
        counts(&graph, 2)
    };
    // Two heads of 4 features: scaled queries and keys, probabilities of 2 × 2 × 36, values, and what comes of them.
    let attention = made("Attention", &[("q_num_heads", A::I(2)), ("kv_num_heads", A::I(2))], &["h", "h"]);
    assert_eq!(attention.saved_bytes, 384 + 2 * 384 + 576 + 384 + 384 + 340);
    assert_eq!(attention.forward_flops, 2 * 12 * 8 * (8 + 5) + 2 * 2 * 4 * 6 * 6 * 4);
    // Its input, an inverse root for each row, and what the gain multiplies.
    let normal = made("RMSNormalization", &[], &["g"]);
    assert_eq!(normal.saved_bytes, 384 + 384 + 48 + 384 + 32 + 8 + 384 + 340);
    assert_eq!(made("SimplifiedLayerNormalization", &[], &["g"]), normal);
    // The same of a sum, which is what is saved.
    assert_eq!(made("SkipSimplifiedLayerNormalization", &[], &["h", "g"]).saved_bytes, normal.saved_bytes);
    // Two heads of queries share the only head of keys and values, of 4 features: of keys and values there are copies; the
    // product that makes them saves its input.
    let shared = rows(|graph| {
        let (heads, half) = ([("num_heads", A::I(2)), ("kv_num_heads", A::I(1))], &[8, 4][..]);
        graph.values("p", half, &drawn(32)).node("MatMul", &["h", "p"], &["k"], &[]).node(
            "GroupQueryAttention",
            &["h", "k", "k"],
            &["y"],
            &heads,
        )
    });
    let product = 2 * 12 * 8 * 4;
    assert_eq!(counts(&shared, 2).forward_flops, attention.forward_flops + product);
    assert_eq!(counts(&shared, 2).saved_bytes, attention.saved_bytes + 384);
    // Tables of half of the features for 6 rows, which are looked up by number: two halves times two tables.
    let turned = rows(|graph| {
        graph.ints("places", &[0, 1, 2, 3, 4, 5]).values("angles", &[6, 4], &drawn(24)).node(
            "RotaryEmbedding",
            &["h", "places", "angles", "angles"],
            &["y"],
            &[("num_heads", A::I(1))],
        )
    });
    assert_eq!(counts(&turned, 2).forward_flops, 2 * 12 * 8 * (8 + 5));
    for (operator, attributes) in
        [("LRN", &[("size", A::I(3))][..]), ("LpNormalization", &[]), ("ThresholdedRelu", &[])]
    {
        assert_eq!(made(operator, attributes, &[]).forward_flops, 2 * 12 * 8 * (8 + 5), "{operator}");
    }
}
