//! Users: the length of their sessions, the number of background apps, and one user's apps over ten minutes.

use std::path::Path;

use haversack_traces::footprint::FootprintTable;
use haversack_traces::usage::{
    AppEventKind, AppTimeline, Population, Session, SessionReader, SessionStatistics, UsageModel, UserSessions, demand,
    sessions as statistics,
};

use super::setting::S22;
use crate::artefacts::prelude::*;
use crate::scenario::{TraceFrom, beginning};
use crate::trace_command::fronts;
use crate::trace_table::{Reader, UserApps};

const MEAN: &str = "fedhybrid/figure11a/carat/sessions/mean-duration";
const SHARE: &str = "fedhybrid/figure11a/carat/sessions/share-between-126-and-412-s";
const BEHIND: &str = "fedhybrid/figure11b/carat/sessions/background-apps";
/// Points of the curve of all sessions.
const POINTS: usize = 200;

/// The whole numbers in a text, in their order: `share-between-126-and-412-s` has 126 and 412.
fn numbers(words: &str) -> Vec<u64> {
    words.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// Exactly two of the numbers in `words`.
fn two_numbers(words: &str) -> Result<[u64; 2]> {
    numbers(words).try_into().map_err(|_| anyhow!("`{words}` does not hold two numbers"))
}

/// The number of users, and of days for each, from the reading.
fn users_and_days(context: &Context<'_>) -> Result<[u64; 2]> {
    let &[users, days] = context.reading_numbers("users")? else { bail!("`users` is users and days") };
    Ok([users as u64, days as u64])
}

/// Offers the texts in both figures that name the users.
fn offer_whose(context: &Context<'_>, outcome: &mut Outcome) -> Result<()> {
    if let Some(trace) = context.trace {
        outcome.words("whose", format!("the users of {}", trace.display()));
        return Ok(());
    }
    let [users, days] = users_and_days(context)?;
    outcome.words("whose", format!("{users} synthetic users, {days} days of each, seed {}", context.seed));
    Ok(())
}

/// The sessions of the users of the trace, or of those that the reading declares.
fn of_all(context: &Context<'_>) -> Result<SessionStatistics> {
    if let Some(trace) = context.trace {
        return sessions_of_table(trace);
    }
    let [users, days] = users_and_days(context)?;
    let model = UsageModel::built_in()?;
    let population = Population::new(&model, users as usize, days, context.seed);
    let each = |name: &String| statistics(population.rows_of(name)).users;
    let users: Vec<UserSessions> = population.names().par_iter().flat_map_iter(each).collect();
    Ok(SessionStatistics { users, ..SessionStatistics::default() })
}

/// The mean of the `share` of `sorted` values that are nearest to each other, and their range: the shortest interval
/// with this share of the values.
fn of_the_nearest(sorted: &[f64], share: f64) -> Option<(f64, std::ops::Range<usize>)> {
    let count = ((sorted.len() as f64 * share).ceil() as usize).max(1);
    let width = |from: &usize| sorted[from + count - 1] - sorted[*from];
    let from = (0..=sorted.len().checked_sub(count)?).min_by(|a, b| width(a).total_cmp(&width(b)))?;
    let nearest = from..from + count;
    Some((sorted[nearest.clone()].iter().sum::<f64>() / count as f64, nearest))
}

pub(super) fn sessions(context: &Context<'_>) -> Result<Outcome> {
    let found = of_all(context)?;
    let mut users: Vec<&UserSessions> = found.users.iter().filter(|user| !user.sessions.is_empty()).collect();
    users.sort_by_key(|user| user.mean());
    let means: Vec<f64> = users.iter().map(|user| user.mean().seconds()).collect();
    let (stated, within) = (context.row(MEAN)?, context.row(SHARE)?);
    let of_users = numbers(&stated.conditions).first().copied();
    let of_users = of_users.with_context(|| format!("`{MEAN}` does not say of how many users"))?;
    let nearest = of_the_nearest(&means, of_users as f64 / 100.0);
    let (mean, nearest) = nearest.context("no user has a session")?;
    let ends = two_numbers(&within.metric)?;
    let seconds = |s: u64| Nanos::from_seconds(s as f64);
    let share = found.sessions_within(seconds(ends[0]), seconds(ends[1])).0 * 100.0;

    let mut outcome = Outcome::of("user,sessions,mean_s,deviation_s,sessions_per_day");
    outcome.number(MEAN, mean);
    outcome.remark(
        MEAN,
        format!(
            "{} of {} users, whose means lie between {:.0} and {:.0} s",
            nearest.len(),
            means.len(),
            means[nearest.start],
            means[nearest.end - 1]
        ),
    );
    outcome.answer(SHARE, Answer::Input(share));
    outcome
        .remark(SHARE, "the spread of the sessions of one user is fitted to it, so that it says nothing of the model");
    for user in &users {
        let seconds = [user.mean(), user.deviation()].map(Nanos::seconds);
        outcome.row((user.user.as_str(), user.sessions.len() as u64, seconds, user.per_day().0))?;
    }
    offer_whose(context, &mut outcome)?;
    outcome.words("most of the users", format!("over {of_users} % of the users"));
    user_by_user(&mut outcome, &users, stated.number(), nearest);
    all_together(&mut outcome, &found, ends, within.number());
    Ok(outcome)
}

/// Mean and standard deviation per user, users sorted by their means.
fn user_by_user(outcome: &mut Outcome, users: &[&UserSessions], stated: Option<f64>, nearest: std::ops::Range<usize>) {
    let curve = |of: fn(&UserSessions) -> Nanos| -> Vec<(f64, f64)> {
        let points = users.iter().enumerate().map(|(index, user)| ((index + 1) as f64, of(user).seconds()));
        // A user with one session has no deviation, and no position on a logarithmic axis.
        points.filter(|(_, seconds)| *seconds > 0.0).collect()
    };
    let mut lines = Lines::new()
        .series(Series::new("standard deviation", curve(UserSessions::deviation)).unmarked())
        .series(Series::new("mean", curve(UserSessions::mean)).unmarked());
    if let Some(stated) = stated {
        let points = [(nearest.start + 1) as f64, nearest.end as f64].map(|user| (user, stated));
        lines = lines.series(Series::new("mean", points).look(Look::Hatched).unmarked());
    }
    let length = axis("length of a session", "s").log().ticks_at([30.0, 50.0, 100.0, 200.0, 300.0, 500.0]);
    outcome.panel("each user", lines, Axis::new("users, by their means"), length);
}

/// The fraction of all sessions up to each length.
fn all_together(outcome: &mut Outcome, found: &SessionStatistics, ends: [u64; 2], stated: Option<f64>) {
    let sessions = found.users.iter().flat_map(|user| &user.sessions);
    let mut lengths: Vec<f64> = sessions.map(|session| session.length.seconds()).collect();
    lengths.sort_by(f64::total_cmp);
    let share = |length: f64| lengths.partition_point(|&other| other <= length) as f64 / lengths.len().max(1) as f64;
    let at = |step: usize| lengths.get(step * lengths.len().saturating_sub(1) / POINTS).copied();
    let points: Vec<_> = (0..=POINTS).filter_map(at).map(|length| (length, share(length) * 100.0)).collect();
    let mut lines = Lines::new().series(Series::new("sessions", points).unmarked());
    if let Some(stated) = stated {
        // The paper gives the number between the ends, not the number below: its step begins on the curve.
        let [low, high] = ends.map(|end| end as f64);
        let below = share(low) * 100.0;
        let step = [(low, below), (high, below), (high, below + stated)];
        lines = lines.series(Series::new("sessions", step).look(Look::Hatched).unmarked());
    }
    let share = axis("sessions no longer", "%").range(0.0, 100.0);
    outcome.panel("all sessions", lines, axis("length of a session", "s").log(), share);
}

pub(super) fn apps(context: &Context<'_>) -> Result<Outcome> {
    let found = of_all(context)?;
    let sessions = found.users.iter().flat_map(|user| &user.sessions);
    let mut behind: Vec<usize> = sessions.map(|session| session.background).collect();
    behind.sort_unstable();
    let (Some(&least), Some(&most)) = (behind.first(), behind.last()) else {
        bail!("no user has a session");
    };
    // The smallest number that is not exceeded in a tenth, or in nine tenths, of all sessions.
    let tenth = |tenths: usize| behind[(behind.len() * tenths).div_ceil(10).saturating_sub(1)];
    let (low, high) = (tenth(1), tenth(9));
    let (mut records, mut outcome) = (Records::of("background_apps,sessions,share_percent"), Outcome::default());
    outcome.answer(BEHIND, Answer::Range(low as f64, high as f64));
    for count in least..=most {
        let sessions = behind.iter().filter(|&&other| other == count).count();
        let percent = sessions as f64 / behind.len() as f64 * 100.0;
        records.row((count as u64, sessions as u64, percent))?;
    }
    offer_whose(context, &mut outcome)?;
    show(context, records, outcome)
}

/// The window that is shown.
const LENGTH: Nanos = Nanos(600 * 1_000_000_000);
/// The number of sessions in it, and the quiet time before the first.
const SESSIONS: usize = 3;
const BEFORE: Nanos = Nanos(20 * 1_000_000_000);
/// The least number of launches, and of returns from the background, in it.
const CHANGES: usize = 3;
/// Users and days that are searched for the window.
const USERS: usize = 100;
const DAYS: u64 = 2;

/// The first window of the first user with this number of sessions, in which apps are both launched and returned to.
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

/// The number of times that an app comes to the foreground: by a launch, or from the background.
fn changes(timeline: &AppTimeline, launched: bool) -> usize {
    let front = timeline.events.iter().filter(|event| event.is_to_front());
    front.filter(|event| matches!(event.kind, AppEventKind::Launch(_)) == launched).count()
}

/// The last part of a package's name that is not its vendor's.
fn short(package: &str) -> String {
    let word = package.rsplit('.').find(|word| !matches!(*word, "android" | "app" | "apps")).unwrap_or(package);
    word.to_owned()
}

pub(super) fn figure12(context: &Context<'_>) -> Result<Outcome> {
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
    outcome.quantity("in use", "GB", memory.iter().map(|(_, in_use)| *in_use));
    outcome.quantity("managed", "GB", [managed]);
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

/// The sessions of all users.
///
/// # Errors
/// A file that does not contain a table of apps; rows without sessions.
pub(super) fn sessions_of_table(path: &Path) -> Result<SessionStatistics> {
    let reader = Reader::open(path)?;
    let mut sessions = SessionReader::default();
    for group in reader.groups() {
        reader.apps(&group?, |row| sessions.push(&row))?;
    }
    let found = sessions.finish();
    ensure!(found.count() > 0, "{}: its rows are samples, which say nothing of sessions", path.display());
    Ok(found)
}

/// The first users whose traces have an evening, at most `count`, at least one.
///
/// # Errors
/// A file that does not contain a table of apps; no user with an evening.
pub(super) fn with_evening(path: &Path, count: usize) -> Result<Vec<String>> {
    let (reader, model) = (Reader::open(path)?, UsageModel::built_in()?);
    let mut found = Vec::new();
    for user in reader.users()? {
        let apps = UserApps::read(&reader, path, &user)?;
        if beginning(&apps, &TraceFrom::Evening, Nanos(0), 0, &model).is_ok() {
            found.push(user);
        }
        if found.len() == count {
            break;
        }
    }
    ensure!(!found.is_empty(), "{}: no user's trace has an evening", path.display());
    Ok(found)
}

/// The apps of the first user with an evening, from then on.
///
/// # Errors
/// As [`with_evening`].
pub(super) fn first_evening(path: &Path, model: &UsageModel, seed: u64, length: Nanos) -> Result<AppTimeline> {
    let users = with_evening(path, 1)?;
    let user = users.first().context("no user has an evening")?;
    let apps = UserApps::read(&Reader::open(path)?, path, user)?;
    let (start, _) = beginning(&apps, &TraceFrom::Evening, length, seed, model).map_err(anyhow::Error::msg)?;
    Ok(apps.timeline(model, seed, start, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_words() {
        assert_eq!(numbers("share-between-126-and-412-s"), [126, 412]);
        assert_eq!(numbers("over 70% of users; 150 users, 30 days"), [70, 150, 30]);
        assert!(two_numbers("150 users").is_err());
    }

    #[test]
    fn the_nearest_are_the_shortest_stretch_that_holds_so_many() {
        // Three of five: 1..10 spans 9, 9..11 spans 2, 10..90 spans 80. Their mean is (9 + 10 + 11) / 3.
        let (mean, which) = of_the_nearest(&[1.0, 9.0, 10.0, 11.0, 90.0], 0.6).unwrap();
        assert_eq!((mean, which), (10.0, 1..4));
        assert!(of_the_nearest(&[], 0.7).is_none());
    }
}
