//! The reports of a sweep: its summary, its table as CSV, words for several values, and dry runs.

use std::fs;

use haversack_reports::frame::read_parquet;
use polars::prelude::AnyValue;
use tempfile::tempdir;

use crate::support::{call_in, refusal, stderr, stdout};
use crate::sweep::{files, folder, sweep, texts};

#[test]
fn the_summary_counts_runs_and_names_the_fastest_and_the_files() {
    let folder = folder();
    let said = sweep(folder.path(), "--out out");
    let lines: Vec<&str> = said.lines().collect();
    let frame = read_parquet(&folder.path().join("out/results.parquet")).unwrap();
    let of = |status: &str| texts(&frame, "status").iter().filter(|found| found.as_deref() == Some(status)).count();
    // 2 devices, 2 models, (original, dga, sage in two orders), 5 budgets.
    assert_eq!(lines[0], format!("80 runs: {} ok, {} infeasible", of("ok"), of("infeasible")));
    // Three policies on two devices with two models: twelve rows below the header.
    let rows: Vec<&&str> = lines.iter().filter(|line| line.contains(" of ") && line.contains("  sage")).collect();
    assert_eq!(rows.len(), 4, "{said}");
    assert!(rows[0].starts_with("galaxy-s10  lenet5") && rows[0].contains("of 10"), "{said}");
    assert!(said.contains("\nthe front of lenet5 on galaxy-s10: "), "{said}");
    let last = "wrote out/results.parquet, results.csv, run.json and 4 pictures of fronts, pareto-*.{svg,png}";
    assert_eq!(lines.last(), Some(&last));
    assert!(lines.len() <= 26, "{said}");
    // The same for any split into shards, and after a merge.
    for part in 1..=2 {
        let said = sweep(folder.path(), &format!("--out part{part} --shard {part}/2 --jobs 2"));
        assert!(said.starts_with("40 runs: "), "{said}");
    }
    let merged = call_in(folder.path(), &["merge", "part1", "part2", "--out", "out"]);
    assert_eq!((merged.status.code(), stdout(&merged)), (Some(0), said), "{}", stderr(&merged));
}

#[test]
fn the_csv_has_the_columns_and_rows_of_the_table() {
    let folder = folder();
    sweep(folder.path(), "--out out");
    let frame = read_parquet(&folder.path().join("out/results.parquet")).unwrap();
    let mut reader = csv::Reader::from_path(folder.path().join("out/results.csv")).unwrap();
    let names: Vec<String> = frame.get_column_names().iter().map(|name| name.to_string()).collect();
    assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>(), names);
    let mut rows = 0;
    for (row, record) in reader.records().map(Result::unwrap).enumerate() {
        rows += 1;
        for (name, cell) in names.iter().zip(record.iter()) {
            match frame.column(name).unwrap().get(row).unwrap() {
                AnyValue::Null => assert_eq!(cell, "", "{name} of {row}"),
                AnyValue::String(text) => assert_eq!(cell, text),
                AnyValue::UInt64(number) => assert_eq!(cell.parse(), Ok(number)),
                AnyValue::Int64(number) => assert_eq!(cell.parse(), Ok(number)),
                AnyValue::Float64(number) => assert_eq!(cell.parse(), Ok(number), "{name} of {row}"),
                AnyValue::List(list) => {
                    let read: Vec<f64> = serde_json::from_str(cell).unwrap();
                    let numbers: Vec<f64> = match list.u64() {
                        Ok(wholes) => wholes.iter().flatten().map(|whole| whole as f64).collect(),
                        Err(_) => list.f64().unwrap().iter().flatten().collect(),
                    };
                    assert_eq!(read, numbers, "{name} of {row}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }
    assert_eq!(rows, frame.height());
}

#[test]
fn words_stand_for_every_policy_and_for_devices_of_a_form() {
    let folder = tempdir().unwrap();
    let specification = |text: &str| fs::write(folder.path().join("spec.toml"), text).unwrap();
    specification("device = [\"gpus\", \"server-core\"]\nmodel = \"lenet5\"\nbatch = 8\npolicy = \"all\"\n");
    let said = sweep(folder.path(), "--out out");
    let frame = read_parquet(&folder.path().join("out/results.parquet")).unwrap();
    let policies = haversack_policies::registry::POLICIES.len();
    let (devices, statuses) = (texts(&frame, "device"), texts(&frame, "status"));
    assert_eq!(devices[0].as_deref(), Some("rtx-3090"));
    assert_eq!(devices.iter().filter(|device| device.as_deref() == Some("server-core")).count(), policies);
    // Mandheling's engine runs on no device here: that is a row, because the word selected it.
    let place = texts(&frame, "policy").iter().position(|policy| policy.as_deref() == Some("mandheling")).unwrap();
    assert_eq!(statuses[place].as_deref(), Some("unsupported"));
    assert!(said.lines().next().is_some_and(|line| line.contains(" unsupported")), "{said}");
    assert!(said.lines().count() <= 26, "{said}");
    // Named in addition to the word, it is a mistake again.
    specification("device = \"gpus\"\nmodel = \"lenet5\"\nbatch = 8\npolicy = [\"all\", \"mandheling\"]\n");
    let message = refusal(&call_in(folder.path(), &["sweep", "spec.toml", "--out", "other"]), 2);
    assert!(message.contains("spec.toml:4: policy: ") && message.contains("DSP"), "{message}");
    // A mistake in addition to a word is still one.
    specification("device = \"phones\"\nmodel = \"lenet6\"\npolicy = \"all\"\n");
    let message = refusal(&call_in(folder.path(), &["sweep", "spec.toml", "--out", "other"]), 2);
    assert!(message.contains("spec.toml:2: model: ") && message.contains("'lenet5'"), "{message}");
    // The words are only for sweeps.
    let one = ["simulate", "--device", "phones", "--model", "lenet5"];
    refusal(&call_in(folder.path(), &one), 2);
}

#[test]
fn a_dry_run_counts_and_writes_nothing() {
    let folder = folder();
    let said = sweep(folder.path(), "--out out --dry-run");
    assert!(!folder.path().join("out").exists());
    assert!(said.starts_with("80 runs\n"), "{said}");
    for (key, number, values) in [
        ("device", 2, "galaxy-s10, rtx-3090"),
        ("policy", 4, "original, dga, sage order=dga-first, sage order=half"),
        ("memory_budget", 5, "20%, 40%, 60%, 80%, 100%"),
    ] {
        let line = said.lines().find(|line| line.starts_with(key)).unwrap();
        assert!(line.contains(&format!(" {number}  {values}")), "{line}");
    }
    assert!(said.contains("\n0 are known to be unsupported"), "{said}");
    // It lists the files that a sweep writes.
    sweep(folder.path(), "--out out");
    let listed = said.lines().last().unwrap();
    for name in files(&folder.path().join("out")).keys().filter(|name| *name != ".lock") {
        let stem = name.strip_suffix(".svg").or(name.strip_suffix(".png")).unwrap_or(name);
        assert!(listed.contains(stem), "{name}: {listed}");
    }
    let part = sweep(folder.path(), "--out part --dry-run --shard 2/4");
    assert!(part.contains("\nshard 2/4 runs 20 of them, from run 20 on\n"), "{part}");
    assert!(!part.contains("pareto-"), "a shard draws no fronts: {part}");
    // Of two devices one has no DSP: half of the runs of mandheling, at three budgets each.
    let text = "device = [\"xiaomi-10\", \"rtx-3090\"]\nmodel = \"lenet5\"\npolicy = [\"original\", \"mandheling\"]\n\
        batch = 8\nmemory_budget = { from = \"50%\", to = \"100%\", steps = 3 }\n";
    fs::write(folder.path().join("spec.toml"), text).unwrap();
    let said = sweep(folder.path(), "--dry-run");
    assert!(said.starts_with("12 runs\n") && said.contains("\n3 are known to be unsupported"), "{said}");
}
