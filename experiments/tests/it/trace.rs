//! `haversack trace`: tables from recordings and their contents, synthetic users, and errors.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{call_in, json, refusal, stderr, stdout};
use haversack_reports::frame::read_parquet;
use polars::prelude::{AnyValue, DataFrame};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

/// A fixture of the crate `traces`.
fn fixture(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../traces/fixtures").join(name).display().to_string()
}

/// The columns of a table.
fn columns(frame: &DataFrame) -> Vec<String> {
    frame.columns().iter().map(|column| format!("{}: {}", column.name(), column.dtype())).collect()
}

/// A row of a table, with blanks between its values.
fn row(frame: &DataFrame, place: usize) -> String {
    let cell = |value: AnyValue<'_>| match value {
        // Polars shortens floats.
        AnyValue::Float64(number) => number.to_string(),
        value => value.str_value().into_owned(),
    };
    frame.columns().iter().map(|column| cell(column.get(place).unwrap())).collect::<Vec<_>>().join(" ")
}

/// Imports within `folder` and returns the report.
fn import(folder: &Path, line: &str) -> Value {
    let line = format!("trace import {line} --format json");
    json(&call_in(folder, &line.split(' ').collect::<Vec<_>>()))
}

fn stats(folder: &Path, file: &str) -> Value {
    json(&call_in(folder, &["trace", "stats", file, "--format", "json"]))
}

/// The files of a folder, sorted.
fn files(folder: &TempDir) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const APPS: [&str; 6] = ["user: str", "time_s: f64", "package: str", "adj: i32", "source: str", "confidence: str"];
const COUNTERS: [&str; 4] = ["user: str", "time_s: f64", "counter: str", "value: f64"];

#[test]
fn carat_tables_are_the_same_bytes_with_any_number_of_threads() {
    let folder = tempdir().unwrap();
    let text = fs::read_to_string(fixture("carat_top1k.SYNTHETIC.jsonl")).unwrap();
    // Users alternate, so that the tables have to be sorted.
    let parts = (0..5).map(|part| {
        let users = (0..8).map(|user| text.replace(&"a".repeat(64), &format!("{user}{part}").repeat(32)));
        fs::write(folder.path().join(format!("part-{part}")), users.collect::<String>()).unwrap();
        format!("part-{part}")
    });
    let parts = parts.collect::<Vec<_>>().join(" ");
    let tables = |jobs: u32| {
        import(folder.path(), &format!("--kind carat {parts} --out {jobs}.parquet --jobs {jobs}"));
        ["", "-state"].map(|table| fs::read(folder.path().join(format!("{jobs}{table}.parquet"))).unwrap())
    };
    let one = tables(1);
    assert!(one == tables(2) && one == tables(4));
    // A strict import ends with the first bad line in the order of the files, whichever thread finds one first.
    for (part, line) in [(2, "{"), (4, "[]")] {
        let bytes = fs::read_to_string(folder.path().join(format!("part-{part}"))).unwrap();
        fs::write(folder.path().join(format!("part-{part}")), format!("{bytes}{line}\n")).unwrap();
    }
    for jobs in ["1", "2", "4"] {
        let line = format!("trace import --kind carat {parts} --out bad.parquet --strict --jobs {jobs}");
        let said = refusal(&call_in(folder.path(), &line.split(' ').collect::<Vec<_>>()), 2);
        let number = 8 * text.lines().count() + 1;
        assert!(said.contains(&format!("part-2:{number}: expected a JSON object")), "{said}");
    }
}

#[test]
fn carat_becomes_a_table_of_apps() {
    let folder = tempdir().unwrap();
    let parts = format!("{} {}", fixture("carat_top1k.SYNTHETIC.jsonl"), fixture("part-00000.SYNTHETIC.gz"));
    let report = import(folder.path(), &format!("--kind carat {parts} --out t/carat.parquet"));
    // The second file repeats the first one, from an earlier time on: only the last sample of user b could be its own
    // successor, but it comes after another one. So nothing is a duplicate, and 2 * 32 rows are written.
    assert_eq!((report["tables"][0]["rows"].as_u64(), report["files"].as_u64()), (Some(64), Some(2)));
    assert_eq!(report["findings"]["time-reversal"]["count"], 2);
    assert_eq!(report["unmapped_priorities"]["names"]["Unknown"], 4);
    assert_eq!(report["bad_lines"], 0);
    let frame = read_parquet(&folder.path().join("t/carat.parquet")).unwrap();
    assert_eq!((columns(&frame), frame.height()), (APPS.map(str::to_owned).to_vec(), 64));
    let user = "a".repeat(64);
    assert_eq!(row(&frame, 0), format!("{user} 1443340077 com.android.chrome 50 carat-process-list inferred"));
    assert_eq!(row(&frame, 1), format!("{user} 1443340077 com.example.app0 900 carat-process-list assumed"));
    // Sorted by user; the rows of each in the order of the files.
    let users = crate::sweep::texts(&frame, "user");
    let of_first = users.iter().filter(|found| **found == users[0]).count();
    assert!(users.is_sorted() && of_first < 64);
    assert_eq!(row(&frame, of_first / 2), row(&frame, 0));
    // Only the two tables are left. Helsinki is three hours ahead of UTC in September.
    assert_eq!(report["tables"][1]["file"], "t/carat-state.parquet");
    assert_eq!(fs::read_dir(folder.path().join("t")).unwrap().count(), 2);
    let state = read_parquet(&folder.path().join("t/carat-state.parquet")).unwrap();
    assert_eq!(columns(&state), COUNTERS);
    assert_eq!(row(&state, 0), format!("{user} 1443340077 battery_percent 46"));
    assert_eq!(row(&state, 1), format!("{user} 1443340077 charging 0"));
    assert_eq!(row(&state, 2), format!("{user} 1443340077 utc_offset_s 10800"));
    let stats = stats(folder.path(), "t/carat-state.parquet");
    let share = stats["availability"]["available_share"].as_f64().unwrap();
    assert!((0.1..0.9).contains(&share), "{stats}");
}

#[test]
fn full_carat_becomes_two_tables() {
    let folder = tempdir().unwrap();
    let input = fixture("carat_full_jsonsample.SYNTHETIC.jsonl");
    let report = import(folder.path(), &format!("--kind carat-full {input} --out full.parquet"));
    assert_eq!(report["tables"][1]["file"], "full-memory.parquet");
    assert_eq!(files(&folder), ["full-memory.parquet", "full.parquet"]);
    let apps = read_parquet(&folder.path().join("full.parquet")).unwrap();
    assert_eq!((columns(&apps), apps.height()), (APPS.map(str::to_owned).to_vec(), 1));
    let memory = read_parquet(&folder.path().join("full-memory.parquet")).unwrap();
    // The battery's level, not on the charger, WiFi, EET in summer, four fields of memory, and the available memory.
    assert_eq!((columns(&memory), memory.height()), (COUNTERS.map(str::to_owned).to_vec(), 9));
    let state = ["battery_percent 46", "charging 0", "network 2", "utc_offset_s 10800"];
    for (place, state) in state.into_iter().enumerate() {
        assert_eq!(row(&memory, place), format!("cccccccccccccccc 1443336825 {state}"));
    }
    // (1821334 + 81234) kB * 1024.
    assert_eq!(row(&memory, 4), "cccccccccccccccc 1443336825 MemTotal 1948229632");
    let stats = stats(folder.path(), "full-memory.parquet");
    assert_eq!(stats["counters"][4]["counter"], "MemTotal");
    assert_eq!(stats["counters"][4]["mean"], 1_948_229_632.0);
    assert_eq!((stats["rows"].as_u64(), stats["samples"].as_u64()), (Some(9), Some(1)));
}

#[test]
fn series_become_tables_of_counters() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("phone.log"), "MemTotal: 8 kB\nMemFree: 2 kB\nMemTotal: 8 kB\nMemFree: 1 kB\n")
        .unwrap();
    let report = import(folder.path(), "--kind meminfo phone.log --out m.parquet --interval 0.5 --start 100 --user me");
    assert_eq!(report["samples"], 2);
    let frame = read_parquet(&folder.path().join("m.parquet")).unwrap();
    assert_eq!(columns(&frame), COUNTERS);
    // Available memory is taken from the free memory, which a kernel without MemAvailable reports.
    assert_eq!([2, 4].map(|place| row(&frame, place)), ["me 100 MemAvailable 2048", "me 100.5 MemFree 1024"]);
    fs::write(
        folder.path().join("p.csv"),
        "ts,name,value,process,pid\n5,mem.rss,1,com.a,7\n6,oom_score_adj,0,com.a,7\n",
    )
    .unwrap();
    import(folder.path(), "--kind perfetto p.csv --out p.parquet");
    let apps = read_parquet(&folder.path().join("p-apps.parquet")).unwrap();
    assert_eq!(row(&apps, 0), "p 0.000000006 com.a 0 perfetto recorded");
    assert_eq!(read_parquet(&folder.path().join("p.parquet")).unwrap().height(), 1);
}

#[test]
fn bad_lines_are_reported_and_end_only_a_strict_import() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("t.txt"), "0 20160420080012 1532 17 1\n0 noon 1532 17 1\n").unwrap();
    let line = "trace import --kind tsinghua t.txt --out o.parquet";
    let output = call_in(folder.path(), &line.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("bad lines             1\n"), "{text}");
    assert!(text.contains("  t.txt:2: time: expected YYYYMMDDHHMMSS"), "{text}");
    assert!(text.contains("local at +08:00"), "{text}");
    fs::remove_file(folder.path().join("o.parquet")).unwrap();
    let strict = call_in(folder.path(), &format!("{line} --strict").split(' ').collect::<Vec<_>>());
    assert!(refusal(&strict, 2).starts_with("error: t.txt:2: time: expected"));
    assert_eq!(files(&folder), ["t.txt"], "a broken import leaves nothing behind");
}

#[test]
fn a_packed_file_that_breaks_off_is_an_error_and_gives_what_came_before() {
    let folder = tempdir().unwrap();
    let whole = fs::read(fixture("part-00000.SYNTHETIC.gz")).unwrap();
    fs::write(folder.path().join("part-0.gz"), &whole[..whole.len() - 20]).unwrap();
    let line = "trace import --kind carat part-0.gz --out c.parquet";
    let output = call_in(folder.path(), &line.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("error: part-0.gz:"), "{}", stderr(&output));
    assert!(stderr(&output).contains("breaks off or is damaged here"), "{}", stderr(&output));
    assert!(read_parquet(&folder.path().join("c.parquet")).unwrap().height() > 0);
}

#[test]
fn a_folder_stands_for_its_parts() {
    let folder = tempdir().unwrap();
    fs::create_dir_all(folder.path().join("data/x-json-rdd")).unwrap();
    let put = |name: &str, from: &str| fs::copy(fixture(from), folder.path().join(name)).unwrap();
    put("data/x-json-rdd/part-00000.gz", "part-00000.SYNTHETIC.gz");
    put("data/allapps-with-categories-2018-12-15.csv", "android_oom_adj.csv");
    let output = call_in(folder.path(), &["trace", "import", "--kind", "carat", "data", "--out", "c.parquet"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("1 files of the folders"), "{}", stderr(&output));
    assert_eq!(read_parquet(&folder.path().join("c.parquet")).unwrap().height(), 32);
}

#[test]
fn wrong_calls_are_refused_with_help() {
    let folder = tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    put("carat.zip", b"PK\x03\x04\x14\x00\x01\x00\x08\x00");
    put("t.txt", b"0 20160420080012 1532 17 1\n");
    fs::create_dir(folder.path().join("empty")).unwrap();
    for (line, words) in [
        ("import --kind carat carat.zip --out o.parquet", &["carat.zip", "7z x", "data-sharing page"][..]),
        ("import --kind carrat t.txt --out o.parquet", &["--kind", "'carat'"]),
        ("import --kind carat none.gz --out o.parquet", &["none.gz cannot be read"]),
        ("import --kind carat empty --out o.parquet", &["empty", "part-*"]),
        ("import --kind tsinghua t.txt --out t.txt", &["t.txt is also read"]),
        (
            "import --kind perfetto t.txt --out o.parquet",
            &["no row came out of 1 lines; is it --kind perfetto?", "t.txt:1: ts: expected a header"],
        ),
        ("import --kind lmkd t.txt --out o.parquet", &["no row came out of 1 lines; is it --kind lmkd?"]),
        ("import --kind tsinghua t.txt --out empty", &["--out: expected a file"]),
        ("import --kind tsinghua t.txt --out o.parquet --utc-offset 8", &["--utc-offset", "+03:30"]),
        ("import --kind tsinghua t.txt --out o.parquet --interval -1", &["--interval"]),
        ("import --kind tsinghua t.txt", &["--out"]),
        ("import --kind tsinghua --out o.parquet", &["IN"]),
        ("stats none.parquet", &["none.parquet"]),
        ("stats t.txt", &["t.txt", "Parquet"]),
        ("generate --users 0 --days 1 --out o.parquet", &["--users: expected at least 1"]),
        ("generate --users 1 --days 0 --out o.parquet", &["--days: expected at least 1"]),
        ("improt", &["import"]),
    ] {
        let message = refusal(&call_in(folder.path(), &format!("trace {line}").split(' ').collect::<Vec<_>>()), 2);
        assert!(words.iter().all(|word| message.contains(word)), "trace {line}: {message}");
        assert_eq!(files(&folder), ["carat.zip", "empty", "t.txt"], "trace {line} left something behind");
    }
}

#[test]
fn other_tables_are_told_apart() {
    let folder = tempdir().unwrap();
    let frame = polars::prelude::df!("user" => ["a"], "time_s" => [1.0], "package" => ["b"], "ajd" => [0]).unwrap();
    haversack_reports::frame::write_parquet(&folder.path().join("x.parquet"), &frame).unwrap();
    let message = refusal(&call_in(folder.path(), &["trace", "stats", "x.parquet"]), 2);
    assert!(message.contains("it lacks adj; did you mean 'ajd'?"), "{message}");
    let frame =
        polars::prelude::df!("user" => ["a"], "time_s" => [-1.0], "counter" => ["b"], "value" => [0.0]).unwrap();
    haversack_reports::frame::write_parquet(&folder.path().join("y.parquet"), &frame).unwrap();
    let message = refusal(&call_in(folder.path(), &["trace", "stats", "y.parquet"]), 2);
    assert!(message.contains("this row is none of a trace"), "{message}");
}

#[test]
fn sessions_go_on_over_short_pauses() {
    let folder = tempdir().unwrap();
    // In front: A from 0 to 60 s, nothing for 4 s, B from 64 to 100 s; an hour later A from 3700 to 3720 s.
    let events = [("00:00:00", "A", "Opened"), ("00:01:00", "A", "Closed"), ("00:01:04", "B", "Opened")];
    let later = [("00:01:40", "B", "Closed"), ("01:01:40", "A", "Opened"), ("01:02:00", "A", "Closed")];
    let rows: String = events
        .iter()
        .chain(&later)
        .map(|(at, app, event)| format!("u\t1\t2018-01-16 {at}\t{app}\t{event}\n"))
        .collect();
    fs::write(folder.path().join("l.tsv"), rows).unwrap();
    import(folder.path(), "--kind lsapp l.tsv --out l.parquet");
    let of = |pause: &str| {
        let sessions = json(&call_in(
            folder.path(),
            &["trace", "stats", "l.parquet", "--pause", pause, "--format", "json"],
        ))["sessions"]
            .clone();
        (sessions["count"].as_u64().unwrap(), sessions["length_s"]["mean"].as_f64().unwrap())
    };
    // Below 10 s, the pause of 4 s does not count: 100 s and 20 s. Without pauses: 60 s, 36 s and 20 s.
    assert_eq!(of("10"), (2, 60.0));
    let (count, mean) = of("4");
    assert!(count == 3 && (mean - 116.0 / 3.0).abs() < 1e-9, "{count} {mean}");
    let stats = stats(folder.path(), "l.parquet");
    assert_eq!(stats["sessions"]["pause_s"], 10.0);
    assert_eq!(stats["sessions"]["lengths"]["under 120 s"], 1);
    // Gaps of the user: 60, 4, 36, 3600 and 20 s.
    assert_eq!((stats["gaps"]["under 1 min"].as_u64(), stats["gaps"]["under 5 min"].as_u64()), (Some(3), Some(1)));
    assert_eq!(stats["gaps"]["under 6 h"], 1);
    assert_eq!(stats["priorities"][1]["adj"], 700);
    assert_eq!(stats["users"][0]["samples"], 6);
    // On a terminal, a bin has both of its bounds, its share, and a bar whose full length is 40 characters.
    let text = stdout(&call_in(folder.path(), &["trace", "stats", "l.parquet"]));
    let line = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
    let found: Vec<String> = line("1 s to 1 min").split_whitespace().skip(5).map(str::to_owned).collect();
    // Three of five gaps: 24 of 40 characters.
    assert_eq!(found, ["3".to_owned(), "60.0%".to_owned(), "#".repeat(24)]);
    assert!(line("60 s to 120 s").contains("50.0%") && line("15 s to 30 s").contains("50.0%"), "{text}");
}

#[test]
fn users_in_pieces_are_put_together() {
    let folder = tempdir().unwrap();
    let line = |user: u32, second: u32| format!("{user}\t1\t2018-01-16 00:00:{second:02}\tA\tOpened\n");
    fs::write(folder.path().join("l.tsv"), [line(2, 1), line(1, 2), line(2, 3), line(1, 1)].concat()).unwrap();
    import(folder.path(), "--kind lsapp l.tsv --out l.parquet");
    let frame = read_parquet(&folder.path().join("l.parquet")).unwrap();
    let rows: Vec<String> = (0..4).map(|place| row(&frame, place)[..12].to_owned()).collect();
    assert_eq!(rows, ["1 1516060802", "1 1516060801", "2 1516060801", "2 1516060803"]);
    assert!(!stderr(&call_in(folder.path(), &["trace", "stats", "l.parquet"])).contains("not in one piece"));
    assert_eq!(files(&folder), ["l.parquet", "l.tsv"]);
}

#[test]
fn samples_have_processes_and_no_sessions() {
    let folder = tempdir().unwrap();
    import(folder.path(), &format!("--kind carat {} --out c.parquet", fixture("carat_top1k.SYNTHETIC.jsonl")));
    let stats = stats(folder.path(), "c.parquet");
    assert_eq!(stats["sessions"], Value::Null);
    let processes = &stats["processes_a_sample"];
    assert_eq!((processes["count"].as_u64(), processes["median"].as_u64()), (Some(8), Some(4)));
    // At 0: 2 + 1 + 2 + 1 + ... of the fixture's samples in order: 2, 1, 2, 1, 2, 1, 0, 1 (10 in all).
    assert_eq!(stats["in_front_a_sample"]["mean"], 10.0 / 8.0);
    // Above 200, in order: 1, 2, 1, 2, 1, 2, 2, 2 (13 in all).
    assert_eq!(stats["background_a_sample"]["mean"], 13.0 / 8.0);
    let text = stdout(&call_in(folder.path(), &["trace", "stats", "c.parquet"]));
    assert!(text.contains("too far apart to tell sessions") && text.contains("carat-process-list"), "{text}");
}

#[test]
fn synthetic_users_repeat_and_have_sessions() {
    let folder = tempdir().unwrap();
    let generate = |out: &str, seed: &str| {
        let line = format!("trace generate --users 5 --days 3 --seed {seed} --out {out} --format json");
        json(&call_in(folder.path(), &line.split(' ').collect::<Vec<_>>()))
    };
    let made = generate("a.parquet", "1");
    generate("b.parquet", "1");
    generate("c.parquet", "2");
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("a.parquet"), read("b.parquet"));
    assert_ne!(read("a.parquet"), read("c.parquet"));
    let frame = read_parquet(&folder.path().join("a.parquet")).unwrap();
    assert_eq!(
        (columns(&frame), Some(frame.height() as u64)),
        (APPS.map(str::to_owned).to_vec(), made["rows"].as_u64())
    );
    let stats = stats(folder.path(), "a.parquet");
    assert_eq!(stats["users"].as_array().unwrap().len(), 5);
    // Fifteen days of some dozens of sessions; the generator's shortest pause is longer than the
    // one that joins sessions.
    assert!(stats["sessions"]["count"].as_u64().unwrap() > 100, "{}", stats["sessions"]);
    let unjoined = json(&call_in(folder.path(), &["trace", "stats", "a.parquet", "--pause", "0", "--format", "json"]));
    assert_eq!(unjoined["sessions"]["count"], stats["sessions"]["count"]);
}

#[test]
fn tables_of_many_row_groups_come_back_whole() {
    let folder = tempdir().unwrap();
    // Names of 500 bytes, all different, fill a batch of 8 MiB after 16777 rows: 40000 rows are three groups.
    let line = |number: usize| format!("{number},{number:0>500},1\n");
    let text: String = (1..=40_000).map(line).collect();
    fs::write(folder.path().join("p.csv"), format!("ts,name,value\n{text}")).unwrap();
    import(folder.path(), "--kind perfetto p.csv --out p.parquet");
    let stats = stats(folder.path(), "p.parquet");
    assert_eq!((stats["rows"].as_u64(), stats["samples"].as_u64()), (Some(40_000), Some(40_000)));
    assert_eq!(stats["counters"].as_array().unwrap().len(), 40_000);
}
