//! `fedhybrid`, the policies that it is compared with, and the memory budget that they plan for.

mod algorithm1;
mod budget;
mod capuchin;
mod gact;
mod hybrid;
mod melon;
mod plan;
mod scene;

use proptest::test_runner::{Config, RngSeed};

/// A number of random cases, the same in every run.
fn cases(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(2_024), failure_persistence: None, ..Config::default() }
}
