//! Writing files so that a reader never sees half of one.
//!
//! The bytes go to `.<name>.part` in the same folder, are flushed to the disc, and take the final name in one
//! rename. Creating folders is left to [`create_folder`].

use std::ffi::OsString;
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
    let (part, mut file) = Part::create(path)?;
    file.write_all(bytes).map_err(|source| FileError::new("write", path, source))?;
    part.take_name()
}

/// Creates `path` and the folders above it.
///
/// # Errors
/// [`FileError`] names `path` and the cause.
pub fn create_folder(path: &Path) -> Result<(), FileError> {
    fs::create_dir_all(path).map_err(|source| FileError::new("create", path, source))
}

/// What was `done` to `path`, by the verb `action`; `None` if there is no such file.
///
/// # Errors
/// [`FileError`] with any other cause.
pub fn if_there<T>(action: &'static str, path: &Path, done: io::Result<T>) -> Result<Option<T>, FileError> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some).map_err(|source| FileError::new(action, path, source)),
    }
}

/// A file under way beside its name; it goes away with its owner, unless it has taken the name.
pub(crate) struct Part {
    part: PathBuf,
    /// Where it will be.
    pub(crate) path: PathBuf,
    is_whole: bool,
}

impl Part {
    /// An empty file that will be at `path`.
    pub(crate) fn create(path: &Path) -> Result<(Self, File), FileError> {
        let nameless = || io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name");
        let create = || {
            let mut name = OsString::from(".");
            name.push(path.file_name().ok_or_else(nameless)?);
            name.push(".part");
            let part = path.with_file_name(name);
            let file = File::create(&part)?;
            Ok((Self { part, path: path.to_path_buf(), is_whole: false }, file))
        };
        create().map_err(|source| FileError::new("write", path, source))
    }

    /// Gives the file, which is whole, to the disc and its name.
    pub(crate) fn take_name(mut self) -> Result<(), FileError> {
        let written = File::open(&self.part).and_then(|file| file.sync_all());
        let named = written.and_then(|()| fs::rename(&self.part, &self.path));
        named.map_err(|source| FileError::new("write", &self.path, source))?;
        self.is_whole = true;
        sync_folder(&self.path);
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_whole {
            // The first error is the one worth telling.
            let _ = fs::remove_file(&self.part);
        }
    }
}

/// Makes the rename itself durable where folders can be opened; the file is complete either way.
fn sync_folder(path: &Path) {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}
