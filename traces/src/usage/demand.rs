//! What the apps of a timeline ask of memory, second by second, as long as nobody reclaims anything.

use haversack_devices::units::{Bytes, Nanos};
use rand::RngExt;

use super::alive::{AliveApp, AppEvent, AppEventKind, AppId, apply};
use super::session::seconds;
use super::stream::stream;
use super::timeline::AppTimeline;
use crate::footprint::{Footprint, FootprintTable, Found, scaled};
use crate::row::OomAdj;

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

/// The demand of a timeline at steps of a second.
///
/// An app in front takes its whole footprint, one behind it the share that stays when cached; what is perceptible
/// (an adj up to 200) keeps all. A launch in front takes `launch_extra` more for a span between the table's two, drawn
/// for that launch; a return to the front takes the table's share of it, for the table's span. Extra bytes go when the
/// app leaves the front.
#[must_use]
pub fn demand<'c>(
    timeline: &AppTimeline,
    table: &FootprintTable,
    category: impl Fn(&str) -> Option<&'c str>,
    seed: u64,
) -> DemandSeries {
    let footprints = footprints(timeline, table, category, seed);
    let unknown = footprints.iter().enumerate().filter(|(_, (_, found))| *found == Found::Default);
    let unknown = unknown.map(|(index, _)| AppId(index as u32)).collect();
    let mut alive = timeline.initial.clone();
    let mut spikes: Vec<Spike> = Vec::new();
    let mut events = timeline.events.iter().peekable();
    let steps = timeline.length.0.div_ceil(1_000_000_000);
    let series = (0..steps)
        .map(|step| {
            let time = seconds(step);
            while let Some(event) = events.next_if(|event| event.time <= time) {
                apply(&mut alive, event);
                spikes.retain(|spike| spike.app != event.app);
                spikes.extend(spike(timeline, table, &footprints, event, seed));
            }
            spikes.retain(|spike| spike.until > time);
            at(time, &alive, &spikes, &footprints)
        })
        .collect();
    DemandSeries { demand: series, unknown }
}

/// Bytes beyond the footprint, for a while.
struct Spike {
    app: AppId,
    until: Nanos,
    extra: Bytes,
}

/// The extra bytes that an event brings, if it brings an app in front.
fn spike(
    timeline: &AppTimeline,
    table: &FootprintTable,
    footprints: &[(Footprint, Found)],
    event: &AppEvent,
    seed: u64,
) -> Option<Spike> {
    let launch = table.launch();
    let extra = footprints.get(event.app.0 as usize)?.0.launch_extra;
    let (span, extra) = match event.kind {
        AppEventKind::Launch(OomAdj::FOREGROUND_APP) => {
            // Named by its time of day, so that another window over the same launch draws the same.
            let begun = timeline.start.0.saturating_add(i64::try_from(event.time.0).unwrap_or(i64::MAX));
            let draw: f64 = stream(seed, &timeline.user, &format!("launch {begun}")).random();
            let (least, most) = (launch.span.0.seconds(), launch.span.1.seconds());
            (Nanos::from_seconds(least + draw * (most - least)), extra)
        }
        AppEventKind::ToForeground => (launch.return_span, scaled(extra, launch.return_share.0)),
        _ => return None,
    };
    Some(Spike { app: event.app, until: event.time + span, extra })
}

fn at(time: Nanos, alive: &[AliveApp], spikes: &[Spike], footprints: &[(Footprint, Found)]) -> Demand {
    let mut demand = Demand { time, anonymous: Bytes::ZERO, file: Bytes::ZERO, apps: alive.len(), front: None };
    for app in alive {
        let in_front = app.adj.is_foreground();
        if let Some((footprint, _)) = footprints.get(app.app.0 as usize) {
            let (anonymous, file) = footprint.held(!app.adj.is_background());
            demand.anonymous += anonymous;
            demand.file += file;
        }
        if in_front {
            demand.front = Some(app.app);
        }
    }
    demand.anonymous += spikes.iter().map(|spike| spike.extra).sum();
    demand
}
