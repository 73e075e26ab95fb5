//! Mandheling: each technique against brute force and by hand, and the policy on graphs drawn up by hand.

mod coscheduling;
mod policy;
mod rescaling;
mod reuse;
mod splitting;

use haversack_devices::registry::load_stack;
use haversack_devices::stack::FactorConstants;
use haversack_devices::units::Factor;
use proptest::test_runner::{Config, RngSeed};

/// Scale factors whose logarithms scatter by this number of bits.
fn factors_that_scatter(bits: f64) -> FactorConstants {
    let mut constants = load_stack("mandheling").unwrap().constants.factors.clone().unwrap();
    // Gradients scatter as outputs do.
    constants.output.value = Factor(bits);
    constants
}

/// A number of random cases, the same in every run.
fn cases(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(2_026), failure_persistence: None, ..Config::default() }
}
