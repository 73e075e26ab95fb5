//! MobileNetV2 (Sandler et al., "Inverted residuals and linear bottlenecks", CVPR 2018) as torchvision
//! builds it, and a slim one for 32×32 images.
//!
//! SqueezeNet 1.1 (Iandola et al., 2016) as torchvision builds it.
//!
//! ShuffleNet V2 ×1.0 (Ma et al., "Practical guidelines for efficient CNN architecture design", ECCV
//! 2018) as torchvision builds it.

use super::Built;
use super::blocks::{Convolution, End, NUMBERED, Width, classifier, convolution_norm, loss, pooled_classifier, sizes};
use crate::operator::Part;
use crate::{Network, Shape, ValueId, Window};

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

/// The layers of `features` after the first: a pooling (`None`), or a fire module of squeezed and expanded channels.
const LAYERS: [&[Option<(u64, u64)>]; 3] = [
    &[None, Some((16, 64)), Some((16, 64))],
    &[None, Some((32, 128)), Some((32, 128))],
    &[None, Some((48, 192)), Some((48, 192)), Some((64, 256)), Some((64, 256))],
];

pub(super) fn squeezenet1_1(n: &mut Network, input: &[u64], classes: u64, width: Width) -> Built {
    let x = n.input(input);
    let mut x = convolution_relu(n, ["features.0", "features.1"], x, width.of(64), Window::square(3, 2, 0))?;
    for (i, layer) in LAYERS.concat().into_iter().enumerate() {
        let name = format!("features.{}", i + 2);
        x = match layer {
            None => n.max_pool(&name, x, Window::square(3, 2, 0), true)?,
            Some((squeeze, expand)) => fire_module(n, &name, x, width.of(squeeze), width.of(expand))?,
        };
    }
    let x = n.dropout("classifier.0", x, 0.5);
    let x = convolution_relu(n, ["classifier.1", "classifier.2"], x, classes, Window::square(1, 1, 0))?;
    let x = n.adaptive_average_pool("classifier.3", x, 1)?;
    let x = n.flatten("flatten", x)?;
    loss(n, x)
}

fn fire_module(n: &mut Network, name: &str, x: ValueId, squeeze: u64, expand: u64) -> Built<ValueId> {
    let part = |part: &str| format!("{name}.{part}");
    let point = Window::square(1, 1, 0);
    let x = convolution_relu(n, [&part("squeeze"), &part("squeeze_activation")], x, squeeze, point)?;
    let one = convolution_relu(n, [&part("expand1x1"), &part("expand1x1_activation")], x, expand, point)?;
    let around = Window::square(3, 1, 1);
    let three = convolution_relu(n, [&part("expand3x3"), &part("expand3x3_activation")], x, expand, around)?;
    n.concat(&part("cat"), &[one, three], 1)
}

fn convolution_relu(
    n: &mut Network,
    [convolution, relu]: [&str; 2],
    x: ValueId,
    channels: u64,
    window: Window,
) -> Built<ValueId> {
    let x = n.convolution(convolution, x, channels, window, 1, true)?;
    Ok(n.relu_in_place(relu, x))
}

/// Units and output channels of each stage.
const STAGES: [(u64, u64); 3] = [(4, 116), (8, 232), (4, 464)];

pub(super) fn shufflenet_v2(n: &mut Network, input: &[u64], classes: u64, width: Width) -> Built {
    let x = n.input(input);
    let x = convolution_norm(n, "conv1", NUMBERED, x, Convolution::square(width.of(24), 3, 2, 1), End::Relu)?;
    let mut x = n.max_pool("maxpool", x, Window::square(3, 2, 1), false)?;
    for (i, &(units, channels)) in STAGES.iter().enumerate() {
        let half = width.of(channels / 2);
        for unit in 0..units {
            let name = format!("stage{}.{unit}", i + 2);
            let joined = if unit == 0 {
                let left = left_branch(n, &name, x, half)?;
                let right = right_branch(n, &name, x, half, 2)?;
                [left, right]
            } else {
                let [left, right] = halves(n, &name, x);
                [left, right_branch(n, &name, right, half, 1)?]
            };
            let joined = n.concat(&format!("{name}.cat"), &joined, 1)?;
            x = channel_shuffle(n, &format!("{name}.shuffle"), joined)?;
        }
    }
    let x = convolution_norm(n, "conv5", NUMBERED, x, Convolution::square(width.of(1024), 1, 1, 0), End::Relu)?;
    pooled_classifier(n, "fc", x, classes)
}

fn left_branch(n: &mut Network, name: &str, x: ValueId, channels: u64) -> Built<ValueId> {
    let name = format!("{name}.branch1");
    let x =
        convolution_norm(n, &name, [".0", ".1", ""], x, Convolution::depthwise(n.shape(x).size(1), 2), End::Linear)?;
    convolution_norm(n, &name, [".2", ".3", ".4"], x, Convolution::square(channels, 1, 1, 0), End::Relu)
}

fn right_branch(n: &mut Network, name: &str, x: ValueId, channels: u64, stride: u64) -> Built<ValueId> {
    let name = format!("{name}.branch2");
    let x = convolution_norm(n, &name, NUMBERED, x, Convolution::square(channels, 1, 1, 0), End::Relu)?;
    let x = convolution_norm(n, &name, [".3", ".4", ""], x, Convolution::depthwise(channels, stride), End::Linear)?;
    convolution_norm(n, &name, [".5", ".6", ".7"], x, Convolution::square(channels, 1, 1, 0), End::Relu)
}

/// The two halves of the channels, seen in place: a convolution of one keeps the storage of both.
fn halves(n: &mut Network, name: &str, x: ValueId) -> [ValueId; 2] {
    let [channels, height, width] = sizes(n, x);
    let half = Shape::batched(&[channels / 2, height, width]);
    [0, 1].map(|place| {
        let part = Part::whole(4).from(1, place * (channels / 2), 1);
        n.slice(&format!("{name}.chunk.{place}"), x, part, half.clone(), false)
    })
}

fn channel_shuffle(n: &mut Network, name: &str, x: ValueId) -> Built<ValueId> {
    let [channels, height, width] = sizes(n, x);
    let x = n.reshape(name, x, Shape::batched(&[2, channels / 2, height, width]))?;
    let x = n.permute(name, x, &[0, 2, 1, 3, 4])?;
    n.reshape(name, x, Shape::batched(&[channels, height, width]))
}
