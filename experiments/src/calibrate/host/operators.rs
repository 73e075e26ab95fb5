//! The networks whose operators are timed one by one: every kind, at sizes that small networks have.
//!
//! None of them is one that is predicted afterwards, and their steps are not looked at as a whole.

use haversack_workloads::network::Initial;
use haversack_workloads::operator::{Unary, Window};
use haversack_workloads::{Network, Shape, ValueId, WorkloadError};

/// What a builder yields.
type Built<T = ()> = Result<T, WorkloadError>;

/// Samples of a mini-batch, both of which everything is timed at.
pub(super) const BATCHES: [u64; 2] = [4, 16];

/// A network, and the shape of a sample.
pub(super) struct Bench {
    pub(super) network: Network,
    pub(super) input: Vec<u64>,
}

/// All of them.
///
/// # Errors
/// None but of a mistake here.
pub(super) fn all() -> Built<Vec<Bench>> {
    let mut all = Vec::new();
    for (channels, side) in [([24, 40, 80], 28), ([8, 12, 48], 20), ([48, 72, 144], 16)] {
        all.push(images(channels, side)?);
    }
    // Rows as long as a power of two, as they often are, and others.
    for (features, hidden) in [(700, 200), (2048, 48)] {
        all.push(rows(features, hidden)?);
    }
    for (tokens, width, heads) in [(24, 96, 3), (12, 40, 2)] {
        all.push(texts(tokens, width, heads)?);
    }
    Ok(all)
}

/// The loss of `classes` scores.
fn ending(n: &mut Network, x: ValueId, classes: u64) -> Built {
    let scores = n.linear("out", x, classes, true)?;
    let target = n.target(1);
    n.cross_entropy("loss", scores, target).map(|_| ())
}

/// Convolutions of several widths and windows, dense and depthwise, and what normalises, activates, adds and pools maps.
fn images(channels: [u64; 3], side: u64) -> Built<Bench> {
    let mut n = Network::default();
    let input = vec![3, side, side];
    let x = n.input(&input);
    let convolution = |n: &mut Network, name: &str, x, channels, kernel, groups| {
        n.convolution(name, x, channels, Window::square(kernel, 1, kernel / 2), groups, false)
    };
    let x = convolution(&mut n, "stem", x, channels[0], 5, 1)?;
    let mut x = n.unary("stem.relu", x, Unary::Relu);
    for (stage, channels) in channels.into_iter().enumerate() {
        let name = |part: &str| format!("{stage}.{part}");
        x = convolution(&mut n, &name("first"), x, channels, 3, 1)?;
        x = n.batch_norm(&name("first_norm"), x)?;
        x = n.relu_in_place(&name("first_relu"), x);
        let y = convolution(&mut n, &name("second"), x, channels, 3, 1)?;
        let y = n.batch_norm(&name("second_norm"), y)?;
        x = n.add(&name("add"), x, y)?;
        x = n.relu_in_place(&name("relu"), x);
        let y = convolution(&mut n, &name("widen"), x, 3 * channels, 1, 1)?;
        let y = n.batch_norm(&name("widen_norm"), y)?;
        let y = n.relu6_in_place(&name("widen_relu"), y);
        let y = convolution(&mut n, &name("depthwise"), y, 3 * channels, 3, 3 * channels)?;
        let y = n.batch_norm(&name("depthwise_norm"), y)?;
        let y = n.relu6_in_place(&name("depthwise_relu"), y);
        let y = convolution(&mut n, &name("narrow"), y, channels, 1, 1)?;
        x = n.add(&name("second_add"), x, y)?;
        x = n.max_pool(&name("pool"), x, Window::square(2, 2, 0), false)?;
    }
    x = n.flatten("flatten", x)?;
    x = n.linear("hidden", x, 90, true)?;
    x = n.unary("hidden_relu", x, Unary::Relu);
    ending(&mut n, x, 10)?;
    Ok(Bench { network: n, input })
}

/// Dense layers over long rows and short ones.
fn rows(features: u64, hidden: u64) -> Built<Bench> {
    let mut n = Network::default();
    let input = vec![1, 1, features];
    let x = n.input(&input);
    let mut x = n.flatten("flatten", x)?;
    for layer in 0..3 {
        x = n.linear(&format!("{layer}.linear"), x, hidden, true)?;
        x = n.unary(&format!("{layer}.relu"), x, Unary::Relu);
    }
    ending(&mut n, x, 10)?;
    Ok(Bench { network: n, input })
}

/// Tables, dense layers over tokens, products of each sample's, normalisation by rows, and functions.
fn texts(tokens: u64, width: u64, heads: u64) -> Built<Bench> {
    let mut n = Network::default();
    let ids = n.token_input(tokens);
    let table = n.weight("table", &[256, width], Initial::Normal { deviation: 0.02 }, true);
    let mut x = n.embedding("embedding", ids, width, table);
    for layer in 0..2 {
        let name = |part: &str| format!("{layer}.{part}");
        let head = |n: &mut Network, part: &str, x| {
            let y = n.linear(&name(part), x, width, true)?;
            let y = n.reshape(&name(part), y, Shape::batched(&[tokens, heads, width / heads]))?;
            n.permute(&name(part), y, &[0, 2, 1, 3])
        };
        let (query, key) = (head(&mut n, "query", x)?, head(&mut n, "key", x)?);
        let key = n.permute(&name("key_transposed"), key, &[0, 1, 3, 2])?;
        let scores = n.matmul(&name("scores"), query, key)?;
        let scores = n.unary(&name("scale"), scores, Unary::Scale(0.2));
        let scores = n.softmax(&name("softmax"), scores);
        let scores = n.dropout(&name("scores_dropout"), scores, 0.1);
        let value = head(&mut n, "value", x)?;
        let y = n.matmul(&name("context"), scores, value)?;
        let y = n.permute(&name("joined"), y, &[0, 2, 1, 3])?;
        let y = n.contiguous(&name("contiguous"), y);
        let y = n.reshape(&name("rows"), y, Shape::batched(&[tokens, width]))?;
        x = n.add(&name("add"), x, y)?;
        x = n.layer_norm(&name("norm"), x, true);
        let y = n.linear(&name("widen"), x, 2 * width, true)?;
        let y = n.unary(&name("gelu"), y, Unary::Gelu);
        let y = n.linear(&name("narrow"), y, width, true)?;
        let y = n.dropout(&name("dropout"), y, 0.1);
        x = n.add(&name("second_add"), x, y)?;
        x = n.layer_norm(&name("second_norm"), x, true);
    }
    x = n.mean("mean", x, vec![1], Shape::batched(&[width]));
    ending(&mut n, x, 2)?;
    Ok(Bench { network: n, input: vec![tokens] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use haversack_devices::work::OperatorKind;
    use haversack_workloads::autograd::{EagerRules, differentiate};

    #[test]
    fn every_kind_of_operator_is_timed() {
        let graphs: Vec<_> =
            all().unwrap().iter().map(|of| differentiate(&of.network, EagerRules::default()).unwrap()).collect();
        for &kind in OperatorKind::ALL {
            assert!(graphs.iter().any(|graph| graph.nodes.iter().any(|node| node.work.kind == kind)), "{kind}");
        }
    }
}
