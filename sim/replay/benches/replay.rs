//! Replays per second by heuristic, on a residual network's log at half its memory.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/it/residual.rs"]
mod residual;

use divan::Bencher;
use divan::counter::ItemsCount;
use haversack_replay::{DEFAULT_OVERHEAD_LIMIT, Heuristic, Log, replay};

fn main() {
    divan::main();
}

/// Items are executed operators, including rematerialisations.
#[divan::bench(args = Heuristic::ALL)]
fn half_memory(bencher: Bencher<'_, '_>, heuristic: Heuristic) {
    let log = Log::parse("residual", residual::five_hundred_operators()).unwrap();
    let run = || replay(&log, heuristic, 0.5, DEFAULT_OVERHEAD_LIMIT).unwrap();
    bencher.counter(ItemsCount::new(run().operators)).bench_local(run);
}

/// Items are lines.
#[divan::bench]
fn parse(bencher: Bencher<'_, '_>) {
    let text = residual::five_hundred_operators();
    bencher.counter(ItemsCount::new(text.lines().count())).bench_local(|| Log::parse("residual", &text));
}
