//! Mandheling: each technique against brute force and by hand, and the policy on graphs drawn up by hand.

mod coscheduling;
mod policy;
mod rescaling;
mod reuse;
mod splitting;

use proptest::test_runner::{Config, RngSeed};

/// So many random cases, the same in every run.
fn cases(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(2_026), failure_persistence: None, ..Config::default() }
}
