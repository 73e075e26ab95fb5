//! Large networks take time in proportion to their operators.

use std::time::{Duration, Instant};

use haversack_workloads::autograd::{EagerRules, Optimiser, differentiate};
use haversack_workloads::express::express;
use haversack_workloads::lowering::{Gradients, Variant, lower};
use haversack_workloads::network::Network;
use haversack_workloads::operator::{Unary, Window};
use haversack_workloads::{Phase, Shape, mixed};

/// `blocks` of a convolution, a pooling, two halves that are added and joined, and a chain of `functions`.
fn deep(blocks: u64, functions: &[Unary]) -> Network {
    let mut n = Network::new("deep");
    let mut x = n.input(&[4, 2, 2]);
    for block in 0..blocks {
        x = n.convolution(&format!("{block}.conv"), x, 4, Window::square(1, 1, 0), 1, true).unwrap();
        x = n.max_pool(&format!("{block}.pool"), x, Window::square(1, 1, 0), false).unwrap();
        let half = Shape::batched(&[2, 2, 2]);
        let [low, high] = ["low", "high"].map(|part| n.slice(&format!("{block}.{part}"), x, half.clone(), false));
        let sum = n.add(&format!("{block}.add"), low, high).unwrap();
        x = n.concat(&format!("{block}.cat"), &[sum, high], 1).unwrap();
        for (place, &function) in functions.iter().enumerate() {
            x = n.unary(&format!("{block}.{place}"), x, function);
        }
    }
    let x = n.flatten("flatten", x).unwrap();
    let x = n.linear("fc", x, 2, true).unwrap();
    let target = n.target(1);
    n.cross_entropy("loss", x, target).unwrap();
    n
}

/// The nodes of all graphs of a network of `blocks`.
fn nodes(blocks: u64) -> usize {
    let network = deep(blocks, &[Unary::Tanh, Unary::Scale, Unary::Cube, Unary::Gelu]);
    let eager = differentiate(&network, EagerRules::default()).unwrap();
    let first = eager.nodes.iter().find(|node| node.phase == Phase::Update).unwrap().inputs[1];
    assert!(eager.without_gradients(|tensor| tensor == first).nodes.len() < eager.nodes.len());
    let lowered = Variant::ALL.map(|variant| lower(&network, variant, Optimiser::Sgd, Gradients::Kept).unwrap());
    let expressed = express(&network, Optimiser::Sgd).unwrap();
    // Integer algorithms translate few functions.
    let rectified = deep(blocks, &[Unary::Relu; 4]);
    let rewritten = mixed::rewrite(&rectified, mixed::algorithm("niti").unwrap(), Optimiser::Sgd).unwrap();
    let others = lowered.iter().chain([&expressed, &rewritten]).map(|graph| graph.nodes.len()).sum::<usize>();
    eager.nodes.len() + others
}

/// The nodes, and the shortest time of three in which they are made.
fn measured(blocks: u64) -> (usize, Duration) {
    let run = || {
        let begun = Instant::now();
        (nodes(blocks), begun.elapsed())
    };
    [run(), run(), run()].into_iter().min_by_key(|&(_, time)| time).unwrap()
}

#[test]
fn a_hundred_thousand_nodes_are_made_in_linear_time() {
    // Eight times as many blocks: linear work takes eight times as long, quadratic work 64 times. Caches and what else
    // the machine does make some difference, so that no more than 24 times is asked for.
    let (few, short) = measured(250);
    let (many, long) = measured(2_000);
    assert!(many > 100_000 && many > 7 * few, "{few} and {many} nodes");
    assert!(long < 24 * short.max(Duration::from_millis(1)), "{few} nodes take {short:?}, {many} take {long:?}");
}
