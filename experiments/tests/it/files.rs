//! Files of others are left alone: files in a folder without a record, links, pipes, inputs, and files that no command
//! named; and no partial file is left.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use haversack_reports::frame::read_parquet;

use crate::interrupted::interrupted;
use crate::support::{call_in, command, refusal, stderr};
use crate::{federate, sweep, train};

const SIMULATE: &str = "simulate --device galaxy-s10 --model lenet5";

fn call(within: &Path, line: &str) -> Output {
    call_in(within, &line.split(' ').collect::<Vec<_>>())
}

#[test]
fn a_file_that_no_record_lists_is_not_written_over() {
    let folders = [sweep::folder(), train::folder(train::SPEC), federate::folder(federate::SPEC)];
    let [of_sweep, of_train, of_federation] = folders.each_ref().map(tempfile::TempDir::path);
    for (within, line, names) in [
        (of_sweep, "sweep spec.toml --out out", &["results.csv", "rows.part", "pareto-mine.svg"][..]),
        (of_train, "train spec.toml", &["epochs.parquet", "learning.png", "checkpoint"]),
        (of_federation, "federate spec.toml --out out", &["index.html", "federation.svg", "rounds.parquet"]),
        (of_sweep, "reproduce sage/section5", &["cells.csv", "sage/section5.csv"]),
        (of_sweep, "validate --out out", &["validation.csv"]),
        (of_sweep, "man --out out", &["haversack.1", "haversack-trace-import.1"]),
    ] {
        for name in names {
            let out = within.join("out");
            fs::create_dir_all(out.join(name).parent().unwrap()).unwrap();
            fs::write(out.join(name), "mine").unwrap();
            for line in [line.to_owned(), format!("{line} --overwrite")] {
                if line == "man --out out --overwrite" {
                    continue;
                }
                let message = refusal(&call(within, &line), 2);
                assert!(
                    message.contains(&format!("out/{name} is there already"))
                        || message.contains(&format!("out/{name}: is there already")),
                    "{line}: {message}"
                );
                assert_eq!(fs::read_to_string(out.join(name)).unwrap(), "mine", "{line}");
            }
            fs::remove_dir_all(out).unwrap();
        }
    }
    // Its own pages may be replaced.
    for _ in 0..2 {
        assert_eq!(call(of_sweep, "man --out pages").status.code(), Some(0));
    }
    // A record of another program does not make the folder ours, even with --overwrite.
    fs::create_dir(of_sweep.join("out")).unwrap();
    fs::write(of_sweep.join("out/run.json"), "{\"outputs\": [\"mine\"]}").unwrap();
    fs::write(of_sweep.join("out/mine"), "").unwrap();
    refusal(&call(of_sweep, "sweep spec.toml --out out --overwrite"), 2);
    assert!(of_sweep.join("out/mine").exists());
}

#[test]
fn a_link_is_followed_and_a_pipe_takes_the_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("real.json"), "old").unwrap();
    symlink("real.json", at("link.json")).unwrap();
    assert_eq!(call(folder.path(), &format!("{SIMULATE} --timeline link.json")).status.code(), Some(0));
    assert!(at("link.json").is_symlink() && fs::read_to_string(at("real.json")).unwrap().starts_with('{'));
    symlink("nowhere", at("dangling.json")).unwrap();
    let message = refusal(&call(folder.path(), &format!("{SIMULATE} --timeline dangling.json")), 1);
    assert!(message.contains("leads nowhere") && !at("nowhere").exists(), "{message}");

    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let (pipe, whole) = (at("pipe"), fs::read(at("real.json")).unwrap());
    let reader = thread::spawn(move || fs::read(pipe).unwrap());
    let output = call(folder.path(), &format!("{SIMULATE} --timeline pipe"));
    let is_pipe = fs::symlink_metadata(at("pipe")).unwrap().file_type().is_fifo();
    assert!(output.status.code() == Some(0) && is_pipe, "{}", stderr(&output));
    assert!(reader.join().unwrap() == whole);
    let message = refusal(&call(folder.path(), "trace generate --users 1 --days 1 --out pipe"), 2);
    assert!(message.contains("expected a file"), "{message}");
}

#[test]
fn no_link_leads_a_run_out_of_its_folder() {
    let folder = sweep::folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("outside"), "mine").unwrap();
    sweep::sweep(folder.path(), "--out out");
    for name in ["results.csv", "rows.part", ".lock", "run.json"] {
        let _ = fs::rename(at("out").join(name), at("kept"));
        symlink(at("outside"), at("out").join(name)).unwrap();
        let message = refusal(&call(folder.path(), "sweep spec.toml --out out"), 2);
        assert!(message.contains(&format!("out/{name} is a link")), "{message}");
        fs::remove_file(at("out").join(name)).unwrap();
        let _ = fs::rename(at("kept"), at("out").join(name));
    }
    assert_eq!(fs::read_to_string(at("outside")).unwrap(), "mine");
}

#[test]
fn what_is_read_is_not_written() {
    let folder = sweep::folder();
    let within = folder.path();
    fs::write(within.join("s.toml"), "device = \"galaxy-s10\"\nmodel = \"lenet5\"\n").unwrap();
    for line in ["simulate s.toml --plan s.toml", "simulate s.toml --timeline ./s.toml"] {
        let message = refusal(&call(within, line), 2);
        assert!(message.contains("is also read") && within.join("s.toml").metadata().unwrap().len() < 99, "{message}");
    }
    let message = refusal(&call(within, &format!("{SIMULATE} --plan a --timeline a")), 2);
    assert!(message.contains("--plan: a is written by another flag"), "{message}");
    for shard in ["1/2", "2/2"] {
        sweep::sweep(within, &format!("--shard {shard} --out {}", &shard[..1]));
    }
    let table = fs::read(within.join("1/results.parquet")).unwrap();
    let message = refusal(&call(within, "merge 1 2 --out 1 --overwrite"), 2);
    assert!(message.contains("--out: 1 is also read"), "{message}");
    assert!(fs::read(within.join("1/results.parquet")).unwrap() == table);
}

#[test]
fn what_nobody_named_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let within = folder.path();
    for (beside, line) in [
        ("t-by-hour.png", "trace budgets users.parquet --device galaxy-s22 --out t.parquet"),
        ("trace.png", "trace plot users.parquet"),
    ] {
        assert_eq!(call(within, "trace generate --users 1 --days 2 --out users.parquet").status.code(), Some(0));
        fs::write(within.join(beside), "mine").unwrap();
        let message = refusal(&call(within, line), 2);
        assert!(message.contains(beside) && message.contains("is there already"), "{message}");
        assert_eq!(fs::read_to_string(within.join(beside)).unwrap(), "mine");
    }
}

#[test]
fn no_build_goes_on_with_the_work_of_another() {
    let folders =
        [sweep::folder(), train::folder(train::SPEC), federate::folder(federate::SPEC), tempfile::tempdir().unwrap()];
    let lines = ["sweep spec.toml", "train spec.toml", "federate spec.toml", "reproduce sage/section5"];
    for (folder, line) in folders.iter().zip(lines) {
        let within = folder.path();
        let record = within.join("out/run.json");
        let files = || fs::read_dir(within.join("out")).unwrap().count();
        assert_eq!(call(within, line).status.code(), Some(0), "{line}");
        let own = fs::read_to_string(&record).unwrap();
        let build = own.split_once("\"build\": \"").unwrap().1.split('"').next().unwrap();
        for other in [own.replace(build, "0123456789abcdef"), own.replace("\"build\"", "\"built\"")] {
            fs::write(&record, &other).unwrap();
            let before = files();
            let message = refusal(&call(within, &format!("{line} --resume")), 2);
            assert!(
                message.contains("another build of haversack") && message.contains("--overwrite"),
                "{line}: {message}"
            );
            assert!(fs::read_to_string(&record).unwrap() == other && files() == before, "{line}");
            assert_eq!(call(within, &format!("{line} --resume --overwrite")).status.code(), Some(0), "{line}");
            assert!(fs::read_to_string(&record).unwrap() == own, "{line}");
        }
    }
    let within = folders[0].path();
    for shard in ["1/2", "2/2"] {
        sweep::sweep(within, &format!("--shard {shard} --out {}", &shard[..1]));
    }
    let record = within.join("1/run.json");
    fs::write(&record, fs::read_to_string(&record).unwrap().replace("\"build\": \"", "\"build\": \"0")).unwrap();
    let message = refusal(&call(within, "merge 1 2 --out whole"), 2);
    assert!(message.contains("the build differs"), "{message}");
}

#[test]
fn two_at_once_leave_a_whole_table_and_ctrl_c_no_part() {
    let folder = tempfile::tempdir().unwrap();
    let line = ["trace", "generate", "--users", "60", "--days", "3", "--out", "t.parquet"];
    let start = || command(folder.path(), &line).stdout(Stdio::null()).spawn().unwrap();
    for mut child in [start(), start(), start()] {
        assert!(child.wait().unwrap().success());
    }
    assert!(read_parquet(&folder.path().join("t.parquet")).unwrap().height() > 1000);
    let names = || fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names(), 1);
    let long = ["trace", "generate", "--users", "100000", "--days", "30", "--out", "t.parquet"];
    let output = interrupted(folder.path(), &long, || names() > 1);
    assert_eq!((output.status.code(), names()), (Some(130), 1));
}
