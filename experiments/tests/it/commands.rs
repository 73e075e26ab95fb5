//! `model`, `replay`, `list` and every `--help`, from outside.

use std::path::Path;

use crate::support::{call, call_in, json, keys, refusal, stdout};

#[test]
fn a_model_is_counted_as_pytorch_counts_it() {
    let found = json(&call("model resnet18-cifar --batch 8 --format json"));
    assert_eq!(
        keys(&found),
        [
            "parameters",
            "trainable_parameters",
            "parameter_bytes",
            "forward_flops",
            "training_flops",
            "saved_bytes",
            "saved_act_bytes",
            "saved_tensors",
            "largest_saved_bytes",
            "missing_parameters",
            "co_nodes"
        ]
    );
    // PyTorch 2.6 at batch 8: 614400 + 557056 floats an image, and a small remainder.
    assert_eq!(found["saved_act_bytes"], 37_541_700);
    assert_eq!(keys(&found["co_nodes"]), ["original", "direct", "of", "sr"]);
    let nodes: Vec<u64> = found["co_nodes"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).collect();
    assert!(nodes.windows(2).all(|pair| pair[0] >= pair[1]), "{nodes:?}");
    assert!(stdout(&call("model bert-small --input 64")).contains("input 64"));
}

#[test]
fn a_log_is_replayed_to_its_digest() {
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/replay/tests/data/synthetic_logs");
    let call = |flags: &[&str]| {
        let base = ["replay", "syn0.log", "--policy", "dtr", "--heuristic", "dtr", "--memory-ratio"];
        json(&call_in(&logs, &[&base[..], flags, &["--format", "json"]].concat()))
    };
    let found = call(&["1.0"]);
    assert_eq!(keys(&found), ["status", "slowdown", "clock_final", "evictions", "evict_hash"]);
    // The published simulator's result for this log.
    assert_eq!((&found["status"], &found["clock_final"]), (&"ok".into(), &14_633.into()));
    assert_eq!((&found["evictions"], &found["evict_hash"]), (&20.into(), &"5fdda54f1a66e01a".into()));
    // A run that ended by OOM has no slow-down.
    let short = call(&["0.05"]);
    assert_eq!((&short["status"], &short["slowdown"]), (&"OOM".into(), &serde_json::Value::Null));
    assert!(found["slowdown"].as_f64() >= Some(1.0));
    assert!(call(&["1.0", "--timing"])["operators_per_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn lists_have_one_id_a_line() {
    let ids = |what: &str| -> Vec<String> {
        let shown = stdout(&call(&format!("list {what}")));
        shown.lines().map(|line| line.split("  ").next().unwrap().to_owned()).collect()
    };
    for (what, known) in
        [("devices", "galaxy-s10"), ("models", "resnet50"), ("policies", "sage"), ("stacks", "pytorch-cpu")]
    {
        let found = ids(what);
        assert!(found.iter().any(|id| id == known), "no {known} in {found:?}");
        assert!(found.iter().all(|id| !id.contains(' ')), "{found:?}");
    }
    assert!(stdout(&call("list policies")).contains("parameters: order, mtp"));
    assert_eq!(call("list artefacts").status.code(), Some(0));
}

#[test]
fn a_command_that_is_gone_says_in_one_line_what_to_use() {
    for (line, words) in [("kernels min --compare", "kernels"), ("list kernels", "list kernels")] {
        let message = refusal(&call(line), 2);
        assert_eq!(message, format!("error: `haversack {words}` is gone: use `cargo bench -p haversack-kernels`\n"));
    }
}

#[test]
fn every_command_helps_with_an_example() {
    for name in ["", "reproduce", "simulate", "sweep", "merge", "model", "replay", "list"] {
        let output = call(format!("{name} --help").trim_start());
        let shown = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{name}");
        assert!(shown.contains("Example") && shown.contains("haversack"), "{name}:\n{shown}");
    }
    for key in haversack::scenario::Key::ALL {
        let help = stdout(&call("simulate --help"));
        let flag = format!("--{}", key.flag());
        assert!(help.split(|c: char| c != '-' && !c.is_alphanumeric()).any(|word| word == flag), "{key:?}");
    }
}
