//! The built-in models without a table of PyTorch's: published weights and operations, saved bytes by
//! hand; and for all models, the inputs that they take and the graphs that they differentiate into.

use std::collections::HashSet;

use haversack_workloads::autograd::{self, EagerRules, Optimiser};
use haversack_workloads::counts::count;
use haversack_workloads::models::{self, MODELS, Sample};
use haversack_workloads::{Phase, Role, WorkloadError};

const FP32: u64 = 4;

/// Saved bytes that every classifier ends with: the log-probabilities of a sample.
const fn log_softmax(classes: u64) -> u64 {
    classes * FP32
}

/// Asserts the bytes that the forward pass keeps, `fixed + per_sample × batch`.
fn assert_saved(id: &str, fixed: u64, per_sample: u64) {
    let network = models::build(id, None).unwrap();
    for batch in [1, 8, 32] {
        assert_eq!(count(&network, batch).saved_act_bytes, fixed + per_sample * batch, "{id} at batch {batch}");
    }
}

#[test]
fn weights_are_those_of_the_published_networks() {
    for (id, parameters, trainable) in [
        // torchvision's published counts.
        ("resnet34", 21_797_672, 21_797_672),
        ("densenet121", 7_978_856, 7_978_856),
        ("vgg19", 143_667_240, 143_667_240),
        ("shufflenetv2", 2_278_604, 2_278_604),
        ("swin-t", 28_288_354, 28_288_354),
        // 21,797,672 − stem 64·3·49 + 64·3·9 − head 513·1000 + 513·10.
        ("resnet34-cifar", 21_282_122, 21_282_122),
        // He et al. give 0.27 M. Their option A has 269,722; the two projections add 16·32 + 2·32 + 32·64 + 2·64.
        ("resnet20-cifar", 272_474, 272_474),
        // Stem 432 + 32; stages 2·2,304 + 64, 4,608 + 9,216 + 128 + 576, 18,432 + 36,864 + 256 + 2,176; head 650.
        ("resnet8-cifar", 78_042, 78_042),
        // ALBERT-base's published 11,683,584 and 2·(768 + 1) of the classifier.
        ("albert-base", 11_685_122, 11_685_122),
        // GPT-2 medium's published 354,823,168, and 24 adapters of 4·1024 + 4·3072.
        ("gpt2-medium-lora", 355_216_384, 393_216),
        // Tables (256 + 64 + 1)·64, norm 128; 2 layers of 4·64·65 + 256·65 + 64·257 + 256, each with adapters
        // 2·(4·64 + 64·4); the head 64·65 + 2·65, once trained and once kept by peft. The adapted 2·2·64·65 are frozen.
        ("transformer2-lora", 131_268, 131_268 - 4_290 - 16_640),
    ] {
        let counts = count(&models::build(id, None).unwrap(), 1);
        assert_eq!(counts.parameters, parameters, "{id}");
        assert_eq!(counts.trainable_parameters, trainable, "{id}");
    }
}

#[test]
fn operations_are_those_of_the_published_networks() {
    // torchvision publishes multiply-adds of one sample in thousands of millions, rounded to a thousandth.
    for (id, published) in
        [("resnet34", 3.664), ("densenet121", 2.834), ("vgg19", 19.632), ("shufflenetv2", 0.145), ("swin-t", 4.491)]
    {
        let counted = count(&models::build(id, None).unwrap(), 1).forward_flops as f64 / 2e9;
        assert!((counted - published).abs() < 0.0006, "{id}: {counted} against {published}");
    }
}

#[test]
fn resnet34_keeps_two_maps_a_convolution() {
    // Each of 36 normalised convolutions keeps its output, statistics of 8 bytes a channel and, but for the
    // 3 projections, a ReLU's output over it or over the sum (of which the last is only the ReLU's).
    let (mut maps, mut channels) = (2 * 64 * 112 * 112, 64);
    for (width, side, blocks) in [(64, 56, 3), (128, 28, 4), (256, 14, 6), (512, 7, 3)] {
        let projections = u64::from(width != 64);
        maps += (4 * blocks + projections) * width * side * side;
        channels += (2 * blocks + projections) * width;
    }
    // The pooling's 64-bit indices and its output, the first block's input.
    let pooling = 64 * 56 * 56 * (8 + FP32);
    assert_saved("resnet34", channels * 8 + 4, maps * FP32 + pooling + 512 * FP32 + log_softmax(1000));
}

#[test]
fn vgg19_keeps_relus_pools_and_indices() {
    let mut bytes = 0;
    for (channels, side, convolutions) in [(64, 224, 2), (128, 112, 2), (256, 56, 4), (512, 28, 4), (512, 14, 4)] {
        // ReLU's outputs; the pooling's indices (8 bytes) and its output, the next layer's input.
        bytes += convolutions * channels * side * side * FP32 + channels * side * side / 4 * (8 + FP32);
    }
    // The adaptive pooling's output; twice a ReLU, a dropout mask and a dropped input.
    bytes += 512 * 49 * FP32 + 2 * 3 * 4096 * FP32 + log_softmax(1000);
    assert_saved("vgg19", 4, bytes);
}

#[test]
fn densenet121_keeps_every_concatenation() {
    let (mut bytes, mut channels) = (0, 64);
    // The stem: convolution, ReLU, pooling's indices. The pooled map is only concatenated, hence not kept.
    bytes += 2 * 64 * 112 * 112 * FP32 + 64 * 56 * 56 * 8;
    let mut normalised = 64;
    for (side, layers, last) in [(56, 6, false), (28, 12, false), (14, 24, false), (7, 16, true)] {
        let positions: u64 = side * side;
        for _ in 0..layers {
            // The concatenation and its ReLU; the bottleneck's 128 channels and their ReLU.
            bytes += 2 * (channels + 128) * positions * FP32;
            normalised += channels + 128;
            channels += 32;
        }
        // The block's concatenation and its ReLU; a transition's convolution is kept by its average pooling.
        bytes += 2 * channels * positions * FP32;
        normalised += channels;
        if !last {
            channels /= 2;
            bytes += channels * positions * FP32;
        }
    }
    assert_saved("densenet121", normalised * 8 + 4, bytes + 1024 * FP32 + log_softmax(1000));
}

#[test]
fn shufflenetv2_keeps_whole_shuffled_maps() {
    // The stem: convolution, ReLU, pooling's indices and output.
    let mut bytes = 2 * 24 * 112 * 112 * FP32 + 24 * 56 * 56 * (8 + FP32);
    let (mut normalised, mut channels) = (24, 24);
    for (units, out, side) in [(4, 116, 28), (8, 232, 14), (4, 464, 7)] {
        let (half, positions): (u64, u64) = (out / 2, side * side);
        // The halving unit, left: depthwise convolution, its normalisation, convolution; the last ReLU is only
        // kept by itself. Right: convolution and ReLU at the larger side, then the same three and the ReLU.
        bytes += (2 * channels + 2 * half) * positions * FP32;
        bytes += (2 * half * 4 * positions + 2 * half * positions + 2 * half * positions) * FP32;
        normalised += channels + half + 3 * half;
        // Every other unit: convolution, ReLU, depthwise convolution, its normalisation, convolution, ReLU.
        bytes += (units - 1) * 6 * half * positions * FP32;
        normalised += (units - 1) * 3 * half;
        // Each unit's shuffled map is kept whole by the convolution that reads half of it, or all.
        bytes += units * out * positions * FP32;
        channels = out;
    }
    bytes += 2 * 1024 * 49 * FP32;
    normalised += 1024;
    assert_saved("shufflenetv2", normalised * 8 + 4, bytes + 1024 * FP32 + log_softmax(1000));
}

#[test]
fn swin_t_keeps_sixteen_maps_a_block_and_the_softmax() {
    let mut bytes = 0;
    let mut drops = 0;
    for (channels, side, heads, blocks) in [(96, 56, 3, 2), (192, 28, 6, 2), (384, 14, 12, 6), (768, 7, 24, 2)] {
        let positions: u64 = side * side;
        let map = channels * positions * FP32;
        // Two normalisations' inputs with mean and deviation; inputs of the fused projection, the output
        // projection and the two dense layers (1 + 1 + 1 + 4); q, k, v; GELU's input (4).
        // The softmax: 49×49 for each head and window of 49 positions.
        let softmax = positions / 49 * heads * 49 * 49 * FP32;
        bytes += blocks * (16 * map + 4 * positions * FP32 + softmax);
        drops += 2 * blocks;
        // Before the stage: the normalisation of the patches (its input and statistics), or of the four
        // merged maps (twice this stage's size) with the reduction's input.
        bytes += if side == 56 { map } else { 2 * 2 * map } + 2 * positions * FP32;
    }
    // All blocks but the first may be dropped, two factors each. The end: normalisation, pooled features.
    bytes += (drops - 2) * FP32 + (768 * 49 + 2 * 49) * FP32 + 768 * FP32 + log_softmax(1000);
    assert_saved("swin-t", 4, bytes);
}

#[test]
fn albert_keeps_one_softmax_and_four_wide_maps_a_layer() {
    // A map is 128 tokens × 768 features. Each of 12 layers: its input; q, k, v; the context; both
    // normalisations' inputs with statistics; the dense layer's input; 4 maps of 4·768 of the stepwise GELU and
    // its output; one softmax of 12 heads.
    let map = 128 * 768 * FP32;
    let layer = (1 + 3 + 1 + 2 + 1 + 5 * 4) * map + 4 * 128 * FP32 + 12 * 128 * 128 * FP32;
    // The embeddings' normalisation and the projection's input, 128 features wide.
    let embeddings = 2 * 128 * 128 * FP32 + 2 * 128 * FP32;
    // The last map, kept whole for its first token; tanh, dropout mask, dropped features.
    let head = map + 3 * 768 * FP32 + log_softmax(2);
    assert_saved("albert-base", 4, 12 * layer + embeddings + head);
}

#[test]
fn gpt2_keeps_what_frozen_weights_leave() {
    // A map is 512 tokens × 1024 features. Each of 24 blocks: both normalisations' inputs with statistics; the
    // adapter's input and its 4 features; q, k, v; softmax, mask and dropped weights of 16 heads; the stepwise
    // GELU's 4 maps of 4·1024 (the frozen layer after it keeps nothing); two dropout masks.
    let map = 512 * 1024 * FP32;
    let statistics = 2 * 512 * FP32;
    let block = (2 + 1 + 3 + 4 * 4 + 2) * map + 2 * statistics + 512 * 4 * FP32 + 3 * 16 * 512 * 512 * FP32;
    // No gradient reaches the first block's normalisation; the last normalisation takes its place.
    // Scores of 511 tokens and their labels' copy. Fixed: the divisor of each block's scores, and the loss's weight.
    let head = 511 * log_softmax(50257) + 511 * 8;
    assert_saved("gpt2-medium-lora", 24 * FP32 + 4, 24 * block + head);
    // Backward needs no weights' gradients but the adapters', hence about twice the forward pass in all.
    let counts = count(&models::build("gpt2-medium-lora", None).unwrap(), 8);
    let ratio = counts.training_flops as f64 / counts.forward_flops as f64;
    assert!((2.055..2.065).contains(&ratio), "{ratio}");
}

#[test]
fn every_model_differentiates_into_a_graph_that_reads_what_autograd_saved() {
    for model in MODELS.iter() {
        let network = models::build(model.id, None).unwrap();
        let rules = EagerRules { optimiser: Optimiser::Momentum, ..EagerRules::default() };
        let graph = autograd::differentiate(&network, rules).unwrap();
        let saved: u64 = graph.saved().iter().map(|&tensor| graph.tensor(tensor).bytes.at(8)).sum();
        assert_eq!(saved, count(&network, 8).saved_act_bytes, "{}", model.id);

        let mut written: HashSet<u32> = HashSet::new();
        let mut updated: HashSet<u32> = HashSet::new();
        for node in &graph.nodes {
            for &input in &node.inputs {
                let role = graph.tensor(input).role;
                let given = role.is_state() || matches!(role, Role::Input | Role::Target);
                assert!(given || written.contains(&input), "{}: {} reads what is not there", model.id, node.name);
            }
            written.extend(&node.outputs);
            if node.phase == Phase::Update {
                updated.extend(
                    node.outputs.iter().filter(|&&t| graph.tensor(t).role == Role::Parameter { trainable: true }),
                );
            }
        }
        let trainable = network.parameters.iter().filter(|parameter| parameter.trainable).count();
        assert_eq!(updated.len(), trainable, "{}: every trained weight is updated once", model.id);
    }
}

#[test]
fn models_have_names_of_their_own_and_a_line_about_them() {
    let ids: HashSet<_> = MODELS.iter().map(|model| model.id).collect();
    assert_eq!(ids.len(), MODELS.len());
    for model in MODELS.iter() {
        let about = model.about;
        assert!(!about.is_empty() && about.len() <= 90 && !about.contains('\n'), "{}: {about}", model.id);
    }
}

#[test]
fn other_inputs_change_the_samples_only() {
    for model in MODELS.iter() {
        let own = count(&models::build(model.id, None).unwrap(), 1);
        let other: &[u64] = match model.sample {
            Sample::Image { own: [channels, ..] } => &[channels, 256, 192],
            Sample::Tokens { .. } => &[48],
        };
        let counts = count(&models::build(model.id, Some(other)).unwrap(), 1);
        assert_ne!(counts.saved_bytes, own.saved_bytes, "{}", model.id);
        // Networks that flatten their last map have a dense layer whose size depends on it.
        if !(["lenet5", "logistic", "mlp"].contains(&model.id)
            || model.id.contains("vgg") && counts.parameters != own.parameters)
        {
            assert_eq!(counts.parameters, own.parameters, "{}", model.id);
        }
    }
}

#[test]
fn partial_windows_and_maps_are_kept() {
    let map_of = |id: &str, input: &[u64], module: &str| {
        let network = models::build(id, Some(input)).unwrap();
        let node = network.nodes.iter().rfind(|node| node.module == module).expect(module);
        network.shape(node.output).to_string()
    };
    // 66 → (66 − 3) / 2 + 1 = 32 → a last, partial window of 3 at stride 2: ⌈29 / 2⌉ + 1 = 16.
    assert_eq!(map_of("squeezenet1-1", &[3, 66, 66], "features.2"), "Bx64x16x16");
    // 100 / 4 = 25 → padded to 4×4 windows of 7, back to 25, then ⌈25 / 2⌉ = 13.
    assert_eq!(map_of("swin-t", &[3, 100, 100], "features.1.1.attn.qkv"), "16Bx49x288");
    assert_eq!(map_of("swin-t", &[3, 100, 100], "features.1.1.attn.crop"), "Bx25x25x96");
    assert_eq!(map_of("swin-t", &[3, 100, 100], "features.2.reduction"), "Bx13x13x192");
}

#[test]
fn inputs_that_do_not_fit_are_refused_with_what_fits() {
    for (id, input, expected) in [
        ("resnet50", &[64][..], "an input of 64 does not fit; it takes channels x height x width"),
        ("resnet50", &[3, 0, 32], "an input of 3x0x32 does not fit"),
        ("resnet50", &[3, 1 << 40, 1 << 40], "sides up to 8192"),
        ("vgg16", &[3, 31, 64], "an input of 3x31x64 is too small for features.30; it takes"),
        ("inceptionv3", &[3, 74, 75], "an input of 3x74x75 is too small for Mixed_7a.branch3x3_2"),
        ("bert-base", &[3, 32, 32], "it takes a number of tokens from 1 to 512; its own is 128"),
        ("bert-base", &[513], "an input of 513 does not fit"),
        ("gpt2-medium-lora", &[1], "it takes a number of tokens from 2 to 1024; its own is 512"),
    ] {
        match models::build(id, Some(input)) {
            Err(error @ WorkloadError::Input { .. }) => {
                let message = error.to_string();
                assert!(message.contains(expected) && message.contains(id), "{message}");
            }
            other => panic!("{id} with {input:?}: {:?}", other.map(|network| network.name)),
        }
    }
    // PyTorch's own least size of Inception v3.
    assert!(models::build("inceptionv3", Some(&[3, 75, 75])).is_ok());
}

#[test]
fn an_unknown_model_is_met_with_the_nearest() {
    match models::build("resnet-50", None) {
        Err(error) => assert_eq!(error.to_string(), "unknown model 'resnet-50'; did you mean 'resnet50'?"),
        Ok(_) => panic!("there is no such model"),
    }
}
