//! The common contents of the page, the record and the report.

use super::{Artefact, Calibrations, Finished, ReproduceOptions, Selection};
use crate::papers::left_out::Errors;
use crate::papers::reference::COMPARISON;
use crate::papers::summary::{Tally, tallies};
use crate::papers::{ComparedCell, Reading, Readings, Reference, Role};

/// The inputs of a reproduction.
#[derive(Clone, Copy)]
pub(super) struct Sources<'r> {
    pub(super) options: &'r ReproduceOptions,
    pub(super) artefacts: &'r [Artefact],
    /// The leave-one-out errors of fitted rows.
    pub(super) left_out: &'r Errors,
    pub(super) reference: &'r Reference,
    pub(super) readings: &'r Readings,
}

/// The results of a reproduction.
pub(super) struct Content<'a> {
    pub(super) sources: Sources<'a>,
    /// The selectors as they were given.
    pub(super) selectors: &'a [String],
    pub(super) finished: &'a [Finished<'a>],
    /// The selected cells of all artefacts.
    pub(super) cells: Vec<ComparedCell>,
    pub(super) tallies: Vec<Tally>,
    pub(super) calibrations: &'a Calibrations,
    /// The readings that are declared for the selected artefacts, each once, with its paper.
    pub(super) declared: Vec<(&'static str, &'a Reading)>,
    /// Remarks about selected artefacts that are missing, and about errors older than the constants.
    pub(super) remarks: Vec<String>,
}

impl<'a> Content<'a> {
    pub(super) fn new(
        sources: Sources<'a>,
        calibrations: &'a Calibrations,
        selection: &'a Selection<'_>,
        finished: &'a [Finished<'a>],
    ) -> Self {
        let Sources { artefacts, left_out, readings, .. } = sources;
        let cells: Vec<ComparedCell> = finished.iter().flat_map(Finished::selected).cloned().collect();
        let mut remarks = remarks(selection, artefacts);
        let has_fit = |paper: &str| cells.iter().any(|cell| cell.paper == paper && cell.role() == Role::Fit);
        let papers = Reference::papers().filter(|paper| has_fit(paper));
        remarks.extend(papers.flat_map(|paper| left_out.remarks_of(paper)).map(str::to_owned));
        Self {
            sources,
            selectors: &selection.selectors,
            finished,
            tallies: tallies(&cells, left_out),
            cells,
            calibrations,
            declared: declared(finished, readings),
            remarks,
        }
    }
}

fn declared<'a>(finished: &[Finished<'_>], readings: &'a Readings) -> Vec<(&'static str, &'a Reading)> {
    let concerns = |paper: &str, reading: &Reading| {
        let of = |f: &Finished<'_>| f.paper == paper && reading.artefacts.iter().any(|name| name == f.artefact);
        finished.iter().any(of)
    };
    Reference::papers()
        .flat_map(|paper| readings.of_paper(paper).map(move |reading| (paper, reading)))
        .filter(|(paper, reading)| concerns(paper, reading))
        .collect()
}

fn remarks(selection: &Selection<'_>, artefacts: &[Artefact]) -> Vec<String> {
    let named = selection.selectors.iter().any(|selector| selector == COMPARISON);
    let absent = named && !artefacts.iter().any(|artefact| artefact.paper == COMPARISON);
    if absent { vec!["The comparison belongs to a later version of haversack".to_owned()] } else { Vec::new() }
}
