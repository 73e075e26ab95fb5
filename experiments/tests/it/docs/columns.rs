//! `docs/columns.md` lists exactly the columns and keys that are written.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use polars::prelude::{ParquetReader, SerReader};
use serde_json::Value;

use super::markdown::{Page, root};
use crate::support::{call_in, json, keys, stderr};

/// The names that the page lists under a heading.
fn listed(heading: &str) -> BTreeSet<String> {
    Page::read(&root().join("docs/columns.md")).names_under(heading).into_iter().collect()
}

/// The JSON output of `arguments`.
fn answer(folder: &Path, arguments: &str) -> Value {
    json(&call_in(folder, &arguments.split(' ').collect::<Vec<_>>()))
}

fn run(folder: &Path, arguments: &str) {
    let output = call_in(folder, &arguments.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{arguments}: {}", stderr(&output));
}

fn names<'a>(written: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    written.into_iter().map(str::to_owned).collect()
}

/// The columns of a Parquet file.
fn columns(path: &Path) -> BTreeSet<String> {
    let mut reader = ParquetReader::new(fs::File::open(path).unwrap());
    reader.schema().unwrap().iter_names().map(ToString::to_string).collect()
}

#[track_caller]
fn same(what: &str, listed: &BTreeSet<String>, written: &BTreeSet<String>) {
    let missing: Vec<_> = written.difference(listed).collect();
    let extra: Vec<_> = listed.difference(written).collect();
    assert!(missing.is_empty() && extra.is_empty(), "{what}: docs/columns.md lacks {missing:?} and has {extra:?}");
}

#[test]
fn the_keys_of_a_run_and_the_columns_of_a_sweep_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let within = folder.path();
    let scenario = "--device galaxy-s10 --model lenet5";
    let found = answer(within, &format!("simulate {scenario} --format json --explain --least-memory"));
    let (breakdown, keys_of_scenario) = (listed("### breakdown"), listed("### scenario"));
    same("breakdown", &breakdown, &names(keys(&found["breakdown"])));
    let bounds = listed("### bound_by");
    same("bound_by", &bounds, &names(keys(&found["bound_by"])));
    same("scenario", &keys_of_scenario, &names(keys(&found["scenario"])));
    let on_phone =
        answer(within, "simulate --device galaxy-s22 --stack mnn-2 --model lenet5 --system android --format json");
    let of_phone = listed("### phone");
    same("phone", &of_phone, &names(keys(&on_phone["phone"])));
    let figures: BTreeSet<_> = listed("## simulate")
        .difference(&breakdown)
        .filter(|name| !keys_of_scenario.contains(*name) && !bounds.contains(*name) && !of_phone.contains(*name))
        .filter(|name| *name != "phone")
        .cloned()
        .collect();
    same("simulate", &figures, &names(keys(&found)));

    fs::write(within.join("sweep.toml"), "device = \"galaxy-s10\"\nmodel = \"lenet5\"\n").unwrap();
    run(within, "sweep sweep.toml --out sweep");
    let nested = ["breakdown", "bound_by", "longest", "scenario", "peak", "modules"];
    let mut expected = listed("## sweep");
    expected.extend(keys_of_scenario);
    expected.extend(figures.into_iter().filter(|name| !nested.contains(&name.as_str())));
    expected.extend(breakdown.iter().map(|part| format!("breakdown_{part}")));
    expected.extend(bounds.iter().map(|bound| format!("bound_by_{bound}")));
    same("sweep", &expected, &columns(&within.join("sweep/results.parquet")));
    let record: Value = serde_json::from_str(&fs::read_to_string(within.join("sweep/run.json")).unwrap()).unwrap();
    let of_records = listed("## run.json");
    let not_listed: Vec<_> = keys(&record).into_iter().filter(|key| !of_records.contains(*key)).collect();
    assert!(not_listed.is_empty(), "docs/columns.md lacks {not_listed:?}");
}

#[test]
fn the_keys_of_what_answers_questions_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let within = folder.path();
    let scenario = "--device galaxy-s10 --model lenet5";
    let advice = answer(within, &format!("advise {scenario} --format json"));
    let candidates = listed("### candidates");
    same("candidates", &candidates, &names(keys(&advice["candidates"][0])));
    same("advise", &listed("## advise"), &names(keys(&advice)).union(&candidates).cloned().collect());

    let tuned = answer(within, &format!("tune dtr {scenario} --tries 3 --format json"));
    same("tune", &listed("## tune"), &names(keys(&tuned)));

    let moved = answer(within, &format!("sensitivity {scenario} --policy dgc --format json"));
    let constants = listed("### constants");
    same("constants", &constants, &names(keys(&moved["constants"][0])));
    same("sensitivity", &listed("## sensitivity"), &names(keys(&moved)).union(&constants).cloned().collect());

    fs::write(within.join("sweep.toml"), "device = \"galaxy-s10\"\nmodel = \"lenet5\"\n").unwrap();
    run(within, "sweep sweep.toml --out sweep");
    same("compare", &listed("## compare"), &names(keys(&answer(within, "compare sweep sweep --format json"))));
}

#[test]
fn the_columns_of_a_reproduction_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let within = folder.path();
    run(within, "reproduce sage/section5 --out out");
    let cells = fs::read_to_string(within.join("out/cells.csv")).unwrap();
    same("cells.csv", &listed("## cells.csv"), &names(cells.lines().next().unwrap().split(',')));
    fs::write(within.join("sweep.toml"), "device = \"galaxy-s10\"\nmodel = \"lenet5\"\n").unwrap();
    run(within, "sweep sweep.toml --out sweep");
    let record =
        |path: &str| -> Value { serde_json::from_str(&fs::read_to_string(within.join(path)).unwrap()).unwrap() };
    let (reproduction, sweep) = (record("out/run.json"), record("sweep/run.json"));
    let written: BTreeSet<_> = names(keys(&reproduction)).union(&names(keys(&sweep))).cloned().collect();
    same("run.json", &listed("## run.json"), &written);
}

#[test]
fn the_columns_of_traces_and_the_keys_of_counts_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let within = folder.path();
    run(within, "trace generate --users 1 --days 1 --out apps.parquet");
    let counters = listed("### Counters");
    let only_apps = ["package", "adj", "source", "confidence"];
    let apps = listed("## Traces");
    same("apps and counters", &apps, &columns(&within.join("apps.parquet")).union(&counters).cloned().collect());
    assert!(only_apps.iter().all(|name| !counters.contains(*name)), "{counters:?}");
    fs::write(within.join("meminfo"), "MemTotal: 8000 kB\nMemFree: 500 kB\nMemAvailable: 900 kB\n").unwrap();
    run(within, "trace import --kind meminfo meminfo --out memory.parquet");
    same("counters", &counters, &columns(&within.join("memory.parquet")));

    same("model", &listed("## model"), &names(keys(&answer(within, "model lenet5 --format json"))));
    let log = root().join("examples/operators.log");
    let replayed = answer(within, &format!("replay {} --memory-ratio 0.5 --format json", log.display()));
    same("replay", &listed("## replay"), &names(keys(&replayed)));
}
