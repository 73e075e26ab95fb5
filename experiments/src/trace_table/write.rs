//! A table of traces under way: rows come in one by one and leave a batch at a time, in the end sorted by user.
//!
//! A batch is sorted before it leaves, so that only tables of several batches are sorted once more.

use std::path::{Path, PathBuf};

use haversack_reports::files::create_folder;
use haversack_reports::frame::{FrameError, ParquetFile};

use super::columns::ROWS;
use super::{Batch, TableError, sort};
use polars::prelude::IdxSize;

/// Row groups that are encoded at a time.
const AT_ONCE: usize = 32;

/// A table under way; dropped before [`Table::finish`], it leaves nothing behind.
pub(crate) struct Table<B> {
    file: ParquetFile,
    batch: B,
    rows: u64,
    path: PathBuf,
    /// The user of the last row, and whether users have come in order within the batch.
    last: String,
    batch_is_sorted: bool,
    /// The last user of the batches before, and whether these are in order.
    written: String,
    is_sorted: bool,
}

impl<B: Batch> Table<B> {
    /// A table that will be at `path`.
    ///
    /// # Errors
    /// A path that is no file, or a folder that cannot be written.
    pub(crate) fn create(path: &Path) -> Result<Self, TableError> {
        if path.file_name().is_none() {
            let path = path.display();
            return Err(TableError::Input(format!("--out: expected a file such as trace.parquet, found '{path}'")));
        }
        if path.is_dir() {
            return Err(TableError::Input(format!("--out: expected a file, found the folder '{}'", path.display())));
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            create_folder(folder).map_err(TableError::input)?;
        }
        let file = ParquetFile::create(path, &B::schema()).map_err(|error| match error {
            FrameError::File(error) => TableError::input(error),
            error => error.into(),
        })?;
        Ok(Self {
            file,
            batch: B::default(),
            rows: 0,
            path: path.to_path_buf(),
            last: String::new(),
            batch_is_sorted: true,
            written: String::new(),
            is_sorted: true,
        })
    }

    /// Appends a row.
    ///
    /// # Errors
    /// Rows that cannot be held as Parquet, or a file that cannot be written.
    pub(crate) fn push(&mut self, row: &B::Row<'_>) -> Result<(), FrameError> {
        let user = B::user(row);
        if user != self.last {
            self.batch_is_sorted &= *self.last <= *user;
            user.clone_into(&mut self.last);
        }
        self.batch.push(row);
        if self.batch.is_full() { self.flush() } else { Ok(()) }
    }

    /// Writes the batch.
    fn flush(&mut self) -> Result<(), FrameError> {
        let batch = std::mem::take(&mut self.batch);
        let rows = batch.rows();
        self.rows += rows as u64;
        let is_sorted = std::mem::replace(&mut self.batch_is_sorted, true);
        let order = if is_sorted { (0..rows as IdxSize).collect() } else { batch.by_user() };
        let (first, last) = (batch.user_at(order.first()), batch.user_at(order.last()));
        self.is_sorted &= *self.written <= *first;
        last.clone_into(&mut self.written);
        self.last.clear();
        for lot in order.chunks(ROWS * AT_ONCE) {
            let groups: Vec<&[IdxSize]> = lot.chunks(ROWS).collect();
            self.file.write_each(&groups, |rows| batch.frame(rows))?;
        }
        Ok(())
    }

    /// Writes what is left, and gives the file its name; the number of rows. Rows of a user stay in the order in which they
    /// came.
    ///
    /// # Errors
    /// As [`Table::push`].
    pub(crate) fn finish(mut self) -> Result<u64, TableError> {
        if self.batch.rows() > 0 {
            self.flush()?;
        }
        self.file.finish()?;
        if !self.is_sorted {
            sort::by_user(&self.path)?;
        }
        Ok(self.rows)
    }
}
