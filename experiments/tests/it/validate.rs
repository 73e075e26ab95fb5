//! `validate`: its report on measured sets, its errors for wrong ones, and the errors of the committed sets.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

use haversack_devices::load;
use serde_json::Value;
use tempfile::TempDir;

use crate::docs::markdown::root;
use crate::support::{call, call_in, json, keys, refusal, stderr, stdout};

const SET: &str = "kind = \"training\"\ntitle = \"two phones\"\nsource = \"nobody\"\nmethod = \"none\"\n\n\
    [scenario]\npolicy = \"original\"\nstack = \"ncnn\"\ninference = true\n";
const HEAD: &str = "id,device,model,batch,what,unit,value,role,note\n";

fn folder(about: &str, rows: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("set")).unwrap();
    fs::write(folder.path().join("set/set.toml"), about).unwrap();
    fs::write(folder.path().join("set/rows.csv"), rows).unwrap();
    folder
}

fn refused(about: &str, rows: &str) -> String {
    refusal(&call_in(folder(about, rows).path(), &["validate", "set"]), 2)
}

fn table(path: &Path) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(path).unwrap();
    reader.records().map(|record| record.unwrap().iter().map(str::to_owned).collect()).collect()
}

#[test]
fn a_row_that_cannot_run_says_why_and_the_others_go_on() {
    let rows = format!(
        "{HEAD}a,pixel-6,resnet18,1,iteration_time_s,ms,100,check,\nb,no-phone,resnet18,1,iteration_time_s,s,0.1,check,\n\
         c,pixel-6,resnet18,1,iteration_time_s,s,,withheld,\nd,pixel-6,resnet18,1,samples_per_s,,10,fit,\n"
    );
    let folder = folder(SET, &rows);
    let output = call_in(folder.path(), &["validate", "set", "--out", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("no answer to b: `device`"), "{}", stdout(&output));
    let table = table(&folder.path().join("out/validation.csv"));
    assert_eq!(table[0], ["set", "id", "what", "unit", "measured", "simulated", "error", "role", "reason"]);
    let number = |row: usize, column: usize| table[row][column].parse::<f64>().unwrap();
    // In milliseconds, or in seconds without a measurement; a number has no unit.
    assert!((number(1, 5) / 1e3 - number(3, 5)).abs() < 1e-12);
    assert!((number(1, 6) - (number(1, 5) - 100.0) / 100.0).abs() < 1e-12 && table[3][6].is_empty());
    assert!(table[2][5].is_empty() && table[2][8].contains("no-phone"), "{:?}", table[2]);
    assert!((number(4, 5) * number(3, 5) - 1.0).abs() < 1e-9);
    assert!(fs::read_to_string(folder.path().join("out/set.svg")).unwrap().contains("a: "));
    assert!(folder.path().join("out/set.png").is_file());
    // The same call replaces its own files; other rows need another folder.
    assert_eq!(call_in(folder.path(), &["validate", "set", "--out", "out"]).status.code(), Some(0));
    let other = call_in(folder.path(), &["validate", "set", "--role", "fit", "--out", "out"]);
    assert!(refusal(&other, 2).contains("--overwrite"));
}

#[test]
fn what_was_measured_ran_and_only_the_largest_batch_asks_what_the_device_holds() {
    // A batch of 256 exceeds the phone's memory, one of 4 does not.
    let about = SET.replace("stack = \"ncnn\"\ninference = true\n", "");
    let rows = "id,device,model,batch,batches,what,unit,value,role\na,galaxy-s10,vgg16,256,,iteration_time_s,s,,withheld\n\
        b,galaxy-s10,vgg16,1,256 4,largest_batch,,4,check\n";
    let answer = json(&call_in(folder(&about, rows).path(), &["validate", "set", "--format", "json"]));
    let simulated = |row: usize| answer[0]["rows"][row]["simulated"].as_f64();
    assert!(simulated(0).unwrap() > 0.0, "{answer}");
    assert_eq!((simulated(1), answer[0]["rows"][1]["error"].as_f64()), (Some(4.0), Some(0.0)));
}

#[test]
fn what_is_wrong_with_a_set_is_said_with_its_line_and_column() {
    let row = |what: &str, unit: &str, value: &str, role: &str| {
        format!("{HEAD}a,pixel-6,resnet18,1,{what},{unit},{value},{role},\n")
    };
    let good = row("iteration_time_s", "s", "0.1", "fit");
    for (about, rows, expected) in [
        (SET, good.replace("what", "whta"), "rows.csv:1: `what`: no such column (is it 'whta'?)"),
        (
            SET,
            row("iteration_tim_s", "s", "0.1", "fit"),
            "rows.csv:2: `what`: no run gives 'iteration_tim_s'; did you mean 'iteration_time_s'?",
        ),
        (SET, row("iteration_time_s", "MiB", "0.1", "fit"), "rows.csv:2: `unit`: 'MiB', expected s, ms"),
        (
            SET,
            row("iteration_time_s", "s", "fast", "fit"),
            "rows.csv:2: `value`: expected a number or nothing, found 'fast'",
        ),
        (SET, row("iteration_time_s", "s", "0.1", "chekc"), "did you mean 'check'?"),
        (SET, good.replace("batch", "bacth"), "rows.csv:2: `bacth`: no key of a scenario; did you mean 'batch'?"),
        (SET, good.replace("resnet18", "networks/none.onnx"), "none.onnx"),
        (SET, row("largest_batch", "", "4", "fit"), "`batches`: missing"),
        (&SET.replace("training", "traning"), good.clone(), "set.toml:1"),
        (
            &SET.replace("stack", "stakc"),
            good.clone(),
            "set.toml:8: `stakc`: no key of a scenario; did you mean 'stack'?",
        ),
    ] {
        let message = refused(about, &rows);
        assert!(message.contains(expected), "{message}\n{expected}");
    }
    assert!(refusal(&call("validate ncnn-cp"), 2).contains("did you mean 'ncnn-cpu'?"));
    assert!(refusal(&call("validate ncnn-cpu --what iteration_time"), 2).contains("did you mean 'iteration_time_s'?"));
}

#[test]
fn the_sets_that_come_along_are_listed_and_one_without_rows_says_so() {
    let listed = stdout(&call("validate --list"));
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let expected = [
        "android-stalls",
        "jetson-tx2",
        "mnn-phones",
        "ncnn-cpu",
        "pixel-4-storage",
        "pytorch-cpu",
        "rtx-3090",
        "rtx-4090",
    ];
    assert_eq!(names, expected);
    assert!(stdout(&call("validate rtx-4090")).contains("no row"));
    let answer = json(&call("validate pytorch-cpu --role fit --format json"));
    assert_eq!(keys(&answer[0]["quantities"][0]).len(), 9);
    assert_eq!(answer[0]["rows"].as_array().unwrap().len(), 16);
}

/// The errors of the committed sets: a row for each set, quantity and role that was measured.
const ERRORS: &str = "truth/errors.csv";
/// [`PAGE`] has all of them between these lines.
const MARKS: [&str; 2] = ["<!-- validation -->\n", "<!-- /validation -->"];
/// The page with all errors.
const PAGE: &str = "docs/measured-sets.md";
/// The README has the times and the memory of rows of role check between these lines.
const SHORT: [&str; 2] = ["<!-- measured -->\n", "<!-- /measured -->"];
/// The quantities that the README shows, with their names there.
const SHOWN: [(&str, &str); 5] = [
    ("iteration_time_s", "training step"),
    ("iteration_time_s (inference)", "inference"),
    ("peak_memory_bytes", "peak memory"),
    ("bandwidth_bytes_per_s", "flash bandwidth"),
    ("some_s", "memory stalls"),
];

/// Checks, or updates, the part of a page between two marks.
fn check_block(page: &str, [from, to]: [&str; 2], expected: &str, hint: &str) {
    let path = root().join(page);
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(from).unwrap_or_else(|| panic!("{page} has no {from}"));
    let (now, after) = rest.split_once(to).unwrap_or_else(|| panic!("{page} has no {to}"));
    if env::var("HAVERSACK_DOCS").is_ok_and(|mode| mode == "update") {
        fs::write(&path, format!("{before}{from}{expected}{to}{after}")).unwrap();
    } else {
        assert_eq!(now, expected, "{page}: {hint}");
    }
}

fn percent(share: &Value) -> String {
    share.as_f64().map(|share| format!("{:.1}%", share * 100.0)).unwrap_or_default()
}

/// The stack of a set's rows, and the forms of their devices; empty for a set without training.
fn stack_and_forms(set: &str) -> [String; 2] {
    let folder = root().join("experiments/truth").join(set);
    let about: toml::Table = fs::read_to_string(folder.join("set.toml")).unwrap().parse().unwrap();
    let Some(stack) = about.get("scenario").map(|scenario| scenario["stack"].as_str().unwrap()) else {
        return Default::default();
    };
    let rows = table(&folder.join("rows.csv"));
    let device = rows[0].iter().position(|column| column == "device").unwrap();
    let devices: BTreeSet<&String> = rows[1..].iter().map(|row| &row[device]).collect();
    let forms = devices.into_iter().filter_map(|device| load(device).unwrap().constants.form);
    let forms: BTreeSet<String> = forms.map(|form| form.to_string()).collect();
    [stack.to_owned(), forms.into_iter().collect::<Vec<_>>().join(" ")]
}

#[test]
fn committed_sets_are_no_further_off_than_they_were() {
    let answer = json(&call("validate --format json"));
    let mut table = csv::Writer::from_writer(Vec::new());
    let head = ["set", "stack", "forms", "what", "role", "rows", "mean_error", "median_error", "rank"];
    table.write_record(head).unwrap();
    let mut shown =
        "| set | quantity | role | rows | mean error | median | rank |\n|---|---|---|---|---|---|---|\n".to_owned();
    let mut short =
        "| measured set | quantity | check rows | median error | rank |\n|---|---|---|---|---|\n".to_owned();
    let mut found = Vec::new();
    for set in answer.as_array().unwrap() {
        let quantities = set["quantities"].as_array().unwrap();
        let [stack, forms] = stack_and_forms(set["set"].as_str().unwrap());
        for tally in quantities.iter().filter(|tally| tally["compared"].as_u64() > Some(0)) {
            // A row without a result would make the others look better.
            assert_eq!(tally["compared"], tally["rows"], "{tally}");
            let text = |key: &str| tally[key].as_str().unwrap().to_owned();
            let rounded = |key: &str| tally[key].as_f64().map(|value| format!("{value:.4}")).unwrap_or_default();
            let (name, rows) = (set["set"].as_str().unwrap(), tally["rows"].to_string());
            let cells = [rounded("mean_error"), rounded("median_error"), rounded("rank")];
            let head = [name, &stack, &forms, &text("what"), &text("role"), &rows];
            table.write_record(head.into_iter().chain(cells.iter().map(String::as_str))).unwrap();
            let rank = tally["rank"].as_f64().map(|rank| format!("{rank:.2}")).unwrap_or_default();
            let [mean, median] = ["mean_error", "median_error"].map(|key| percent(&tally[key]));
            let (what, role) = (text("what"), text("role"));
            shown += &format!("| {name} | {what} | {role} | {rows} | {mean} | {median} | {rank} |\n");
            if let Some((_, quantity)) = SHOWN.iter().find(|(key, _)| *key == what && role == "check") {
                short += &format!("| {name} | {quantity} | {rows} | {median} | {rank} |\n");
            }
            found.push((name.to_owned(), what, role, tally["mean_error"].as_f64().unwrap()));
        }
    }
    let table = String::from_utf8(table.into_inner().unwrap()).unwrap();
    let file = root().join("experiments").join(ERRORS);
    let hint = "`HAVERSACK_DOCS=update cargo test --test it -- committed_sets` updates it";
    if env::var("HAVERSACK_DOCS").is_ok_and(|mode| mode == "update") {
        fs::write(&file, &table).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), table, "{hint}");
    check_block(PAGE, MARKS, &shown, hint);
    check_block("README.md", SHORT, &short, hint);
    // Mean errors of rows of role check when the sets were added, plus one percentage point of room.
    for (set, what, first) in [
        ("jetson-tx2", "iteration_time_s", 0.197),
        ("jetson-tx2", "peak_memory_bytes", 0.046),
        ("jetson-tx2", "reserved_bytes", 0.082),
        ("jetson-tx2", "process_bytes", 0.141),
        ("jetson-tx2", "largest_batch", 0.083),
        ("mnn-phones", "iteration_time_s", 0.145),
        ("mnn-phones", "peak_memory_bytes", 0.219),
        ("mnn-phones", "mean_power_w", 0.351),
        ("mnn-phones", "busy_cores", 0.052),
        ("mnn-phones", "kernel_share", 0.294),
        ("mnn-phones", "minor_faults", 0.149),
        ("mnn-phones", "iteration_time_s (inference)", 0.254),
        ("ncnn-cpu", "iteration_time_s (inference)", 0.127),
        ("rtx-3090", "iteration_time_s", 0.108),
        ("rtx-3090", "iteration_time_s (inference)", 0.059),
    ] {
        let is_it = |one: &&(String, String, String, f64)| one.0 == set && one.1 == what && one.2 == "check";
        let error = found.iter().find(is_it).unwrap().3;
        assert!(error <= first + 0.01, "{set}, {what}: {error}");
    }
}
