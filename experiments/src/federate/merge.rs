//! `haversack merge` of federations: the shards of a specification, put together.

use std::path::{Path, PathBuf};

use super::tables::Tables;
use super::{LOG, finish};
use crate::error::CommandError;
use crate::output::print;
use crate::work::{Log, MergeOptions, OutputFolder, Part, command_of, shards_of};

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
    let (identity, parts) = shards_of(&options.shards, "federation", "")?;
    if let Some(part) = parts.iter().find(|part| !part.is_shard) {
        let folder = part.folder.display();
        return Err(CommandError::input(format!(
            "{folder}: holds no shard; expected folders of `federate --shard I/N`"
        )));
    }
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
    let logs: Vec<PathBuf> = parts.iter().map(|part| part.folder.join(LOG)).filter(|log| log.is_file()).collect();
    Log::join(&logs, &folder.path(LOG))?;
    print(&finish(&folder, identity.record(), tables, !logs.is_empty())?)
}
