//! Recorded series and apps drive runs: on the clock of the whole run, from where the user says, each user another run.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::support::{call_in, json, stderr};
use serde_json::Value;
use tempfile::tempdir;

fn run(folder: &Path, line: &str) -> std::process::Output {
    call_in(folder, &line.split(' ').collect::<Vec<_>>())
}

/// A recording of a phone of 8 GB as `name`: what it leaves from each second on.
fn record(folder: &Path, name: &str, available: &[(u64, u64)]) {
    let mut log = String::new();
    for (second, megabytes) in available {
        let _ =
            write!(log, "{}\nMemTotal: 7600000 kB\nMemAvailable: {} kB\n", 1_600_000_000 + second, megabytes * 1000);
    }
    fs::write(folder.join("meminfo"), log).unwrap();
    let output = run(folder, &format!("trace import --kind meminfo meminfo --out {name}"));
    assert!(output.status.success(), "{}", stderr(&output));
}

fn seconds(found: &Value) -> Vec<f64> {
    found["iterations_s"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect()
}

/// Iterations that end before `second`, and those that begin after it.
fn split_at(iterations: &[f64], second: f64) -> (Vec<f64>, Vec<f64>) {
    let mut end = 0.0;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for &took in iterations {
        let start = end;
        end += took;
        match (end <= second, start >= second) {
            (true, _) => before.push(took),
            (_, true) => after.push(took),
            _ => {}
        }
    }
    (before, after)
}

#[test]
fn a_series_that_falls_at_120_s_slows_iterations_from_then_on() {
    let folder = tempdir().unwrap();
    let series = |low: u64| -> Vec<(u64, u64)> {
        (0..30).map(|tens| (10 * tens, if tens < 12 { 5_000 } else { low })).collect()
    };
    // As a wall, where nobody else is on the phone; and as memory of others, where a system is named, whose 1.31 GB then
    // are evicted and read again.
    record(folder.path(), "wall.parquet", &series(700));
    record(folder.path(), "others.parquet", &series(1_000));
    let wall = "simulate --device galaxy-s10 --model resnet50 --batch 16 --policy dgc --iterations 30 --format json";
    let others = "simulate --device galaxy-s22 --stack mnn-2 --cores big:4 --model mobilenetv2 --batch 8 \
                  --system android-testbed --iterations 40 --format json";
    for (line, file, number, slower) in [(wall, "wall.parquet", 30, 1.04), (others, "others.parquet", 40, 3.0)] {
        let even = seconds(&json(&run(folder.path(), line)));
        let output = run(folder.path(), &format!("{line} --trace {file}"));
        let found = json(&output);
        let traced = seconds(&found);
        assert_eq!(traced.len(), number, "{file}");
        let (before, after) = split_at(&traced, 120.0);
        assert!(before.len() >= 3 && after.len() >= 3, "{file}: {traced:?}");
        // The same before, to the nanosecond, and longer, all that come after.
        assert_eq!(before, even[..before.len()], "{file}");
        let settled = even[even.len() - 1];
        assert!(after.iter().all(|took| *took > slower * settled), "{file}: {settled} and {after:?}");
        // The series ends at 290 s.
        let held = traced.iter().sum::<f64>() - 290.0;
        assert!(held > 0.0 && (found["trace_held_s"].as_f64().unwrap() - held).abs() < 1e-6, "{file}");
        assert!(stderr(&output).contains("warning: the trace covers 290"), "{file}: {}", stderr(&output));
        assert!(found["trace_assumed_share"].is_null());
    }
}
