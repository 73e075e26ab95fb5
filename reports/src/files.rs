//! Writing files so that a reader never sees an incomplete one.
//!
//! The bytes go to `.haversack-<random>.part` in the same folder, are flushed to the disc, and get the
//! final name in one rename. A link is followed; a device or a FIFO gets the bytes directly. Folders are
//! created by [`create_folder`].

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::{Builder, TempPath};

/// A file that could not be read or written, with the path and the cause.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct FileError {
    /// The failed operation, as a verb ("write", "read", "create").
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

/// Writes `bytes` to `path` atomically: afterwards it has either the whole new contents or the old ones.
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

/// The result of an operation on `path`, whose verb is `action`; `None` if the file does not exist.
///
/// # Errors
/// [`FileError`] with any other cause.
pub fn if_there<T>(action: &'static str, path: &Path, done: io::Result<T>) -> Result<Option<T>, FileError> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some).map_err(|source| FileError::new(action, path, source)),
    }
}

/// The prefix and the suffix of the name of an unfinished file.
const PART: [&str; 2] = [".haversack-", ".part"];

/// The unfinished files of this process.
static UNDER_WAY: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn under_way() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all unfinished files, for a program that exits immediately: afterwards no other file
/// is begun or gets its name.
pub fn remove_parts() {
    let parts = under_way();
    for part in &*parts {
        let _ = fs::remove_file(part);
    }
    std::mem::forget(parts);
}

/// Removes unfinished files of killed processes from `folder`.
pub fn remove_stale_parts(folder: &Path) {
    let [begin, end] = PART;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_part = entry.file_name().to_str().is_some_and(|name| name.starts_with(begin) && name.ends_with(end));
        // A running process has locked its file.
        let is_stale = || File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if is_part && entry.file_type().is_ok_and(|kind| kind.is_file()) && is_stale() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// An unfinished file next to its final path; it is removed when dropped, unless it has got its final name.
pub struct Part {
    /// The file, and the name that it will get there; `None` once it has, and if a device gets the bytes directly.
    part: Option<(TempPath, PathBuf)>,
    /// Its final path as the caller gave it.
    pub(crate) path: PathBuf,
    /// The lock by which other processes see that the file is being written.
    _lock: Option<File>,
}

impl Part {
    /// An empty file whose final path is `path`.
    pub(crate) fn create(path: &Path) -> Result<(Self, File), FileError> {
        Self::begin(path).map_err(|source| FileError::new("write", path, source))
    }

    fn begin(path: &Path) -> io::Result<(Self, File)> {
        let refused = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        if path.file_name().is_none() {
            return refused("the path has no file name");
        }
        let folder = folder_of(path);
        let place = match fs::metadata(path) {
            Err(_) if path.is_symlink() => return refused("a link that leads nowhere"),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) => path.to_path_buf(),
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => {
                let file = File::options().write(true).open(path)?;
                return Ok((Self { part: None, path: path.to_path_buf(), _lock: None }, file));
            }
            // A rename would remove the file that a stream is redirected to.
            Ok(_) if folder == Path::new("/dev") || fs::canonicalize(folder)?.starts_with("/proc") => {
                return refused("a stream that is open already");
            }
            Ok(_) => fs::canonicalize(path)?,
        };
        let mut builder = Builder::new();
        let create = |part: &Path| File::options().write(true).create_new(true).open(part);
        let mut parts = under_way();
        let made = builder.prefix(PART[0]).suffix(PART[1]).make_in(folder_of(&place), create)?;
        let (file, part) = made.into_parts();
        parts.insert(part.to_path_buf());
        let lock = file.try_clone()?;
        // On file systems without locks, files that seem stale are not removed either.
        let _ = lock.try_lock();
        Ok((Self { part: Some((part, place)), path: path.to_path_buf(), _lock: Some(lock) }, file))
    }

    /// Where the bytes are until the rename.
    pub fn written(&self) -> &Path {
        self.part.as_ref().map_or(&self.path, |(part, _)| part)
    }

    /// Flushes the complete file to the disc and renames it.
    ///
    /// # Errors
    /// A disc that is full, or a rename that fails.
    pub fn take_name(self) -> Result<(), FileError> {
        let failed = |source| FileError::new("write", &self.path, source);
        let Some((part, place)) = self.part else { return Ok(()) };
        File::open(&part).and_then(|file| file.sync_all()).map_err(failed)?;
        let mut parts = under_way();
        parts.remove(&*part);
        part.persist(&place).map_err(|error| failed(error.error))?;
        // Makes the rename itself durable where folders can be opened; the file is complete either way.
        let _ = File::open(folder_of(&place)).and_then(|folder| folder.sync_all());
        Ok(())
    }

    /// As [`take_name`](Self::take_name), for files that belong together in one folder: those of another process are
    /// renamed before or after all of these.
    ///
    /// # Errors
    /// As [`take_name`](Self::take_name).
    pub fn take_names(parts: Vec<Self>) -> Result<(), FileError> {
        let folder = parts.first().and_then(|part| File::open(folder_of(&part.path)).ok());
        let _lock = folder.filter(|folder| folder.lock().is_ok());
        parts.into_iter().try_for_each(Self::take_name)
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
