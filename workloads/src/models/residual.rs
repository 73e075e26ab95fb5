//! ResNet (He et al., "Deep residual learning for image recognition", CVPR 2016) as torchvision builds it.
//!
//! The CIFAR variants of ResNet-18 and -34 replace the stem by one 3×3 convolution without pooling.
//! ResNet-50 of the paper halves maps in the first convolution of a block, torchvision's in the second.
//! ResNet-8 and -20 are the paper's own CIFAR networks (section 4.2: 6n+2 layers, 16, 32 and 64
//! channels) with its option B, a projection where the shape changes.
//!
//! DenseNet-121 (Huang et al., "Densely connected convolutional networks", CVPR 2017) as torchvision
//! builds it with `memory_efficient=False`: every layer concatenates all features before it anew.

use super::Built;
use super::blocks::{Convolution, End, Width, convolution_norm, pooled_classifier};
use crate::{Network, ValueId, Window};

/// What tells one ResNet from another.
pub(super) struct ResNet {
    /// Blocks of each stage.
    blocks: &'static [u64],
    /// Channels of the first stage; each later stage has twice as many.
    width: u64,
    /// Blocks of three convolutions, four times as wide at the end, instead of two.
    bottleneck: bool,
    /// Whether a block of three halves its map in the first convolution, as the paper's, and not in the second.
    first_halves: bool,
    /// A stem for small images: 3×3, no pooling.
    small_images: bool,
}

const fn imagenet(blocks: &'static [u64], bottleneck: bool) -> ResNet {
    ResNet { blocks, width: 64, bottleneck, first_halves: false, small_images: false }
}

const fn cifar(blocks: &'static [u64], width: u64) -> ResNet {
    ResNet { blocks, width, bottleneck: false, first_halves: false, small_images: true }
}

pub(super) const RESNET18: ResNet = imagenet(&[2, 2, 2, 2], false);
pub(super) const RESNET34: ResNet = imagenet(&[3, 4, 6, 3], false);
pub(super) const RESNET50: ResNet = imagenet(&[3, 4, 6, 3], true);
pub(super) const RESNET50_V1: ResNet = ResNet { first_halves: true, ..RESNET50 };
pub(super) const RESNET18_CIFAR: ResNet = cifar(&[2, 2, 2, 2], 64);
pub(super) const RESNET34_CIFAR: ResNet = cifar(&[3, 4, 6, 3], 64);
pub(super) const RESNET8_CIFAR: ResNet = cifar(&[1, 1, 1], 16);
pub(super) const RESNET20_CIFAR: ResNet = cifar(&[3, 3, 3], 16);

pub(super) fn build(n: &mut Network, input: &[u64], classes: u64, share: Width, family: &ResNet) -> Built {
    let x = n.input(input);
    let (kernel, stride, padding) = if family.small_images { (3, 1, 1) } else { (7, 2, 3) };
    let stem = Convolution::square(share.of(family.width), kernel, stride, padding);
    let mut x = convolution_norm(n, "", ["conv1", "bn1", "relu"], x, stem, End::Relu)?;
    if !family.small_images {
        x = n.max_pool("maxpool", x, Window::square(3, 2, 1), false)?;
    }
    let mut width = share.of(family.width);
    for (stage, &blocks) in family.blocks.iter().enumerate() {
        for block in 0..blocks {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let name = format!("layer{}.{block}", stage + 1);
            x = residual_block(n, &name, x, width, stride, family)?;
        }
        width *= 2;
    }
    pooled_classifier(n, "fc", x, classes)
}

fn residual_block(n: &mut Network, name: &str, x: ValueId, width: u64, stride: u64, family: &ResNet) -> Built<ValueId> {
    let (convolutions, out) = if family.bottleneck {
        let out = 4 * width;
        let (first, second) = if family.first_halves { (stride, 1) } else { (1, stride) };
        let middle = Convolution::square(width, 3, second, 1);
        (vec![Convolution::square(width, 1, first, 0), middle, Convolution::square(out, 1, 1, 0)], out)
    } else {
        (vec![Convolution::square(width, 3, stride, 1), Convolution::square(width, 3, 1, 1)], width)
    };
    let mut y = x;
    for (number, &convolution) in (1..).zip(&convolutions) {
        let parts = ["conv", "bn", "relu"].map(|part| format!(".{part}{number}"));
        let end = if number == convolutions.len() { End::Linear } else { End::Relu };
        y = convolution_norm(n, name, parts.each_ref().map(String::as_str), y, convolution, end)?;
    }
    let shortcut = if stride != 1 || n.shape(x).size(1) != out {
        let parts = [".downsample.0", ".downsample.1", ""];
        convolution_norm(n, name, parts, x, Convolution::square(out, 1, stride, 0), End::Linear)?
    } else {
        x
    };
    let y = n.add(&format!("{name}.add"), y, shortcut)?;
    Ok(n.relu_in_place(&format!("{name}.relu"), y))
}

/// Layers of each dense block.
const LAYERS: [u64; 4] = [6, 12, 24, 16];
/// Channels that each layer adds.
const GROWTH: u64 = 32;
/// Channels of a layer's bottleneck, in units of the growth.
const BOTTLENECK: u64 = 4;

pub(super) fn densenet121(n: &mut Network, input: &[u64], classes: u64) -> Built {
    let x = n.input(input);
    let parts = [".conv0", ".norm0", ".relu0"];
    let x = convolution_norm(n, "features", parts, x, Convolution::square(64, 7, 2, 3), End::Relu)?;
    let mut x = n.max_pool("features.pool0", x, Window::square(3, 2, 1), false)?;
    for (i, &layers) in LAYERS.iter().enumerate() {
        x = dense_block(n, &format!("features.denseblock{}", i + 1), x, layers)?;
        if i + 1 < LAYERS.len() {
            x = transition(n, &format!("features.transition{}", i + 1), x)?;
        }
    }
    let x = n.batch_norm("features.norm5", x)?;
    let x = n.relu_in_place("relu", x);
    pooled_classifier(n, "classifier", x, classes)
}

fn dense_block(n: &mut Network, name: &str, x: ValueId, layers: u64) -> Built<ValueId> {
    let mut features = vec![x];
    for layer in 1..=layers {
        let name = format!("{name}.denselayer{layer}");
        // Even the first layer's lone input is concatenated, and so copied.
        let y = n.concat(&format!("{name}.cat"), &features, 1)?;
        let y = norm_relu_convolution(n, [&name, "norm1", "relu1", "conv1"], y, BOTTLENECK * GROWTH, 1)?;
        features.push(norm_relu_convolution(n, [&name, "norm2", "relu2", "conv2"], y, GROWTH, 3)?);
    }
    n.concat(&format!("{name}.cat"), &features, 1)
}

fn transition(n: &mut Network, name: &str, x: ValueId) -> Built<ValueId> {
    let channels = n.shape(x).size(1) / 2;
    let x = norm_relu_convolution(n, [name, "norm", "relu", "conv"], x, channels, 1)?;
    n.average_pool(&format!("{name}.pool"), x, Window::square(2, 2, 0))
}

fn norm_relu_convolution(
    n: &mut Network,
    [name, norm, relu, convolution]: [&str; 4],
    x: ValueId,
    channels: u64,
    kernel: u64,
) -> Built<ValueId> {
    let x = n.batch_norm(&format!("{name}.{norm}"), x)?;
    let x = n.relu_in_place(&format!("{name}.{relu}"), x);
    let window = Window::square(kernel, 1, kernel / 2);
    n.convolution(&format!("{name}.{convolution}"), x, channels, window, 1, false)
}
