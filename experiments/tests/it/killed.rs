//! A sweep, a training and a federation, killed at random moments, resume and give the same bytes.
#![cfg(unix)]

use std::env;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::reproduce::tree;
use crate::support::{call_in, command, stderr};
use crate::{federate, sweep, train};

/// The number of moments of a test; `HAVERSACK_KILLS` overrides it.
const MOMENTS: usize = 3;

/// Runs `line` once to its end; returns how long it took.
fn ends(within: &Path, line: &str) -> Duration {
    let begun = Instant::now();
    let output = call_in(within, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
    begun.elapsed()
}

/// Kills `line` at random moments of its run, each in a separate folder, and resumes it there. Every other run is
/// killed a second time while it resumes.
fn goes_on(within: &Path, line: &str) {
    let moments = env::var("HAVERSACK_KILLS").map_or(MOMENTS, |text| text.parse().unwrap());
    let whole = ends(within, &format!("{line} --out whole"));
    let expected = tree(&within.join("whole"));
    let (mut rng, mut cut) = (ChaCha8Rng::seed_from_u64(9), 0);
    for moment in 0..moments {
        let resumed = format!("{line} --out out --resume");
        for _ in 0..=moment % 2 {
            let mut child = command(within, &resumed.split(' ').collect::<Vec<_>>());
            let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(whole.mul_f64(rng.random_range(0.0..1.0)));
            child.kill().unwrap();
            cut += usize::from(child.wait().unwrap().code().is_none());
        }
        ends(within, &resumed);
        let found = tree(&within.join("out"));
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{line}, moment {moment}");
        for (name, bytes) in &found {
            assert!(*bytes == expected[name], "{line}, moment {moment}: {name} differs");
        }
        fs::remove_dir_all(within.join("out")).unwrap();
    }
    assert!(cut > 0, "{line} was always faster than the hand that kills it");
    println!("{line}: {cut} kills in {moments} folders");
}

#[test]
fn a_sweep_goes_on_whenever_it_is_killed() {
    goes_on(sweep::folder().path(), "sweep spec.toml");
}

#[test]
fn a_training_goes_on_whenever_it_is_killed() {
    goes_on(train::folder(train::SPEC).path(), "train spec.toml");
}

#[test]
fn a_federation_goes_on_whenever_it_is_killed() {
    goes_on(federate::folder(federate::SPEC).path(), "federate spec.toml");
}
