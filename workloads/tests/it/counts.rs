//! The built-in models against PyTorch 2.6: weights, operations and saved tensors of `data/counts.csv`,
//! the saved tensors one by one of `data/saved_*.csv`, and their bytes by operator of `data/saved_by_node.csv`.
//!
//! Nothing is allowed to differ, text models included.

use std::collections::{BTreeMap, HashSet};

use haversack_workloads::counts::{Counts, count};
use haversack_workloads::models;
use haversack_workloads::network::{Network, OperatorNode};
use haversack_workloads::{Extent, Op};

const COUNTS: &str = include_str!("../data/counts.csv");

/// The id here, and the input, of a model of `counts.csv`.
fn known_as(name: &str) -> (&'static str, Option<&'static [u64]>) {
    match name {
        "lenet5" => ("lenet5", None),
        "resnet18_cifar" => ("resnet18-cifar", None),
        "vgg11_cifar_bn" => ("vgg11-cifar-bn", None),
        "vgg11_cifar" => ("vgg11-cifar", None),
        "vgg16_cifar_bn" => ("vgg16-cifar-bn", None),
        "vgg16_cifar" => ("vgg16-cifar", None),
        "squeezenet1_1" => ("squeezenet1-1", None),
        "mobilenet_v2" => ("mobilenetv2", None),
        "resnet18" => ("resnet18", None),
        "resnet50" => ("resnet50", None),
        "inception_v3" => ("inceptionv3", None),
        "inception_v3_96" => ("inceptionv3", Some(&[3, 96, 96])),
        "inception_v3_75" => ("inceptionv3", Some(&[3, 75, 75])),
        "vgg11" => ("vgg11", None),
        "vgg16" => ("vgg16", None),
        "bert_small_s64_cls" => ("bert-small-s64", None),
        "bert_small_s512_cls" => ("bert-small", None),
        "bert_small_s64_mlm" => ("bert-small-s64-mlm", None),
        "bert_small_s512_mlm" => ("bert-small-mlm", None),
        "roberta_base_lora_s128_cls" => ("roberta-base-lora", None),
        "roberta_base_lora_s512_cls" => ("roberta-base-lora-s512", None),
        "bert_base_s128_cls" => ("bert-base", None),
        "bert_base_s512_cls" => ("bert-base-s512", None),
        "bert_base_s128_mlm" => ("bert-base-mlm", None),
        "bert_base_s512_mlm" => ("bert-base-s512-mlm", None),
        other => panic!("counts.csv names {other}, which has no model here"),
    }
}

/// The rows of a table whose cells may be quoted, each as (column, cell).
fn table(text: &str) -> Vec<Vec<(&str, &str)>> {
    let mut lines = text.lines();
    let header = cells(lines.next().expect("a header"));
    lines.map(|line| header.iter().copied().zip(cells(line)).collect()).collect()
}

fn cells(line: &str) -> Vec<&str> {
    let mut quoted = false;
    line.split(|c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    })
    .collect()
}

fn cell<'a>(row: &[(&str, &'a str)], column: &str) -> &'a str {
    row.iter().find(|(name, _)| *name == column).map(|(_, cell)| *cell).expect(column)
}

fn number(row: &[(&str, &str)], column: &str) -> u64 {
    cell(row, column).parse().expect(column)
}

type CountOf = fn(&Counts) -> u64;

#[test]
fn every_model_is_counted_as_pytorch_counts_it() {
    let columns: [(&str, CountOf); 9] = [
        ("total_params", |c| c.parameters),
        ("trainable_params", |c| c.trainable_parameters),
        ("param_bytes", |c| c.parameter_bytes),
        ("fwd_flops", |c| c.forward_flops),
        ("fwd_bwd_flops_groupfix", |c| c.training_flops),
        ("saved_bytes", |c| c.saved_bytes),
        ("saved_act_bytes", |c| c.saved_act_bytes),
        ("n_saved_distinct", |c| c.saved_tensors),
        ("largest_saved_bytes", |c| c.largest_saved_bytes),
    ];
    let rows = table(COUNTS);
    assert_eq!(rows.len(), 98);
    let mut misses = Vec::new();
    for row in &rows {
        let (id, input) = known_as(cell(row, "model"));
        let batch = number(row, "batch");
        let counted = count(&models::build(id, input).unwrap(), batch);
        for (column, of) in columns {
            let (here, there) = (of(&counted), number(row, column));
            if here != there {
                misses.push(format!("{id} at batch {batch}: {column} is {here}, PyTorch's {there}"));
            }
        }
    }
    assert!(misses.is_empty(), "{} misses:\n{}", misses.len(), misses.join("\n"));
}

/// Bytes of the storages that PyTorch saves, at their first save, in order; all but weights.
fn saved_by_pytorch(text: &str) -> Vec<u64> {
    let first = |row: &Vec<(&str, &str)>| cell(row, "first_save_of_storage") == "1" && cell(row, "kind") != "param";
    table(text).iter().filter(|row| first(row)).map(|row| number(row, "storage_bytes")).collect()
}

fn saved_here(network: &Network, batch: u64) -> Vec<u64> {
    let mut seen = HashSet::new();
    let saved = network.nodes.iter().flat_map(|node| &node.saved).filter(|&&storage| seen.insert(storage));
    saved.map(|&storage| network.storage(storage).bytes.at(batch)).collect()
}

#[test]
fn every_saved_tensor_is_the_one_that_pytorch_saves_there() {
    for (id, text) in [
        ("resnet18-cifar", include_str!("../data/saved_resnet18_cifar.csv")),
        ("mobilenetv2", include_str!("../data/saved_mobilenet_v2.csv")),
        ("bert-small-s64", include_str!("../data/saved_bert_small_s64.csv")),
        ("bert-small", include_str!("../data/saved_bert_small_s512.csv")),
    ] {
        let network = models::build(id, None).unwrap();
        assert_eq!(saved_here(&network, 8), saved_by_pytorch(text), "{id}");
    }
}

/// PyTorch's node that saves for `node`; the loss is two of them.
fn backward_name(node: &OperatorNode) -> &'static str {
    match node.op {
        Op::Convolution { .. } => "ConvolutionBackward0",
        Op::Linear if node.parameters.len() == 1 => "MmBackward0",
        Op::Linear => "AddmmBackward0",
        Op::Matmul => "BmmBackward0",
        Op::BatchNorm { .. } => "NativeBatchNormBackward0",
        Op::LayerNorm { .. } => "NativeLayerNormBackward0",
        Op::Softmax => "SoftmaxBackward0",
        Op::MaxPool(_) => "MaxPool2DWithIndicesBackward0",
        Op::AveragePool { .. } => "AvgPool2DBackward0",
        Op::Dropout(_) => "MulBackward0",
        Op::Embedding => "EmbeddingBackward0",
        Op::CrossEntropy => "loss",
        Op::Unary { .. } => match node.op.name() {
            "relu" => "ReluBackward0",
            "relu6" => "HardtanhBackward0",
            "gelu" => "GeluBackward0",
            "tanh" => "TanhBackward0",
            other => other,
        },
        _ => node.op.name(),
    }
}

#[test]
fn every_operator_keeps_the_bytes_that_pytorch_keeps_for_it() {
    let mut there: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for row in table(include_str!("../data/saved_by_node.csv")) {
        assert_eq!(cell(&row, "batch"), "8");
        let node = match cell(&row, "saved_by_grad_fn") {
            "LogSoftmaxBackward0" | "NllLossBackward0" => "loss",
            "AdaptiveAvgPool2DBackward0" => "AvgPool2DBackward0",
            node => node,
        };
        if cell(&row, "kind") != "param" {
            let bytes = number(&row, "storage_bytes_first_saves");
            *there.entry((cell(&row, "model"), node)).or_default() += bytes;
        }
    }
    let mut here: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for model in there.keys().map(|(model, _)| *model).collect::<HashSet<_>>() {
        let (id, input) = known_as(model);
        let network = models::build(id, input).unwrap();
        let mut seen = HashSet::new();
        for node in &network.nodes {
            let first = node.saved.iter().filter(|&&storage| seen.insert(storage));
            let bytes: Extent = first.map(|&storage| network.storage(storage).bytes).sum();
            if !node.saved.is_empty() {
                *here.entry((model, backward_name(node))).or_default() += bytes.at(8);
            }
        }
    }
    assert_eq!(here, there);
}
