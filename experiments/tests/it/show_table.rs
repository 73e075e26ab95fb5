//! `haversack show DIR`: the rows of a sweep, sorted.

use std::fs;

use crate::support::{call_in, json, refusal, stdout};
use crate::sweep::{folder, sweep};

#[test]
fn rows_are_sorted_and_the_first_are_shown() {
    let folder = folder();
    sweep(folder.path(), "--out out");
    let call = |words: &[&str]| call_in(folder.path(), &[&["show", "out"], words].concat());
    let all = json(&call(&["--format", "json"]));
    let all = all.as_array().unwrap();
    // Two devices, two models, (original, dga, sage in two orders), five budgets.
    assert_eq!(all.len(), 80);
    let sorted = json(&call(&["--format", "json", "--sort", "-samples_per_s"]));
    let sorted = sorted.as_array().unwrap();
    assert_eq!(sorted.len(), all.len());
    // Rows without a plan that fits have no rate, and come last.
    let with_rate = all.iter().filter(|row| row["status"] == "ok").count();
    let rates: Vec<f64> = sorted.iter().map_while(|row| row["samples_per_s"].as_f64()).collect();
    assert_eq!(rates.len(), with_rate);
    assert!(rates.is_sorted_by(|a, b| a >= b) && rates[0] > rates[with_rate - 1], "{rates:?}");
    // Each object is the row of the table: lists are lists, and missing values are null.
    let sage = sorted.iter().find(|row| row["policy"] == "sage" && row["status"] == "ok").unwrap();
    assert!(sage["micro_batches"].is_array() && sage["reason"].is_null());

    let said = stdout(&call(&["--sort", "iteration_time_s", "--limit", "3"]));
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("batch = 8"), "{said}");
    // The shape of a sample follows from the model.
    assert!(lines[2].starts_with("run  device") && lines[2].contains("peak_memory_bytes (MB)"), "{said}");
    assert!(lines.len() == 8 && lines[7] == "3 of 80 rows; --limit N shows more", "{said}");
}

#[test]
fn what_cannot_be_shown_says_why() {
    let folder = folder();
    sweep(folder.path(), "--out out");
    let wrong = |words: &[&str]| refusal(&call_in(folder.path(), &[&["show"], words].concat()), 2);
    let said = wrong(&["out", "--sort", "iteration_time"]);
    assert!(said.contains("--sort: no column is called 'iteration_time'; did you mean 'iteration_time_s'?"), "{said}");
    fs::create_dir(folder.path().join("empty")).unwrap();
    assert!(wrong(&["empty"]).contains("empty holds no results.parquet; expected the folder of a sweep"));
    assert_eq!(call_in(folder.path(), &["reproduce", "sage/section5", "--out", "r"]).status.code(), Some(0));
    assert!(wrong(&["r"]).contains("r holds the results of 'reproduce'; expected the folder of a sweep"));
    fs::remove_file(folder.path().join("out/results.parquet")).unwrap();
    fs::write(folder.path().join("out/rows.part"), "").unwrap();
    assert!(wrong(&["out"]).contains("out has an unfinished sweep"));
}
