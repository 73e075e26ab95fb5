//! The tables of a folder: those of one federation, or of several concatenated, each with its number and
//! listed values in front.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use haversack_federation::population::{DeviceKind, MemoryClass};
use haversack_federation::rows::{ClientRow, ExclusionRow, RoundRow};
use haversack_reports::frame::{FrameError, ParquetFile, read_parquet, write_parquet};
use polars::prelude::{Column, DataFrame, DataType, PolarsError};

use super::rounds::{ClassRow, GROUP, Held};
use super::span::Span;
use crate::error::{CommandError, Result};
use crate::rows::{Rows, column, with_fields};
use crate::work::OutputFolder;

/// The file names of [`Tables`].
pub(super) const NAMES: [&str; 3] = ["rounds.parquet", "exclusions.parquet", "classes.parquet"];
/// Their indices.
pub(super) const ROUNDS: usize = 0;
pub(super) const EXCLUSIONS: usize = 1;
pub(super) const CLASSES: usize = 2;
/// The file name of [`Clients`].
pub(super) const CLIENTS: &str = "clients.parquet";

/// One row per round, per phone left out, and per memory class.
#[derive(Clone, Debug)]
pub(super) struct Tables(pub(super) [DataFrame; 3]);

/// One row per phone and round, which reaches its file a [`GROUP`] at a time.
pub(super) struct Clients {
    path: PathBuf,
    /// The file, and rows that are not in it yet.
    file: Mutex<Option<(ParquetFile, DataFrame)>>,
}

impl Clients {
    /// The table of the folder `out`, which is made with its first rows.
    pub(super) fn of(out: &Path) -> Self {
        Self { path: out.join(CLIENTS), file: Mutex::default() }
    }

    /// Appends rows.
    ///
    /// # Errors
    /// Rows with other columns; a disc that is full.
    pub(super) fn push(&self, frame: &DataFrame) -> Result<()> {
        let mut begun = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = || Ok::<_, FrameError>((ParquetFile::create(&self.path, frame.schema())?, frame.clear()));
        let (mut file, mut waiting) = begun.take().map_or_else(begin, Ok)?;
        waiting.vstack_mut(frame).map_err(FrameError::Encode)?;
        while waiting.height() >= GROUP {
            let (mut group, rest) = waiting.split_at(GROUP as i64);
            group.rechunk_mut();
            file.write(&group)?;
            waiting = rest;
        }
        *begun = Some((file, waiting));
        Ok(())
    }

    /// Completes the file.
    pub(super) fn finish(&self) -> Result<()> {
        let begun = self.file.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((mut file, mut rest)) = begun else { return Ok(()) };
        rest.rechunk_mut();
        file.write(&rest)?;
        Ok(file.finish()?)
    }
}

/// The table `name` of a folder.
pub(super) fn read(folder: &Path, name: &str) -> Result<DataFrame> {
    read_parquet(&folder.join(name)).map_err(CommandError::input)
}

impl Tables {
    /// The tables of federation number `run`, from zero.
    pub(super) fn of(held: &Held, span: &Span, run: usize) -> Result<Self> {
        let frames = [rounds(&held.rounds)?, exclusions(&held.exclusions)?, classes(&held.classes)?];
        let [rounds, exclusions, classes] = frames.map(|frame| led(frame, span, run));
        Ok(Self([rounds?, exclusions?, classes?]))
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
        let [rounds, exclusions, classes] = NAMES.map(|name| read(folder, name));
        Ok(Self([rounds?, exclusions?, classes?]))
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
pub(super) fn led(frame: DataFrame, span: &Span, run: usize) -> Result<DataFrame, FrameError> {
    if !span.is_spanned() {
        return Ok(frame);
    }
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
pub(super) fn clients(
    rows: &[ClientRow],
    devices: &[DeviceKind],
    memory: &[MemoryClass],
) -> Result<DataFrame, FrameError> {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn rows_have_the_same_bytes_in_whatever_pieces_they_come() {
        // Pieces of the rows from 0 on, by their ends.
        let written = |ends: &[u32]| {
            let folder = tempfile::tempdir().unwrap();
            let table = Clients::of(folder.path());
            let mut all: Vec<u32> = Vec::new();
            for end in ends {
                let rows: Vec<u32> = (all.len() as u32..*end).collect();
                table.push(&Rows::of(&rows).with("client", |row| *row).frame().unwrap()).unwrap();
                // It has its name only when it is complete.
                assert!(!folder.path().join(CLIENTS).exists());
                all.extend(rows);
            }
            table.finish().unwrap();
            let clients = read(folder.path(), CLIENTS).unwrap();
            let clients: Vec<u32> = clients.column("client").unwrap().u32().unwrap().iter().flatten().collect();
            assert_eq!(clients, all);
            fs::read(folder.path().join(CLIENTS)).unwrap()
        };
        let (group, all) = (GROUP as u32, 5 * GROUP as u32 / 2);
        let whole = written(&[all]);
        assert_eq!(written(&[3, 3, all - 1, all]), whole);
        assert_eq!(written(&[group, 2 * group]), written(&[2 * group]));
        // A federation without phones has the columns, too.
        written(&[0]);
    }
}
