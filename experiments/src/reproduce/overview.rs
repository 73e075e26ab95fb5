//! All numbers of the papers at once: simulated against reported, each at its place by its paper.

use haversack_reports::page::Drawn;
use haversack_reports::{Axis, Figure, FigureError, Lines, Panel, Series, Stroke};

use crate::papers::cells::OK;
use crate::papers::summary::NOT_IN_MEDIANS;
use crate::papers::{Answer, Claim, ComparedCell, Reference, Verdict};
use crate::quantities::range;

const ALT: &str = "Every number that is judged by its error, simulated against reported, and their ratio, on logarithmic \
                   axes, with the line on which both are the same and 15% about it";

/// A number that is judged: its row, the paper's and ours.
type Judged<'c> = (&'c ComparedCell, f64, f64);

/// The figure; `None` where no number is judged.
///
/// # Errors
/// A figure that cannot be drawn.
pub(super) fn figure(cells: &[ComparedCell]) -> Result<Option<Drawn>, FigureError> {
    let judged: Vec<Judged<'_>> = cells.iter().filter_map(judged).collect();
    let Some(ends) = range(judged.iter().flat_map(|(_, paper, ours)| [*paper, *ours])) else { return Ok(None) };
    let ends = [ends.0 / 1.6, ends.1 * 1.6];
    let reported = || Axis::new("reported by the paper, in each row's unit").log().range(ends[0], ends[1]);
    let simulated = Axis::new("simulated").log().range(ends[0], ends[1]);
    let beside = Panel::new(marks(&judged, ends, |end| end, |ours, _| ours)).x(reported()).y(simulated);
    let ratio = Panel::new(marks(&judged, ends, |_| 1.0, |ours, paper| ours / paper));
    let ratio = ratio.x(reported()).y(Axis::new("simulated / reported").log());
    let figure =
        Figure::new("Every number that is judged by its error").panel_size(400, 330).panel(beside).panel(ratio);
    Ok(Some(Drawn { alt: ALT.to_owned(), svg: figure.render()?.svg }))
}

/// A mark for each number at `at`, by its paper, over the line on which both are the same and those [`OK`] off it.
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

/// The number of a row that is judged by its error; counts are met exactly or not at all, and would stretch the axes.
fn judged(cell: &ComparedCell) -> Option<Judged<'_>> {
    let (Claim::Value(Some(paper)), Some(Answer::Number(ours))) = (&cell.claim, &cell.answer) else { return None };
    let is_judged =
        matches!(cell.verdict, Verdict::Ok | Verdict::Off) && !NOT_IN_MEDIANS.contains(&cell.metric.as_str());
    (is_judged && *paper > 0.0 && *ours > 0.0).then_some((cell, *paper, *ours))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::reference::{Role, example};

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
        let drawn = figure(&cells).unwrap().unwrap();
        assert_eq!(drawn.svg.matches("<g class=\"value\">").count(), 2 * 2);
        assert!(drawn.svg.contains(&format!("{}: 110 ms, the paper 100", cells[0].id)), "{}", drawn.svg);
        assert_eq!(figure(&cells[2..]).unwrap(), None);
    }
}
