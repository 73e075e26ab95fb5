//! The artefacts of the papers that are modelled, one file each.

use crate::reproduce::Artefact;

/// Every modelled artefact.
pub static ARTEFACTS: &[Artefact] = &[];
