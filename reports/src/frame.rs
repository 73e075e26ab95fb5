//! A polars data frame to Parquet and back; nothing else about data lives here.
//!
//! The bytes depend on the frame alone: one writer thread's order, one compression, no time or host in the metadata.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use polars::prelude::{DataFrame, ParquetCompression, ParquetReader, ParquetWriter, PolarsError, SerReader};

use crate::files::{FileError, write_atomically};

/// Why a data frame could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The file system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// The frame cannot be held as Parquet.
    #[error("cannot encode the data frame as Parquet: {0}")]
    Encode(#[source] PolarsError),
    /// The file is not the Parquet that was expected.
    #[error("{}: not a readable Parquet file: {reason}", path.display())]
    Decode {
        /// The file.
        path: PathBuf,
        /// What polars found.
        reason: PolarsError,
    },
}

/// The frame as Parquet bytes.
///
/// # Errors
/// [`FrameError::Encode`] where a column cannot be held as Parquet.
pub fn to_parquet(frame: &DataFrame) -> Result<Vec<u8>, FrameError> {
    // The writer wants `&mut` only to align chunks, which a copy of the handles can do as well.
    let mut frame = frame.clone();
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes)
        .with_compression(ParquetCompression::Snappy)
        .set_parallel(false)
        .finish(&mut frame)
        .map_err(FrameError::Encode)?;
    Ok(bytes)
}

/// Writes the frame to `path` as Parquet, atomically.
///
/// # Errors
/// [`FrameError::Encode`], or [`FrameError::File`] with the path and the cause.
pub fn write_parquet(path: &Path, frame: &DataFrame) -> Result<(), FrameError> {
    Ok(write_atomically(path, &to_parquet(frame)?)?)
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
