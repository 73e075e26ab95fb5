//! What artefacts have found so far that takes long, so that a run that was killed does not look for it again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use haversack_reports::FileError;
use haversack_reports::files::write_atomically;
use serde_json::{Value, json};

/// The name of the file in the folder; it is there until all artefacts are finished.
pub(super) const KEPT: &str = "kept.json";

/// Findings by name, in a file that is written anew with each.
#[derive(Debug, Default)]
pub struct Kept {
    path: Option<PathBuf>,
    found: Mutex<BTreeMap<String, Value>>,
}

impl Kept {
    /// In `folder`; with `resume` what its file holds is used, as far as it can be read.
    pub(super) fn open(folder: &Path, resume: bool) -> Self {
        let path = folder.join(KEPT);
        let text = if resume { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
        Self { path: Some(path), found: Mutex::new(serde_json::from_str(&text).unwrap_or_default()) }
    }

    /// What was found under this name.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.lock().get(name).cloned()
    }

    /// Keeps what was found. The name is to tell of all that it depends on.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn keep(&self, name: String, found: Value) -> Result<(), FileError> {
        let mut all = self.lock();
        all.insert(name, found);
        let Some(path) = &self.path else { return Ok(()) };
        write_atomically(path, json!(&*all).to_string().as_bytes())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_comes_back_if_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        Kept::open(folder.path(), false).keep("a".to_owned(), json!([u64::MAX, "b"])).unwrap();
        let again = Kept::open(folder.path(), true);
        assert_eq!((again.get("a"), again.get("b")), (Some(json!([u64::MAX, "b"])), None));
        assert_eq!(Kept::open(folder.path(), false).get("a"), None);
        std::fs::write(folder.path().join(KEPT), "{\"a\":").unwrap();
        assert_eq!(Kept::open(folder.path(), true).get("a"), None, "half a file holds nothing");
        let nowhere = Kept::default();
        nowhere.keep("a".to_owned(), json!(1)).unwrap();
        assert_eq!(nowhere.get("a"), Some(json!(1)));
    }
}
