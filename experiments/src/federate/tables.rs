//! The tables of a folder: those of one federation, or of several concatenated, each with its number and
//! listed values in front.

use std::path::Path;

use haversack_federation::population::{DeviceKind, MemoryClass};
use haversack_federation::rows::{ClientRow, ExclusionRow, RoundRow};
use haversack_reports::frame::{FrameError, read_parquet, write_parquet};
use polars::prelude::{Column, DataFrame, DataType, PolarsError};

use super::rounds::{ClassRow, Held};
use super::span::Span;
use super::specification::Specification;
use crate::error::{CommandError, Result};
use crate::rows::{Rows, column, with_fields};
use crate::work::OutputFolder;

/// The file names.
pub(super) const NAMES: [&str; 4] = ["rounds.parquet", "clients.parquet", "exclusions.parquet", "classes.parquet"];

/// The index of three of them.
pub(super) const ROUNDS: usize = 0;
pub(super) const EXCLUSIONS: usize = 2;
pub(super) const CLASSES: usize = 3;

/// One row per round, per phone and round, per phone left out, and per memory class.
#[derive(Clone, Debug)]
pub(super) struct Tables(pub(super) [DataFrame; 4]);

impl Tables {
    /// The tables of federation number `run`, from zero.
    pub(super) fn of(held: &Held, asked: &Specification, span: &Span, run: usize) -> Result<Self> {
        let clients = clients(&held.clients, &held.kinds, &asked.setting.memory);
        let spanned =
            |frame: Result<DataFrame, FrameError>| if span.is_spanned() { led(&frame?, span, run) } else { frame };
        let (rounds, exclusions) = (spanned(rounds(&held.rounds))?, spanned(exclusions(&held.exclusions))?);
        Ok(Self([rounds, spanned(clients)?, exclusions, spanned(classes(&held.classes))?]))
    }

    /// Appends the tables of a later federation.
    ///
    /// # Errors
    /// Tables with other columns.
    pub(super) fn append(&mut self, later: &Self) -> Result<(), PolarsError> {
        for (frame, later) in self.0.iter_mut().zip(&later.0) {
            frame.vstack_mut(later)?;
        }
        Ok(())
    }

    /// Reads the tables of a folder.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let read = |name: &str| read_parquet(&folder.join(name)).map_err(CommandError::input);
        let [rounds, clients, exclusions, classes] = NAMES;
        Ok(Self([read(rounds)?, read(clients)?, read(exclusions)?, read(classes)?]))
    }

    /// Writes them.
    pub(super) fn write(&mut self, folder: &OutputFolder) -> Result<()> {
        for (name, frame) in NAMES.iter().zip(&mut self.0) {
            frame.rechunk_mut();
            write_parquet(&folder.path(name), frame)?;
        }
        Ok(())
    }

    /// The numbers in a column of a table; `None` for missing values.
    pub(super) fn numbers(&self, table: usize, name: &str) -> Vec<Option<f64>> {
        let found = self.0[table].column(name).and_then(|column| column.cast(&DataType::Float64));
        let numbers = found.and_then(|column| Ok(column.f64()?.iter().collect()));
        numbers.unwrap_or_default()
    }

    /// The texts in a column of a table.
    pub(super) fn texts(&self, table: usize, name: &str) -> Vec<String> {
        let found = self.0[table].column(name).and_then(|column| column.cast(&DataType::String));
        let texts =
            found.and_then(|column| Ok(column.str()?.iter().map(|text| text.unwrap_or_default().to_owned()).collect()));
        texts.unwrap_or_default()
    }
}

/// The table with the federation's number and listed values in front, as numbers if all values of a key are.
fn led(frame: &DataFrame, span: &Span, run: usize) -> Result<DataFrame, FrameError> {
    let height = frame.height();
    let mut columns: Vec<Column> = vec![column("run", vec![run as u32; height])];
    for (key, (name, value)) in span.keys.iter().zip(span.values(run)) {
        let whole = || key.values.iter().map(|value| value.parse::<i64>().ok()).collect::<Option<Vec<_>>>();
        let real = || key.values.iter().map(|value| value.parse::<f64>().ok()).collect::<Option<Vec<_>>>();
        // The table's own column keeps its name.
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
    DataFrame::new_infer_height(columns).map_err(FrameError::Encode)
}

/// One row per round.
fn rounds(rows: &[RoundRow]) -> Result<DataFrame, FrameError> {
    with_fields!(Rows::of(rows); round, start_s, duration_s, selected, completed, dropped, killed, timed_out, up_bytes,
        down_bytes, energy_j, accuracy)
    .frame()
}

/// One row per phone and round.
fn clients(rows: &[ClientRow], devices: &[DeviceKind], memory: &[MemoryClass]) -> Result<DataFrame, FrameError> {
    let rows = with_fields!(Rows::of(rows); round, client)
        .with("device", |row| devices[usize::from(row.device)].id.as_str())
        .with("memory_class", |row| format!("{} GB", memory[usize::from(row.memory_class)].size_gb));
    let rows = with_fields!(rows; budget_bytes, plan, compute_s, up_s, down_s);
    rows.with("outcome", |row| <&'static str>::from(row.outcome)).frame()
}

/// One row per phone left out.
fn exclusions(rows: &[ExclusionRow]) -> Result<DataFrame, FrameError> {
    with_fields!(Rows::of(rows); round, client).with("reason", |row| row.reason.as_str()).frame()
}

/// One row per memory class.
fn classes(rows: &[ClassRow]) -> Result<DataFrame, FrameError> {
    let rows = Rows::of(rows).with("memory_class", |row| format!("{} GB", row.size_gb));
    with_fields!(rows; phones, without_plan, without_samples, without_trace, completed, dropped, killed, timed_out, energy_j,
        budget_bytes)
    .frame()
}
