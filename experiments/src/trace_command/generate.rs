//! `haversack trace generate`.

use std::path::PathBuf;

use haversack_traces::usage::{Population, UsageModel};
use serde_json::json;

use super::columns::Apps;
use super::progress;
use super::table::Table;
use crate::error::CommandError;
use crate::output::{Format, print, print_json};

/// What `trace generate` is asked for.
#[derive(Clone, Debug)]
pub struct Generation {
    /// The number of users.
    pub users: u32,
    /// Days of each.
    pub days: u32,
    /// The seed of all randomness.
    pub seed: u64,
    /// The table to write.
    pub out: PathBuf,
    /// How to print what was written.
    pub format: Format,
}

/// Generates users into a table, one after the other.
///
/// # Errors
/// A number of users or days that is nought; a table that cannot be written.
pub fn generate(asked: &Generation) -> Result<(), CommandError> {
    for (flag, number) in [("--users", asked.users), ("--days", asked.days)] {
        if number == 0 {
            return Err(CommandError::input(format!("{flag}: expected at least 1, found 0")));
        }
    }
    let model = UsageModel::built_in().map_err(CommandError::failed)?;
    let population = Population::new(&model, asked.users as usize, u64::from(asked.days), asked.seed);
    let mut table = Table::<Apps>::create(&asked.out)?;
    let bar = progress(u64::from(asked.users), "{bar:40} {pos} of {len} users, {eta} left");
    for name in population.names() {
        for row in population.rows_of(name) {
            table.push(&row)?;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let rows = table.finish()?;
    let Generation { users, days, seed, out, .. } = asked;
    match asked.format {
        Format::Text => {
            print(&format!("{}: {rows} rows of {users} users over {days} days, seed {seed}\n", out.display()))
        }
        Format::Json => print_json(
            &json!({ "file": out.display().to_string(), "rows": rows, "users": users, "days": days, "seed": seed }),
        ),
    }
}
