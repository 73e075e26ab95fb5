//! The artefacts of the papers that are modelled, one file each.

mod sage;

use crate::reproduce::Artefact;

/// Every modelled artefact, in the order of the papers.
pub static ARTEFACTS: &[Artefact] = sage::ARTEFACTS;
