//! `haversack merge`: the shards of a sweep, put together.

use std::ops::Range;
use std::path::{Path, PathBuf};

use polars::prelude::DataFrame;

use super::identity::Identity;
use super::table;
use super::{MergeOptions, RESULTS, Writer, groups, pool};
use crate::error::CommandError;
use crate::output::print;
use crate::output_folder::OutputFolder;

/// Merges the folders of all shards of one sweep, to the same bytes as one run.
///
/// # Errors
/// A folder that holds no finished sweep, shards of different sweeps, runs that are missing or there twice; all
/// before anything is written. A folder that cannot be written.
pub fn merge(options: &MergeOptions) -> Result<(), CommandError> {
    let identity = Identity::of_all(&options.shards)?;
    let mut shards = options.shards.iter().map(|folder| Shard::open(folder)).collect::<Result<Vec<_>, _>>()?;
    let runs = identity.runs();
    shards.retain(|shard| !shard.runs.is_empty());
    shards.sort_by_key(|shard| shard.runs.first().copied());
    check(&shards, runs)?;
    let folder = OutputFolder::claim(&options.out, &identity.owner(), options.overwrite)?;
    let mut writer = Writer::new(folder, identity);
    for group in groups(0..runs) {
        writer.push(&gather(&shards, &group)?)?;
    }
    print(&writer.finish(true, &pool(None)?)?)
}

/// The table of a shard.
struct Shard<'f> {
    folder: &'f Path,
    table: PathBuf,
    columns: Vec<String>,
    runs: Vec<u64>,
}

impl<'f> Shard<'f> {
    fn open(folder: &'f Path) -> Result<Self, CommandError> {
        let table = folder.join(RESULTS);
        let (runs, columns) = table::runs(&table).map_err(CommandError::input)?;
        Ok(Self { folder, table, columns, runs })
    }
}

/// Checks that the shards hold each of `runs` runs once, under the same columns.
fn check(shards: &[Shard<'_>], runs: u64) -> Result<(), CommandError> {
    let mut next = 0;
    for shard in shards {
        for &run in &shard.runs {
            if run > next {
                return Err(missing(next, run));
            }
            if run < next {
                let message = format!("run {run} of {} is in another folder too", shard.folder.display());
                return Err(CommandError::input(message));
            }
            next += 1;
        }
        if shard.columns != shards[0].columns {
            return Err(other_columns(shard));
        }
    }
    if next < runs { Err(missing(next, runs)) } else { Ok(()) }
}

/// The rows of `runs`, from as many shards as have some of them.
fn gather(shards: &[Shard<'_>], runs: &Range<u64>) -> Result<DataFrame, CommandError> {
    let mut gathered = DataFrame::default();
    for shard in shards {
        let first = shard.runs.partition_point(|run| *run < runs.start);
        let number = shard.runs[first..].partition_point(|run| *run < runs.end);
        if number == 0 {
            continue;
        }
        let part = table::read(&shard.table, (first, number)).map_err(CommandError::input)?;
        if gathered.width() == 0 {
            gathered = part;
        } else {
            gathered.vstack_mut(&part).map_err(|_| other_columns(shard))?;
        }
    }
    gathered.rechunk_mut();
    Ok(gathered)
}

fn other_columns(shard: &Shard<'_>) -> CommandError {
    CommandError::input(format!("{}: the table has other columns", shard.table.display()))
}

fn missing(from: u64, to: u64) -> CommandError {
    CommandError::input(format!(
        "runs {from} to {} are in none of the folders; expected every shard of the sweep",
        to - 1
    ))
}
