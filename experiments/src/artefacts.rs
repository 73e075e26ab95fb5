//! The artefacts of the papers that are modelled, one file each.

mod comparison;
pub(crate) mod daf;
pub(crate) mod fedhybrid;
pub(crate) mod mandheling;
mod sage;

use std::sync::LazyLock;

use crate::reproduce::Artefact;

/// Every modelled artefact, in the order of the papers.
pub static ARTEFACTS: LazyLock<Vec<Artefact>> = LazyLock::new(|| {
    [sage::ARTEFACTS, daf::ARTEFACTS, mandheling::ARTEFACTS, fedhybrid::ARTEFACTS, comparison::ARTEFACTS].concat()
});
