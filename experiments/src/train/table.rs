//! The epochs as a data frame, and the results as text.

use std::collections::BTreeMap;
use std::path::Path;

use haversack_reports::frame::write_parquet;
use haversack_reports::{Axis, Figure, Front, Lines, Look, Meanings, Panel, Sense, Series};
use haversack_workloads::data::Part;

use super::{Row, Specification, Subject};
use crate::Result;
use crate::measured::interval;
use crate::progress::word;
use crate::rows::{Rows, with_fields};
use crate::texts::headed;

/// Writes the rows to `path`.
pub(super) fn write(path: &Path, rows: &[Row], subjects: &[Subject]) -> Result<()> {
    let rows = with_fields!(Rows::of(rows); seed)
        .with("epoch", |row| u64::from(row.epoch))
        .with("split", |row| <&str>::from(row.split));
    let rows = with_fields!(rows; loss, accuracy, simulated_time_s, energy_j, peak_memory_bytes, run);
    let frame = rows.with("scenario", |row| subjects[row.run as usize].label.as_str()).frame()?;
    Ok(write_parquet(path, &frame)?)
}

/// The results of each scenario in its last epoch, over its seeds.
pub(super) fn text(rows: &[Row], subjects: &[Subject], path: &Path) -> String {
    let mut table = headed("scenario¦>validation¦>test¦>simulated time¦>energy¦>peak memory");
    for (run, subject) in subjects.iter().enumerate() {
        let of = |part: Part| last(rows, run as u64, part);
        let (validation, test) = (of(Part::Validation), of(Part::Test));
        let mean =
            |rows: &[Row], value: fn(&Row) -> f64| rows.iter().map(value).sum::<f64>() / rows.len().max(1) as f64;
        if test.is_empty() {
            table.row([subject.label.as_str(), "none", "none", "", "", ""]);
            continue;
        }
        table.row([
            subject.label.clone(),
            share(&validation),
            share(&test),
            format!("{:.1} s", mean(&test, |row| row.simulated_time_s)),
            format!("{:.1} J", mean(&test, |row| row.energy_j)),
            format!("{:.1} MB", mean(&test, |row| row.peak_memory_bytes as f64) / 1e6),
        ]);
    }
    let missed: String = subjects.iter().filter_map(Subject::missed).collect();
    format!("{table}{missed}{}\n", word(path))
}

/// The mean accuracy in percent, with half of the interval if there are several seeds.
fn share(rows: &[Row]) -> String {
    let values: Vec<f64> = rows.iter().map(|row| row.accuracy).collect();
    let (mean, half) = interval(&values);
    if values.len() < 2 {
        format!("{:.1}%", mean * 100.0)
    } else {
        format!("{:.1}% ± {:.1}", mean * 100.0, half * 100.0)
    }
}

/// The rows of the last epoch of a scenario.
pub(super) fn last(rows: &[Row], run: u64, part: Part) -> Vec<Row> {
    let of = |row: &&Row| row.run == run && row.split == part;
    let epoch = rows.iter().filter(of).map(|row| row.epoch).max().unwrap_or(0);
    rows.iter().filter(of).filter(|row| row.epoch == epoch).copied().collect()
}

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
    let finding = finding(rows, subjects);
    let curves = titled(&finding, "means over the seeds with their 95% intervals");
    let mut figures = vec![("learning", learning(curves, rows, specification, subjects))];
    if subjects.len() > 1 {
        let pareto = titled(&finding, "a point a seed");
        figures.push(("pareto", pareto.panel(cost(rows, subjects, MEMORY)).panel(cost(rows, subjects, TIME))));
    }
    figures
}

/// "LeNet-5 on Glyphs under daf reaches 84.3% ± 1.0 of the test part": the scenario that reaches most.
fn finding(rows: &[Row], subjects: &[Subject]) -> String {
    let tests = (0..).zip(subjects).map(|(run, subject)| (last(rows, run, Part::Test), &subject.label));
    let reached = |rows: &[Row]| interval(&rows.iter().map(|row| row.accuracy).collect::<Vec<_>>()).0;
    match tests.filter(|(test, _)| !test.is_empty()).max_by(|(a, _), (b, _)| reached(a).total_cmp(&reached(b))) {
        Some((test, label)) if subjects.len() > 1 => format!("{label} reaches most: {} of the test part", share(&test)),
        Some((test, _)) => format!("{} of the test part is classified correctly", share(&test)),
        None => "Learning".to_owned(),
    }
}

/// The cost of a scenario, with its axis.
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

/// A line of means over the seeds for each scenario, and dashed lines for their intervals.
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

/// The test accuracy of each scenario in its last epoch with each seed, against its cost.
fn cost(rows: &[Row], subjects: &[Subject], cost: Cost) -> Panel {
    let front = Front::new().senses([Sense::Minimise, Sense::Maximise]).overall();
    let clouds = (0..).zip(subjects).fold(front, |front, (run, subject)| {
        let rows = last(rows, run, Part::Test);
        front.cloud(subject.label.as_str(), rows.iter().map(|row| ((cost.of)(row), PERCENT(row))).collect::<Vec<_>>())
    });
    Panel::new(clouds).x(Axis::new(cost.name).unit(cost.unit)).y(accuracy("test"))
}
