//! ResNet (He et al., "Deep residual learning for image recognition", CVPR 2016) as torchvision builds it.
//!
//! The CIFAR variants of ResNet-18 and -34 replace the stem by one 3×3 convolution without pooling.
//! ResNet-50 of the paper halves maps in the first convolution of a block, torchvision's in the second.
//! ResNet-8 and -20 are the paper's own CIFAR networks (section 4.2: 6n+2 layers, 16, 32 and 64
//! channels) with its option B, a projection where the shape changes.

use super::Built;
use super::blocks::{Convolution, End, convolution_norm, pooled_classifier};
use super::width::Width;
use crate::network::{Network, ValueId};
use crate::operator::Window;

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
