//! `haversack trace plot`: a user's apps, sessions and memory demand, in one picture.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use haversack_devices::{Bytes, Nanos, ensure, load, load_system};
use haversack_reports::{Axis, Figure, Lines, Panel, Series, Stroke};
use haversack_traces::usage::{AppId, AppTimeline, Demand, UsageModel, demand};

use super::options::{Models, table_of_apps};
use crate::output::{Plot, check_apart, print};
use crate::scenario::{TraceFrom, beginning, parse_span};
use crate::trace_table::UserApps;
use crate::{CommandError, Result, quantities};

#[derive(Debug, Args)]
#[command(after_help = include_str!("../../help/trace-plot.txt"))]
pub(super) struct PlotOptions {
    /// Table of apps, from `trace import` or `trace generate`
    #[arg(value_name = "F.parquet")]
    file: PathBuf,
    /// User to plot [default: the first]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Start of the plot: as `simulate --trace-from`
    #[arg(long, value_name = "WHEN", default_value = "0")]
    from: TraceFrom,
    /// Length of the plot, such as 2h
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_span)]
    window: Nanos,
    /// Random seed
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Phone whose memory the user's apps share with training
    #[arg(long, value_name = "ID|FILE", default_value = "galaxy-s22")]
    device: String,
    /// Operating system of the phone
    #[arg(long, value_name = "ID|FILE", default_value = "android")]
    system: String,
    #[command(flatten)]
    models: Models,
    /// Output picture (.svg or .png) [default: trace.png, unless it exists]
    #[arg(long, value_name = "FILE")]
    out: Option<Plot>,
}

/// Draws the user.
///
/// # Errors
/// A file that does not contain a table of apps, an unknown user, a start outside the trace, a picture that
/// cannot be written.
pub(super) fn plot(asked: &PlotOptions) -> Result<()> {
    let out = asked.out.clone().map_or_else(|| "trace.png".parse().map_err(CommandError::Input), Ok)?;
    let is_free = asked.out.is_some() || !out.path().exists();
    ensure!(is_free, CommandError::input("trace.png is there already; name another, or the same, by --out"));
    check_apart([("--out", Some(out.path()))], [&asked.file])?;
    let reader = table_of_apps(&asked.file)?;
    let user = match &asked.user {
        Some(user) => user.clone(),
        None => reader
            .first_user()?
            .ok_or_else(|| CommandError::input(format!("{}: it has no rows", asked.file.display())))?,
    };
    let (model, footprints) = asked.models.load()?;
    let rows = UserApps::read(&reader, &asked.file, &user)?;
    let (start, length) = beginning(&rows, &asked.from, asked.window, asked.seed, &model)
        .map_err(|why| CommandError::input(format!("--from: {why}")))?;
    let timeline = rows.timeline(&model, asked.seed, start, length);
    let series = demand(&timeline, &footprints, |package| model.category(package), asked.seed);
    let device = load(&asked.device).map_err(CommandError::input)?;
    let system = load_system(&asked.system).map_err(CommandError::input)?;
    let phone = system.managed(&device).saturating_sub(system.resident(&device).total());
    let begins = Nanos(u64::try_from(start.0 - rows.offset.midnight(start).0).unwrap_or(0));
    let figure = figure(&timeline, &series.demand, begins, &model, phone).note(format!(
        "{user}, {} from {}; footprints: {}; {} under {}",
        quantities::time(length),
        rows.offset.local(start),
        footprints.file(),
        device.id,
        system.id
    ));
    out.draw(&figure)?;
    let sessions = fronts(&series.demand).iter().filter(|(.., front)| front.is_some()).count();
    print(&format!("{user}: {sessions} stretches with an app in front, {} events\n", timeline.events.len()))
}

/// Intervals with the same foreground app, and those without one.
pub(crate) fn fronts(demand: &[Demand]) -> Vec<(Nanos, Nanos, Option<AppId>)> {
    let mut stretches: Vec<(Nanos, Nanos, Option<AppId>)> = Vec::new();
    for step in demand {
        if let Some(last) = stretches.last_mut() {
            last.1 = step.time;
            if last.2 == step.front {
                continue;
            }
        }
        stretches.push((step.time, step.time, step.front));
    }
    stretches
}

/// The number of apps with their own colour: those longest in the foreground.
const NAMED: usize = 6;
const OTHERS: &str = "other apps";

/// When each app came to the foreground, in hours, and for how many seconds; the apps with the most time first.
fn in_front(timeline: &AppTimeline, demand: &[Demand], launcher: &str, hours: &dyn Fn(Nanos) -> f64) -> Lines {
    let mut apps: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for (from, to, front) in fronts(demand) {
        let package = front.map_or("", |app| timeline.package(app));
        if !package.is_empty() && package != launcher {
            apps.entry(package).or_default().push((hours(from), (to - from).seconds().max(1.0)));
        }
    }
    let mut apps: Vec<(&str, Vec<(f64, f64)>)> = apps.into_iter().collect();
    let total = |points: &[(f64, f64)]| -> f64 { points.iter().map(|point| point.1).sum() };
    apps.sort_by(|a, b| total(&b.1).total_cmp(&total(&a.1)).then(a.0.cmp(b.0)));
    let others: Vec<(f64, f64)> = apps.iter().skip(NAMED).flat_map(|(_, points)| points.iter().copied()).collect();
    let named = apps.into_iter().take(NAMED).map(|(package, points)| (package.to_owned(), points));
    let all = named.chain((!others.is_empty()).then(|| (OTHERS.to_owned(), others)));
    all.fold(Lines::new(), |lines, (name, points)| lines.series(Series::new(name, points).stroke(Stroke::None)))
}

/// The picture; `phone` is the memory that the system at rest leaves.
fn figure(timeline: &AppTimeline, demand: &[Demand], begins: Nanos, model: &UsageModel, phone: Bytes) -> Figure {
    let hours = |time: Nanos| (begins + time).seconds() / 3600.0;
    let (from, to) = (hours(Nanos::ZERO), hours(timeline.length));
    let x = || Axis::new("hour of the user\u{2019}s day").unit("h").range(from, to);
    let sessions = in_front(timeline, demand, &model.launcher.package, &hours);
    let step = |name: &str, value: &dyn Fn(&Demand) -> f64| {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for now in demand {
            let value = value(now);
            if points.last().is_none_or(|last| last.1 != value) {
                points.push((hours(now.time), value));
            }
        }
        points.extend(points.last().map(|last| (to, last.1)));
        Series::new(name, points).stroke(Stroke::Step).unmarked()
    };
    let gigabytes = |bytes: Bytes| bytes.as_f64() / 1e9;
    let memory = Lines::new()
        .series(step("anonymous", &|now| gigabytes(now.anonymous)))
        .series(step("files", &|now| gigabytes(now.file)))
        .series(step("together", &|now| gigabytes(now.total())))
        .series(step("left to the trainer", &|now| gigabytes(phone.saturating_sub(now.total()))));
    let alive = Lines::new().series(step("apps alive", &|now| now.apps as f64));
    let panel = |lines: Lines, title: &str, y: Axis| Panel::new(lines).title(title).x(x()).y(y);
    let demanded = "demand of memory, nothing reclaimed, and what it leaves";
    Figure::new("A user\u{2019}s apps in front, and the memory that all apps leave to training")
        .columns(1)
        .panel_size(760, 190)
        .panel(panel(sessions, "apps that come in front", Axis::new("time in front").unit("s").log()))
        .panel(panel(memory, demanded, Axis::new("memory").unit("GB").from_zero()))
        .panel(panel(alive, "alive", Axis::new("apps").from_zero()))
}
