//! Timelines: their invariants, their windows, and the timelines of imported rows.

use std::collections::BTreeSet;

use haversack_devices::units::Nanos;
use haversack_traces::row::{AppRow, Confidence, OomAdj, Source, UtcTime};
use haversack_traces::usage::{
    AliveApp, AppEvent, AppEventKind, AppId, AppTimeline, Population, UsageModel, Window, seems_opened, sessions,
};

const HOUR: i64 = 3600;

fn seconds(count: u64) -> Nanos {
    Nanos(count * 1_000_000_000)
}

fn window_of(start: UtcTime, length: Nanos) -> Window {
    Window { start, length, ..Window::default() }
}

fn model() -> UsageModel {
    UsageModel::built_in().unwrap()
}

fn row(user: &'static str, second: i64, package: &'static str, adj: i16, source: Source) -> AppRow<'static> {
    let time = UtcTime::from_seconds(second);
    AppRow { user, time, package, adj: OomAdj(adj), source, confidence: Confidence::Recorded }
}

fn fronts(alive: &[AliveApp]) -> usize {
    alive.iter().filter(|app| app.adj.is_foreground()).count()
}

/// An app that starts must not be alive; for all other events it must be.
fn assert_consistent(timeline: &AppTimeline) {
    let mut alive: BTreeSet<AppId> = timeline.initial.iter().map(|app| app.app).collect();
    assert_eq!(alive.len(), timeline.initial.len(), "nothing is alive twice");
    assert!(timeline.events.is_sorted_by_key(|event| event.time));
    for event in &timeline.events {
        match event.kind {
            AppEventKind::Launch(_) => assert!(alive.insert(event.app), "{event:?} of what is alive"),
            AppEventKind::Exit => assert!(alive.remove(&event.app), "{event:?} of what is not alive"),
            AppEventKind::ToForeground | AppEventKind::ToBackground(_) => {
                assert!(alive.contains(&event.app), "{event:?}")
            }
        }
        assert!(!timeline.package(event.app).is_empty());
    }
}

#[test]
fn a_session_has_one_app_in_front_and_its_number_behind() {
    let model = model();
    let population = Population::new(&model, 4, 4, 21);
    for name in population.names() {
        let timeline = AppTimeline::generated(&model, 21, name, Nanos::ZERO, seconds(4 * 86_400));
        assert_consistent(&timeline);
        let launcher = AppId(0);
        assert_eq!(timeline.package(launcher), "com.sec.android.app.launcher");
        let sessions: Vec<_> = population.sessions(name).collect();
        let (mut inside, mut outside) = (0, 0);
        timeline.stretches(|time, alive| {
            assert!(alive.iter().any(|app| app.app == launcher) || time == Nanos::ZERO);
            let session = sessions.iter().find(|session| session.start <= time && time < session.end());
            assert_eq!(fronts(alive), usize::from(session.is_some()), "{time}");
            let apps = alive.iter().filter(|app| app.app != launcher).count();
            match session {
                // With the launcher in front, all of the session's apps are in the background; with an app in
                // front, one fewer.
                Some(session) if alive.iter().any(|app| app.app != launcher && app.adj.is_foreground()) => {
                    assert_eq!(apps, session.background + 1);
                    inside += 1;
                }
                _ => outside += 1,
            }
        });
        assert!(inside > sessions.len() && outside > sessions.len() / 2, "{inside} {outside}");
        // At most one app is the previous one.
        timeline.stretches(|_, alive| {
            assert!(alive.iter().filter(|app| app.adj == OomAdj::PREVIOUS_APP).count() <= 1);
        });
    }
}

#[test]
fn a_window_is_a_part_of_the_whole() {
    let model = model();
    let name = "synthetic-0000002";
    let whole = AppTimeline::generated(&model, 4, name, Nanos::ZERO, seconds(3 * 86_400));
    let (from, length) = (seconds(40 * 3600), seconds(5 * 3600));
    let window = AppTimeline::generated(&model, 4, name, from, length);
    assert_consistent(&window);
    assert_eq!(window.start, UtcTime::from_seconds(40 * HOUR));
    let expected: Vec<_> =
        whole.events.iter().filter(|event| event.time >= from && event.time < from + length).collect();
    assert!(expected.len() > 20);
    assert_eq!(window.events.len(), expected.len());
    for (event, expected) in window.events.iter().zip(expected) {
        assert_eq!((event.time + from, event.app, event.kind), (expected.time, expected.app, expected.kind));
    }
    // The whole's state just before the window is the window's beginning.
    assert_eq!(window.initial, whole.alive_at(Nanos(from.0 - 1)));
    assert_eq!(window.alive_at(length), whole.alive_at(Nanos(from.0 + length.0 - 1)));
}

#[test]
fn generated_rows_give_the_timeline_that_was_generated() {
    let model = model();
    let population = Population::new(&model, 2, 2, 9);
    let name = &population.names()[1];
    let (start, length) = (UtcTime::from_seconds(30 * HOUR), seconds(10 * 3600));
    let direct = AppTimeline::generated(&model, 9, name, seconds(30 * 3600), length);
    let read = AppTimeline::from_rows(
        &model,
        9,
        crate::usage::all_rows(&population),
        name,
        window_of(start, length),
        seems_opened,
    );
    // The ids differ, because packages are met in another order.
    let named = |timeline: &AppTimeline| -> Vec<_> {
        let event = |event: &AppEvent| (event.time, timeline.package(event.app).to_owned(), event.kind);
        timeline.events.iter().map(event).collect()
    };
    assert_consistent(&read);
    assert_eq!(named(&read), named(&direct));
    let alive = |timeline: &AppTimeline| -> BTreeSet<_> {
        timeline.initial.iter().map(|app| (timeline.package(app.app).to_owned(), app.adj)).collect()
    };
    assert_eq!(alive(&read), alive(&direct));
}

#[test]
fn changes_are_taken_as_they_are() {
    let perfetto = |second, package, adj| row("phone", second, package, adj, Source::Perfetto);
    let rows = [
        row("phone", 70, "b", 900, Source::LmkdKill),
        perfetto(5, "a", 900),
        perfetto(10, "b", 0),
        perfetto(20, "b", 0),
        perfetto(30, "b", 700),
        perfetto(30, "a", 0),
        row("other", 40, "a", 700, Source::Perfetto),
    ];
    let window = window_of(UtcTime::from_seconds(8), seconds(100));
    let timeline = AppTimeline::from_rows(&model(), 1, rows, "phone", window, seems_opened);
    assert_consistent(&timeline);
    // "a" was alive before the window; the repeated adj of "b" and the other phone change nothing;
    // times count from 8 s.
    let events: Vec<_> =
        timeline.events.iter().map(|event| (event.time, timeline.package(event.app), event.kind)).collect();
    assert_eq!(
        events,
        [
            (seconds(2), "b", AppEventKind::Launch(OomAdj::FOREGROUND_APP)),
            (seconds(22), "b", AppEventKind::ToBackground(OomAdj::PREVIOUS_APP)),
            (seconds(22), "a", AppEventKind::ToForeground),
            (seconds(62), "b", AppEventKind::Exit),
        ]
    );
    assert_eq!(timeline.initial.len(), 1);
    assert!(timeline.events.iter().all(|event| event.confidence == Confidence::Recorded));
}

#[test]
fn lsapp_keeps_as_many_apps_as_the_user() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let rows: Vec<_> =
        names.iter().zip(0..).map(|(&name, index)| row("7", 60 * index, name, 0, Source::Lsapp)).collect();
    let timeline = AppTimeline::from_rows(&model(), 1, rows, "7", window_of(UtcTime(0), seconds(3600)), seems_opened);
    assert_consistent(&timeline);
    // A user keeps 3 to 5 in the background; of ten apps, one in front at a time, the oldest end.
    let last = timeline.alive_at(seconds(3599));
    assert!((4..=6).contains(&last.len()), "{last:?}");
    assert_eq!(fronts(&last), 1);
    timeline.stretches(|_, alive| assert_eq!(fronts(alive), 1));
}

#[test]
fn between_samples_the_model_opens_the_apps_of_the_sample() {
    // Samples at 9 and 15 h on 2015-09-28, of different apps; a service and a provider are never opened.
    let day = 1_443_398_400;
    let at = |hour: i64, package, adj| row("carat", day + hour * HOUR, package, adj, Source::CaratProcessList);
    let rows = [
        at(9, "com.example.mail", 0),
        at(9, "com.example.chat", 900),
        at(9, "com.example.maps", 900),
        at(9, "com.example.sync", 500),
        at(9, "com.android.providers.media", 0),
        at(15, "com.example.game", 100),
        at(15, "com.example.film", 900),
        at(15, "com.example.chess", 900),
    ];
    let model = model();
    let window = window_of(UtcTime::from_seconds(day), seconds(24 * 3600));
    let timeline = AppTimeline::from_rows(&model, 5, rows, "carat", window, seems_opened);
    assert_consistent(&timeline);
    let mut seen = BTreeSet::new();
    for event in &timeline.events {
        assert_eq!(event.confidence, Confidence::Assumed);
        let package = timeline.package(event.app).to_owned();
        let hour = event.time.seconds() / 3600.0;
        if event.is_to_front() && event.app != AppId(0) {
            // The horizon is two hours, and a session begun within it lasts some minutes more.
            let morning = ["com.example.mail", "com.example.chat", "com.example.maps"].contains(&package.as_str());
            let expected = if morning { 9.0..11.5 } else { 15.0..17.5 };
            assert!(expected.contains(&hour), "{package} at {hour} h");
            seen.insert(package);
        }
    }
    assert_eq!(seen.len(), 6, "{seen:?}");
    // A window that begins an hour earlier, before the first day of the trace, sees the same an hour later.
    let earlier = window_of(UtcTime::from_seconds(day - HOUR), seconds(25 * 3600));
    let earlier = AppTimeline::from_rows(&model, 5, rows, "carat", earlier, seems_opened);
    let moved = |by: u64| move |event: &AppEvent| (event.time + seconds(by), event.app, event.kind);
    assert!(earlier.events.iter().map(moved(0)).eq(timeline.events.iter().map(moved(3600))));
    // The same seed interpolates to the same timeline.
    assert_eq!(timeline, AppTimeline::from_rows(&model, 5, rows, "carat", window, seems_opened));
    // In most sessions after 9 h "mail", four times as likely as "chat", comes first or soon: it is in front most
    // often.
    let times = |package: &str| {
        timeline.events.iter().filter(|event| event.is_to_front() && timeline.package(event.app) == package).count()
    };
    assert!(times("com.example.mail") > times("com.example.chat"));
}

#[test]
fn nothing_comes_of_nothing() {
    let model = model();
    let window = window_of(UtcTime(0), seconds(60));
    let timeline = AppTimeline::from_rows(&model, 1, [], "nobody", window, seems_opened);
    assert_eq!((timeline.events.len(), timeline.initial.len()), (0, 0));
    assert!(AppTimeline::generated(&model, 1, "x", Nanos::ZERO, Nanos::ZERO).events.is_empty());
    // A sample of apps that are never opened: only the launcher is alive.
    let rows =
        [row("u", 0, "android", 0, Source::CaratProcessList), row("u", 0, "sync", 500, Source::CaratProcessList)];
    let timeline = AppTimeline::from_rows(&model, 1, rows, "u", window_of(UtcTime(0), seconds(86_400)), seems_opened);
    assert_eq!(timeline.alive_at(seconds(86_400)).len(), 1);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// For any rows in any order: nothing panics, and the timeline is consistent.
    #[test]
    fn any_rows_give_a_consistent_timeline(
        drawn in proptest::collection::vec((0..4_usize, 0_i64..20_000, 0..6_usize, 0..7_usize, 0..7_usize), 0..60),
        sampled in proptest::bool::ANY,
        start in -5000_i64..20_000,
    ) {
        const USERS: [&str; 4] = ["u", "u", "u", "v"];
        const ADJ: [i16; 7] = [-800, 0, 0, 200, 700, 900, 999];
        const PACKAGES: [&str; 6] = ["a.b", "c.d", "e.f", "android", "com.sec.android.app.launcher", ""];
        let mut rows: Vec<_> = drawn
            .into_iter()
            .map(|(user, second, package, adj, source)| {
                row(USERS[user], second, PACKAGES[package], ADJ[adj], Source::ALL[source])
            })
            .filter(|row| sampled || !haversack_traces::usage::is_sampled(row.source))
            .collect();
        let window = window_of(UtcTime::from_seconds(start), seconds(10_000));
        let timeline = AppTimeline::from_rows(&model(), 1, rows.iter().copied(), "u", window, |_| true);
        let mut alive: BTreeSet<AppId> = timeline.initial.iter().map(|app| app.app).collect();
        for event in &timeline.events {
            match event.kind {
                AppEventKind::Launch(_) => proptest::prop_assert!(alive.insert(event.app)),
                AppEventKind::Exit => proptest::prop_assert!(alive.remove(&event.app)),
                _ => proptest::prop_assert!(alive.contains(&event.app)),
            }
            proptest::prop_assert!(event.time < timeline.length);
        }
        rows.sort_by_key(|row| (row.user, row.time));
        for user in &sessions(rows).users {
            // Sessions of one user follow one another.
            proptest::prop_assert!(user.sessions.is_sorted_by(|a, b| a.end() <= b.start));
        }
    }
}
