//! Findings of artefacts that take long to compute, so that a resumed run does not compute them again.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Result;
use crate::work::Log;

/// The name of the file in the folder; it exists until all artefacts are finished.
pub(super) const KEPT: &str = "kept.part";

/// The log in `folder`; with `resume`, the readable part of its file is used.
pub(super) fn open(folder: &Path, resume: bool) -> Result<Log> {
    let open = |resume| Log::open(folder.join(KEPT), KEPT, resume);
    open(resume).or_else(|_| open(false))
}

/// Findings by name, in a log; or none are kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kept<'l>(Option<&'l Log>);

impl<'l> Kept<'l> {
    pub(super) fn of(log: &'l Log) -> Self {
        Self(Some(log))
    }

    /// The finding with this name, if it has this type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.0?.get(Log::key(name)).ok()?
    }

    /// Keeps a finding. Its name must contain everything that it depends on.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn keep(&self, name: &str, found: &impl Serialize) -> Result<()> {
        self.0.map_or(Ok(()), |log| log.append(Log::key(name), found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_comes_back_if_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        Kept::of(&open(folder.path(), false).unwrap()).keep("a", &(u64::MAX, "b")).unwrap();
        let found = |resume, name| Kept::of(&open(folder.path(), resume).unwrap()).get::<(u64, String)>(name);
        assert_eq!((found(true, "a"), found(true, "b")), (Some((u64::MAX, "b".to_owned())), None));
        assert_eq!(Kept::of(&open(folder.path(), true).unwrap()).get::<u64>("a"), None, "of another type");
        assert_eq!(found(false, "a"), None);
        std::fs::write(folder.path().join(KEPT), "{\"a\":").unwrap();
        assert_eq!(found(true, "a"), None, "what is no log holds nothing");
    }
}
