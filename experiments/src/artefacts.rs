//! The simulations behind the artefacts of the papers; `readings/artefacts.toml` describes each artefact and the
//! calibrations it loads.

mod chart;
mod comparison;
pub(crate) mod daf;
pub(crate) mod fedhybrid;
mod learning;
pub(crate) mod mandheling;
mod prelude;
mod records;
mod sage;
mod setting;
mod sweeps;
mod trained;

use std::sync::LazyLock;

use crate::papers::catalogue;
use crate::reproduce::{Artefact, Run};

/// The simulations of each paper's artefacts.
const RUNS: [(&str, &[(&str, Run)]); 5] = [
    ("sage", sage::RUNS),
    ("daf", daf::RUNS),
    ("mandheling", mandheling::RUNS),
    ("fedhybrid", fedhybrid::RUNS),
    ("comparison", comparison::RUNS),
];

/// Every modelled artefact, in the order of the papers.
pub static ARTEFACTS: LazyLock<Vec<Artefact>> = LazyLock::new(|| {
    let runs = RUNS.into_iter().flat_map(|(paper, runs)| runs.iter().map(move |(id, run)| (paper, id, *run)));
    runs.filter_map(|(paper, id, run)| Some(Artefact { entry: *catalogue::entry(paper, id)?, run })).collect()
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::readings::Readings;
    use crate::papers::reference::Reference;

    #[test]
    fn every_artefact_of_the_catalogue_is_simulated_by_something() {
        let runs: usize = RUNS.iter().map(|(_, runs)| runs.len()).sum();
        assert_eq!((ARTEFACTS.len(), runs), (catalogue::entries().len(), catalogue::entries().len()));
    }

    #[test]
    fn every_artefact_that_readings_and_notes_name_is_modelled() {
        let reference = Reference::load().unwrap();
        let readings = Readings::load(&reference).unwrap();
        for (paper, name) in readings.artefacts() {
            assert!(ARTEFACTS.iter().any(|known| known.paper == paper && known.id == name), "{paper}/{name}");
        }
    }
}
