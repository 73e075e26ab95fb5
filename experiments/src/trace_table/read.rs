//! A table of traces, read a row group at a time.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haversack_reports::{FileError, FrameError};
use haversack_traces::{AppRow, Confidence, CounterRow, OomAdj, Source, UtcTime};
use polars::prelude::{
    Column, DataFrame, DataType, FileMetadataRef, ParallelStrategy, ParquetReader, PolarsError, SerReader,
};

use super::{APP_COLUMNS, COUNTER_COLUMNS, TableError, USER};
use haversack_devices::text::hint;

/// The end of the times of a trace: early in 2242, before nanoseconds run out.
const LATEST: f64 = 8.6e9;

/// The kind of table in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// The activity of apps.
    Apps,
    /// The values of counters.
    Counters,
}

/// A file of a table.
pub struct Reader {
    path: PathBuf,
    /// Which table it is.
    pub holds: Holds,
    metadata: FileMetadataRef,
    /// The metadata without row groups.
    bare: FileMetadataRef,
    groups: Vec<Group>,
}

/// A row group: its position, the number of rows, and its first and last user by name, where the file's
/// metadata has them.
struct Group {
    place: usize,
    rows: usize,
    users: Option<(String, String)>,
}

impl Group {
    /// Whether rows of users from `first` to `last` may be in it.
    fn may_have(&self, first: &str, last: &str) -> bool {
        self.users.as_ref().is_none_or(|(least, most)| least.as_str() <= last && first <= most.as_str())
    }
}

impl Reader {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// A file that cannot be read, or that is not a table of traces.
    pub fn open(path: &Path) -> Result<Self, TableError> {
        let mut reader = ParquetReader::new(open(path)?);
        let wrong = |reason: PolarsError| TableError::input(decode(path, reason));
        let metadata = reader.get_metadata().map_err(wrong)?.clone();
        let schema = reader.schema().map_err(wrong)?;
        let names: Vec<&str> = schema.iter_names().map(|name| name.as_str()).collect();
        let missing = |columns: &[&'static str]| columns.iter().find(|column| !names.contains(column)).copied();
        let holds = match (missing(&APP_COLUMNS), missing(&COUNTER_COLUMNS)) {
            (None, _) => Holds::Apps,
            (_, None) => Holds::Counters,
            (Some(column), _) => {
                return Err(TableError::input(format!(
                    "{}: expected the columns {}, or {}; it lacks {column}{}",
                    path.display(),
                    APP_COLUMNS.join(", "),
                    COUNTER_COLUMNS.join(", "),
                    hint(column, names.iter().copied())
                )));
            }
        };
        let text = |bytes: &Option<Vec<u8>>| bytes.as_ref().and_then(|bytes| String::from_utf8(bytes.clone()).ok());
        let groups = metadata.row_groups.iter().enumerate().map(|(place, group)| {
            let column = group.columns_under_root_iter(USER).and_then(|mut columns| columns.next());
            let statistics = column.and_then(|column| column.statistics(&metadata.footer_buf)).and_then(Result::ok);
            let bounds = statistics.as_ref().and_then(|statistics| statistics.as_binary());
            let users = bounds.and_then(|bounds| text(&bounds.min_value).zip(text(&bounds.max_value)));
            Group { place, rows: group.num_rows(), users }
        });
        let groups = groups.collect();
        let mut bare = (*metadata).clone();
        bare.row_groups.clear();
        Ok(Self { path: path.to_path_buf(), holds, metadata, bare: Arc::new(bare), groups })
    }

    /// The row groups, one after the other.
    pub fn groups(&self) -> impl Iterator<Item = Result<DataFrame, TableError>> {
        self.groups.iter().map(|group| self.read(group, self.columns()))
    }

    /// The row groups that may have rows of users from `first` to `last`.
    pub(super) fn groups_between(
        &self,
        first: &str,
        last: &str,
    ) -> impl Iterator<Item = Result<DataFrame, TableError>> {
        let groups = self.groups.iter().filter(move |group| group.may_have(first, last));
        groups.map(|group| self.read(group, self.columns()))
    }

    /// The rows of `user`, one frame per contiguous range.
    ///
    /// They are sliced, not gathered: polars gathers on its own thread pool, and a thread of the pool that waits may be
    /// given other work, which would wait for this same table.
    pub fn groups_of(&self, user: &str) -> impl Iterator<Item = Result<DataFrame, TableError>> {
        let stretches = move |group: &Group| -> Result<Vec<DataFrame>, TableError> {
            let frame = self.read(group, self.columns())?;
            let wrong = |reason| TableError::input(decode(&self.path, reason));
            let users = frame.column(USER).and_then(|column| column.str().cloned()).map_err(wrong)?;
            let mut stretches: Vec<Range<usize>> = Vec::new();
            for (row, _) in users.iter().enumerate().filter(|(_, found)| *found == Some(user)) {
                match stretches.last_mut().filter(|last| last.end == row) {
                    Some(last) => last.end += 1,
                    None => stretches.push(row..row + 1),
                }
            }
            let cut = |rows: Range<usize>| frame.slice(i64::try_from(rows.start).unwrap_or(i64::MAX), rows.len());
            Ok(stretches.into_iter().map(cut).collect())
        };
        self.groups.iter().filter(move |group| group.may_have(user, user)).flat_map(move |group| {
            match stretches(group) {
                Ok(frames) => frames.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            }
        })
    }

    /// The user of the first row; `None` if the table has no rows.
    ///
    /// # Errors
    /// A row group that cannot be read.
    pub fn first_user(&self) -> Result<Option<String>, TableError> {
        let Some(group) = self.groups.first() else { return Ok(None) };
        let first = Group { place: group.place, rows: group.rows.min(1), users: None };
        Ok(self.users_in(&first)?.into_iter().next())
    }

    /// Every user once, sorted by name.
    ///
    /// # Errors
    /// A row group that cannot be read.
    pub fn users(&self) -> Result<Vec<String>, TableError> {
        let mut users = BTreeSet::new();
        for group in &self.groups {
            match &group.users {
                // All rows have the same user.
                Some((first, last)) if first == last => users.extend([first.clone()]),
                _ => users.extend(self.users_in(group)?),
            }
        }
        Ok(users.into_iter().collect())
    }

    /// The users of a group, once per contiguous range of rows.
    fn users_in(&self, group: &Group) -> Result<Vec<String>, TableError> {
        let frame = self.read(group, &[USER])?;
        let column = frame.column(USER).and_then(|column| column.str().cloned());
        let column = column.map_err(|reason| TableError::input(decode(&self.path, reason)))?;
        let mut users: Vec<String> = Vec::new();
        for user in column.iter().flatten() {
            if users.last().is_none_or(|last| last != user) {
                users.push(user.to_owned());
            }
        }
        Ok(users)
    }

    fn columns(&self) -> &'static [&'static str] {
        match self.holds {
            Holds::Apps => &APP_COLUMNS,
            Holds::Counters => &COUNTER_COLUMNS,
        }
    }

    fn read(&self, group: &Group, columns: &[&str]) -> Result<DataFrame, TableError> {
        let mut reader = ParquetReader::new(open(&self.path)?)
            .with_slice(Some((0, group.rows)))
            .with_columns(Some(columns.iter().map(|&column| column.to_owned()).collect()))
            .read_parallel(ParallelStrategy::None)
            .set_rechunk(true);
        // Hide the other groups: polars looks at all earlier ones.
        let mut alone = (*self.bare).clone();
        alone.row_groups.extend(self.metadata.row_groups.get(group.place).cloned());
        alone.num_rows = alone.row_groups.iter().map(|group| group.num_rows()).sum();
        alone.max_row_group_height = alone.num_rows;
        reader.set_metadata(Arc::new(alone));
        reader.finish().map_err(|reason| TableError::input(decode(&self.path, reason)))
    }

    /// Gives every row of a group of apps to `see`.
    ///
    /// # Errors
    /// A row with values that no trace can have.
    pub fn apps(&self, frame: &DataFrame, mut see: impl FnMut(AppRow<'_>)) -> Result<(), TableError> {
        let wrong = |reason| TableError::input(decode(&self.path, reason));
        let [user, time, package, adj, source, confidence] = APP_COLUMNS.map(|name| frame.column(name).map_err(wrong));
        let (time, adj) = (real(time?).map_err(wrong)?, adj?.cast(&DataType::Int32).map_err(wrong)?);
        let (user, package) = (user?.str().map_err(wrong)?, package?.str().map_err(wrong)?);
        let (source, confidence) = (source?.str().map_err(wrong)?, confidence?.str().map_err(wrong)?);
        let rows = user.iter().zip(time.f64().map_err(wrong)?.iter()).zip(package.iter());
        let rows = rows.zip(adj.i32().map_err(wrong)?.iter()).zip(source.iter()).zip(confidence.iter());
        for (((((user, time), package), adj), source), confidence) in rows {
            let source_of = source.and_then(|word| word.parse::<Source>().ok());
            let confidence_of = confidence.and_then(|word| word.parse::<Confidence>().ok());
            let adj_of = adj.and_then(|adj| OomAdj::new(i64::from(adj)));
            let (Some(user), Some(time), Some(package), Some(adj), Some(source), Some(confidence)) =
                (user, time.and_then(from_seconds), package, adj_of, source_of, confidence_of)
            else {
                return Err(
                    self.strange(&format!("{user:?}, {time:?}, {package:?}, {adj:?}, {source:?}, {confidence:?}"))
                );
            };
            see(AppRow { user, time, package, adj, source, confidence });
        }
        Ok(())
    }

    /// Gives every row of a group of counters to `see`.
    ///
    /// # Errors
    /// A row with values that no trace can have.
    pub fn counters(&self, frame: &DataFrame, mut see: impl FnMut(CounterRow<'_>)) -> Result<(), TableError> {
        let wrong = |reason| TableError::input(decode(&self.path, reason));
        let [user, time, counter, value] = COUNTER_COLUMNS.map(|name| frame.column(name).map_err(wrong));
        let (time, value) = (real(time?).map_err(wrong)?, real(value?).map_err(wrong)?);
        let (user, counter) = (user?.str().map_err(wrong)?, counter?.str().map_err(wrong)?);
        let rows = user.iter().zip(time.f64().map_err(wrong)?.iter()).zip(counter.iter());
        for (((user, time), counter), value) in rows.zip(value.f64().map_err(wrong)?.iter()) {
            let (Some(user), Some(time), Some(counter), Some(value)) =
                (user, time.and_then(from_seconds), counter, value)
            else {
                return Err(self.strange(&format!("{user:?}, {time:?}, {counter:?}, {value:?}")));
            };
            see(CounterRow { user, time, counter, value });
        }
        Ok(())
    }

    fn strange(&self, row: &str) -> TableError {
        TableError::input(format!("{}: this row is none of a trace: {row}", self.path.display()))
    }
}

/// A column of numbers as floats.
fn real(column: &Column) -> Result<Column, PolarsError> {
    column.cast(&DataType::Float64)
}

/// The time, if it is within the range of a trace.
fn from_seconds(seconds: f64) -> Option<UtcTime> {
    (0.0..LATEST).contains(&seconds).then(|| UtcTime::nearest(seconds))
}

fn open(path: &Path) -> Result<File, TableError> {
    File::open(path).map_err(|source| TableError::input(FileError { action: "read", path: path.to_path_buf(), source }))
}

fn decode(path: &Path, reason: PolarsError) -> FrameError {
    FrameError::Decode { path: path.to_path_buf(), reason }
}
