//! The tables of a folder: one federation's, or those of several under one another, each with its number and values in front;
//! and what came of them as text.

use std::path::Path;

use haversack_devices::units::Nanos;
use haversack_federation::population::{DeviceKind, MemoryClass};
use haversack_federation::round::Outcome;
use haversack_federation::rows::{ClientRow, ExclusionRow, RoundRow};
use haversack_reports::frame::{FrameError, read_parquet, write_parquet};
use polars::prelude::{Column, DataFrame, DataType, IntoColumn, NamedFrom, PolarsError, PolarsResult, Series};

use super::classes::ClassRow;
use super::rounds::Held;
use super::span::Span;
use super::specification::Specification;
use crate::error::CommandError;
use crate::quantities;
use crate::work::OutputFolder;

/// The files.
pub(super) const NAMES: [&str; 4] = ["rounds.parquet", "clients.parquet", "exclusions.parquet", "classes.parquet"];

/// The places of three of them.
pub(super) const ROUNDS: usize = 0;
pub(super) const EXCLUSIONS: usize = 2;
pub(super) const CLASSES: usize = 3;

/// A row a round, a row a phone of a round, a row a phone that is left out, a row a memory class.
#[derive(Clone, Debug)]
pub(super) struct Tables(pub(super) [DataFrame; 4]);

impl Tables {
    /// Those of federation number `run`, from zero.
    pub(super) fn of(
        held: &Held,
        asked: &Specification,
        kinds: &[DeviceKind],
        span: &Span,
        run: usize,
    ) -> Result<Self, CommandError> {
        let clients = clients(&held.clients, kinds, &asked.setting.memory);
        let frames = [rounds(&held.rounds), clients, exclusions(&held.exclusions), classes(&held.classes)];
        let mut tables = Vec::with_capacity(frames.len());
        for frame in frames {
            let frame = frame.map_err(FrameError::Encode)?;
            tables.push(if span.is_spanned() { led(&frame, span, run).map_err(FrameError::Encode)? } else { frame });
        }
        <[DataFrame; 4]>::try_from(tables).map(Self).map_err(|_| CommandError::failed("there are four tables"))
    }

    /// Appends those of a later federation.
    ///
    /// # Errors
    /// Tables of other columns.
    pub(super) fn append(&mut self, later: &Self) -> Result<(), PolarsError> {
        for (frame, later) in self.0.iter_mut().zip(&later.0) {
            frame.vstack_mut(later)?;
        }
        Ok(())
    }

    /// Those of a folder.
    pub(super) fn read(folder: &Path) -> Result<Self, CommandError> {
        let read = |name: &str| read_parquet(&folder.join(name)).map_err(CommandError::input);
        let [rounds, clients, exclusions, classes] = NAMES;
        Ok(Self([read(rounds)?, read(clients)?, read(exclusions)?, read(classes)?]))
    }

    /// Writes them.
    pub(super) fn write(&mut self, folder: &OutputFolder) -> Result<(), CommandError> {
        for (name, frame) in NAMES.iter().zip(&mut self.0) {
            frame.rechunk_mut();
            write_parquet(&folder.path(name), frame)?;
        }
        Ok(())
    }

    /// A number of each row of a table, missing where it has none.
    pub(super) fn numbers(&self, table: usize, name: &str) -> Vec<Option<f64>> {
        let found = self.0[table].column(name).and_then(|column| column.cast(&DataType::Float64));
        let numbers = found.and_then(|column| Ok(column.f64()?.iter().collect()));
        numbers.unwrap_or_default()
    }

    /// A text of each row of a table.
    pub(super) fn texts(&self, table: usize, name: &str) -> Vec<String> {
        let found = self.0[table].column(name).and_then(|column| column.cast(&DataType::String));
        let texts =
            found.and_then(|column| Ok(column.str()?.iter().map(|text| text.unwrap_or_default().to_owned()).collect()));
        texts.unwrap_or_default()
    }
}

/// A table with the number of the federation and the values of its keys in front: numbers where all values of a key are.
fn led(frame: &DataFrame, span: &Span, run: usize) -> Result<DataFrame, PolarsError> {
    let height = frame.height();
    let mut columns: Vec<Column> = vec![column("run", vec![run as u32; height])];
    for (key, (name, value)) in span.keys.iter().zip(span.values(run)) {
        let whole = || key.values.iter().map(|value| value.parse::<i64>().ok()).collect::<Option<Vec<_>>>();
        let real = || key.values.iter().map(|value| value.parse::<f64>().ok()).collect::<Option<Vec<_>>>();
        // A column of that name in the table keeps it.
        let name = if frame.column(name).is_ok() { format!("asked_{name}") } else { name.to_owned() };
        columns.push(if whole().is_some() {
            column(&name, vec![value.parse::<i64>().unwrap_or(0); height])
        } else if real().is_some() {
            column(&name, vec![value.parse::<f64>().unwrap_or(f64::NAN); height])
        } else {
            column(&name, vec![value; height])
        });
    }
    columns.extend(frame.columns().iter().cloned());
    DataFrame::new_infer_height(columns)
}

fn column<T, Of: ?Sized>(name: &str, values: T) -> Column
where
    Series: NamedFrom<T, Of>,
{
    Series::new(name.into(), values).into_column()
}

/// A row a round.
fn rounds(rows: &[RoundRow]) -> PolarsResult<DataFrame> {
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
fn clients(rows: &[ClientRow], devices: &[DeviceKind], memory: &[MemoryClass]) -> PolarsResult<DataFrame> {
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
fn exclusions(rows: &[ExclusionRow]) -> PolarsResult<DataFrame> {
    let number = |name: &str, of: fn(&ExclusionRow) -> u32| column(name, rows.iter().map(of).collect::<Vec<_>>());
    DataFrame::new_infer_height(vec![
        number("round", |row| row.round),
        number("client", |row| row.client),
        column("reason", rows.iter().map(|row| row.reason.as_str()).collect::<Vec<_>>()),
    ])
}

/// A row a memory class.
fn classes(rows: &[ClassRow]) -> PolarsResult<DataFrame> {
    let number = |name: &str, of: fn(&ClassRow) -> u32| column(name, rows.iter().map(of).collect::<Vec<_>>());
    DataFrame::new_infer_height(vec![
        column("memory_class", rows.iter().map(|row| format!("{} GB", row.size_gb)).collect::<Vec<_>>()),
        number("phones", |row| row.phones),
        number("without_plan", |row| row.without_plan),
        number("without_samples", |row| row.without_samples),
        number("without_trace", |row| row.without_trace),
        number("completed", |row| row.completed),
        number("dropped", |row| row.dropped),
        number("killed", |row| row.killed),
        number("timed_out", |row| row.timed_out),
        column("energy_j", rows.iter().map(|row| row.energy_j).collect::<Vec<_>>()),
        column("budget_bytes", rows.iter().map(|row| row.budget_bytes).collect::<Vec<_>>()),
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
