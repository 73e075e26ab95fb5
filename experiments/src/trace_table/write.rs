//! Writing a table of traces: rows come in one by one and are written in batches, in the end sorted by user.
//!
//! A batch is sorted before it is written, so that only tables of several batches are sorted again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haversack_reports::{FrameError, ParquetFile, Part, create_folder};
use polars::prelude::{DataFrame, IdxCa, IdxSize, Schema};

use super::columns::ROWS;
use super::read::Reader;
use super::{Batch, TableError, USER};

/// Row groups that are encoded in parallel.
const AT_ONCE: usize = 32;

/// A table being written; if dropped before [`Table::finish`], it leaves no file behind.
pub(crate) struct Table<B> {
    file: ParquetFile,
    batch: B,
    rows: u64,
    path: PathBuf,
    /// The user of the last row, and whether users came in order within the batch.
    last: String,
    batch_is_sorted: bool,
    /// The last user of the batches before, and whether these are in order.
    written: String,
    is_sorted: bool,
}

impl<B: Batch> Table<B> {
    /// Begins a table that will be at `path`.
    ///
    /// # Errors
    /// A path that is not a file, or a folder that cannot be written.
    pub(crate) fn create(path: &Path) -> Result<Self, TableError> {
        if path.file_name().is_none() {
            let path = path.display();
            return Err(TableError::Input(format!("--out: expected a file such as trace.parquet, found '{path}'")));
        }
        if path.exists() && !path.is_file() {
            let what = if path.is_dir() { "folder" } else { "device" };
            return Err(TableError::Input(format!("--out: expected a file, found the {what} '{}'", path.display())));
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
    /// Rows that cannot be stored as Parquet, or a file that cannot be written.
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

    /// Writes the remaining rows; returns the file, not yet renamed to its final name, and the number of rows. Rows of
    /// a user stay in the order in which they came.
    ///
    /// # Errors
    /// As [`Table::push`].
    pub(crate) fn finish(mut self) -> Result<(Part, u64), TableError> {
        if self.batch.rows() > 0 {
            self.flush()?;
        }
        let table = self.file.whole()?;
        let table = if self.is_sorted { table } else { sort(table.written(), &self.path, &B::schema(), ROWS_AT_ONCE)? };
        Ok((table, self.rows))
    }
}

/// Rows that are sorted together; a user with more is sorted alone.
const ROWS_AT_ONCE: usize = 1 << 22;

/// Sorts the table at `path` by user into a file that will be at `to`, `at_once` rows of neighbouring users at a time;
/// the rows of each user stay in their order. Batches were sorted before, so most row groups have few users, and are
/// read only for those.
///
/// # Errors
/// A file that cannot be read or written.
fn sort(path: &Path, to: &Path, schema: &Schema, at_once: usize) -> Result<Part, TableError> {
    let reader = Reader::open(path)?;
    let mut sorted = ParquetFile::create(to, schema)?;
    for [first, last] in lots(&count(&reader)?, at_once) {
        append(&reader, first, last, &mut sorted)?;
    }
    Ok(sorted.whole()?)
}

/// The number of rows of each user.
fn count(reader: &Reader) -> Result<BTreeMap<String, usize>, TableError> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for frame in reader.groups() {
        for user in users(&frame?)? {
            match counts.get_mut(user) {
                Some(count) => *count += 1,
                None => drop(counts.insert(user.to_owned(), 1)),
            }
        }
    }
    Ok(counts)
}

/// The first and the last user of each group of neighbours with at most `at_once` rows together.
fn lots(counts: &BTreeMap<String, usize>, at_once: usize) -> Vec<[&str; 2]> {
    let mut lots: Vec<[&str; 2]> = Vec::new();
    let mut filled = 0;
    for (user, count) in counts {
        match lots.last_mut() {
            Some([_, last]) if filled + count <= at_once => *last = user,
            _ => {
                lots.push([user, user]);
                filled = 0;
            }
        }
        filled += count;
    }
    lots
}

/// Appends the rows of the users from `first` to `last` to `sorted`.
fn append(reader: &Reader, first: &str, last: &str, sorted: &mut ParquetFile) -> Result<(), TableError> {
    let mut whole = DataFrame::empty();
    for frame in reader.groups_between(first, last) {
        let frame = frame?;
        let is_of_lot = |(_, user): &(IdxSize, &str)| (first..=last).contains(user);
        let rows = (0..).zip(users(&frame)?).filter(is_of_lot).map(|(row, _)| row).collect();
        let part = taken(&frame, rows)?;
        if whole.width() == 0 {
            whole = part;
        } else {
            whole.vstack_mut(&part).map_err(FrameError::Encode)?;
        }
    }
    // Gathering from many chunks is slow.
    whole.rechunk_mut();
    let mut order: Vec<(&str, IdxSize)> = users(&whole)?.zip(0..).collect();
    order.sort_by_key(|&(user, _)| user);
    for rows in order.chunks(ROWS) {
        sorted.write(&taken(&whole, rows.iter().map(|&(_, row)| row).collect())?)?;
    }
    Ok(())
}

/// The user of each row.
fn users(frame: &DataFrame) -> Result<impl Iterator<Item = &str>, TableError> {
    let column = frame.column(USER).and_then(|column| column.str()).map_err(FrameError::Encode)?;
    Ok(column.iter().map(Option::unwrap_or_default))
}

fn taken(frame: &DataFrame, rows: Vec<IdxSize>) -> Result<DataFrame, TableError> {
    Ok(frame.take(&IdxCa::from_vec("".into(), rows)).map_err(FrameError::Encode)?)
}

#[cfg(test)]
mod tests {
    use super::super::{Counters, Table};
    use super::*;
    use haversack_traces::row::{CounterRow, UtcTime};

    /// The users and values of the table at `path`, row by row.
    fn rows(path: &Path) -> Vec<(String, f64)> {
        let reader = Reader::open(path).unwrap();
        let mut rows = Vec::new();
        for frame in reader.groups() {
            reader.counters(&frame.unwrap(), |row| rows.push((row.user.to_owned(), row.value))).unwrap();
        }
        rows
    }

    #[test]
    fn rows_are_sorted_by_user_and_keep_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        // 300 rows of 7 users in turn; two rows that differ only in their value keep their order.
        let mut table = Table::<Counters>::create(&path).unwrap();
        let users: Vec<String> = (0..7).map(|user| format!("user-{}", (user * 3) % 7)).collect();
        for row in 0..300 {
            let user = &users[row % 7];
            let row = CounterRow { user, time: UtcTime(0), counter: "c", value: row as f64 };
            table.push(&row).unwrap();
        }
        let (table, number) = table.finish().unwrap();
        table.take_name().unwrap();
        assert_eq!(number, 300);
        let found = rows(&path);
        let mut wanted: Vec<(String, f64)> = (0..300).map(|row| (users[row % 7].clone(), row as f64)).collect();
        wanted.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(found, wanted);
        // With memory for only 50 rows the result is the same, and no other file is left.
        let other = folder.path().join("other.parquet");
        let mut table = Table::<Counters>::create(&other).unwrap();
        for (user, value) in found.iter().rev() {
            table.push(&CounterRow { user, time: UtcTime(0), counter: "c", value: *value }).unwrap();
        }
        table.finish().unwrap().0.take_name().unwrap();
        sort(&other, &other, &Counters::schema(), 50).unwrap().take_name().unwrap();
        let reversed: Vec<_> = wanted.chunk_by(|a, b| a.0 == b.0).flat_map(|of| of.iter().rev()).cloned().collect();
        assert_eq!(rows(&other), reversed);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.users().unwrap().len(), 7);
        assert_eq!(reader.groups_of("user-3").map(|frame| frame.unwrap().height()).sum::<usize>(), 43);
        assert_eq!(reader.first_user().unwrap().as_deref(), Some("user-0"));
    }
}
