//! The artefacts of the papers that are modelled, one file each; each makes its own entry.

mod chart;
mod comparison;
pub(crate) mod daf;
pub(crate) mod fedhybrid;
mod grid;
mod learning;
pub(crate) mod mandheling;
mod prelude;
mod sage;
mod setting;
mod trained;

use std::sync::LazyLock;

use crate::reproduce::Artefact;

/// Every modelled artefact, in the order of the papers.
pub static ARTEFACTS: LazyLock<Vec<Artefact>> = LazyLock::new(|| {
    let papers = [sage::ARTEFACTS, daf::ARTEFACTS, mandheling::ARTEFACTS, fedhybrid::ARTEFACTS, comparison::ARTEFACTS];
    papers.concat().into_iter().copied().collect()
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::readings::Readings;
    use crate::papers::reference::Reference;

    #[test]
    fn every_artefact_that_readings_and_notes_name_is_modelled() {
        let reference = Reference::load().unwrap();
        let readings = Readings::load(&reference).unwrap();
        for (paper, name) in readings.artefacts() {
            assert!(ARTEFACTS.iter().any(|known| known.paper == paper && known.id == name), "{paper}/{name}");
        }
    }
}
