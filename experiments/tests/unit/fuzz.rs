//! Readers of files against corrupt input: any file is either read or rejected, and nothing panics.
//!
//! A reader gets the files in `tests/fuzz/<reader>`, which broke it in the past, and good files that are mutated from a
//! fixed seed: a few hundred in a test, or for as many seconds as `HAVERSACK_FUZZ` sets. A file that breaks it is
//! written to that folder, to be kept.
//!
//! ```sh
//! HAVERSACK_FUZZ=600 cargo test --release -p haversack --lib fuzz::device
//! ```

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haversack_devices::{Device, Stack, System};
use haversack_replay::{Heuristic, Log};
use haversack_traces::footprint::FootprintTable;
use haversack_traces::import::{Import, Kind, Options};
use haversack_traces::usage::UsageModel;
use haversack_workloads::{mixed, onnx};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::scenario::Scenario;
use crate::sweep::Specification;

/// The number of mutated files of a test.
const FILES: usize = 200;
/// Values that replace expected ones.
const STRANGE: [&str; 14] = [
    "-1",
    "0",
    "1e999",
    "nan",
    "18446744073709551616",
    "-9223372036854775809",
    "\"",
    "[[",
    "]]",
    "{",
    "= ",
    "\n[x]\n",
    "\0",
    "\u{202e}",
];

/// Tries `read` with the kept files of the reader `name`, and with mutations of `seeds`.
pub(crate) fn against(name: &str, seeds: &[Vec<u8>], read: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz").join(name);
    let kept = fs::read_dir(&folder).into_iter().flatten().filter_map(|entry| fs::read(entry.ok()?.path()).ok());
    for bytes in kept.chain(seeds.iter().cloned()) {
        read(&bytes);
    }
    let seconds = std::env::var("HAVERSACK_FUZZ").ok().and_then(|text| text.parse().ok()).map(Duration::from_secs);
    let begun = Instant::now();
    let mut rng = ChaCha8Rng::seed_from_u64(seeds.iter().map(|seed| seed.len() as u64).sum());
    let mut tried = 0;
    while seconds.map_or(tried < FILES, |seconds| begun.elapsed() < seconds) {
        let bytes = mutated(seeds, &mut rng);
        if catch_unwind(AssertUnwindSafe(|| read(&bytes))).is_err() {
            let folder = if seconds.is_some() { folder } else { std::env::temp_dir() };
            panic!("{name} panicked; what it read is in {}", written(&folder, name, tried, &bytes).display());
        }
        tried += 1;
    }
    if seconds.is_some() {
        println!("{name}: {tried} files in {:.0} s", begun.elapsed().as_secs_f64());
    }
}

fn written(folder: &Path, name: &str, number: usize, bytes: &[u8]) -> PathBuf {
    let path = folder.join(format!("{name}-{number}"));
    fs::create_dir_all(folder).and_then(|()| fs::write(&path, bytes)).unwrap();
    path
}

/// One of `seeds` with a few changes.
fn mutated(seeds: &[Vec<u8>], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = seeds[rng.random_range(0..seeds.len())].clone();
    for _ in 0..rng.random_range(1..=4) {
        let from = rng.random_range(0..=bytes.len());
        let to = (from + rng.random_range(0..=40_usize)).min(bytes.len());
        match rng.random_range(0..8_u8) {
            0 => drop(bytes.splice(from..to, [])),
            1 => bytes.truncate(from),
            2 => drop(bytes.splice(from..to, STRANGE[rng.random_range(0..STRANGE.len())].bytes())),
            3 => {
                let piece = bytes[from..to].to_vec();
                let place = rng.random_range(0..=bytes.len());
                drop(bytes.splice(place..place, piece));
            }
            4 => {
                let other = &seeds[rng.random_range(0..seeds.len())];
                let start = rng.random_range(0..=other.len());
                let piece = other[start..(start + 60).min(other.len())].to_vec();
                drop(bytes.splice(from..to, piece));
            }
            // A number, digit by digit.
            5 => bytes[from..to].iter_mut().filter(|byte| byte.is_ascii_digit()).for_each(|byte| {
                *byte = b'0' + rng.random_range(0..10_u8);
            }),
            // A line is removed or doubled.
            6 => {
                let mut lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
                if !lines.is_empty() {
                    let line = lines.remove(rng.random_range(0..lines.len()));
                    if rng.random() {
                        let place = rng.random_range(0..=lines.len());
                        lines.splice(place..place, [line, line]);
                    }
                }
                bytes = lines.concat();
            }
            _ => bytes[from..to].iter_mut().for_each(|byte| *byte ^= 1 << rng.random_range(0..8_u8)),
        }
    }
    bytes
}

/// Files of the repository.
fn files(paths: &[&str]) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    paths.iter().map(|path| fs::read(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))).collect()
}

/// As [`against`], with text and with files of the repository.
pub(crate) fn against_text(name: &str, paths: &[&str], read: impl Fn(&str)) {
    against(name, &files(paths), |bytes| read(&String::from_utf8_lossy(bytes)));
}

#[test]
fn scenario() {
    against_text("scenario", &["examples/scenario.toml", "examples/phone-in-use.toml"], |text| {
        let _ = Scenario::with(None, "s.toml", text);
    });
}

#[test]
fn sweep() {
    let paths = ["examples/sweep.toml", "examples/two-devices.toml", "examples/thousand.toml"];
    against_text("sweep", &paths, |text| {
        let _ = Specification::parse("s.toml", text);
    });
}

#[test]
fn device() {
    let paths = ["examples/my-phone.toml", "devices/calibrations/pixel-6.toml", "devices/calibrations/rtx-3090.toml"];
    against_text("device", &paths, |text| {
        let _ = Device::parse("d", "d.toml", text);
    });
}

#[test]
fn stack() {
    let paths = ["devices/calibrations/stacks/mandheling-measured.toml", "devices/calibrations/stacks/mnn-2.toml"];
    against_text("stack", &paths, |text| {
        let _ = Stack::parse("s", "s.toml", text);
    });
}

#[test]
fn system() {
    let paths = ["devices/calibrations/systems/android.toml", "devices/calibrations/systems/android-testbed.toml"];
    against_text("system", &paths, |text| {
        let _ = System::parse("s", "s.toml", text);
    });
}

#[test]
fn usage() {
    against_text("usage", &["traces/usage.toml"], |text| {
        let _ = UsageModel::parse("u.toml", text);
    });
    against_text("footprints", &["traces/footprints/android.toml"], |text| {
        let _ = FootprintTable::parse("f.toml", text);
    });
}

#[test]
fn algorithm() {
    let paths = ["niti", "octo", "mls"].map(|name| format!("workloads/algorithms/{name}.toml"));
    against_text("algorithm", &paths.each_ref().map(String::as_str), |text| {
        let _ = mixed::Algorithm::parse("a.toml", text);
    });
}

#[test]
fn network() {
    against("network", &files(&["examples/network.onnx"]), |bytes| {
        let _ = onnx::import_bytes("n.onnx", bytes, &onnx::Reading::default());
    });
}

#[test]
fn log() {
    against("log", &files(&["examples/operators.log"]), |bytes| {
        if let Ok(log) = Log::parse("l.log", bytes) {
            let _ = haversack_replay::replay(&log, Heuristic::DtrEq, 0.5, 2.0);
        }
    });
}

#[test]
fn traces() {
    for &kind in Kind::ALL {
        against(
            "traces",
            &files(&["examples/carat.jsonl", "examples/memory.csv", "examples/operators.log"]),
            |bytes| {
                let mut sink = |_: haversack_traces::row::Row<'_>| Ok(());
                let _ = Import::new(Options::new(kind), &mut sink).read("t", bytes);
            },
        );
    }
}
