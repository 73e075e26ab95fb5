//! Accuracies of networks here and in PyTorch, with the same settings on the same data.

use std::collections::BTreeMap;
use std::fs;

use haversack_reports::frame::read_parquet;
use serde_json::Value;

use crate::docs::markdown::root;
use crate::support::{call_in, stderr};

/// Test accuracies in percent by network, a number a seed.
fn accuracies(file: &str) -> BTreeMap<String, Vec<f64>> {
    let text = fs::read_to_string(root().join("experiments/tests/data").join(file)).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(all["test_accuracy_percent"].clone()).unwrap()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn networks_reach_what_they_reach_in_pytorch_within_a_point() {
    let (here, there) = (accuracies("training_accuracy.json"), accuracies("pytorch_accuracy.json"));
    assert_eq!(here.keys().collect::<Vec<_>>(), ["lenet5", "resnet8-cifar"]);
    for (network, seeds) in &here {
        let there = &there[network];
        assert_eq!((seeds.len(), there.len()), (5, 5), "{network}");
        let off = mean(seeds) - mean(there);
        assert!(off.abs() < 1.0, "{network}: {off} points from PyTorch");
    }
    // The committed numbers are this program's: the first seed of the smaller network, run again.
    let folder = tempfile::tempdir().unwrap();
    let specification = root().join("examples/accuracy/pytorch-lenet5.toml").display().to_string();
    let call = call_in(folder.path(), &["train", &specification, "--seed", "0", "--out", "out"]);
    assert_eq!(call.status.code(), Some(0), "{}", stderr(&call));
    let table = read_parquet(&folder.path().join("out/epochs.parquet")).unwrap();
    let found = table.column("accuracy").unwrap().f64().unwrap().last().unwrap() * 100.0;
    // They were written before sums had the same order on every machine, a difference that eight epochs amplify.
    assert!((found - here["lenet5"][0]).abs() < 1.5, "{found} for {}", here["lenet5"][0]);
}
