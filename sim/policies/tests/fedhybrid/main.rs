//! `fedhybrid`, the policies that it is compared with, and the memory budget that they plan for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod scene;
#[path = "../support/setting.rs"]
mod setting;

mod algorithm1;
mod budget;
mod capuchin;
mod gact;
mod hybrid;
mod melon;

use proptest::test_runner::{Config, RngSeed};

/// So many random cases, the same in every run.
fn cases(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(2_024), failure_persistence: None, ..Config::default() }
}
