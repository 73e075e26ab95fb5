//! Finished runs on the disc, a line each, so that a killed sweep can go on.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Row;
use super::identity::Identity;
use crate::error::CommandError;
use crate::output::note;

const NAME: &str = "rows.part";

/// The runs that are finished; the first line says of what.
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    rows: Vec<Row>,
    held: HashSet<u64>,
}

impl Journal {
    /// Whether `folder` holds no unfinished sweep.
    pub(super) fn is_finished(folder: &Path) -> bool {
        !folder.join(NAME).exists()
    }

    /// Opens the journal of `folder`; with `resume` what it holds is kept, otherwise it begins anew.
    pub(super) fn open(folder: &Path, identity: &Identity, resume: bool) -> Result<Self, CommandError> {
        let path = folder.join(NAME);
        let unfinished = path.exists();
        if unfinished && !resume {
            note(&format!("{} holds an unfinished sweep, which begins anew; --resume goes on", folder.display()));
        }
        let (rows, length) = if unfinished && resume { read(&path, identity)? } else { (Vec::new(), 0) };
        let failed = |error: io::Error| failure(&path, &error);
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| CommandError::input(format!("cannot write {}: {error}", path.display())))?;
        // A line that was cut off when the sweep was killed goes.
        file.set_len(length).map_err(failed)?;
        io::Seek::seek(&mut file, io::SeekFrom::End(0)).map_err(failed)?;
        if length == 0 {
            file.write_all(format!("{}\n", identity.to_line()).as_bytes()).map_err(failed)?;
        }
        let held = rows.iter().map(|row| row.run).collect();
        Ok(Self { path, file, rows, held })
    }

    pub(super) fn holds(&self, run: u64) -> bool {
        self.held.contains(&run)
    }

    pub(super) fn append(&mut self, row: Row) -> Result<(), CommandError> {
        let line = serde_json::to_string(&row).map_err(CommandError::failed)?;
        self.file.write_all(format!("{line}\n").as_bytes()).map_err(|error| failure(&self.path, &error))?;
        self.held.insert(row.run);
        self.rows.push(row);
        Ok(())
    }

    /// All rows by number.
    pub(super) fn rows(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by_key(|row| row.run);
        rows
    }

    /// Takes the journal off the disc: the results are there.
    pub(super) fn remove(self) -> Result<(), CommandError> {
        std::fs::remove_file(&self.path).map_err(|error| failure(&self.path, &error))
    }
}

fn failure(path: &Path, error: &io::Error) -> CommandError {
    CommandError::failed(format!("cannot write {}: {error}", path.display()))
}

/// The whole lines of the journal at `path`, and where the last of them ends.
fn read(path: &Path, identity: &Identity) -> Result<(Vec<Row>, u64), CommandError> {
    let text = std::fs::read(path)
        .map_err(|error| CommandError::failed(format!("cannot read {}: {error}", path.display())))?;
    let mut rows = Vec::new();
    let mut length = 0;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let Some((b'\n', content)) = line.split_last() else { break };
        if length == 0 {
            let found = std::str::from_utf8(content).ok().and_then(Identity::parse);
            if found.as_ref() != Some(identity) {
                let path = path.display();
                return Err(CommandError::input(format!(
                    "{path} is of another specification, shard or version; sweep into another folder, or without --resume"
                )));
            }
        } else {
            let Ok(row) = serde_json::from_slice(content) else { break };
            rows.push(row);
        }
        length += line.len() as u64;
    }
    Ok((rows, length))
}
