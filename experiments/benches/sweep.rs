//! How long one simulated iteration takes, and how long a sweep of 2,880 runs.
//!
//! The bars: 3 ms for an iteration of resnet50 at batch 32 under sage within 30 % of what original needs; 20 ms for one
//! of GPT-2 medium under daf with 5 % of its activations; 10 s for the sweep on two processors. `cargo bench -p haversack`.
#![allow(missing_docs, clippy::unwrap_used)]

use std::path::Path;

use haversack::cache::Cache;
use haversack::run::Plan;
use haversack::scenario::{Budget, Scenario};
use haversack::source::Source;
use haversack::sweep::{self, SweepOptions};
use haversack::work::WorkOptions;

fn main() {
    divan::main();
}

#[divan::bench(args = ["sage", "dgc", "dga", "dtr"])]
fn iteration(bencher: divan::Bencher<'_, '_>, policy: &str) {
    let scenario = Scenario {
        policy: policy.to_owned(),
        memory_budget: Some(Budget::Percent(30.0)),
        ..Scenario::new("galaxy-s10", "resnet50")
    };
    let plan = Plan::new(&scenario, &Cache::new()).unwrap();
    // A run that no plan fits is timed up to where it ends.
    bencher.bench(|| plan.run().map(|record| record.iteration));
}

#[divan::bench]
fn iteration_of_gpt2_under_daf(bencher: divan::Bencher<'_, '_>) {
    let scenario = Scenario {
        policy: "daf".to_owned(),
        activation_budget: Some(Budget::Percent(5.0)),
        batch: 8,
        iterations: Some(1),
        ..Scenario::new("jetson-agx-xavier", "gpt2-medium-lora")
    };
    let plan = Plan::new(&scenario, &Cache::new()).unwrap();
    bencher.bench(|| plan.run().unwrap().iteration);
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn sweep_of_2880_runs() {
    let folder = tempfile::tempdir().unwrap();
    sweep::run(&SweepOptions {
        specification: Source::File(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/sweep.toml")),
        work: WorkOptions { out: folder.path().join("out"), ..WorkOptions::default() },
        dry_run: false,
        shard: None,
    })
    .unwrap();
}
