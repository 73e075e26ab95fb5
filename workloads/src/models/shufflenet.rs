//! ShuffleNet V2 ×1.0 (Ma et al., "Practical guidelines for efficient CNN architecture design", ECCV
//! 2018) as torchvision builds it.

use super::Built;
use super::blocks::{Convolution, End, NUMBERED, convolution_norm, pooled_classifier, sizes};
use super::width::Width;
use crate::network::{Network, ValueId};
use crate::operator::{Part, Window};
use crate::shape::Shape;

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
