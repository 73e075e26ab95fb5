//! A polars data frame to Parquet and back, and to CSV.
//!
//! The bytes depend only on the frame: the order of one writer thread, one compression, no time
//! or host in the metadata.
//!
//! A CSV file has the same rows as the Parquet file that it accompanies.

use std::fs::File;
use std::io::{BufWriter, Cursor};
use std::path::{Path, PathBuf};

use csv::{Terminator, Writer, WriterBuilder};
use polars::io::parquet::write::BatchedWriter;
use polars::prelude::{
    Column, DataFrame, DataType, ParquetCompression, ParquetReader, ParquetWriter, PolarsError, Schema, SerReader,
};
use rayon::prelude::*;

use crate::files::{FileError, Part};
use crate::table::shortest;

/// Why a data frame could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The file system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// The frame cannot be encoded as Parquet.
    #[error("cannot encode the data frame as Parquet: {0}")]
    Encode(#[source] PolarsError),
    /// A Parquet file could not be written: a disc that is full, or columns that Parquet does not have.
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of polars.
        reason: PolarsError,
    },
    /// The file is not valid Parquet.
    #[error("{}: not a readable Parquet file: {reason}", path.display())]
    Decode {
        /// The file.
        path: PathBuf,
        /// The error of polars.
        reason: PolarsError,
    },
}

/// A Parquet file that is written batch by batch to a temporary file, and gets its name when it is complete.
///
/// Each batch becomes a row group, so that writing a table of any length needs the memory of only one batch. If it is
/// dropped before [`finish`](Self::finish), nothing is left behind.
pub struct ParquetFile {
    part: Part,
    writer: BatchedWriter<BufWriter<File>>,
}

impl ParquetFile {
    /// A file of the columns `schema` whose final path is `path`.
    ///
    /// # Errors
    /// A path that cannot be written, or columns that Parquet does not have.
    pub fn create(path: &Path, schema: &Schema) -> Result<Self, FrameError> {
        let (part, file) = Part::create(path)?;
        let writer = ParquetWriter::new(BufWriter::with_capacity(1 << 20, file))
            .with_compression(ParquetCompression::Snappy)
            .set_parallel(false)
            .batched(schema)
            .map_err(|error| refused(&part, error))?;
        Ok(Self { part, writer })
    }

    /// Appends the rows of `frame`.
    ///
    /// # Errors
    /// Rows that cannot be encoded as Parquet, or a disc that is full.
    pub fn write(&mut self, frame: &DataFrame) -> Result<(), FrameError> {
        self.writer.write_batch(frame).map_err(|error| refused(&self.part, error))
    }

    /// Appends frames, one of each of `parts`, in their order; they are made and encoded on the threads
    /// of the current rayon pool.
    ///
    /// # Errors
    /// Rows that cannot be encoded as Parquet, or a disc that is full.
    pub fn write_each<P: Sync>(
        &mut self,
        parts: &[P],
        frame: impl Fn(&P) -> Result<DataFrame, PolarsError> + Sync,
    ) -> Result<(), FrameError> {
        let writer = &self.writer;
        let encode = |part: &P| {
            let frame = frame(part)?;
            writer.encode_and_compress(&frame).collect::<Result<Vec<_>, _>>()
        };
        let encoded: Result<Vec<_>, _> = parts.par_iter().with_max_len(1).map(encode).collect();
        let groups = encoded.map_err(FrameError::Encode)?.into_iter().flatten().collect();
        self.writer.write_row_groups(groups).map_err(|error| refused(&self.part, error))
    }

    /// Completes the file, which does not have its name yet.
    ///
    /// # Errors
    /// A disc that is full.
    pub fn whole(self) -> Result<Part, FrameError> {
        self.writer.finish().map_err(|error| refused(&self.part, error))?;
        Ok(self.part)
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// A disc that is full, or a rename that fails.
    pub fn finish(self) -> Result<(), FrameError> {
        Ok(self.whole()?.take_name()?)
    }
}

/// The error of polars about a file that is being written.
fn refused(part: &Part, reason: PolarsError) -> FrameError {
    FrameError::Write { path: part.path.clone(), reason }
}

/// Writes the frame to `path` as Parquet, atomically, in one batch.
///
/// # Errors
/// As for a [`ParquetFile`].
pub fn write_parquet(path: &Path, frame: &DataFrame) -> Result<(), FrameError> {
    let mut file = ParquetFile::create(path, frame.schema())?;
    file.write(frame)?;
    file.finish()
}

/// Reads a whole Parquet file.
///
/// # Errors
/// [`FrameError::File`] if it cannot be opened, [`FrameError::Decode`] if it is not Parquet.
pub fn read_parquet(path: &Path) -> Result<DataFrame, FrameError> {
    let bytes = std::fs::read(path).map_err(|source| FileError::new("read", path, source))?;
    ParquetReader::new(Cursor::new(bytes))
        .finish()
        .map_err(|reason| FrameError::Decode { path: path.to_path_buf(), reason })
}

/// A CSV file (RFC 4180, lines end with LF) that is written batch by batch, as a [`ParquetFile`] is.
///
/// Numbers are in the shortest form that reads back to the same value, lists are JSON arrays, and missing values are
/// empty. If it is dropped before [`finish`](Self::finish), nothing is left behind.
pub struct CsvFile {
    part: Part,
    writer: Writer<BufWriter<File>>,
}

impl CsvFile {
    /// A file of the columns of `frame` whose final path is `path`; it begins with their names.
    ///
    /// # Errors
    /// A path that cannot be written.
    pub fn create(path: &Path, frame: &DataFrame) -> Result<Self, FrameError> {
        let (part, file) = Part::create(path)?;
        let mut writer = WriterBuilder::new()
            .terminator(Terminator::Any(b'\n'))
            .from_writer(BufWriter::with_capacity(1 << 16, file));
        let names = frame.columns().iter().map(|column| column.name().as_str());
        writer.write_record(names).map_err(|error| failed(path, error))?;
        Ok(Self { part, writer })
    }

    /// Appends the rows of `frame`.
    ///
    /// # Errors
    /// A column of an unsupported type, or a disc that is full.
    pub fn write(&mut self, frame: &DataFrame) -> Result<(), FrameError> {
        let mut columns: Vec<Texts<'_>> = frame.columns().iter().map(texts).collect::<Result<_, _>>()?;
        for _ in 0..frame.height() {
            for column in &mut columns {
                let cell = column.next().flatten().unwrap_or_default();
                self.writer.write_field(cell).map_err(|error| failed(&self.part.path, error))?;
            }
            self.writer.write_record(None::<&[u8]>).map_err(|error| failed(&self.part.path, error))?;
        }
        Ok(())
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// A disc that is full, or a rename that fails.
    pub fn finish(mut self) -> Result<(), FrameError> {
        self.writer.flush().map_err(|source| FileError::new("write", &self.part.path, source))?;
        drop(self.writer);
        Ok(self.part.take_name()?)
    }
}

/// The cells of a column one after the other; `None` for a missing value.
pub type Texts<'c> = Box<dyn Iterator<Item = Option<String>> + 'c>;

/// The cells of a column in CSV's notation, before quoting.
///
/// # Errors
/// A column of an unsupported type.
pub fn texts(column: &Column) -> Result<Texts<'_>, FrameError> {
    let cells: Result<Texts<'_>, PolarsError> = match column.dtype() {
        DataType::String | DataType::UInt64 | DataType::Int64 => column.cast(&DataType::String).and_then(|cells| {
            let cells = cells.str()?.clone();
            Ok(Box::new((0..cells.len()).map(move |place| cells.get(place).map(str::to_owned))) as Texts<'_>)
        }),
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
