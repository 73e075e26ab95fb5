//! Figure 12: memory in use on a phone whose user launches apps and switches between them.

use haversack_traces::footprint::FootprintTable;
use haversack_traces::usage::{AppEventKind, AppTimeline, Population, Session, UsageModel, demand};

use super::real_users::first_evening;
use super::setting::S22;
use crate::artefacts::prelude::*;
use crate::trace_command::fronts;

/// The window that is shown.
const LENGTH: Nanos = Nanos(600 * 1_000_000_000);
/// Sessions that are to lie in it, and the quiet time before the first.
const SESSIONS: usize = 3;
const BEFORE: Nanos = Nanos(20 * 1_000_000_000);
/// Launches in front, and returns from behind, that are to lie in it at least.
const CHANGES: usize = 3;
/// Users and days among which the window is looked for.
const USERS: usize = 100;
const DAYS: u64 = 2;

/// The first window of the first user that has this number of sessions and in which apps are launched in front and returned
/// to as well.
fn window(model: &UsageModel, seed: u64) -> Result<AppTimeline> {
    let users = Population::new(model, USERS, DAYS, seed);
    for name in users.names() {
        let sessions: Vec<Session> = users.sessions(name).collect();
        for some in sessions.windows(SESSIONS) {
            let from = some[0].start.saturating_sub(BEFORE);
            if some[SESSIONS - 1].end() > from + LENGTH {
                continue;
            }
            let timeline = AppTimeline::generated(model, seed, name, from, LENGTH);
            if changes(&timeline, true) >= CHANGES && changes(&timeline, false) >= CHANGES {
                return Ok(timeline);
            }
        }
    }
    bail!("none of {USERS} users has {SESSIONS} sessions within {} s", LENGTH.seconds())
}

/// How often an app comes in front: by a launch, or from behind.
fn changes(timeline: &AppTimeline, launched: bool) -> usize {
    let front = timeline.events.iter().filter(|event| event.is_to_front());
    front.filter(|event| matches!(event.kind, AppEventKind::Launch(_)) == launched).count()
}

/// The last word of a package's name that is not its maker's.
fn short(package: &str) -> String {
    let word = package.rsplit('.').find(|word| !matches!(*word, "android" | "app" | "apps")).unwrap_or(package);
    word.to_owned()
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let (device, system) = (context.device(S22)?, context.system(context.reading_text("system")?)?);
    let (model, footprints) = (UsageModel::built_in()?, FootprintTable::built_in()?);
    let timeline = match context.trace {
        Some(trace) => first_evening(trace, &model, context.seed, LENGTH)?,
        None => window(&model, context.seed)?,
    };
    let series = demand(&timeline, &footprints, |package| model.category(package), context.seed);
    let own = system.resident(&device).total();
    let gigabytes = |bytes: Bytes| bytes.as_f64() / 1e9;
    let mut outcome = Outcome::of("time_s,front,apps,app_anonymous_mb,app_file_mb,in_use_gb");
    let (mut memory, mut anonymous, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for step in &series.demand {
        let front = step.front.map_or("", |app| timeline.package(app));
        let (of_apps, in_use) = ([step.anonymous, step.file].map(Bytes::megabytes), gigabytes(own + step.total()));
        outcome.row((step.time.seconds(), front, step.apps as u64, of_apps, in_use))?;
        let minutes = step.time.seconds() / 60.0;
        memory.push((minutes, in_use));
        anonymous.push((minutes, of_apps[0]));
        files.push((minutes, of_apps[1]));
    }
    let managed = gigabytes(system.managed(&device));
    let mut trace = Trace::new("memory in use", memory).wall("memory that the kernel manages", [(0.0, managed)]);
    for (from, to, front) in fronts(&series.demand) {
        let package = front.map_or("", |app| timeline.package(app));
        if !package.is_empty() && package != model.launcher.package {
            trace = trace.phase(from.seconds() / 60.0, to.seconds() / 60.0, short(package));
        }
    }
    let steps = |name, points: Vec<(f64, f64)>| Series::new(name, points).stroke(Stroke::Step).unmarked();
    let apps = Lines::new().series(steps("apps, anonymous", anonymous)).series(steps("apps, files", files));
    let minutes = || axis("time", "min").range(0.0, LENGTH.seconds() / 60.0);
    outcome.panel("", trace, minutes(), axis("whole phone", "GB"));
    outcome.panel("", apps, minutes(), from_zero("apps alone", "MB"));
    let [launches, returns] = [true, false].map(|launched| changes(&timeline, launched));
    let who = format!("User {}, seed {}: {launches} launches, {returns} returns", timeline.user, context.seed);
    outcome.words("whose apps", who);
    Ok(outcome)
}
