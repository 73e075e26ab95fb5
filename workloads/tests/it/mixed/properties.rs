//! Invariants of every algorithm and every model.

use haversack_devices::work::{Precision, Product};
use haversack_workloads::models::MODELS;
use haversack_workloads::training_graph::{Element, Need};
use haversack_workloads::{Extent, Phase, Role, WorkloadError};

use super::*;

/// A description with translations for attention networks too, which the published algorithms do not have.
fn with_attention() -> Algorithm {
    let floats = "\"layer_norm\", \"softmax\", \"gelu\", \"tanh\", \"pow\", \"where\", \"embedding\", \"index_table\", \
                  \"drop_path\", \"divide\", \"scale\", \"add_constant\", \"cross_entropy\"";
    let text = include_str!("../../../algorithms/niti.toml")
        .replace("[\"cross_entropy\"]", &format!("[{floats}]"))
        .replace("\"linear\",", "\"linear\", \"matmul\", \"mul\",");
    Algorithm::parse("attention.toml", &text).unwrap()
}

fn convolutional() -> impl Iterator<Item = &'static str> {
    let images = MODELS.iter().filter(|model| matches!(model.sample, models::Sample::Image { .. }));
    images.map(|model| model.id).filter(|&id| id != "swin-t")
}

/// Everything that an executor and a policy rely on.
fn assert_sound(graph: &TrainingGraph, what: &str) {
    let mut written: Vec<bool> =
        graph.tensors.iter().map(|t| t.role.is_state() || matches!(t.role, Role::Input | Role::Target)).collect();
    let mut used = vec![false; graph.tensors.len()];
    for node in &graph.nodes {
        let context = format!("{what}: {}", node.name);
        for &input in &node.inputs {
            assert!(written[input as usize], "{context} reads {}", graph.tensor(input).name);
        }
        for &output in &node.outputs {
            written[output as usize] = true;
        }
        node.uses().for_each(|tensor| used[tensor as usize] = true);
        assert!(!node.outputs.is_empty() && node.work.precision.is_some(), "{context}");
        for saved in &node.saved {
            let kept = graph.tensor(saved.tensor).role;
            assert!(node.inputs.contains(&saved.tensor) && node.phase == Phase::Backward, "{context}");
            assert!(!matches!(kept, Role::Gradient | Role::ParameterGradient), "{context}");
        }
        if let Some(scaled) = node.rescales {
            assert!(node.inputs.contains(&scaled) && node.outputs.contains(&scaled), "{context}");
        }
        // Integers and fp32 meet only where they are converted, and where a master takes a gradient.
        let converts = node.name.ends_with("quantise") || (node.phase == Phase::Update && !is_integer(node));
        let other = if is_integer(node) { Element::FullFloat } else { Element::Float };
        let over_integers =
            node.outputs.iter().all(|output| node.inputs.contains(output)) && node.phase != Phase::Update;
        if !converts && !over_integers {
            let foreign = node.inputs.iter().find(|&&input| {
                let tensor = graph.tensor(input);
                let state = matches!(tensor.role, Role::OptimiserState | Role::Buffer);
                tensor.element == other && !state && !is_statistic(graph, input)
            });
            assert!(foreign.is_none(), "{context} reads {}", graph.tensor(*foreign.unwrap()).name);
        }
    }
    let unused = used.iter().position(|&used| !used).map(|id| &graph.tensors[id].name);
    assert_eq!(unused, None, "{what}");
    let order = |node: &Node| [Phase::Forward, Phase::Backward, Phase::Update].iter().position(|&p| p == node.phase);
    assert!(graph.nodes.is_sorted_by_key(order), "{what}");
}

fn is_statistic(graph: &TrainingGraph, tensor: u32) -> bool {
    let mut needs = graph.nodes.iter().flat_map(|node| &node.saved).filter(|saved| saved.tensor == tensor);
    needs.any(|saved| saved.need == Need::Statistics)
}

/// The products in order, with everything that determines their time except their bytes.
fn products(graph: &TrainingGraph) -> Vec<(Option<Product>, Extent, u64, Extent)> {
    let products = graph.nodes.iter().filter(|node| is_product(node));
    products.map(|node| (node.work.product, node.work.flops, node.work.columns, node.work.parallelism)).collect()
}

#[test]
fn every_convolutional_network_is_sound_under_every_algorithm() {
    for model in convolutional() {
        let network = models::build(model, None).unwrap();
        let eager = eager(model);
        for algorithm in mixed::algorithms().unwrap() {
            let graph = of_network(&network, algorithm);
            let what = format!("{model} under {}", algorithm.id);
            assert_sound(&graph, &what);
            // Their arithmetic is that of the eager graph's products, in the same order, in integers.
            assert_eq!(products(&graph), products(&eager), "{what}");
            assert!(graph.nodes.iter().filter(|node| is_product(node)).all(is_integer), "{what}");
        }
    }
}

#[test]
fn gradients_and_updates_are_those_of_the_weights_that_are_left() {
    for model in convolutional() {
        let network = models::build(model, None).unwrap();
        for algorithm in mixed::algorithms().unwrap() {
            let graph = of_network(&network, algorithm);
            let what = format!("{model} under {}", algorithm.id);
            let count = |role: Role| graph.tensors.iter().filter(|tensor| tensor.role == role).count();
            let masters = graph.tensors.iter().filter(|tensor| tensor.name.ends_with(".master")).count();
            let weights = count(Role::Parameter { trainable: true }) - masters;
            assert_eq!(count(Role::ParameterGradient), weights, "{what}");
            let optimisers = graph.nodes.iter().filter(|node| node.name.ends_with(".update")).count();
            assert_eq!(optimisers, weights, "{what}");
            let norms = network.nodes.iter().filter(|node| node.op.name() == "batch_norm").count();
            let absent = algorithm.translation.absent.iter().any(|operator| operator.0 == "batch_norm");
            assert_eq!(weights, network.parameters.len() - if absent { 2 * norms } else { 0 }, "{what}");
        }
    }
}

#[test]
fn all_in_eight_bits_takes_a_quarter() {
    // The values of activations, without indices and the loss, which keep their own widths; the samples' copy is new.
    for model in ["vgg11-cifar", "vgg19", "lenet5"] {
        let network = models::build(model, None).unwrap();
        let graph = rewritten(model, "niti");
        let bytes = |graph: &TrainingGraph| -> Extent {
            let values = |t: &&Tensor| t.role == Role::Activation && t.element == Element::Float;
            graph.tensors.iter().filter(values).map(|tensor| tensor.bytes).sum()
        };
        let samples = tensor(&graph, "input.quantise").bytes;
        assert_eq!(samples * 4, network.storages[0].bytes, "{model}");
        let eager = eager(model);
        assert_eq!(bytes(&graph) * 4, bytes(&eager) + samples * 4, "{model}");
        // So do weights and their gradients.
        for role in [Role::Parameter { trainable: true }, Role::ParameterGradient] {
            assert_eq!(graph.bytes_of(|r| r == role) * 4, eager.bytes_of(|r| r == role), "{model}");
        }
    }
}

#[test]
fn saved_values_are_those_of_the_eager_graph() {
    // If no operator is removed, backward keeps the tensors that PyTorch keeps, plus the samples' copy; only narrower.
    for model in ["resnet18", "inceptionv3", "vgg19", "densenet121", "shufflenetv2"] {
        let graph = rewritten(model, "wageubn");
        let names = |graph: &TrainingGraph| {
            let mut names: Vec<String> = graph.saved().iter().map(|&t| graph.tensor(t).name.clone()).collect();
            names.sort();
            names
        };
        let mut expected = names(&eager(model));
        expected.push("input.quantise".to_owned());
        expected.sort();
        assert_eq!(names(&graph), expected, "{model}");
    }
}

#[test]
fn parts_of_fp32_gradients_are_no_parts_of_integers() {
    // Networks that join maps; their gradients come in parts.
    for model in ["inceptionv3", "densenet121", "squeezenet1-1"] {
        for graph in [rewritten(model, "niti"), eager(model)] {
            for Node { name, work, .. } in &graph.nodes {
                assert!(work.unread.at(2) <= work.dram.at(2), "{model}: {name} {work:?}");
            }
        }
        assert!(rewritten(model, "niti").nodes.iter().all(|node| node.work.unread.is_zero()), "{model}");
        assert!(eager(model).nodes.iter().any(|node| !node.work.unread.is_zero()), "{model}");
    }
}

#[test]
fn networks_with_operators_that_have_no_translation_are_refused() {
    for algorithm in mixed::algorithms().unwrap() {
        for model in ["bert-small", "swin-t", "gpt2-medium-lora"] {
            let network = models::build(model, None).unwrap();
            let error = mixed::rewrite(&network, algorithm, Optimiser::Sgd).unwrap_err();
            let WorkloadError::NoTranslation { algorithm: name, operator, .. } = &error else { panic!("{error}") };
            assert_eq!(name, &algorithm.name);
            let message = error.to_string();
            assert!(message.contains(operator) && message.contains("it translates convolution, linear"), "{message}");
        }
    }
}

#[test]
fn a_description_that_translates_attention_is_enough() {
    // Shared weights (ALBERT), frozen ones (LoRA), a table that an embedding and a product share (masked language
    // model), buffers, views and slices of them.
    let algorithm = with_attention();
    for model in
        ["bert-small-s64", "bert-small-s64-mlm", "albert-base", "roberta-base-lora", "swin-t", "gpt2-medium-lora"]
    {
        let network = models::build(model, None).unwrap();
        let graph = of_network(&network, &algorithm);
        assert_sound(&graph, model);
        assert_eq!(products(&graph), products(&eager(model)), "{model}");
        assert!(graph.nodes.iter().filter(|node| is_product(node)).all(|n| n.work.precision == Some(Precision::Int8)));
    }
}

#[test]
fn a_rewrite_is_the_same_every_time() {
    let [a, b] = [0, 1].map(|_| format!("{:?}", rewritten("resnet18-cifar", "mls")));
    assert_eq!(a, b);
}
