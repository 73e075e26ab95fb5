//! `haversack trace generate`.

use std::path::PathBuf;

use clap::Args;
use haversack_traces::usage::{Population, UsageModel};
use serde_json::json;

use crate::error::CommandError;
use crate::output::{Format, print, print_json};
use crate::progress::{Amount, Progress};
use crate::trace_table::{Apps, Table};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  haversack trace generate --users 100 --days 7 --seed 1 --out users.parquet")]
pub(super) struct GenerateOptions {
    /// The number of users
    #[arg(long, value_name = "N")]
    users: u32,
    /// Days of each
    #[arg(long, value_name = "D")]
    days: u32,
    /// The seed of all randomness
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// How people use their phones: a .toml file [default: the built-in model]
    #[arg(long, value_name = "FILE")]
    usage: Option<String>,
    /// The table to write
    #[arg(long, value_name = "F.parquet")]
    out: PathBuf,
    /// How to print what was written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Generates users into a table, one after the other.
///
/// # Errors
/// A number of users or days that is zero; a usage model that cannot be read; a table that cannot be written.
pub(super) fn generate(asked: &GenerateOptions) -> Result<(), CommandError> {
    for (flag, number) in [("--users", asked.users), ("--days", asked.days)] {
        if number == 0 {
            return Err(CommandError::input(format!("{flag}: expected at least 1, found 0")));
        }
    }
    let model = asked.usage.as_deref().map_or_else(UsageModel::built_in, UsageModel::load);
    let model = model.map_err(|error| CommandError::input(format!("--usage: {error}")))?;
    let population = Population::new(&model, asked.users as usize, u64::from(asked.days), asked.seed);
    let mut table = Table::<Apps>::create(&asked.out)?;
    let bar = Progress::new(Amount::Number("users"), u64::from(asked.users), 0);
    for name in population.names() {
        for row in population.rows_of(name) {
            table.push(&row)?;
        }
        bar.inc(1);
    }
    bar.finish();
    let rows = table.finish()?;
    let GenerateOptions { users, days, seed, out, .. } = asked;
    match asked.format {
        Format::Text => {
            print(&format!("{}: {rows} rows of {users} users over {days} days, seed {seed}\n", out.display()))
        }
        Format::Json => print_json(
            &json!({ "file": out.display().to_string(), "rows": rows, "users": users, "days": days, "seed": seed }),
        ),
    }
}
