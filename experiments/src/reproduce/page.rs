//! `index.html`: every artefact's figure and cells, with what a reader must know to believe them.

use haversack_devices::ConstantEntry;
use haversack_reports::page::{CellRow, Item, Notes, Page, Section, Summary};
use haversack_reports::table::shortest;

use super::accounting::{Account, accounts};
use super::cells::{ComparedCell, Verdict};
use super::content::Content;
use super::left_out::Errors;
use super::readings::{Reading, Readings};
use super::summary::{COLUMNS, Tally, Total, left_out_error};
use super::task::Finished;

/// The page.
pub(super) fn page(content: &Content<'_>) -> Page {
    let Content { selectors, tallies, finished, calibrations, declared, readings, remarks, left_out, .. } = content;
    let mut lead = format!(
        "{}. Selected: {}. Each number stands beside the paper's own, with what was calibrated, what was predicted, and \
         where it misses.",
        Total::of(&content.cells),
        selectors.join(", "),
    );
    for remark in remarks {
        lead.push_str(&format!(" {remark}."));
    }
    Page {
        title: "haversack reproduce".to_owned(),
        lead,
        summary: Summary {
            columns: COLUMNS.map(str::to_owned).to_vec(),
            rows: tallies.iter().map(|tally| tally.figures().to_vec()).collect(),
            remarks: tallies
                .iter()
                .flat_map(Tally::remarks)
                .chain(accounts(&calibrations.fitted, declared).iter().map(Account::sentence))
                .collect(),
        },
        sections: finished.iter().map(|finished| section(finished, readings, left_out)).collect(),
        constants: calibrations.fitted.iter().map(constant).collect(),
        readings: declared.iter().map(|(paper, reading)| item(paper, reading)).collect(),
    }
}

fn section(finished: &Finished<'_>, readings: &Readings, left_out: &Errors) -> Section {
    let Finished { paper, artefact, about, figure_title, .. } = finished;
    let name = heading(artefact);
    let title = if about.is_empty() { name } else { format!("{name}: {about}") };
    Section {
        paper: (*paper).to_owned(),
        artefact: (*artefact).to_owned(),
        alt: figure_title.as_ref().map(|figure| format!("{paper}, {title}. {figure}")),
        title,
        cells: finished.selected().map(|cell| cell_row(cell, left_out)).collect(),
        notes: notes(finished, readings),
    }
}

/// The row as the page shows it.
fn cell_row(cell: &ComparedCell, left_out: &Errors) -> CellRow {
    CellRow { left_out: left_out_error(cell, left_out), ..cell.page_row() }
}

fn notes(finished: &Finished<'_>, readings: &Readings) -> Notes {
    let declared = readings.of(finished.paper, finished.artefact).map(|reading| {
        let Reading { id, key, reason, source, .. } = reading;
        format!("{id}: {key} = {} ({reason}; {source})", reading.shown())
    });
    let predicates = finished.cells.iter().filter_map(|cell| readings.predicate(&cell.id));
    let mut notes = finished.notes.clone();
    notes.predicted.extend(finished.summary.iter().cloned());
    notes.readings = declared.chain(predicates.map(ToString::to_string)).collect();
    notes.misses.extend(missed(finished));
    notes
}

/// How many rows miss, in a line.
fn missed(finished: &Finished<'_>) -> Option<String> {
    let of = |verdict| finished.selected().filter(|cell| cell.verdict == verdict).count();
    let (off, fails, absent) = (of(Verdict::Off), of(Verdict::Fails), of(Verdict::NotModelled));
    let parts = [(off, "more than 15% off"), (fails, "claims that do not hold"), (absent, "without an answer")];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let rows = finished.selected().count();
    (!parts.is_empty()).then(|| format!("Of {rows} rows: {}.", parts.join(", ")))
}

fn constant(entry: &ConstantEntry) -> Item {
    Item {
        name: format!("{}: {}", entry.file, entry.name),
        value: shortest(entry.value),
        unit: entry.unit.to_owned(),
        source: entry.source.clone(),
    }
}

fn item(paper: &str, reading: &Reading) -> Item {
    Item {
        name: format!("{paper}/{}: {} ({})", reading.artefacts.join("+"), reading.id, reading.key),
        value: reading.value.to_string(),
        unit: reading.unit.clone().unwrap_or_default(),
        source: format!("{} ({})", reading.reason, reading.source),
    }
}

/// `figure9a` as "Figure 9a".
fn heading(artefact: &str) -> String {
    let (word, number) = artefact.split_at(artefact.find(|c: char| c.is_ascii_digit()).unwrap_or(artefact.len()));
    let mut letters = word.chars();
    let capital: String = letters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    format!("{capital}{} {number}", letters.as_str()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artefacts_are_headed_as_the_papers_head_them() {
        let headings = ["table1", "figure9a", "section3.4.3", "introduction", ""].map(heading);
        assert_eq!(headings, ["Table 1", "Figure 9a", "Section 3.4.3", "Introduction", ""]);
    }
}
