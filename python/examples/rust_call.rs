//! The time of a simulation called from Rust, median of many: what `python/measure_calls.py` compares Python's with.
//!
//! `cargo run --release -p haversack-python --example rust_call`
#![allow(missing_docs)]

use std::error::Error;
use std::time::Instant;

use haversack::cache::Cache;
use haversack::run::Plan;
use haversack::scenario::Scenario;
use haversack::simulate::{Asked, simulate};

/// Calls of each scenario.
const CALLS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    for (model, policy, budget) in
        [("lenet5", "original", "100%"), ("resnet18-cifar", "sage", "60%"), ("resnet50", "sage", "30%")]
    {
        let given = format!(
            "device = \"galaxy-s10\"\nmodel = \"{model}\"\nbatch = 32\npolicy = \"{policy}\"\nmemory_budget = \"{budget}\"\n"
        );
        let mut times = Vec::new();
        for _ in 0..CALLS {
            let begun = Instant::now();
            let cache = Cache::new();
            let plan = Plan::new(&Scenario::with(None, "<keywords>", &given)?, &cache)?;
            let simulation = simulate(plan, &Asked::default(), &cache)?;
            let answer = (simulation.to_json(), simulation.doubt(), simulation.missed());
            times.push(begun.elapsed().as_secs_f64() * 1e3);
            drop(answer);
        }
        times.sort_by(f64::total_cmp);
        println!("{model:16} {policy:9} {budget:>5}  median {:.3} ms, least {:.3} ms", times[CALLS / 2], times[0]);
    }
    Ok(())
}
