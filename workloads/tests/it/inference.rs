//! Inference, attention in one kernel, and what mixed precision casts.

use haversack_devices::work::{OperatorKind, Precision};
use haversack_workloads::autograd::{Attention, EagerRules, differentiate, forward_alone};
use haversack_workloads::training_graph::{Element, LayerKind, Node};
use haversack_workloads::{Extent, Phase, TrainingGraph, models};

fn training(name: &str, attention: Attention) -> TrainingGraph {
    let network = models::build(name, None).unwrap();
    differentiate(&network, EagerRules { attention, ..EagerRules::default() }).unwrap()
}

fn products(graph: &TrainingGraph) -> u64 {
    graph.nodes.iter().filter(|node| node.work.is_product()).map(|node| node.work.flops.at(1)).sum()
}

#[test]
fn inference_runs_forward_alone_and_normalises_in_one_pass() {
    let network = models::build("resnet18", None).unwrap();
    let (inference, training) = (forward_alone(&network, EagerRules::default()), training("resnet18", Attention::Math));
    assert!(inference.nodes.iter().all(|node| node.phase == Phase::Forward && node.layer != LayerKind::Loss));
    assert!(inference.saved().is_empty());
    assert_eq!(inference.nodes.iter().filter(|node| node.work.passes != Extent::ZERO).count(), 0);
    // Forward: x is read for its statistics and again, 2 x and 3 x in backward where 3 are operands: 8 in all.
    let norm = |phase| {
        let mut norms = training.nodes.iter().filter(move |node| node.phase == phase && node.layer == LayerKind::Norm);
        norms.next().map(|node| node.work.passes.at(1)).unwrap()
    };
    let map = 64 * 112 * 112 * 4;
    assert_eq!(norm(Phase::Forward), map);
    let last = 512 * 7 * 7 * 4;
    assert_eq!(norm(Phase::Backward), 2 * last);
}

#[test]
fn nothing_is_dropped_in_inference() {
    // BERT drops its embeddings, its attention and every block's results.
    let network = models::build("bert-small", None).unwrap();
    let dropped = network.storages.iter().filter(|storage| storage.dropout_mask).count();
    assert!(dropped > 0);
    let inference = forward_alone(&network, EagerRules::default());
    let written = |id: usize| inference.nodes.iter().any(|node| node.outputs.contains(&(id as u32)));
    let mut masks = network.storages.iter().enumerate().filter(|(_, storage)| storage.dropout_mask);
    assert!(masks.all(|(id, _)| !written(id)));
}

#[test]
fn fused_attention_computes_the_same_products_and_keeps_no_scores() {
    let (math, fused) = (training("bert-small", Attention::Math), training("bert-small", Attention::Fused));
    assert_eq!(products(&math), products(&fused));
    // Scores of 512 × 512 for each of the heads are in memory in one and not in the other.
    let scores = |graph: &TrainingGraph| {
        let softmax =
            graph.nodes.iter().filter(|node| node.layer == LayerKind::Softmax && node.phase == Phase::Forward);
        softmax.map(|node| graph.tensor(node.outputs[0]).bytes.at(1)).sum::<u64>()
    };
    assert!(scores(&math) > 0);
    assert_eq!(scores(&fused), 0);
    let kept = |graph: &TrainingGraph| graph.saved().iter().map(|&id| graph.tensor(id).bytes.at(1)).sum::<u64>();
    assert!(kept(&fused) + scores(&math) <= kept(&math));
    // The products still write what the next layer reads.
    let written = |node: &&Node| node.work.product.is_some_and(|product| product.of_each_sample);
    let context = fused.nodes.iter().filter(written).filter(|node| node.phase == Phase::Forward);
    assert!(context.flat_map(|node| &node.outputs).any(|&id| fused.tensor(id).bytes != Extent::ZERO));
}

#[test]
fn a_network_without_attention_is_not_changed_by_fusing_it() {
    let (math, fused) = (training("resnet18", Attention::Math), training("resnet18", Attention::Fused));
    let bytes = |graph: &TrainingGraph| graph.tensors.iter().map(|tensor| tensor.bytes).collect::<Vec<_>>();
    assert_eq!(bytes(&math), bytes(&fused));
}

#[test]
fn mixed_precision_casts_around_softmax_and_not_in_fp32() {
    let graph = training("bert-small", Attention::Math);
    let half = graph.at_precision(Precision::Fp16);
    let softmax = |graph: &TrainingGraph| {
        let node = graph.nodes.iter().find(|node| node.layer == LayerKind::Softmax).unwrap().clone();
        (node.work.passes.at(1), graph.tensor(node.inputs[0]).element, graph.tensor(node.inputs[0]).bytes.at(1))
    };
    assert_eq!(softmax(&graph).0, 0);
    // Scores of two bytes are written as four and read again: eight for two.
    let (passes, element, bytes) = softmax(&half);
    assert_eq!((passes, element), (4 * bytes, Element::Float));
    // A product that reads its shares casts them back: as many bytes as they have.
    let reads = half.nodes.iter().find(|node| {
        node.work.kind == OperatorKind::Gemm
            && node.inputs.iter().any(|&id| half.tensor(id).element == Element::FullFloat)
    });
    assert!(reads.unwrap().work.passes.at(1) > 0);
}
