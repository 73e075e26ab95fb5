//! The smallest networks that learn something: what the clients of a federation train in place of a large one.
//!
//! LeNet-5 (LeCun et al., "Gradient-based learning applied to document recognition", 1998) with ReLU
//! and max-pooling, by default for the 62 classes of FEMNIST.

use super::Built;
use super::blocks::{Width, classifier};
use crate::{Initial, Network, Shape, Unary, Window};

/// Different tokens: as many as bytes.
const VOCABULARY: u64 = 256;
/// Features of a token.
const FEATURES: u64 = 32;
/// Features of the hidden layer.
const HIDDEN: u64 = 64;

/// A score for each class that is linear in the pixels.
pub(super) fn logistic(n: &mut Network, input: &[u64], classes: u64) -> Built {
    let x = n.input(input);
    let x = n.flatten("flatten", x)?;
    classifier(n, "classifier", x, classes)
}

/// One hidden layer with ReLU.
pub(super) fn mlp(n: &mut Network, input: &[u64], classes: u64, width: Width) -> Built {
    let x = n.input(input);
    let x = n.flatten("flatten", x)?;
    let x = n.linear("fc1", x, width.of(HIDDEN), true)?;
    let x = width.made_up(n, "scale", x, HIDDEN);
    let x = n.unary("relu", x, Unary::Relu);
    classifier(n, "fc2", x, classes)
}

/// The mean of the tokens' features, whatever their order.
pub(super) fn bag_of_tokens(n: &mut Network, input: &[u64], classes: u64, width: Width) -> Built {
    let features = width.of(FEATURES);
    let ids = n.token_input(input[0]);
    // PyTorch's default for a table.
    let table = n.weight("embedding.weight", &[VOCABULARY, features], Initial::Normal { deviation: 1.0 }, true);
    let x = n.embedding("embedding", ids, features, table);
    let x = n.mean("mean", x, vec![1], Shape::batched(&[features]));
    let x = width.made_up(n, "scale", x, FEATURES);
    classifier(n, "classifier", x, classes)
}

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
