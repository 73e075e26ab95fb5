//! A Parquet file that is written batch by batch, beside its name, and takes it when it is whole.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use haversack_reports::FileError;
use haversack_reports::files::create_folder;
use haversack_reports::frame::FrameError;
use polars::io::parquet::write::BatchedWriter;
use polars::prelude::{ParquetCompression, ParquetWriter};

use super::columns::Batch;
use crate::error::CommandError;

/// A table under way; dropped before [`Table::finish`], it leaves nothing behind.
pub(super) struct Table<B> {
    path: PathBuf,
    part: Part,
    writer: BatchedWriter<BufWriter<File>>,
    batch: B,
    rows: u64,
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

impl<B: Batch> Table<B> {
    /// A table that will be at `path`.
    pub(super) fn create(path: &Path) -> Result<Self, CommandError> {
        let name = path.file_name().ok_or_else(|| {
            CommandError::input(format!("--out: expected a file such as trace.parquet, found '{}'", path.display()))
        })?;
        if path.is_dir() {
            return Err(CommandError::input(format!("--out: expected a file, found the folder '{}'", path.display())));
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            create_folder(folder).map_err(CommandError::input)?;
        }
        let mut part = std::ffi::OsString::from(".");
        part.push(name);
        part.push(".part");
        let part = path.with_file_name(part);
        let file = File::create(&part).map_err(|source| CommandError::input(failed(path, source)))?;
        let part = Part(Some(part));
        let writer = ParquetWriter::new(BufWriter::with_capacity(1 << 20, file))
            .with_compression(ParquetCompression::Snappy)
            .set_parallel(false)
            .batched(&B::schema())
            .map_err(FrameError::Encode)?;
        Ok(Self { path: path.to_path_buf(), part, writer, batch: B::default(), rows: 0 })
    }

    /// Appends a row.
    pub(super) fn push(&mut self, row: &B::Row<'_>) -> Result<(), FrameError> {
        self.batch.push(row);
        if self.batch.is_full() { self.flush() } else { Ok(()) }
    }

    /// Writes the batch.
    fn flush(&mut self) -> Result<(), FrameError> {
        self.rows += self.batch.rows() as u64;
        let frame = self.batch.take().map_err(FrameError::Encode)?;
        self.writer.write_batch(&frame).map_err(FrameError::Encode)
    }

    /// Writes what is left, and gives the file its name; the number of rows.
    pub(super) fn finish(mut self) -> Result<u64, CommandError> {
        if self.batch.rows() > 0 {
            self.flush()?;
        }
        self.writer.finish().map_err(FrameError::Encode)?;
        let Self { path, mut part, writer, rows, .. } = self;
        drop(writer);
        if let Some(from) = part.0.as_deref() {
            let written = File::open(from).and_then(|file| file.sync_all()).and_then(|()| fs::rename(from, &path));
            written.map_err(|source| failed(&path, source))?;
            part.0 = None;
        }
        Ok(rows)
    }
}

fn failed(path: &Path, source: std::io::Error) -> FileError {
    FileError { action: "write", path: path.to_path_buf(), source }
}
