//! About a hundred mistakes, in a table (`mistakes.csv`: the command line, the exit code, the words that
//! the message must have, separated by `|`): each gives its code and a message that helps; nothing panics
//! and no file is left behind.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::thread;
use std::time::Instant;

use haversack::scenario::Key;
use tempfile::{TempDir, tempdir};

use crate::support::{call_in, command, stderr, stdout};

const MISTAKES: &str = include_str!("mistakes.csv");

const LOG: &str = r#"{"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}
{"INSTRUCTION":"CONSTANT","NAME":"w"}
{"INSTRUCTION":"MEMORY","NAME":"w","MEMORY":"100"}
{"INSTRUCTION":"CALL","NAME":"relu","ARGS":["w"],"RESULT":["y"],"TIME":"7"}
{"INSTRUCTION":"MEMORY","NAME":"y","MEMORY":"100"}
{"INSTRUCTION":"ALIAS","NAME":"y","ALIAS":"-1"}
"#;

/// The files that the table's commands name.
const FILES: &[(&str, &str)] = &[
    ("badset.toml", "device = \"galaxy-s10\"\nmodel = \"lenet5\"\nset = \"order=half\"\n"),
    ("badtrace.csv", "time,bytes\n1,2\n"),
    ("circle-a.toml", "base = \"circle-b.toml\"\n"),
    ("circle-b.toml", "base = \"circle-a.toml\"\n"),
    ("emptyfile.toml", ""),
    ("emptylist.toml", "device = \"galaxy-s10\"\nmodel = []\n"),
    ("file.txt", "x"),
    ("good.toml", "device = [\"galaxy-s10\"]\nmodel = [\"lenet5\"]\nbatch = [1]\npolicy = [\"original\", \"sage\"]\n"),
    (
        "huge.toml",
        "device = \"galaxy-s10\"\nmodel = \"lenet5\"\nseed = { from = 1, to = 999999, steps = 999999 }\nmemory_budget = { from = \"1%\", to = \"99%\", steps = 99 }\n",
    ),
    ("instr.log", "{\"INSTRUCTION\":\"CALLL\"}\n"),
    ("l.log", "{\"INSTRUCTION\":\"CALL\"}\n"),
    ("list.toml", "device = \"galaxy-s10\"\nmodel = \"lenet5\"\nbatch = [1, 2]\n"),
    ("log.log", LOG),
    (
        "many-dev.toml",
        "base = \"galaxy-s22\"\nsok = \"x\"\nram = { value = 12, unit = \"K\" }\n[gpu]\nlanuch = 3\nclock = { value = -4 }\n",
    ),
    (
        "many-sweep.toml",
        "device = [\"galaxy-s10\", \"galaxy-s99\"]\nmodel = [\"lenet5\", \"resnet5o\"]\nbatch = [0, 8]\npolcy = [\"sage\"]\nmemory_budget = { from = \"20%\", to = \"2s\", steps = 4 }\n",
    ),
    ("many.toml", "device = \"galaxy-s99\"\nmodel = 3\nbatc = 4\npolicy = \"sagee\"\nmemory_budget = \"2s\"\n"),
    ("nobase.toml", "name = \"x\"\nbase = \"galaxy-s23\"\n"),
    ("nofile.toml", "base = \"missing.toml\"\n"),
    ("numberbase.toml", "base = 3\n"),
    ("other.toml", "device = [\"galaxy-s10\"]\nmodel = [\"lenet5\"]\nbatch = [2]\n"),
    ("p.parquet", "PAR1 no PAR1"),
    ("s.toml", "device = 3\n"),
    ("settable.toml", "device = \"galaxy-s10\"\nmodel = \"lenet5\"\npolicy = \"sage\"\nset = { order = [\"half\"] }\n"),
    ("span.toml", "device = \"galaxy-s10\"\nmodel = \"lenet5\"\nbatch = { from = 1, to = 4, steps = 2 }\n"),
    ("spankey.toml", "device = \"galaxy-s10\"\nmodel = \"lenet5\"\nbatch = { from = 1, to = 4, step = 2 }\n"),
    ("spansteps.toml", "device = \"galaxy-s10\"\nmodel = \"lenet5\"\nbatch = { from = 1, to = 4, steps = 0 }\n"),
    ("spantext.toml", "device = \"galaxy-s10\"\nmodel = { from = \"lenet5\", to = \"vgg16\", steps = 2 }\n"),
    ("spec.toml", "device = [\"galaxy-s10\"]\nmodel = [\"lenet5\", \"lennet5\"]\n"),
    ("syntax.toml", "device = \"a\"\nmodel = = 3\n"),
    ("t.csv", "time_s,budget_bytes\n1,50%\n"),
    ("unit.toml", "base = \"galaxy-s22\"\n\nram = { value = 12, unit = \"GB/s\" }\n"),
    ("x.onnx", "not onnx"),
];

/// A folder with [`FILES`], the empty folder `empty` and the sweep `swept`.
fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    for (name, text) in FILES {
        fs::write(folder.path().join(name), text).unwrap();
    }
    // Bytes that are neither text, TOML, ONNX nor a log.
    let bytes: Vec<u8> = (0..300_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(folder.path().join("r.bin"), bytes).unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    assert_eq!(call_in(folder.path(), &["sweep", "good.toml", "--out", "swept"]).status.code(), Some(0));
    folder
}

/// The faults in the results of `calls`; `check` returns the faults of one.
fn wrong<T: Sync>(calls: &[T], check: impl Fn(&T) -> Vec<String> + Sync) -> Vec<String> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = calls.len().div_ceil(threads);
    thread::scope(|scope| {
        let check = &check;
        let running: Vec<_> =
            calls.chunks(share).map(|calls| scope.spawn(move || calls.iter().flat_map(check).collect())).collect();
        running.into_iter().flat_map(|thread| -> Vec<String> { thread.join().unwrap() }).collect()
    })
}

/// The names of the files in `folder`.
fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The faults of any failed call: a panic, or output on stdout.
fn failed_badly(line: &str, output: &Output) -> Vec<String> {
    let (message, result) = (stderr(output), stdout(output));
    let mut wrong = Vec::new();
    if message.contains("panicked") || output.status.code().is_none() {
        wrong.push(format!("haversack {line}: {:?}\n{message}", output.status));
    }
    if !matches!(output.status.code(), Some(0..=3)) {
        wrong.push(format!("haversack {line}: {:?}", output.status));
    }
    if output.status.code() != Some(0) && !result.is_empty() {
        wrong.push(format!("haversack {line}: a result was printed:\n{result}"));
    }
    wrong
}

#[test]
fn every_mistake_of_the_table_is_refused_with_help() {
    let folder = folder();
    let before = names(folder.path());
    let mut reader = csv::Reader::from_reader(MISTAKES.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
    assert!(rows.len() >= 200, "{} mistakes", rows.len());
    let wrong = wrong(&rows, |row| {
        let (line, code, words) = (&row[0], row[1].parse().unwrap(), &row[2]);
        let arguments: Vec<&str> = if line.is_empty() { Vec::new() } else { line.split(' ').collect() };
        let output = call_in(folder.path(), &arguments);
        let message = stderr(&output);
        let mut wrong = failed_badly(line, &output);
        if output.status.code() != Some(code) {
            wrong.push(format!("haversack {line}: expected code {code}, found {:?}\n{message}", output.status.code()));
        }
        wrong.extend(
            words
                .split('|')
                .filter(|word| !message.contains(word))
                .map(|word| format!("haversack {line}: no '{word}' in\n{message}")),
        );
        wrong
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(names(folder.path()), before, "something was left behind");
}

/// Absurd values of keys: the command, a key of its file, its value (`{k}` is replaced by 100,000 keys, `{m}` by as
/// many models), and the words that the message must have.
const ABSURD: &str = include_str!("absurd.csv");

#[test]
fn every_absurd_value_of_the_table_is_refused_within_seconds() {
    let folder = tempdir().unwrap();
    let lots =
        |what: &str| (0..100_000).map(|number| what.replace('#', &number.to_string())).collect::<Vec<_>>().join(", ");
    let (keys, models) = (lots("k# = 1"), lots("\"m#\""));
    let mut reader = csv::Reader::from_reader(ABSURD.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
    let numbered: Vec<(usize, &csv::StringRecord)> = rows.iter().enumerate().collect();
    assert!(rows.len() >= 300, "{} values", rows.len());
    let wrong = wrong(&numbered, |(number, row)| {
        let (command, key) = (&row[0], &row[1]);
        let base = match command {
            "federate" => "population = 10\nselector = \"random\"\ncohort = 2\nrounds = 2\nnetwork = \"lenet5\"\n",
            "train" => "data = \"glyphs\"\ndevice = \"jetson-agx-xavier\"\nmodel = \"lenet5\"\n",
            "simulate" => "device = \"galaxy-s22\"\nmodel = \"lenet5\"\nsystem = \"android\"\n",
            _ => "device = \"galaxy-s22\"\nmodel = \"lenet5\"\n",
        };
        let others = base.lines().filter(|line| line.split(' ').next() != Some(key));
        let value = row[2].replace("{k}", &keys).replace("{m}", &models);
        let text = others.map(|line| format!("{line}\n")).collect::<String>() + &format!("{key} = {value}\n");
        let file = format!("{number}.toml");
        fs::write(folder.path().join(&file), text).unwrap();
        let flags = if command == "simulate" { vec![] } else { vec!["--out", "o"] };
        let begun = Instant::now();
        let output = call_in(folder.path(), &[&[command, &file], &flags[..]].concat());
        let (seconds, message) = (begun.elapsed().as_secs(), stderr(&output));
        let said = row[3].split('|').all(|word| message.contains(word))
            && (message.contains(&file) || key == "data" || message.contains("`data`"));
        let is_right = output.status.code() == Some(2) && said && seconds < 20 && !message.contains('\u{1b}');
        let shown: String = message.chars().take(400).collect();
        let call = format!("{command} with {key} = {}: {:?} after {seconds} s", &row[2], output.status.code());
        if is_right { Vec::new() } else { vec![format!("{call}\n{shown}")] }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(names(folder.path()).len(), rows.len(), "something was left behind");
}

#[test]
fn no_word_of_the_command_line_reaches_a_terminal_as_an_escape() {
    let folder = tempdir().unwrap();
    for words in [&["simula\u{1b}[2Jte"][..], &["list", "\u{1b}[2J"], &["list", "models", "--\u{7}"]] {
        // Colours as on a terminal, with which nothing is taken out of the message.
        let output = command(folder.path(), words).env("CLICOLOR_FORCE", "1").output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains('\u{fffd}') && message.contains("\u{1b}[31merror:"), "{message}");
        assert!(!message.contains("\u{1b}[2J") && !message.contains('\u{7}'), "{message:?}");
    }
}

#[test]
fn no_value_of_any_key_ends_in_a_panic() {
    let folder = folder();
    let values = ["", "-1", "nan", "1e999", "99999999999999999999", "\u{1f4a5}", "%", ":", "a=b", "r.bin", "empty"];
    let calls: Vec<(Key, &str)> =
        Key::ALL.into_iter().flat_map(|key| values.into_iter().map(move |value| (key, value))).collect();
    let wrong = wrong(&calls, |(key, value)| {
        let flag = format!("--{}={value}", key.flag());
        // A key that is given twice is rejected before its value is parsed.
        let base = [("--device=galaxy-s10", Key::Device), ("--model=lenet5", Key::Model), ("--batch=1", Key::Batch)];
        let others = base.into_iter().filter(|(_, other)| other != key).map(|(flag, _)| flag);
        let arguments: Vec<&str> = ["simulate", "--format=json", &flag].into_iter().chain(others).collect();
        failed_badly(&arguments.join(" "), &call_in(folder.path(), &arguments))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_right_call_among_them_works() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("log.log"), LOG).unwrap();
    let output =
        call_in(folder.path(), &["replay", "log.log", "--policy", "dtr", "--heuristic", "dtr", "--memory-ratio", "1"]);
    assert_eq!(output.status.code(), Some(0));
}
