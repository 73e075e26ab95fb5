//! The results that ship with this version: `docs/results.csv`, the `cells.csv` of everything that it reproduces.
//!
//! The evidence for devices and the README's table come from these rows; `haversack compare` compares a
//! new run with them.

use anyhow::{Result, anyhow};
use haversack_devices::ensure;

use super::cells::{judge_differences, misses_its_baseline};
use super::{Answer, COLUMNS, ComparedCell, Reference, Verdict};

/// The path of the committed results in the project.
pub const FILE: &str = "docs/results.csv";
const TEXT: &str = include_str!("../../../docs/results.csv");

/// The committed results, artefact by artefact, as written by `reproduce`.
///
/// # Errors
/// A committed file that does not match the built-in reference; a test excludes this.
pub fn cells(reference: &Reference) -> Result<Vec<ComparedCell>> {
    read(FILE, TEXT, reference)
}

/// The ids of the committed rows with their stored verdicts, which are not recomputed.
pub fn verdicts() -> impl Iterator<Item = (String, String)> {
    let rows = csv::Reader::from_reader(TEXT.as_bytes()).into_records().filter_map(Result::ok);
    rows.map(|row| (row.get(0).unwrap_or_default().to_owned(), row.get(6).unwrap_or_default().to_owned()))
}

/// The rows of a `cells.csv`; `file` is its name in errors. Errors and verdicts are recomputed.
///
/// # Errors
/// Other columns, a row that is not in the reference, a value of the wrong kind for its row.
pub fn read(file: &str, text: &str, reference: &Reference) -> Result<Vec<ComparedCell>> {
    let wrong = |line: usize, message: String| anyhow!("{file}:{line}: {message}");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| wrong(1, error.to_string()))?;
    ensure!(header.iter().eq(COLUMNS), wrong(1, format!("expected the columns {}", COLUMNS.join(","))));
    let (mut cells, mut rows, mut said) = (Vec::new(), Vec::new(), Vec::new());
    for record in reader.records() {
        let record = record.map_err(|error| wrong(cells.len() + 2, error.to_string()))?;
        let line = record.position().map_or(0, |position| position.line() as usize);
        // The reader has refused rows of another width than the header's nine.
        let field = |place: usize| record.get(place).unwrap_or_default();
        let (id, simulated, verdict, null, reason) = (field(0), field(1), field(6), field(7), field(8));
        let row = reference.row(id).ok_or_else(|| wrong(line, format!("no row of the papers is called '{id}'")))?;
        let answer = match verdict {
            "not-modelled" => Some(Answer::NotModelled(reason.to_owned())),
            _ => answer(simulated, verdict),
        };
        let answer = answer.ok_or_else(|| wrong(line, format!("'{simulated}' is not an answer")))?;
        let judged = ComparedCell::new(row, answer).map_err(|error| wrong(line, error.to_string()))?;
        cells.push(ComparedCell { null: null.parse().ok(), reason: reason.to_owned(), ..judged });
        rows.push(row);
        said.push(verdict == Verdict::Ok.to_string());
    }
    judge_differences(&rows, &[], &mut cells);
    // The baseline row of an accuracy may be in another artefact, which is missing here.
    for ((row, cell), is_ok) in rows.iter().zip(&mut cells).zip(said) {
        if misses_its_baseline(row, &rows) && matches!(cell.verdict, Verdict::Ok | Verdict::Off) {
            cell.verdict = if is_ok { Verdict::Ok } else { Verdict::Off };
        }
    }
    Ok(cells)
}

/// The answer behind the `simulated` column of `cells.csv`.
fn answer(simulated: &str, verdict: &str) -> Option<Answer> {
    match simulated {
        "never" => Some(Answer::Never),
        "true" | "false" => Some(Answer::Order(simulated == "true")),
        _ => match simulated.split_once("..") {
            Some((lo, hi)) => Some(Answer::Range(lo.parse().ok()?, hi.parse().ok()?)),
            None if verdict == "input" => Some(Answer::Input(simulated.parse().ok()?)),
            None => Some(Answer::Number(simulated.parse().ok()?)),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::papers::cells::table;

    #[test]
    fn the_committed_results_are_a_cells_csv_of_every_row_once() {
        let reference = Reference::load().unwrap();
        let cells = cells(&reference).unwrap();
        let committed: BTreeSet<&str> = cells.iter().map(|cell| cell.id.as_str()).collect();
        let rows: BTreeSet<&str> = reference.rows().iter().map(|row| row.id.as_str()).collect();
        assert_eq!((cells.len(), committed), (rows.len(), rows.clone()));
        // The recomputed table is equal to the file.
        assert_eq!(table(&cells).unwrap().to_csv(), TEXT);
    }

    #[test]
    fn an_accuracy_without_the_row_that_it_is_judged_beside_keeps_its_verdict() {
        let reference = Reference::load().unwrap();
        let row = "fedhybrid/table4/openimg-mobilenetv2/oort+melon/accuracy";
        let baseline = "fedhybrid/table3/openimg-mobilenetv2/random+fedprox/accuracy";
        let paper = |id: &str| reference.row(id).unwrap().number().unwrap();
        let verdict_of = |text: &str| read("a.csv", text, &reference).unwrap()[0].verdict;
        // The paper's own value, which a relative error would call right.
        let alone =
            |verdict: &str| format!("{}\n{row},{},percent,,check,,{verdict},,\n", COLUMNS.join(","), paper(row));
        assert_eq!([verdict_of(&alone("off")), verdict_of(&alone("ok"))], [Verdict::Off, Verdict::Ok]);
        // With its baseline in the file, the row is judged by the difference: ok if it equals the
        // paper's, otherwise off.
        let beside = |value: f64| format!("{}{baseline},{value},percent,,fit,,input,,\n", alone("off"));
        assert_eq!(verdict_of(&beside(paper(baseline))), Verdict::Ok);
        assert_eq!(verdict_of(&beside(paper(baseline) - 5.0)), Verdict::Off);
    }

    #[test]
    fn what_is_no_table_of_results_is_refused_by_file_and_line() {
        let reference = Reference::load().unwrap();
        let wrong = |text: &str| read("a.csv", text, &reference).unwrap_err().to_string();
        let header = COLUMNS.join(",");
        assert!(wrong("id,value\n").starts_with("a.csv:1: expected the columns id,simulated"));
        assert!(wrong(&format!("{header}\nno/such/row,1,,,fit,,ok,,\n")).contains("a.csv:2: no row"));
        let row = "daf/table1/resnet18-cifar10/original/memory";
        assert!(wrong(&format!("{header}\n{row},much,MB,1196,fit,,ok,,\n")).contains("'much' is not an answer"));
        assert!(wrong(&format!("{header}\n{row},1..2,MB,1196,fit,,ok,,\n")).contains("a.csv:2:"));
        assert!(wrong(&format!("{header}\n{row},1\n")).contains("a.csv:2:"));
    }
}
