//! `haversack trace budgets`: the memory that phones leave to training, at random moments of their users' days.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::Args;
use haversack_devices::{Bytes, Nanos, Stream, load, load_system};
use haversack_reports::figure::Series as Line;
use haversack_reports::frame::write_parquet;
use haversack_reports::{Axis, Figure, FrameError, Lines, Panel};
use haversack_traces::UtcTime;
use polars::prelude::DataFrame;
use rand::RngExt;
use rayon::prelude::*;
use serde_json::json;

use super::options::{Models, table_of_apps};
use super::stats::Distribution;
use crate::moment::{Moment, Watched};
use crate::output::{Format, check_apart, note};
use crate::progress::{Amount, Progress};
use crate::rows::Rows;
use crate::scenario::parse_span;
use crate::sweep::{drawn, matching};
use crate::trace_table::{Reader, UserApps, check_beside, place_beside};
use crate::{CommandError, Result, quantities};

#[derive(Debug, Args)]
#[command(after_help = include_str!("../../help/trace-budgets.txt"))]
pub(super) struct BudgetsOptions {
    /// Table of apps, from `trace import` or `trace generate`
    #[arg(value_name = "F.parquet")]
    file: PathBuf,
    /// Device: an id of `list devices`, or a calibration's .toml file
    #[arg(long, value_name = "ID")]
    device: String,
    /// Operating system: an id of `list systems`
    #[arg(long, value_name = "ID", default_value = "android")]
    system: String,
    /// Users: names, or patterns such as "a*"
    #[arg(long, value_name = "USERS", default_value = "*", value_delimiter = ',')]
    users: Vec<String>,
    /// Random sample of N of these users [default: all]
    #[arg(long, value_name = "N")]
    sample: Option<NonZeroUsize>,
    /// Time that memory is observed before each moment
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = parse_span)]
    window: Nanos,
    /// Moments per user
    #[arg(long, value_name = "N", default_value = "20")]
    per_user: NonZeroU32,
    /// Random seed
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    models: Models,
    /// Output table; pictures are written to the same folder
    #[arg(long, value_name = "B.parquet")]
    out: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The memory that a phone leaves at a moment.
#[derive(Clone, Debug, PartialEq)]
struct Budget {
    user: String,
    time: UtcTime,
    /// By the user's clock.
    hour: u64,
    available: Bytes,
    safe: Bytes,
    predicted: Bytes,
    apps: u64,
    front: String,
}

/// The phone, the table and the sampling of moments.
struct Watching<'a> {
    watched: Watched,
    asked: &'a BudgetsOptions,
}

/// Simulates the phones of all selected users, writes the table and draws the pictures.
///
/// # Errors
/// An unknown device or system, or two that do not fit together; a file that does not contain a table of apps; unknown
/// users; a table that cannot be written.
pub(super) fn budgets(asked: &BudgetsOptions) -> Result<()> {
    let reader = table_of_apps(&asked.file)?;
    check_apart([("--out", Some(asked.out.as_path()))], [&asked.file])?;
    for picture in ["by-user", "by-hour"].map(|name| place_beside(&asked.out, name)) {
        ["svg", "png"].iter().try_for_each(|ending| check_beside(&asked.out, &picture.with_extension(ending)))?;
    }
    let all = reader.users()?;
    let matched = matching(&all, &asked.users).map_err(|why| CommandError::input(format!("--users: {why}")))?;
    let users = match asked.sample.map(NonZeroUsize::get) {
        Some(number) if number > matched.len() => {
            let message = format!("--sample: expected at most the {} users that match, found {number}", matched.len());
            return Err(CommandError::input(message));
        }
        Some(number) => drawn(matched, number, asked.seed),
        None => matched,
    };
    let device = load(&asked.device).map_err(CommandError::input)?;
    let system = load_system(&asked.system).map_err(CommandError::input)?;
    let (model, footprints) = asked.models.load()?;
    let watched = Watched::new(device, system, model, footprints)?;
    let watching = Watching { watched, asked };
    let bar = Progress::new(Amount::Number("users"), users.len() as u64, 0);
    let found: Vec<Vec<Budget>> = users
        .par_iter()
        .map(|user| {
            let found = watching.user(&reader, user);
            bar.inc(1);
            found
        })
        .collect::<Result<_, _>>()?;
    bar.finish();
    let without = found.iter().filter(|budgets| budgets.is_empty()).count();
    if without > 0 {
        let without = quantities::counted(without, "user", "users");
        note(&format!("the traces of {without} are shorter than --window and were left out"));
    }
    let budgets: Vec<Budget> = found.into_iter().flatten().collect();
    write_parquet(&asked.out, &frame(&budgets)?)?;
    let setting =
        format!("{} under {}, {}", watching.watched.device.id, watching.watched.system.id, asked.file.display());
    let mut files = vec![asked.out.clone()];
    if !budgets.is_empty() {
        for (name, figure) in [("by-user", by_user(&budgets, &setting)), ("by-hour", by_hour(&budgets, &setting))] {
            let place = place_beside(&asked.out, name);
            figure.render()?.write(&place.with_extension(""))?;
            files.extend(["svg", "png"].map(|ending| place.with_extension(ending)));
        }
    }
    report(asked, &budgets, users.len() - without, &files)
}

impl Watching<'_> {
    /// The moments of `user`, in order of time; none if the trace is shorter than the window.
    fn user(&self, reader: &Reader, user: &str) -> Result<Vec<Budget>> {
        let rows = UserApps::read(reader, &self.asked.file, user)?;
        let (seed, window) = (self.asked.seed, self.asked.window);
        let length = u64::try_from(rows.last.0 - rows.first.0).unwrap_or(0);
        let Some(room) = length.checked_sub(window.0) else { return Ok(Vec::new()) };
        let mut random = Stream::of_user(seed, user, "budgets");
        let mut starts: Vec<u64> = (0..self.asked.per_user.get()).map(|_| random.random_range(0..=room)).collect();
        starts.sort_unstable();
        let moment = |after: u64| {
            let start = UtcTime(rows.first.0 + i64::try_from(after).unwrap_or(i64::MAX));
            self.moment(&rows, start)
        };
        starts.into_iter().map(moment).collect()
    }

    /// The end of the window that begins at `start`.
    fn moment(&self, rows: &UserApps, start: UtcTime) -> Result<Budget> {
        let (seed, window) = (self.asked.seed, self.asked.window);
        let timeline = rows.timeline(&self.watched.model, seed, start, window);
        let Moment { available, safe, predicted } = self.watched.moment(&timeline, window, seed)?;
        let alive = timeline.alive_at(window);
        let front = alive.iter().find(|app| app.adj.is_foreground()).map_or("", |app| timeline.package(app.app));
        let end = UtcTime(start.0 + i64::try_from(window.0).unwrap_or(i64::MAX));
        let since_midnight = end.0 - rows.offset.midnight(end).0;
        Ok(Budget {
            user: rows.user.clone(),
            time: end,
            hour: since_midnight as u64 / 3_600_000_000_000,
            available,
            safe,
            predicted,
            apps: alive.len() as u64,
            front: front.to_owned(),
        })
    }
}

/// The table.
fn frame(budgets: &[Budget]) -> Result<DataFrame, FrameError> {
    Rows::of(budgets)
        .with("user", |budget| budget.user.as_str())
        .with("time_s", |budget| budget.time.seconds())
        .with("hour", |budget| budget.hour)
        .with("available_bytes", |budget| budget.available.0)
        .with("safe_bytes", |budget| budget.safe.0)
        .with("predicted_bytes", |budget| budget.predicted.0)
        .with("apps", |budget| budget.apps)
        .with("front_app", |budget| budget.front.as_str())
        .frame()
}

fn report(asked: &BudgetsOptions, budgets: &[Budget], users: usize, files: &[PathBuf]) -> Result<()> {
    let kinds = KINDS.map(|(name, value)| {
        let values: Distribution = budgets.iter().map(value).collect();
        (name, [0.1, 0.5, 0.9].map(|share| values.quantile(share).unwrap_or_default()))
    });
    let misses = budgets.iter().filter(|budget| budget.predicted > budget.available).count();
    let share = misses as f64 / budgets.len().max(1) as f64;
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let json = || {
        let mut value =
            json!({ "users": users, "moments": budgets.len(), "above_available_share": share, "files": files });
        for (name, [tenth, half, nine]) in kinds {
            value[format!("{name}_bytes")] = json!({ "p10": tenth, "median": half, "p90": nine });
        }
        value
    };
    let text = || {
        let mut text = format!("{} of ", quantities::counted(budgets.len(), "moment", "moments"));
        text += &format!("{}\n\n", quantities::counted(users, "user", "users"));
        text += &format!("{:11}{:>12}{:>12}{:>12}\n", "", "a tenth", "half", "nine tenths");
        for (name, sizes) in kinds {
            let [tenth, half, nine] = sizes.map(|size| quantities::size(Bytes(size)));
            text += &format!("{name:11}{tenth:>12}{half:>12}{nine:>12}\n");
        }
        let share = 100.0 * share;
        text += &format!("have no more. The prediction is above what is available in {share:.1}% of them.\n");
        text + &format!("wrote {}\n", files.join(", "))
    };
    asked.format.print(text, json)
}

/// The fractions of moments that have less, and the labels of their lines.
const SHARES: [(f64, &str); 3] =
    [(0.9, "a tenth of the moments have more"), (0.5, "the median"), (0.1, "a tenth have less")];
/// The name of a kind of budget, and its bytes.
type Kind = (&'static str, fn(&Budget) -> u64);
/// Kinds of budgets, each with a panel.
const KINDS: [Kind; 3] = [
    ("available", |budget| budget.available.0),
    ("safe", |budget| budget.safe.0),
    ("predicted", |budget| budget.predicted.0),
];

/// Panels of the three kinds over `groups`, each at its position.
fn figure(title: &str, setting: &str, x: &Axis, groups: &BTreeMap<u64, Vec<&Budget>>) -> Figure {
    let figure = Figure::new(title).note(setting).share_y().columns(KINDS.len()).panel_size(300, 260);
    KINDS.into_iter().fold(figure, |figure, (kind, value)| {
        let lines = SHARES.into_iter().fold(Lines::new(), |lines, (share, name)| {
            let points = groups.iter().map(|(place, budgets)| {
                let values: Distribution = budgets.iter().map(|budget| value(budget)).collect();
                (*place as f64, values.quantile(share).unwrap_or_default() as f64 / 1e9)
            });
            lines.series(Line::new(name, points.collect::<Vec<_>>()))
        });
        figure.panel(Panel::new(lines).title(kind).x(x.clone()).y(Axis::new("memory").unit("GB").from_zero()))
    })
}

/// By user: those with the least available first.
fn by_user(budgets: &[Budget], setting: &str) -> Figure {
    let mut users: BTreeMap<&str, Vec<&Budget>> = BTreeMap::new();
    for budget in budgets {
        users.entry(&budget.user).or_default().push(budget);
    }
    let mut users: Vec<Vec<&Budget>> = users.into_values().collect();
    let available = |budgets: &Vec<&Budget>| budgets.iter().map(|budget| budget.available.0).collect::<Distribution>();
    users.sort_by_key(|budgets| available(budgets).quantile(0.5));
    let number = users.len();
    let groups = (1..).zip(users).collect();
    let x = Axis::new("user, by the median available").range(0.0, number as f64 + 1.0);
    figure("What phones leave to training, user by user", setting, &x, &groups)
}

/// By the hour of the user's clock.
fn by_hour(budgets: &[Budget], setting: &str) -> Figure {
    let mut groups: BTreeMap<u64, Vec<&Budget>> = BTreeMap::new();
    for budget in budgets {
        groups.entry(budget.hour).or_default().push(budget);
    }
    let x =
        Axis::new("hour of the user\u{2019}s day").unit("h").range(0.0, 24.0).ticks_at([0.0, 6.0, 12.0, 18.0, 24.0]);
    figure("What phones leave to training, hour by hour", setting, &x, &groups)
}
