//! `haversack merge`: the shards of a sweep, put together.

use std::ops::Range;
use std::path::Path;

use polars::prelude::DataFrame;

use super::{RESULTS, Writer, groups, table};
use crate::error::CommandError;
use crate::output::print;
use crate::work::{MergeOptions, OutputFolder, Part, shards_of};

/// Merges the folders of all shards of one sweep, to the same bytes as one run.
///
/// # Errors
/// A folder that holds no finished sweep, shards of different sweeps, runs that are missing or there twice; all
/// before anything is written. A folder that cannot be written.
pub fn merge(options: &MergeOptions) -> Result<(), CommandError> {
    let (identity, shards) = shards_of(&options.shards, "run", " of the sweep")?;
    check(&shards)?;
    let folder = OutputFolder::claim(&options.out, &identity.owner(), options.overwrite)?;
    let mut writer = Writer::new(folder, &identity);
    for group in groups(0..identity.runs()) {
        writer.push(&gather(&shards, &group)?)?;
    }
    print(&writer.finish(true)?)
}

/// Checks that the tables of the shards have their runs, under the same columns.
fn check(shards: &[Part<'_>]) -> Result<(), CommandError> {
    let mut columns = None;
    for Part { runs, folder, .. } in shards {
        let path = folder.join(RESULTS);
        let (number, names) = table::shape(&path).map_err(CommandError::input)?;
        if number as u64 != runs.end - runs.start {
            let (path, runs) = (path.display(), runs.end - runs.start);
            return Err(CommandError::input(format!("{path}: the table has {number} rows; expected {runs}")));
        }
        if columns.get_or_insert_with(|| names.clone()) != &names {
            return Err(other_columns(folder));
        }
    }
    Ok(())
}

/// The rows of `runs`, from as many shards as have some of them.
fn gather(shards: &[Part<'_>], runs: &Range<u64>) -> Result<DataFrame, CommandError> {
    let mut gathered = DataFrame::default();
    for Part { runs: own, folder, .. } in shards {
        let (start, end) = (own.start.max(runs.start), own.end.min(runs.end));
        if start >= end {
            continue;
        }
        let slice = ((start - own.start) as usize, (end - start) as usize);
        let part = table::read(&folder.join(RESULTS), slice).map_err(CommandError::input)?;
        if gathered.width() == 0 {
            gathered = part;
        } else {
            gathered.vstack_mut(&part).map_err(|_| other_columns(folder))?;
        }
    }
    gathered.rechunk_mut();
    Ok(gathered)
}

fn other_columns(folder: &Path) -> CommandError {
    CommandError::input(format!("{}: the table has other columns", folder.join(RESULTS).display()))
}
