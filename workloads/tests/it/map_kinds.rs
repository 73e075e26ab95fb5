//! The kinds of the maps that a graph saves, for every framework.

use std::collections::BTreeSet;

use haversack_devices::work::OperatorKind;
use haversack_workloads::MapKind::{self, Attention, Dense, Normalised, Rectified, Smooth};
use haversack_workloads::autograd::{EagerRules, Optimiser, differentiate};
use haversack_workloads::express::{Version, express};
use haversack_workloads::lowering::{Gradients, Variant, lower};
use haversack_workloads::models;
use haversack_workloads::{Phase, TrainingGraph};

/// The kinds of the saved tensors that grow with the batch: statistics of channels do not.
fn saved(graph: &TrainingGraph) -> BTreeSet<MapKind> {
    let kinds = graph.map_kinds();
    let maps = graph.saved().into_iter().filter(|&tensor| graph.tensor(tensor).bytes.per_sample > 0);
    maps.filter_map(|tensor| kinds[tensor as usize]).collect()
}

#[test]
fn every_framework_s_graph_knows_what_made_its_maps() {
    // An eager framework normalises in one operator, whose output a ReLU overwrites; the pieces that the others compose
    // it of are saved.
    let networks: [(&str, &[MapKind], &[MapKind]); 2] = [
        ("resnet8-cifar", &[Rectified, Dense], &[Rectified, Dense, Normalised]),
        ("transformer1", &[Dense, Normalised, Smooth, Attention], &[Dense, Normalised, Smooth, Attention]),
    ];
    for (id, in_whole, in_pieces) in networks {
        let network = models::build(id, None).unwrap();
        let eager = differentiate(&network, EagerRules::default()).unwrap();
        assert_eq!(saved(&eager), in_whole.iter().copied().collect(), "{id}");
        let expressed = express(&network, Optimiser::Sgd, Version::V2).unwrap();
        let lowered = lower(&network, Variant::Direct, Optimiser::Sgd, Gradients::Kept).unwrap();
        for graph in [expressed, lowered] {
            assert_eq!(saved(&graph), in_pieces.iter().copied().collect(), "{id}");
        }
    }
}

#[test]
fn what_is_laid_out_anew_is_of_the_kind_that_it_was() {
    // MNN converts what a convolution reads: the maps of ResNet-8's ReLUs stay rectified, the pictures no operator's.
    let network = models::build("resnet8-cifar", None).unwrap();
    let graph = express(&network, Optimiser::Sgd, Version::V2).unwrap();
    let kinds = graph.map_kinds();
    let forward = graph.nodes.iter().filter(|node| node.phase == Phase::Forward);
    let converted: BTreeSet<_> = forward
        .filter(|node| node.work.kind == OperatorKind::Layout)
        .map(|node| (kinds[node.inputs[0] as usize], kinds[node.outputs[0] as usize]))
        .collect();
    assert!(converted.iter().all(|(from, to)| from == to), "{converted:?}");
    assert!(converted.contains(&(Some(Rectified), Some(Rectified))) && converted.contains(&(None, None)));
}

#[test]
fn what_only_passes_values_on_makes_no_map_of_its_own() {
    // LeNet-5 rectifies and pools: its first linear layer saves a view of the last pooling's output.
    let lenet = differentiate(&models::build("lenet5", None).unwrap(), EagerRules::default()).unwrap();
    let kinds = lenet.map_kinds();
    let pooling = lenet
        .nodes
        .iter()
        .find(|node| node.makes.is_none() && node.inputs.iter().any(|&input| kinds[input as usize] == Some(Rectified)));
    assert!(pooling.is_some_and(|node| kinds[node.outputs[0] as usize] == Some(Rectified)));
    // No operator made the samples.
    assert!(lenet.nodes[0].inputs.iter().all(|&input| kinds[input as usize].is_none()));
}
