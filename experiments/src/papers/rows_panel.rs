//! The paper's numbers of an artefact beside ours, for figures that draw something else: a panel for each unit.

use haversack_reports::Panel;
use haversack_reports::figure::{Axis, BarSeries, Bars, Look};
use indexmap::IndexSet;

use super::answer::Answer;
use super::cells::ComparedCell;
use super::names::spelled;
use super::reference::Claim;
use super::status::Status;

/// One number of the paper beside ours.
struct Row {
    unit: String,
    metric: String,
    /// Subject, method and metric, as people say them, and which end of a range or what bound it is.
    words: Vec<String>,
    simulated: Option<f64>,
    paper: f64,
}

/// The panels; none where the paper gives no number.
pub(crate) fn panels(cells: &[ComparedCell]) -> Vec<Panel> {
    let rows: Vec<Row> = cells.iter().filter(|cell| cell.status != Status::Withheld).flat_map(rows).collect();
    let units: IndexSet<&str> = rows.iter().map(|row| row.unit.as_str()).collect();
    units.into_iter().map(|unit| panel(unit, &rows.iter().filter(|row| row.unit == unit).collect::<Vec<_>>())).collect()
}

fn panel(unit: &str, rows: &[&Row]) -> Panel {
    // A metric that all rows share names the axis; what else is the same of all stands in the title, what differs under
    // the bars.
    let metric = &rows[0].metric;
    let is_shared = rows.iter().all(|row| row.metric == *metric);
    let parts = rows.iter().map(|row| row.words.len()).max().unwrap_or(0);
    let differs = |part: usize| rows.iter().any(|row| row.words.get(part) != rows[0].words.get(part));
    let named = |row: &Row, differing: bool| {
        let chosen = (0..parts).filter(|part| differs(*part) == differing);
        let words = chosen.filter_map(|part| row.words.get(part)).map(String::as_str);
        let is_said = |word: &&str| (differing || *word != "all") && !(is_shared && word == metric);
        words.filter(is_said).collect::<Vec<_>>().join(", ")
    };
    let names: Vec<String> = rows.iter().map(|row| named(row, true)).collect();
    let common = named(rows[0], false);
    let bars = Bars::new(names)
        .series(BarSeries::new("simulated", rows.iter().map(|row| row.simulated)))
        .series(BarSeries::new("paper", rows.iter().map(|row| row.paper)).look(Look::Hatched))
        .show_values();
    let axis = Axis::new(if is_shared { metric } else { "value" });
    let axis = match unit {
        "" => axis,
        "percent" => axis.unit("%"),
        unit => axis.unit(unit),
    };
    Panel::new(bars).title(if common.is_empty() { "the paper's numbers".to_owned() } else { common }).y(axis).apart()
}

/// The numbers of a row: two of a range, none of an order.
fn rows(cell: &ComparedCell) -> Vec<Row> {
    let row = |end: &str, simulated, paper| {
        let ids: Vec<String> = cell.id.split('/').skip(2).map(spelled).collect();
        let metric = ids.last().cloned().unwrap_or_default();
        let words = ids.into_iter().chain((!end.is_empty()).then(|| end.to_owned())).collect();
        Row { unit: cell.unit.clone(), metric, words, simulated, paper }
    };
    let number = match cell.answer {
        Some(Answer::Number(value) | Answer::Input(value)) => Some(value),
        _ => None,
    };
    match (&cell.claim, &cell.answer) {
        (Claim::Value(Some(paper)), _) => vec![row("", number, *paper)],
        (Claim::Min(paper), _) => vec![row("at least", number, *paper)],
        (Claim::Max(paper), _) => vec![row("at most", number, *paper)],
        (Claim::Range { lo, hi }, answer) => {
            let ends = if let Some(Answer::Range(lo, hi)) = answer { (Some(*lo), Some(*hi)) } else { (None, None) };
            vec![row("least", ends.0, *lo), row("most", ends.1, *hi)]
        }
        (Claim::Value(None) | Claim::Never | Claim::Order(_), _) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use haversack_reports::figure::Chart;

    use super::*;
    use crate::papers::reference::{Role, example};

    #[test]
    fn numbers_of_one_unit_share_a_panel_whose_title_has_what_they_share() {
        let cell = |metric, claim, answer| ComparedCell::new(&example(metric, claim, Role::Check), answer).unwrap();
        let cells = [
            cell("time", Claim::Value(Some(100.0)), Answer::Number(110.0)),
            cell("slow-down", Claim::Range { lo: 2.0, hi: 8.0 }, Answer::Range(3.0, 9.0)),
            cell("order", Claim::Order("a > b".into()), Answer::Order(true)),
            cell("time", Claim::Value(None), Answer::Number(1.0)),
        ];
        let panels = panels(&cells);
        let [only] = &panels[..] else { panic!("{} panels", panels.len()) };
        assert_eq!(only.title.as_deref(), Some("net, method"));
        assert_eq!(only.y.title(), "value (ms)");
        let Chart::Bars(bars) = &only.chart else { panic!("no bars") };
        assert_eq!(bars.categories, ["time", "slow down, least", "slow down, most"]);
        // One metric names the axis.
        let one = super::panels(&cells[1..]);
        assert_eq!((one[0].title.as_deref(), one[0].y.title()), (Some("net, method"), "slow down (ms)".to_owned()));
        let values: Vec<_> = bars.series.iter().map(|series| series.values.clone()).collect();
        assert_eq!(values[0], [Some(110.0), Some(3.0), Some(9.0)]);
        assert_eq!(values[1], [Some(100.0), Some(2.0), Some(8.0)]);
    }
}
