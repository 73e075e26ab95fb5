//! Prints how many operators per second the replay executes, by heuristic.
//!
//! `cargo run --release -p haversack-replay --example replay_rate [-- LOG [RATIO]]`; without a log, the log of a
//! residual network with about 500 operators.
#![allow(missing_docs)]

#[path = "../tests/it/residual.rs"]
mod residual;

use std::error::Error;
use std::time::{Duration, Instant};

use haversack_replay::{DEFAULT_OVERHEAD_LIMIT, Heuristic, Log, replay};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let log = match args.next() {
        Some(path) => Log::read(path)?,
        None => Log::parse("residual", residual::five_hundred_operators())?,
    };
    let ratio = args.next().map_or(Ok(0.5), |text| text.parse())?;
    let whole = replay(&log, Heuristic::Lru, 1.0, DEFAULT_OVERHEAD_LIMIT)?;
    println!(
        "{}: {} operators, {} tensors, baseline {} in {}",
        log.name(),
        log.operators(),
        log.tensors(),
        whole.baseline_compute,
        whole.baseline_memory
    );
    for heuristic in Heuristic::ALL {
        let (mut fastest, mut spent) = (Duration::MAX, Duration::ZERO);
        let outcome = loop {
            let start = Instant::now();
            let outcome = replay(&log, heuristic, ratio, DEFAULT_OVERHEAD_LIMIT)?;
            let took = start.elapsed();
            fastest = fastest.min(took);
            spent += took;
            if spent > Duration::from_millis(300) {
                break outcome;
            }
        };
        println!(
            "{heuristic:<10} {:<7} slowdown {:.4}  {:>8} operators  {:>10.0} operators/s",
            outcome.status,
            outcome.slowdown,
            outcome.operators,
            outcome.operators as f64 / fastest.as_secs_f64()
        );
    }
    Ok(())
}
