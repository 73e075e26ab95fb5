//! Finished runs on the disc, a line each, so that a killed sweep can go on.
//!
//! Memory holds where each run's line is, and nothing else of it: the table is made from the lines, some at a time.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::Row;
use super::identity::Identity;
use crate::error::CommandError;
use crate::output::note;

pub(super) const NAME: &str = "rows.part";
/// Bytes that are read at once: about two lines.
const READ: usize = 2048;

/// The runs that are finished; the first line says of what.
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    /// Where the file ends.
    end: u64,
    /// The number of the first run.
    first: u64,
    /// Where the line of each run begins; zero, which is the first line's place, if the run is not finished.
    lines: Vec<u64>,
}

impl Journal {
    /// Whether `folder` holds no unfinished sweep.
    pub(super) fn is_finished(folder: &Path) -> bool {
        !folder.join(NAME).exists()
    }

    /// Opens the journal of `runs` in `folder`; with `resume` what it holds is kept, otherwise it begins anew.
    pub(super) fn open(
        folder: &Path,
        identity: &Identity,
        runs: &Range<u64>,
        resume: bool,
    ) -> Result<Self, CommandError> {
        let path = folder.join(NAME);
        let unfinished = path.exists();
        if unfinished && !resume {
            note(&format!("{} holds an unfinished sweep, which begins anew; --resume goes on", folder.display()));
        }
        let mut lines = vec![0; (runs.end - runs.start) as usize];
        let end = if unfinished && resume { read(&path, identity, runs, &mut lines)? } else { 0 };
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| CommandError::input(format!("cannot write {}: {error}", path.display())))?;
        let mut journal = Self { path, file, end, first: runs.start, lines };
        // A line that was cut off when the sweep was killed goes.
        let cut = journal.file.set_len(end).and_then(|()| journal.file.seek(SeekFrom::End(0)));
        cut.map_err(|error| journal.failure("write", &error))?;
        if end == 0 {
            journal.write(&identity.to_line())?;
        }
        Ok(journal)
    }

    /// Whether `run` is finished.
    pub(super) fn holds(&self, run: u64) -> bool {
        self.line(run).is_some()
    }

    /// How many runs are finished.
    pub(super) fn done(&self) -> u64 {
        self.lines.iter().filter(|line| **line > 0).count() as u64
    }

    fn line(&self, run: u64) -> Option<u64> {
        let place = run.checked_sub(self.first)?;
        self.lines.get(place as usize).copied().filter(|line| *line > 0)
    }

    /// Takes note of a finished run.
    pub(super) fn append(&mut self, row: &Row) -> Result<(), CommandError> {
        let line = serde_json::to_string(row).map_err(CommandError::failed)?;
        let at = self.end;
        self.write(&line)?;
        let place = row.run.checked_sub(self.first).and_then(|place| self.lines.get_mut(place as usize));
        place.into_iter().for_each(|line| *line = at);
        Ok(())
    }

    fn write(&mut self, line: &str) -> Result<(), CommandError> {
        self.file.write_all(format!("{line}\n").as_bytes()).map_err(|error| self.failure("write", &error))?;
        self.end += line.len() as u64 + 1;
        Ok(())
    }

    /// The rows of `runs`, by number; those that are not finished are left out.
    pub(super) fn rows(&self, runs: Range<u64>) -> Result<Vec<Row>, CommandError> {
        let failed = |error: &io::Error| self.failure("read", error);
        let mut reader = BufReader::with_capacity(READ, File::open(&self.path).map_err(|error| failed(&error))?);
        let mut at = 0;
        let mut line = Vec::new();
        let mut rows = Vec::new();
        for place in runs.filter_map(|run| self.line(run)) {
            reader.seek_relative(place as i64 - at).map_err(|error| failed(&error))?;
            line.clear();
            at = place as i64 + reader.read_until(b'\n', &mut line).map_err(|error| failed(&error))? as i64;
            rows.push(serde_json::from_slice(&line).map_err(|error| failed(&error.into()))?);
        }
        Ok(rows)
    }

    /// Takes the journal off the disc: the results are there.
    pub(super) fn remove(self) -> Result<(), CommandError> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failure("write", &error)),
            _ => Ok(()),
        }
    }

    fn failure(&self, action: &str, error: &io::Error) -> CommandError {
        CommandError::failed(format!("cannot {action} {}: {error}", self.path.display()))
    }
}

/// Finds the whole lines of the journal at `path`; returns where the last of them ends.
fn read(path: &Path, identity: &Identity, runs: &Range<u64>, lines: &mut [u64]) -> Result<u64, CommandError> {
    let failed = |error: io::Error| CommandError::failed(format!("cannot read {}: {error}", path.display()));
    let mut reader = BufReader::new(File::open(path).map_err(failed)?);
    let mut end = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(failed)? as u64;
        let Some((b'\n', content)) = line.split_last() else { return Ok(end) };
        if end == 0 {
            let found = std::str::from_utf8(content).ok().and_then(Identity::parse);
            if found.as_ref() != Some(identity) {
                let path = path.display();
                return Err(CommandError::input(format!(
                    "{path} is of another specification, shard or version; sweep into another folder, or without --resume"
                )));
            }
        } else {
            let Ok(row) = serde_json::from_slice::<Row>(content) else { return Ok(end) };
            let place = row.run.checked_sub(runs.start).and_then(|place| lines.get_mut(place as usize));
            place.into_iter().for_each(|line| *line = end);
        }
        end += read;
    }
}
