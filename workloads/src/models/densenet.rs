//! DenseNet-121 (Huang et al., "Densely connected convolutional networks", CVPR 2017) as torchvision
//! builds it with `memory_efficient=False`: every layer concatenates all features before it anew.

use super::Built;
use super::blocks::{Convolution, End, convolution_norm, pooled_classifier};
use crate::network::{Network, ValueId};
use crate::operator::Window;

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
