//! SqueezeNet 1.1 (Iandola et al., 2016) as torchvision builds it.

use super::Built;
use super::blocks::loss;
use super::width::Width;
use crate::network::{Network, ValueId};
use crate::operator::Window;

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
