//! The cost of a policy to the simulator: an iteration under pressure, by policy and the number of operators.
//!
//! Times are divided by the number of operators, so a line of equal figures is linear growth.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/it/chains.rs"]
mod chains;

use chains::Pressure;
use divan::Bencher;
use divan::counter::ItemsCount;
use haversack_policies::registry;

fn main() {
    divan::main();
}

const SIZES: [usize; 3] = [5_000, 15_000, 50_000];
const POLICIES: [&str; 15] = [
    "original",
    "sgc",
    "sga",
    "dgc",
    "dga",
    "sage",
    "dtr",
    "fixed8",
    "elastictrainer",
    "melon",
    "capuchin",
    "fedhybrid",
    "actnn",
    "gact",
    "daf",
];

/// Items are operators of the schedule; policies get half of the memory that they need, those that cannot free any get
/// twice as much as they need.
#[divan::bench(args = POLICIES, consts = SIZES, sample_count = 3, sample_size = 1)]
fn iteration<const OPERATORS: usize>(bencher: Bencher<'_, '_>, policy: &str) {
    let (machine, graph) = (chains::phone(), chains::network(OPERATORS, 4));
    let run = || {
        let pressure =
            Pressure::Planned(if matches!(policy, "original" | "sgc" | "sga" | "elastictrainer") { 200 } else { 50 });
        chains::run(&machine, &graph, pressure, 1, registry::build(policy, &[]).unwrap().as_mut()).unwrap().recomputed
    };
    bencher.counter(ItemsCount::new(OPERATORS)).bench_local(run);
}
