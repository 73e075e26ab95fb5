//! Recorded series and apps drive runs: on the clock of the whole run, from the given start, and
//! each user in a separate run.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::support::{call_in, json, refusal, stderr};
use serde_json::Value;
use tempfile::tempdir;

fn run(folder: &Path, line: &str) -> std::process::Output {
    call_in(folder, &line.split(' ').collect::<Vec<_>>())
}

/// Records, as `name`, a phone of 8 GB: its available memory from each second on.
fn record(folder: &Path, name: &str, available: &[(u64, u64)]) {
    let mut log = String::new();
    for (second, megabytes) in available {
        let _ =
            write!(log, "{}\nMemTotal: 7600000 kB\nMemAvailable: {} kB\n", 1_600_000_000 + second, megabytes * 1000);
    }
    fs::write(folder.join("meminfo"), log).unwrap();
    let output = run(folder, &format!("trace import --kind meminfo meminfo --out {name}"));
    assert!(output.status.success(), "{}", stderr(&output));
}

fn seconds(found: &Value) -> Vec<f64> {
    found["iterations_s"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect()
}

/// Iterations that end before `second`, and those that begin after it.
fn split_at(iterations: &[f64], second: f64) -> (Vec<f64>, Vec<f64>) {
    let mut end = 0.0;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for &took in iterations {
        let start = end;
        end += took;
        match (end <= second, start >= second) {
            (true, _) => before.push(took),
            (_, true) => after.push(took),
            _ => {}
        }
    }
    (before, after)
}

#[test]
fn a_series_that_falls_at_120_s_slows_iterations_from_then_on() {
    let folder = tempdir().unwrap();
    let series = |low: u64| -> Vec<(u64, u64)> {
        (0..30).map(|tens| (10 * tens, if tens < 12 { 5_000 } else { low })).collect()
    };
    // Used as a wall, if the phone has no other load; and as memory of others if a system is named, of which 29% are
    // always in use, and the rest is evicted.
    record(folder.path(), "wall.parquet", &series(700));
    record(folder.path(), "others.parquet", &series(1_000));
    let wall = "simulate --device galaxy-s10 --model resnet50 --batch 16 --policy dgc --iterations 30 --format json";
    let others = "simulate --device galaxy-s22 --stack mnn-2 --cores big:4 --model mobilenetv2 --batch 24 \
                  --system android-testbed --iterations 65 --format json";
    for (line, file, number, slower) in [(wall, "wall.parquet", 30, 1.04), (others, "others.parquet", 65, 1.005)] {
        let even = seconds(&json(&run(folder.path(), line)));
        let output = run(folder.path(), &format!("{line} --trace {file}"));
        let found = json(&output);
        let traced = seconds(&found);
        assert_eq!(traced.len(), number, "{file}");
        let (before, after) = split_at(&traced, 120.0);
        assert!(before.len() >= 3 && after.len() >= 3, "{file}: {traced:?}");
        // Before, times are equal to the nanosecond; afterwards, all are longer. A recording includes the phone's
        // cached apps; without one, the first iteration finds them and what they leave of the page cache.
        assert_eq!(before[1..], even[1..before.len()], "{file}");
        assert!(before[0] < 1.01 * even[0], "{file}: {} and {}", before[0], even[0]);
        let settled = even[even.len() - 1];
        // kswapd evicts during the running iteration, which may end before it needs the evicted pages; once the unused
        // pages of others are on flash, nothing waits any more.
        let longer = after[..3].iter().any(|took| *took > slower * settled);
        let stays = after[2..].iter().all(|took| *took > slower * settled);
        assert!(longer && stays == (file == "wall.parquet"), "{file}: {settled} and {after:?}");
        // The series ends at 290 s.
        let held = traced.iter().sum::<f64>() - 290.0;
        assert!(held > 0.0 && (found["trace_held_s"].as_f64().unwrap() - held).abs() < 1e-6, "{file}");
        assert!(stderr(&output).contains("warning: the trace covers 290"), "{file}: {}", stderr(&output));
        assert!(found["trace_assumed_share"].is_null());
    }
}

const IN_USE: &str =
    "simulate --device galaxy-s22 --stack mnn-2 --cores big:4 --model mobilenetv2 --batch 8 --format json";

#[test]
fn four_users_give_four_runs_from_where_the_user_says() {
    let folder = tempdir().unwrap();
    run(folder.path(), "trace generate --users 4 --days 2 --seed 1 --out users.parquet");
    // A batch that fits on a phone of 8 GB as long as few apps run.
    let line = format!("{} --iterations 12 --trace users.parquet", IN_USE.replace("--batch 8", "--batch 20"));
    let found = |flags: &str| json(&run(folder.path(), &format!("{line}{flags}")));
    let used = |found: &Value| found["system_used_bytes"].as_u64().unwrap();
    let users: Vec<Value> =
        (0..4).map(|user| found(&format!("#synthetic-000000{user} --trace-from session:20"))).collect();
    for (place, one) in users.iter().enumerate() {
        for other in &users[..place] {
            assert_ne!(used(one), used(other), "{place}");
            assert_ne!(seconds(one), seconds(other), "{place}");
        }
        // A synthetic user has no recording, so all of it is assumed.
        assert_eq!(one["trace_assumed_share"], 1.0);
        assert_eq!((&one["trace_held_s"], &one["scenario"]["trace_from"]), (&0.0.into(), &"session:20".into()));
    }
    // The evening is 19:00 of the first day.
    let evening = used(&found(" --trace-from evening"));
    for from in ["1970-01-01T19:00", "1970-01-01T19:00:00Z"] {
        assert_eq!(used(&found(&format!(" --trace-from {from}"))), evening, "{from}");
    }
    let random = |seed: u64| found(&format!(" --trace-from random --trace-window 2h --seed {seed}"));
    assert_eq!(used(&random(1)), used(&random(1)));
    assert_ne!(used(&random(1)), used(&random(2)));
    assert_ne!(used(&found(" --trace-from session:10")), used(&found(" --trace-from session:11")));
    // 12 iterations of 3.9 s continue after 40 s of the trace.
    let output = run(folder.path(), &format!("{line} --trace-window 40s"));
    let held = json(&output)["trace_held_s"].as_f64().unwrap();
    assert!((5.0..20.0).contains(&held) && stderr(&output).contains("warning: the trace covers 40 s"), "{held}");
}

#[test]
fn a_beginning_outside_of_the_trace_is_refused_with_what_it_covers() {
    let folder = tempdir().unwrap();
    run(folder.path(), "trace generate --users 1 --days 1 --seed 1 --out users.parquet");
    record(folder.path(), "memory.parquet", &[(0, 5_000), (60, 4_000)]);
    for (flags, says) in [
        ("users.parquet --trace-from 2d", "outside of the trace, which covers 84493.00 s"),
        ("users.parquet --trace-from 2016-01-01T19:00", "outside of the trace, which covers 84493.00 s"),
        ("users.parquet --trace-from session:1000", "the trace of synthetic-0000000 has"),
        ("users.parquet --trace-from evning", "did you mean 'evening'?"),
        ("memory.parquet --trace-from session:1", "nothing of sessions"),
        ("memory.parquet --trace-from 61", "which covers 60.00 s from 2020-09-13 12:26:40 +00:00"),
    ] {
        let message = refusal(&run(folder.path(), &format!("{IN_USE} --trace {flags}")), 2);
        assert!(message.starts_with("error: --trace-from: ") && message.contains(says), "{flags}: {message}");
    }
    for flags in ["--trace-from evening", "--trace-window 10min", "--footprints android"] {
        let message = refusal(&run(folder.path(), &format!("{IN_USE} {flags}")), 2);
        assert!(message.contains("it does nothing here; name a trace of"), "{flags}: {message}");
    }
    // From the last second on, less memory is left than at first.
    let left = |from: u64| json(&run(folder.path(), &format!("{IN_USE} --trace memory.parquet --trace-from {from}")));
    let budget = |found: &Value| found["scenario"]["memory_budget_bytes"].as_u64();
    assert_eq!((budget(&left(59)), budget(&left(60))), (Some(5_000 * 1_024_000), Some(4_000 * 1_024_000)));
}

#[test]
fn footprints_and_usage_are_read_from_files() {
    let folder = tempdir().unwrap();
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces");
    let text = fs::read_to_string(traces.join("footprints/android.toml")).unwrap();
    fs::write(folder.path().join("same.toml"), &text).unwrap();
    // All users' apps have the sizes of the table.
    fs::write(folder.path().join("even.toml"), text.replacen("of_ln = ", "of_ln = 0.0 # ", 1)).unwrap();
    let usage = fs::read_to_string(traces.join("usage.toml")).unwrap();
    fs::write(folder.path().join("usage.toml"), &usage).unwrap();
    // Sessions of the same user are more similar.
    fs::write(
        folder.path().join("alike.toml"),
        usage.replacen("spread = { value = 0.2897", "spread = { value = 0.01", 1),
    )
    .unwrap();
    let used = |flags: &str| {
        let line = format!("{IN_USE} --apps synthetic-0001@68400s+10min {flags}");
        json(&run(folder.path(), line.trim_end()))["system_used_bytes"].as_u64().unwrap()
    };
    let plain = used("");
    assert_eq!([used("--footprints same.toml"), used("--footprints android"), used("--usage usage.toml")], [plain; 3]);
    assert_ne!(used("--footprints even.toml"), plain);
    let line = format!("{IN_USE} --apps synthetic-0001@68400s+10min --footprints none.toml");
    assert!(refusal(&run(folder.path(), &line), 2).starts_with("error: --footprints: cannot read none.toml"));
    let made = |flags: &str| {
        let line = format!("trace generate --users 1 --days 1 --seed 1 --out users.parquet {flags}");
        assert!(run(folder.path(), line.trim_end()).status.success(), "{flags}");
        fs::read(folder.path().join("users.parquet")).unwrap()
    };
    let plain = made("");
    assert!(made("--usage usage.toml") == plain && made("--usage alike.toml") != plain);
    let line = "trace generate --users 1 --days 1 --seed 1 --out users.parquet --usage none.toml";
    assert!(refusal(&run(folder.path(), line), 2).starts_with("error: --usage: cannot read none.toml"));
}

#[test]
fn a_sweep_runs_all_users_those_that_match_or_a_sample() {
    let folder = tempdir().unwrap();
    run(folder.path(), "trace generate --users 4 --days 1 --seed 1 --out users.parquet");
    let specification = |users: &str| {
        let text = "device = \"galaxy-s22\"\nstack = \"mnn-2\"\ncores = \"big:4\"\nmodel = \"lenet5\"\nbatch = 16\n\
                    trace = \"users.parquet\"\ntrace_from = \"evening\"\nseed = 1\n";
        fs::write(folder.path().join("s.toml"), format!("{text}{users}\n")).unwrap();
        run(folder.path(), "sweep s.toml --out out --overwrite")
    };
    let traces = |users: &str| {
        let output = specification(users);
        assert!(output.status.success(), "{users}: {}", stderr(&output));
        let frame = haversack_reports::frame::read_parquet(&folder.path().join("out/results.parquet")).unwrap();
        let used = crate::sweep::wholes(&frame, "system_used_bytes");
        (crate::sweep::texts(&frame, "trace").into_iter().flatten().collect::<Vec<_>>(), used)
    };
    let (all, used) = traces("users = \"*\"");
    assert_eq!(all, [0, 1, 2, 3].map(|user| format!("users.parquet#synthetic-000000{user}")));
    let different: std::collections::HashSet<_> = used.iter().collect();
    assert_eq!(different.len(), 4, "{used:?}");
    assert_eq!(traces("users = [\"*3\", \"synthetic-0000001\"]").0, [all[1].clone(), all[3].clone()]);
    let (sample, again) = (traces("sample = 2").0, traces("users = \"synth*\"\nsample = 2").0);
    assert!(sample.len() == 2 && sample == again && sample.iter().all(|user| all.contains(user)));
    for (users, says) in [
        (
            "users = \"synthetik-0000002\"",
            "s.toml:9: users: users.parquet: no user matches 'synthetik-0000002'; did you mean",
        ),
        ("users = \"zz*\"", "no user matches 'zz*'; the nearest is 'synthetic-0000003'"),
        ("sample = 5", "s.toml:9: sample: expected at most the 4 users that match, found 5"),
        ("sample = 0", "expected a whole number of users, at least 1"),
        ("user = \"*\"", "did you mean 'users'?"),
    ] {
        let message = refusal(&specification(users), 2);
        assert!(message.contains(says), "{users}: {message}");
        // Keys that the file does have are not reported as missing.
        assert!(!message.contains("device: missing"), "{users}: {message}");
    }
    fs::write(folder.path().join("none.toml"), "device = \"galaxy-s22\"\nmodel = \"lenet5\"\nusers = \"*\"\n").unwrap();
    assert!(refusal(&run(folder.path(), "sweep none.toml --out none"), 2).contains("a trace of users is missing"));
}

#[test]
fn days_begin_at_midnight_by_the_clock_of_the_user() {
    let folder = tempdir().unwrap();
    let carat = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/carat.jsonl");
    let text = fs::read_to_string(carat).unwrap();
    for (name, zone) in [("helsinki", "Europe/Helsinki"), ("tokyo", "Asia/Tokyo"), ("nowhere", "Europe/Nowhere")] {
        fs::write(folder.path().join("c.jsonl"), text.replace("Europe/Helsinki", zone)).unwrap();
        let output =
            run(folder.path(), &format!("trace import --kind carat c.jsonl --out {name}.parquet --format json"));
        let unknown = json(&output)["findings"]["time-zone"]["count"].as_u64();
        assert_eq!(unknown, (name == "nowhere").then_some(8), "{name}");
    }
    let said = |name: &str, from: &str| {
        let line = "simulate --device galaxy-s22 --stack mnn-2 --cores big:4 --model lenet5 --batch 16 --format json";
        stderr(&run(folder.path(), &format!("{line} --trace {name}.parquet --trace-from {from}")))
    };
    // 1443340077 is 07:47:57 UTC on 27 September 2015; Helsinki is three hours ahead, Tokyo nine.
    assert!(said("helsinki", "0").contains("from 2015-09-27 10:47:57 +03:00"), "{}", said("helsinki", "0"));
    assert!(said("nowhere", "0").contains("from 2015-09-27 07:47:57 +00:00"));
    assert!(said("tokyo", "0").contains("from 2015-09-27 16:47:57 +09:00"));
    // It continues until 13:51 in Helsinki, and in Tokyo until 19:51, so that it includes the evening there.
    assert!(said("tokyo", "evening").contains("from 2015-09-27 19:00:00 +09:00"));
    assert!(said("helsinki", "evening").contains("outside of the trace"));
    assert!(said("helsinki", "2015-09-27T12:00").contains("from 2015-09-27 12:00:00 +03:00"));
}

#[test]
fn carats_memory_drives_a_run_on_a_phone_of_its_size_and_says_that_it_is_inferred() {
    let folder = tempdir().unwrap();
    // A client of 2016 on a kernel without MemAvailable: 3.7 GB in all, 600 MB free and then 200, 800 MB inactive.
    let sample = |at: u64, free: u64| {
        format!(
            "{{\"uuid\":\"u\",\"time\":{},\"apps\":[],\"memory\":{{\"memoryWired\":0,\"memoryActive\":1200000,\
             \"memoryInactive\":800000,\"memoryFree\":3700000,\"memoryUser\":{}}}}}\n",
            1_460_000_000 + at,
            free * 1000
        )
    };
    fs::write(folder.path().join("carat.jsonl"), sample(0, 600) + &sample(600, 200) + &sample(1200, 200)).unwrap();
    let imported = run(folder.path(), "trace import --kind carat-full carat.jsonl --out carat.parquet");
    assert!(imported.status.success(), "{}", stderr(&imported));
    let line = "simulate --device trace --model lenet5 --policy original --format json --trace carat-memory.parquet";
    let found = json(&run(folder.path(), line));
    // Every phone has at least 6 GiB.
    let device = found["scenario"]["device"].as_str().unwrap().to_owned();
    let shown = json(&run(folder.path(), &format!("show device {device} --format json")));
    assert_eq!(shown["ram_bytes"], 6_u64 << 30, "{device}");
    assert_eq!(found["trace_assumed_share"], 1.0);
    let nothing = refusal(&run(folder.path(), "simulate --device trace --model lenet5 --policy original"), 2);
    assert!(nothing.contains("--device") && nothing.contains("name one (--trace)"), "{nothing}");
}

#[test]
fn figures_of_users_show_those_of_a_trace_and_say_so() {
    let folder = tempdir().unwrap();
    let generated = run(folder.path(), "trace generate --users 4 --days 2 --seed 3 --out users.parquet");
    assert!(generated.status.success(), "{}", stderr(&generated));
    let line = "reproduce fedhybrid/figure11a fedhybrid/figure11b fedhybrid/figure12 fedhybrid/figure19a --out";
    for (out, rest) in [("own", " --trace users.parquet"), ("plain", "")] {
        let done = run(folder.path(), &format!("{line} {out}{rest}"));
        assert!(done.status.success(), "{}", stderr(&done));
    }
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let (own, plain) = (read("own/cells.csv"), read("plain/cells.csv"));
    let rows = own.lines().skip(1).filter(|row| row.starts_with("fedhybrid/figure11") || row.contains("figure19a"));
    assert!(
        rows.clone().count() >= 3
            && rows.into_iter().all(|row| row.contains("users of users.parquet, not the paper's"))
    );
    assert!(!plain.contains("users.parquet") && own.lines().zip(plain.lines()).filter(|(a, b)| a != b).count() >= 3);
    assert!(read("own/run.json").contains("\"trace\": \"users.parquet\""));
    assert!(read("own/fedhybrid/figure12.csv").lines().count() > 10);
    // It resumes only with the same trace.
    let other = run(folder.path(), "reproduce fedhybrid/figure11b --out own --resume");
    assert_eq!(other.status.code(), Some(2), "{}", stderr(&other));
    let nothing = refusal(&run(folder.path(), "reproduce sage/table1 --trace users.parquet --out x"), 2);
    assert!(nothing.contains("those that do are fedhybrid/figure11a"), "{nothing}");
    let counters = refusal(&run(folder.path(), "reproduce fedhybrid/figure12 --trace none.parquet --out x"), 2);
    assert!(counters.contains("--trace none.parquet"), "{counters}");
}
