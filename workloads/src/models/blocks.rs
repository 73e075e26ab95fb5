//! What the convolutional networks share: a convolution with its normalisation, and the classifier's end.

use super::Built;
use crate::network::{Network, ValueId};
use crate::operator::{Unary, Window};

/// How a convolution without a bias ends after its batch normalisation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing more.
    Linear,
    /// ReLU in place.
    Relu,
    /// ReLU6 in place.
    Relu6,
}

/// A convolution, as the modules below describe it.
#[derive(Clone, Copy)]
pub(super) struct Convolution {
    pub(super) channels: u64,
    pub(super) window: Window,
    pub(super) groups: u64,
}

impl Convolution {
    /// A convolution of one group with a square window.
    pub(super) const fn square(channels: u64, kernel: u64, stride: u64, padding: u64) -> Self {
        Self { channels, window: Window::square(kernel, stride, padding), groups: 1 }
    }

    /// A 3×3 convolution of every channel by itself.
    pub(super) const fn depthwise(channels: u64, stride: u64) -> Self {
        Self { channels, window: Window::square(3, stride, 1), groups: channels }
    }
}

/// The modules of a convolution, its normalisation and its activation, as most networks number them.
pub(super) const NUMBERED: [&str; 3] = [".0", ".1", ".2"];

/// Convolution without a bias, batch normalisation and `end`: modules whose names are `name` and one of `parts` each.
pub(super) fn convolution_norm(
    n: &mut Network,
    name: &str,
    parts: [&str; 3],
    x: ValueId,
    c: Convolution,
    end: End,
) -> Built<ValueId> {
    let [convolution, norm, activation] = parts.map(|part| format!("{name}{part}"));
    let x = n.convolution(&convolution, x, c.channels, c.window, c.groups, false)?;
    let x = n.batch_norm(&norm, x)?;
    Ok(match end {
        End::Linear => x,
        End::Relu => n.relu_in_place(&activation, x),
        End::Relu6 => n.in_place(&activation, x, Unary::Relu6),
    })
}

/// Channels, height and width of a map, or height, width and channels of a map that is channels-last.
pub(super) fn sizes(n: &Network, x: ValueId) -> [u64; 3] {
    [1, 2, 3].map(|axis| n.shape(x).size(axis))
}

/// The mean over all positions, then a dense layer of `classes` scores and their cross-entropy.
pub(super) fn pooled_classifier(n: &mut Network, name: &str, x: ValueId, classes: u64) -> Built {
    let x = n.adaptive_average_pool("avgpool", x, 1)?;
    let x = n.flatten("flatten", x)?;
    classifier(n, name, x, classes)
}

/// A dense layer of `classes` scores and their cross-entropy with one label a sample.
pub(super) fn classifier(n: &mut Network, name: &str, x: ValueId, classes: u64) -> Built {
    let scores = n.linear(name, x, classes, true)?;
    loss(n, scores)
}

/// The cross-entropy of one row of scores a sample.
pub(super) fn loss(n: &mut Network, scores: ValueId) -> Built {
    let target = n.target(1);
    n.cross_entropy("loss", scores, target)?;
    Ok(())
}
