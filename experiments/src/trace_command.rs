//! `haversack trace`: imports recordings of apps and memory into Parquet tables, summarises the tables, and
//! generates synthetic users.

mod budgets;
mod import;
mod options;
mod plot;
mod stats;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use haversack_devices::ensure;
use haversack_traces::usage::{Population, UsageModel};
use serde_json::json;

use crate::output::Format;
use crate::progress::{Amount, Progress};
use crate::quantities::counted;
use crate::trace_table::{Apps, Table};
use crate::{CommandError, Result};
use budgets::BudgetsOptions;
use options::{ImportOptions, StatsOptions};
use plot::PlotOptions;
pub(crate) use plot::fronts;

/// The options of `trace`.
#[derive(Debug, Args)]
pub struct TraceOptions {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    /// Import recordings of apps and memory into a Parquet table, and report anomalies
    Import(ImportOptions),
    /// Summarise a table: coverage, gaps, sessions, background apps
    Stats(StatsOptions),
    /// Generate synthetic users
    Generate(GenerateOptions),
    /// Estimate the memory that phones in use leave to training, and plot it by user and by hour
    Budgets(BudgetsOptions),
    /// Plot a user's apps, sessions and memory demand
    Plot(PlotOptions),
}

/// Runs a command of `trace`.
///
/// # Errors
/// A flag out of its range, a file that cannot be read or does not contain a table of traces, a table that
/// cannot be written.
pub fn run(options: &TraceOptions) -> Result<()> {
    match &options.command {
        TraceCommand::Import(given) => import::import(given),
        TraceCommand::Stats(given) => stats::stats(given),
        TraceCommand::Generate(given) => generate(given),
        TraceCommand::Budgets(given) => budgets::budgets(given),
        TraceCommand::Plot(given) => plot::plot(given),
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  haversack trace generate --users 100 --days 7 --seed 1 --out users.parquet")]
struct GenerateOptions {
    /// Number of users
    #[arg(long, value_name = "N")]
    users: u32,
    /// Days per user
    #[arg(long, value_name = "D")]
    days: u32,
    /// Random seed
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Usage model: a .toml file [default: the built-in model]
    #[arg(long, value_name = "FILE")]
    usage: Option<String>,
    /// Output table
    #[arg(long, value_name = "F.parquet")]
    out: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Generates users into a table, one after the other.
///
/// # Errors
/// A number of users or days that is zero; a usage model that cannot be read; a table that cannot be written.
fn generate(asked: &GenerateOptions) -> Result<()> {
    for (flag, number) in [("--users", asked.users), ("--days", asked.days)] {
        ensure!(number != 0, CommandError::input(format!("{flag}: expected at least 1, found 0")));
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
    let (table, rows) = table.finish()?;
    table.take_name()?;
    let GenerateOptions { users, days, seed, out, .. } = asked;
    let out = out.display().to_string();
    asked.format.print(
        || {
            let [rows, users] = [counted(rows, "row", "rows"), counted(*users, "user", "users")];
            format!("{out}: {rows} of {users} over {}, seed {seed}\n", counted(*days, "day", "days"))
        },
        || json!({ "file": out, "rows": rows, "users": users, "days": days, "seed": seed }),
    )
}
