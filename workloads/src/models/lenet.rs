//! LeNet-5 (LeCun et al., "Gradient-based learning applied to document recognition", 1998) with ReLU
//! and max-pooling, by default for the 62 classes of FEMNIST.

use super::Built;
use super::blocks::classifier;
use super::width::Width;
use crate::network::Network;
use crate::operator::{Unary, Window};

pub(super) fn lenet5(n: &mut Network, input: &[u64], classes: u64, width: Width) -> Built {
    let mut x = n.input(input);
    for (i, channels, padding) in [(1, 6, 2), (2, 16, 0)] {
        x = n.convolution(&format!("conv{i}"), x, width.of(channels), Window::square(5, 1, padding), 1, true)?;
        x = width.made_up(n, &format!("scale{i}"), x, channels);
        x = n.unary(&format!("relu{i}"), x, Unary::Relu);
        x = n.max_pool(&format!("pool{i}"), x, Window::square(2, 2, 0), false)?;
    }
    x = n.flatten("flatten", x)?;
    for (i, features) in [(1, 120), (2, 84)] {
        x = n.linear(&format!("fc{i}"), x, width.of(features), true)?;
        x = width.made_up(n, &format!("scale{}", i + 2), x, features);
        x = n.unary(&format!("relu{}", i + 2), x, Unary::Relu);
    }
    classifier(n, "fc3", x, classes)
}
