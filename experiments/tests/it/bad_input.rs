//! Every broken call ends with 2 and a message that helps; nothing panics and nothing is left behind.

use std::fs;

use crate::support::{call_in, refusal};
use tempfile::tempdir;

/// A call, and what its message must say.
const BROKEN: &[(&str, &[&str])] = &[
    ("simulate --device galaxy-s99 --model resnet50 --batch 32 --policy sage", &["--device", "galaxy-s"]),
    ("simulate --device galaxy-s10 --model resnet5o --batch 32 --policy sage", &["--model", "'resnet50'"]),
    ("simulate --device galaxy-s10 --model resnet50 --batch 0 --policy sage", &["--batch", "at least 1"]),
    ("simulate --device galaxy-s10 --model resnet50 --batch -3 --policy sage", &["--batch", "'-3'"]),
    ("simulate --device galaxy-s10 --model resnet50 --batch 99999999999999999999", &["--batch"]),
    ("simulate --device galaxy-s10 --model resnet50 --policy sagee", &["--policy", "'sage'"]),
    ("simulate --device galaxy-s10 --model resnet50 --policy sage --set ordre=half", &["--set", "'order'"]),
    ("simulate --device galaxy-s10 --model resnet50 --policy sage --set order=quarter", &["sage.order", "alternate"]),
    ("simulate --device galaxy-s10 --model resnet50 --policy dgc --set sage.order=half", &["parameter of 'sage'"]),
    ("simulate --device galaxy-s10 --model resnet50 --policy sage --set order", &["order=half"]),
    ("simulate --device galaxy-s10 --model resnet50 --policy sage --memory-budget 1KB", &["least memory budget"]),
    ("simulate --device galaxy-s10 --model resnet50 --memory-budget banana", &["--memory-budget", "800MiB", "30%"]),
    ("simulate --device galaxy-s10 --model resnet50 --memory-budget -1MB", &["--memory-budget", "above zero"]),
    ("simulate --device galaxy-s10 --model resnet50 --activation-budget nan", &["--activation-budget"]),
    ("simulate --device galaxy-s10 --model resnet50 --time-budget -1s", &["--time-budget", "above zero"]),
    ("simulate --device galaxy-s10 --model resnet50 --time-budget 2", &["--time-budget", "unit"]),
    ("simulate --device galaxy-s22 --model lenet5 --trainer-adj 1001", &["--trainer-adj", "-1000 to 1000", "'1001'"]),
    ("simulate --device galaxy-s22 --model lenet5 --trainer-adj 0", &["--trainer-adj", "name a system too"]),
    ("simulate --device galaxy-s22 --model lenet5 --apps many", &["--apps", "none", "synthetic-0001@68400s+10min"]),
    ("simulate --device galaxy-s22 --model lenet5 --apps none.parquet", &["--apps", "none.parquet"]),
    ("simulate --device galaxy-s22 --model lenet5 --budget-walls 60%", &["--budget-walls", "200ms=60%"]),
    ("simulate --device galaxy-s22 --model lenet5 --budget-walls 1s=6O%", &["--budget-walls", "30%", "'6O%'"]),
    (
        "simulate --device galaxy-s22 --model lenet5 --trace t.csv --budget-walls 1s=60%",
        &["--budget-walls", "the trace"],
    ),
    ("simulate --device galaxy-s10 --model resnet50 --trace none.parquet", &["--trace", "none.parquet"]),
    ("simulate --device galaxy-s10 --model vgg16 --input 3x8x8", &["--input", "too small"]),
    ("simulate --device galaxy-s10 --model resnet50 --input 8192x8192", &["--input"]),
    ("simulate --device galaxy-s10 --model resnet50 --optimizer adm", &["--optimizer", "'adam'"]),
    ("simulate --device galaxy-s10 --model resnet50 --frequency high", &["--frequency", "highest"]),
    ("simulate --device galaxy-s10 --model resnet50 --iterations 0", &["--iterations"]),
    ("simulate --device galaxy-s10 --model resnet50 --seed -1", &["--seed"]),
    ("simulate --device galaxy-s10 --model resnet50 --stack sage-opencll", &["--stack", "sage-opencl"]),
    ("simulate --model resnet50", &["device", "galaxy-s10"]),
    ("simulate --device galaxy-s10", &["model", "resnet50"]),
    ("simulate --devise galaxy-s10 --model resnet50", &["--device"]),
    ("simulate s.toml", &["s.toml:1: device: ", "the number 3"]),
    ("simulate none.toml", &["none.toml", "cannot be read"]),
    ("simulate r.bin", &["r.bin"]),
    ("sweep s.toml --out o", &["s.toml:1: device: "]),
    ("sweep none.toml --out o", &["none.toml"]),
    ("sweep spec.toml --out o --shard 3/2", &["--shard", "1/4"]),
    ("sweep spec.toml --out o --jobs 0", &["--jobs"]),
    ("sweep spec.toml --out o", &["spec.toml:2: model: ", "'lenet5'"]),
    ("merge o1 o2 --out o", &["o1"]),
    ("model x.onnx --format json", &["x.onnx"]),
    ("model r.bin --format json", &["r.bin"]),
    ("model none.onnx", &["none.onnx"]),
    ("model nosuch --format json", &["nosuch"]),
    ("model resnet5o", &["'resnet50'"]),
    ("model resnet50 --batch 0", &["--batch"]),
    ("model resnet50 --input cat", &["--input", "3x96x96"]),
    ("model vgg19 --input 3x8192x8192 --batch 65536", &["more than can be counted"]),
    ("replay l.log --policy dtr --heuristic dtr --memory-ratio 0.5", &["l.log", "START"]),
    ("replay r.bin --policy dtr --heuristic dtr --memory-ratio 0.5", &["r.bin"]),
    ("replay none.log --memory-ratio 0.5", &["none.log"]),
    ("replay log.log --policy dtr --heuristic dtr --memory-ratio 0", &["memory ratio"]),
    ("replay log.log --policy dtr --heuristic dtr --memory-ratio -1", &["memory ratio"]),
    ("replay log.log --policy dtr --heuristic dtr --memory-ratio NaN", &["memory ratio"]),
    ("replay log.log --policy dtr --heuristic dtrr --memory-ratio 0.5", &["'dtr'"]),
    ("replay log.log --policy sage --heuristic dtr --memory-ratio 0.5", &["only dtr"]),
    ("replay log.log --memory-ratio 0.5 --overhead-limit 0.5", &["overhead limit"]),
    ("replay log.log", &["--memory-ratio"]),
    ("reproduce sage/table99 --out o", &["sage/table"]),
    ("reproduce nopaper --out o", &["nopaper"]),
    ("list devises", &["devices"]),
    ("simulat", &["simulate"]),
];

const LOG: &str = r#"{"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}
{"INSTRUCTION":"CONSTANT","NAME":"w"}
{"INSTRUCTION":"MEMORY","NAME":"w","MEMORY":"100"}
{"INSTRUCTION":"CALL","NAME":"relu","ARGS":["w"],"RESULT":["y"],"TIME":"7"}
{"INSTRUCTION":"MEMORY","NAME":"y","MEMORY":"100"}
{"INSTRUCTION":"ALIAS","NAME":"y","ALIAS":"-1"}
"#;

#[test]
fn broken_calls_are_refused_with_help() {
    let folder = tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    put("x.onnx", b"not onnx");
    put("t.csv", b"time_s,budget_bytes\n1,50%\n");
    put("s.toml", b"device = 3\n");
    put("spec.toml", b"device = [\"galaxy-s10\"]\nmodel = [\"lenet5\", \"lennet5\"]\n");
    put("l.log", b"{\"INSTRUCTION\":\"CALL\"}\n");
    put("log.log", LOG.as_bytes());
    // Bytes that are no text, no TOML, no ONNX and no log.
    put("r.bin", &(0..300_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<_>>());
    for (line, words) in BROKEN {
        let output = call_in(folder.path(), &line.split(' ').collect::<Vec<_>>());
        // 3 where the input is right and no plan fits, of which the message names the least budget that does.
        let code = if words.contains(&"least memory budget") { 3 } else { 2 };
        assert_eq!(output.status.code(), Some(code), "haversack {line}");
        let message = refusal(&output, code);
        for word in *words {
            assert!(message.contains(word), "haversack {line}: no '{word}' in\n{message}");
        }
        assert!(output.stdout.is_empty(), "haversack {line}: a result was printed");
        assert!(!folder.path().join("o").exists(), "haversack {line}: a folder was left behind");
    }
}

#[test]
fn a_right_call_among_them_works() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("log.log"), LOG).unwrap();
    let output =
        call_in(folder.path(), &["replay", "log.log", "--policy", "dtr", "--heuristic", "dtr", "--memory-ratio", "1"]);
    assert_eq!(output.status.code(), Some(0));
}
