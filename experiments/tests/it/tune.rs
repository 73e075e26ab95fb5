//! `tune`: a policy's own parameters, by tries.

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
    let found = json(&tune("dtr --format json"));
    assert!(time(&found["tuned"]) < time(&found["shipped"]), "another score is faster here");
    assert_eq!(found["tuned"]["fidelity"], found["shipped"]["fidelity"]);
    assert!((4..=60).contains(&found["tries"].as_u64().unwrap()));
    let heuristic = found["set"]["heuristic"].as_str().unwrap();
    // What is given stays, and what was found is not bettered.
    let again = json(&tune(&format!("dtr --set heuristic={heuristic} --format json")));
    assert_eq!((&again["tuned"], again["tries"].as_u64()), (&found["tuned"], Some(1)));
    let text = String::from_utf8(tune("dtr").stdout).unwrap();
    assert!(text.contains(&format!("--set heuristic={heuristic}")) && text.contains("as it is shipped"), "{text}");
}

#[test]
fn what_cannot_be_tuned_is_said() {
    assert!(refusal(&tune("dtrr"), 2).contains("unknown policy 'dtrr'; did you mean 'dtr'?"));
    assert!(refusal(&tune("dtr --policy sage"), 2).contains("the policy that is tuned is dtr; leave the key out"));
    assert!(refusal(&tune("original"), 3).contains("nothing that was tried of original fits"));
}
