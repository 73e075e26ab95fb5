//! The tables of a federation, and what came of it as text.

use haversack_devices::units::Nanos;
use haversack_federation::population::{DeviceKind, MemoryClass};
use haversack_federation::round::Outcome;
use haversack_federation::rows::{ClientRow, ExclusionRow, RoundRow};
use polars::prelude::{Column, DataFrame, IntoColumn, NamedFrom, PolarsResult, Series};

use super::tables::{CLASSES, ROUNDS, Tables};
use crate::quantities;

pub(super) fn column<T, Of: ?Sized>(name: &str, values: T) -> Column
where
    Series: NamedFrom<T, Of>,
{
    Series::new(name.into(), values).into_column()
}

/// A row a round.
pub(super) fn rounds(rows: &[RoundRow]) -> PolarsResult<DataFrame> {
    let number = |name: &str, of: fn(&RoundRow) -> u32| column(name, rows.iter().map(of).collect::<Vec<_>>());
    let whole = |name: &str, of: fn(&RoundRow) -> u64| column(name, rows.iter().map(of).collect::<Vec<_>>());
    let real = |name: &str, of: fn(&RoundRow) -> f64| column(name, rows.iter().map(of).collect::<Vec<_>>());
    DataFrame::new_infer_height(vec![
        number("round", |row| row.round),
        real("start_s", |row| row.start_s),
        real("duration_s", |row| row.duration_s),
        number("selected", |row| row.selected),
        number("completed", |row| row.completed),
        number("dropped", |row| row.dropped),
        number("killed", |row| row.killed),
        number("timed_out", |row| row.timed_out),
        whole("up_bytes", |row| row.up_bytes),
        whole("down_bytes", |row| row.down_bytes),
        real("energy_j", |row| row.energy_j),
        column("accuracy", rows.iter().map(|row| row.accuracy).collect::<Vec<_>>()),
    ])
}

/// A row a phone of a round.
pub(super) fn clients(rows: &[ClientRow], devices: &[DeviceKind], memory: &[MemoryClass]) -> PolarsResult<DataFrame> {
    let real = |name: &str, of: fn(&ClientRow) -> f64| column(name, rows.iter().map(of).collect::<Vec<_>>());
    let number = |name: &str, of: fn(&ClientRow) -> u32| column(name, rows.iter().map(of).collect::<Vec<_>>());
    let classes: Vec<String> = memory.iter().map(|class| format!("{} GB", class.size_gb)).collect();
    let device = |row: &ClientRow| devices[usize::from(row.device)].id.as_str();
    DataFrame::new_infer_height(vec![
        number("round", |row| row.round),
        number("client", |row| row.client),
        column("device", rows.iter().map(device).collect::<Vec<_>>()),
        column(
            "memory_class",
            rows.iter().map(|row| classes[usize::from(row.memory_class)].as_str()).collect::<Vec<_>>(),
        ),
        column("budget_bytes", rows.iter().map(|row| row.budget_bytes).collect::<Vec<_>>()),
        number("plan", |row| row.plan),
        real("compute_s", |row| row.compute_s),
        real("up_s", |row| row.up_s),
        real("down_s", |row| row.down_s),
        column("outcome", rows.iter().map(|row| word(row.outcome)).collect::<Vec<_>>()),
    ])
}

/// A row a phone that is left out.
pub(super) fn exclusions(rows: &[ExclusionRow]) -> PolarsResult<DataFrame> {
    let number = |name: &str, of: fn(&ExclusionRow) -> u32| column(name, rows.iter().map(of).collect::<Vec<_>>());
    DataFrame::new_infer_height(vec![
        number("round", |row| row.round),
        number("client", |row| row.client),
        column("reason", rows.iter().map(|row| row.reason.as_str()).collect::<Vec<_>>()),
    ])
}

const fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Dropped => "dropped",
        Outcome::Killed => "killed",
        Outcome::TimedOut => "timed-out",
    }
}

/// What came of it, for people; `wanted` updates a round were waited for, where that is one number.
pub(super) fn text(tables: &Tables, wanted: Option<f64>) -> String {
    let numbers = |name: &str| tables.numbers(ROUNDS, name).into_iter().map(|number| number.unwrap_or(0.0));
    let all = |name: &str| numbers(name).sum::<f64>();
    let time = |seconds: f64| quantities::time(Nanos((seconds * 1e9) as u64));
    let (rounds, took) = (tables.0[ROUNDS].height(), all("duration_s"));
    let mut text = String::new();
    if let Some(last) = tables.numbers(ROUNDS, "run").last().copied().flatten() {
        let first = tables.numbers(ROUNDS, "run").first().copied().flatten().unwrap_or(0.0);
        text += &format!("{} federations\n", last - first + 1.0);
    }
    let each = time(took / rounds.max(1) as f64);
    text += &format!("{rounds} rounds in {} of simulated time, {each} each\n", time(took));
    text += &format!(
        "{} parts of phones: {} completed, {} timed out, {} dropped, {} killed\n",
        all("selected"),
        all("completed"),
        all("timed_out"),
        all("dropped"),
        all("killed")
    );
    if let Some(wanted) = wanted {
        let short = numbers("completed").filter(|completed| *completed < wanted).count();
        if short > 0 {
            text += &format!("{short} rounds had fewer than the {wanted} updates that they waited for\n");
        }
    }
    text += &format!("{:.1} kJ of all phones\n", numbers("energy_j").fold(0.0, |sum, energy| sum + energy) / 1e3);
    let classes = tables.texts(CLASSES, "memory_class");
    let of_class = |name: &str| tables.numbers(CLASSES, name).into_iter().map(|number| number.unwrap_or(0.0));
    for (name, why) in [
        ("without_plan", "no plan fits what they leave"),
        ("without_samples", "they hold no samples"),
        ("without_trace", "their users' traces end too early"),
    ] {
        let left_out: f64 = of_class(name).sum();
        if left_out > 0.0 {
            let mut by_class: Vec<(&str, f64)> = Vec::new();
            for (class, number) in classes.iter().zip(of_class(name)).filter(|(_, number)| *number > 0.0) {
                match by_class.iter_mut().find(|(of, _)| of == class) {
                    Some((_, sum)) => *sum += number,
                    None => by_class.push((class, number)),
                }
            }
            let by_class: Vec<String> =
                by_class.iter().map(|(class, number)| format!("{number} with {class}")).collect();
            text += &format!("{left_out} phones were left out, since {why}: {}\n", by_class.join(", "));
        }
    }
    let accuracy = tables.numbers(ROUNDS, "accuracy");
    if let Some((row, accuracy)) = accuracy.iter().enumerate().rev().find_map(|(row, found)| Some((row, (*found)?))) {
        let round = numbers("round").nth(row).unwrap_or(0.0);
        let whose = if text.contains(" federations\n") { " of the last" } else { "" };
        text += &format!("accuracy {} after round {round}{whose}\n", quantities::percent(accuracy));
    }
    text
}
