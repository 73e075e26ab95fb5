//! The plan of a run, written by `simulate --plan` and executed again by the policy `planned`.

use haversack_policies::registry::POLICIES;
use serde_json::Value;
use tempfile::tempdir;

use crate::support::{call_in, json, refusal, stderr};

/// The result of `simulate` without the names of the policies.
fn simulated(within: &std::path::Path, flags: &str) -> Result<Value, String> {
    let line = format!("simulate --model resnet18-cifar --format json {flags}");
    let output = call_in(within, &line.split(' ').collect::<Vec<_>>());
    if output.status.code() == Some(2) {
        return Err(stderr(&output));
    }
    let mut found = json(&output);
    let scenario = found["scenario"].as_object_mut().unwrap();
    scenario.retain(|key, _| !["policy", "set"].contains(&key.as_str()));
    Ok(found)
}

#[test]
fn every_policy_is_done_again_to_the_byte() {
    let folder = tempdir().unwrap();
    let mut refused = Vec::new();
    for entry in POLICIES.iter() {
        let budget = if entry.gives_way { " --memory-budget 80%" } else { "" };
        let run = |policy: &str, file: &str| {
            let flags = format!("--device xiaomi-10 --batch 16 --iterations 3{budget} --policy {policy} --plan {file}");
            simulated(folder.path(), &flags)
        };
        match run(entry.id, "first.json") {
            Ok(found) => {
                let again = run("planned --set plan=first.json", "second.json").unwrap();
                assert_eq!(again, found, "{}", entry.id);
                let [first, second] = ["first.json", "second.json"]
                    .map(|file| std::fs::read_to_string(folder.path().join(file)).unwrap());
                assert_eq!(second, first, "{}", entry.id);
            }
            Err(_) => refused.push(entry.id),
        }
    }
    // No engine is among them.
    assert!(refused.len() < 3, "{refused:?}");
}

#[test]
fn a_plan_for_something_else_is_refused_in_words() {
    let folder = tempdir().unwrap();
    let run = |flags: &str| {
        let place = if flags.contains("pixel") { "" } else { " --device galaxy-s10" };
        let batch = if flags.contains("--batch") { "" } else { " --batch 8" };
        let line = format!("simulate{place}{batch} {flags}");
        call_in(folder.path(), &line.split(' ').collect::<Vec<_>>())
    };
    assert!(run("--model resnet18-cifar --policy dtr --memory-budget 90% --plan plan.json").status.success());
    std::fs::write(folder.path().join("cut.json"), "{\"version\": 1").unwrap();
    for (flags, says) in [
        ("--model resnet18-cifar --policy planned", "plan: not set; expected --set plan=FILE.json"),
        ("--model resnet18-cifar --policy planned --set plan=none.json", "plan: none.json: "),
        ("--model resnet18-cifar --policy planned --set plan=cut.json", "plan: cut.json: EOF while parsing"),
        ("--model lenet5 --policy planned --set plan=plan.json", "plan: is for another network: where it has"),
        ("--model resnet18-cifar --policy planned --set plan=plan.json --batch 4", "plan: is for a batch of 8"),
        (
            "--model resnet18-cifar --policy planned --set plan=plan.json --device pixel-6",
            "plan: is for another machine",
        ),
    ] {
        let message = refusal(&run(flags), 2);
        assert!(message.contains(says), "{message}");
    }
}
