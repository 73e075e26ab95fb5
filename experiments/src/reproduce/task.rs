//! One artefact of a selection: it is run and judged, and its files are written as soon as it is done.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use haversack_devices::ensure;
use haversack_reports::page::Notes;
use haversack_reports::{Figure, Panel, Rendered};

use super::artefact::measured_key;
use super::{Artefact, ArtefactError, Context, Folder, Kept, Lacking, Outcome, ReproduceOptions, Selection};
use crate::measured::{self, Measured, Training};
use crate::papers::cells::rounded;
use crate::papers::notes::Facts;
use crate::papers::summary::Glance;
use crate::papers::{Answer, Claim, ComparedCell, Readings, Reference, ReferenceRow, cells};
use crate::{Cache, CommandError, Result, interrupt};

/// One artefact of the selection.
#[derive(Debug)]
pub(super) struct Task<'r> {
    pub(super) paper: &'static str,
    pub(super) artefact: &'r str,
    /// Its simulation.
    pub(super) model: Option<&'r Artefact>,
    /// The reason why it has no simulation.
    reason: String,
    pub(super) rows: Vec<&'r ReferenceRow>,
    /// For each row, whether it is selected.
    pub(super) selected: Vec<bool>,
}

impl Task<'_> {
    /// Also selects the rows with these ids; returns whether one of them was not selected before.
    pub(super) fn select(&mut self, ids: &[String]) -> bool {
        let mut is_more = false;
        for (row, selected) in self.rows.iter().zip(&mut self.selected) {
            if !*selected && ids.contains(&row.id) {
                (*selected, is_more) = (true, true);
            }
        }
        is_more
    }
}

/// The artefacts of the selection, in the order of the reference, those without rows last.
pub(super) fn tasks<'r>(
    reference: &'r Reference,
    selection: &Selection<'r>,
    artefacts: &'r [Artefact],
) -> Vec<Task<'r>> {
    let chosen = |row: &ReferenceRow| selection.rows.iter().any(|selected| selected.id == row.id);
    let of_paper = reference.artefacts().into_iter().filter_map(|(paper, artefact)| {
        let rows: Vec<&ReferenceRow> = reference.of(paper, artefact).collect();
        let selected: Vec<bool> = rows.iter().map(|row| chosen(row)).collect();
        let model = artefacts.iter().find(|model| model.paper == paper && model.id == artefact);
        let reason = if artefacts.iter().any(|model| model.paper == paper) {
            "no artefact models this yet".to_owned()
        } else {
            format!("{paper} belongs to a later version of haversack")
        };
        let wanted = selected.contains(&true);
        wanted.then_some(Task { paper, artefact, model, reason, rows, selected })
    });
    let without_rows = selection.without_rows.iter().map(|model| Task {
        paper: model.paper,
        artefact: model.id,
        model: Some(model),
        reason: String::new(),
        rows: Vec::new(),
        selected: Vec::new(),
    });
    of_paper.chain(without_rows).collect()
}

/// Shared by all tasks.
pub(super) struct TaskSetting<'s> {
    pub(super) options: &'s ReproduceOptions,
    pub(super) reference: &'s Reference,
    pub(super) readings: &'s Readings,
    pub(super) cache: &'s Cache,
    pub(super) kept: &'s Kept<'s>,
    pub(super) folder: &'s Folder,
}

impl TaskSetting<'_> {
    /// Runs an artefact and writes its files.
    pub(super) fn perform<'r>(&self, task: &Task<'r>) -> Result<Finished<'r>> {
        let mut finished = Finished {
            paper: task.paper,
            artefact: task.artefact,
            about: task.model.map_or("", |model| model.about),
            devices: task.model.map_or(&[], |model| model.devices),
            selected: task.selected.clone(),
            ..Finished::default()
        };
        let mut picture = None;
        let mut table = None;
        let (mut measured, learned) = (None, Mutex::default());
        match self.simulate(task, &learned) {
            Ok(outcome) => {
                (finished.cells, finished.faults) = assembled(&task.rows, &outcome, self.readings);
                let trace = self.options.trace.as_ref().filter(|_| task.model.is_some_and(|model| model.takes_trace));
                if let Some(trace) = trace {
                    finished.cells.iter_mut().for_each(|cell| cell.remark(&of_trace(trace)));
                }
                let declared = |id: &str| {
                    let reading = self.readings.reading(task.paper, task.artefact, id);
                    reading.map(|reading| reading.value.to_string())
                };
                let facts = Facts { cells: &finished.cells, quantities: &outcome.quantities, declared: &declared };
                let (mut notes, mut faults) = facts.fill(self.readings.notes(task.paper, task.artefact));
                match self.figure(task, outcome.panels, &facts) {
                    Ok(drawn) => (finished.figure_title, picture) = drawn.unzip(),
                    Err(fault) => faults.push(fault),
                }
                let read;
                (read, measured) = self.measured(task.model, learned);
                notes.calibrated.extend(read);
                notes.calibrated.extend(trace.map(|trace| format!("Shown are {}.", of_trace(trace))));
                finished.faults.extend(faults);
                (finished.notes, finished.summary) = (notes, outcome.summary);
                table = outcome.table;
            }
            Err(_) if interrupt::came() => return Err(CommandError::Interrupted),
            Err(error) => {
                let reason = format!("{error:#}");
                finished.cells = task.rows.iter().map(|row| ComparedCell::not_modelled(row, &reason)).collect();
                // A missing training is not a fault: like any row without an answer, the row states what is lacking.
                let is_fault = error.downcast_ref::<Lacking>().is_none();
                let told = if is_fault { &mut finished.faults } else { &mut finished.notes.misses };
                told.extend(task.model.map(|_| reason));
            }
        }
        let table = table.map_or_else(|| cells::table(&finished.cells).map_err(CommandError::failed), Ok)?;
        self.folder.write_artefact(
            task.paper,
            task.artefact,
            picture.as_ref(),
            measured.as_deref(),
            &table.to_csv(),
        )?;
        Ok(finished)
    }

    /// The title and the picture of the figure; `None` without panels.
    fn figure(
        &self,
        task: &Task<'_>,
        panels: Vec<Panel>,
        facts: &Facts<'_>,
    ) -> Result<Option<(String, Rendered)>, String> {
        if panels.is_empty() {
            return Ok(None);
        }
        let frame = self.readings.frame(task.paper, task.artefact);
        let corner = Glance::of(facts.cells.iter()).corner();
        let figure = Figure { corner, ..frame.ok_or("no figure is declared")?.around(panels, facts)? };
        let rendered = figure.render().map_err(|error| format!("the figure cannot be drawn: {error}"))?;
        Ok(Some((figure.title, rendered)))
    }

    /// A sentence about each measurement that the artefact has read; and its own measurement, if this run made it
    /// or trained for it.
    fn measured(
        &self,
        artefact: Option<&Artefact>,
        learned: Mutex<Vec<Training>>,
    ) -> (Vec<String>, Option<Arc<Measured>>) {
        let Some(artefact) = artefact else { return Default::default() };
        let learned = learned.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut own = None;
        if artefact.measured.contains(&artefact.place().as_str()) {
            // Measurements of this run are in the cache, unless the artefact did not need them.
            let anew = || self.cache.get(measured_key(&artefact.place()), || Err::<Measured, _>(())).ok();
            own = if self.options.full { anew() } else { None };
            if own.is_none() && !learned.is_empty() {
                let mut measured = Measured::by(artefact, self.options.seed, self.options.full);
                measured.take(learned.clone());
                own = Some(Arc::new(measured));
            }
        }
        let is_anew = |place: &str| own.as_ref().filter(|_| place == artefact.place());
        let found = |place: &&str| match is_anew(place) {
            Some(own) => Some(Arc::clone(own)),
            // Committed trainings are not used if others were made.
            None => measured::committed(place)
                .ok()
                .filter(|found| learned.is_empty() || found.trainings.is_empty())
                .map(Arc::new),
        };
        (artefact.measured.iter().filter_map(found).map(|measured| format!("{measured}.")).collect(), own)
    }

    /// The outcome, or the reason why there is none; trainings are added to `learned`.
    fn simulate(&self, task: &Task<'_>, learned: &Mutex<Vec<Training>>) -> Result<Outcome, ArtefactError> {
        let artefact = task.model.ok_or_else(|| ArtefactError::msg(task.reason.clone()))?;
        let context = Context {
            seed: self.options.seed,
            learn: self.options.learn || self.options.full,
            full: self.options.full,
            artefact,
            rows: task.rows.clone(),
            reference: self.reference,
            readings: self.readings,
            cache: self.cache,
            trace: self.options.trace.as_deref().filter(|_| artefact.takes_trace),
            kept: self.kept,
            learned,
        };
        (artefact.run)(&context)
    }
}

/// A description of the trace whose users an artefact shows.
fn of_trace(trace: &Path) -> String {
    format!("users of {}, not the paper's", trace.display())
}

/// An artefact that has run, or that is not modelled.
#[derive(Clone, Debug, Default)]
pub(super) struct Finished<'r> {
    pub(super) paper: &'static str,
    pub(super) artefact: &'r str,
    pub(super) about: &'static str,
    /// The devices that it loads.
    pub(super) devices: &'static [&'static str],
    /// The figure's title, if it has a figure.
    pub(super) figure_title: Option<String>,
    /// All cells of the artefact, each with whether it is selected.
    pub(super) cells: Vec<ComparedCell>,
    pub(super) selected: Vec<bool>,
    pub(super) notes: Notes,
    pub(super) summary: Vec<String>,
    pub(super) faults: Vec<String>,
}

impl Finished<'_> {
    pub(super) fn selected(&self) -> impl Iterator<Item = &ComparedCell> + Clone {
        self.cells.iter().zip(&self.selected).filter(|(_, selected)| **selected).map(|(cell, _)| cell)
    }
}

/// One cell for each row, in their order, and the faults of the outcome.
pub(super) fn assembled(
    rows: &[&ReferenceRow],
    outcome: &Outcome,
    readings: &Readings,
) -> (Vec<ComparedCell>, Vec<String>) {
    let mut faults = Vec::new();
    let answers = by_row(rows, &outcome.answers, "answer", &mut faults);
    let nulls = by_row(rows, &outcome.nulls, "null baseline", &mut faults);
    let remarks = by_row(rows, &outcome.remarks, "remark", &mut faults);
    let cell = |row: &&ReferenceRow| {
        let id = row.id.as_str();
        let answer = answers.get(id).copied().cloned();
        let mut cell = answered(row, answer, readings).unwrap_or_else(|fault| {
            faults.push(fault.clone());
            ComparedCell::not_modelled(row, fault)
        });
        cell.null = nulls.get(id).map(|null| rounded(**null)).filter(|null| null.is_finite());
        if let Some(remark) = remarks.get(id) {
            cell.remark(remark);
        }
        if let Some(remark) = row.status.remark(cell.answered()) {
            cell.remark(remark);
        }
        if row.contradicted && cell.answered() {
            cell.remark("contradicts another number of the paper");
        }
        if let Some(away) = cell.far_from_its_bound() {
            cell.remark(&away);
        }
        cell
    };
    let mut cells: Vec<ComparedCell> = rows.iter().map(cell).collect();
    cells::judge_differences(rows, &outcome.baselines, &mut cells);
    (cells, faults)
}

/// The cell of a row, or the fault in its answer.
fn answered(row: &ReferenceRow, answer: Option<Answer>, readings: &Readings) -> Result<ComparedCell, String> {
    let Some(answer) = answer else { return Ok(ComparedCell::not_modelled(row, "the artefact gives no answer")) };
    let is_order = matches!(row.claim, Claim::Order(_)) && !matches!(answer, Answer::NotModelled(_));
    ensure!(!is_order || readings.predicate(&row.id).is_some(), format!("{}: no predicate is declared", row.id));
    ComparedCell::new(row, answer).map_err(|error| error.to_string())
}

/// The remark about each row; a remark about an unknown row, or a second one, is a fault.
fn by_row<'o, T>(
    rows: &[&ReferenceRow],
    said: &'o [(String, T)],
    what: &str,
    faults: &mut Vec<String>,
) -> BTreeMap<&'o str, &'o T> {
    let mut found = BTreeMap::new();
    for (id, value) in said {
        if !rows.iter().any(|row| row.id == *id) {
            faults.push(format!("{what} for `{id}`, which is not a row of the artefact"));
        } else if found.insert(id.as_str(), value).is_some() {
            faults.push(format!("{what} for `{id}` is given twice"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::cells::Verdict;
    use crate::papers::reference::Reference;

    fn assembled_of(artefact: &str, outcome: &Outcome) -> (Vec<ComparedCell>, Vec<String>) {
        let reference = Reference::load().unwrap();
        let rows: Vec<&ReferenceRow> = reference.of("sage", artefact).collect();
        assembled(&rows, outcome, &Readings::default())
    }

    #[test]
    fn every_row_has_a_cell_and_a_missing_answer_a_reason() {
        let id = "sage/figure2/mobilenetv2/training/memory";
        let mut outcome = Outcome::default();
        outcome.number(id, 1.1);
        outcome.null(id, 2.0 / 3.0);
        outcome.remark(id, "batch 16");
        let (cells, faults) = assembled_of("figure2", &outcome);
        assert!(faults.is_empty(), "{faults:?}");
        let verdicts: Vec<Verdict> = cells.iter().map(|cell| cell.verdict).collect();
        assert_eq!(verdicts, [Verdict::NotModelled, Verdict::Ok]);
        assert_eq!(cells[0].reason, "the artefact gives no answer");
        // 2 / 3 to six digits.
        let reason = "batch 16; in view when a choice was made";
        assert_eq!((cells[1].null, cells[1].reason.as_str()), (Some(0.666_667), reason));
    }

    #[test]
    fn what_no_row_asked_for_is_a_fault_and_leaves_the_row_without_an_answer() {
        let order = "sage/figure9a/single-core/dga>dgc/throughput";
        let mut outcome = Outcome::default();
        outcome.answer(order, Answer::Order(true));
        outcome.number("sage/figure9b/nothing", 1.0);
        let (cells, faults) = assembled_of("figure9a", &outcome);
        let no_predicate = format!("{order}: no predicate is declared");
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert_eq!(faults[1], no_predicate);
        assert_eq!((cells.len(), cells[0].answered(), &cells[0].reason), (1, false, &no_predicate));
        outcome.answers = vec![(order.into(), Answer::Number(1.0)), (order.into(), Answer::Never)];
        assert!(assembled_of("figure9a", &outcome).1.iter().any(|fault| fault.contains("given twice")));
    }
}
