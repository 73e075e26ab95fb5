//! What the apps of a timeline ask of memory, second by second, as long as nobody reclaims anything.

use haversack_devices::units::{Bytes, Nanos};

use super::alive::AppId;
use super::holdings::{Held, holdings};
use super::session::seconds;
use super::timeline::AppTimeline;
use crate::footprint::{Footprint, FootprintTable, Found};

/// What apps ask for at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Since the beginning of the timeline.
    pub time: Nanos,
    /// Bytes of heaps and graphics, the extra ones of launches and returns included.
    pub anonymous: Bytes,
    /// Bytes of files.
    pub file: Bytes,
    /// Apps that are alive, the launcher included.
    pub apps: usize,
    /// The app in front.
    pub front: Option<AppId>,
}

impl Demand {
    /// All bytes.
    #[must_use]
    pub fn total(&self) -> Bytes {
        self.anonymous + self.file
    }
}

/// The demand of a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemandSeries {
    /// One every second, from the beginning to before the end.
    pub demand: Vec<Demand>,
    /// Apps of the timeline that the table knows neither by package nor by category.
    pub unknown: Vec<AppId>,
}

/// The footprints of a timeline's apps on their user's phone, by [`AppId`], and how each was found.
///
/// `category` gives the Play category of a package, where it is known.
#[must_use]
pub fn footprints<'c>(
    timeline: &AppTimeline,
    table: &FootprintTable,
    category: impl Fn(&str) -> Option<&'c str>,
    seed: u64,
) -> Vec<(Footprint, Found)> {
    let find = |package: &str| table.find_for(package, category(package), &timeline.user, seed);
    timeline.packages.iter().map(|package| find(package)).collect()
}

/// The demand of a timeline at steps of a second: the sum of what its apps hold ([`holdings`]).
#[must_use]
pub fn demand<'c>(
    timeline: &AppTimeline,
    table: &FootprintTable,
    category: impl Fn(&str) -> Option<&'c str>,
    seed: u64,
) -> DemandSeries {
    let found = footprints(timeline, table, &category, seed);
    let unknown = found.iter().enumerate().filter(|(_, (_, found))| *found == Found::Default);
    let unknown = unknown.map(|(index, _)| AppId(index as u32)).collect();
    let mut held: Vec<(AppId, Held)> = Vec::new();
    let mut changes = holdings(timeline, table, category, seed).into_iter().peekable();
    let steps = timeline.length.0.div_ceil(1_000_000_000);
    let series = (0..steps)
        .map(|step| {
            let time = seconds(step);
            while let Some(change) = changes.next_if(|change| change.time <= time) {
                held.retain(|(app, _)| *app != change.app);
                held.extend(change.held.map(|state| (change.app, state)));
            }
            at(time, &held)
        })
        .collect();
    DemandSeries { demand: series, unknown }
}

fn at(time: Nanos, held: &[(AppId, Held)]) -> Demand {
    Demand {
        time,
        anonymous: held.iter().map(|(_, held)| held.anonymous).sum(),
        file: held.iter().map(|(_, held)| held.file).sum(),
        apps: held.len(),
        front: held.iter().find(|(_, held)| held.adj.is_foreground()).map(|(app, _)| *app),
    }
}
