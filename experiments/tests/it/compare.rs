//! `haversack compare`: differences between sweeps, between reproductions, and between single tables.

use std::fs;

use tempfile::tempdir;

use crate::support::{call_in, json, refusal, stderr, stdout};
use crate::sweep::{folder, sweep};

#[test]
fn sweeps_are_matched_by_their_scenarios() {
    let folder = folder();
    let path = folder.path();
    let call = |line: &str| call_in(path, &line.split(' ').collect::<Vec<_>>());
    sweep(path, "--out before");
    sweep(path, "--out same");
    let same = call("compare before same --fail-on-change");
    assert_eq!((same.status.code(), stdout(&same).as_str()), (Some(0), "0 of 80 runs moved\n"), "{}", stderr(&same));

    // Four of the five budgets stay, one is removed and one is added: 2 devices, 2 models, 4
    // policies make 16 runs each.
    let text = fs::read_to_string(path.join("spec.toml")).unwrap();
    let budgets = "memory_budget = [\"40%\", \"60%\", \"80%\", \"100%\", \"120%\"]";
    let text = text.replace("memory_budget = { from = \"20%\", to = \"100%\", steps = 5 }", budgets);
    fs::write(path.join("spec.toml"), &text).unwrap();
    sweep(path, "--out after");
    let found = json(&call("compare before after --format json"));
    assert_eq!((found["kind"].as_str(), found["both"].as_u64()), (Some("runs"), Some(64)));
    assert_eq!(found["moved"].as_array().map(Vec::len), Some(0), "what both ran came to the same");
    for side in ["only_before", "only_after"] {
        assert_eq!(found[side].as_array().map(Vec::len), Some(16), "{side}");
    }
    assert!(
        found["only_after"][0].as_str().unwrap().contains("policy = original")
            && !found["record"]["specification"].is_null()
    );
    assert_eq!(call("compare before after --fail-on-change --common").status.code(), Some(0));
    let message = refusal(&call("compare before after --fail-on-change"), 1);
    assert!(message.contains("32 rows moved"), "{message}");
    let said = stdout(&call("compare before after"));
    // Keys that are the same in all runs do not identify any: there is one batch size.
    assert!(said.contains("memory_budget: 20%, 40%, 60%, 80%, 100% → 40%, ") && !said.contains("batch = "), "{said}");
    assert!(said.contains("16 only before:\n") && said.contains("… and 8 more"), "{said}");

    refusal(&call("compare before nowhere"), 2);
}

#[test]
fn cells_are_matched_by_id_and_the_farthest_comes_first() {
    let top = tempdir().unwrap();
    let call = |line: &str| call_in(top.path(), &line.split(' ').collect::<Vec<_>>());
    assert_eq!(call("reproduce daf/table3 sage/section5 --out before").status.code(), Some(0));
    assert_eq!(call("reproduce daf/table3 --out after --seed 3").status.code(), Some(0));
    let path = top.path().join("after/cells.csv");
    let text = fs::read_to_string(&path).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let numeric: Vec<&csv::StringRecord> =
        rows.iter().filter(|row| row[1].parse::<f64>().is_ok_and(|n| n > 0.0)).collect();
    // The first number grows by a tenth, the second doubles: +10 % and +100 %.
    let mut writer = csv::Writer::from_path(&path).unwrap();
    writer.write_record(["id", "simulated", "unit", "paper", "role", "error", "verdict", "null", "reason"]).unwrap();
    for row in &rows {
        let factor = if row[0] == numeric[0][0] {
            1.1
        } else if row[0] == numeric[1][0] {
            2.0
        } else {
            1.0
        };
        let mut fields: Vec<String> = row.iter().map(str::to_owned).collect();
        if factor > 1.0 {
            fields[1] = (row[1].parse::<f64>().unwrap() * factor).to_string();
            fields[6] = "off".to_owned();
        }
        writer.write_record(&fields).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);

    let found = json(&call("compare before after --format json"));
    let moved = found["moved"].as_array().unwrap();
    let ids: Vec<&str> = moved.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [&numeric[1][0], &numeric[0][0]]);
    assert!((moved[0]["distance"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    assert_eq!(moved[1]["changes"]["simulated"]["before"].as_f64(), numeric[0][1].parse().ok());
    assert_eq!(found["record"]["seed"], serde_json::json!({ "before": 0, "after": 3 }));
    assert!(found["only_before"].as_array().is_some_and(|ids| !ids.is_empty()));
    let said = stdout(&call("compare before/run.json after/run.json"));
    assert!(said.starts_with("seed: 0 → 3\n") && said.contains("\n  +100.0%  "), "{said}");
    let message = refusal(&call("compare before/cells.csv after/cells.csv --common --fail-on-change"), 1);
    assert!(message.contains("2 rows moved"), "{message}");
    let message = refusal(&call("compare before/cells.csv before/index.html"), 2);
    assert!(message.contains("index.html: expected the columns id and simulated"), "{message}");
}

#[test]
fn results_of_two_kinds_are_not_compared() {
    let folder = folder();
    let call = |line: &str| call_in(folder.path(), &line.split(' ').collect::<Vec<_>>());
    sweep(folder.path(), "--out swept");
    assert_eq!(call("reproduce sage/section5 --out reproduced").status.code(), Some(0));
    let message = refusal(&call("compare swept reproduced"), 2);
    assert!(message.contains("swept has runs and reproduced has cells"), "{message}");
    fs::create_dir(folder.path().join("empty")).unwrap();
    let message = refusal(&call("compare swept empty"), 2);
    assert!(message.contains("empty: holds no results; expected a folder of `reproduce` or `sweep`"), "{message}");
}
