//! The four papers' policies side by side on one phone and one network: DAF, Sage, Mandheling and `FedHybrid`; and what
//! those that store fewer bits have measured.
//!
//! No paper has this comparison, so that there is no row of the reference to answer, and readings are declared here.

mod dominance;
mod federation;
mod fronts;
mod pytorch;
mod sensitivity;

use crate::reproduce::Run;

/// What simulates each artefact, in the paper's order.
pub(super) const RUNS: &[(&str, Run)] = &[
    ("validation", sensitivity::validation),
    ("galaxy-s22", fronts::run),
    ("xiaomi-10", fronts::run),
    ("federation", federation::run),
    ("dominance", dominance::run),
    ("pytorch", pytorch::run),
    ("sensitivity", sensitivity::run),
];
