//! VGG (Simonyan and Zisserman, "Very deep convolutional networks", ICLR 2015): torchvision's networks
//! for ImageNet, and the common CIFAR ones with a single dense layer.

use super::Built;
use super::blocks::{Width, classifier};
use crate::{Network, ValueId, Window};

/// Convolutions of each stage.
pub(super) type Stages = [u64; 5];

pub(super) const VGG11: Stages = [1, 1, 2, 2, 2];
pub(super) const VGG16: Stages = [2, 2, 3, 3, 3];
pub(super) const VGG19: Stages = [2, 2, 4, 4, 4];
const CHANNELS: [u64; 5] = [64, 128, 256, 512, 512];

pub(super) fn imagenet(n: &mut Network, input: &[u64], classes: u64, width: Width, stages: Stages) -> Built {
    let x = n.input(input);
    let x = features(n, x, stages.into_iter().zip(CHANNELS), width, false)?;
    let x = n.adaptive_average_pool("avgpool", x, 7)?;
    let mut x = n.flatten("flatten", x)?;
    for first in [0, 3] {
        x = n.linear(&format!("classifier.{first}"), x, width.of(4096), true)?;
        x = n.relu_in_place(&format!("classifier.{}", first + 1), x);
        x = n.dropout(&format!("classifier.{}", first + 2), x, 0.5);
    }
    classifier(n, "classifier.6", x, classes)
}

pub(super) fn cifar(n: &mut Network, input: &[u64], classes: u64, width: Width, stages: Stages, norm: bool) -> Built {
    let x = n.input(input);
    let x = features(n, x, stages.into_iter().zip(CHANNELS), width, norm)?;
    let x = n.flatten("flatten", x)?;
    classifier(n, "classifier", x, classes)
}

/// Three stages of two normalised convolutions, 32, 64 and 128 channels wide.
pub(super) fn vgg_small(n: &mut Network, input: &[u64], classes: u64, width: Width) -> Built {
    let x = n.input(input);
    let x = features(n, x, [(2, 32), (2, 64), (2, 128)].into_iter(), width, true)?;
    let x = n.flatten("flatten", x)?;
    classifier(n, "classifier", x, classes)
}

/// Stages of 3×3 convolutions, each halved by max-pooling.
fn features(
    n: &mut Network,
    x: ValueId,
    stages: impl Iterator<Item = (u64, u64)>,
    width: Width,
    norm: bool,
) -> Built<ValueId> {
    let mut x = x;
    let mut index = 0;
    let mut name = || {
        index += 1;
        format!("features.{}", index - 1)
    };
    for (convolutions, channels) in stages {
        for _ in 0..convolutions {
            x = n.convolution(&name(), x, width.of(channels), Window::square(3, 1, 1), 1, true)?;
            if norm {
                x = n.batch_norm(&name(), x)?;
            }
            x = n.relu_in_place(&name(), x);
        }
        x = n.max_pool(&name(), x, Window::square(2, 2, 0), false)?;
    }
    Ok(x)
}
