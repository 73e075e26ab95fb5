//! What a merge begins with: the folders of all shards, each part of the work in one of them.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::folder::RECORD;
use super::identity::Identity;
use super::shard::Shard;
use crate::{CommandError, Result};

/// A folder, and the numbers of the parts that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part<'f> {
    /// The numbers.
    pub(crate) runs: Range<u64>,
    /// The folder.
    pub(crate) folder: &'f Path,
    /// Whether it is a shard, and not all of the work.
    pub(crate) is_shard: bool,
}

/// What the shards in `folders` are of together, and those that hold anything, in order. A part of it is a `thing`, and all
/// of it a `whole`.
///
/// # Errors
/// A folder that holds nothing finished, shards of different things, parts that are missing or there twice.
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

/// The parts that hold anything, in order; together they hold `runs`.
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

#[cfg(test)]
mod tests {
    use super::*;

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
