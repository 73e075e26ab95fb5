//! ONNX import: the counts of networks that PyTorch exported, patterns in small graphs, and the messages on files that
//! cannot be imported.

mod families;
mod faults;
mod patterns;
mod trained;
mod values;
mod wire;

use std::collections::HashSet;
use std::path::PathBuf;

use haversack_workloads::autograd::{EagerRules, differentiate};
use haversack_workloads::counts::{Counts, count};
use haversack_workloads::network::Network;
use haversack_workloads::onnx::{self, Reading};
use haversack_workloads::{lowering, models};
use proptest::prelude::*;

use wire::{A, FLOAT, G, INT64, batched, of_shape};

/// The files that torch 2.6 exported from torchvision 0.21 and transformers 4.48 (operator set 17, training mode), with
/// their names in `counts.csv` and the built-in models that they are.
const FILES: [(&str, &str, &str); 5] = [
    ("squeezenet1_1", "squeezenet1_1", "squeezenet1-1"),
    ("mobilenet_v2", "mobilenet_v2", "mobilenetv2"),
    ("resnet18", "resnet18", "resnet18"),
    ("vgg11", "vgg11", "vgg11"),
    ("bert_small_s64", "bert_small_s64_cls", "bert-small-s64"),
];

/// Measured on PyTorch 2.6: weights, operations and saved tensors of each network at several batches.
const COUNTS: &str = include_str!("../data/counts.csv");

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/onnx/{name}.onnx"))
}

fn imported(name: &str) -> Network {
    onnx::read(&path(name), &Reading::default()).unwrap()
}

/// The rows of `counts.csv`, each as (column, cell); the second cell of a row is quoted.
fn rows() -> Vec<Vec<(&'static str, String)>> {
    let mut lines = COUNTS.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let cells = |line: &str| {
        let mut quoted = false;
        let split = line.split(|c| {
            quoted ^= c == '"';
            c == ',' && !quoted
        });
        split.map(str::to_owned).collect::<Vec<_>>()
    };
    lines.map(|line| header.iter().copied().zip(cells(line)).collect()).collect()
}

fn cell<'a>(row: &'a [(&str, String)], column: &str) -> &'a str {
    row.iter().find(|(name, _)| *name == column).map(|(_, cell)| cell.as_str()).unwrap()
}

#[test]
fn every_file_is_counted_as_pytorch_counts_it() {
    type Column = (&'static str, fn(&Counts) -> u64);
    let columns: [Column; 8] = [
        ("total_params", |c| c.parameters),
        ("trainable_params", |c| c.trainable_parameters),
        ("fwd_flops", |c| c.forward_flops),
        ("fwd_bwd_flops_groupfix", |c| c.training_flops),
        ("saved_bytes", |c| c.saved_bytes),
        ("saved_act_bytes", |c| c.saved_act_bytes),
        ("n_saved_distinct", |c| c.saved_tensors),
        ("largest_saved_bytes", |c| c.largest_saved_bytes),
    ];
    let rows = rows();
    for (file, model, _) in FILES {
        let network = imported(file);
        let of_model: Vec<_> = rows.iter().filter(|row| cell(row, "model") == model).collect();
        // Batches 1, 8, 16 and 32.
        assert_eq!(of_model.len(), 4, "{model}");
        for row in of_model {
            let batch: u64 = cell(row, "batch").parse().unwrap();
            let counted = count(&network, batch);
            for (column, of) in columns {
                let expected: u64 = cell(row, column).parse().unwrap();
                assert_eq!(of(&counted), expected, "{file} at batch {batch}: {column}");
            }
        }
    }
}

/// Hugging Face's classes as `haversack.from_torch` exports them, weights left out, with the counts of PyTorch: `numel` of all
/// parameters and of those with `requires_grad`, and `torch.utils.flop_counter` of forward. The file names the versions.
#[test]
fn language_models_have_the_weights_and_operations_that_pytorch_counts() {
    let text = std::fs::read_to_string(path("huggingface").with_extension("csv")).unwrap();
    let rows: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).skip(1).collect();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let cells: Vec<&str> = row.split(',').collect();
        let [batch, parameters, trained, flops] = [1, 2, 3, 4].map(|cell| cells[cell].parse::<u64>().unwrap());
        let network = imported(cells[0]);
        assert!(network.missing_parameters().is_empty(), "{row}: {:?}", network.missing_parameters());
        let counts = count(&network, batch);
        assert_eq!(
            [counts.parameters, counts.trainable_parameters, counts.forward_flops],
            [parameters, trained, flops]
        );
        // The batch is not a part of the file.
        assert_eq!(count(&network, 4 * batch).forward_flops, 4 * flops, "{row}");
    }
}

#[test]
fn a_file_saves_what_pytorch_saves_tensor_by_tensor() {
    for (file, text) in [
        ("mobilenet_v2", include_str!("../data/saved_mobilenet_v2.csv")),
        ("bert_small_s64", include_str!("../data/saved_bert_small_s64.csv")),
    ] {
        let network = imported(file);
        let mut seen = HashSet::new();
        let saved = network.nodes.iter().flat_map(|node| &node.saved).filter(|&&storage| seen.insert(storage));
        let mut here: Vec<u64> = saved.map(|&storage| network.storage(storage).bytes.at(8)).collect();
        // Columns: idx, shape, dtype, bytes, storage_bytes, storage_id, first_save_of_storage, kind, …
        let lines = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
        let mut there: Vec<u64> =
            lines.filter(|row| row[6] == "1" && row[7] != "param").map(|row| row[4].parse().unwrap()).collect();
        // A file may list independent nodes in another order than they ran in.
        here.sort_unstable();
        there.sort_unstable();
        assert_eq!(here, there, "{file}");
    }
}

#[test]
fn a_file_counts_as_its_built_in_model_does() {
    for (file, _, model) in FILES {
        let built = models::build(model, None).unwrap();
        for batch in [1, 8, 100] {
            assert_eq!(count(&imported(file), batch), count(&built, batch), "{file} against {model}");
        }
    }
}

#[test]
fn a_file_can_be_imported_for_samples_of_another_shape() {
    // 96 pixels leave 3×3 positions before the global pool.
    let small = onnx::read(&path("resnet18"), &of_shape(&[3, 96, 96])).unwrap();
    assert_eq!(count(&small, 8), count(&models::build("resnet18", Some(&[3, 96, 96])).unwrap(), 8));
    // The attention mask has the token ids' shape and follows them; positions are cut from a table of 512.
    let long = onnx::read(&path("bert_small_s64"), &of_shape(&[512])).unwrap();
    assert_eq!(count(&long, 8), count(&models::build("bert-small", None).unwrap(), 8));
    let error = onnx::read(&path("resnet18"), &of_shape(&[224])).unwrap_err().to_string();
    assert!(error.contains("cannot take samples of shape 224; expected 3 sizes"), "{error}");
    // Smaller than the kernels: the node that does not fit is named.
    let error = onnx::read(&path("vgg11"), &of_shape(&[3, 8, 8])).unwrap_err().to_string();
    assert!(error.contains("/features/features.15/MaxPool") && error.contains("at least 2x2 positions"), "{error}");
}

#[test]
fn a_file_can_be_differentiated_and_lowered() {
    for (file, _, model) in FILES {
        let network = imported(file);
        let graph = differentiate(&network, EagerRules::default()).unwrap();
        let built = differentiate(&models::build(model, None).unwrap(), EagerRules::default()).unwrap();
        // The same weights are updated, even if the graphs name their nodes differently.
        let updates = |graph: &haversack_workloads::TrainingGraph| {
            graph.nodes.iter().filter(|node| node.phase == haversack_workloads::Phase::Update).count()
        };
        assert_eq!(updates(&graph), updates(&built), "{file}");
        assert!(lowering::node_counts(&network).unwrap().iter().all(|&nodes| nodes > 0), "{file}");
    }
}

#[test]
fn nothing_has_to_be_assumed_of_the_files() {
    for (file, ..) in FILES {
        let read = onnx::read(&path(file), &Reading::default()).unwrap();
        assert_eq!(read.notes(), ["the file does not say what is trained: every weight is"], "{file}");
        assert_eq!(read.name, file);
    }
}

#[test]
fn operators_are_listed_once_and_in_order() {
    let names: Vec<_> = onnx::operators().collect();
    assert!(names.is_sorted() && names.windows(2).all(|pair| pair[0] != pair[1]));
    assert!(names.contains(&"Conv") && names.len() > 50);
}

type RandomNode = (&'static str, Vec<prop::sample::Index>, Vec<(&'static str, Vec<i64>, bool)>, bool);

/// An operator of any kind with inputs, attributes and a second output that need not suit it.
fn random_node() -> impl Strategy<Value = RandomNode> {
    let operators: Vec<&'static str> = onnx::operators().chain(["Erf", "Unknown"]).collect();
    let names = [
        "axis",
        "axes",
        "perm",
        "keepdims",
        "to",
        "kernel_shape",
        "pads",
        "strides",
        "group",
        "split",
        "starts",
        "ends",
        "value_int",
        "value_ints",
        "allowzero",
        "ceil_mode",
        "transB",
        "start",
        "end",
    ];
    let number = prop_oneof![8 => -3..5_i64, 1 => any::<i64>()];
    let attribute = (prop::sample::select(names.to_vec()), proptest::collection::vec(number, 1..5), any::<bool>());
    (
        prop::sample::select(operators),
        proptest::collection::vec(any::<prop::sample::Index>(), 1..5),
        proptest::collection::vec(attribute, 0..4),
        any::<bool>(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = onnx::import_bytes("random", &bytes, &Reading::default());
    }

    #[test]
    fn truncated_files_are_refused(file in 0..FILES.len(), part in 0.0..1.0_f64) {
        let bytes = std::fs::read(path(FILES[file].0)).unwrap();
        let kept = (bytes.len() as f64 * part) as usize;
        // A cut between two fields is found, too: the version of the operators comes last.
        prop_assert!(onnx::import_bytes("cut", &bytes[..kept], &Reading::default()).is_err());
    }

    #[test]
    fn mutated_files_never_panic(
        file in 0..FILES.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        side in 0..u64::MAX,
    ) {
        let mut bytes = std::fs::read(path(FILES[file].0)).unwrap();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(network) = onnx::import_bytes("mutated", &bytes, &Reading::default()) {
            // An accepted file can be counted.
            let _ = count(&network, 64);
        }
        let _ = onnx::import_bytes("mutated", &bytes, &of_shape(&[3, side, side]));
    }

    #[test]
    fn random_graphs_never_panic(
        rank in 1..5_usize,
        nodes in proptest::collection::vec(random_node(), 1..12),
    ) {
        let sizes = [2, 3, 4, 4];
        let mut graph = G::default()
            .input("t0", FLOAT, &batched(&sizes[..rank - 1]))
            .input("t1", INT64, &batched(&[3]))
            .weight("t2", &[4, 4])
            .weight("t3", &[4])
            .weight("t4", &[2, 2, 3, 3])
            .ints("t5", &[1])
            .ints("t6", &[0, -1, 4])
            .ints("t7", &[1, 0, 2, 3])
            .float("t8", 0.5);
        for (place, (operator, inputs, attributes, second)) in nodes.iter().enumerate() {
            let made = 9 + 2 * place;
            let inputs: Vec<String> = inputs.iter().map(|input| format!("t{}", input.index(made))).collect();
            let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
            let attributes: Vec<(&str, A<'_>)> = attributes
                .iter()
                .map(|(name, values, single)| (*name, if *single { A::I(values[0]) } else { A::Ints(values) }))
                .collect();
            let outputs = [format!("t{made}"), format!("t{}", made + 1)];
            let outputs = [outputs[0].as_str(), outputs[1].as_str()];
            graph = graph.node(operator, &inputs, if *second { &outputs } else { &outputs[..1] }, &attributes);
            if !second {
                graph = graph.float(outputs[1], 1.0);
            }
        }
        let last = 9 + 2 * (nodes.len() - 1);
        let file = graph.output(&format!("t{last}")).file();
        if let Ok(network) = onnx::import_bytes("random", &file, &Reading::default()) {
            let _ = count(&network, 64);
            differentiate(&network, EagerRules::default()).unwrap();
        }
    }

    #[test]
    fn any_override_is_counted_or_refused(file in 0..4_usize, shape in proptest::collection::vec(prop_oneof![0..300_u64, any::<u64>()], 3)) {
        if let Ok(network) = onnx::read(&path(FILES[file].0), &of_shape(&shape)) {
            let _ = count(&network, 64);
        }
    }
}
