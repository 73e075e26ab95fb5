//! The networks for training with data: PyTorch's counts and saved bytes for them (`data/small_counts.csv`, made by
//! `python/training_steps.py`), and the numbers of classes that they take.

use haversack_workloads::autograd::{EagerRules, Optimiser, differentiate};
use haversack_workloads::counts::count;
use haversack_workloads::express::{Version, express};
use haversack_workloads::lowering::{Gradients, Variant, lower};
use haversack_workloads::operator::Unary;
use haversack_workloads::{Network, Phase, Role, models};

const COUNTS: &str = include_str!("../data/small_counts.csv");

#[test]
fn small_networks_are_counted_as_pytorch_counts_them() {
    let mut rows = 0;
    for line in COUNTS.lines().skip(1) {
        let (id, numbers) = line.split_once(',').unwrap();
        let numbers: Vec<u64> = numbers.split(',').map(|number| number.parse().unwrap()).collect();
        let classes = if line.contains("tokens") || line.contains("transformer") { 4 } else { 10 };
        let input: Option<&[u64]> = if id == "lenet5" { Some(&[3, 32, 32]) } else { None };
        let counts = count(&models::build_for(id, input, Some(classes)).unwrap(), numbers[0]);
        let here = [
            counts.parameters,
            counts.trainable_parameters,
            counts.forward_flops,
            counts.saved_bytes,
            counts.saved_act_bytes,
        ];
        assert_eq!(here, numbers[1..], "{line}");
        rows += 1;
    }
    assert_eq!(rows, 20);
}

#[test]
fn every_classifier_takes_the_classes_of_a_data_set() {
    for model in models::MODELS.iter() {
        for classes in [2, 20, 62] {
            let built = models::build_for(model.id, None, Some(classes));
            let Some(own) = model.classes else {
                let error = built.unwrap_err().to_string();
                assert!(error.contains("predicts tokens") && error.contains(model.id), "{error}");
                continue;
            };
            let network = built.unwrap();
            let scores = network.nodes.last().unwrap().inputs[0];
            assert_eq!(network.shape(scores).last(), classes, "{}", model.id);
            let weights = count(&models::build(model.id, None).unwrap(), 1).parameters;
            assert_eq!(count(&network, 1).parameters == weights, classes == own, "{}", model.id);
        }
    }
    let error = models::build_for("mlp", None, Some(0)).unwrap_err().to_string();
    assert!(error.contains("0 classes do not fit; it takes from 1 to 1048576; its own are 10"), "{error}");
}

#[test]
fn silu_keeps_its_input_and_sigmoid_its_output() {
    for (function, place) in [(Unary::Silu, 0), (Unary::Sigmoid, 1)] {
        let mut n = Network::new("unary");
        let x = n.input(&[8]);
        let x = n.linear("in", x, 8, false).unwrap();
        let y = n.unary("f", x, function);
        let target = n.target(1);
        n.cross_entropy("loss", y, target).unwrap();
        // A sigmoid and, for SiLU, a product; in backward s(1 − s), or s(1 + x(1 − s)) with s computed again.
        let sage = lower(&n, Variant::Direct, Optimiser::Sgd, Gradients::Kept).unwrap();
        let sigmoids = sage.nodes.iter().filter(|node| node.name == "f.sigmoid").count();
        assert_eq!(sigmoids, if function == Unary::Silu { 2 } else { 1 });
        let mnn = express(&n, Optimiser::Sgd, Version::V2).unwrap();
        let steps: Vec<_> =
            mnn.nodes.iter().filter(|node| node.name.starts_with("f.")).map(|node| &node.name).collect();
        let own = ["f.sigmoid", "f.multiply", "f.multiply", "f.multiply", "f.one_minus", "f.multiply", "f.multiply"];
        let expected =
            if function == Unary::Silu { &own[..] } else { &["f.sigmoid", "f.one_minus", "f.multiply", "f.multiply"] };
        assert_eq!(steps[..expected.len()], expected[..], "{steps:?}");
        let graph = differentiate(&n, EagerRules::default()).unwrap();
        let node = graph.nodes.iter().find(|node| node.phase == Phase::Backward && node.name == "f").unwrap();
        let saved: Vec<u32> = node.saved.iter().map(|saved| saved.tensor).collect();
        assert_eq!(saved, [n.value([x, y][place]).storage], "{function:?}");
        assert!(node.outputs.iter().all(|&made| graph.tensor(made).role == Role::Gradient));
    }
}
