//! A Parquet file that is written batch by batch, beside its name, and takes the name when it is whole.
//!
//! Each batch becomes a row group, so a table of any length is written in the memory of one batch.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use haversack_reports::FileError;
use haversack_reports::frame::FrameError;
use polars::io::parquet::write::BatchedWriter;
use polars::prelude::{DataFrame, ParquetCompression, ParquetWriter, Schema};

/// A file under way; dropped before [`ParquetFile::finish`], it leaves nothing behind.
pub(crate) struct ParquetFile {
    path: PathBuf,
    part: Part,
    writer: BatchedWriter<BufWriter<File>>,
}

/// A file that goes away with its owner, unless it has been renamed.
struct Part(Option<PathBuf>);

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // There is nobody left to tell.
            let _ = fs::remove_file(path);
        }
    }
}

impl ParquetFile {
    /// A file of the columns `schema` that will be at `path`.
    ///
    /// # Errors
    /// A path that cannot be written, or columns that Parquet does not have.
    pub(crate) fn create(path: &Path, schema: &Schema) -> Result<Self, FrameError> {
        let mut part = std::ffi::OsString::from(".");
        part.push(path.file_name().unwrap_or_default());
        part.push(".part");
        let part = path.with_file_name(part);
        let file = File::create(&part).map_err(|source| failed(path, source))?;
        let part = Part(Some(part));
        let writer = ParquetWriter::new(BufWriter::with_capacity(1 << 20, file))
            .with_compression(ParquetCompression::Snappy)
            .set_parallel(false)
            .batched(schema)
            .map_err(FrameError::Encode)?;
        Ok(Self { path: path.to_path_buf(), part, writer })
    }

    /// Appends the rows of `frame`.
    ///
    /// # Errors
    /// Rows that cannot be held as Parquet, or a disc that is full.
    pub(crate) fn write(&mut self, frame: &DataFrame) -> Result<(), FrameError> {
        self.writer.write_batch(frame).map_err(FrameError::Encode)
    }

    /// Ends the file and gives it its name.
    ///
    /// # Errors
    /// A disc that is full, or a name that cannot be taken.
    pub(crate) fn finish(self) -> Result<(), FrameError> {
        self.writer.finish().map_err(FrameError::Encode)?;
        let Self { path, mut part, writer } = self;
        drop(writer);
        if let Some(from) = part.0.as_deref() {
            let written = File::open(from).and_then(|file| file.sync_all()).and_then(|()| fs::rename(from, &path));
            written.map_err(|source| failed(&path, source))?;
            part.0 = None;
        }
        Ok(())
    }
}

fn failed(path: &Path, source: io::Error) -> FileError {
    FileError { action: "write", path: path.to_path_buf(), source }
}
