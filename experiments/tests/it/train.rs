//! `train`: its output, resuming after an interruption, and its errors.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use haversack_reports::frame::read_parquet;
use serde_json::Value;
use tempfile::TempDir;

use crate::docs::markdown::{Page, root};
use crate::interrupted::interrupted;
use crate::reproduce::tree;
use crate::support::{call_in, command, refusal, stderr, stdout};

pub(crate) const SPEC: &str = "data = \"digits\"\ndevice = \"jetson-agx-xavier\"\nmodel = \"lenet5\"\nbatch = 8\n\
    policy = [\"original\", \"dtr\"]\noptimizer = \"momentum\"\nepochs = 6\nlearning_rate = 0.02\n\
    schedule = \"cosine warm-up=1\"\nseeds = [1, 0]\nvalidation_share = 0.25\n";

/// An IDX file of bytes.
fn idx(shape: &[u32], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, shape.len() as u8];
    shape.iter().for_each(|size| bytes.extend(size.to_be_bytes()));
    bytes.extend(values);
    bytes
}

/// `number` images of 28 × 28 pixels: a bright bar at the left, in the middle or at the right, over a pattern.
fn bars(number: u32) -> (Vec<u8>, Vec<u8>) {
    let pixel = |image: u32, place: u32| {
        let bar = 4 + 9 * (image % 3);
        let noise = ((image * 31 + place).wrapping_mul(2_654_435_761) >> 26) as u8;
        if (bar..bar + 3).contains(&(place % 28)) { 190 + noise } else { noise }
    };
    let images: Vec<u8> = (0..number).flat_map(|image| (0..784).map(move |place| pixel(image, place))).collect();
    (idx(&[number, 28, 28], &images), idx(&[number], &(0..number).map(|image| (image % 3) as u8).collect::<Vec<_>>()))
}

/// A folder with data and a specification.
pub(crate) fn folder(specification: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let digits = folder.path().join("digits");
    fs::create_dir(&digits).unwrap();
    for (part, number) in [("train", 64), ("t10k", 24)] {
        let (images, labels) = bars(number);
        fs::write(digits.join(format!("{part}-images-idx3-ubyte")), images).unwrap();
        fs::write(digits.join(format!("{part}-labels-idx1-ubyte")), labels).unwrap();
    }
    fs::write(folder.path().join("spec.toml"), specification).unwrap();
    folder
}

fn train(within: &Path, flags: &str) -> String {
    let line = format!("train spec.toml {flags}");
    let output = call_in(within, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output)
}

fn refused(specification: &str, flags: &str, code: i32) -> String {
    let folder = folder(specification);
    let line = format!("train spec.toml {flags}");
    refusal(&call_in(folder.path(), &line.split(' ').collect::<Vec<_>>()), code)
}

#[test]
fn a_training_writes_a_row_a_part_an_epoch_and_a_seed() {
    let folder = folder(SPEC);
    let said = train(folder.path(), "--out one --jobs 1");
    assert!(said.contains("scenario") && said.contains("original") && said.contains("dtr"), "{said}");
    let frame = read_parquet(&folder.path().join("one/epochs.parquet")).unwrap();
    // Two policies, two seeds, six epochs, three parts.
    assert_eq!(frame.height(), 2 * 2 * 6 * 3);
    let names: Vec<&str> = frame.get_column_names().iter().map(|name| name.as_str()).collect();
    let expected = "seed epoch split loss accuracy simulated_time_s energy_j peak_memory_bytes run scenario";
    assert_eq!(names.join(" "), expected);
    let listed: BTreeSet<String> =
        Page::read(&root().join("docs/columns.md")).names_under("## train").into_iter().collect();
    let written: Vec<&str> = names.iter().copied().filter(|name| !listed.contains(*name)).collect();
    assert!(written.is_empty(), "docs/columns.md lacks {written:?}");
    let real =
        |name: &str| -> Vec<f64> { frame.column(name).unwrap().f64().unwrap().iter().map(Option::unwrap).collect() };
    let (loss, accuracy, time) = (real("loss"), real("accuracy"), real("simulated_time_s"));
    // Rows 0 to 17 are those of seed 0 under the first policy: the last three of the last epoch, whose time is six times
    // that of the first.
    assert!((time[17] / time[2] - 6.0).abs() < 0.2, "{time:?}");
    assert!(loss[15] < loss[0] && accuracy.iter().all(|share| (0.0..=1.0).contains(share)), "{loss:?}");
    // Recomputation gives the same bits: without a budget, DTR is the same as original.
    assert_eq!(loss[..36], loss[36..]);
    let record: Value = serde_json::from_slice(&fs::read(folder.path().join("one/run.json")).unwrap()).unwrap();
    assert_eq!((record["command"].as_str(), record["data"]["samples"]["train"].as_u64()), (Some("train"), Some(48)));
    let outputs = record["outputs"].as_array().unwrap();
    assert!(outputs.iter().all(|name| folder.path().join("one").join(name.as_str().unwrap()).is_file()), "{outputs:?}");
    assert!(outputs.contains(&"learning.png".into()) && outputs.contains(&"pareto.svg".into()), "{outputs:?}");

    train(folder.path(), "--out two --jobs 2");
    assert_eq!(tree(&folder.path().join("one")), tree(&folder.path().join("two")));
    train(folder.path(), "--out seed --seed 1");
    assert_eq!(read_parquet(&folder.path().join("seed/epochs.parquet")).unwrap().height(), 2 * 6 * 3);
}

#[cfg(unix)]
#[test]
fn a_time_budget_that_is_missed_is_said() {
    let short = |budget: &str| {
        let text = SPEC.replace("epochs = 6", "epochs = 1").replace("schedule = \"cosine warm-up=1\"\n", "");
        train(folder(&format!("{text}time_budget = \"{budget}\"\n")).path(), "--out out")
    };
    let said = short("1us");
    // DTR drops tensors where memory is short, not time.
    assert!(
        said.contains("note: dtr: an iteration takes ") && said.contains("more than the time budget of 1 µs"),
        "{said}"
    );
    assert!(!short("3600s").contains("note: "), "an hour is enough");
}

#[test]
fn a_training_that_was_cut_off_goes_on_to_the_same_bytes() {
    // Images are augmented differently in every epoch, but in the same way after a restart.
    let folder = folder(&SPEC.replace("epochs = 6", "epochs = 8\naugment = \"shift=2 flip\""));
    train(folder.path(), "--out whole");
    let checkpoint = folder.path().join("out/checkpoint");
    let size = || fs::metadata(&checkpoint).map(|found| found.len()).unwrap_or(0);
    // An epoch is over when the state of one network, some 62,000 weights with their velocities, is on the disc.
    let begun = || size() > 400_000;
    let line = ["train", "spec.toml", "--out", "out", "--jobs", "1"];
    let output = interrupted(folder.path(), &line, begun);
    let message = refusal(&output, 130);
    assert!(message.contains("of 32 epochs; `haversack train spec.toml --out out --resume` continues"), "{message}");
    // Killed some time later.
    let more = size();
    let mut child = command(folder.path(), &["train", "spec.toml", "--out", "out", "--jobs", "2", "--resume"]);
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while size() < more + 400_000 && child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::yield_now();
    }
    let _ = child.kill();
    child.wait().unwrap();
    train(folder.path(), "--out out --resume --jobs 2");
    assert_eq!(tree(&folder.path().join("whole")), tree(&folder.path().join("out")));
    let again = call_in(folder.path(), &["train", "spec.toml", "--out", "out", "--resume"]);
    assert!(stderr(&again).contains("holds the whole training already"), "{}", stderr(&again));
}

#[cfg(unix)]
#[test]
fn scale_factors_that_are_kept_go_on_over_a_cut() {
    // 48 samples in batches of 4 are twelve batches: the sixteen batches that a policy observes are more than an epoch.
    let spec = SPEC.replace("jetson-agx-xavier", "xiaomi-11-pro").replace("[\"original\", \"dtr\"]", "\"mandheling\"");
    let spec = spec.replace("momentum", "sgd").replace("batch = 8", "batch = 4").replace("[1, 0]", "[1]");
    let folder = folder(&spec.replace("0.02", "0.0625"));
    train(folder.path(), "--out whole");
    let checkpoint = folder.path().join("out/checkpoint");
    // An epoch is over when the codes of one network are on the disc.
    let begun = || fs::metadata(&checkpoint).is_ok_and(|found| found.len() > 50_000);
    let output = interrupted(folder.path(), &["train", "spec.toml", "--out", "out", "--jobs", "1"], begun);
    refusal(&output, 130);
    train(folder.path(), "--out out --resume --jobs 2");
    assert_eq!(tree(&folder.path().join("whole")), tree(&folder.path().join("out")));
}

#[test]
fn images_are_changed_anew_in_every_epoch_that_is_learned() {
    let losses = |augment: &str| {
        // A learning rate at which no weight changes: only images can make a difference.
        let specification = SPEC.replace("epochs = 6", "epochs = 2").replace("0.02", "1e-30").replace("1, 0", "0");
        let folder = folder(&format!("{}{augment}", specification.replace(", \"dtr\"", "")));
        train(folder.path(), "--out out");
        let frame = read_parquet(&folder.path().join("out/epochs.parquet")).unwrap();
        let losses: Vec<f64> = frame.column("loss").unwrap().f64().unwrap().iter().map(Option::unwrap).collect();
        // Train, validation and test of each epoch.
        let [train, validation, test, train_again, ..] = losses[..] else { panic!("{losses:?}") };
        ((train, train_again), (validation, test))
    };
    let (plain, aside) = losses("");
    let (changed, aside_of_changed) = losses("augment = \"shift=3 flip\"\n");
    assert_eq!(aside, aside_of_changed);
    // Another order of samples changes the order of a sum.
    assert!((plain.0 - plain.1).abs() < 1e-6 && (changed.0 - changed.1).abs() > 1e-5, "{plain:?} {changed:?}");
    assert!((changed.0 - plain.0).abs() > 1e-5, "{plain:?} {changed:?}");
}

#[test]
fn a_run_that_diverges_stops_and_says_where() {
    let folder =
        folder(&SPEC.replace("learning_rate = 0.02", "learning_rate = 1e6").replace("cosine warm-up=1", "constant"));
    let line = ["train", "spec.toml", "--out", "out", "--jobs", "1"];
    let message = refusal(&call_in(folder.path(), &line), 1);
    assert!(message.contains("original, seed 0, epoch 1: the run failed: training diverged at update"), "{message}");
    assert!(folder.path().join("out/checkpoint").is_file() && !folder.path().join("out/epochs.parquet").exists());
}

#[test]
fn what_one_scenario_cannot_do_does_not_keep_the_others_from_learning() {
    let text =
        SPEC.replace("epochs = 6", "epochs = 1").replace("batch = 8", "batch = 8\nmemory_budget = [\"1kB\", \"1GB\"]");
    let folder = folder(&text);
    let call = call_in(folder.path(), &["train", "spec.toml", "--out", "out"]);
    let (table, message) = (stdout(&call), refusal(&call, 3));
    assert!(message.contains("memory_budget 1kB") && message.contains(", seed 0, epoch 1"), "{message}");
    let reached = table.lines().filter(|line| line.contains('%')).count();
    assert!(reached == 2 && table.contains("memory_budget 1GB"), "{table}");
    assert!(folder.path().join("out/epochs.parquet").is_file());
}

#[test]
fn what_cannot_be_trained_is_refused_before_anything_is_written() {
    let with = |from: &str, to: &str| refused(&SPEC.replace(from, to), "--out out", 2);
    assert!(with("\"digits\"", "\"glyps\"").contains("unknown data set 'glyps'; did you mean 'glyphs'?"));
    assert!(with("epochs = 6", "epochs = 0").contains("spec.toml:7: `epochs`"));
    assert!(with("\"lenet5\"", "\"transformer2-lora\"").contains("input"));
    assert!(with("batch = 8", "batch = 49").contains("`batch`: 49 samples; the train part of the data has 48"));
    let message = with("batch = 8", "batch = 8\nstack = \"sage-opencl\"");
    assert!(message.contains("carries no data; expected pytorch-cpu, pytorch-cuda or mnn-2-eager"), "{message}");
    let phrases =
        SPEC.replace("\"digits\"", "\"phrases\"\naugment = \"flip\"").replace("validation_share = 0.25\n", "");
    let message = refused(&phrases, "--out out", 2);
    assert!(message.contains("spec.toml:2: `augment`: expected data of images, found tokens"), "{message}");
    assert!(with("batch = 8", "batch = 8\naugment = \"flips\"").contains("found 'flips'; did you mean 'flip'?"));
    let message = with("batch = 8", "batch = 8\nprecision = \"fp16\"");
    assert!(message.contains("only fp32 carries data"), "{message}");
    let message = with("batch = 8", "batch = 8\nattention = \"fused\"");
    assert!(message.contains("`attention`: only math carries data"), "{message}");
    let message = refused(&SPEC.replace("batch = 8", "batch = 8\nmemory_budget = \"1kB\""), "--out out", 3);
    assert!(message.contains("original, seed 0, epoch 1"), "{message}");
}

#[test]
fn a_checkpoint_of_something_else_is_refused_and_kept() {
    let folder = folder(&SPEC.replace("epochs = 6", "epochs = 1"));
    train(folder.path(), "--out out");
    let checkpoint = folder.path().join("out/checkpoint");
    let mut bytes = fs::read(&checkpoint).unwrap();
    fs::remove_file(folder.path().join("out/epochs.parquet")).unwrap();
    let half = bytes.len() / 2;
    bytes[half] ^= 1;
    fs::write(&checkpoint, &bytes).unwrap();
    let resume = || refusal(&call_in(folder.path(), &["train", "spec.toml", "--out", "out", "--resume"]), 2);
    let message = resume();
    assert!(message.contains("out/checkpoint is damaged"), "{message}");
    assert_eq!(fs::read(&checkpoint).unwrap(), bytes);
    fs::write(folder.path().join("spec.toml"), SPEC).unwrap();
    assert!(resume().contains("holds the results of 'train' with another specification"));
}

#[test]
fn a_phone_in_use_carries_data_under_the_codec_of_mnn() {
    let on_a_phone = "device = \"galaxy-s22\"\nstack = \"mnn-2-eager\"\nsystem = \"android-testbed\"\n\
        apps = \"synthetic-0001@68400s+10min\"\n[set]\n\"fedhybrid.budget\" = \"predicted\"\n";
    let specification = SPEC.replace("device = \"jetson-agx-xavier\"\n", "").replace("dtr\"", "fedhybrid\", \"melon\"");
    let specification = specification.replace("epochs = 6", "epochs = 2").replace("seeds = [1, 0]", "seeds = [0]");
    let folder = folder(&format!("{specification}{on_a_phone}"));
    train(folder.path(), "--out out");
    let frame = read_parquet(&folder.path().join("out/epochs.parquet")).unwrap();
    // Three policies, two epochs, three parts. Memory is not short, so each keeps the same tensors as original.
    assert_eq!(frame.height(), 3 * 2 * 3);
    let loss = frame.column("loss").unwrap().f64().unwrap().iter().map(Option::unwrap).collect::<Vec<_>>();
    assert_eq!((&loss[..6], &loss[..6]), (&loss[6..12], &loss[12..]));
    let message = refused(&SPEC.replace("device =", "stack = \"mnn-2\"\ncores = \"big:4\"\ndevice ="), "--out out", 2);
    assert!(
        message.contains("mnn-2 runs a graph of its own, which carries no data") && message.contains("mnn-2-eager")
    );
}
