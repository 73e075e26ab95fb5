//! Graphs small or regular enough to count by hand.

use haversack_devices::work::{OperatorKind, Precision};
use haversack_workloads::operator::{Unary, Window};
use haversack_workloads::{Extent, Initial, Phase, Role};

use super::*;

fn names(graph: &TrainingGraph, phase: Phase) -> Vec<&str> {
    graph.nodes.iter().filter(|node| node.phase == phase).map(|node| node.name.as_str()).collect()
}

#[test]
fn lenet5_operator_by_operator() {
    let graph = rewritten("lenet5", "niti");
    let forward = [
        "input.quantise",
        "conv1",
        "conv1.rescale",
        "relu1",
        "pool1",
        "conv2",
        "conv2.rescale",
        "relu2",
        "pool2",
        "fc1",
        "fc1.rescale",
        "relu3",
        "fc2",
        "fc2.rescale",
        "relu4",
        "fc3",
        "fc3.rescale",
        "fc3.dequantise",
        "loss",
    ];
    assert_eq!(names(&graph, Phase::Forward), forward);
    // The loss's gradient is computed in fp32 and becomes eight bits for the first that reads it. Only convolutions
    // lay out operands; the first needs no gradient of its input.
    let linear = |i: u32| {
        ["weight_gradient", "weight_gradient.rescale", "input_gradient", "input_gradient.rescale"]
            .map(|end| format!("fc{i}.{end}"))
    };
    let of_weight = |i: u32| {
        ["transpose_gradient", "transpose_input"]
            .map(|end| format!("conv{i}.weight_gradient.{end}"))
            .into_iter()
            .chain(["", ".rescale"].map(|end| format!("conv{i}.weight_gradient{end}")))
    };
    let mut backward: Vec<String> = ["loss.seed", "loss", "loss", "loss.gradient.quantise"].map(String::from).to_vec();
    backward.extend(linear(3));
    backward.push("relu4".to_owned());
    backward.extend(linear(2));
    backward.push("relu3".to_owned());
    backward.extend(linear(1));
    backward.extend(["pool2", "relu2"].map(String::from));
    backward.extend(of_weight(2));
    backward.extend(["rotate_weight"].map(|end| format!("conv2.input_gradient.{end}")));
    backward.extend(["", ".rescale"].map(|end| format!("conv2.input_gradient{end}")));
    backward.extend(["pool1", "relu1"].map(String::from));
    backward.extend(of_weight(1));
    assert_eq!(names(&graph, Phase::Backward), backward);
    // Five layers with a weight and a bias.
    assert_eq!(names(&graph, Phase::Update).len(), 10);
    assert_eq!(graph.nodes.len(), 19 + 33 + 10);
}

#[test]
fn lenet5_byte_by_byte() {
    let graph = rewritten("lenet5", "niti");
    // 28 × 28 samples arrive in four bytes and leave in one; a multiplication and a rounding each.
    let quantise = node(&graph, "input.quantise", Phase::Forward);
    assert_eq!(quantise.work.dram, Extent::per_sample(784 * 5));
    assert_eq!(quantise.work.flops, Extent::per_sample(784 * 2));
    assert_eq!((quantise.work.kind, quantise.work.precision), (OperatorKind::ElementWise, Some(Precision::Fp32)));
    // conv1: 784 values in, 6 × 25 weights, 6 biases, 6 × 28 × 28 = 4704 values out, one byte each.
    let conv1 = node(&graph, "conv1", Phase::Forward);
    assert_eq!(conv1.work.dram, Extent { fixed: 156, per_sample: 784 + 4704 });
    assert_eq!(conv1.work.precision, Some(Precision::Int8));
    // 4704 sums of 32 bits: written by the product, read, shifted to eight bits and written; the maximum and the shift.
    let rescale = node(&graph, "conv1.rescale", Phase::Forward);
    assert_eq!(rescale.work.dram, Extent::per_sample(4704 * 9));
    assert_eq!(rescale.work.flops, Extent::per_sample(4704 * 2));
    assert_eq!((rescale.work.kind, rescale.work.precision), (OperatorKind::Reduction, Some(Precision::Int32)));
    assert_eq!(rescale.rescales, Some(conv1.outputs[0]));
    assert_eq!(rescale.inputs, conv1.outputs);
    assert_eq!(rescale.outputs[0], conv1.outputs[0]);
    // The sums are only for the rescaling.
    let sums = rescale.outputs[1];
    assert_eq!(graph.tensor(sums).bytes, Extent::per_sample(4704 * 4));
    assert_eq!(graph.nodes.iter().filter(|node| node.uses().any(|tensor| tensor == sums)).count(), 1);
    // pool1: 4704 values in, 6 × 14 × 14 = 1176 out, with a position of one byte each.
    assert_eq!(node(&graph, "pool1", Phase::Forward).work.dram, Extent::per_sample(4704 + 2 * 1176));
    // Gradient of conv2's weight: 16 × 10 × 10 = 1600 values of the output's gradient and 1176 of the input, both laid
    // out with the batch as their depth; 16 × 6 × 25 = 2400 weights and 16 biases.
    let laid = node(&graph, "conv2.weight_gradient.transpose_input", Phase::Backward);
    assert_eq!((laid.work.kind, laid.work.dram), (OperatorKind::Layout, Extent::per_sample(2 * 1176)));
    let product = node(&graph, "conv2.weight_gradient", Phase::Backward);
    assert_eq!(product.work.dram, Extent { fixed: 2416, per_sample: 1600 + 1176 });
    assert!(product.inputs.contains(&laid.outputs[0]) && !product.inputs.contains(&laid.inputs[0]));
    let rescale = node(&graph, "conv2.weight_gradient.rescale", Phase::Backward);
    assert_eq!(rescale.work.dram, Extent::fixed(2416 * 9));
    // The rotated weight is read instead of the weight.
    let rotate = node(&graph, "conv2.input_gradient.rotate_weight", Phase::Backward);
    assert_eq!((rotate.work.kind, rotate.work.dram), (OperatorKind::Layout, Extent::fixed(2 * 2400)));
    assert_eq!(node(&graph, "conv2.input_gradient", Phase::Backward).inputs[1], rotate.outputs[0]);
    // A weight and its gradient in, the weight out.
    let update = node(&graph, "conv2.weight.update", Phase::Update);
    assert_eq!((update.work.dram, update.work.precision), (Extent::fixed(3 * 2400), Some(Precision::Int8)));
}

#[test]
fn lenet5_keeps_a_byte_a_value_for_backward() {
    let graph = rewritten("lenet5", "niti");
    // The eight-bit samples; relu1 4704, pool1's positions 1176 and output 1176; relu2 1600, pool2's positions 400 and
    // output 400; relu3 120, relu4 84: a byte each. 62 fp32 log-probabilities, and the total weight of four bytes.
    let per_sample = 784 + 4704 + 2 * 1176 + 1600 + 2 * 400 + 120 + 84 + 62 * 4;
    let saved: Extent = graph.saved().into_iter().map(|tensor| graph.tensor(tensor).bytes).sum();
    assert_eq!(saved, Extent { fixed: 4, per_sample });
    // The need of an operand that is laid out first is noted where it is read.
    let laid = node(&graph, "conv2.weight_gradient.transpose_input", Phase::Backward);
    assert_eq!(laid.saved.iter().map(|saved| saved.tensor).collect::<Vec<_>>(), laid.inputs);
    assert!(node(&graph, "conv2.weight_gradient", Phase::Backward).saved.is_empty());
}

#[test]
fn convolutions_of_the_cifar_networks() {
    // Every product is rescaled: three a layer, but two for the first. Three layouts a convolution: both operands of
    // its weight's gradient, the weight for its input's; two for the first.
    for (model, convolutions) in [("vgg16-cifar", 13), ("resnet34-cifar", 36)] {
        let graph = rewritten(model, "niti");
        let of_kind =
            |kind| graph.nodes.iter().filter(|node| node.work.kind == kind && node.rescales.is_none()).count();
        assert_eq!(of_kind(OperatorKind::Convolution), 3 * convolutions - 1, "{model}");
        assert_eq!(of_kind(OperatorKind::Gemm), 3, "{model}");
        assert_eq!(ending(&graph, ".rescale").len(), 3 * convolutions - 1 + 3, "{model}");
        assert_eq!(of_kind(OperatorKind::Layout), 3 * convolutions - 1, "{model}");
        assert_eq!(ending(&graph, ".rotate_weight").len(), convolutions - 1, "{model}");
        // Samples, logits and the loss's gradient change between integers and fp32, and nothing else does.
        assert_eq!(ending(&graph, ".quantise").len(), 2, "{model}");
        assert_eq!(ending(&graph, ".dequantise").len(), 1, "{model}");
    }
}

#[test]
fn a_network_without_its_normalisation_is_the_plain_network() {
    // Both have convolutions with biases; one has a normalisation after each, which is removed with its weights,
    // statistics and gradients. The rest equals the other network, except for the modules' names.
    let (with, without) = (rewritten("vgg11-cifar-bn", "niti"), rewritten("vgg11-cifar", "niti"));
    assert_eq!(with.nodes.len(), without.nodes.len());
    for (a, b) in with.nodes.iter().zip(&without.nodes) {
        assert_eq!((&a.inputs, &a.outputs, &a.saved), (&b.inputs, &b.outputs, &b.saved), "{} and {}", a.name, b.name);
        assert_eq!((a.phase, a.rescales), (b.phase, b.rescales), "{}", a.name);
        assert_eq!(format!("{:?}", a.work), format!("{:?}", b.work), "{}", a.name);
    }
    let sizes = |graph: &TrainingGraph| graph.tensors.iter().map(|t| (t.bytes, t.role)).collect::<Vec<_>>();
    assert_eq!(sizes(&with), sizes(&without));
}

#[test]
fn a_value_that_has_other_readers_is_not_overwritten() {
    // x = conv; z = relu in place over bn(x); z + x. Without the normalisation the ReLU would overwrite x.
    let mut network = Network::new("fork");
    let samples = network.input(&[3, 8, 8]);
    let x = network.convolution("conv", samples, 4, Window::square(3, 1, 1), 1, false).unwrap();
    let y = network.batch_norm("bn", x).unwrap();
    let z = network.in_place("relu", y, Unary::Relu);
    let z = network.in_place("again", z, Unary::Relu);
    let sum = network.add("add", z, x).unwrap();
    let flat = network.flatten("flatten", sum).unwrap();
    let scores = network.linear("fc", flat, 10, true).unwrap();
    let target = network.target(1);
    network.cross_entropy("loss", scores, target).unwrap();
    let graph = of_network(&network, mixed::algorithm("niti").unwrap());
    let convolved = node(&graph, "conv", Phase::Forward).outputs[0];
    let relu = node(&graph, "relu", Phase::Forward);
    assert_eq!(relu.inputs, [convolved]);
    assert_ne!(relu.outputs, [convolved]);
    // A second one overwrites what the first made.
    let again = node(&graph, "again", Phase::Forward);
    assert_eq!((&again.inputs, &again.outputs), (&relu.outputs, &relu.outputs));
    let add = node(&graph, "add", Phase::Forward);
    assert_eq!(add.inputs, [relu.outputs[0], convolved]);
    // Backward needs the signs of the ReLU's output.
    assert_eq!(node(&graph, "relu", Phase::Backward).saved[0].tensor, relu.outputs[0]);
    // Two integers of different scales: a shift and an addition for each of 4 × 8 × 8 values, and for their gradients.
    assert_eq!(add.work.flops, Extent::per_sample(2 * 256));
    assert_eq!(node(&graph, "accumulate", Phase::Backward).work.flops, Extent::per_sample(2 * 256));
    // Without another reader the ReLU works in place.
    let plain = rewritten("vgg11-cifar-bn", "niti");
    let relu = node(&plain, "features.2", Phase::Forward);
    assert_eq!(relu.inputs, relu.outputs);
}

#[test]
fn samples_that_are_normalised_first_become_eight_bits_all_the_same() {
    let mut network = Network::new("first");
    let samples = network.input(&[3, 4, 4]);
    let x = network.batch_norm("bn", samples).unwrap();
    let x = network.flatten("flatten", x).unwrap();
    let scores = network.linear("fc", x, 10, true).unwrap();
    let target = network.target(1);
    network.cross_entropy("loss", scores, target).unwrap();
    let graph = of_network(&network, mixed::algorithm("niti").unwrap());
    let quantise = &graph.nodes[0];
    assert_eq!(graph.tensor(quantise.inputs[0]).role, Role::Input);
    // 48 values in four bytes and in one.
    assert_eq!(quantise.work.dram, Extent::per_sample(48 * 5));
    assert_eq!(node(&graph, "fc", Phase::Forward).inputs[0], quantise.outputs[0]);
    // The weight and the bias of the layer; those of the normalisation are gone.
    assert_eq!(parameter_bytes(&graph), 480 + 10);
}

#[test]
fn a_bias_trained_alone_needs_a_sum_and_no_layout() {
    let mut network = Network::new("bias");
    let samples = network.input(&[3, 4, 4]);
    let weight = network.weight("weight", &[4 * 3 * 9], Initial::Constant(0.0), false);
    let bias = network.weight("bias", &[4], Initial::Constant(0.0), true);
    let window = Window::square(3, 1, 1);
    let x = network.convolution_with("conv", samples, 4, window, 1, weight, Some(bias)).unwrap();
    let x = network.flatten("flatten", x).unwrap();
    let target = network.target(1);
    network.cross_entropy("loss", x, target).unwrap();
    let graph = of_network(&network, mixed::algorithm("mls").unwrap());
    assert!(graph.nodes.iter().all(|node| node.work.kind != OperatorKind::Layout));
    // 64 values of one byte in, four sums of 32 bits out, which stay as they are.
    let sum = node(&graph, "conv.weight_gradient", Phase::Backward);
    assert_eq!(sum.work.dram, Extent { fixed: 4 * 4, per_sample: 64 });
    assert!(graph.nodes.iter().all(|node| node.rescales.is_none() || node.phase == Phase::Forward));
    // A frozen weight has no master.
    assert_eq!(parameter_bytes(&graph), 108 + 4 * 4 + 4 * 4);
}

#[test]
fn a_normalisation_in_fp32_works_on_copies() {
    let graph = rewritten("vgg11-cifar-bn", "octo");
    // Eight normalisations: their input becomes fp32 and their output eight bits. Backward converts the gradient and
    // again the input, which is kept in eight bits, to fp32, and its own result to eight bits. In addition there are
    // the samples, the logits and the loss's gradient.
    assert_eq!(ending(&graph, ".quantise").len(), 8 + 8 + 2);
    assert_eq!(ending(&graph, ".dequantise").len(), 8 + 2 * 8 + 1);
    // 64 channels of 32 × 32.
    let values = 64 * 32 * 32;
    let forward = node(&graph, "features.1", Phase::Forward);
    assert_eq!(forward.work.precision, Some(Precision::Fp32));
    let made = graph.tensor(forward.outputs[0]);
    assert_eq!((made.bytes, made.name.as_str()), (Extent::per_sample(4 * values), "features.1"));
    // Values in and out; weight, bias, running mean and variance in, the batch's mean and deviation out.
    assert_eq!(forward.work.dram, Extent { fixed: 6 * 64 * 4, per_sample: 2 * 4 * values });
    let copies = |phase| {
        let named = graph.nodes.iter().filter(|node| node.name == "features.0.dequantise" && node.phase == phase);
        named.map(|node| (node.inputs[0], node.work.dram)).collect::<Vec<_>>()
    };
    let convolved = node(&graph, "features.0", Phase::Forward).outputs[0];
    for phase in [Phase::Forward, Phase::Backward] {
        assert_eq!(copies(phase), [(convolved, Extent::per_sample(5 * values))]);
    }
    // A scale and a shift of 64 channels stay fp32, with a float update.
    assert_eq!(tensor(&graph, "features.1.weight").bytes, Extent::fixed(64 * 4));
    assert_eq!(node(&graph, "features.1.weight.update", Phase::Update).work.precision, Some(Precision::Fp32));
    // No fp32 copy is kept for backward: saved tensors have eight bits, except for statistics and the loss.
    for saved in graph.saved() {
        let tensor = graph.tensor(saved);
        let small = tensor.bytes.per_sample == 0 || tensor.name.starts_with("loss");
        assert!(small || tensor.element != haversack_workloads::training_graph::Element::FullFloat, "{}", tensor.name);
    }
}

#[test]
fn a_normalisation_in_eight_bits_needs_no_copies() {
    let graph = rewritten("vgg11-cifar-bn", "wageubn");
    let norm = node(&graph, "features.1", Phase::Forward);
    assert_eq!(norm.work.precision, Some(Precision::Int8));
    // Values in and out in a byte; weight and bias in a byte; four statistics of 64 channels in 32 bits.
    assert_eq!(norm.work.dram, Extent { fixed: 64 * 2 + 4 * 64 * 4, per_sample: 2 * 65536 });
    assert_eq!(ending(&graph, ".dequantise").len(), 1);
    // Samples, the loss's gradient, and 8 × 4 + 2 weights from their masters.
    assert_eq!(ending(&graph, ".quantise").len(), 2 + 34);
    assert!(graph.tensors.iter().any(|tensor| tensor.name == "features.1.running_mean" && tensor.role == Role::Buffer));
}
