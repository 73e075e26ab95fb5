//! MobileNetV2 (Sandler et al., "Inverted residuals and linear bottlenecks", CVPR 2018) as torchvision
//! builds it, and a slim one for 32×32 images.

use super::blocks::{Convolution, End, Names, classifier, convolution_norm};
use crate::error::WorkloadError;
use crate::network::{Network, ValueId};

/// A run of inverted residuals of one width.
struct Stage {
    expansion: u64,
    channels: u64,
    blocks: u64,
    stride: u64,
}

const fn stage(expansion: u64, channels: u64, blocks: u64, stride: u64) -> Stage {
    Stage { expansion, channels, blocks, stride }
}

/// What tells one MobileNetV2 from another.
pub(super) struct Family {
    stem: u64,
    stem_stride: u64,
    stages: &'static [Stage],
    last: u64,
    classes: u64,
}

pub(super) const MOBILENET_V2: Family = Family {
    stem: 32,
    stem_stride: 2,
    stages: &[
        stage(1, 16, 1, 1),
        stage(6, 24, 2, 2),
        stage(6, 32, 3, 2),
        stage(6, 64, 4, 2),
        stage(6, 96, 3, 1),
        stage(6, 160, 3, 2),
        stage(6, 320, 1, 1),
    ],
    last: 1280,
    classes: 1000,
};

/// A quarter of the channels (multiples of eight), half of the repeated blocks, and the first two
/// strides dropped, so that 32×32 images end at 4×4 positions.
pub(super) const SLIM: Family = Family {
    stem: 8,
    stem_stride: 1,
    stages: &[
        stage(1, 8, 1, 1),
        stage(6, 8, 1, 1),
        stage(6, 8, 2, 2),
        stage(6, 16, 2, 2),
        stage(6, 24, 2, 1),
        stage(6, 40, 2, 2),
        stage(6, 80, 1, 1),
    ],
    last: 320,
    classes: 10,
};

pub(super) fn build(n: &mut Network, input: &[u64], family: &Family) -> Result<(), WorkloadError> {
    let x = n.input(input);
    let stem = Convolution::square(family.stem, 3, family.stem_stride, 1);
    let mut x = step(n, "features.0", [".0", ".1", ".2"], x, stem, End::Relu6)?;
    let mut index = 1;
    for stage in family.stages {
        for block in 0..stage.blocks {
            let stride = if block == 0 { stage.stride } else { 1 };
            x = inverted_residual(n, &format!("features.{index}"), x, stage.expansion, stage.channels, stride)?;
            index += 1;
        }
    }
    let last = Convolution::square(family.last, 1, 1, 0);
    let x = step(n, &format!("features.{index}"), [".0", ".1", ".2"], x, last, End::Relu6)?;
    let x = n.adaptive_average_pool("avgpool", x, 1)?;
    let x = n.flatten("flatten", x)?;
    let x = n.dropout("classifier.0", x);
    classifier(n, "classifier.1", x, family.classes)
}

fn inverted_residual(
    n: &mut Network,
    name: &str,
    x: ValueId,
    expansion: u64,
    channels: u64,
    stride: u64,
) -> Result<ValueId, WorkloadError> {
    let narrow = n.shape(x).size(1);
    let hidden = narrow * expansion;
    let mut y = x;
    let mut part = 0;
    if expansion != 1 {
        y = step(
            n,
            name,
            [".conv.0.0", ".conv.0.1", ".conv.0.2"],
            y,
            Convolution::square(hidden, 1, 1, 0),
            End::Relu6,
        )?;
        part = 1;
    }
    let depthwise = format!("{name}.conv.{part}");
    y = step(n, &depthwise, [".0", ".1", ".2"], y, Convolution::depthwise(hidden, stride), End::Relu6)?;
    let names = [format!(".conv.{}", part + 1), format!(".conv.{}", part + 2)];
    y = step(n, name, [&names[0], &names[1], ""], y, Convolution::square(channels, 1, 1, 0), End::Linear)?;
    if stride == 1 && narrow == channels { n.add(&format!("{name}.add"), x, y) } else { Ok(y) }
}

fn step(
    n: &mut Network,
    name: &str,
    parts: [&str; 3],
    x: ValueId,
    convolution: Convolution,
    end: End,
) -> Result<ValueId, WorkloadError> {
    let [c, norm, activation] = parts.map(|part| format!("{name}{part}"));
    convolution_norm(n, Names { convolution: &c, norm: &norm, activation: &activation }, x, convolution, end)
}
