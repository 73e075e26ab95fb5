//! Compares the four papers' policies on one phone and one network: DAF, Sage, Mandheling and `FedHybrid`; also
//! measurements of the policies that store fewer bits.
//!
//! No paper has this comparison, so it answers no row of the reference, and its readings are declared here.

mod dominance;
mod federation;
mod fronts;
mod pytorch;
mod sensitivity;

use crate::reproduce::Run;

/// The simulation of each artefact, in this order.
pub(super) const RUNS: &[(&str, Run)] = &[
    ("validation", sensitivity::validation),
    ("galaxy-s22", fronts::run),
    ("xiaomi-10", fronts::run),
    ("federation", federation::run),
    ("dominance", dominance::run),
    ("pytorch", pytorch::run),
    ("sensitivity", sensitivity::run),
];
