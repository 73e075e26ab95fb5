//! What a federation reaches over time, and what its rounds take.

use haversack_federation::rows::RoundRow;
use haversack_reports::figure::{Axis, Lines, Series};
use haversack_reports::{Figure, Panel};

use super::specification::Specification;

/// The name of the figure's files.
pub(super) const NAME: &str = "federation";

/// A number of phones of a round, and what it is called.
type Count = (&'static str, fn(&RoundRow) -> u32);
const COUNTS: [Count; 4] = [
    ("completed", |row| row.completed),
    ("timed out", |row| row.timed_out),
    ("dropped", |row| row.dropped),
    ("killed", |row| row.killed),
];

/// Accuracy by simulated time where it was measured, what rounds take, and what became of their phones.
pub(super) fn figure(asked: &Specification, rows: &[RoundRow]) -> Figure {
    let title = format!("{} phones train {} with {}", asked.phones, asked.network, asked.policy);
    let learns = asked
        .learning
        .as_ref()
        .map_or_else(|| "nobody learns".to_owned(), |learning| format!("{} learns in its place", learning.stand_in));
    let figure = Figure::new(title).note(format!("selector: {}; {learns}", asked.rules.selector.name()));
    let hours = |row: &RoundRow| (row.start_s + row.duration_s) / 3600.0;
    let reached: Vec<(f64, f64)> = rows.iter().filter_map(|row| Some((hours(row), 100.0 * row.accuracy?))).collect();
    let figure = if reached.is_empty() {
        figure
    } else {
        let panel = Panel::new(Lines::new().series(Series::new("test", reached))).title("what is learned");
        figure.panel(
            panel.x(Axis::new("simulated time").unit("h").from_zero()).y(Axis::new("accuracy").unit("%").from_zero()),
        )
    };
    let took: Vec<(f64, f64)> = rows.iter().map(|row| (f64::from(row.round), row.duration_s / 60.0)).collect();
    let every = [1, 2, 5, 10, 20, 50, 100, 200, 500].into_iter().find(|every| rows.len() / every <= 8).unwrap_or(1000);
    let ticks: Vec<f64> = rows.iter().map(|row| f64::from(row.round)).skip(every - 1).step_by(every).collect();
    let round = || Axis::new("round").ticks_at(ticks.clone());
    let durations = Panel::new(Lines::new().series(Series::new("duration", took))).title("what rounds take");
    let counts = COUNTS.into_iter().fold(Lines::new(), |lines, (name, count)| {
        let points: Vec<(f64, f64)> = rows.iter().map(|row| (f64::from(row.round), f64::from(count(row)))).collect();
        lines.series(Series::new(name, points))
    });
    figure
        .panel(durations.x(round()).y(Axis::new("duration").unit("min").from_zero()))
        .panel(Panel::new(counts).title("what became of phones").x(round()).y(Axis::new("phones").from_zero()))
}
