//! What two commands of `haversack trace` are asked for.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use haversack_devices::{Nanos, ensure};
use haversack_traces::import::{Kind, Options, UtcOffset};
use haversack_traces::{CaratSemantics, FootprintTable, UsageModel, UtcTime};

use crate::output::Format;
use crate::trace_table::{Holds, Reader};
use crate::{CommandError, Result};

#[derive(Debug, Args)]
#[command(after_help = include_str!("../../help/trace-import.txt"))]
pub(super) struct ImportOptions {
    /// The format: carat, carat-full, lsapp, tsinghua, meminfo, vmstat, perfetto or lmkd
    #[arg(long, value_name = "KIND")]
    pub(super) kind: Kind,
    /// Files, or folders of them
    #[arg(value_name = "IN", required = true)]
    pub(super) inputs: Vec<PathBuf>,
    /// The table to write
    #[arg(long, value_name = "F.parquet")]
    pub(super) out: PathBuf,
    /// Ends at the first bad line, and writes nothing
    #[arg(long)]
    pub(super) strict: bool,
    /// What Carat's processes are: those that run, those in front since the sample before, or by the sample's date
    #[arg(long, value_parser = semantics(), default_value = "auto")]
    pub(super) carat_semantics: CaratSemantics,
    /// Whose phone it is, if the files do not tell [default: the file's name]
    #[arg(long, value_name = "NAME")]
    pub(super) user: Option<String>,
    /// When a trace begins that knows no clock, in seconds since 1970
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, allow_hyphen_values = true)]
    pub(super) start: f64,
    /// The seconds between the blocks of a meminfo or vmstat series without times
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, allow_hyphen_values = true)]
    pub(super) interval: f64,
    /// The year in which a log begins that states none [default: 1970]
    #[arg(long, value_name = "YEAR", value_parser = clap::value_parser!(i32).range(1970..2100))]
    pub(super) year: Option<i32>,
    /// What local times without a zone are ahead of UTC [default: +08:00 for tsinghua, else +00:00]
    #[arg(long, value_name = "+HH:MM", allow_hyphen_values = true)]
    pub(super) utc_offset: Option<UtcOffset>,
    /// Threads that read Carat's lines; the tables and the report are the same with any number [default: one per core]
    #[arg(long, value_name = "N")]
    pub(super) jobs: Option<NonZeroUsize>,
    /// How to print the report
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
}

impl ImportOptions {
    /// How to read, once every flag is known to be in its range.
    pub(super) fn reading(&self) -> Result<Options> {
        let needs_year = self.year.is_none() || matches!(self.kind, Kind::Lmkd);
        ensure!(needs_year, CommandError::input("--year: only logs of --kind lmkd may state no year; leave it out"));
        let start = seconds("--start", self.start, 0.0..=4_102_444_800.0)?;
        Ok(Options {
            strict: self.strict,
            semantics: self.carat_semantics,
            user: self.user.clone(),
            start: UtcTime(i64::try_from(start.0).unwrap_or(i64::MAX)),
            interval: seconds("--interval", self.interval, 1e-6..=86_400.0)?,
            year: self.year,
            offset: self.utc_offset,
            ..Options::new(self.kind)
        })
    }
}

/// The semantics of Carat's samples, as flags name them.
fn semantics() -> impl TypedValueParser<Value = CaratSemantics> {
    let words = [
        PossibleValue::new("process-list").help("Processes that run at the time of the sample"),
        PossibleValue::new("usage-interval").help("Apps in front at some time since the sample before"),
        PossibleValue::new("auto").help("The first before 21 June 2017, the second from then on"),
    ];
    PossibleValuesParser::new(words).map(|word| word.parse().unwrap_or_default())
}

#[derive(Debug, Args)]
#[command(after_help = include_str!("../../help/trace-stats.txt"))]
pub(super) struct StatsOptions {
    /// A table of `trace import` or `trace generate`
    #[arg(value_name = "F.parquet")]
    pub(super) file: PathBuf,
    /// Shorter pauses, in seconds, do not end a session
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, allow_hyphen_values = true)]
    pub(super) pause: f64,
    /// How to print the statistics
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
}

/// What is known of people and of their apps.
#[derive(Debug, Args)]
pub(super) struct Models {
    /// What apps take of memory: android, or a .toml file [default: android]
    #[arg(long, value_name = "FILE")]
    footprints: Option<String>,
    /// How people use their phones: a .toml file [default: the built-in model]
    #[arg(long, value_name = "FILE")]
    usage: Option<String>,
}

impl Models {
    /// The models that are named, or the built-in ones.
    pub(super) fn load(&self) -> Result<(UsageModel, FootprintTable)> {
        let usage = self.usage.as_deref().map_or_else(UsageModel::built_in, UsageModel::load);
        let footprints = self.footprints.as_deref().map_or_else(FootprintTable::built_in, FootprintTable::load);
        Ok((usage.map_err(CommandError::input)?, footprints.map_err(CommandError::input)?))
    }
}

/// The table of apps at `path`.
pub(super) fn table_of_apps(path: &Path) -> Result<Reader> {
    let reader = Reader::open(path)?;
    if reader.holds != Holds::Apps {
        let message = format!("{} holds counters; expected a table of apps", path.display());
        return Err(CommandError::input(message));
    }
    Ok(reader)
}

/// A flag's seconds, if they are within `range`.
pub(super) fn seconds(flag: &str, given: f64, range: RangeInclusive<f64>) -> Result<Nanos> {
    let (low, high) = (range.start(), range.end());
    if range.contains(&given) {
        Ok(Nanos::from_seconds(given))
    } else {
        Err(CommandError::input(format!("{flag}: expected seconds from {low} to {high}, found {given}")))
    }
}
