//! The tables of a federation, and what came of it as text.

use haversack_devices::units::Nanos;
use haversack_federation::population::{DeviceKind, MemoryClass};
use haversack_federation::round::Outcome;
use haversack_federation::rows::{ClientRow, ExclusionRow, RoundRow};
use polars::prelude::{Column, DataFrame, IntoColumn, NamedFrom, PolarsResult, Series};

use crate::quantities;

fn column<T, Of: ?Sized>(name: &str, values: T) -> Column
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

/// What came of it, for people; `wanted` updates a round were waited for.
pub(super) fn text(rows: &[RoundRow], exclusions: &[ExclusionRow], wanted: u32) -> String {
    let all = |of: fn(&RoundRow) -> u32| rows.iter().map(|row| u64::from(of(row))).sum::<u64>();
    let time = |seconds: f64| quantities::time(Nanos((seconds * 1e9) as u64));
    let end = rows.last().map_or(0.0, |row| row.start_s + row.duration_s);
    let mut text = format!(
        "{} rounds in {} of simulated time, {} each\n",
        rows.len(),
        time(end),
        time(end / rows.len().max(1) as f64)
    );
    text += &format!(
        "{} parts of phones: {} completed, {} timed out, {} dropped, {} killed\n",
        all(|row| row.selected),
        all(|row| row.completed),
        all(|row| row.timed_out),
        all(|row| row.dropped),
        all(|row| row.killed)
    );
    let short = rows.iter().filter(|row| row.completed < wanted).count();
    if short > 0 {
        text += &format!("{short} rounds had fewer than the {wanted} updates that they waited for\n");
    }
    text += &format!("{:.1} kJ of all phones\n", rows.iter().fold(0.0, |sum, row| sum + row.energy_j) / 1e3);
    if !exclusions.is_empty() {
        text += &format!("{} phones were left out, since no plan fits what they leave\n", exclusions.len());
    }
    if let Some((row, accuracy)) = rows.iter().rev().find_map(|row| Some((row, row.accuracy?))) {
        text += &format!("accuracy {} after round {}\n", quantities::percent(accuracy), row.round);
    }
    text
}
