//! `haversack merge`: the shards of a sweep, put together.

use std::path::{Path, PathBuf};

use haversack_reports::files::create_folder;
use haversack_reports::frame::write_parquet;
use haversack_reports::write_atomically;

use super::identity::Identity;
use super::table::{RUN, Table};
use super::{RECORD, RESULTS, front, pool};
use crate::error::CommandError;

/// Merges the folders of all shards of one sweep into `out`, to the same bytes as one run.
///
/// # Errors
/// A folder that holds no finished sweep, shards of different sweeps, runs that are missing or there twice; all
/// before anything is written. A folder that cannot be written.
pub fn merge(shards: &[PathBuf], out: &Path) -> Result<(), CommandError> {
    let mut whole: Option<(Identity, &Path)> = None;
    let mut tables = Vec::new();
    for shard in shards {
        let identity = Identity::read(&shard.join(RECORD))?.of_all_shards();
        match &whole {
            Some((first, folder)) if *first != identity => {
                let (folder, shard) = (folder.display(), shard.display());
                return Err(CommandError::input(format!("{folder} and {shard} are of different sweeps or versions")));
            }
            Some(_) => {}
            None => whole = Some((identity, shard)),
        }
        tables.push((Table::read(&shard.join(RESULTS)).map_err(CommandError::input)?, shard));
    }
    let Some((identity, _)) = whole else {
        return Err(CommandError::input("there is nothing to merge; expected the folders of a sweep's shards"));
    };
    let table = join(tables, identity.runs())?;
    let fronts = front::draw(&table, &pool(None)?)?;
    create_folder(out).map_err(CommandError::input)?;
    for (name, front) in &fronts {
        front.write(&out.join(name))?;
    }
    write_atomically(&out.join(RECORD), identity.to_json().as_bytes())?;
    Ok(write_parquet(&out.join(RESULTS), &table.to_frame()?)?)
}

/// The tables one after another, which must hold each of `runs` runs once.
fn join(mut tables: Vec<(Table, &PathBuf)>, runs: u64) -> Result<Table, CommandError> {
    let first = |table: &Table| table.wholes(RUN).first().copied().flatten();
    tables.retain(|(table, _)| first(table).is_some());
    tables.sort_by_key(|(table, _)| first(table));
    let mut joined: Option<Table> = None;
    let mut next = 0;
    for (table, shard) in tables {
        for &run in table.wholes(RUN) {
            let run = run.unwrap_or(0);
            if run > next {
                return Err(missing(next, run));
            }
            if run < next {
                return Err(CommandError::input(format!("run {run} of {} is in another folder too", shard.display())));
            }
            next += 1;
        }
        let fits = match &mut joined {
            Some(joined) => joined.extend(table),
            None => {
                joined = Some(table);
                true
            }
        };
        if !fits {
            return Err(CommandError::input(format!("{}: the table has other columns", shard.join(RESULTS).display())));
        }
    }
    if next < runs {
        return Err(missing(next, runs));
    }
    Ok(joined.unwrap_or_default())
}

fn missing(from: u64, to: u64) -> CommandError {
    CommandError::input(format!(
        "runs {from} to {} are in none of the folders; expected every shard of the sweep",
        to - 1
    ))
}
