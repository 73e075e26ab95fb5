//! `haversack trace budgets` and `trace plot`: the memory that phones leave to training, and a picture of a user's day.

use std::fs;

use haversack_reports::frame::read_parquet;
use tempfile::tempdir;

use crate::support::{call_in, json, refusal, stderr, stdout};
use crate::sweep::{texts, wholes};

#[test]
fn budgets_are_of_moments_of_users() {
    let folder = tempdir().unwrap();
    let run = |line: &str| call_in(folder.path(), &line.split(' ').collect::<Vec<_>>());
    run("trace generate --users 4 --days 1 --seed 1 --out users.parquet");
    let line =
        "trace budgets users.parquet --device galaxy-s22 --window 1min --per-user 3 --out b.parquet --format json";
    let found = json(&run(line));
    assert_eq!((found["users"].as_u64(), found["moments"].as_u64()), (Some(4), Some(12)));
    let files = ["b.parquet", "b-by-user.svg", "b-by-user.png", "b-by-hour.svg", "b-by-hour.png"];
    assert_eq!(found["files"], serde_json::json!(files));
    assert!(files.iter().all(|file| folder.path().join(file).is_file()));
    let frame = read_parquet(&folder.path().join("b.parquet")).unwrap();
    let names: Vec<String> = frame.get_column_names().iter().map(|name| name.to_string()).collect();
    let columns = ["user", "time_s", "hour", "available_bytes", "safe_bytes", "predicted_bytes", "apps", "front_app"];
    assert_eq!((names, frame.height()), (columns.map(str::to_owned).to_vec(), 12));
    let of = |name: &str| wholes(&frame, name).into_iter().flatten().collect::<Vec<u64>>();
    let (available, safe, predicted) = (of("available_bytes"), of("safe_bytes"), of("predicted_bytes"));
    let times: Vec<f64> = frame.column("time_s").unwrap().f64().unwrap().iter().flatten().collect();
    for place in 0..12 {
        // A phone of 8 GB leaves some of it; the safe memory is less, by the same amount for all;
        // hours are of the first day.
        assert!((1_000_000_000..8_000_000_000).contains(&available[place]), "{available:?}");
        assert_eq!(available[place] - safe[place], available[0] - safe[0]);
        assert!((safe[place] as f64 / predicted[place] as f64 - 1.0).abs() < 0.9, "{safe:?} {predicted:?}");
        assert_eq!(of("hour")[place], (times[place] / 3600.0) as u64);
    }
    let users = texts(&frame, "user");
    assert!(users.is_sorted() && available.iter().collect::<std::collections::HashSet<_>>().len() > 4);
    // The same seed gives the same bytes, another one different bytes; a single user is the same as among all.
    let bytes = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let first = bytes("b.parquet");
    run(line);
    assert!(first == bytes("b.parquet"));
    run(&format!("{line} --users *3 --seed 0"));
    let alone = read_parquet(&folder.path().join("b.parquet")).unwrap();
    assert_eq!(wholes(&alone, "available_bytes"), wholes(&frame, "available_bytes")[9..]);
    for (flags, says) in [
        ("--users *9", "no user matches '*9'; the nearest is 'synthetic-000000"),
        ("--sample 5", "at most the 4 users that match, found 5"),
        ("--system androit", "did you mean `android`?"),
    ] {
        let message = refusal(&run(&format!("{line} {flags}")), 2);
        assert!(message.contains(says), "{flags}: {message}");
    }
    let message = refusal(&run(&line.replace("1min", "10")), 2);
    assert!(message.contains("did you mean '10s'?"), "{message}");
}

#[test]
fn a_users_day_is_drawn() {
    let folder = tempdir().unwrap();
    let run = |line: &str| call_in(folder.path(), &line.split(' ').collect::<Vec<_>>());
    run("trace generate --users 2 --days 1 --seed 1 --out users.parquet");
    let output = run("trace plot users.parquet --user synthetic-0000001 --from evening --window 2h --out day.svg");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("synthetic-0000001: "), "{}", stdout(&output));
    let svg = fs::read_to_string(folder.path().join("day.svg")).unwrap();
    for words in ["time in front (s,", "memory (GB)", "from 1970-01-01 19:00:00 +00:00", "together"] {
        assert!(svg.contains(words), "no {words}");
    }
    let message = refusal(&run("trace plot users.parquet --from 3d --out day.svg"), 2);
    assert!(message.starts_with("error: --from: 259200s is") && message.contains("which covers"), "{message}");
    let message = refusal(&run("trace plot users.parquet --user synthetic-0000002 --out day.svg"), 2);
    assert!(message.contains("expected rows of the user 'synthetic-0000002', found none; did you mean"), "{message}");
}
