//! Options that several commands of `haversack trace` share.

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
    /// Format: carat, carat-full, lsapp, tsinghua, meminfo, vmstat, perfetto or lmkd
    #[arg(long, value_name = "KIND")]
    pub(super) kind: Kind,
    /// Files or folders to import
    #[arg(value_name = "IN", required = true)]
    pub(super) inputs: Vec<PathBuf>,
    /// Output table
    #[arg(long, value_name = "F.parquet")]
    pub(super) out: PathBuf,
    /// Stop at the first bad line, and write nothing
    #[arg(long)]
    pub(super) strict: bool,
    /// Meaning of Carat's processes: running, in the foreground since the previous sample, or by the sample's date
    #[arg(long, value_parser = semantics(), default_value = "auto")]
    pub(super) carat_semantics: CaratSemantics,
    /// User of the phone, if the files do not name one [default: the file's name]
    #[arg(long, value_name = "NAME")]
    pub(super) user: Option<String>,
    /// Start time of a trace without a clock, in seconds since 1970
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, allow_hyphen_values = true)]
    pub(super) start: f64,
    /// Seconds between the blocks of a meminfo or vmstat series without times
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, allow_hyphen_values = true)]
    pub(super) interval: f64,
    /// Year in which a log without one begins [default: 1970]
    #[arg(long, value_name = "YEAR", value_parser = clap::value_parser!(i32).range(1970..2100))]
    pub(super) year: Option<i32>,
    /// UTC offset of local times without a zone [default: +08:00 for tsinghua, else +00:00]
    #[arg(long, value_name = "+HH:MM", allow_hyphen_values = true)]
    pub(super) utc_offset: Option<UtcOffset>,
    /// Number of threads that read Carat's lines; does not affect the result [default: number of cores]
    #[arg(long, value_name = "N")]
    pub(super) jobs: Option<NonZeroUsize>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
}

impl ImportOptions {
    /// The import settings, after checking that every flag is within its range.
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
    /// Table of apps, from `trace import` or `trace generate`
    #[arg(value_name = "F.parquet")]
    pub(super) file: PathBuf,
    /// Pauses shorter than this do not end a session, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, allow_hyphen_values = true)]
    pub(super) pause: f64,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
}

/// The models of users and of the memory of apps.
#[derive(Debug, Args)]
pub(super) struct Models {
    /// Memory footprints of apps: android, or a .toml file [default: android]
    #[arg(long, value_name = "FILE")]
    footprints: Option<String>,
    /// Usage model: a .toml file [default: the built-in model]
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
