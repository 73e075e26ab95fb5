//! `haversack merge` of federations: the shards of a specification, put together.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::tables::Tables;
use super::{checkpoint, finish};
use crate::error::CommandError;
use crate::output::print;
use crate::work::{Identity, MergeOptions, OutputFolder, RECORD, Shard, command_of, outputs_of};

/// Whether a folder holds federations.
pub(crate) fn is_federation(folder: &Path) -> bool {
    command_of(folder).as_deref() == Some("federate")
}

/// Merges the folders of all shards of one specification, to the same bytes as one run.
///
/// # Errors
/// A folder that holds no shard, shards of different specifications, federations that are missing or there twice; all before
/// anything is written. A folder that cannot be written.
pub(crate) fn merge(options: &MergeOptions) -> Result<(), CommandError> {
    let identity = Identity::of_all(&options.shards)?;
    let runs = identity.runs().max(1);
    let parts = options.shards.iter().map(|folder| Part::open(folder, runs)).collect::<Result<Vec<_>, _>>()?;
    let parts = in_order(parts, runs)?;
    let mut whole: Option<Tables> = None;
    for Part { folder, .. } in &parts {
        let tables = Tables::read(folder)?;
        let Some(whole) = &mut whole else {
            whole = Some(tables);
            continue;
        };
        let other = |_| CommandError::input(format!("{}: its tables have other columns", folder.display()));
        whole.append(&tables).map_err(other)?;
    }
    let tables =
        whole.ok_or_else(|| CommandError::input("there is nothing to merge; expected the folders of all shards"))?;
    let folder = OutputFolder::claim(&options.out, &identity.owner(), options.overwrite)?;
    let mut kept = Vec::new();
    for part in &parts {
        for name in outputs_of(&part.folder).into_iter().filter(|name| name.starts_with(checkpoint::NAME)) {
            let from = part.folder.join(&name);
            let failed = |error| CommandError::failed(format!("{}: cannot be copied: {error}", from.display()));
            std::fs::copy(&from, folder.path(&name)).map_err(failed)?;
            kept.push(name);
        }
    }
    print(&finish(&folder, identity.record(), tables, kept)?)
}

/// A shard's folder, and the numbers of its federations.
struct Part {
    runs: Range<u64>,
    folder: PathBuf,
}

impl Part {
    fn open(folder: &Path, runs: u64) -> Result<Self, CommandError> {
        let shard = Identity::read(&folder.join(RECORD))?.shard().and_then(|shard| shard.parse::<Shard>().ok());
        let shard = shard.ok_or_else(|| {
            CommandError::input(format!(
                "{}: holds no shard; expected folders of `federate --shard I/N`",
                folder.display()
            ))
        })?;
        Ok(Self { runs: shard.of(runs), folder: folder.to_path_buf() })
    }
}

/// The shards that have federations, in their order.
fn in_order(mut parts: Vec<Part>, runs: u64) -> Result<Vec<Part>, CommandError> {
    parts.retain(|part| !part.runs.is_empty());
    parts.sort_by_key(|part| part.runs.start);
    let missing = |from: u64, to: u64| {
        let message = format!("federations {from} to {} are in none of the folders; expected every shard", to - 1);
        Err(CommandError::input(message))
    };
    let mut next = 0;
    for Part { runs, folder } in &parts {
        if runs.start > next {
            return missing(next, runs.start);
        }
        if runs.start < next {
            let message = format!("federation {} of {} is in another folder too", runs.start, folder.display());
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
        let parts = parts.iter().map(|runs| Part { runs: runs.clone(), folder: PathBuf::from("part") }).collect();
        let found = in_order(parts, runs).map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|part| part.runs.start).collect())
    }

    #[test]
    fn every_federation_is_there_once() {
        assert_eq!(order(&[3..5, 0..0, 0..3], 5), Ok(vec![0, 3]));
        assert!(order(&[0..0, 3..5], 5).unwrap_err().contains("federations 0 to 2 are in none"));
        assert!(order(&[0..3, 5..5], 5).unwrap_err().contains("federations 3 to 4 are in none"));
        assert!(order(&[0..3, 2..5], 5).unwrap_err().contains("federation 2 of part is in another folder too"));
    }
}
