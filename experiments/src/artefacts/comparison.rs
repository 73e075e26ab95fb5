//! The four papers' policies side by side on one phone and one network: DAF, Sage, Mandheling and `FedHybrid`.
//!
//! No paper has this comparison, so that there is no row of the reference to answer, and readings are declared here.

mod fronts;
mod runs;

use crate::reproduce::Artefact;

const STACKS: &[&str] = &["mandheling", "mnn-2", "sage-opencl"];

/// A phone each; the id is the phone's.
pub(super) static ARTEFACTS: &[Artefact] = &[
    Artefact {
        paper: "comparison",
        id: "galaxy-s22",
        about: "memory against time and energy, four papers' policies on the Galaxy S22",
        devices: &["galaxy-s22"],
        stacks: STACKS,
        systems: &[],
        users: false,
        run: fronts::run,
    },
    Artefact {
        paper: "comparison",
        id: "xiaomi-10",
        about: "the same on the Xiaomi 10",
        devices: &["xiaomi-10"],
        stacks: STACKS,
        systems: &[],
        users: false,
        run: fronts::run,
    },
];
