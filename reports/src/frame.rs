//! A polars data frame to Parquet and back, and to CSV; nothing else about data lives here.
//!
//! The bytes depend on the frame alone: one writer thread's order, one compression, no time or host in the metadata.

mod csv_file;

use std::fs::File;
use std::io::{BufWriter, Cursor};
use std::path::{Path, PathBuf};

use polars::io::parquet::write::BatchedWriter;
use polars::prelude::{DataFrame, ParquetCompression, ParquetReader, ParquetWriter, PolarsError, Schema, SerReader};

use rayon::prelude::*;

pub use csv_file::{CsvFile, Texts, texts};

use crate::files::{FileError, Part};

/// Why a data frame could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The file system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// The frame cannot be held as Parquet.
    #[error("cannot encode the data frame as Parquet: {0}")]
    Encode(#[source] PolarsError),
    /// A Parquet file could not be written: a disc that is full, or columns that Parquet does not have.
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What polars says.
        reason: PolarsError,
    },
    /// The file is not the Parquet that was expected.
    #[error("{}: not a readable Parquet file: {reason}", path.display())]
    Decode {
        /// The file.
        path: PathBuf,
        /// What polars found.
        reason: PolarsError,
    },
}

/// A Parquet file that is written batch by batch, beside its name, and takes the name when it is whole.
///
/// Each batch becomes a row group, so that a table of any length is written in the memory of one batch. Dropped before
/// [`finish`](Self::finish), the file leaves nothing behind.
pub struct ParquetFile {
    part: Part,
    writer: BatchedWriter<BufWriter<File>>,
}

impl ParquetFile {
    /// A file of the columns `schema` that will be at `path`.
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
    /// Rows that cannot be held as Parquet, or a disc that is full.
    pub fn write(&mut self, frame: &DataFrame) -> Result<(), FrameError> {
        self.writer.write_batch(frame).map_err(|error| refused(&self.part, error))
    }

    /// Appends frames, one of each of `parts`, in their order; they are made and encoded on the threads of the present
    /// rayon pool.
    ///
    /// # Errors
    /// Rows that cannot be held as Parquet, or a disc that is full.
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

    /// Ends the file and gives it its name.
    ///
    /// # Errors
    /// A disc that is full, or a name that cannot be taken.
    pub fn finish(self) -> Result<(), FrameError> {
        self.writer.finish().map_err(|error| refused(&self.part, error))?;
        drop(self.writer);
        Ok(self.part.take_name()?)
    }
}

/// What polars says of a file that is written.
fn refused(part: &Part, reason: PolarsError) -> FrameError {
    FrameError::Write { path: part.path().to_path_buf(), reason }
}

/// Writes the frame to `path` as Parquet, atomically, in one batch.
///
/// # Errors
/// As those of a [`ParquetFile`].
pub fn write_parquet(path: &Path, frame: &DataFrame) -> Result<(), FrameError> {
    let mut file = ParquetFile::create(path, frame.schema())?;
    file.write(frame)?;
    file.finish()
}

/// Reads a Parquet file whole.
///
/// # Errors
/// [`FrameError::File`] where it cannot be opened, [`FrameError::Decode`] where it is not Parquet.
pub fn read_parquet(path: &Path) -> Result<DataFrame, FrameError> {
    let bytes = std::fs::read(path).map_err(|source| FileError::new("read", path, source))?;
    ParquetReader::new(Cursor::new(bytes))
        .finish()
        .map_err(|reason| FrameError::Decode { path: path.to_path_buf(), reason })
}
