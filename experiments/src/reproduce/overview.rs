//! All numbers of the papers at once: simulated against reported, each at its place by its paper.

use haversack_reports::figure::{Axis, Figure, FigureError, Lines, Panel, Series, Stroke};
use haversack_reports::page::Drawn;

use super::answer::Answer;
use super::cells::{ComparedCell, OK, Verdict};
use super::reference::{Claim, Reference};

const ALT: &str = "Every number of the papers, simulated against reported, on logarithmic axes, with the line on which both \
                   are the same and 15% about it";

/// The figure; `None` where no number is judged.
///
/// # Errors
/// A figure that cannot be drawn.
pub(super) fn figure(cells: &[ComparedCell]) -> Result<Option<Drawn>, FigureError> {
    let points: Vec<(&ComparedCell, (f64, f64))> = cells.iter().filter_map(|cell| Some((cell, place(cell)?))).collect();
    let ends = points.iter().flat_map(|(_, (paper, ours))| [*paper, *ours]);
    let (lo, hi) = ends.fold((f64::INFINITY, 0.0_f64), |(lo, hi), end| (lo.min(end), hi.max(end)));
    if points.is_empty() {
        return Ok(None);
    }
    let ends = [lo / 1.6, hi * 1.6];
    let line = |name: String, factor: f64| Series::new(name, ends.map(|end| (end, end * factor))).unmarked();
    let mut lines = Lines::new();
    for paper in Reference::papers() {
        let of: Vec<_> = points.iter().filter(|(cell, _)| cell.paper == paper).collect();
        let label = |(cell, _): &&(&ComparedCell, (f64, f64))| {
            format!("{}: {} {}, the paper {}", cell.id, cell.simulated(), cell.unit, cell.paper_value())
        };
        if !of.is_empty() {
            let series = Series::new(Reference::name(paper), of.iter().map(|(_, at)| *at).collect::<Vec<_>>());
            lines = lines.series(series.labels(of.iter().map(label).collect::<Vec<_>>()).stroke(Stroke::None));
        }
    }
    let within = format!("{:.0}% off", OK * 100.0);
    lines = lines.series(line("the same".to_owned(), 1.0));
    lines = lines.series(line(within.clone(), 1.0 + OK)).series(line(within, 1.0 - OK));
    let axis = |label: &str| Axis::new(label).log().range(ends[0], ends[1]);
    let panel = Panel::new(lines).x(axis("reported by the paper, in each row's unit")).y(axis("simulated"));
    let figure =
        Figure::new("Every number that is judged: simulated against reported").panel_size(620, 440).panel(panel);
    Ok(Some(Drawn { alt: ALT.to_owned(), svg: figure.render()?.svg }))
}

/// Where a number that is judged by its error lies.
fn place(cell: &ComparedCell) -> Option<(f64, f64)> {
    let (Claim::Value(Some(paper)), Some(Answer::Number(ours))) = (&cell.claim, &cell.answer) else { return None };
    let is_judged = matches!(cell.verdict, Verdict::Ok | Verdict::Off) && *paper > 0.0 && *ours > 0.0;
    is_judged.then_some((*paper, *ours))
}

#[cfg(test)]
mod tests {
    use super::super::reference::{Role, example};
    use super::*;

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
        assert_eq!(drawn.svg.matches("<g class=\"value\">").count(), 2);
        assert!(drawn.svg.contains(&format!("{}: 110 ms, the paper 100", cells[0].id)), "{}", drawn.svg);
        assert_eq!(figure(&cells[2..]).unwrap(), None);
    }
}
