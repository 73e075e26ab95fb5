//! Work that ends early: after Ctrl-C and with a full disk, the program reports its progress, and `--resume`
//! completes the same bytes.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::tempdir;

use crate::support::{command, refusal, stderr};
use crate::sweep::{folder, same, sweep};

/// Starts the program, waits until `is_time`, sends it Ctrl-C, and waits for its end.
pub(crate) fn interrupted(within: &Path, arguments: &[&str], is_time: impl Fn() -> bool) -> Output {
    let mut child = command(within, arguments);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while !is_time() && child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never was time");
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    // If it has ended already, it gets no signal: the test notices by its exit code.
    let _ = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn ctrl_c_ends_a_sweep_between_runs_and_it_goes_on() {
    let folder = folder();
    sweep(folder.path(), "--out whole");
    let part = folder.path().join("out/rows.part");
    let written = || fs::read(&part).map(|bytes| bytes.iter().filter(|&&byte| byte == b'\n').count()).unwrap_or(0);
    let line = ["sweep", "spec.toml", "--out", "out", "--jobs", "1"];
    let output = interrupted(folder.path(), &line, || written() >= 3);
    let message = refusal(&output, 130);
    assert!(message.contains("error: stopped after ") && message.contains(" of 80 runs; "), "{message}");
    assert!(message.contains("`haversack sweep spec.toml --out out --resume` continues"), "{message}");
    assert!(output.stdout.is_empty() && part.exists());
    sweep(folder.path(), "--out out --resume");
    same(&folder, "whole", "out");
}

#[test]
fn ctrl_c_ends_a_federation_while_its_phones_are_watched() {
    let top = tempdir().unwrap();
    let text = "population = 10\nselector = \"random\"\ncohort = 2\nrounds = 2\nnetwork = \"lenet5\"\n";
    fs::write(top.path().join("f.toml"), text).unwrap();
    let (begun, sent) = (Instant::now(), std::cell::Cell::new(None));
    let is_time = || {
        let lock = top.path().join("out/.lock").exists() && begun.elapsed() > Duration::from_millis(600);
        sent.set(lock.then(Instant::now));
        lock
    };
    let output = interrupted(top.path(), &["federate", "f.toml", "--out", "out"], is_time);
    assert!(refusal(&output, 130).contains("error: stopped after 0 of 2 rounds; "));
    // Watching all sixty phones takes two processors eight seconds.
    assert!(
        sent.get().unwrap().elapsed() < Duration::from_secs(5),
        "it ended {:?} later",
        sent.get().unwrap().elapsed()
    );
}

#[test]
fn ctrl_c_ends_a_reproduction_between_artefacts_and_it_goes_on() {
    let top = tempfile::tempdir().unwrap();
    let call = |flags: &str| {
        let line = format!("reproduce sage/figure2 daf/table3 sage/section5 {flags} --jobs 1");
        let output = crate::support::call_in(top.path(), &line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    };
    call("--out whole");
    let line = ["reproduce", "sage/figure2", "daf/table3", "sage/section5", "--out", "out", "--jobs", "1"];
    // The first of them is on the disc; the others are not finished.
    let first = top.path().join("out/daf/table3.json");
    let output = interrupted(top.path(), &line, || first.exists());
    let message = refusal(&output, 130);
    assert!(message.contains("error: stopped after ") && message.contains(" of 3 artefacts; "), "{message}");
    let command = "`haversack reproduce sage/figure2 daf/table3 sage/section5 --out out --resume` continues";
    assert!(message.contains(command) && !top.path().join("out/cells.csv").exists(), "{message}");
    call("--out out --resume");
    let files = |name: &str| crate::reproduce::tree(&top.path().join(name));
    assert_eq!(files("whole"), files("out"));
}

/// Runs the program with a limit on file sizes, in blocks of 512 bytes; writes beyond it fail like on a full disk.
fn within_blocks(folder: &Path, blocks: u32, line: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_haversack");
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {program} {line}");
    Command::new("sh").args(["-c", &script]).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_full_disk_is_told_with_the_table_that_it_refuses() {
    let folder = tempdir().unwrap();
    let line = "trace generate --users 40 --days 3 --seed 1 --out users.parquet";
    let message = refusal(&within_blocks(folder.path(), 20, line), 1);
    assert!(message.starts_with("error: cannot write users.parquet: "), "{message}");
    // No partial file is left.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_full_disk_ends_a_sweep_and_it_goes_on() {
    let folder = folder();
    sweep(folder.path(), "--out whole");
    // A row of the journal takes more than 512 bytes, so 80 of them do not fit in 20 blocks of at most 1 KiB.
    let output = within_blocks(folder.path(), 20, "sweep spec.toml --out out");
    let message = refusal(&output, 1);
    assert!(message.contains("rows.part: ") && message.contains("; stopped after "), "{message}");
    assert!(message.contains(" of 80 runs; `haversack sweep spec.toml --out out --resume` continues"), "{message}");
    sweep(folder.path(), "--out out --resume");
    same(&folder, "whole", "out");

    // All runs are in the journal, but the tables do not fit: again nothing is lost.
    let rows = fs::metadata(folder.path().join("out/results.csv")).unwrap().len();
    let journal = "sweep spec.toml --out late";
    let blocks = (rows / 512) as u32;
    let output = within_blocks(folder.path(), blocks, journal);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    sweep(folder.path(), "--out late --resume");
    same(&folder, "whole", "late");
}

#[test]
fn a_full_disk_ends_a_reproduction_and_it_goes_on() {
    let top = tempfile::tempdir().unwrap();
    let line = "reproduce sage/section5 daf/table3 --jobs 1";
    let call = |flags: &str| within_blocks(top.path(), 1 << 20, &format!("{line} {flags}"));
    assert_eq!(call("--out whole").status.code(), Some(0));
    // The picture of daf/table3 does not fit in four blocks of at most 1 KiB.
    let message = refusal(&within_blocks(top.path(), 4, &format!("{line} --out out")), 1);
    assert!(message.contains("cannot write out/") && message.contains("; stopped after "), "{message}");
    assert!(message.contains("reproduce sage/section5 daf/table3 --out out --resume` continues"), "{message}");
    assert_eq!(call("--out out --resume").status.code(), Some(0));
    let files = |name: &str| crate::reproduce::tree(&top.path().join(name));
    assert_eq!(files("whole"), files("out"));
}
