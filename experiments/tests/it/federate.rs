//! `federate`: what it writes, that it goes on where it was cut off, and how it refuses.

use std::fs;
use std::path::Path;

use haversack_reports::frame::read_parquet;
use tempfile::TempDir;

use crate::reproduce::tree;
use crate::support::{call_in, refusal, stderr, stdout};

const SPEC: &str = "population = 60\nselector = \"oort-paper\"\ncohort = 4\nrounds = 6\nnetwork = \"lenet5\"\n\
    policy = \"sage\"\nmemory_mix = { 8 = 1.0 }\nsamples = 20\nbatch = 10\nstand_in = \"logistic\"\ndata = \"synthetic\"\n\
    split = \"natural\"\nevaluate_every = 2\n";

fn folder(specification: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("spec.toml"), specification).unwrap();
    folder
}

fn federate(within: &Path, flags: &str) -> String {
    let line = format!("federate spec.toml {flags}");
    let output = call_in(within, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output)
}

fn refused(specification: &str) -> String {
    refusal(&call_in(folder(specification).path(), &["federate", "spec.toml"]), 2)
}

/// A column as text.
fn column(path: &Path, name: &str) -> Vec<String> {
    let frame = read_parquet(path).unwrap();
    let column = frame.column(name).unwrap();
    (0..frame.height()).map(|row| column.get(row).unwrap().to_string()).collect()
}

#[test]
fn a_federation_is_the_same_on_any_number_of_threads_and_goes_on_where_it_was() {
    let folder = folder(SPEC);
    let at = |name: &str| folder.path().join(name);
    let said = federate(folder.path(), "--out one --jobs 1");
    assert!(said.starts_with("6 rounds in ") && said.contains("accuracy "), "{said}");
    let rounds = at("one/rounds.parquet");
    assert_eq!(column(&rounds, "round"), ["1", "2", "3", "4", "5", "6"]);
    let measured: Vec<bool> = column(&rounds, "accuracy").iter().map(|text| text != "null").collect();
    assert_eq!(measured, [false, true, false, true, false, true]);
    // Every phone that began is in exactly one of the counts.
    let number = |name: &str| column(&rounds, name).iter().map(|text| text.parse::<usize>().unwrap()).sum::<usize>();
    let [selected, completed] = ["selected", "completed"].map(number);
    assert_eq!(selected, completed + ["dropped", "killed", "timed_out"].map(number).iter().sum::<usize>());
    let outcomes = column(&at("one/clients.parquet"), "outcome");
    assert_eq!(outcomes.len(), selected);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.contains("completed")).count(), completed);
    assert!(column(&at("one/clients.parquet"), "memory_class").iter().all(|class| class.contains("8 GB")));
    // Six rounds on two threads end where all of it on one does, and so does what reads the rounds from its checkpoint.
    federate(folder.path(), "--out two --jobs 2");
    assert_eq!(tree(&at("one")), tree(&at("two")));
    fs::remove_file(at("two/rounds.parquet")).unwrap();
    federate(folder.path(), "--out two --resume");
    assert_eq!(tree(&at("one")), tree(&at("two")));
    // Another seed is another specification.
    let other = refusal(&call_in(folder.path(), &["federate", "spec.toml", "--out", "two", "--seed", "5"]), 2);
    assert!(other.contains("another specification"), "{other}");
}

#[test]
fn it_ends_once_the_accuracy_is_there() {
    let folder = folder(&format!("{SPEC}target_accuracy = 0.01\n"));
    assert!(federate(folder.path(), "--out out").starts_with("2 rounds in "));
}

#[test]
fn phones_that_can_hold_no_plan_are_counted_and_an_oracle_asks_for_no_memory() {
    let large = "population = 30\nselector = \"random\"\ncohort = 3\nrounds = 2\nnetwork = \"resnet50\"\nmemory_mix = { 4 = 1.0 }\n\
        samples = 64\nbatch = 64\n";
    let folder = folder(large);
    let said = federate(folder.path(), "--out out");
    assert!(said.contains("phones were left out"), "{said}");
    let reasons = column(&folder.path().join("out/exclusions.parquet"), "reason");
    assert!(
        reasons[0].contains("training with original takes ") && reasons[0].contains("a phone with 4 GB"),
        "{}",
        reasons[0]
    );
    fs::write(folder.path().join("spec.toml"), format!("{large}oracle = true\n")).unwrap();
    assert!(!federate(folder.path(), "--out oracle").contains("left out"));
}

#[test]
fn what_nobody_has_is_refused() {
    assert!(refused(&SPEC.replace("lenet5", "lenet6")).contains("lenet5"));
    assert!(refused(&SPEC.replace("\"sage\"", "\"sagr\"")).contains("sage"));
    assert!(refused(&SPEC.replace("\"logistic\"", "\"logstic\"")).contains("logistic"));
    assert!(
        refused(&SPEC.replace("cohort = 4", "cohort = 61"))
            .contains("spec.toml:3: `cohort` is 61, expected from 1 to the 60")
    );
    assert!(refused(&format!("{SPEC}traces = \"none.parquet\"\n")).contains("none.parquet"));
}
