//! A phone in use during a run, from second to second: as a picture, in text and in JSON.

use std::collections::BTreeMap;

use haversack_devices::Bytes;
use haversack_memory::phone::PAGE;
use haversack_reports::{Axis, Figure, Lines, Panel, Series, Stroke};
use haversack_training::{Happening, PhoneSample, PhoneTrack};
use serde_json::{Value, json};

use crate::quantities;

/// The owners of memory, from the bottom of the stack upwards.
const OWNERS: [&str; 6] = ["kernel", "trainer", "apps and system", "files", "ZRAM", "free"];
/// The most points of a line, and of samples in JSON; longer series are thinned.
const MOST: usize = 600;
/// The number of apps with their own colour among launches.
const NAMED: usize = 5;

/// The memory of each of [`OWNERS`].
fn held(sample: &PhoneSample) -> [Bytes; 6] {
    let usage = &sample.usage;
    let others = usage.anonymous.saturating_sub(sample.trainer);
    [usage.pinned, sample.trainer, others, usage.file, usage.zram, usage.free]
}

/// Pages evicted and pages brought back so far.
fn moved(sample: &PhoneSample) -> [u64; 2] {
    let counted = &sample.counters;
    [counted.pgsteal_anon + counted.pgsteal_file, counted.workingset_refault_anon + counted.workingset_refault_file]
}

/// Pairs of samples between which a rate is computed; few enough to be drawn.
fn spans(track: &PhoneTrack) -> Vec<(&PhoneSample, &PhoneSample)> {
    let every = (track.samples.len() / MOST).max(1);
    let kept: Vec<&PhoneSample> = track.samples.iter().step_by(every).chain(track.samples.last()).collect();
    kept.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.last()?))).filter(|(a, b)| a.at < b.at).collect()
}

/// "training waits for memory for 12% of the time, 3 processes are killed".
pub(super) fn finding(track: &PhoneTrack) -> String {
    let of = |wanted: fn(&Happening) -> bool| track.events.iter().filter(move |event| wanted(&event.what));
    let waited: f64 = of(|what| *what == Happening::TrainerStall).map(|event| event.duration.seconds()).sum();
    let end = track.samples.last().map_or(0.0, |sample| sample.at.seconds());
    let kills = of(|what| matches!(what, Happening::Kill { .. })).count();
    let killed = match kills {
        0 => "no process is killed".to_owned(),
        _ => quantities::counted(kills, "process is killed", "processes are killed"),
    };
    format!("training waits for memory for {} of the time, {killed}", quantities::percent((waited / end).min(1.0)))
}

/// The run on the phone in four panels over time.
pub(super) fn figure(track: &PhoneTrack, title: String) -> Figure {
    let spans = spans(track);
    let end = track.samples.last().map_or(0.0, |sample| sample.at.seconds());
    let x = || Axis::new("time since the run began").unit("s").range(0.0, end.max(1e-3));
    let rate = |name: &str, of: &dyn Fn(&PhoneSample) -> f64| {
        let point = |(a, b): &(&PhoneSample, &PhoneSample)| (a.at.seconds(), (of(b) - of(a)) / (b.at - a.at).seconds());
        let mut points: Vec<(f64, f64)> = spans.iter().map(point).collect();
        points.extend(points.last().map(|last| (end, last.1)));
        Series::new(name, points).stroke(Stroke::Step).unmarked()
    };
    let gigabytes = |bytes: Bytes| bytes.as_f64() / 1e9;
    let mut memory = Lines::new();
    for top in (0..OWNERS.len()).rev() {
        let sum = |sample: &PhoneSample| gigabytes(held(sample)[..=top].iter().copied().sum());
        let points: Vec<(f64, f64)> = (spans.iter().map(|(a, _)| *a).chain(track.samples.last()))
            .map(|sample| (sample.at.seconds(), sum(sample)))
            .collect();
        memory = memory.series(Series::new(OWNERS[top], points).filled());
    }
    let mark = gigabytes(track.managed.saturating_sub(track.low_watermark));
    memory = memory.series(Series::new("kswapd works above this line", [(0.0, mark), (end, mark)]).unmarked());
    let megabytes = PAGE as f64 / 1e6;
    let traffic = ["evicted", "came back"].into_iter().enumerate().fold(Lines::new(), |lines, (place, name)| {
        lines.series(rate(name, &|sample| moved(sample)[place] as f64 * megabytes))
    });
    let stalls = Lines::new()
        .series(rate("some task stalls (PSI some)", &|sample| 100.0 * sample.pressure.some.seconds()))
        .series(rate("every task stalls (PSI full)", &|sample| 100.0 * sample.pressure.full.seconds()))
        .series(trainer_stalls(track, end));
    let size = |lines: Lines, title: &str, y: Axis| Panel::new(lines).title(title).x(x()).y(y.from_zero());
    Figure::new(title)
        .columns(1)
        .panel_size(760, 170)
        .panel(size(memory, "who holds memory", Axis::new("memory").unit("GB")))
        .panel(size(traffic, "pages on the move", Axis::new("evicted, came back").unit("MB/s")))
        .panel(size(stalls, "stalls for memory", Axis::new("share of time").unit("%")))
        .panel(size(
            arrivals(track),
            "apps that came to the front, and processes that were killed",
            Axis::new("launch took").unit("s"),
        ))
}

/// The percentage of each second in which the trainer waits for memory.
fn trainer_stalls(track: &PhoneTrack, end: f64) -> Series {
    let step = (end / MOST as f64).max(1.0);
    let mut waited = vec![0.0; (end / step) as usize + 1];
    for event in track.events.iter().filter(|event| event.what == Happening::TrainerStall) {
        let (mut from, to) = (event.start.seconds(), (event.start + event.duration).seconds());
        // A wait is divided among the spans it overlaps.
        while from < to {
            let place = (from / step) as usize;
            let until = to.min((place + 1) as f64 * step);
            if let Some(sum) = waited.get_mut(place) {
                *sum += until - from;
            }
            from = until.max(from + 1e-9);
        }
    }
    let points = waited.iter().enumerate().map(|(place, sum)| (place as f64 * step, (100.0 * sum / step).min(100.0)));
    let points: Vec<(f64, f64)> = points.filter(|point| point.0 < end).collect();
    Series::new("the trainer stalls", points).stroke(Stroke::Step).unmarked()
}

/// Launches by app, the longest first, and kills by victim and reason.
fn arrivals(track: &PhoneTrack) -> Lines {
    let mut launches: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    let mut kills: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for event in &track.events {
        match &event.what {
            Happening::Launch { app } => {
                launches.entry(app).or_default().push((event.start.seconds(), event.duration.seconds()));
            }
            Happening::Kill { app, reason, .. } => {
                let who = if app.is_some() { "app" } else { "trainer" };
                kills.entry(format!("{who} killed: {reason}")).or_default().push((event.start.seconds(), 0.0));
            }
            _ => {}
        }
    }
    let mut launches: Vec<(&str, Vec<(f64, f64)>)> = launches.into_iter().collect();
    let longest = |points: &[(f64, f64)]| points.iter().map(|point| point.1).fold(0.0, f64::max);
    launches.sort_by(|a, b| longest(&b.1).total_cmp(&longest(&a.1)));
    let others: Vec<(f64, f64)> = launches.iter().skip(NAMED).flat_map(|(_, points)| points.iter().copied()).collect();
    let named = launches.into_iter().take(NAMED).map(|(app, points)| (format!("launch of {app}"), points));
    let others = (!others.is_empty()).then(|| ("launch of others".to_owned(), others));
    let all = named.chain(others).chain(kills);
    all.fold(Lines::new(), |lines, (name, points)| lines.series(Series::new(name, points).stroke(Stroke::None)))
}

/// The owners of memory and the pages moved, sample by sample, and the events.
pub(super) fn json(track: &PhoneTrack) -> [(&'static str, Value); 2] {
    let every = (track.samples.len() / MOST).max(1);
    let sample = |sample: &PhoneSample| {
        let [kernel, trainer, apps, files, zram, free] = held(sample).map(|bytes| bytes.0);
        let [evicted, refaulted] = moved(sample);
        json!({
            "at_s": sample.at.seconds(), "kernel_bytes": kernel, "trainer_bytes": trainer, "apps_bytes": apps,
            "files_bytes": files, "zram_bytes": zram, "free_bytes": free, "evicted_pages": evicted,
            "refaulted_pages": refaulted, "psi_some_s": sample.pressure.some.seconds(),
            "psi_full_s": sample.pressure.full.seconds(),
        })
    };
    let events = track.events.iter().filter_map(|event| {
        let at = event.start.seconds();
        match &event.what {
            Happening::Launch { app } => Some(json!({"at_s": at, "launched": app, "took_s": event.duration.seconds()})),
            Happening::Kill { app, reason, adj, .. } => {
                Some(json!({"at_s": at, "killed": app.as_deref().unwrap_or("trainer"), "reason": reason, "adj": adj}))
            }
            Happening::TrainerStall | Happening::SystemStall | Happening::AppStall => None,
        }
    });
    [("samples", track.samples.iter().step_by(every).map(sample).collect()), ("events", events.collect())]
}
