//! `haversack trace`: recordings of apps and memory into Parquet tables, what the tables hold, and synthetic users.

mod budgets;
mod generate;
mod import;
mod options;
mod plot;
mod report_text;
mod sessions;
mod stats;
mod stats_text;

use clap::{Args, Subcommand};

use crate::error::CommandError;
use budgets::BudgetsOptions;
use generate::GenerateOptions;
use options::{ImportOptions, StatsOptions};
use plot::PlotOptions;

/// What `trace` is asked for.
#[derive(Debug, Args)]
pub struct TraceOptions {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    /// Reads recordings of apps and memory into a Parquet table, and reports what is odd about them
    Import(ImportOptions),
    /// Says what a table holds: coverage, gaps, sessions, apps behind the one in front
    Stats(StatsOptions),
    /// Makes synthetic users
    Generate(GenerateOptions),
    /// Says what memory phones leave to training while their users use them, and draws it by user and by hour
    Budgets(BudgetsOptions),
    /// Draws a user's apps, sessions and demand of memory
    Plot(PlotOptions),
}

/// Runs a command of `trace`.
///
/// # Errors
/// A flag out of its range, a file that cannot be read or is no table of traces, a table that cannot be written.
pub fn run(options: &TraceOptions) -> Result<(), CommandError> {
    match &options.command {
        TraceCommand::Import(given) => import::import(given),
        TraceCommand::Stats(given) => stats::stats(given),
        TraceCommand::Generate(given) => generate::generate(given),
        TraceCommand::Budgets(given) => budgets::budgets(given),
        TraceCommand::Plot(given) => plot::plot(given),
    }
}
