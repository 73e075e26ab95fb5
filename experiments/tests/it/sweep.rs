//! `haversack sweep` and `merge`: the same bytes however they are run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::{call_in, refusal, stderr, stdout};
use haversack_reports::frame::read_parquet;
use polars::prelude::DataFrame;
use tempfile::{TempDir, tempdir};

const SPECIFICATION: &str = r#"
device = ["galaxy-s10", "rtx-3090"]
model = ["lenet5", "mobilenetv2-slim"]
batch = [8]
policy = ["original", "dga", "sage"]
memory_budget = { from = "20%", to = "100%", steps = 5 }
seed = [1]

[set.sage]
order = ["dga-first", "half"]
"#;
/// Two devices, two models, (original, dga, sage in two orders), five budgets.
const RUNS: usize = 2 * 2 * 4 * 5;

pub(crate) fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("spec.toml"), SPECIFICATION).unwrap();
    folder
}

/// Runs the sweep; returns its final message.
pub(crate) fn sweep(folder: &Path, flags: &str) -> String {
    let line = format!("sweep spec.toml {flags}");
    let output = call_in(folder, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output)
}

/// Every file of a folder with its bytes.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

pub(crate) fn same(folder: &TempDir, one: &str, other: &str) {
    let (one, other) = (files(&folder.path().join(one)), files(&folder.path().join(other)));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (name, bytes) in &one {
        assert!(other[name] == *bytes, "{name} differs");
    }
}

pub(crate) fn texts(frame: &DataFrame, column: &str) -> Vec<Option<String>> {
    frame.column(column).unwrap().str().unwrap().iter().map(|text| text.map(str::to_owned)).collect()
}

pub(crate) fn wholes(frame: &DataFrame, column: &str) -> Vec<Option<u64>> {
    frame.column(column).unwrap().u64().unwrap().iter().collect()
}

fn reals(frame: &DataFrame, column: &str) -> Vec<Option<f64>> {
    frame.column(column).unwrap().f64().unwrap().iter().collect()
}

#[test]
fn one_thread_and_two_and_shards_give_the_same_bytes() {
    let folder = folder();
    sweep(folder.path(), "--out one --jobs 1");
    sweep(folder.path(), "--out two --jobs 2");
    same(&folder, "one", "two");
    for part in 1..=3 {
        sweep(folder.path(), &format!("--out part{part} --shard {part}/3"));
    }
    let merged = call_in(folder.path(), &["merge", "part3", "part1", "part2", "--out", "merged"]);
    assert_eq!(merged.status.code(), Some(0), "{}", stderr(&merged));
    same(&folder, "one", "merged");

    let message = refusal(&call_in(folder.path(), &["merge", "part1", "part3", "--out", "m"]), 2);
    assert!(message.contains("runs 26 to 52 are in none"), "{message}");
    let message = refusal(&call_in(folder.path(), &["merge", "part1", "part2", "part2", "part3", "--out", "m"]), 2);
    assert!(message.contains("is in another folder too"), "{message}");
    fs::write(folder.path().join("spec.toml"), SPECIFICATION.replace("[1]", "[2]")).unwrap();
    sweep(folder.path(), "--out part2 --shard 2/3 --overwrite");
    let message = refusal(&call_in(folder.path(), &["merge", "part1", "part2", "part3", "--out", "m"]), 2);
    assert!(message.contains("are of different sweeps"), "{message}");
    assert!(!folder.path().join("m").exists());
}

#[test]
fn a_killed_sweep_goes_on_to_the_same_bytes() {
    let folder = folder();
    sweep(folder.path(), "--out whole");
    // The state after a kill: the header, some finished runs in any order, and an incomplete line.
    let mut child = crate::support::command(folder.path(), &["sweep", "spec.toml", "--out", "killed", "--jobs", "1"])
        .spawn()
        .unwrap();
    let part = folder.path().join("killed/rows.part");
    let written = || fs::read(&part).map(|bytes| bytes.iter().filter(|&&byte| byte == b'\n').count()).unwrap_or(0);
    while written() < 5 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    if let Ok(text) = fs::read_to_string(&part) {
        let mut lines: Vec<&str> = text.lines().collect();
        lines[1..].reverse();
        let last = lines.pop().unwrap();
        fs::write(&part, format!("{}\n{}", lines.join("\n"), &last[..last.len() / 2])).unwrap();
    }
    sweep(folder.path(), "--out killed --resume");
    same(&folder, "whole", "killed");
    // Another run finds nothing to do, and a fresh folder may be resumed.
    sweep(folder.path(), "--out killed --resume");
    sweep(folder.path(), "--out fresh --resume");
    same(&folder, "whole", "fresh");
}

#[test]
fn only_the_same_sweep_is_resumed() {
    let folder = folder();
    sweep(folder.path(), "--out out");
    let part = folder.path().join("out/rows.part");
    fs::write(&part, "{\"specification\":{}}\n").unwrap();
    let message = refusal(&call_in(folder.path(), &["sweep", "spec.toml", "--resume"]), 2);
    assert!(message.contains("rows.part is of another specification"), "{message}");
    assert!(part.exists());
    // Without --resume it starts over.
    sweep(folder.path(), "--out out");
    assert!(!part.exists());
}

#[test]
fn the_table_has_every_key_and_every_run() {
    let folder = folder();
    sweep(folder.path(), "--out out");
    let frame = read_parquet(&folder.path().join("out/results.parquet")).unwrap();
    assert_eq!(frame.height(), RUNS);
    let names: Vec<String> = frame.get_column_names().iter().map(|name| name.to_string()).collect();
    // Every key has its column; keys that were added later have one only if the specification sets
    // them, which it does not here.
    for key in haversack::scenario::Key::ALL {
        assert_eq!(names.iter().any(|name| name == key.name()), !key.is_shown_if_given(), "{}", key.name());
    }
    for name in
        ["iteration_time_s", "peak_growth_bytes", "micro_batches", "breakdown_convolution", "breakdown_recompute"]
    {
        assert!(names.iter().any(|found| found == name), "no {name}");
    }
    assert_eq!(names[names.len() - 3..], ["status", "least_memory_bytes", "reason"]);
    assert_eq!(wholes(&frame, "run"), (0..RUNS as u64).map(Some).collect::<Vec<_>>());

    let (status, least) = (texts(&frame, "status"), wholes(&frame, "least_memory_bytes"));
    let (budget, peak) = (wholes(&frame, "memory_budget_bytes"), wholes(&frame, "peak_memory_bytes"));
    let (reason, time) = (texts(&frame, "reason"), reals(&frame, "iteration_time_s"));
    let mut infeasible = 0;
    for run in 0..RUNS {
        match status[run].as_deref() {
            Some("ok") => {
                assert!(
                    peak[run] <= budget[run] && time[run].is_some() && least[run].is_none() && reason[run].is_none()
                );
            }
            Some("infeasible") => {
                infeasible += 1;
                // Least budgets are accurate to a thousandth.
                assert!(least[run].unwrap() as f64 > 0.999 * budget[run].unwrap() as f64, "run {run}");
                assert!(time[run].is_none() && reason[run].as_deref().unwrap().contains("--memory-budget"));
            }
            other => panic!("run {run}: {other:?}: {:?}", reason[run]),
        }
    }
    // Original fits at 100% only: four of its five budgets are infeasible, for each device and model.
    let original = texts(&frame, "policy")
        .into_iter()
        .zip(&status)
        .filter(|(policy, status)| policy.as_deref() == Some("original") && status.as_deref() == Some("infeasible"));
    assert_eq!(original.count(), 2 * 2 * 4);
    assert!((16..RUNS).contains(&infeasible));
    let figures = files(&folder.path().join("out"));
    let drawn: Vec<&String> = figures.keys().filter(|name| name.starts_with("pareto-")).collect();
    assert_eq!(drawn.len(), 2 * 2 * 2, "{drawn:?}");
    assert!(!figures.contains_key("rows.part"));
}

#[test]
fn a_row_says_what_simulate_says() {
    let folder = folder();
    sweep(folder.path(), "--out out");
    let frame = read_parquet(&folder.path().join("out/results.parquet")).unwrap();
    // Run 19 is the last of the first model: sage, half, 100%.
    let line = "simulate --device galaxy-s10 --model lenet5 --batch 8 --policy sage --set order=half --memory-budget 100% --format json";
    let found = crate::support::json(&call_in(folder.path(), &line.split(' ').collect::<Vec<_>>()));
    assert_eq!(reals(&frame, "iteration_time_s")[19], found["iteration_time_s"].as_f64());
    assert_eq!(wholes(&frame, "reserved_bytes")[19], found["reserved_bytes"].as_u64());
    assert_eq!(reals(&frame, "energy_j")[19], found["energy_j"].as_f64());
    assert_eq!(texts(&frame, "set")[19].as_deref(), Some("order=half"));
    assert_eq!(texts(&frame, "graph")[19].as_deref(), found["scenario"]["graph"].as_str());
}

#[test]
fn each_stack_of_a_sweep_saves_what_it_saves_alone() {
    // PyTorch 1.6 saves the results of activations in place; PyTorch 2.4 fuses attention.
    for model in ["mobilenetv2", "transformer1"] {
        let folder = tempdir().unwrap();
        let base = format!("device = \"jetson-tx2\"\nmodel = \"{model}\"\n");
        let stacks = ["pytorch-cuda", "pytorch-cuda-1.6"];
        fs::write(folder.path().join("spec.toml"), format!("{base}stack = {stacks:?}\n")).unwrap();
        sweep(folder.path(), "--out out");
        let frame = read_parquet(&folder.path().join("out/results.parquet")).unwrap();
        let alone = stacks.map(|stack| {
            let line = format!("simulate --device jetson-tx2 --model {model} --stack {stack} --format json");
            crate::support::json(&call_in(folder.path(), &line.split(' ').collect::<Vec<_>>()))["saved_peak_bytes"]
                .as_u64()
        });
        assert_eq!(wholes(&frame, "saved_peak_bytes"), alone, "{model}");
        assert_ne!(alone[0], alone[1], "{model}");
    }
}

#[test]
fn time_budgets_and_percentages_of_nothing_are_rows_too() {
    let folder = tempdir().unwrap();
    let text = "device = \"galaxy-s10\"\nmodel = \"lenet5\"\ntime_budget = [\"1us\", \"1000s\"]\nactivation_budget = [\"50%\", \"100%\"]\n";
    fs::write(folder.path().join("spec.toml"), text).unwrap();
    sweep(folder.path(), "--out out");
    let frame = read_parquet(&folder.path().join("out/results.parquet")).unwrap();
    let status: Vec<String> = texts(&frame, "status").into_iter().flatten().collect();
    // Activation budgets vary more slowly than time budgets.
    assert_eq!(status, ["infeasible", "infeasible", "infeasible", "ok"]);
    assert!(texts(&frame, "reason")[2].as_deref().unwrap().contains("time budget"));
    assert!(wholes(&frame, "activation_budget_bytes").iter().all(Option::is_some));
}

#[test]
fn a_folder_that_cannot_be_had_is_named() {
    let folder = folder();
    fs::write(folder.path().join("file"), "").unwrap();
    let message = refusal(&call_in(folder.path(), &["sweep", "spec.toml", "--out", "file/out"]), 2);
    assert!(message.contains("file/out"), "{message}");
}

/// A complete folder is not overwritten: another specification, a shard of the same and another command are rejected.
#[test]
fn a_folder_belongs_to_one_command_and_one_specification() {
    let folder = folder();
    let path = folder.path();
    sweep(path, "--out out");
    let before = files(&path.join("out"));
    fs::write(path.join("other.toml"), SPECIFICATION.replace("seed = [1]", "seed = [2]")).unwrap();
    for line in [
        "sweep other.toml --out out",
        "sweep other.toml --out out --resume",
        "sweep spec.toml --out out --shard 1/4",
        "sweep spec.toml --out out --shard 1/4 --resume",
        "reproduce sage/section5 --out out",
    ] {
        let message = refusal(&call_in(path, &line.split(' ').collect::<Vec<_>>()), 2);
        assert!(message.contains("out holds the results of 'sweep'") && message.contains("--overwrite"), "{message}");
        assert!(files(&path.join("out")) == before, "{line} changed something");
    }
    // The same again replaces its own.
    sweep(path, "--out out");
    assert!(files(&path.join("out")) == before);
    // --overwrite deletes the listed files: the fronts are deleted, because a shard draws none, and other files stay.
    fs::write(path.join("out/notes.txt"), "mine").unwrap();
    sweep(path, "--out out --shard 1/4 --overwrite");
    let names: Vec<String> = files(&path.join("out")).into_keys().collect();
    assert_eq!(names, [".lock", "notes.txt", "results.csv", "results.parquet", "run.json"]);
}

#[test]
fn a_reproduction_keeps_its_folder_from_sweeps_and_takes_more_artefacts() {
    let folder = folder();
    let call = |line: &str| call_in(folder.path(), &line.split(' ').collect::<Vec<_>>());
    assert_eq!(call("reproduce sage/section5 --out out").status.code(), Some(0));
    let message = refusal(&call("sweep spec.toml --out out"), 2);
    assert!(message.contains("'reproduce'"), "{message}");
    refusal(&call("reproduce sage/section5 --out out --seed 7"), 2);
    assert_eq!(call("reproduce daf/table3 --out out").status.code(), Some(0));
    let record: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("out/run.json")).unwrap()).unwrap();
    let outputs: Vec<&str> = record["outputs"].as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
    for name in ["cells.csv", "index.html", "daf/table3.csv", "sage/section5.csv"] {
        assert!(outputs.contains(&name), "{name} is not in {outputs:?}");
    }
    assert!(outputs.iter().all(|name| folder.path().join("out").join(name).is_file()), "{outputs:?}");
}

#[test]
fn two_sweeps_do_not_write_to_one_folder_at_once() {
    let folder = folder();
    fs::create_dir(folder.path().join("out")).unwrap();
    let lock = fs::File::create(folder.path().join("out/.lock")).unwrap();
    lock.lock().unwrap();
    let message = refusal(&call_in(folder.path(), &["sweep", "spec.toml", "--out", "out"]), 2);
    assert!(message.contains("another process writes to out"), "{message}");
    // The lock belongs to the process: a file that is left behind locks nothing.
    drop(lock);
    sweep(folder.path(), "--out out");
}

/// Mandheling needs a DSP, which an RTX 3090 does not have: a row of the table. An unknown network is a mistake.
#[test]
fn what_does_not_go_together_is_a_row_and_what_fits_nowhere_a_mistake() {
    let folder = tempdir().unwrap();
    let specification = |device: &str, model: &str| {
        let text =
            format!("device = {device}\nmodel = {model}\nbatch = [8]\npolicy = [\"original\", \"mandheling\"]\n");
        fs::write(folder.path().join("spec.toml"), text).unwrap();
    };
    specification("[\"xiaomi-10\", \"rtx-3090\"]", "[\"lenet5\"]");
    sweep(folder.path(), "--out out");
    let frame = read_parquet(&folder.path().join("out/results.parquet")).unwrap();
    let (status, reason) = (texts(&frame, "status"), texts(&frame, "reason"));
    // xiaomi-10 with both policies, rtx-3090 with both.
    let status: Vec<&str> = status.iter().flatten().map(String::as_str).collect();
    assert_eq!(status, ["ok", "ok", "ok", "unsupported"]);
    assert!(reason[3].as_deref().is_some_and(|reason| reason.contains("rtx-3090 has no modelled DSP")), "{reason:?}");

    specification("[\"xiaomi-10\", \"rtx-3090\"]", "[\"lenet5\", \"lenet6\"]");
    let message = refusal(&call_in(folder.path(), &["sweep", "spec.toml", "--out", "other"]), 2);
    assert!(message.contains("spec.toml:2: model: ") && message.contains("'lenet5'"), "{message}");
    // No device has a DSP: the policy runs on none.
    specification("[\"rtx-3090\"]", "[\"lenet5\"]");
    let message = refusal(&call_in(folder.path(), &["sweep", "spec.toml", "--out", "other"]), 2);
    assert!(message.contains("spec.toml:4: policy: rtx-3090 has no modelled DSP"), "{message}");
}

/// A stack that does not run on the phone, and a network that does not fit in its memory, are rows.
#[test]
fn what_a_device_cannot_run_or_hold_is_a_row() {
    let folder = tempdir().unwrap();
    let text = "device = [\"galaxy-s10\", \"rtx-3090\"]\nstack = [\"mnn\", \"pytorch-cuda\"]\nmodel = [\"vgg16\"]\n\
                batch = [8, 256]\npolicy = [\"original\"]\n";
    fs::write(folder.path().join("spec.toml"), text).unwrap();
    sweep(folder.path(), "--out out");
    let frame = read_parquet(&folder.path().join("out/results.parquet")).unwrap();
    let status = texts(&frame, "status");
    let status: Vec<&str> = status.iter().flatten().map(String::as_str).collect();
    assert_eq!(status[..4], ["ok", "infeasible", "unsupported", "unsupported"]);
    assert_eq!(status[4..7], ["unsupported", "unsupported", "ok"]);
    let reason = texts(&frame, "reason");
    assert!(reason[1].as_deref().is_some_and(|reason| reason.contains("the least memory that works")), "{reason:?}");
    assert!(reason[2].as_deref().is_some_and(|reason| reason.contains("runs on GPUs of NVIDIA")), "{reason:?}");
}
