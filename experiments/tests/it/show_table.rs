//! `haversack show DIR`: the rows of a sweep, chosen and sorted.

use std::fs;

use crate::support::{call_in, json, refusal, stdout};
use crate::sweep::{folder, sweep};

#[test]
fn rows_are_chosen_and_sorted() {
    let folder = folder();
    sweep(folder.path(), "--out out");
    let call = |words: &[&str]| call_in(folder.path(), &[&["show", "out"], words].concat());
    let all = json(&call(&["--format", "json"]));
    let all = all.as_array().unwrap();
    // Two devices, two models, (original, dga, sage in two orders), five budgets.
    assert_eq!(all.len(), 80);
    let wanted = |row: &&serde_json::Value| row["status"] == "ok" && row["policy"] == "sage" && row["batch"] == 8;
    let expected = all.iter().filter(wanted).count();
    let chosen = json(&call(&["--format", "json", "--where", "status=ok,policy=sage", "--sort", "-samples_per_s"]));
    let chosen = chosen.as_array().unwrap();
    assert_eq!(chosen.len(), expected);
    let rates: Vec<f64> = chosen.iter().map(|row| row["samples_per_s"].as_f64().unwrap()).collect();
    assert!(rates.is_sorted_by(|a, b| a >= b) && rates[0] > rates[expected - 1], "{rates:?}");
    // Each object is the row of the table: lists are lists, what is missing is null.
    assert!(chosen[0]["micro_batches"].is_array() && chosen[0]["reason"].is_null());

    let said = stdout(&call(&[
        "--where",
        "status=ok",
        "--where",
        "device=rtx-3090",
        "--sort",
        "iteration_time_s",
        "--limit",
        "3",
    ]));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "device = rtx-3090, batch = 8, status = ok in every row");
    // The shape of a sample follows from the model.
    assert!(lines[2].starts_with("run  model   policy") && lines[2].contains("peak_memory_bytes (MB)"), "{said}");
    assert!(lines.len() == 8 && lines[7].starts_with("3 of ") && lines[7].ends_with("--limit N shows more"), "{said}");
    let sizes = json(&call(&["--format", "json", "--where", "peak_memory_bytes<=10MB"]));
    let below = all.iter().filter(|row| row["peak_memory_bytes"].as_u64().is_some_and(|bytes| bytes <= 10_000_000));
    assert_eq!(sizes.as_array().map(Vec::len), Some(below.count()));
    // No row: a heading, and no panic.
    assert!(stdout(&call(&["--where", "status=error"])).contains("0 of 0 chosen rows, 80 in all"));
}

#[test]
fn what_cannot_be_shown_says_why() {
    let folder = folder();
    sweep(folder.path(), "--out out");
    let wrong = |words: &[&str]| refusal(&call_in(folder.path(), &[&["show"], words].concat()), 2);
    let said = wrong(&["out", "--sort", "iteration_time"]);
    assert!(said.contains("--sort: no column is called 'iteration_time'; did you mean 'iteration_time_s'?"), "{said}");
    let said = wrong(&["out", "--where", "statsu=ok"]);
    assert!(said.contains("--where: no column is called 'statsu'; did you mean 'status'?"), "{said}");
    assert!(wrong(&["out", "--where", "status"]).contains("such as status=ok"));
    assert!(wrong(&["out", "--where", "iteration_time_s<fast"]).contains("a number of seconds or a time"));
    assert!(wrong(&["out", "--where", "policy<sage"]).contains("policy holds text"));
    fs::create_dir(folder.path().join("empty")).unwrap();
    assert!(wrong(&["empty"]).contains("empty holds no results.parquet; expected the folder of a sweep"));
    assert_eq!(call_in(folder.path(), &["reproduce", "sage/section5", "--out", "r"]).status.code(), Some(0));
    assert!(wrong(&["r"]).contains("r holds the results of 'reproduce'; expected the folder of a sweep"));
    fs::remove_file(folder.path().join("out/results.parquet")).unwrap();
    fs::write(folder.path().join("out/rows.part"), "").unwrap();
    assert!(wrong(&["out"]).contains("out holds an unfinished sweep"));
}
