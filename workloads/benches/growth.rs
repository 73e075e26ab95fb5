//! Time to make all graphs of a deep network: it grows with the number of its operators.
#![allow(missing_docs, clippy::unwrap_used)]

use divan::Bencher;
use divan::counter::ItemsCount;
use haversack_workloads::autograd::{EagerRules, Optimiser, differentiate};
use haversack_workloads::express::{Version, express};
use haversack_workloads::lowering::{Gradients, Variant, lower};
use haversack_workloads::network::Network;
use haversack_workloads::operator::{Part, Unary, Window};
use haversack_workloads::{Phase, Shape, mixed};

fn main() {
    divan::main();
}

/// `blocks` of a convolution, a pooling, two halves that are added and joined, and a chain of `functions`.
fn deep(blocks: u64, functions: &[Unary]) -> Network {
    let mut n = Network::new("deep");
    let mut x = n.input(&[4, 2, 2]);
    for block in 0..blocks {
        x = n.convolution(&format!("{block}.conv"), x, 4, Window::square(1, 1, 0), 1, true).unwrap();
        x = n.max_pool(&format!("{block}.pool"), x, Window::square(1, 1, 0), false).unwrap();
        let half = Shape::batched(&[2, 2, 2]);
        let [low, high] = [("low", 0), ("high", 2)].map(|(name, start)| {
            let part = Part::whole(4).from(1, start, 1);
            n.slice(&format!("{block}.{name}"), x, part, half.clone(), false)
        });
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
    let network = deep(blocks, &[Unary::Tanh, Unary::Scale(2.0), Unary::Power(3.0), Unary::Gelu]);
    let eager = differentiate(&network, EagerRules::default()).unwrap();
    let first = eager.nodes.iter().find(|node| node.phase == Phase::Update).unwrap().inputs[1];
    assert!(eager.without_gradients(|tensor| tensor == first).nodes.len() < eager.nodes.len());
    let lowered = Variant::ALL.map(|variant| lower(&network, variant, Optimiser::Sgd, Gradients::Kept).unwrap());
    let expressed = express(&network, Optimiser::Sgd, Version::V2).unwrap();
    // Integer algorithms translate few functions.
    let rectified = deep(blocks, &[Unary::Relu; 4]);
    let rewritten = mixed::rewrite(&rectified, mixed::algorithm("niti").unwrap(), Optimiser::Sgd).unwrap();
    let others = lowered.iter().chain([&expressed, &rewritten]).map(|graph| graph.nodes.len()).sum::<usize>();
    eager.nodes.len() + others
}

/// Items are nodes: their rate is the same for 250 blocks as for 2,000 if the work is linear.
#[divan::bench(args = [250, 2_000], sample_count = 3)]
fn all_graphs(bencher: Bencher<'_, '_>, blocks: u64) {
    bencher.counter(ItemsCount::new(nodes(blocks))).bench_local(|| nodes(blocks));
}
