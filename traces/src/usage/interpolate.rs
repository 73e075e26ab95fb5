//! What is taken to happen between samples that come every one to two hours: "Between samples" in [`crate::usage`].

use haversack_devices::units::Nanos;

use super::alive::AppEvent;
use super::generate::{LAUNCHER, days_until};
use super::model::UsageModel;
use super::play::{Candidate, Player};
use super::session::{Session, SessionStream};
use super::timeline::{AppTimeline, Names, since};
use super::user::User;
use crate::row::{AppRow, OomAdj, Source, UtcTime};

/// A sample: when, since the midnight before the trace, and the apps that the next sessions show.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    time: Nanos,
    candidates: Vec<Candidate>,
}

/// The timeline of `user` over a window, from `rows` that are samples, sorted by time and not empty.
pub(super) fn interpolate(
    model: &UsageModel,
    seed: u64,
    rows: &[AppRow<'_>],
    (user, start, length): (&str, UtcTime, Nanos),
    opened: impl Fn(&str) -> bool,
) -> AppTimeline {
    const DAY: i64 = 86_400 * 1_000_000_000;
    let first = rows.first().map_or(start, |row| row.time);
    let midnight = UtcTime(first.0.div_euclid(DAY).saturating_mul(DAY));
    let mut names = Names::new(&model.launcher.package);
    let samples = samples(model, rows, midnight, &mut names, opened);
    let user_drawn = User::new(model, seed, user);
    // The user's days begin with the trace, whatever the window, which may begin before or after.
    let (from, lead) = (since(midnight, start), since(start, midnight));
    let end = Nanos(from.0.saturating_add(length.saturating_sub(lead).0));
    let behind: &[Candidate] = samples.first().map_or(&[], |sample| &sample.candidates);
    let mut events = Vec::new();
    let mut player = Player::new(model, (seed, user), LAUNCHER, (behind, user_drawn.background + 1), &mut events);
    for session in SessionStream::new(model, seed, &user_drawn, days_until(end)) {
        if let Some(sample) = latest(&samples, &session, model.interpolation.horizon.value) {
            player.play(&session, &sample.candidates, &mut events);
        }
    }
    let events = events.into_iter().map(|event| AppEvent { time: event.time + lead, ..event });
    AppTimeline::empty(user, start, length, names.packages).filled(from, events)
}

/// The sample that a session follows within `horizon`.
fn latest<'s>(samples: &'s [Sample], session: &Session, horizon: Nanos) -> Option<&'s Sample> {
    let after = samples.partition_point(|sample| sample.time <= session.start);
    let sample = after.checked_sub(1).and_then(|index| samples.get(index))?;
    (session.start.saturating_sub(sample.time) <= horizon).then_some(sample)
}

/// The samples of a user with what each says of apps, the likeliest first.
fn samples(
    model: &UsageModel,
    rows: &[AppRow<'_>],
    midnight: UtcTime,
    names: &mut Names,
    opened: impl Fn(&str) -> bool,
) -> Vec<Sample> {
    rows.chunk_by(|a, b| a.time == b.time)
        .map(|rows| {
            let mut candidates: Vec<Candidate> = Vec::new();
            for row in rows.iter().filter(|row| opened(row.package)) {
                let Some(weight) = weight(model, row) else { continue };
                let app = names.id(row.package);
                let known = model.catalogue.iter().find(|known| known.package == row.package);
                let perceptible = known.map_or(0.0, |known| known.perceptible);
                match candidates.iter_mut().find(|candidate| candidate.app == app) {
                    Some(twice) => twice.weight = twice.weight.max(weight),
                    None => candidates.push(Candidate { app, weight, perceptible }),
                }
            }
            candidates.retain(|candidate| candidate.app != LAUNCHER);
            candidates.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.app.cmp(&b.app)));
            Sample { time: since(midnight, rows.first().map_or(midnight, |row| row.time)), candidates }
        })
        .collect()
}

/// How likely the app of a row is opened; none for what is not the user's.
fn weight(model: &UsageModel, row: &AppRow<'_>) -> Option<f64> {
    let foreground = model.interpolation.foreground_weight.value.0;
    match row.adj {
        _ if row.source == Source::Tsinghua => Some(1.0),
        adj if adj < OomAdj::FOREGROUND_APP => None,
        adj if adj <= OomAdj::PERCEPTIBLE_APP => Some(foreground),
        adj if adj >= OomAdj::PREVIOUS_APP && adj < OomAdj::CACHED_APP_MAX => Some(1.0),
        _ => None,
    }
}
