//! `examples/`: the README describes every file next to its command, which `docs.rs` runs; generated
//! files are regenerated here.

use std::env;
use std::fs;

use crate::docs::markdown::{Page, root};

// The writer of small ONNX files that the importer's own tests use.
#[allow(dead_code)]
#[path = "../../../workloads/tests/it/onnx/wire.rs"]
mod wire;

use wire::{A, FLOAT, G, batched};

/// The description in `examples/network.onnx`.
const ABOUT: &str =
    "A small image classifier: haversack simulate --device pixel-6 --model examples/network.onnx --batch 8";

/// Two convolutions of 3x3, each halved by a pooling, and a classifier of ten classes.
fn network() -> Vec<u8> {
    let conv = [("pads", A::Ints(&[1, 1, 1, 1])), ("kernel_shape", A::Ints(&[3, 3]))];
    let pool = [("kernel_shape", A::Ints(&[2, 2])), ("strides", A::Ints(&[2, 2]))];
    let graph = G::default()
        .input("images", FLOAT, &batched(&[3, 32, 32]))
        .weight("w1", &[16, 3, 3, 3])
        .weight("b1", &[16])
        .weight("w2", &[32, 16, 3, 3])
        .weight("b2", &[32])
        .weight("w3", &[10, 32])
        .weight("b3", &[10])
        .node("Conv", &["images", "w1", "b1"], &["c1"], &conv)
        .node("Relu", &["c1"], &["r1"], &[])
        .node("MaxPool", &["r1"], &["p1"], &pool)
        .node("Conv", &["p1", "w2", "b2"], &["c2"], &conv)
        .node("Relu", &["c2"], &["r2"], &[])
        .node("GlobalAveragePool", &["r2"], &["p2"], &[])
        .node("Flatten", &["p2"], &["f"], &[("axis", A::I(1))])
        .node("Gemm", &["f", "w3", "b3"], &["scores"], &[("transB", A::I(1))])
        .output("scores");
    // Field 6 of a model is its description: tag 6 << 3 | 2, a length below 128 in one byte, the text.
    [graph.file(), vec![6 << 3 | 2, ABOUT.len() as u8], ABOUT.as_bytes().to_vec()].concat()
}

#[test]
fn the_network_is_what_this_helper_makes() {
    let path = root().join("examples/network.onnx");
    if env::var("HAVERSACK_DOCS").is_ok_and(|mode| mode == "update") {
        fs::write(&path, network()).unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), network());
    // 16·27 + 16, 32·144 + 32, and 320 + 10 weights.
    let counted = crate::support::json(&crate::support::call_in(
        &root(),
        &["model", "examples/network.onnx", "--format", "json"],
    ));
    assert_eq!(counted["parameters"], 448 + 4640 + 330);
}

#[test]
fn every_example_stands_beside_its_command_and_says_it_itself() {
    let page = Page::read(&root().join("examples/README.md"));
    let commands: String =
        page.blocks().into_iter().filter(|block| block.language == "sh").map(|block| block.text).collect();
    let mut examples = 0;
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name == "README.md" {
            continue;
        }
        examples += 1;
        if path.is_dir() {
            // Files of slow commands are parsed by the tests of their formats.
            let text = fs::read_to_string(root().join("examples/README.md")).unwrap();
            assert!(text.contains(&format!("]({name})")), "examples/README.md has no row for {name}");
            continue;
        }
        assert!(commands.contains(&format!("examples/{name}")), "examples/README.md has no command for {name}");
        // Samples of Carat are JSON, which has no comments.
        if name.starts_with("carat") {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let command = text.split("haversack ").nth(1).and_then(|rest| rest.split(['\n', '"']).next());
        let command = command.unwrap_or_else(|| panic!("{name} names no command")).trim();
        assert!(commands.contains(command), "{name} says 'haversack {command}', examples/README.md does not");
    }
    assert!(examples >= 8, "only {examples} examples");
}
