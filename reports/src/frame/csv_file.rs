//! The rows of data frames as CSV, beside the Parquet file that holds the same.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use csv::{Terminator, Writer, WriterBuilder};
use polars::prelude::{Column, DataFrame, DataType, PolarsError};

use super::FrameError;
use crate::files::{FileError, Part};
use crate::table::shortest;

/// A CSV file (RFC 4180, lines end with LF) that is written batch by batch, as a [`ParquetFile`](super::ParquetFile) is.
///
/// Numbers are in the shortest form that reads back to the same value, lists are JSON arrays, and what is missing is
/// empty. Dropped before [`finish`](Self::finish), the file leaves nothing behind.
pub struct CsvFile {
    path: PathBuf,
    part: Part,
    writer: Writer<BufWriter<File>>,
    columns: Vec<String>,
}

impl CsvFile {
    /// A file of the columns of `frame` that will be at `path`; it begins with their names.
    ///
    /// # Errors
    /// A path that cannot be written.
    pub fn create(path: &Path, frame: &DataFrame) -> Result<Self, FrameError> {
        let (part, file) = Part::create(path)?;
        let writer = WriterBuilder::new()
            .terminator(Terminator::Any(b'\n'))
            .from_writer(BufWriter::with_capacity(1 << 16, file));
        let columns = frame.columns().iter().map(|column| column.name().to_string()).collect();
        let mut file = Self { path: path.to_path_buf(), part, writer, columns };
        file.writer.write_record(&file.columns).map_err(|error| failed(&file.path, error))?;
        Ok(file)
    }

    /// Appends the rows of `frame`.
    ///
    /// # Errors
    /// A column of a kind that no table of the house has, or a disc that is full.
    pub fn write(&mut self, frame: &DataFrame) -> Result<(), FrameError> {
        let mut columns: Vec<Texts<'_>> = frame.columns().iter().map(texts).collect::<Result<_, _>>()?;
        for _ in 0..frame.height() {
            for column in &mut columns {
                let cell = column.next().flatten().unwrap_or_default();
                self.writer.write_field(cell).map_err(|error| failed(&self.path, error))?;
            }
            self.writer.write_record(None::<&[u8]>).map_err(|error| failed(&self.path, error))?;
        }
        Ok(())
    }

    /// Ends the file and gives it its name.
    ///
    /// # Errors
    /// A disc that is full, or a name that cannot be taken.
    pub fn finish(mut self) -> Result<(), FrameError> {
        self.writer.flush().map_err(|source| FileError::new("write", &self.path, source))?;
        drop(self.writer);
        Ok(self.part.take_name()?)
    }
}

/// The cells of a column one after the other; `None` for what is missing.
pub type Texts<'c> = Box<dyn Iterator<Item = Option<String>> + 'c>;

/// The cells of a column as CSV has them, before quoting.
///
/// # Errors
/// A column of a kind that no table of the house has.
pub fn texts(column: &Column) -> Result<Texts<'_>, FrameError> {
    let cells: Result<Texts<'_>, PolarsError> = match column.dtype() {
        DataType::String => {
            column.str().map(|cells| -> Texts<'_> { Box::new(cells.iter().map(|cell| cell.map(str::to_owned))) })
        }
        DataType::UInt64 => column
            .u64()
            .map(|cells| -> Texts<'_> { Box::new(cells.iter().map(|cell| cell.map(|number| number.to_string()))) }),
        DataType::Int64 => column
            .i64()
            .map(|cells| -> Texts<'_> { Box::new(cells.iter().map(|cell| cell.map(|number| number.to_string()))) }),
        DataType::Float64 => {
            column.f64().map(|cells| -> Texts<'_> { Box::new(cells.iter().map(|cell| cell.map(shortest))) })
        }
        DataType::List(_) => column.list().map(|lists| -> Texts<'_> {
            Box::new((0..lists.len()).map(move |place| {
                let list = lists.get_as_series(place)?;
                let numbers: Vec<String> = match list.u64() {
                    Ok(numbers) => numbers.iter().map(|number| number.unwrap_or_default().to_string()).collect(),
                    Err(_) => list.f64().ok()?.iter().map(|number| shortest(number.unwrap_or_default())).collect(),
                };
                Some(format!("[{}]", numbers.join(",")))
            }))
        }),
        other => {
            let message = format!("no CSV of a column of {other}");
            Err(PolarsError::InvalidOperation(message.into()))
        }
    };
    cells.map_err(FrameError::Encode)
}

fn failed(path: &Path, error: csv::Error) -> FrameError {
    FileError::new("write", path, error.into()).into()
}
