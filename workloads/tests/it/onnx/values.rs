//! The values in a file, in the order in which the network stores them, and the computable parts of a file.

use haversack_workloads::network::Network;
use haversack_workloads::onnx::{self, Reading};

use super::wire::{A, FLOAT, G, batched};

/// Reads `graph` from a file called `name`, with its values.
fn read(name: &str, graph: &G) -> Network {
    let file = std::env::temp_dir().join(format!("haversack-values-{name}-{}.onnx", std::process::id()));
    std::fs::write(&file, graph.file()).unwrap();
    let imported = onnx::read(&file, &Reading { values: true, ..Reading::default() });
    std::fs::remove_file(&file).unwrap();
    imported.unwrap()
}

fn held(network: &Network, name: &str) -> Vec<f32> {
    let (storage, _) = (0..).zip(&network.storages).find(|(_, storage)| storage.name == name).unwrap();
    network.initial_floats(storage, 0).unwrap()
}

const W: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

/// Two features through 2 x 3 as the file of `MatMul` has it, then 3 x 2 outputs first, as `Gemm` transposes it.
fn two_layers() -> G {
    G::default()
        .input("input", FLOAT, &batched(&[2]))
        .values("first", &[2, 3], &W)
        .values("second", &[2, 3], &W)
        .values("bias", &[2], &[0.5, -0.5])
        .node("MatMul", &["input", "first"], &["hidden"], &[])
        .node("Relu", &["hidden"], &["rectified"], &[])
        .node("Gemm", &["rectified", "second", "bias"], &["scores"], &[("transB", A::I(1))])
        .output("scores")
}

#[test]
fn weights_are_held_as_outputs_by_inputs() {
    let network = read("layers", &two_layers());
    // Inputs x outputs in the file: 1 2 3 / 4 5 6.
    assert_eq!(held(&network, "first"), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(held(&network, "second"), W);
    assert_eq!(held(&network, "bias"), [0.5, -0.5]);
    assert!(network.computable().is_ok());
}

#[test]
fn a_file_read_without_its_values_says_so() {
    let network = onnx::import_bytes("layers", &two_layers().file(), &Reading::default()).unwrap();
    let error = network.computable().unwrap_err().to_string();
    assert!(error.contains("n0") && error.contains("linear") && error.contains("with its values"), "{error}");
}

#[test]
fn a_weight_that_is_read_in_two_orders_has_no_values() {
    let graph = G::default()
        .input("input", FLOAT, &batched(&[3]))
        .values("w", &[3, 3], &[0.0; 9])
        .node("MatMul", &["input", "w"], &["hidden"], &[])
        .node("Gemm", &["hidden", "w"], &["scores"], &[("transB", A::I(1))])
        .output("scores");
    assert!(read("tied", &graph).computable().is_err());
}

#[test]
fn running_statistics_come_from_the_file() {
    let graph = G::default()
        .input("input", FLOAT, &batched(&[2]))
        .values("scale", &[2], &[1.0, 2.0])
        .values("shift", &[2], &[3.0, 4.0])
        .values("mean", &[2], &[5.0, 6.0])
        .values("variance", &[2], &[7.0, 8.0])
        .values("w", &[2, 2], &W[..4])
        .node("BatchNormalization", &["input", "scale", "shift", "mean", "variance"], &["y"], &[])
        .node("MatMul", &["y", "w"], &["scores"], &[])
        .output("scores");
    let network = read("statistics", &graph);
    assert_eq!(held(&network, "n0.running_mean"), [5.0, 6.0]);
    assert_eq!(held(&network, "n0.running_var"), [7.0, 8.0]);
    assert_eq!(held(&network, "shift"), [3.0, 4.0]);
}

#[test]
fn an_operator_that_is_not_described_is_named() {
    let graph = G::default()
        .input("input", FLOAT, &batched(&[2]))
        .values("w", &[2, 2], &W[..4])
        .values("v", &[2, 2], &W[..4])
        .node("MatMul", &["input", "w"], &["a"], &[])
        .node("MatMul", &["input", "v"], &["b"], &[])
        .node("Sub", &["a", "b"], &["scores"], &[])
        .output("scores");
    let error = read("difference", &graph).computable().unwrap_err().to_string();
    assert!(error.contains("n2: add cannot be computed"), "{error}");
}
