//! A table sorted by user, in bounded memory: parts of it at a time, each in files of its own where it is long.

use std::collections::BTreeMap;
use std::path::Path;

use haversack_reports::frame::{FrameError, ParquetFile};
use polars::prelude::{DataFrame, IdxCa, IdxSize, PolarsError};

use super::columns::ROWS;
use super::read::Reader;
use super::{TableError, USER};

/// Rows that are sorted in memory; more are divided first.
const AT_ONCE: usize = 1 << 22;
/// Files that a table is divided into at a time.
const PARTS: usize = 64;

/// Sorts the table at `path` by user; the rows of each stay in their order.
///
/// # Errors
/// A file that cannot be read or written.
pub(super) fn by_user(path: &Path) -> Result<(), TableError> {
    sort(path, AT_ONCE)
}

fn sort(path: &Path, at_once: usize) -> Result<(), TableError> {
    let reader = Reader::open(path)?;
    let counts = count(&reader)?;
    let Some(frame) = reader.groups().next() else { return Ok(()) };
    // Takes the table's place in the end.
    let mut sorted = ParquetFile::create(path, frame?.schema())?;
    append_sorted(&reader, &counts, at_once, path, &mut sorted)?;
    Ok(sorted.finish()?)
}

/// The number of rows of each user.
fn count(reader: &Reader) -> Result<BTreeMap<String, usize>, TableError> {
    let mut counts = BTreeMap::new();
    for frame in reader.groups() {
        for user in users(&frame?)? {
            *counts.entry(user).or_default() += 1;
        }
    }
    Ok(counts)
}

/// Appends all rows of `reader`, of whose users there are so many each, to `sorted`; parts lie beside `path` meanwhile.
fn append_sorted(
    reader: &Reader,
    counts: &BTreeMap<String, usize>,
    at_once: usize,
    path: &Path,
    sorted: &mut ParquetFile,
) -> Result<(), TableError> {
    let rows: usize = counts.values().sum();
    if rows <= at_once || counts.len() == 1 {
        return append_in_memory(reader, counts, sorted);
    }
    // Neighbouring users share a part.
    let share = rows.div_ceil(PARTS).max(at_once.min(rows));
    let mut part_of: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut part, mut filled) = (0, 0);
    for (user, count) in counts {
        if filled > 0 && filled + count > share {
            (part, filled) = (part + 1, 0);
        }
        filled += count;
        part_of.insert(user, part);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = |part: usize| folder.join(format!(".{}-{part}.part", name(path)));
    let places: Vec<_> = (0..=part).map(place).collect();
    let divided = divide(reader, &part_of, &places);
    let appended = divided.and_then(|()| {
        for place in &places {
            let reader = Reader::open(place)?;
            append_sorted(&reader, &count(&reader)?, at_once, place, sorted)?;
        }
        Ok(())
    });
    for place in &places {
        // One that was never written is gone already.
        let _ = std::fs::remove_file(place);
    }
    appended
}

/// Writes the rows of each part into its file.
fn divide(reader: &Reader, part_of: &BTreeMap<&str, usize>, places: &[std::path::PathBuf]) -> Result<(), TableError> {
    let mut files: Vec<Option<ParquetFile>> = places.iter().map(|_| None).collect();
    for frame in reader.groups() {
        let frame = frame?;
        let mut rows: Vec<Vec<IdxSize>> = vec![Vec::new(); places.len()];
        for (row, user) in (0..).zip(users(&frame)?) {
            if let Some(&part) = part_of.get(user.as_str()) {
                rows[part].push(row);
            }
        }
        for ((rows, file), place) in rows.into_iter().zip(&mut files).zip(places) {
            if rows.is_empty() {
                continue;
            }
            let file = match file {
                Some(file) => file,
                None => file.insert(ParquetFile::create(place, frame.schema())?),
            };
            file.write(&taken(&frame, rows)?)?;
        }
    }
    files.into_iter().flatten().try_for_each(ParquetFile::finish)?;
    Ok(())
}

fn append_in_memory(
    reader: &Reader,
    counts: &BTreeMap<String, usize>,
    sorted: &mut ParquetFile,
) -> Result<(), TableError> {
    let mut whole: Option<DataFrame> = None;
    for frame in reader.groups() {
        let frame = frame?;
        match &mut whole {
            None => whole = Some(frame),
            Some(whole) => {
                whole.vstack_mut(&frame).map_err(FrameError::Encode)?;
            }
        }
    }
    let Some(mut whole) = whole else { return Ok(()) };
    // Rows of many chunks are gathered slowly.
    whole.rechunk_mut();
    // A counting sort: where the next row of each user goes.
    let mut next: BTreeMap<&str, usize> = BTreeMap::new();
    let mut before = 0;
    for (user, count) in counts {
        next.insert(user, before);
        before += count;
    }
    let mut order: Vec<IdxSize> = vec![0; before];
    for (row, user) in (0..).zip(users(&whole)?) {
        if let Some(place) = next.get_mut(user.as_str()) {
            order[*place] = row;
            *place += 1;
        }
    }
    for rows in order.chunks(ROWS) {
        sorted.write(&taken(&whole, rows.to_vec())?)?;
    }
    Ok(())
}

/// The user of each row.
fn users(frame: &DataFrame) -> Result<Vec<String>, TableError> {
    let of = |error: PolarsError| FrameError::Encode(error);
    let column = frame.column(USER).and_then(|column| column.str()).map_err(of)?;
    Ok(column.iter().map(|user| user.unwrap_or_default().to_owned()).collect())
}

fn taken(frame: &DataFrame, rows: Vec<IdxSize>) -> Result<DataFrame, TableError> {
    Ok(frame.take(&IdxCa::from_vec("".into(), rows)).map_err(FrameError::Encode)?)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
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
