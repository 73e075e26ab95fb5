//! All policies side by side, on six devices and three networks; and the four papers' in one federation.
//!
//! No paper has this comparison, so that there is no row of the reference to answer, and readings are declared here.

mod dominance;
mod federation;
mod policies;
mod pytorch;
mod sensitivity;

use crate::reproduce::Run;

/// What simulates each artefact, in the paper's order.
pub(super) const RUNS: &[(&str, Run)] = &[
    ("policies", policies::run),
    ("galaxy-s22", policies::run),
    ("xiaomi-10", policies::run),
    ("jetson-agx-xavier", policies::run),
    ("jetson-agx-orin", policies::run),
    ("rtx-3090", policies::run),
    ("rtx-4090", policies::run),
    ("validation", sensitivity::validation),
    ("federation", federation::run),
    ("dominance", dominance::run),
    ("pytorch", pytorch::run),
    ("sensitivity", sensitivity::run),
];
