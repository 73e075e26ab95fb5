//! `index.html`: every artefact's figure and cells, with what a reader must know to believe them.

use haversack_devices::ConstantEntry;
use haversack_reports::page::{Card, CellRow, Drawn, Item, Notes, Page, Section, Summary};
use haversack_reports::table::shortest;

use super::{Content, Finished, Folder, Glance, Sources, overview};
use crate::papers::left_out::Errors;
use crate::papers::reference::COMPARISON;
use crate::papers::scoring::Scoring;
use crate::papers::summary::{COLUMNS, Tally, Total, left_out_error};
use crate::papers::{Account, ComparedCell, Reading, Readings, Reference, accounts};
use crate::{CommandError, Result};

/// The page, with the figures that stand in `folder`.
///
/// # Errors
/// A figure that cannot be read or drawn.
pub(super) fn page(content: &Content<'_>, folder: &Folder) -> Result<Page> {
    let Content { sources, selectors, tallies, finished, calibrations, declared, remarks, .. } = content;
    let Sources { readings, reference, left_out, .. } = *sources;
    let mut lead = format!(
        "Selected: {}. Each number stands beside the paper's own, with what was calibrated, what was predicted, and where it \
         misses.",
        selectors.join(", "),
    );
    for remark in remarks {
        lead.push_str(&format!(" {remark}."));
    }
    let (comparison, of_papers): (Vec<_>, Vec<_>) = finished.iter().partition(|finished| finished.paper == COMPARISON);
    let sections =
        comparison.into_iter().chain(of_papers).map(|finished| section(finished, folder, readings, left_out));
    Ok(Page {
        title: "haversack reproduce".to_owned(),
        lead,
        cards: cards(&Total::of(&content.cells)),
        overview: overview::figure(&content.cells)
            .map_err(|error| CommandError::failed(format!("the figure of all numbers cannot be drawn: {error}")))?,
        summary: Summary {
            columns: COLUMNS.map(str::to_owned).to_vec(),
            rows: tallies.iter().map(|tally| tally.figures().to_vec()).collect(),
            remarks: tallies
                .iter()
                .flat_map(Tally::remarks)
                .chain(Scoring::beside(&content.cells, reference))
                .chain(accounts(&calibrations.fitted, declared).iter().map(Account::sentence))
                .collect(),
        },
        sections: sections.collect::<Result<_>>()?,
        constants: calibrations.fitted.iter().map(constant).collect(),
        readings: declared.iter().map(|(paper, reading)| item(paper, reading)).collect(),
    })
}

/// What is to be seen first; no cards where the papers have no row.
fn cards(total: &Total) -> Vec<Card> {
    let Total { rows, matched, missed, in_view, contradicted, predicted, not_modelled, inputs } = *total;
    let card = |label: &str, count, note: String, verdict: &str| {
        let (label, verdict) = (label.to_owned(), verdict.to_owned());
        Card { label, count, note, verdict }
    };
    if rows == 0 {
        return Vec::new();
    }
    let judged = matched + missed;
    vec![
        card(
            "answered",
            rows - not_modelled,
            format!("of {rows} rows; {predicted} predicted, {inputs} put in, {contradicted} contradict their paper"),
            "",
        ),
        card("matched", matched, format!("of {judged} that are judged; {in_view} more in view of a choice"), "ok"),
        card("missed", missed, "numbers over 15% off, claims that fail".to_owned(), "off"),
        card("not modelled", not_modelled, "each with its reason".to_owned(), ""),
    ]
}

fn section(finished: &Finished<'_>, folder: &Folder, readings: &Readings, left_out: &Errors) -> Result<Section> {
    let Finished { paper, artefact, about, devices, figure_title, .. } = finished;
    let name = heading(artefact);
    let drawn = |title: &String| -> Result<Option<Drawn>> {
        let svg = folder.figure(paper, artefact)?;
        Ok(svg.map(|svg| Drawn { alt: format!("{}, {name}: {about}. {title}", Reference::name(paper)), svg }))
    };
    let cell_row = |cell: &ComparedCell| CellRow { left_out: left_out_error(cell, left_out), ..cell.page_row() };
    Ok(Section {
        paper: (*paper).to_owned(),
        paper_name: Reference::name(paper),
        artefact: (*artefact).to_owned(),
        figure: figure_title.as_ref().map_or(Ok(None), drawn)?,
        about: (*about).to_owned(),
        sentence: Glance::of(finished.selected()).sentence(),
        devices: devices.iter().map(|&device| device.to_owned()).collect(),
        cells: finished.selected().map(cell_row).collect(),
        notes: notes(finished, readings),
        name,
    })
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
    notes
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

/// `figure9a` as "Figure 9a"; what has no number of the paper's, such as `galaxy-s22`, as words with capital letters.
fn heading(artefact: &str) -> String {
    let (word, number) = artefact.split_at(artefact.find(|c: char| c.is_ascii_digit()).unwrap_or(artefact.len()));
    if ["table", "figure", "section"].contains(&word) {
        return format!("{} {number}", Reference::name(word));
    }
    artefact.split('-').map(Reference::name).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artefacts_are_headed_as_the_papers_head_them() {
        let headings = ["table1", "figure9a", "section3.4.3", "introduction", "galaxy-s22", ""].map(heading);
        assert_eq!(headings, ["Table 1", "Figure 9a", "Section 3.4.3", "Introduction", "Galaxy S22", ""]);
    }
}
