//! Results that refactoring must not change: a digest of the JSON of `simulate` under each policy, of a sweep's table
//! and of the data of a declared artefact, in scalar arithmetic, which gives the same bytes on every machine. After a
//! change of the model, update them with `HAVERSACK_DOCS=update cargo test --test it -- answers`.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use haversack_devices::registry::digest;
use haversack_policies::registry::POLICIES;

use crate::docs::markdown::root;
use crate::support::{command, stderr};

/// The output of the program, or its error, in scalar arithmetic.
fn answer(line: &str) -> String {
    let arguments: Vec<&str> = line.split(' ').collect();
    let output = command(&root(), &arguments).env("HAVERSACK_SIMD", "scalar").output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output))
}

#[test]
fn every_policy_a_sweep_and_an_artefact_answer_as_before() {
    let mut answers = String::new();
    for entry in POLICIES.iter() {
        let line = format!(
            "simulate --device galaxy-s10 --model resnet18-cifar --batch 16 --memory-budget 80% --format json --policy {}",
            entry.id
        );
        writeln!(answers, "{} {}", entry.id, digest(&answer(&line))).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("sweep");
    let line = format!("sweep examples/two-devices.toml --out {}", out.display());
    answer(&line);
    let table = fs::read(out.join("results.parquet")).unwrap();
    let bytes: String = table.iter().map(|byte| char::from(*byte)).collect();
    writeln!(answers, "sweep {}", digest(&bytes)).unwrap();
    // Three swept keys: device, network and budget, in this order.
    let out = folder.path().join("artefact");
    answer(&format!("reproduce sage/figure13 --out {}", out.display()));
    writeln!(answers, "sage/figure13 {}", digest(&fs::read_to_string(out.join("sage/figure13.csv")).unwrap())).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/answers.txt");
    if env::var("HAVERSACK_DOCS").is_ok_and(|mode| mode == "update") {
        fs::write(&path, &answers).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), answers);
}
