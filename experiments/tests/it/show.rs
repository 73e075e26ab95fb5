//! `show` and `list`: descriptions of a device, a stack, a network, a policy or a system.

use std::fs;

use crate::support::{call, call_in, json, keys, refusal, stdout};
use tempfile::tempdir;

/// The output of `show` with these words.
fn shown(what: &str) -> String {
    let output = call(&format!("show {what}"));
    assert_eq!(output.status.code(), Some(0), "{what}");
    stdout(&output)
}

#[test]
fn a_device_says_what_it_is_and_how_far_it_may_be_believed() {
    // Independent of line breaks.
    let text = shown("device galaxy-s22").split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "galaxy-s22: Samsung Galaxy S22 (Snapdragon 8 Gen 1)",
        "8 GiB, LPDDR5",
        "sage-opencl (GPU)",
        "pytorch-cpu (CPU)",
        "lowest, MHz",
        "Cortex-X2",
        "GPU: Adreno 730",
        "flash: ufs31",
        "papers checked it on",
        "rows of the papers that rest on it",
        "median error of numbers",
        "gpu.launch",
    ] {
        assert!(text.contains(words), "no '{words}' in\n{text}");
    }
    let value = json(&call("show device galaxy-s22 --format json"));
    assert_eq!((&value["ram_bytes"], &value["default_stack"]), (&(8_u64 << 30).into(), &"sage-opencl".into()));
    let constants = value["constants"].as_array().unwrap();
    let kinds: u64 = value["kinds"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(kinds, constants.len() as u64);
    assert_eq!(keys(&constants[0]), ["name", "value", "unit", "kind", "source", "file"]);
    // Every row of a role with its paper; FedHybrid's artefacts are the ones that declare the phone.
    let rows = value["rows"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["paper"] == "fedhybrid"), "{rows:?}");
}

#[test]
fn a_device_that_no_row_has_checked_says_so() {
    let none = "no row of a paper has ever checked it";
    assert!(shown("device pixel-6").contains(none) && !shown("device galaxy-s10").contains(none));
    let folder = tempdir().unwrap();
    // A copy under the same name is not the phone that was checked.
    fs::write(folder.path().join("galaxy-s10.toml"), "base = \"galaxy-s10\"\ngpu.launch.value = 40\n").unwrap();
    let text = stdout(&call_in(folder.path(), &["show", "device", "galaxy-s10.toml"]));
    assert!(
        text.contains("galaxy-s10.toml, over devices/calibrations/galaxy-s10.toml") && text.contains(none),
        "{text}"
    );
    // A value from the file without a kind is a guess of that file, in the base's unit.
    let launch = text.lines().find(|line| line.contains("gpu.launch")).unwrap();
    assert_eq!(launch.split_whitespace().collect::<Vec<_>>(), ["gpu.launch", "40", "us", "galaxy-s10.toml"]);
}

#[test]
fn a_stack_and_a_system_say_where_they_run_and_what_is_guessed() {
    let stack = shown("stack sage-opencl");
    for words in ["kernels for           GPU", "default of", "galaxy-s10", "gpu.efficiency.convolution", "sage-table1"]
    {
        assert!(stack.contains(words), "no '{words}' in\n{stack}");
    }
    assert_eq!(json(&call("show stack mnn --format json"))["processors"], serde_json::json!(["CPU", "GPU"]));
    let system = shown("system android");
    assert!(system.contains("swappiness 100") && system.contains("estimated"), "{system}");
    assert_eq!(json(&call("show system android --format json"))["swap"], false);
}

#[test]
fn a_network_is_counted_for_one_sample() {
    let value = json(&call("show model resnet18-cifar --format json"));
    let counts = json(&call("model resnet18-cifar --batch 1 --format json"));
    for key in ["parameters", "saved_bytes", "forward_flops", "training_flops"] {
        assert_eq!(value["counts"][key], counts[key], "{key}");
    }
    // The products of all layers are all of the operations; ResNet-18 has 17 convolutions of 3×3 and 3 of 1×1.
    let layers = value["layers"].as_array().unwrap();
    let flops: u64 = layers.iter().map(|layer| layer["forward_flops"].as_u64().unwrap()).sum();
    assert_eq!(flops, counts["forward_flops"]);
    assert_eq!((&layers[0]["operator"], &layers[0]["number"]), (&"convolution".into(), &20.into()));
    let largest: Vec<u64> =
        value["largest_saved"].as_array().unwrap().iter().map(|tensor| tensor["bytes"].as_u64().unwrap()).collect();
    assert!(largest.is_sorted_by(|a, b| a >= b) && largest[0] == counts["largest_saved_bytes"], "{largest:?}");
    assert!(shown("model bert-small").contains("512 (tokens)"));
}

#[test]
fn a_policy_says_what_it_does_and_what_can_be_set() {
    let text = shown("policy daf");
    for words in ["knapsack", "section 3.4", "fp32, fp16", "parameter", "default", "1, 2, 4, 8, 16 or 32", "not set"] {
        assert!(text.contains(words), "no '{words}' in\n{text}");
    }
    assert!(shown("policy dgc").contains("dgc has no parameters"));
    let value = json(&call("show policy mandheling --format json"));
    assert_eq!((&value["processor"], &value["precisions"]), (&"CPU and DSP".into(), &serde_json::json!(["int8"])));
    let history = &value["parameters"].as_array().unwrap()[5];
    assert_eq!((&history["name"], &history["default"]), (&"history".into(), &"16".into()));
    let listed = json(&call("list policies mandheling --format json"));
    assert_eq!(listed, value["parameters"]);
    let table = stdout(&call("list policies daf"));
    assert!(table.lines().next().unwrap().contains("parameter") && table.lines().count() == 16, "{table}");
}

#[test]
fn every_id_that_is_listed_can_be_shown() {
    for (list, what) in [("devices", "device"), ("stacks", "stack"), ("systems", "system"), ("policies", "policy")] {
        for row in json(&call(&format!("list {list} --format json"))).as_array().unwrap() {
            let id = row["id"].as_str().unwrap();
            let text = shown(&format!("{what} {id}"));
            assert!(text.starts_with(&format!("{id}: ")), "{text}");
        }
    }
}

#[test]
fn lists_are_sorted_and_are_also_for_programs() {
    for what in ["devices", "models", "policies", "stacks", "systems", "artefacts", "operators"] {
        let value = json(&call(&format!("list {what} --format json")));
        let ids: Vec<&str> = value.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
        let text = stdout(&call(&format!("list {what}")));
        let first: Vec<&str> = text.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
        assert_eq!(ids, first, "{what}");
        let unnumbered: Vec<&str> =
            ids.iter().copied().filter(|id| !id.contains(|c: char| c.is_ascii_digit())).collect();
        assert!(ids.len() > 2 && unnumbered.is_sorted(), "{what}: {unnumbered:?}");
    }
    let devices = json(&call("list devices --format json"));
    let s10 = devices.as_array().unwrap().iter().find(|row| row["id"] == "galaxy-s10").unwrap();
    assert_eq!(s10["ram_bytes"], 8_u64 << 30);
    assert!(stdout(&call("list devices")).contains("galaxy-s10               8 GiB  Samsung Galaxy S10"));
    assert!(refusal(&call("list devices galaxy-s10"), 2).contains("only policies have parameters"));
}
