//! `index.html`: every artefact's figure and cells, with the information needed to judge them.

use haversack_devices::ConstantEntry;
use haversack_reports::page::{Card, CellRow, Drawn, Item, Notes, Page, Section, Summary};
use haversack_reports::table::shortest;
use haversack_reports::{Axis, Figure, FigureError, Lines, Panel, Series, Stroke};

use super::{Content, Finished, Folder, Sources};
use crate::papers::cells::OK;
use crate::papers::left_out::Errors;
use crate::papers::reference::COMPARISON;
use crate::papers::scoring::Scoring;
use crate::papers::summary::{COLUMNS, Glance, NOT_IN_MEDIANS, Tally, Total, left_out_error};
use crate::papers::{Account, Answer, Claim, ComparedCell, Reading, Readings, Reference, Verdict, accounts, spelled};
use crate::quantities::{median, percent, range};
use crate::{CommandError, Result};

/// The page, with the figures of `folder`.
///
/// # Errors
/// A figure that cannot be read or drawn.
pub(super) fn page(content: &Content<'_>, folder: &Folder) -> Result<Page> {
    let Content { sources, selectors, tallies, finished, calibrations, declared, remarks, .. } = content;
    let Sources { readings, reference, left_out, .. } = *sources;
    let mut lead = format!(
        "Selected: {}. Each number is next to the paper's own, with what was calibrated, what was predicted, and where \
         it misses.",
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
        overview: overview(&content.cells)
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

/// The cards at the top; none if the papers have no row.
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

/// `figure9a` as "Figure 9a"; names that do not come from the paper, such as `galaxy-s22`, as capitalised words.
fn heading(artefact: &str) -> String {
    let (word, number) = artefact.split_at(artefact.find(|c: char| c.is_ascii_digit()).unwrap_or(artefact.len()));
    if ["table", "figure", "section"].contains(&word) {
        return format!("{} {number}", Reference::name(word));
    }
    spelled(artefact).split(' ').map(Reference::name).collect::<Vec<_>>().join(" ")
}

const ALT: &str = "Every number that is judged by its error, simulated against reported, and their ratio, on logarithmic \
                   axes, with the line on which both are the same and 15% about it";

/// A number that is judged: its row, the paper's and ours.
type Judged<'c> = (&'c ComparedCell, f64, f64);

/// The overview; `None` if no number is judged.
///
/// # Errors
/// An overview that cannot be drawn.
pub(super) fn overview(cells: &[ComparedCell]) -> Result<Option<Drawn>, FigureError> {
    let judged: Vec<Judged<'_>> = cells.iter().filter_map(judged).collect();
    let Some(ends) = range(judged.iter().flat_map(|(_, paper, ours)| [*paper, *ours])) else { return Ok(None) };
    let ends = [ends.0 / 1.6, ends.1 * 1.6];
    let reported = || Axis::new("reported by the paper, in each row's unit").log().range(ends[0], ends[1]);
    let simulated = Axis::new("simulated").log().range(ends[0], ends[1]);
    let beside = Panel::new(marks(&judged, ends, |end| end, |ours, _| ours)).x(reported()).y(simulated);
    let ratio = Panel::new(marks(&judged, ends, |_| 1.0, |ours, paper| ours / paper));
    let ratio = ratio.x(reported()).y(Axis::new("simulated / reported").log());
    let errors = judged.iter().map(|(_, paper, ours)| (ours / paper - 1.0).abs()).collect();
    let within = percent(median(errors).unwrap_or_default());
    let title = format!("Half of the {} numbers judged by their error are within {within}", judged.len());
    let overview = Figure::new(title).panel_size(400, 330).panel(beside).panel(ratio);
    Ok(Some(Drawn { alt: ALT.to_owned(), svg: overview.render()?.svg }))
}

/// A mark for each number at `at`, by its paper, over the line where both are equal and those [`OK`] away from it.
fn marks(judged: &[Judged<'_>], ends: [f64; 2], same: fn(f64) -> f64, at: fn(f64, f64) -> f64) -> Lines {
    let line = |name: &str, factor: f64| Series::new(name, ends.map(|end| (end, same(end) * factor))).unmarked();
    let within = format!("{:.0}% off", OK * 100.0);
    let lines = [line("the same", 1.0), line(&within, 1.0 + OK), line(&within, 1.0 - OK)];
    let mut lines = lines.into_iter().fold(Lines::new(), Lines::series);
    for paper in Reference::papers() {
        let of: Vec<&Judged<'_>> = judged.iter().filter(|(cell, ..)| cell.paper == paper).collect();
        let points: Vec<(f64, f64)> = of.iter().map(|(_, paper, ours)| (*paper, at(*ours, *paper))).collect();
        let label = |(cell, ..): &&Judged<'_>| {
            format!("{}: {} {}, the paper {}", cell.id, cell.simulated(), cell.unit, cell.paper_value())
        };
        if !points.is_empty() {
            let labels: Vec<String> = of.iter().map(label).collect();
            lines = lines.series(Series::new(Reference::name(paper), points).labels(labels).stroke(Stroke::None));
        }
    }
    lines
}

/// The number of a row that is judged by its error; counts either match exactly or not at all, and
/// would stretch the axes.
fn judged(cell: &ComparedCell) -> Option<Judged<'_>> {
    let (Claim::Value(Some(paper)), Some(Answer::Number(ours))) = (&cell.claim, &cell.answer) else { return None };
    let is_judged =
        matches!(cell.verdict, Verdict::Ok | Verdict::Off) && !NOT_IN_MEDIANS.contains(&cell.metric.as_str());
    (is_judged && *paper > 0.0 && *ours > 0.0).then_some((cell, *paper, *ours))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::Answer;
    use crate::papers::reference::{Role, example};

    #[test]
    fn artefacts_are_headed_as_the_papers_head_them() {
        let headings = ["table1", "figure9a", "section3.4.3", "introduction", "galaxy-s22", ""].map(heading);
        assert_eq!(headings, ["Table 1", "Figure 9a", "Section 3.4.3", "Introduction", "Galaxy S22", ""]);
    }

    #[test]
    fn each_number_that_is_judged_has_a_mark_that_names_it() {
        let cell = |claim, role, answer| ComparedCell::new(&example("time", claim, role), answer).unwrap();
        let value = |answer| cell(Claim::Value(Some(100.0)), Role::Check, Answer::Number(answer));
        let cells = [
            value(110.0),
            value(0.02),
            value(-1.0),
            cell(Claim::Min(5.0), Role::Check, Answer::Number(6.0)),
            cell(Claim::Value(None), Role::Withheld, Answer::Number(3.0)),
        ];
        let drawn = overview(&cells).unwrap().unwrap();
        assert_eq!(drawn.svg.matches("<g class=\"value\">").count(), 2 * 2);
        assert!(drawn.svg.contains(&format!("{}: 110 ms, the paper 100", cells[0].id)), "{}", drawn.svg);
        assert_eq!(overview(&cells[2..]).unwrap(), None);
    }
}
