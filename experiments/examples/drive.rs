//! A scenario from Rust: what Sage makes of shrinking memory on one phone, without the command line.
//!
//! `cargo run --example drive`
#![allow(missing_docs)]

use std::error::Error;

use haversack::cache::Cache;
use haversack::run::Plan;
use haversack::scenario::{Budget, Scenario};

fn main() -> Result<(), Box<dyn Error>> {
    // Devices, graphs and what `original` needs are loaded and worked out once for all runs.
    let cache = Cache::new();
    let base = Scenario { batch: 16, policy: "sage".to_owned(), ..Scenario::new("galaxy-s10", "lenet5") };
    println!("budget  iteration  peak memory  micro-batches");
    for percent in [100.0, 60.0, 30.0] {
        let budget = Budget::Percent(percent);
        let plan = Plan::new(&Scenario { memory_budget: Some(budget), ..base.clone() }, &cache)?;
        match plan.run() {
            Ok(record) => println!(
                "{:>6}  {:>9}  {:>11}  {:?}",
                budget.to_string(),
                record.iteration.to_string(),
                record.peak_memory.to_string(),
                record.micro_batches
            ),
            // No plan may fit; the error says what would.
            Err(error) => println!("{:>6}  {}", budget.to_string(), plan.explain_failure(error, &cache)),
        }
    }
    Ok(())
}
