//! The behaviour of the engine: one file per subject, each model in lock step with a slow twin.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod analytic;
mod event_queue;
mod random_streams;
mod shared_bandwidth;
mod shared_bandwidth_in_lock_step;

use proptest::test_runner::{Config, RngSeed};

/// This many random scripts, the same in every run.
fn scripts(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(2_026), failure_persistence: None, ..Config::default() }
}
