//! The replay compared with the results of the published simulator, on synthetic logs.
//!
//! The logs are seeded random programs with every kind of instruction; the results are those of the reference's runtime
//! version 2 with eager eviction.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use haversack_replay::{Heuristic, Log, replay};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn heuristic(reference: &str) -> Option<Heuristic> {
    Some(match reference {
        "DTR" => Heuristic::Dtr,
        "DTREqClass" => Heuristic::DtrEq,
        "DTRLocal" => Heuristic::DtrLocal,
        "MSPS" => Heuristic::Msps,
        "LRU" => Heuristic::Lru,
        "LargestStorage" => Heuristic::Size,
        _ => return None,
    })
}

#[test]
fn every_row_of_the_reference_is_reproduced() {
    let csv = std::fs::read_to_string(data().join("synthetic_expected.csv")).unwrap();
    let mut lines = csv.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut logs = HashMap::new();
    let (mut rows, mut compared, mut wrong) = (0, 0, Vec::new());
    for line in lines {
        rows += 1;
        let row: HashMap<&str, &str> = columns.iter().copied().zip(line.split(',')).collect();
        let Some(heuristic) = heuristic(row["heuristic"]) else { continue };
        if row["runtime"] != "RuntimeV2EagerOptimized" {
            continue;
        }
        let log = logs
            .entry(row["log"])
            .or_insert_with(|| Log::read(data().join("synthetic_logs").join(row["log"])).unwrap());
        let (ratio, limit) = (row["ratio"].parse().unwrap(), row["overhead_limit"].parse().unwrap());
        let outcome = replay(log, heuristic, ratio, limit).unwrap();
        let integers = [
            ("clock_final", outcome.clock_final),
            ("budget_bytes", outcome.budget.0),
            ("baseline_compute_ns", outcome.baseline_compute.0),
            ("baseline_memory_bytes", outcome.baseline_memory.0),
            ("remat_compute_ns", outcome.rematerialised_compute.0),
            ("model_compute_ns", outcome.model_compute.0),
            ("max_memory_bytes", outcome.peak_memory.0),
            ("ops_executed", outcome.operators),
            ("remat_ops", outcome.rematerialised_operators),
            ("evictions", outcome.evictions),
            ("evictions_heuristic", outcome.heuristic_evictions),
            ("heuristic_evals", outcome.heuristic_evaluations),
        ];
        let mut differing: Vec<&str> = integers
            .iter()
            .filter(|(column, ours)| row[column].parse::<u64>().unwrap() != *ours)
            .map(|(column, _)| *column)
            .collect();
        if outcome.status.as_str() != row["status"] {
            differing.push("status");
        }
        if outcome.evict_hash != u64::from_str_radix(row["evict_hash"], 16).unwrap() {
            differing.push("evict_hash");
        }
        if (outcome.slowdown - row["slowdown"].parse::<f64>().unwrap()).abs() >= 1e-9 {
            differing.push("slowdown");
        }
        compared += 1;
        if !differing.is_empty() {
            wrong.push(format!("{} {heuristic} {ratio}: {}", row["model"], differing.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "{} of {compared} rows differ:\n{}", wrong.len(), wrong.join("\n"));
    // 8 logs × 6 heuristics × 7 ratios, without rows of other runtimes or heuristics.
    assert_eq!((rows, compared), (336, 336));
}
