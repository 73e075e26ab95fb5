//! The differences between the built-in algorithms.

use haversack_devices::work::{OperatorKind, Precision};
use haversack_workloads::operator::Window;
use haversack_workloads::{Extent, Initial, Phase, Role};

use super::*;

#[test]
fn they_are_the_five_that_mandheling_supports() {
    // Mandheling, table 1, in its order: ids, formats of the update, and whether batch normalisation is theirs.
    let ids: Vec<&str> = mixed::algorithms().unwrap().iter().map(|algorithm| algorithm.id.as_str()).collect();
    assert_eq!(ids, ["niti", "octo", "adaptive-fixed-point", "wageubn", "mls"]);
    let updates = mixed::algorithms().unwrap().iter().map(|algorithm| algorithm.weight.update);
    use mixed::Update::{Fp24, Fp32, Int8};
    assert_eq!(updates.collect::<Vec<_>>(), [Int8, Int8, Fp32, Fp24, Fp32]);
    for algorithm in mixed::algorithms().unwrap() {
        let parts = [&algorithm.translation.source, &algorithm.backpropagation.source, &algorithm.weight.source];
        let sources = parts.into_iter().chain([&algorithm.optimiser.source]);
        assert!(sources.chain(algorithm.passes.iter().map(|pass| &pass.source)).all(|source| source.len() > 20));
    }
}

#[test]
fn a_float_update_keeps_a_master() {
    // The eager graph stores every element in four bytes.
    let elements = parameter_bytes(&eager("lenet5")) / 4;
    assert_eq!(parameter_bytes(&rewritten("lenet5", "niti")), elements);
    // Biases of 6 + 16 + 120 + 84 + 62 = 288 elements in four bytes each, weights in one byte; masters in four.
    assert_eq!(parameter_bytes(&rewritten("lenet5", "octo")), elements + 3 * 288);
    assert_eq!(parameter_bytes(&rewritten("lenet5", "mls")), elements + 3 * 288 + 4 * elements);
    assert_eq!(parameter_bytes(&rewritten("lenet5", "wageubn")), elements + 4 * elements);

    let graph = rewritten("lenet5", "mls");
    let update = node(&graph, "conv2.weight.update", Phase::Update);
    let quantise = node(&graph, "conv2.weight.quantise", Phase::Update);
    let weight = node(&graph, "conv2", Phase::Forward).inputs[1];
    assert_eq!(update.work.precision, Some(Precision::Fp32));
    assert_eq!(graph.tensor(update.outputs[0]).role, Role::Parameter { trainable: true });
    // 2400 weights: the master in and out, the gradient in; then the master in and the weight out.
    assert_eq!(update.work.dram, Extent::fixed(2400 * (4 + 4 + 1)));
    assert_eq!(quantise.work.dram, Extent::fixed(2400 * (4 + 1)));
    assert_eq!((quantise.inputs.as_slice(), quantise.outputs.as_slice()), (&update.outputs[..], &[weight][..]));
    // Descent, and the gradient times its scale.
    assert_eq!(update.work.flops, Extent::fixed(2400 * 3));
    // 32-bit biases take the sums directly: only the 2400 weights' gradients are rescaled.
    let rescale = node(&graph, "conv2.weight_gradient.rescale", Phase::Backward);
    assert_eq!(rescale.work.dram, Extent::fixed(2400 * 9));
    assert_eq!(tensor(&graph, "conv2.bias.gradient").bytes, Extent::fixed(16 * 4));
}

#[test]
fn states_have_the_format_that_the_algorithm_names() {
    let network = models::build("lenet5", None).unwrap();
    let elements = parameter_bytes(&eager("lenet5")) / 4;
    for (id, bytes) in [("niti", 4), ("wageubn", 2), ("mls", 4)] {
        let graph = mixed::rewrite(&network, mixed::algorithm(id).unwrap(), Optimiser::Adam).unwrap();
        let states = graph.bytes_of(|role| role == Role::OptimiserState);
        assert_eq!(states, Extent::fixed(2 * elements * bytes), "{id}");
    }
    // Weights of a normalisation in fp32 keep fp32 states: eight of 2752 channels in all, a scale and a shift each.
    let network = models::build("vgg11-cifar-bn", None).unwrap();
    let mut text = include_str!("../../../algorithms/octo.toml").to_owned();
    text = text.replace("state = \"int32\"", "state = \"int16\"");
    let halved = Algorithm::parse("octo.toml", &text).unwrap();
    let graph = mixed::rewrite(&network, &halved, Optimiser::Momentum).unwrap();
    let elements = parameter_bytes(&eager("vgg11-cifar-bn")) / 4;
    let norms = 2 * 2752;
    let states = graph.bytes_of(|role| role == Role::OptimiserState);
    assert_eq!(states, Extent::fixed(2 * (elements - norms) + 4 * norms));
}

#[test]
fn adaptive_fixed_point_widens_both_ends() {
    let graph = rewritten("vgg11-cifar", "adaptive-fixed-point");
    let wide: Vec<&str> =
        graph.nodes.iter().filter(|n| n.work.precision == Some(Precision::Int16)).map(|n| n.name.as_str()).collect();
    assert_eq!(
        wide,
        [
            "features.0",
            "classifier",
            "classifier.weight_gradient",
            "classifier.input_gradient",
            "features.0.weight_gradient"
        ]
    );
    // 64 × 3 × 9 weights in two bytes, their gradient in one; 128 × 64 × 9 of the next layer in one.
    assert_eq!(tensor(&graph, "features.0.weight").bytes, Extent::fixed(1728 * 2));
    assert_eq!(tensor(&graph, "features.0.weight.gradient").bytes, Extent::fixed(1728));
    assert_eq!(tensor(&graph, "features.3.weight").bytes, Extent::fixed(73728));
}

#[test]
fn a_shared_weight_suits_its_widest_layer_and_has_one_gradient() {
    let mut network = Network::new("shared");
    let samples = network.input(&[4, 6, 6]);
    let weight = network.weight("weight", &[4 * 4 * 9], Initial::Constant(0.0), true);
    let mut x = samples;
    for name in ["first", "second"] {
        x = network.convolution_with(name, x, 4, Window::square(3, 1, 1), 1, weight, None).unwrap();
    }
    let x = network.flatten("flatten", x).unwrap();
    let scores = network.linear("fc", x, 10, false).unwrap();
    let target = network.target(1);
    network.cross_entropy("loss", scores, target).unwrap();
    let graph = of_network(&network, mixed::algorithm("adaptive-fixed-point").unwrap());
    // The first layer wants 16 bits, the second 8: 144 weights in two bytes, stored once, and an fp32 master.
    assert_eq!(tensor(&graph, "weight").bytes, Extent::fixed(144 * 2));
    assert_eq!(tensor(&graph, "weight.master").bytes, Extent::fixed(144 * 4));
    let of = |name: &str| node(&graph, &format!("{name}.weight_gradient"), Phase::Backward).outputs.clone();
    assert_eq!(of("first"), of("second"));
    assert_eq!(node(&graph, "weight.update", Phase::Update).inputs[1], of("first")[0]);
}

#[test]
fn what_goes_with_a_new_scale_runs_when_the_scale_is_taken() {
    let graph = rewritten("lenet5", "adaptive-fixed-point");
    // Five forward products, five gradients of weights, four of inputs.
    let measured = ending(&graph, ".error_measurement");
    assert_eq!(measured.len(), 14);
    assert!(measured.iter().all(|node| node.rescales == Some(node.outputs[0])));
    // A magnitude and a sum, before and after, of 4704 values; four bytes and one are read.
    let first = node(&graph, "conv1.error_measurement", Phase::Forward);
    assert_eq!((first.work.flops, first.work.dram), (Extent::per_sample(4704 * 4), Extent::per_sample(4704 * 5)));
    assert!(ending(&rewritten("lenet5", "octo"), ".compensation").iter().all(|node| node.rescales.is_none()));
}

#[test]
fn scales_that_are_not_dynamic_are_not_taken_anew() {
    assert!(rewritten("lenet5", "octo").nodes.iter().all(|node| node.rescales.is_none()));
    // WAGEUBN: five gradients of weights, four of inputs; activations lie on a fixed grid.
    let graph = rewritten("lenet5", "wageubn");
    let rescaled = ending(&graph, ".rescale");
    assert_eq!(rescaled.len(), 9);
    assert!(rescaled.iter().all(|node| node.phase == Phase::Backward));
}

#[test]
fn sums_between_groups_are_counted_by_their_channels() {
    let graph = rewritten("lenet5", "mls");
    let flops = |name: &str, phase| node(&graph, &format!("{name}.group_accumulation"), phase).work.flops;
    // conv1 has one input channel: as many sums as outputs, 4704, a multiplication and an addition each.
    assert_eq!(flops("conv1", Phase::Forward), Extent::per_sample(4704 * 2));
    // conv2 has six: 1600 × 6 sums of 25 products; its input's gradient has as many multiply-adds in groups of 25.
    assert_eq!(flops("conv2", Phase::Forward), Extent::per_sample(9600 * 2));
    assert_eq!(flops("conv2.input_gradient", Phase::Backward), Extent::per_sample(9600 * 2));
    // The gradient of its 2400 weights has one group an image, of 10 × 10 products.
    assert_eq!(flops("conv2.weight_gradient", Phase::Backward), Extent::per_sample(2400 * 2));
    // A linear layer has one group a row: as many sums as outputs.
    assert_eq!(flops("fc1", Phase::Forward), Extent::per_sample(120 * 2));
    // It is work of the product's loops: at its rate, but in fp32, and on sums that stay where they are made.
    let of_conv2 = node(&graph, "conv2.group_accumulation", Phase::Forward);
    assert_eq!((of_conv2.work.kind, of_conv2.work.product), (OperatorKind::Convolution, None));
    assert_eq!(of_conv2.work.precision, Some(Precision::Fp32));
    assert!(ending(&graph, ".group_accumulation").iter().all(|node| node.work.dram.is_zero()));
}
