//! A part of a sweep or of a reproduction.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde_json::{Map, Value, json};

use super::folder::{BUILD, OUTPUTS, RECORD, THIS_BUILD, outputs_of};
use crate::{CommandError, Result};

/// The `part`-th of `parts` parts, from one: a range of run numbers of a sweep, or every `parts`-th artefact
/// of a reproduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    part: u64,
    parts: u64,
}

impl Shard {
    /// The numbers of this part's runs, of `runs` in all.
    pub fn of(self, runs: u64) -> Range<u64> {
        let end = |part: u64| (u128::from(runs) * u128::from(part) / u128::from(self.parts)) as u64;
        end(self.part - 1)..end(self.part)
    }

    /// Whether the item at `place`, from zero, belongs to this part if parts take turns.
    pub const fn is_turn(self, place: usize) -> bool {
        place as u64 % self.parts == self.part - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
        match numbers {
            Some((part, parts)) if (1..=parts).contains(&part) => Ok(Self { part, parts }),
            _ => Err("expected I/N with I from 1 to N, such as 1/4".to_owned()),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.parts)
    }
}

/// The index on each of several axes, of these lengths, for the combination numbered `number`: the
/// first varies slowest.
pub(crate) fn places(number: usize, lengths: impl DoubleEndedIterator<Item = usize>) -> Vec<usize> {
    let mut rest = number;
    let place = |length: usize| {
        let place = rest % length.max(1);
        rest /= length.max(1);
        place
    };
    let mut places: Vec<usize> = lengths.rev().map(place).collect();
    places.reverse();
    places
}

/// A folder, and the numbers of the parts that it contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part<'f> {
    /// The numbers.
    pub(crate) runs: Range<u64>,
    /// The folder.
    pub(crate) folder: &'f Path,
    /// Whether it is a shard, not all of the work.
    pub(crate) is_shard: bool,
}

/// The common identity of the shards in `folders`, and those that are not empty, in order. In errors, one run is a
/// `thing`, and all of the work a `whole`.
///
/// # Errors
/// A folder without finished work, shards of different work, missing or duplicate parts.
pub(crate) fn shards_of<'f>(folders: &'f [PathBuf], thing: &str, whole: &str) -> Result<(Identity, Vec<Part<'f>>)> {
    let identity = Identity::of_all(folders)?;
    let runs = identity.runs().max(1);
    let part = |folder: &'f PathBuf| {
        let shard = Identity::read(&folder.join(RECORD))?.shard().and_then(|shard| shard.parse::<Shard>().ok());
        Ok(Part { runs: shard.map_or(0..runs, |shard| shard.of(runs)), folder, is_shard: shard.is_some() })
    };
    let parts = folders.iter().map(part).collect::<Result<_>>()?;
    Ok((identity, in_order(parts, runs, thing, whole)?))
}

/// The parts that are not empty, in order; together they contain all `runs`.
fn in_order<'f>(mut parts: Vec<Part<'f>>, runs: u64, thing: &str, whole: &str) -> Result<Vec<Part<'f>>> {
    parts.retain(|part| !part.runs.is_empty());
    parts.sort_by_key(|part| part.runs.start);
    let missing = |from: u64, to: u64| {
        let message = format!("{thing}s {from} to {} are in none of the folders; expected every shard{whole}", to - 1);
        Err(CommandError::input(message))
    };
    let mut next = 0;
    for Part { runs, folder, .. } in &parts {
        if runs.start > next {
            return missing(next, runs.start);
        }
        if runs.start < next {
            let message = format!("{thing} {} of {} is in another folder too", runs.start, folder.display());
            return Err(CommandError::input(message));
        }
        next = runs.end;
    }
    if next < runs { missing(next, runs) } else { Ok(parts) }
}

/// The identity of results. Two pieces of work with equal identities have the same results.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Identity {
    /// Everything except the shard.
    whole: Map<String, Value>,
    shard: Option<String>,
}

const SHARD: &str = "shard";

impl Identity {
    /// The identity of `whole`, or of its part `shard`.
    pub(crate) fn of(mut whole: Map<String, Value>, shard: Option<Shard>) -> Self {
        whole.insert(BUILD.to_owned(), THIS_BUILD.into());
        Self { whole, shard: shard.map(|shard| shard.to_string()) }
    }

    /// The common identity of the shards in `folders`.
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

    /// The identity of a finished shard.
    fn read_finished(folder: &Path) -> Result<Self> {
        let path = folder.join(RECORD);
        // Interrupted work has no table yet; work without runs has no files.
        let outputs = outputs_of(folder);
        let is_cut_off = !outputs.is_empty() && !outputs.iter().any(|name| name.ends_with(".parquet"));
        if is_cut_off || folder.is_dir() && !path.exists() {
            let message = "this shard is not finished; its command with --resume continues it";
            return Err(CommandError::input(format!("{}: {message}", folder.display())));
        }
        Self::read(&path)
    }

    /// The first difference to another identity.
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

    /// Whether the file at `path` exists and has the same identity.
    pub(crate) fn is_of(&self, path: &Path) -> bool {
        std::fs::read_to_string(path).is_ok_and(|text| Self::parse(&text).as_ref() == Some(self))
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

    /// The part of the record that identifies the folder.
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

#[cfg(test)]
mod tests {
    use super::{Shard, *};

    #[test]
    fn shards_cover_every_run_once() {
        let runs: Vec<u64> = (1..=7).flat_map(|part| Shard { part, parts: 7 }.of(24)).collect();
        assert_eq!(runs, (0..24).collect::<Vec<_>>());
        assert_eq!(Shard { part: 1, parts: 4 }.of(1), 0..0);
    }

    #[test]
    fn parts_take_turns() {
        let of = |part| (0..7).filter(|place| Shard { part, parts: 3 }.is_turn(*place)).collect::<Vec<_>>();
        assert_eq!([of(1), of(2), of(3)], [vec![0, 3, 6], vec![1, 4], vec![2, 5]]);
    }

    #[test]
    fn only_parts_that_exist_are_shards() {
        assert_eq!("2/4".parse::<Shard>().unwrap().to_string(), "2/4");
        assert!(["0/4", "5/4", "1/0", "4", "a/b", "1/4/2", "-1/4"].iter().all(|text| text.parse::<Shard>().is_err()));
    }

    fn order(parts: &[Range<u64>], runs: u64) -> Result<Vec<u64>, String> {
        let parts =
            parts.iter().map(|runs| Part { runs: runs.clone(), folder: Path::new("part"), is_shard: true }).collect();
        let found = in_order(parts, runs, "run", " of the sweep").map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|part| part.runs.start).collect())
    }

    #[test]
    fn every_run_is_there_once() {
        assert_eq!(order(&[3..5, 0..0, 0..3], 5), Ok(vec![0, 3]));
        assert!(order(&[0..0, 3..5], 5).unwrap_err().contains("runs 0 to 2 are in none"));
        assert!(order(&[0..3, 5..5], 5).unwrap_err().contains("runs 3 to 4 are in none"));
        assert!(order(&[0..3, 2..5], 5).unwrap_err().contains("run 2 of part is in another folder too"));
    }
}
