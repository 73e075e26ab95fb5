//! `tune`: searches a policy's own parameters by trial.

use serde_json::Value;
use tempfile::tempdir;

use crate::support::{call_in, json, refusal};

fn tune(flags: &str) -> std::process::Output {
    let line = format!("tune --device galaxy-s10 --model resnet18-cifar --batch 32 --memory-budget 60% {flags}");
    call_in(tempdir().unwrap().path(), &line.split_whitespace().collect::<Vec<_>>())
}

fn time(results: &Value) -> f64 {
    results["iteration_time_s"].as_f64().unwrap()
}

#[test]
fn a_policy_is_never_slower_tuned_and_what_is_found_is_what_runs() {
    let on_gpu = "sage --device rtx-3090 --model bert-small --batch 8 --memory-budget 75% --attention math";
    let tune = |flags: &str| {
        let line = format!("tune {on_gpu} {flags}");
        call_in(tempdir().unwrap().path(), &line.split_whitespace().collect::<Vec<_>>())
    };
    let found = json(&tune("--format json"));
    assert!(time(&found["tuned"]) < time(&found["shipped"]), "another order is faster here");
    assert_eq!(found["tuned"]["fidelity"], found["shipped"]["fidelity"]);
    assert!((4..=60).contains(&found["tries"].as_u64().unwrap()));
    let set = found["set"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| format!("--set {name}={} ", value.as_str().unwrap()));
    let set: String = set.collect();
    // Given parameters stay, and the search finds no better values than before.
    let again = json(&tune(&format!("{set} --format json")));
    assert_eq!(again["tuned"], found["tuned"]);
    assert_eq!(again["shipped"], again["tuned"]);
    let text = String::from_utf8(tune("").stdout).unwrap();
    assert!(text.contains(set.trim()) && text.contains("as it is shipped"), "{text}");
}

#[test]
fn what_cannot_be_tuned_is_said() {
    assert!(refusal(&tune("dtrr"), 2).contains("unknown policy 'dtrr'; did you mean 'dtr'?"));
    assert!(refusal(&tune("dtr --policy sage"), 2).contains("the policy that is tuned is dtr; leave the key out"));
    assert!(refusal(&tune("original"), 3).contains("nothing that was tried of original fits"));
}
