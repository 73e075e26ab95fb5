//! The four papers' policies side by side on one phone and one network: DAF, Sage, Mandheling and `FedHybrid`; and what
//! those that store fewer bits have measured.
//!
//! No paper has this comparison, so that there is no row of the reference to answer, and readings are declared here.

mod federation;
mod fronts;
mod runs;
mod sensitivity;

use crate::reproduce::Artefact;

/// All artefacts.
pub(super) static ARTEFACTS: &[&Artefact] =
    &[&fronts::GALAXY_S22, &fronts::XIAOMI_10, &federation::ARTEFACT, &sensitivity::ARTEFACT];
