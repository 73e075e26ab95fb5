//! Curves of a training: loss and accuracy by epoch, accuracy by simulated time, and what each scenario costs and reaches.

use std::collections::BTreeMap;

use haversack_reports::{Axis, Figure, Front, Lines, Look, Meanings, Panel, Sense, Series};
use haversack_workloads::data::Part;

use super::table::last;
use super::{Row, Specification, Subject};
use crate::measured::interval;

/// A quantity of a row.
type Quantity = fn(&Row) -> f64;

/// The figures, each with the name of its files.
pub(super) fn figures(
    rows: &[Row],
    specification: &Specification,
    subjects: &[Subject],
) -> Vec<(&'static str, Figure)> {
    let titled = |title: &str, of_seeds: &str| {
        let seeds = if specification.seeds.len() == 1 { "one seed" } else { of_seeds };
        let labels = subjects.iter().map(|subject| subject.label.as_str());
        Figure::new(title).note(format!("data: {}; {seeds}", specification.data)).order(labels)
    };
    let curves = titled("Learning", "means over the seeds with their 95% intervals");
    let mut figures = vec![("learning", learning(curves, rows, specification, subjects))];
    if subjects.len() > 1 {
        let pareto = titled("What is reached, and what it takes", "a point a seed");
        figures.push(("pareto", pareto.panel(cost(rows, subjects, MEMORY)).panel(cost(rows, subjects, TIME))));
    }
    figures
}

/// What a scenario takes, with the axis of it.
struct Cost {
    of: Quantity,
    name: &'static str,
    unit: &'static str,
}

const MEMORY: Cost = Cost { of: |row| row.peak_memory_bytes as f64 / 1e6, name: "peak memory", unit: "MB" };
const TIME: Cost = Cost { of: |row| row.simulated_time_s, name: "simulated time", unit: "s" };

const EPOCH: Quantity = |row| row.epoch as f64;
const LOSS: Quantity = |row| row.loss;
const PERCENT: Quantity = |row| row.accuracy * 100.0;

fn learning(figure: Figure, rows: &[Row], specification: &Specification, subjects: &[Subject]) -> Figure {
    let panel = |part, x, y| Panel::new(curves(rows, subjects, part, x, y));
    let every = specification.pace.epochs.div_ceil(8).max(1);
    let epochs: Vec<f64> = (1..=specification.pace.epochs).filter(|epoch| epoch % every == 0).map(f64::from).collect();
    let epoch = || Axis::new("epoch").ticks_at(epochs.clone());
    let figure = figure
        .panel(panel(Part::Train, EPOCH, LOSS).x(epoch()).y(Axis::new("train loss").from_zero()))
        .panel(panel(Part::Validation, EPOCH, PERCENT).x(epoch()).y(accuracy("validation")))
        .panel(panel(Part::Test, TIME.of, PERCENT).x(Axis::new(TIME.name).unit(TIME.unit)).y(accuracy("test")));
    if specification.seeds.len() == 1 {
        return figure;
    }
    figure.meanings(Meanings { solid: "mean".into(), hatched: "95% interval".into(), ..Meanings::default() })
}

fn accuracy(part: &str) -> Axis {
    Axis::new(format!("{part} accuracy")).unit("%").range(0.0, 100.0)
}

/// A line of means over the seeds for each scenario, and dashed ones for their intervals.
fn curves(rows: &[Row], subjects: &[Subject], part: Part, x: Quantity, y: Quantity) -> Lines {
    let mut lines = Lines::new();
    for (run, subject) in (0..).zip(subjects) {
        let mut epochs: BTreeMap<u32, Vec<&Row>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.run == run && row.split == part) {
            epochs.entry(row.epoch).or_default().push(row);
        }
        let of =
            |rows: &[&Row], quantity: Quantity| interval(&rows.iter().map(|row| quantity(row)).collect::<Vec<_>>());
        let edge = |sign: f64| -> Vec<(f64, f64)> {
            let point = |rows: &Vec<&Row>| {
                let (mean, half) = of(rows, y);
                (of(rows, x).0, mean + sign * half)
            };
            epochs.values().map(point).filter(|point| point.1.is_finite()).collect()
        };
        lines = lines.series(Series::new(subject.label.as_str(), edge(0.0)));
        if epochs.values().all(|rows| rows.len() > 1) {
            let dashed = |sign| Series::new(subject.label.as_str(), edge(sign)).look(Look::Hatched).unmarked();
            lines = lines.series(dashed(-1.0)).series(dashed(1.0));
        }
    }
    lines
}

/// What each scenario reaches on the test part in its last epoch with each seed, by what it takes.
fn cost(rows: &[Row], subjects: &[Subject], cost: Cost) -> Panel {
    let front = Front::new().senses([Sense::Minimise, Sense::Maximise]).overall();
    let clouds = (0..).zip(subjects).fold(front, |front, (run, subject)| {
        let rows = last(rows, run, Part::Test);
        front.cloud(subject.label.as_str(), rows.iter().map(|row| ((cost.of)(row), PERCENT(row))).collect::<Vec<_>>())
    });
    Panel::new(clouds).x(Axis::new(cost.name).unit(cost.unit)).y(accuracy("test"))
}
