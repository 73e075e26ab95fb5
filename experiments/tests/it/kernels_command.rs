//! `kernels` and `list kernels`, from outside. Rates are never compared: the machine is shared.

use std::fs;
use std::path::Path;

use crate::support::{call, call_in, command, json, keys, refusal, stdout};
use serde_json::Value;
use tempfile::tempdir;

/// 200 KiB, 1.5 MiB and 64 MiB.
const SIZES: [u64; 3] = [204_800, 1_572_864, 67_108_864];

/// The ids of `list kernels`.
fn listed() -> Vec<String> {
    let shown = stdout(&call("list kernels"));
    shown.lines().map(|line| line.split("  ").next().unwrap().to_owned()).collect()
}

fn name(row: &Value) -> &str {
    row["name"].as_str().unwrap()
}

#[test]
fn a_filter_selects_the_listed_names_that_contain_it_at_three_sizes_each() {
    let folder = tempdir().unwrap();
    let rows = json(&call_in(folder.path(), &["kernels", "triple", "--format", "json", "--out", "out"]));
    let rows = rows.as_array().unwrap();
    let expected: Vec<String> = listed().into_iter().filter(|id| id.contains("triple")).collect();
    // The kernel itself, its scalar twin, and perhaps wider ones.
    assert!(expected.len() >= 2 && expected[0] == "triple", "{expected:?}");
    // The list is sorted, the measurements are in the order of the catalogue.
    let mut names: Vec<&str> = rows.iter().step_by(3).map(name).collect();
    names.sort_unstable();
    assert_eq!(names, expected);
    for of_kernel in rows.chunks(3) {
        let sizes: Vec<u64> = of_kernel.iter().map(|row| row["size"].as_u64().unwrap()).collect();
        assert_eq!(sizes, SIZES, "{}", name(&of_kernel[0]));
        assert!(of_kernel.iter().all(|row| row["name"] == of_kernel[0]["name"]));
    }
    for row in rows {
        assert_eq!(keys(row), ["name", "size", "bytes_per_s", "limit_bytes_per_s"]);
        assert!(row["bytes_per_s"].as_f64().unwrap() > 0.0 && row["limit_bytes_per_s"].as_f64().unwrap() > 0.0);
    }
    // Kernels of one size are measured beside one limit.
    assert_eq!(rows[0]["limit_bytes_per_s"], rows[3]["limit_bytes_per_s"]);
    files_are_there(&folder.path().join("out"), rows.len());
}

/// The table has a header and a line a row; the pictures are pictures; nothing half-written is left.
fn files_are_there(out: &Path, rows: usize) {
    let table = fs::read_to_string(out.join("kernels.csv")).unwrap();
    assert_eq!(table.lines().next(), Some("name,size,bytes_per_s,limit,limit_bytes_per_s,peer,peer_bytes_per_s"));
    assert_eq!(table.lines().count(), 1 + rows);
    assert!(fs::read_to_string(out.join("kernels.svg")).unwrap().contains("share of the limit"));
    assert_eq!(fs::read(out.join("kernels.png")).unwrap()[1..4], *b"PNG");
    let record: Value = serde_json::from_str(&fs::read_to_string(out.join("run.json")).unwrap()).unwrap();
    let outputs = ["kernels.csv", "kernels.svg", "kernels.png"];
    assert_eq!((&record["command"], &record["outputs"]), (&"kernels".into(), &outputs.to_vec().into()));
    // Beside them only the record and the lock.
    assert_eq!(fs::read_dir(out).unwrap().count(), outputs.len() + 2);
}

#[test]
#[cfg(not(feature = "peers"))]
fn without_its_peers_the_program_says_how_to_build_one_that_has_them() {
    let folder = tempdir().unwrap();
    let message = refusal(&call_in(folder.path(), &["kernels", "min", "--compare", "--out", "o"]), 2);
    assert!(message.contains("cargo run --release --features peers -- kernels --compare"), "{message}");
    assert!(!folder.path().join("o").exists());
}

#[test]
#[cfg(feature = "peers")]
fn peers_run_where_they_are_asked_for() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("measured");
    let call = ["kernels", "absmax-scalar", "--compare", "--format", "json", "--out", out.to_str().unwrap()];
    let rows = json(&call_in(folder.path(), &call));
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!(keys(row), ["name", "size", "bytes_per_s", "limit_bytes_per_s", "peer_bytes_per_s"]);
        assert!(row["peer_bytes_per_s"].as_f64().unwrap() > 0.0);
    }
    let table = fs::read_to_string(out.join("kernels.csv")).unwrap();
    assert!(table.lines().nth(1).unwrap().contains(",read,") && table.contains(",an iterator's absmax,"), "{table}");
}

#[test]
fn text_shows_shares_side_by_side() {
    let folder = tempdir().unwrap();
    let shown = stdout(&call_in(folder.path(), &["kernels", "copy"]));
    assert!(SIZES.iter().all(|size| shown.contains(&format!("{size} B"))), "{shown}");
    assert!(shown.contains("of limit") && !shown.contains("× peer"), "{shown}");
    assert!(shown.lines().any(|line| line.starts_with("copy ")), "{shown}");
    // Without --out nothing is written.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_of_other_results_is_refused() {
    let folder = tempdir().unwrap();
    fs::create_dir(folder.path().join("o")).unwrap();
    fs::write(folder.path().join("o/run.json"), "{\"command\": \"sweep\", \"outputs\": []}").unwrap();
    let message = refusal(&call_in(folder.path(), &["kernels", "copy", "--out", "o"]), 2);
    assert!(message.contains("'sweep'") && message.contains("--overwrite"), "{message}");
}

#[test]
fn a_filter_that_matches_nothing_names_the_nearest_kernel_and_leaves_no_folder() {
    let folder = tempdir().unwrap();
    let message = refusal(&call_in(folder.path(), &["kernels", "tripel", "--out", "o"]), 2);
    assert!(message.contains("'tripel'") && message.contains("'triple'"), "{message}");
    assert!(!folder.path().join("o").exists());
}

#[test]
fn help_has_an_example() {
    let shown = stdout(&call("kernels --help"));
    assert!(shown.contains("Example") && shown.contains("haversack kernels pack2 --compare"), "{shown}");
}

#[test]
fn the_instruction_set_of_the_environment_is_respected() {
    let folder = tempdir().unwrap();
    let listed = |isa: &str| command(folder.path(), &["list", "kernels"]).env("HAVERSACK_SIMD", isa).output().unwrap();
    let scalar = stdout(&listed("scalar"));
    assert!(scalar.contains("min-scalar") && !scalar.contains("avx"), "{scalar}");
    let message = refusal(&listed("mmx"), 2);
    assert!(message.contains("'mmx'") && message.contains("scalar"), "{message}");
}

#[test]
fn every_kernel_is_listed_once_with_a_description() {
    let shown = stdout(&call("list kernels"));
    let mut names = listed();
    for known in ["min", "max", "triple", "min-hybrid", "pack2", "pack2-group256", "unpack8", "f2i", "copy"] {
        assert!(names.iter().any(|name| name == known), "no {known} in {names:?}");
    }
    assert!(shown.lines().all(|line| line.split_once("  ").is_some_and(|(_, about)| !about.trim().is_empty())));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}
