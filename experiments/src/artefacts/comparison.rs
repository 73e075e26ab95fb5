//! Compares all policies on six devices and three networks, and the four papers' policies in one federation; also
//! measurements of the policies that store fewer bits.
//!
//! No paper has this comparison, so it answers no row of the reference, and its readings are declared here.

mod accuracy;
mod dominance;
mod federation;
mod points;
mod policies;
mod pytorch;
mod sensitivity;

use crate::reproduce::Run;

/// The simulation of each artefact, in this order.
pub(super) const RUNS: &[(&str, Run)] = &[
    ("policies", policies::run),
    ("galaxy-s22", policies::run),
    ("xiaomi-10", policies::run),
    ("jetson-agx-xavier", policies::run),
    ("jetson-agx-orin", policies::run),
    ("rtx-3090", policies::run),
    ("rtx-4090", policies::run),
    ("accuracy", accuracy::run),
    ("validation", sensitivity::validation),
    ("federation", federation::run),
    ("dominance", dominance::run),
    ("pytorch", pytorch::run),
    ("sensitivity", sensitivity::run),
];
