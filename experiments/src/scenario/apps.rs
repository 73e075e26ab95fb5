//! What apps do to a phone's memory: a user's timeline by a table of footprints.

use haversack_devices::units::Nanos;
use haversack_traces::footprint::FootprintTable;
use haversack_traces::usage::{AppTimeline, UsageModel, holdings};
use haversack_training::phone::{AppChange, AppState};

/// What the apps of `timeline` do to memory by `table`; packages have the categories that `model` knows.
#[must_use]
pub fn app_changes(timeline: &AppTimeline, table: &FootprintTable, model: &UsageModel, seed: u64) -> Vec<AppChange> {
    let changes = holdings(timeline, table, |package| model.category(package), seed);
    let changed = changes.into_iter().map(|change| AppChange {
        at: change.time,
        app: timeline.package(change.app).to_owned(),
        state: change.held.map(|held| AppState {
            adj: i32::from(held.adj.0),
            anonymous: held.anonymous,
            file: held.file,
            touched: held.touched,
        }),
    });
    changed.collect()
}

/// The apps of the synthetic user `name` under `seed` for `length` from `from` after the first midnight on.
#[must_use]
pub fn generated_apps(
    model: &UsageModel,
    table: &FootprintTable,
    (name, seed): (&str, u64),
    (from, length): (Nanos, Nanos),
) -> Vec<AppChange> {
    app_changes(&AppTimeline::generated(model, seed, name, from, length), table, model, seed)
}
