//! The files that are named on the command line, and those in the folders that are.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::CommandError;

/// The files to read, in order, and those in folders that are left alone.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    pub(super) files: Vec<PathBuf>,
    pub(super) left: Vec<PathBuf>,
    pub(super) bytes: u64,
}

impl Inputs {
    /// Looks at every path.
    pub(super) fn find(paths: &[PathBuf]) -> Result<Self, CommandError> {
        let mut inputs = Self::default();
        for path in paths {
            let found = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
            if found.is_dir() {
                inputs.enter(path)?;
            } else {
                inputs.bytes += found.len();
                inputs.files.push(path.clone());
            }
        }
        if inputs.files.is_empty() {
            let folders = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
            return Err(CommandError::input(format!(
                "{folders}: expected files part-*, *.json, *.jsonl or *.gz, found none"
            )));
        }
        Ok(inputs)
    }

    fn enter(&mut self, folder: &Path) -> Result<(), CommandError> {
        let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let mut paths: Vec<PathBuf> =
            entries.map_err(|error| unreadable(folder, &error))?.into_iter().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let found = fs::metadata(&path).map_err(|error| unreadable(&path, &error))?;
            if found.is_dir() {
                self.enter(&path)?;
            } else if is_part(&path) {
                self.bytes += found.len();
                self.files.push(path);
            } else {
                self.left.push(path);
            }
        }
        Ok(())
    }
}

/// Whether a file of a folder looks like a part of a data set.
fn is_part(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let ending = path.extension().map(|ending| ending.to_string_lossy()).unwrap_or_default();
    name.starts_with("part-") || matches!(ending.as_ref(), "json" | "jsonl" | "gz")
}

fn unreadable(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::input(format!("{} cannot be read: {error}", path.display()))
}
