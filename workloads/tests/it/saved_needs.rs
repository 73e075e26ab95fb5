//! The properties of each saved tensor that backward needs, and the rest of an iteration that gives up
//! weight gradients.

use std::collections::BTreeSet;

use haversack_devices::work::{OperatorKind, Precision};
use haversack_workloads::autograd::{EagerRules, differentiate};
use haversack_workloads::models::{self, MODELS};
use haversack_workloads::network::Network;
use haversack_workloads::operator::{Unary, Window};
use haversack_workloads::training_graph::{KernelCost, Need, Node, Saved};
use haversack_workloads::{Phase, Role, Shape, TensorId, TrainingGraph};

use crate::eager;
use Need::{Indices, Mask, Signs, Statistics, Values};

fn backward(graph: &TrainingGraph) -> impl Iterator<Item = &Node> {
    graph.nodes.iter().filter(|node| node.phase == Phase::Backward)
}

/// A backward node, and the name, the need and the keeper of each tensor that it lists.
type Listed<'a> = (&'a str, Vec<(&'a str, Need, bool)>);

/// A network with one of every operator that saves something.
fn one_of_each() -> Network {
    let mut n = Network::new("one of each");
    let x = n.input(&[3, 8, 8]);
    let x = n.convolution("c1", x, 4, Window::square(3, 1, 1), 1, true).unwrap();
    let x = n.batch_norm("bn", x).unwrap();
    let x = n.in_place("relu", x, Unary::Relu);
    let x = n.max_pool("max", x, Window::square(2, 2, 0), false).unwrap();
    let x = n.convolution("c2", x, 4, Window::square(1, 1, 0), 1, false).unwrap();
    let x = n.average_pool("mean", x, Window::square(2, 2, 0)).unwrap();
    let x = n.flatten("flatten", x).unwrap();
    let x = n.linear("fc", x, 6, true).unwrap();
    let x = n.dropout("drop", x, 0.1);
    let x = n.layer_norm("ln", x, true);
    let x = n.unary("gelu", x, Unary::Gelu);
    let x = n.reshape("tokens", x, Shape::batched(&[2, 3])).unwrap();
    let attention = n.softmax("softmax", x);
    let values = n.permute("turn", x, &[0, 2, 1]).unwrap();
    let x = n.matmul("mm", attention, values).unwrap();
    let x = n.reshape("scores", x, Shape::batched(&[4])).unwrap();
    let target = n.target(1);
    n.cross_entropy("loss", x, target).unwrap();
    n
}

#[test]
fn every_operator_needs_what_its_derivative_reads() {
    let graph = differentiate(&one_of_each(), EagerRules::default()).unwrap();
    let name = |tensor: TensorId| graph.tensor(tensor).name.as_str();
    let found: Vec<Listed<'_>> = backward(&graph)
        .filter(|node| !node.saved.is_empty())
        .map(|node| {
            (node.name.as_str(), node.saved.iter().map(|s: &Saved| (name(s.tensor), s.need, s.by_module)).collect())
        })
        .collect();
    // In place and as views, storages keep the name of the module that made them: relu overwrites bn, the matrix
    // product reads a contiguous copy (mm) of gelu's transposed output. The likelihood's derivative reads labels, that
    // of the log-softmax its result. Modules' hooks reach the tensors that modules save; softmax and the product of two
    // tensors are functional code.
    let expected = [
        (
            "loss",
            vec![
                ("loss.log_softmax", Need::Shape, true),
                ("target", Statistics, true),
                ("loss.total_weight", Statistics, true),
            ],
        ),
        ("loss", vec![("loss.log_softmax", Values, true)]),
        // d softmax = d · valuesᵀ, d values = softmaxᵀ · d: each reads the other operand.
        ("mm", vec![("mm", Values, false)]),
        ("mm", vec![("softmax", Values, false)]),
        ("softmax", vec![("softmax", Values, false)]),
        ("gelu", vec![("ln", Values, true)]),
        ("ln", vec![("drop", Values, true), ("ln.mean", Statistics, true), ("ln.inverse_deviation", Statistics, true)]),
        ("drop", vec![("drop.mask", Mask, true)]),
        ("fc.weight_gradient", vec![("mean", Values, true)]),
        // Average pooling spreads its gradient evenly: it reads only the shape.
        ("mean", vec![("c2", Need::Shape, true)]),
        ("c2.weight_gradient", vec![("max", Values, true)]),
        ("max", vec![("bn", Need::Shape, true), ("max.indices", Indices, true)]),
        ("relu", vec![("bn", Signs, true)]),
        (
            "bn",
            vec![
                ("c1", Values, true),
                ("bn.running_mean", Statistics, true),
                ("bn.running_var", Statistics, true),
                ("bn.mean", Statistics, true),
                ("bn.inverse_deviation", Statistics, true),
            ],
        ),
        ("c1.weight_gradient", vec![("input", Values, true)]),
    ];
    assert_eq!(found, expected);
    // An input gradient of a product reads its weight and nothing that was saved.
    assert!(backward(&graph).filter(|node| node.name.ends_with(".input_gradient")).all(|node| node.saved.is_empty()));
}

#[test]
fn what_is_not_listed_is_needed_whole() {
    let graph = differentiate(&one_of_each(), EagerRules::default()).unwrap();
    let relu = backward(&graph).find(|node| node.name == "relu").unwrap();
    // Its gradient was not saved by forward; the tensor that was, is needed for its signs.
    assert_eq!(relu.need_of(relu.inputs[0]), Values);
    assert_eq!(relu.need_of(relu.saved[0].tensor), Signs);
}

#[test]
fn relu6_and_relu_need_signs_tanh_and_gelu_values() {
    for (function, need, by_module) in [
        (Unary::Relu, Signs, true),
        (Unary::Relu6, Signs, true),
        (Unary::Gelu, Values, true),
        (Unary::Tanh, Values, false),
        (Unary::Power(3.0), Values, true),
        (Unary::DivideByElement(8.0), Statistics, false),
        (Unary::DropPath(0.2), Statistics, true),
    ] {
        let mut n = Network::new("unary");
        let x = n.input(&[8]);
        let x = n.linear("in", x, 8, false).unwrap();
        let x = n.unary("f", x, function);
        let target = n.target(1);
        n.cross_entropy("loss", x, target).unwrap();
        let graph = differentiate(&n, EagerRules::default()).unwrap();
        let node = backward(&graph).find(|node| node.name == "f").unwrap();
        let found: Vec<_> = node.saved.iter().map(|saved| (saved.need, saved.by_module)).collect();
        assert_eq!(found, [(need, by_module)], "{function:?}");
    }
}

#[test]
fn every_saved_activation_of_every_model_is_listed_where_it_is_read() {
    for model in MODELS.iter() {
        let graph = eager(model.id);
        let saved: BTreeSet<TensorId> = graph.saved().into_iter().collect();
        let mut listed = BTreeSet::new();
        for node in backward(&graph) {
            for &input in node.inputs.iter().filter(|input| saved.contains(input)) {
                let times = node.saved.iter().filter(|saved| saved.tensor == input).count();
                // Not left to the default, and not listed twice with two needs.
                assert_eq!(times, 1, "{}: {} reads {}", model.id, node.name, graph.tensor(input).name);
                listed.insert(input);
            }
            let only_inputs = node.saved.iter().all(|saved| node.inputs.contains(&saved.tensor));
            assert!(only_inputs, "{}: {}", model.id, node.name);
        }
        assert_eq!(listed, saved, "{}", model.id);
        let elsewhere = graph.nodes.iter().filter(|node| node.phase != Phase::Backward);
        assert!(elsewhere.into_iter().all(|node| node.saved.is_empty()), "{}", model.id);
    }
}

/// The bytes of all saved activations of which some backward node needs `need`, for a batch of `batch`.
fn bytes_by(graph: &TrainingGraph, need: Need, batch: u64) -> u64 {
    let wanted: BTreeSet<TensorId> = backward(graph)
        .flat_map(|node| &node.saved)
        .filter(|saved| saved.need == need && graph.tensor(saved.tensor).role == Role::Activation)
        .map(|saved| saved.tensor)
        .collect();
    wanted.into_iter().map(|tensor| graph.tensor(tensor).bytes.at(batch)).sum()
}

#[test]
fn resnet18_for_small_images_by_need() {
    let graph = eager("resnet18-cifar");
    // Signs: the ReLU of the stem and four maps in each of four stages, 64×32×32 = 65,536 values in the first, half in
    // each later one: 5 × 65,536 + 4 × (32,768 + 16,384 + 8,192) = 557,056 values of four bytes a sample.
    let signs = 5 * 65_536 + 4 * 57_344;
    assert_eq!(bytes_by(&graph, Signs, 3), 3 * 4 * signs);
    // Values: the inputs of the 20 normalisations, five maps a stage: 5 × 122,880 = 614,400; the inputs of all
    // convolutions but the first, which are the ReLUs' outputs but the last of 8,192; 512 means for the classifier and
    // ten log-probabilities.
    assert_eq!(bytes_by(&graph, Values, 3), 3 * 4 * (614_400 + signs - 8_192 + 512 + 10));
    // Two statistics for each of 64 + 4 × 64 + 5 × (128 + 256 + 512) = 4,800 channels; the loss's total weight.
    assert_eq!(bytes_by(&graph, Statistics, 3), 2 * 4 * 4_800 + 4);
    // The likelihood needs to know how many log-probabilities there are.
    assert_eq!([Mask, Indices, Need::Shape].map(|need| bytes_by(&graph, need, 3)), [0, 0, 3 * 4 * 10]);
}

#[test]
fn lenet5_by_need() {
    let graph = eager("lenet5");
    // 1×28×28 padded by two: 6×28×28 = 4,704, pooled to 6×14×14 = 1,176; 16×10×10 = 1,600, pooled to 16×5×5 = 400;
    // 120, 84, 62. ReLUs keep their outputs, of which the pools need the shape, as the likelihood does of the 62;
    // indices are of eight bytes.
    assert_eq!(bytes_by(&graph, Signs, 1), 4 * (4_704 + 1_600 + 120 + 84));
    assert_eq!(bytes_by(&graph, Need::Shape, 1), 4 * (4_704 + 1_600 + 62));
    assert_eq!(bytes_by(&graph, Indices, 1), 8 * (1_176 + 400));
    // The second convolution reads the first pool, the dense layers 400, 120 and 84 values, the loss 62.
    assert_eq!(bytes_by(&graph, Values, 1), 4 * (1_176 + 400 + 120 + 84 + 62));
    assert_eq!(bytes_by(&graph, Statistics, 1), 4);
}

#[test]
fn transformers_with_adapters_by_need() {
    for (model, tokens, norms, heads, layers) in
        [("roberta-base-lora", 128, 25, 12, 12), ("gpt2-medium-lora", 512, 49, 16, 24)]
    {
        let network = models::build(model, None).unwrap();
        let graph = differentiate(&network, EagerRules { dropout_mask_bytes: 1, ..EagerRules::default() }).unwrap();
        // A byte an element of each mask that some gradient passes through.
        let drawn: u64 = network
            .nodes
            .iter()
            .flat_map(|node| &node.saved)
            .filter(|&&storage| network.storage(storage).dropout_mask)
            .map(|&storage| network.storage(storage).bytes.at(2) / 4)
            .sum();
        assert!(drawn > 0);
        assert_eq!(bytes_by(&graph, Mask, 2), drawn, "{model}");
        // Hooks do not reach the tensors that attention saves: softmax and both products, of heads ×
        // tokens × tokens each.
        let scores = 4 * 2 * heads * tokens * tokens;
        let functional: BTreeSet<TensorId> = backward(&graph)
            .flat_map(|node| &node.saved)
            .filter(|saved| !saved.by_module && graph.tensor(saved.tensor).bytes.at(2) == scores)
            .map(|saved| saved.tensor)
            .collect();
        assert!(functional.len() >= layers, "{model}: {}", functional.len());
        // Two statistics a row of each normalisation that a gradient passes through, one before all adapters or none.
        let rows = bytes_by(&graph, Statistics, 2) / (2 * 4 * 2 * tokens);
        assert!((norms - 2..=norms).contains(&rows), "{model}: {rows} normalisations");
        assert_eq!(bytes_by(&graph, Signs, 2) + bytes_by(&graph, Indices, 2), 0, "{model}");
    }
}

#[test]
fn winograd_suits_dense_3x3_convolutions_of_stride_one() {
    let graph = eager("resnet18");
    let products = |phase: Phase| {
        let nodes = graph.nodes.iter().filter(move |node| node.phase == phase);
        nodes.filter(|node| matches!(node.work.kind, OperatorKind::Convolution | OperatorKind::Gemm))
    };
    // The 7×7 stem, three 3×3 of stride two and three 1×1 shortcuts of the 20 convolutions are excluded: 13.
    // Backward has two products for each, except one for the stem, whose input needs no gradient; the dense layer
    // adds one and two.
    let count = |phase| (products(phase).count(), products(phase).filter(|node| node.work.winograd).count());
    assert_eq!(count(Phase::Forward), (21, 13));
    assert_eq!(count(Phase::Backward), (41, 26));
    let columns = |name: &str| -> Vec<u64> {
        graph.nodes.iter().filter(|node| node.name.starts_with(name)).map(|node| node.work.columns).collect()
    };
    // Forward, then a gradient of the weight and one of the input; the update has no columns.
    assert_eq!(columns("layer2.0.conv1"), [128, 128, 128, 0]);
    assert_eq!(columns("conv1"), [64, 64, 0]);
    assert_eq!(columns("fc"), [1000, 1000, 1000, 0, 0]);
    for node in &graph.nodes {
        let product = matches!(node.work.kind, OperatorKind::Convolution | OperatorKind::Gemm);
        assert_eq!(product, node.work.columns > 0, "{}", node.name);
        assert!(product || !node.work.winograd, "{}", node.name);
    }
    // Depthwise: 3×3 of stride one, but not dense.
    let mobile = eager("mobilenetv2");
    assert!(mobile.nodes.iter().all(|node| !node.work.winograd || node.work.kind == OperatorKind::Convolution));
    let depthwise = mobile.nodes.iter().filter(|node| node.work.kind == OperatorKind::DepthwiseConvolution);
    assert!(depthwise.into_iter().all(|node| !node.work.winograd && node.work.columns == 0));
}

fn parameter_gradients(graph: &TrainingGraph) -> Vec<TensorId> {
    let ids = (0..).zip(&graph.tensors);
    ids.filter(|(_, tensor)| tensor.role == Role::ParameterGradient).map(|(id, _)| id).collect()
}

/// Checks the iteration without the gradients `given_up`, and returns it.
fn check_pruned(graph: &TrainingGraph, given_up: &BTreeSet<TensorId>, place: &str) -> TrainingGraph {
    let pruned = graph.without_gradients(|id| given_up.contains(&id));
    let mut written: Vec<bool> =
        graph.tensors.iter().map(|t| t.role.is_state() || matches!(t.role, Role::Input | Role::Target)).collect();
    let read: BTreeSet<TensorId> = pruned.nodes.iter().flat_map(|node| &node.inputs).copied().collect();
    for node in &pruned.nodes {
        for &input in &node.inputs {
            assert!(written[input as usize], "{place}: {} reads {}", node.name, graph.tensor(input).name);
        }
        for &output in &node.outputs {
            written[output as usize] = true;
        }
        // Every remaining backward node has a result that is read.
        let useful = node.phase != Phase::Backward || node.outputs.iter().any(|output| read.contains(output));
        assert!(useful, "{place}: {}", node.name);
    }
    // Weights that are still trained are all updated, and nothing else is.
    let updated = |graph: &TrainingGraph| -> BTreeSet<TensorId> {
        let updates = graph.nodes.iter().filter(|node| node.phase == Phase::Update);
        let inputs = updates.flat_map(|node| node.inputs.clone());
        inputs.filter(|&id| graph.tensor(id).role == Role::ParameterGradient).collect()
    };
    assert_eq!(updated(&pruned), updated(graph).difference(given_up).copied().collect(), "{place}");
    // Every one of their gradients is summed from as many nodes as before.
    for &gradient in &updated(&pruned) {
        let writers = |graph: &TrainingGraph| graph.nodes.iter().filter(|n| n.outputs.contains(&gradient)).count();
        assert_eq!(writers(&pruned), writers(graph), "{place}: {}", graph.tensor(gradient).name);
    }
    let before: BTreeSet<TensorId> = graph.saved().into_iter().collect();
    assert!(pruned.saved().into_iter().all(|tensor| before.contains(&tensor)), "{place}");
    assert_eq!(pruned.tensors.len(), graph.tensors.len(), "{place}: tensors keep their ids");
    pruned
}

/// Which gradients are given up, by their place.
type Choice = Box<dyn Fn(usize) -> bool>;

#[test]
fn what_is_left_of_a_residual_network_is_complete() {
    // Shared weights (albert-base's layers, the tied tables of the -mlm models) have gradients of many writers.
    for model in ["resnet18-cifar", "densenet121", "albert-base", "roberta-base-lora"] {
        let graph = eager(model);
        let gradients = parameter_gradients(&graph);
        // One in three, one in seven, all but every fifth, the first half and the second, by id.
        let half = gradients.len() / 2;
        let choices: [(&str, Choice); 6] = [
            ("one in three", Box::new(|place| place % 3 == 0)),
            ("one in seven", Box::new(|place| place % 7 == 3)),
            ("all but every fifth", Box::new(|place| place % 5 != 0)),
            ("the last layers", Box::new(move |place| place < half)),
            ("the first layers", Box::new(move |place| place >= half)),
            ("all but one", Box::new(move |place| place != half)),
        ];
        for (name, choice) in choices {
            let given_up: BTreeSet<TensorId> =
                gradients.iter().enumerate().filter(|(place, _)| choice(*place)).map(|(_, &id)| id).collect();
            check_pruned(&graph, &given_up, &format!("{model} without {name}"));
        }
    }
}

#[test]
fn a_shorter_backward_saves_less() {
    let graph = eager("resnet18-cifar");
    // Backward makes the gradients of the last layer first: ids ascend towards the input.
    let gradients = parameter_gradients(&graph);
    let bytes = |graph: &TrainingGraph| -> u64 { graph.saved().iter().map(|&t| graph.tensor(t).bytes.at(1)).sum() };
    let mut last = bytes(&graph);
    for kept in [50, 40, 30, 20, 10, 2] {
        let given_up: BTreeSet<TensorId> = gradients[kept..].iter().copied().collect();
        let pruned = check_pruned(&graph, &given_up, &format!("the last {kept} of {}", gradients.len()));
        assert!(bytes(&pruned) < last, "{kept}: {} after {last}", bytes(&pruned));
        last = bytes(&pruned);
    }
    // Only the classifier: 512 means, ten log-probabilities and the loss's total weight, four bytes each.
    assert_eq!(last, 4 * (512 + 10) + 4);
    // Only a convolution's weight: its input is still saved for the signs of the ReLU that made it.
    let conv = graph.tensors.iter().position(|t| t.name == "layer1.0.conv2.weight.gradient").unwrap() as TensorId;
    let pruned = check_pruned(&graph, &BTreeSet::from([conv]), "layer1.0.conv2");
    assert_eq!(pruned.saved(), graph.saved());
    let input =
        (0..).zip(&graph.tensors).find(|(_, t)| t.name == "layer1.0.bn1" && t.role == Role::Activation).unwrap().0;
    let needs = |graph: &TrainingGraph| -> Vec<Need> {
        backward(graph).flat_map(|n| &n.saved).filter(|s| s.tensor == input).map(|s| s.need).collect()
    };
    assert_eq!((needs(&graph), needs(&pruned)), (vec![Values, Signs], vec![Signs]));
}

#[test]
fn winograd_saves_products_of_floats_alone() {
    let graph = eager("resnet18");
    let kernels = KernelCost { winograd_saving: 2.25, ..KernelCost::NONE };
    for node in graph.nodes.iter().filter(|node| node.work.kind == OperatorKind::Convolution) {
        let plain = node.work.at(2, Precision::Fp32, KernelCost::NONE).flops.0;
        // 36 products become 16; the transforms leave the range of eight bits.
        let saving = if node.work.winograd { 2.25 } else { 1.0 };
        assert_eq!(node.work.at(2, Precision::Fp32, kernels).flops.0, plain / saving, "{}", node.name);
        assert_eq!(node.work.at(2, Precision::Int8, kernels).flops.0, plain, "{}", node.name);
    }
}
