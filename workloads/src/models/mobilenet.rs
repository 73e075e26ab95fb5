//! MobileNetV2 (Sandler et al., "Inverted residuals and linear bottlenecks", CVPR 2018) as torchvision
//! builds it, and a slim one for 32×32 images.

use super::Built;
use super::blocks::{Convolution, End, NUMBERED, classifier, convolution_norm};
use super::width::Width;
use crate::network::{Network, ValueId};

/// A run of inverted residuals of one width: its expansion, channels, blocks and first stride.
type Stage = (u64, u64, u64, u64);

/// What tells one MobileNetV2 from another.
pub(super) struct MobileNet {
    stem: u64,
    stem_stride: u64,
    stages: &'static [Stage],
    last: u64,
}

pub(super) const MOBILENET_V2: MobileNet = MobileNet {
    stem: 32,
    stem_stride: 2,
    stages: &[
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ],
    last: 1280,
};

/// A quarter of the channels (multiples of eight), half of the repeated blocks, and the first two
/// strides dropped, so that 32×32 images end at 4×4 positions.
pub(super) const SLIM: MobileNet = MobileNet {
    stem: 8,
    stem_stride: 1,
    stages: &[(1, 8, 1, 1), (6, 8, 1, 1), (6, 8, 2, 2), (6, 16, 2, 2), (6, 24, 2, 1), (6, 40, 2, 2), (6, 80, 1, 1)],
    last: 320,
};

pub(super) fn build(n: &mut Network, input: &[u64], classes: u64, width: Width, family: &MobileNet) -> Built {
    let x = n.input(input);
    let stem = Convolution::square(width.of(family.stem), 3, family.stem_stride, 1);
    let mut x = convolution_norm(n, "features.0", NUMBERED, x, stem, End::Relu6)?;
    let mut index = 1;
    for &(expansion, channels, blocks, first_stride) in family.stages {
        for block in 0..blocks {
            let stride = if block == 0 { first_stride } else { 1 };
            x = inverted_residual(n, &format!("features.{index}"), x, expansion, width.of(channels), stride)?;
            index += 1;
        }
    }
    let last = Convolution::square(width.of(family.last), 1, 1, 0);
    let x = convolution_norm(n, &format!("features.{index}"), NUMBERED, x, last, End::Relu6)?;
    let x = n.adaptive_average_pool("avgpool", x, 1)?;
    let x = n.flatten("flatten", x)?;
    let x = n.dropout("classifier.0", x, 0.2);
    classifier(n, "classifier.1", x, classes)
}

fn inverted_residual(
    n: &mut Network,
    name: &str,
    x: ValueId,
    expansion: u64,
    channels: u64,
    stride: u64,
) -> Built<ValueId> {
    let narrow = n.shape(x).size(1);
    let hidden = narrow * expansion;
    let mut y = x;
    let (mut middle, mut last) = ([".conv.0.0", ".conv.0.1", ".conv.0.2"], [".conv.1", ".conv.2", ""]);
    if expansion != 1 {
        y = convolution_norm(n, name, middle, y, Convolution::square(hidden, 1, 1, 0), End::Relu6)?;
        (middle, last) = ([".conv.1.0", ".conv.1.1", ".conv.1.2"], [".conv.2", ".conv.3", ""]);
    }
    y = convolution_norm(n, name, middle, y, Convolution::depthwise(hidden, stride), End::Relu6)?;
    y = convolution_norm(n, name, last, y, Convolution::square(channels, 1, 1, 0), End::Linear)?;
    if stride == 1 && narrow == channels { n.add(&format!("{name}.add"), x, y) } else { Ok(y) }
}
