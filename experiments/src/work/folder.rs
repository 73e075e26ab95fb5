//! The folder to which a command writes its results: it belongs to one command and one specification.
//!
//! `run.json` identifies both (the specification and the seed, but neither version, jobs nor digests), names the build
//! of the program that wrote it (another build does not resume its work), and lists the files written. Running the same
//! command again replaces its own files; another command or specification is refused, or, with `--overwrite`, deletes
//! the listed files and nothing else. `.lock` is locked through the operating system, which releases the lock when the
//! process ends, in whatever way.

use std::fs::{self, File, TryLockError};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Component, Path, PathBuf};

use clap::Args;
use haversack_reports::{FileError, create_folder, if_there, remove_stale_parts, write_atomically};
use rayon::ThreadPool;
use serde_json::{Map, Value};

use crate::limits::{FLAGS, beyond};
use crate::{CommandError, Result};

/// Output folder and execution of long work.
#[derive(Clone, Debug, Default, Args)]
pub struct WorkOptions {
    /// Output folder
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub out: PathBuf,
    /// Resume a stopped or killed run of the same command, keeping its finished parts
    #[arg(long)]
    pub resume: bool,
    /// Delete the listed files of another command or specification from the folder
    #[arg(long)]
    pub overwrite: bool,
    /// Number of parallel parts [default: number of CPUs]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
}

/// A pool with one thread per parallel part, by default one per CPU.
///
/// # Errors
/// Too many threads, or threads that cannot be started.
pub(crate) fn pool(jobs: Option<NonZeroUsize>) -> Result<ThreadPool> {
    let beyond = jobs.and_then(|jobs| beyond(FLAGS, "jobs", &jobs.to_string()));
    beyond.map_or(Ok(()), |message| Err(CommandError::input(format!("jobs: {message}"))))?;
    let builder = rayon::ThreadPoolBuilder::new().num_threads(jobs.map_or(0, NonZeroUsize::get));
    builder.build().map_err(|error| CommandError::failed(format!("cannot start the threads: {error}")))
}

/// The options of `merge`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  haversack merge part1 part2 --out whole")]
pub struct MergeOptions {
    /// Folders of all shards of one sweep, reproduction or federation
    #[arg(value_name = "DIR", required = true)]
    pub shards: Vec<PathBuf>,
    /// Output folder
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub out: PathBuf,
    /// Delete the listed files of another command or specification from the folder
    #[arg(long)]
    pub overwrite: bool,
}

/// The record of a folder's contents.
pub const RECORD: &str = "run.json";
const LOCK: &str = ".lock";
/// The record's key for the build of the program that wrote it.
pub(super) const BUILD: &str = "build";
/// A digest of this build's sources.
pub(crate) const THIS_BUILD: &str = env!("HAVERSACK_BUILD");
/// The record's key for the list of files.
pub const OUTPUTS: &str = "outputs";

/// A full disk is a failure of the run, all other errors are wrong input.
fn refused(error: FileError) -> CommandError {
    let kind = error.source.kind();
    if matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge | io::ErrorKind::QuotaExceeded) {
        return CommandError::File(error);
    }
    CommandError::input(error)
}

/// A folder that this process has locked, until it is dropped.
#[derive(Debug)]
pub struct OutputFolder {
    root: PathBuf,
    /// Its current record; that of its owner if there is none yet.
    own: Map<String, Value>,
    /// The files listed in an earlier record.
    listed: Vec<String>,
    _lock: File,
}

impl OutputFolder {
    /// Creates the folder, or takes one that belongs to `owner`: the keys and values of the record that identify the
    /// command and its specification. A null value is a key that the record does not have. In the `files` that may be
    /// written, `pareto*` matches all pictures whose names begin so.
    ///
    /// # Errors
    /// A folder with the results of another command or specification, or with such files but without a record of them;
    /// a link under one of these names; a folder that another process writes to, or that cannot be created, locked or
    /// written. Nothing is deleted from a refused folder.
    pub fn claim(root: &Path, owner: &Map<String, Value>, overwrite: bool, files: &[impl AsRef<str>]) -> Result<Self> {
        create_folder(root).map_err(refused)?;
        let is_link = |name: &&str| root.join(name).is_symlink();
        check_none(root, [LOCK, RECORD].into_iter().filter(is_link), IS_LINK)?;
        let lock = lock(root)?;
        let found = read(&root.join(RECORD)).map_err(refused)?;
        let of = |found: &Value| owner.iter().all(|(key, value)| found.get(key).unwrap_or(&Value::Null) == value);
        let mut listed = texts(found.as_ref().and_then(|found| found.get(OUTPUTS)));
        let names = names(root, files);
        let command = found.as_ref().and_then(|found| found.get("command")).and_then(Value::as_str).map(str::to_owned);
        let own = match found {
            Some(Value::Object(found)) if of(&Value::Object(found.clone())) => {
                let ours = names.iter().chain(&listed).map(String::as_str);
                check_none(root, ours.filter(is_link), IS_LINK)?;
                listed
                    .iter()
                    .filter_map(|name| Path::new(name).parent())
                    .for_each(|at| remove_stale_parts(&root.join(at)));
                found
            }
            Some(_) if !overwrite || command.is_none() => {
                let (owner, instead) = match command {
                    Some(command) => (format!("'{command}'"), ", or --overwrite, which deletes the files listed there"),
                    None => ("somebody else".to_owned(), ""),
                };
                return Err(CommandError::input(format!(
                    "{} holds the results of {owner} with another specification, says its {RECORD}; expected another \
                     folder{instead}",
                    root.display()
                )));
            }
            _ => {
                let others = names.iter().filter(|name| !listed.contains(name));
                check_none(root, others.map(String::as_str), IS_TAKEN)?;
                listed.drain(..).try_for_each(|name| remove(root, &name))?;
                owner.clone()
            }
        };
        Ok(Self { root: root.to_path_buf(), own, listed, _lock: lock })
    }

    /// Marks the beginning of writing: the files `working` may remain if the run is interrupted, and still belong to
    /// this owner. Adds the keys of `more` to the record.
    ///
    /// # Errors
    /// A record that cannot be written.
    pub fn begin(&mut self, working: &[String], mut more: Map<String, Value>) -> Result<()> {
        more.insert(BUILD.to_owned(), THIS_BUILD.into());
        let before = self.listed.len();
        let new = working.iter().filter(|name| !self.listed.contains(name)).cloned();
        self.listed.extend(new.collect::<Vec<_>>());
        if self.listed.len() > before || more.iter().any(|(key, value)| self.own.get(key) != Some(value)) {
            self.own.extend(more);
            write(&self.path(RECORD), self.own.clone(), &self.listed)?;
        }
        Ok(())
    }

    /// Whether work is to be resumed, and can be: work of another build starts over.
    ///
    /// # Errors
    /// Work of another build that may not be overwritten.
    pub(crate) fn goes_on(&self, WorkOptions { resume, overwrite, .. }: &WorkOptions) -> Result<bool> {
        let by = self.own.get(BUILD).and_then(Value::as_str);
        let is_other = *resume && !self.listed.is_empty() && by != Some(THIS_BUILD);
        if is_other && !overwrite {
            let (root, by) = (self.root.display(), by.unwrap_or("an unnamed one"));
            return Err(CommandError::input(format!(
                "{root} was written by another build of haversack ({by}) than this ({THIS_BUILD}), whose results may \
                 differ; expected that build, or --overwrite, which starts over"
            )));
        }
        Ok(*resume && !is_other)
    }

    /// The texts of the list under `key` in the record; empty without such a list.
    pub fn recorded(&self, key: &str) -> Vec<String> {
        texts(self.own.get(key))
    }

    /// Whether the file exists and the record lists it; then all other files that were made with it exist, too.
    pub fn holds(&self, name: &str) -> bool {
        self.listed.iter().any(|listed| listed == name) && self.path(name).is_file()
    }

    /// The path of the file with this name.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes the record, which lists `outputs`, and deletes other files that an earlier record listed.
    ///
    /// # Errors
    /// A file that cannot be written or deleted.
    pub fn record(&self, record: Map<String, Value>, outputs: &[String]) -> Result<()> {
        write(&self.path(RECORD), record, outputs)?;
        let mut stale = self.listed.iter().filter(|name| !outputs.contains(name));
        stale.try_for_each(|name| remove(&self.root, name))
    }
}

/// The command whose results are in `folder`, according to its record.
pub fn command_of(folder: &Path) -> Option<String> {
    let record = read(&folder.join(RECORD)).ok()??;
    record.get("command").and_then(Value::as_str).map(str::to_owned)
}

/// The files that the record of `folder` lists.
pub fn outputs_of(folder: &Path) -> Vec<String> {
    let record = read(&folder.join(RECORD)).ok().flatten();
    texts(record.as_ref().and_then(|record| record.get(OUTPUTS)))
}
/// The texts of a list; empty for any other value.
fn texts(list: Option<&Value>) -> Vec<String> {
    let texts = list.and_then(Value::as_array).into_iter().flatten();
    texts.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The names of those of `files` that exist in the folder.
fn names(root: &Path, files: &[impl AsRef<str>]) -> Vec<String> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let entries: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let is_picture = |name: &&String| name.ends_with(".svg") || name.ends_with(".png");
    let names = files.iter().map(AsRef::as_ref).flat_map(|file: &str| match file.strip_suffix('*') {
        Some(begin) => entries.iter().filter(|name| name.starts_with(begin)).filter(is_picture).cloned().collect(),
        None => vec![file.to_owned()],
    });
    names.filter(|name| root.join(name).symlink_metadata().is_ok()).collect()
}

const IS_LINK: &str = "is a link; expected a file of this folder";
const IS_TAKEN: &str = "is there already, and no run.json says that it may be replaced; expected another folder";

/// Refuses a folder that has one of these files.
fn check_none<'f>(root: &Path, mut files: impl Iterator<Item = &'f str>, why: &str) -> Result<()> {
    let refuse = |name| Err(CommandError::input(format!("{} {why}", root.join(name).display())));
    files.next().map_or(Ok(()), refuse)
}

fn lock(root: &Path) -> Result<File> {
    let path = root.join(LOCK);
    let failed = |source| refused(FileError { action: "lock", path: path.clone(), source });
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(CommandError::input(format!(
            "another process writes to {}; expected another folder, or to wait for its end",
            root.display()
        ))),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// The record, if there is one; an unreadable record means the folder is not ours.
fn read(path: &Path) -> Result<Option<Value>, FileError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(serde_json::from_str(&text).unwrap_or(Value::Null))),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) if source.kind() == io::ErrorKind::InvalidData => Ok(Some(Value::Null)),
        Err(source) => Err(FileError { action: "read", path: path.to_path_buf(), source }),
    }
}

fn write(path: &Path, mut record: Map<String, Value>, outputs: &[String]) -> Result<()> {
    record.retain(|_, value| !value.is_null());
    record.entry(BUILD).or_insert(THIS_BUILD.into());
    record.insert(OUTPUTS.to_owned(), outputs.into());
    write_atomically(path, format!("{:#}\n", Value::Object(record)).as_bytes()).map_err(refused)
}

/// Deletes a listed file, unless its name leads out of the folder; a missing file is not an error.
fn remove(root: &Path, name: &str) -> Result<()> {
    let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    let path = root.join(name);
    let removed = if inside { fs::remove_file(&path) } else { Ok(()) };
    if_there("remove", &path, removed).map(drop).map_err(refused)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owner(seed: u64) -> Map<String, Value> {
        json!({ "command": "test", "seed": seed, "shard": null }).as_object().cloned().unwrap()
    }

    fn claim(root: &Path, seed: u64, overwrite: bool) -> Result<OutputFolder> {
        let mut folder = OutputFolder::claim(root, &owner(seed), overwrite, &["a", "p*", "part", "d/e"])?;
        folder.begin(&["part".to_owned()], Map::new())?;
        Ok(folder)
    }

    fn names(root: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_same_again_replaces_its_own_files_and_nothing_else() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path();
        fs::write(root.join("mine"), "kept").unwrap();
        let folder = claim(root, 1, false).unwrap();
        fs::write(folder.path("a"), "").unwrap();
        fs::write(folder.path("b"), "").unwrap();
        folder.record(owner(1), &["a".into(), "b".into()]).unwrap();
        drop(folder);
        let again = claim(root, 1, false).unwrap();
        assert_eq!(again.listed, ["a", "b", "part"]);
        again.record(owner(1), &["a".into()]).unwrap();
        assert_eq!(names(root), [".lock", "a", "mine", "run.json"]);
    }

    #[test]
    fn another_is_refused_and_may_delete_what_is_listed() {
        let top = tempfile::tempdir().unwrap();
        let root = &top.path().join("deep/er");
        fs::write(top.path().join("outside"), "kept").unwrap();
        let folder = claim(root, 1, false).unwrap();
        fs::write(folder.path("a"), "").unwrap();
        fs::write(folder.path("mine"), "").unwrap();
        folder.record(owner(1), &["a".into(), "../../outside".into()]).unwrap();
        drop(folder);
        let refused = claim(root, 2, false).unwrap_err().to_string();
        assert!(refused.contains("'test'") && refused.contains("--overwrite"), "{refused}");
        assert_eq!(names(root), [".lock", "a", "mine", "run.json"]);
        drop(claim(root, 2, true).unwrap());
        assert_eq!(names(root), [".lock", "mine", "run.json"]);
        assert!(top.path().join("outside").exists());
        // It belongs to the other owner now, even without a full record: an interrupted run keeps its folder.
        assert!(claim(root, 1, false).unwrap_err().to_string().contains("holds the results of"));
    }

    #[test]
    fn one_process_writes_at_a_time() {
        let top = tempfile::tempdir().unwrap();
        let held = claim(top.path(), 1, false).unwrap();
        assert!(claim(top.path(), 1, false).unwrap_err().to_string().contains("another process writes to"));
        drop(held);
        assert!(claim(top.path(), 1, false).is_ok());
    }

    #[test]
    fn a_record_that_cannot_be_read_is_nobody_s() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join(RECORD), [0xff, 0xfe]).unwrap();
        assert!(claim(top.path(), 1, false).unwrap_err().to_string().contains("somebody else"));
    }
}
