//! Prints the cost of a sweep: wall time, processor time, and peak memory.
//!
//! `cargo run --release -p haversack --example sweep_rate [-- SPEC.toml [JOBS]]`; without a specification, the 2,880
//! runs of `benches/sweep.toml`. Processor time and memory are known on Linux only.
#![allow(missing_docs)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use haversack::source::Source;
use haversack::sweep::{self, Specification, SweepOptions};
use haversack::work::WorkOptions;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/sweep.toml");
    let specification = Source::File(arguments.next().map_or_else(own, PathBuf::from));
    let jobs = arguments.next().map(|jobs| jobs.parse()).transpose()?;
    let runs = Specification::of(&specification)?.runs();
    let folder = tempfile::tempdir()?;
    let start = Instant::now();
    sweep::run(&SweepOptions {
        specification,
        work: WorkOptions { out: folder.path().join("out"), jobs, ..WorkOptions::default() },
        dry_run: false,
        shard: None,
    })?;
    let wall = start.elapsed().as_secs_f64();
    println!("{runs} runs in {wall:.2} s, {:.2} ms a run", 1e3 * wall / runs as f64);
    if let Some(seconds) = processor_seconds() {
        println!("processor time {seconds:.2} s");
    }
    if let Some(kibibytes) = peak_kibibytes() {
        println!("peak memory {:.0} MB", kibibytes as f64 * 1.024e-3);
    }
    Ok(())
}

/// User and system time of this process: the 14th and 15th field of `stat`, in hundredths of a second.
fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is a name that may contain spaces.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
    Some((ticks(14)? + ticks(15)?) / 100.0)
}

fn peak_kibibytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
