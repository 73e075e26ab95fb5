//! What the convolutional networks share: a convolution with its normalisation, and the classifier's end.
//!
//! How wide the hidden layers of a network are.

use std::str::FromStr;

use super::Built;
use crate::{Network, Unary, ValueId, Window};

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

/// The share of a hidden layer's features that a narrower network has (HeteroFL: Diao et al., ICLR 2021): the first ones, so
/// that its weights are leading slices of the full network's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Width(f64);

impl Width {
    /// All features.
    pub const FULL: Self = Self(1.0);

    /// A share above 0 and up to 1; `None` for another number.
    pub fn new(share: f64) -> Option<Self> {
        (share > 0.0 && share <= 1.0).then_some(Self(share))
    }

    /// Of so many features, rounded up.
    pub(super) fn of(self, features: u64) -> u64 {
        ((features as f64 * self.0).ceil() as u64).max(1)
    }

    /// What a hidden layer of `features` features at full width yields, times how many more that would be: what comes after sees
    /// values as large as in the full network (HeteroFL's scaler, which trains so and leaves the full network as it is).
    pub(super) fn made_up(self, n: &mut Network, name: &str, x: ValueId, features: u64) -> ValueId {
        let narrow = self.of(features);
        if narrow == features { x } else { n.unary(name, x, Unary::Scale(features as f32 / narrow as f32)) }
    }
}

impl FromStr for Width {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = text.parse().ok().and_then(Self::new);
        share.ok_or_else(|| format!("a width of '{text}'; expected a share above 0 and up to 1, such as 0.5"))
    }
}

#[cfg(test)]
mod tests {
    use crate::models::{MODELS, build};

    fn weights(name: &str) -> Option<u64> {
        build(name, None).ok().map(|network| network.parameters.iter().map(|weight| weight.elements).sum())
    }

    #[test]
    fn a_name_says_how_wide_a_network_is() {
        let without: Vec<&str> =
            MODELS.iter().map(|model| model.id).filter(|id| weights(&format!("{id}@0.5")).is_none()).collect();
        assert_eq!(without, ["densenet121", "inceptionv3", "swin-t", "gpt2-medium-lora"]);
        for id in ["lenet5", "resnet18", "mobilenetv2", "shufflenetv2", "squeezenet1-1", "vgg11-cifar-bn", "bert-small"]
        {
            let [full, one, half, least] = ["", "@1", "@0.5", "@0.0625"].map(|width| weights(&format!("{id}{width}")));
            assert!(full == one && half < full && least < half && least > Some(0), "{id}: {full:?} {half:?} {least:?}");
        }
        // A convolution between hidden layers keeps a quarter of its weights; the first keeps half.
        let [full, half] = ["vgg11-cifar", "vgg11-cifar@0.5"].map(|name| build(name, None).unwrap());
        let [of_full, of_half] = [&full, &half].map(|network| [0, 2].map(|place| network.parameters[place].elements));
        assert_eq!((of_full, of_half), ([64 * 3 * 9, 128 * 64 * 9], [32 * 3 * 9, 64 * 32 * 9]));
    }

    #[test]
    fn a_width_that_none_can_have_is_refused() {
        let refused = |name: &str| build(name, None).map(|_| ()).unwrap_err().to_string();
        for name in ["lenet5@0", "lenet5@1.5", "lenet5@half"] {
            assert!(refused(name).contains("expected a share above 0"), "{}", refused(name));
        }
        assert!(refused("lenet6@0.5").contains("lenet5") && refused("swin-t@0.5").contains("no narrower form"));
    }
}
