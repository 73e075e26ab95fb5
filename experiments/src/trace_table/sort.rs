//! A table sorted by user, in bounded memory: so many neighbouring users at a time.
//!
//! Batches were sorted before they were written, so that most row groups say that they hold few users, and are read for those
//! alone.

use std::collections::BTreeMap;
use std::path::Path;

use haversack_reports::frame::{FrameError, ParquetFile};
use polars::prelude::{DataFrame, IdxCa, IdxSize};

use super::columns::ROWS;
use super::read::Reader;
use super::{TableError, USER};

/// Rows that are sorted at a time; a user who has more is alone.
const AT_ONCE: usize = 1 << 22;

/// Sorts the table at `path` by user; the rows of each stay in their order.
///
/// # Errors
/// A file that cannot be read or written.
pub(super) fn by_user(path: &Path) -> Result<(), TableError> {
    sort(path, AT_ONCE)
}

fn sort(path: &Path, at_once: usize) -> Result<(), TableError> {
    let reader = Reader::open(path)?;
    let Some(frame) = reader.groups().next() else { return Ok(()) };
    // Takes the table's place in the end.
    let mut sorted = ParquetFile::create(path, frame?.schema())?;
    for [first, last] in lots(&count(&reader)?, at_once) {
        append(&reader, first, last, &mut sorted)?;
    }
    Ok(sorted.finish()?)
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

/// The first and the last user of each lot of neighbours that have no more than `at_once` rows together.
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
    // Rows of many chunks are gathered slowly.
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
    use haversack_traces::row::{CounterRow, UtcTime};

    use super::super::{Counters, Table};
    use super::*;

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
        // 300 rows of 7 users in turn; two rows that differ in nothing but their value keep their order.
        let mut table = Table::<Counters>::create(&path).unwrap();
        let users: Vec<String> = (0..7).map(|user| format!("user-{}", (user * 3) % 7)).collect();
        for row in 0..300 {
            let user = &users[row % 7];
            let row = CounterRow { user, time: UtcTime(0), counter: "c", value: row as f64 };
            table.push(&row).unwrap();
        }
        assert_eq!(table.finish().unwrap(), 300);
        let found = rows(&path);
        let mut wanted: Vec<(String, f64)> = (0..300).map(|row| (users[row % 7].clone(), row as f64)).collect();
        wanted.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(found, wanted);
        // In the memory of 50 rows it is the same, and nothing else is left.
        let other = folder.path().join("other.parquet");
        let mut table = Table::<Counters>::create(&other).unwrap();
        for (user, value) in found.iter().rev() {
            table.push(&CounterRow { user, time: UtcTime(0), counter: "c", value: *value }).unwrap();
        }
        table.finish().unwrap();
        sort(&other, 50).unwrap();
        let reversed: Vec<_> = wanted.chunk_by(|a, b| a.0 == b.0).flat_map(|of| of.iter().rev()).cloned().collect();
        assert_eq!(rows(&other), reversed);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.users().unwrap().len(), 7);
        assert_eq!(reader.groups_of("user-3").map(|frame| frame.unwrap().height()).sum::<usize>(), 43);
        assert_eq!(reader.first_user().unwrap().as_deref(), Some("user-0"));
    }
}
