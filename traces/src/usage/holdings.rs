//! The memory of each app of a timeline, change by change; and of all of them together, second by second, assuming that
//! nothing is reclaimed.

use haversack_devices::{Bytes, Fraction, Nanos, Stream};
use rand::RngExt;

use super::alive::{AppEvent, AppEventKind, AppId};
use super::session::seconds;
use super::timeline::AppTimeline;
use crate::footprint::{Footprint, Found, scaled};
use crate::{FootprintTable, OomAdj};

/// The memory of an app from a time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Holding {
    /// The time, since the beginning of the timeline.
    pub time: Nanos,
    /// The app.
    pub app: AppId,
    /// Its state and its memory; `None` if it has ended.
    pub held: Option<Held>,
}

/// The memory of an app that is alive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    /// How readily it is killed.
    pub adj: OomAdj,
    /// Bytes of heaps and graphics, the extra ones of a launch or a return included.
    pub anonymous: Bytes,
    /// Bytes of files.
    pub file: Bytes,
    /// The fraction of both that it touches at this change.
    pub touched: Fraction,
}

/// Every change of the memory of a timeline's apps, in order of time; those that are alive at the beginning come first.
///
/// An app in front takes its whole footprint, one in the background the fraction that remains when cached; a
/// perceptible app (an adj up to 200) keeps everything. A launch in front takes `launch_extra` more for a time between
/// the table's two, drawn for that launch; a return to the front takes the table's fraction of it, for the table's
/// time. Extra bytes are freed when the app leaves the front. A launch touches everything, a return the table's
/// fraction, and an app that leaves the front nothing.
pub fn holdings<'c>(
    timeline: &AppTimeline,
    table: &FootprintTable,
    category: impl Fn(&str) -> Option<&'c str>,
    seed: u64,
) -> Vec<Holding> {
    let apps = Apps { timeline, table, footprints: footprints(timeline, table, category, seed), seed };
    let mut changes = Vec::new();
    for alive in &timeline.initial {
        changes.push(apps.at(Nanos::ZERO, alive.app, alive.adj, Bytes::ZERO, Fraction(1.0)));
    }
    for (place, event) in timeline.events.iter().enumerate() {
        let Some(adj) = event.kind.adj() else {
            changes.push(Holding { time: event.time, app: event.app, held: None });
            continue;
        };
        let touched = apps.touched(event);
        let Some((until, extra)) = apps.spike(event) else {
            changes.push(apps.at(event.time, event.app, adj, Bytes::ZERO, touched));
            continue;
        };
        changes.push(apps.at(event.time, event.app, adj, extra, touched));
        // The extra bytes are freed unless an earlier event of the app does so.
        let next = timeline.events[place + 1..].iter().find(|later| later.app == event.app);
        if next.is_none_or(|next| next.time > until) {
            changes.push(apps.at(until, event.app, adj, Bytes::ZERO, Fraction(0.0)));
        }
    }
    // Stable: changes at the same time stay in the order of their causes.
    changes.sort_by_key(|change| change.time);
    changes
}

struct Apps<'a> {
    timeline: &'a AppTimeline,
    table: &'a FootprintTable,
    footprints: Vec<(Footprint, Found)>,
    seed: u64,
}

impl Apps<'_> {
    fn footprint(&self, app: AppId) -> Option<&Footprint> {
        self.footprints.get(app.0 as usize).map(|(footprint, _)| footprint)
    }

    fn at(&self, time: Nanos, app: AppId, adj: OomAdj, extra: Bytes, touched: Fraction) -> Holding {
        let whole = !adj.is_background();
        let (anonymous, file) = self.footprint(app).map_or((Bytes::ZERO, Bytes::ZERO), |found| found.held(whole));
        Holding { time, app, held: Some(Held { adj, anonymous: anonymous + extra, file, touched }) }
    }

    /// The fraction that an event touches.
    fn touched(&self, event: &AppEvent) -> Fraction {
        match event.kind {
            AppEventKind::Launch(_) => Fraction(1.0),
            AppEventKind::ToForeground => self.footprint(event.app).map_or(Fraction(1.0), |found| found.touched),
            AppEventKind::ToBackground(_) | AppEventKind::Exit => Fraction(0.0),
        }
    }

    /// The end of the extra bytes of an event that brings an app to the front, and their number.
    fn spike(&self, event: &AppEvent) -> Option<(Nanos, Bytes)> {
        let launch = self.table.launch();
        let extra = self.footprint(event.app)?.launch_extra;
        match event.kind {
            AppEventKind::Launch(OomAdj::FOREGROUND_APP) => {
                // The stream is named by time of day, so that another window over the same launch draws the same.
                let begun = self.timeline.start.0.saturating_add(i64::try_from(event.time.0).unwrap_or(i64::MAX));
                let draw: f64 = Stream::of_user(self.seed, &self.timeline.user, &format!("launch {begun}")).random();
                let (least, most) = (launch.least_s.seconds(), launch.most_s.seconds());
                Some((event.time + Nanos::from_seconds(least + draw * (most - least)), extra))
            }
            AppEventKind::ToForeground => Some((event.time + launch.return_s, scaled(extra, launch.return_share.0))),
            _ => None,
        }
    }
}

/// The memory that apps demand at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The time, since the beginning of the timeline.
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
    pub fn total(&self) -> Bytes {
        self.anonymous + self.file
    }
}

/// The demand of a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemandSeries {
    /// One per second, from the beginning to before the end.
    pub demand: Vec<Demand>,
    /// Apps of the timeline that the table lists neither by package nor by category.
    pub unknown: Vec<AppId>,
}

/// The footprints of a timeline's apps on their user's phone, by [`AppId`], and how each was found.
///
/// `category` gives the Play category of a package, if it is known.
pub fn footprints<'c>(
    timeline: &AppTimeline,
    table: &FootprintTable,
    category: impl Fn(&str) -> Option<&'c str>,
    seed: u64,
) -> Vec<(Footprint, Found)> {
    let find = |package: &str| table.find_for(package, category(package), &timeline.user, seed);
    timeline.packages.iter().map(|package| find(package)).collect()
}

/// The demand of a timeline in steps of one second: the sum of the memory of its apps ([`holdings`]).
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
