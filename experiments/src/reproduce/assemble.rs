//! From an artefact's outcome to one cell for each of its rows: a row without a usable answer says why.

use std::collections::BTreeMap;

use haversack_devices::ensure;

use super::Outcome;
use crate::papers::answer::rounded;
use crate::papers::cells;
use crate::papers::{Answer, Claim, ComparedCell, Readings, ReferenceRow};

/// One cell for each row, in their order, and what is wrong with the outcome.
pub(super) fn cells(
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
        if let Some(unit) = readings.unit(row.paper, &row.artefact, &row.metric) {
            cell.unit = unit;
        }
        cell
    };
    let mut cells: Vec<ComparedCell> = rows.iter().map(cell).collect();
    cells::judge_differences(rows, &outcome.baselines, &mut cells);
    (cells, faults)
}

/// The cell of a row, or what is wrong with its answer.
fn answered(row: &ReferenceRow, answer: Option<Answer>, readings: &Readings) -> Result<ComparedCell, String> {
    let Some(answer) = answer else { return Ok(ComparedCell::not_modelled(row, "the artefact gives no answer")) };
    let is_order = matches!(row.claim, Claim::Order(_)) && !matches!(answer, Answer::NotModelled(_));
    ensure!(!is_order || readings.predicate(&row.id).is_some(), format!("{}: no predicate is declared", row.id));
    ComparedCell::new(row, answer).map_err(|error| error.to_string())
}

/// What was said of each row; what was said of no row of the artefact, or twice, is a fault.
fn by_row<'o, T>(
    rows: &[&ReferenceRow],
    said: &'o [(String, T)],
    what: &str,
    faults: &mut Vec<String>,
) -> BTreeMap<&'o str, &'o T> {
    let mut found = BTreeMap::new();
    for (id, value) in said {
        if !rows.iter().any(|row| row.id == *id) {
            faults.push(format!("{what} for `{id}`, which is no row of the artefact"));
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

    fn assembled(artefact: &str, outcome: &Outcome) -> (Vec<ComparedCell>, Vec<String>) {
        let reference = Reference::load().unwrap();
        let rows: Vec<&ReferenceRow> = reference.of("sage", artefact).collect();
        cells(&rows, outcome, &Readings::default())
    }

    #[test]
    fn every_row_has_a_cell_and_a_missing_answer_a_reason() {
        let id = "sage/figure2/mobilenetv2/training/memory";
        let mut outcome = Outcome::default();
        outcome.number(id, 1.1);
        outcome.null(id, 2.0 / 3.0);
        outcome.remark(id, "batch 16");
        let (cells, faults) = assembled("figure2", &outcome);
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
        let (cells, faults) = assembled("figure9a", &outcome);
        let no_predicate = format!("{order}: no predicate is declared");
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert_eq!(faults[1], no_predicate);
        assert_eq!((cells.len(), cells[0].answered(), &cells[0].reason), (1, false, &no_predicate));
        outcome.answers = vec![(order.into(), Answer::Number(1.0)), (order.into(), Answer::Never)];
        assert!(assembled("figure9a", &outcome).1.iter().any(|fault| fault.contains("given twice")));
    }
}
