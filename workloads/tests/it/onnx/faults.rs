//! The message on a file that cannot be imported: the file, the node, its operator, and the expected value.

use std::path::Path;

use haversack_workloads::onnx::{self, Reading};

use super::wire::{A, D, FLOAT, G, INT64, batched, of_shape};

fn fault(graph: &G) -> String {
    onnx::import_bytes("bad", &graph.file(), &Reading::default()).unwrap_err().to_string()
}

/// Asserts that the message has every part.
fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "no '{part}' in: {message}");
    }
}

fn image() -> G {
    G::default().input("input", FLOAT, &batched(&[3, 8, 8])).weight("k", &[4, 3, 3, 3]).output("scores")
}

#[test]
fn files_that_are_not_onnx_are_refused() {
    says(
        &onnx::read(Path::new("/nowhere/a.onnx"), &Reading::default()).unwrap_err().to_string(),
        &["/nowhere/a.onnx: cannot be read"],
    );
    says(
        &onnx::import_bytes("text", b"import torch\n", &Reading::default()).unwrap_err().to_string(),
        &["text: not a whole ONNX model"],
    );
    says(&onnx::import_bytes("empty", b"", &Reading::default()).unwrap_err().to_string(), &["empty: no graph in it"]);
}

#[test]
fn a_graph_needs_an_input_and_an_output() {
    says(&fault(&G::default().output("y")), &["the graph has no input"]);
    says(&fault(&G::default().input("x", FLOAT, &batched(&[4]))), &["the graph has no output"]);
    says(&fault(&G::default().input("x", FLOAT, &batched(&[4])).output("x")), &["no weight leads to the output 'x'"]);
    says(&fault(&G::default().input("x", FLOAT, &batched(&[4])).output("y")), &["no node makes the output 'y'"]);
}

#[test]
fn a_cycle_is_reported_with_its_nodes() {
    let cyclic = image()
        .node("Conv", &["input", "k"], &["a"], &[])
        .node("Add", &["a", "c"], &["b"], &[])
        .node("Relu", &["b"], &["c"], &[])
        .node("Flatten", &["c"], &["scores"], &[]);
    says(&fault(&cyclic), &["bad: the graph is cyclic: ", "'n1'", "'n2'"]);
    assert!(!fault(&cyclic).contains("'n0'") && !fault(&cyclic).contains("'n3'"));
}

#[test]
fn an_input_that_nobody_makes_is_named() {
    let graph = image().node("Conv", &["input", "kernel"], &["scores"], &[]);
    says(&fault(&graph), &["node 'n0' (Conv): reads 'kernel', which no node makes"]);
    let twice = image().node("Conv", &["input", "k"], &["scores"], &[]).node("Relu", &["input"], &["scores"], &[]);
    says(&fault(&twice), &["node 'n1' (Relu): 'scores' exists already"]);
}

#[test]
fn an_unsupported_operator_is_named_with_its_family_and_what_to_do() {
    let graph = image().node("DeformConv", &["input", "k"], &["scores"], &[]);
    let family = "of convolutions these are: Conv, ConvTranspose; to continue, write it in the network";
    says(&fault(&graph), &["node 'n0' (DeformConv): the operator 'DeformConv' is not supported", family]);
    let alone = image().node("Det", &["input"], &["scores"], &[]);
    says(&fault(&alone), &["the operator 'Det' is not supported", "to continue, write it in the network"]);
    // The bodies of control flow are not read, however deep.
    let control = image().node("Loop", &["input"], &["scores"], &[("body", A::Graph)]);
    says(
        &fault(&control),
        &["the operator 'Loop' is not supported; of control flow these are: If; to continue, export by"],
    );
}

#[test]
fn missing_and_wrong_attributes_are_named() {
    says(
        &fault(&image().node("MaxPool", &["input"], &["scores"], &[])),
        &["(MaxPool): attribute 'kernel_shape' is missing"],
    );
    says(&fault(&image().node("Concat", &["input"], &["scores"], &[])), &["(Concat): attribute 'axis' is missing"]);
    says(
        &fault(&image().node("Concat", &["input"], &["scores"], &[("axis", A::F(1.0))])),
        &["attribute 'axis' is not an integer"],
    );
    let conv = |attribute: (&str, A<'_>)| fault(&image().node("Conv", &["input", "k"], &["scores"], &[attribute]));
    says(
        &conv(("strides", A::Ints(&[0, 1]))),
        &["attribute 'strides' of [0, 1]; expected one or two sizes of at least 1"],
    );
    says(&conv(("pads", A::Ints(&[1, 1, 0]))), &["cannot take padding of [1, 1, 0]"]);
    says(&conv(("dilations", A::Ints(&[9, 9]))), &["at least 3x3 positions with the padding"]);
    says(&conv(("group", A::I(2))), &["cannot take 3 channels in 2 groups"]);
    says(&conv(("kernel_shape", A::Ints(&[5, 5]))), &["a kernel of 3x3; expected one of [5, 5]"]);
    // As many positions as the input, for any padding.
    says(&conv(("auto_pad", A::Text("SAME"))), &["cannot take padding of [] (SAME)"]);
}

#[test]
fn shapes_that_do_not_fit_are_shown() {
    let channels = G::default().input("input", FLOAT, &batched(&[5, 8, 8])).weight("k", &[4, 3, 3, 3]).output("y");
    let message = fault(&channels.node("Conv", &["input", "k"], &["y"], &[]));
    says(&message, &["node 'n0' (Conv): cannot take 5 channels in 1 groups", "4x3x3x3"]);
    let flat = G::default().input("input", FLOAT, &batched(&[5])).weight("w", &[6, 2]).output("y");
    says(
        &fault(&flat.clone().node("MatMul", &["input", "w"], &["y"], &[])),
        &["(MatMul): cannot take Bx5", "dimension of 6"],
    );
    says(
        &fault(&flat.clone().node("Conv", &["input", "w"], &["y"], &[])),
        &["cannot take Bx5; expected a B×C×H×W tensor"],
    );
    let target = flat.ints("t", &[-1, 4]);
    says(&fault(&target.node("Reshape", &["input", "t"], &["y"], &[])), &["(Reshape): cannot take Bx5"]);
    let scalar = image().node("ReduceMean", &["input"], &["m"], &[]).node("Conv", &["m", "k"], &["scores"], &[]);
    says(&fault(&scalar), &["(ReduceMean)", "axes other than the batch"]);
}

#[test]
fn a_dimension_without_a_size_asks_for_the_shape_of_a_sample() {
    let graph = |rest: D| {
        G::default()
            .input("ids", INT64, &[D::P("batch"), rest])
            .weight("table", &[9, 4])
            .node("Gather", &["table", "ids"], &["scores"], &[])
            .output("scores")
    };
    let open = graph(D::P("sequence"));
    says(&fault(&open), &["dimension 1 ('sequence') of input 'ids' has no size", "give the shape of a sample"]);
    assert!(onnx::import_bytes("open", &open.file(), &of_shape(&[6])).is_ok());
    assert!(onnx::import_bytes("fixed", &graph(D::N(6)).file(), &Reading::default()).is_ok());
}

#[test]
fn sizes_that_would_overflow_are_refused() {
    for (height, kernel) in [(i64::MAX, 3), (1 << 40, 3), (8, i64::MAX), (8, -1)] {
        let graph = G::default()
            .input("input", FLOAT, &batched(&[3, height, 8]))
            .weight("k", &[4, 3, kernel, 3])
            .node("Conv", &["input", "k"], &["scores"], &[("pads", A::Ints(&[1, 1, 1, 1]))])
            .output("scores");
        assert!(!fault(&graph).is_empty());
    }
    // Each is small enough; the product is not: 2^30 × 2^15 outputs of 2^20 terms.
    let wide = G::default()
        .input("input", FLOAT, &batched(&[1 << 15, 1 << 20]))
        .weight("w", &[1 << 20, 1 << 30])
        .node("MatMul", &["input", "w"], &["scores"], &[])
        .output("scores");
    says(&fault(&wide), &["node 'n0' (MatMul)", "at most 1125899906842624"]);
}

#[test]
fn a_long_chain_is_walked_without_recursion() {
    const LINKS: usize = 20_000;
    let mut graph = G::default().input("x0", FLOAT, &batched(&[4])).weight("w", &[4, 4]);
    for link in 0..LINKS {
        graph = graph.node("Identity", &[&format!("x{link}")], &[&format!("x{}", link + 1)], &[]);
    }
    let graph = graph.node("MatMul", &[&format!("x{LINKS}"), "w"], &["scores"], &[]).output("scores");
    assert!(onnx::import_bytes("chain", &graph.file(), &Reading::default()).is_ok());
}
