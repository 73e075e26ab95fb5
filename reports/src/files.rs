//! Writing files so that a reader never sees half of one.
//!
//! The bytes go to `.<name>.part` in the same folder, are flushed to the disc, and take the final name in one
//! rename. Creating folders is left to [`create_folder`].

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that could not be read or written, with the place and the cause.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct FileError {
    /// What was being done, as a verb ("write", "read", "create").
    pub action: &'static str,
    /// The path as the caller gave it.
    pub path: PathBuf,
    /// The operating system's reason.
    pub source: io::Error,
}

impl FileError {
    /// An error about `path` while doing `action`.
    pub(crate) fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self { action, path: path.to_path_buf(), source }
    }
}

/// Writes `bytes` to `path` atomically: either the whole file is there, or what was there before.
///
/// # Errors
/// [`FileError`] names `path` and the cause; the partial file is removed.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let failed = |source| FileError::new("write", path, source);
    let name = path
        .file_name()
        .ok_or_else(|| failed(io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name")))?;
    let part = path.with_file_name(partial_name(name));
    let written = write_through(&part, bytes).and_then(|()| fs::rename(&part, path));
    written.map_err(|source| {
        // The first error is the one worth telling; there may be no partial file to remove.
        let _ = fs::remove_file(&part);
        failed(source)
    })?;
    sync_folder(path);
    Ok(())
}

/// Creates `path` and the folders above it.
///
/// # Errors
/// [`FileError`] names `path` and the cause.
pub fn create_folder(path: &Path) -> Result<(), FileError> {
    fs::create_dir_all(path).map_err(|source| FileError::new("create", path, source))
}

fn partial_name(name: &OsStr) -> OsString {
    let mut part = OsString::from(".");
    part.push(name);
    part.push(".part");
    part
}

fn write_through(part: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(part)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes the rename itself durable where folders can be opened; the file is complete either way.
fn sync_folder(path: &Path) {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}
