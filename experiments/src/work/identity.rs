//! What results are of: the specification, and the digests of everything it reads.

use std::path::{Path, PathBuf};

use haversack_reports::FileError;
use serde_json::{Map, Value, json};

use super::folder::{OUTPUTS, RECORD, outputs_of};
use super::shard::Shard;
use crate::{CommandError, Result};

/// What results are of. Two pieces of work whose identities are equal have the same results.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Identity {
    /// All but the shard.
    whole: Map<String, Value>,
    shard: Option<String>,
}

const SHARD: &str = "shard";

impl Identity {
    /// The identity of `whole`, or of its part `shard`.
    pub(crate) fn of(whole: Map<String, Value>, shard: Option<Shard>) -> Self {
        Self { whole, shard: shard.map(|shard| shard.to_string()) }
    }

    /// What the shards in `folders` are of, all together.
    ///
    /// # Errors
    /// A folder without a record, or shards of different sweeps.
    pub(crate) fn of_all(folders: &[PathBuf]) -> Result<Self> {
        let mut whole: Option<(Self, &Path)> = None;
        for folder in folders {
            let identity = Self { shard: None, ..Self::read_finished(folder)? };
            match &whole {
                Some((first, other)) if *first != identity => {
                    let (other, folder, differs) = (other.display(), folder.display(), first.difference(&identity));
                    return Err(CommandError::input(format!(
                        "{other} and {folder} are of different sweeps or versions: {differs}; expected the shards of one \
                         specification: run those that differ again, each in a folder of its own"
                    )));
                }
                Some(_) => {}
                None => whole = Some((identity, folder)),
            }
        }
        let nothing = || CommandError::input("there is nothing to merge; expected the folders of a sweep's shards");
        Ok(whole.ok_or_else(nothing)?.0)
    }

    /// The identity of a shard that has come to its end.
    fn read_finished(folder: &Path) -> Result<Self> {
        let path = folder.join(RECORD);
        // What was cut off has no table yet; what has no runs has no files.
        let outputs = outputs_of(folder);
        let is_cut_off = !outputs.is_empty() && !outputs.iter().any(|name| name.ends_with(".parquet"));
        if is_cut_off || folder.is_dir() && !path.exists() {
            let message = "this shard has not come to its end; its command again, with --resume, goes on";
            return Err(CommandError::input(format!("{}: {message}", folder.display())));
        }
        Self::read(&path)
    }

    /// The first thing that another identity has otherwise.
    fn difference(&self, other: &Self) -> String {
        let differs = |own: &Map<String, Value>, other: &Map<String, Value>| {
            let mut keys = own.keys().chain(other.keys());
            keys.find(|key| own.get(*key) != other.get(*key)).cloned()
        };
        let Some(key) = differs(&self.whole, &other.whole) else { return "nothing differs".to_owned() };
        match (self.whole.get(&key), other.whole.get(&key)) {
            (Some(Value::Object(own)), Some(Value::Object(other))) => {
                format!("`{}` of the {key} differs", differs(own, other).unwrap_or_default())
            }
            _ => format!("the {key} differs"),
        }
    }

    /// The identity in the JSON object `text`, if there is one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let Ok(Value::Object(mut whole)) = serde_json::from_str(text) else { return None };
        whole.remove(OUTPUTS);
        let shard = whole.remove(SHARD).and_then(|shard| shard.as_str().map(str::to_owned));
        whole.contains_key("specification").then_some(Self { whole, shard })
    }

    /// The identity in the file at `path`.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let failed = |reason: String| CommandError::input(format!("{}: {reason}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
        Self::parse(&text).ok_or_else(|| failed("not the record of a sweep".to_owned()))
    }

    /// Whether the file at `path` is there and says the same.
    pub(crate) fn is_of(&self, path: &Path) -> Result<bool, FileError> {
        Ok(std::fs::read_to_string(path).is_ok_and(|text| Self::parse(&text).as_ref() == Some(self)))
    }

    /// The shard, as `I/N`; `None` for all.
    pub(crate) fn shard(&self) -> Option<&str> {
        self.shard.as_deref()
    }

    /// The number of runs of all shards.
    pub(crate) fn runs(&self) -> u64 {
        self.whole.get("runs").and_then(Value::as_u64).unwrap_or(0)
    }

    /// The record of the folder.
    pub(crate) fn record(&self) -> Map<String, Value> {
        let mut map = self.whole.clone();
        if let Some(shard) = &self.shard {
            map.insert(SHARD.to_owned(), json!(shard));
        }
        map
    }

    /// What of the record says whose the folder is.
    pub(crate) fn owner(&self) -> Map<String, Value> {
        let record = self.record();
        let keys = ["command", "specification", SHARD];
        keys.into_iter().map(|key| (key.to_owned(), record.get(key).cloned().unwrap_or_default())).collect()
    }

    /// The identity in one line.
    pub(crate) fn to_line(&self) -> String {
        Value::Object(self.record()).to_string()
    }
}
