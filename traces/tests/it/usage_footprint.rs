//! Footprints, and the memory demand of a timeline by them.

use haversack_devices::calibration::Kind;
use haversack_devices::units::{Bytes, Nanos};
use haversack_traces::footprint::{FootprintTable, Found};
use haversack_traces::row::{Confidence, OomAdj, UtcTime};
use haversack_traces::usage::{AliveApp, AppEvent, AppEventKind, AppId, AppTimeline, UsageModel, demand, footprints};

/// The built-in table.
const BUILT_IN: &str = include_str!("../../footprints/android.toml");

const TABLE: &str = r#"
[launch]
least_s = 3
most_s = 3
return_share = 0.5
return_s = 1.5
kind = "estimated"
source = "a test"
[launch.extra]
mb = 100
kind = "fitted"
source = "a test"
[spread]
of_ln = 0
kind = "estimated"
source = "a test"
[default]
anonymous_mb = 10
file_mb = 10
kept = 0.5
touched = 0.5
launch = 1
writes_mb_s = 0
kind = "estimated"
source = "a test"
[category.game]
anonymous_mb = 400
file_mb = 200
kept = 0.5
touched = 0.5
launch = 2
writes_mb_s = 1.5
kind = "estimated"
source = "a test"
[package."a.mail"]
anonymous_mb = 100
file_mb = 50
kept = 0.8
touched = 0.4
launch = 1
writes_mb_s = 0.25
kind = "estimated"
source = "a test"
"#;

fn seconds(count: u64) -> Nanos {
    Nanos(count * 1_000_000_000)
}

fn mb(count: u64) -> Bytes {
    Bytes(count * 1_000_000)
}

fn table() -> FootprintTable {
    FootprintTable::parse("mine.toml", TABLE).unwrap()
}

#[test]
fn a_package_falls_back_to_its_category_then_to_the_default() {
    let table = table();
    let (mail, found) = table.find("a.mail", Some("GAME"));
    assert_eq!((mail.anonymous, found), (mb(100), Found::Package));
    for category in ["game", "GAME_PUZZLE", "Game & Fun", "game-role-playing"] {
        let (game, found) = table.find("unheard.of", Some(category));
        // The launch of a game is 2 × 100 MB.
        assert_eq!((game.anonymous, game.launch_extra, found), (mb(400), mb(200), Found::Category), "{category}");
    }
    for category in [None, Some("gamer"), Some("")] {
        assert_eq!(table.find("unheard.of", category).1, Found::Default);
    }
}

#[test]
fn the_built_in_table_knows_every_app_of_the_usage_model() {
    let (model, table) = (UsageModel::built_in().unwrap(), FootprintTable::load("android").unwrap());
    let unknown: Vec<_> = model
        .catalogue
        .iter()
        .filter(|app| table.find(&app.package, Some(&app.category)).1 == Found::Default)
        .map(|app| (&app.package, &app.category))
        .collect();
    // Education, weather and health have no entry.
    assert_eq!(unknown.len(), 3, "{unknown:?}");
    assert!(!BUILT_IN.contains("source = \"\""));
    for app in &model.catalogue {
        let (footprint, _) = table.find(&app.package, Some(&app.category));
        let total = |whole| footprint.held(whole).0 + footprint.held(whole).1;
        // An app in the background takes no more than in front, and apps take 100 MB to 2 GB.
        assert!(total(false) <= total(true), "{}", app.package);
        assert!((mb(100)..=mb(2000)).contains(&total(true)), "{}: {}", app.package, total(true));
    }
}

#[test]
fn a_users_footprints_spread_as_the_table_says() {
    let table = FootprintTable::parse("mine.toml", &TABLE.replace("of_ln = 0", "of_ln = 0.3")).unwrap();
    let logs: Vec<f64> = (0..4000)
        .map(|user| {
            let (footprint, _) = table.find_for("a.mail", None, &format!("user {user}"), 1);
            let (anonymous, file) = (footprint.anonymous.as_f64(), footprint.file.as_f64());
            // Anonymous and file bytes spread together: 100 to 50 MB.
            assert!((anonymous / file - 2.0).abs() < 1e-6);
            (anonymous / 1e8).ln()
        })
        .collect();
    // ln is normal with mean 0 and deviation 0.3, known from 4,000 draws to 0.3 / sqrt(4000) = 0.005.
    let mean = logs.iter().sum::<f64>() / 4000.0;
    let deviation = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 4000.0).sqrt();
    assert!(mean.abs() < 0.02 && (deviation - 0.3).abs() < 0.015, "{mean} {deviation}");
    // The same user has the same factor for an app, and another for another app.
    let of = |package, user| table.find_for(package, Some("game"), user, 1).0;
    assert_eq!(of("x", "u"), of("x", "u"));
    assert_ne!(of("x", "u"), of("y", "u"));
    assert_ne!(of("x", "u"), of("x", "v"));
}

#[test]
fn demand_by_hand() {
    let (mail, game, other) = (AppId(0), AppId(1), AppId(2));
    let event = |second, app, kind| AppEvent { time: seconds(second), app, kind, confidence: Confidence::Assumed };
    let timeline = AppTimeline {
        user: "u".to_owned(),
        start: UtcTime(0),
        length: seconds(20),
        packages: ["a.mail", "b.game", "c.other"].map(Into::into).to_vec(),
        initial: vec![AliveApp { app: mail, adj: OomAdj::CACHED_APP_MIN }],
        events: vec![
            event(2, game, AppEventKind::Launch(OomAdj::FOREGROUND_APP)),
            event(8, game, AppEventKind::ToBackground(OomAdj::PREVIOUS_APP)),
            event(8, mail, AppEventKind::ToForeground),
            event(12, mail, AppEventKind::ToBackground(OomAdj::PERCEPTIBLE_APP)),
            event(14, game, AppEventKind::Exit),
            event(16, other, AppEventKind::Launch(OomAdj::CACHED_APP_MIN)),
        ],
    };
    let category = |package: &str| (package == "b.game").then_some("GAME_ACTION");
    let series = demand(&timeline, &table(), category, 1);
    assert_eq!(series.demand.len(), 20);
    let at = |second: usize| (series.demand[second].anonymous, series.demand[second].file, series.demand[second].front);
    // The mail cached: 0.8 × (100, 50).
    assert_eq!(at(0), (mb(80), mb(40), None));
    // The game in front in addition, with 2 × 100 MB for 3 s: until 5 s.
    assert_eq!(at(2), (mb(80 + 400 + 200), mb(40 + 200), Some(game)));
    assert_eq!(at(4), at(2));
    assert_eq!(at(5), (mb(480), mb(240), Some(game)));
    // The mail returns, half of 100 MB more for 1.5 s; the game keeps half.
    assert_eq!(at(9), (mb(100 + 50 + 200), mb(50 + 100), Some(mail)));
    assert_eq!(at(10), (mb(300), mb(150), Some(mail)));
    // The mail is perceptible, and keeps everything.
    assert_eq!(at(13), (mb(300), mb(150), None));
    assert_eq!(at(14), (mb(100), mb(50), None));
    // Started in the background: no extra; 0.5 × (10, 10) of the default, which is counted.
    assert_eq!(at(19), (mb(105), mb(55), None));
    assert_eq!(series.unknown, [other]);
    assert_eq!((series.demand[19].apps, series.demand[19].total()), (2, mb(160)));
}

#[test]
fn demand_rises_with_every_part_of_the_table() {
    let model = UsageModel::built_in().unwrap();
    let table = FootprintTable::built_in().unwrap();
    let timeline = AppTimeline::generated(&model, 3, "synthetic-0000001", seconds(18 * 3600), seconds(3600));
    let category = |package: &str| model.category(package);
    let of = |table: &FootprintTable| demand(&timeline, table, category, 3).demand;
    let with = |from: &str, to: &str| {
        assert_eq!(BUILT_IN.matches(from).count(), 1, "{from}");
        of(&FootprintTable::parse("changed.toml", &BUILT_IN.replace(from, to)).unwrap())
    };
    let (plain, spiked) = (of(&table), with("\nmb = 830\n", "\nmb = 1600\n"));
    let (still, spread) = (with("\nmb = 830\n", "\nmb = 0\n"), with("\nof_ln = 0.3\n", "\nof_ln = 0\n"));
    assert!(plain.iter().zip(&spiked).all(|(less, more)| less.anonymous <= more.anonymous && less.file == more.file));
    assert!(still.iter().zip(&plain).all(|(less, more)| less.anonymous <= more.anonymous));
    let peak = |series: &[haversack_traces::usage::Demand]| series.iter().map(|at| at.anonymous).max().unwrap();
    assert!(peak(&plain) < peak(&spiked));
    assert_ne!(plain, spread);
    // The same window as part of another draws the same spikes.
    let later = AppTimeline::generated(&model, 3, "synthetic-0000001", seconds(18 * 3600 + 600), seconds(600));
    let part = demand(&later, &table, category, 3).demand;
    // From ten seconds on, when launches before the part are over, the longest of them 8 s.
    assert!(
        part.iter().skip(10).zip(plain.iter().skip(610)).all(|(a, b)| a.anonymous == b.anonymous && a.file == b.file)
    );
    assert_eq!(footprints(&timeline, &table, category, 3).len(), timeline.packages.len());
}

#[test]
fn the_table_refuses_what_it_cannot_mean() {
    let refused = |from: &str, to: &str| {
        let text = TABLE.replacen(from, to, 1);
        FootprintTable::parse("mine.toml", &text).unwrap_err().to_string()
    };
    // The first line is empty, tables of 7, 4, 4 and 9 lines follow: `[category.game]` is line 26, its fields from
    // 27 on.
    let error = refused("anonymous_mb = 400", "anonymous_mb = -400");
    assert_eq!(error, "mine.toml:27: `category.game.anonymous_mb`: -400: expected a number from 0 to 65536 MB");
    let error = refused("anonymous_mb = 400", "anonimous_mb = 400");
    assert!(error.starts_with("mine.toml:27: `category.game.anonimous_mb`: unknown key (did you"), "{error}");
    assert!(error.contains("(did you mean `anonymous_mb`?); valid keys: anonymous_mb, "), "{error}");
    let error = refused("file_mb = 50\n", "file_mb = 5e9\n");
    assert_eq!(error, "mine.toml:37: `package.\"a.mail\".file_mb`: 5000000000: expected a number from 0 to 65536 MB");
    let error = refused("kept = 0.8", "kept = 80");
    assert!(error.contains("`package.\"a.mail\".kept`: 80: expected a number from 0 to 1"), "{error}");
    let error = refused("kept = 0.8", "kept = nan");
    assert!(error.contains("NaN: expected a number from 0 to 1"), "{error}");
    let error = refused("least_s = 3", "least_s = 4");
    assert_eq!(error, "mine.toml:2: `launch`: expected `least_s` not above `most_s`, found 4 and 3");
    let error = refused("kept = 0.8\n", "");
    assert!(error.ends_with("kept`: missing key; expected a decimal number"), "{error}");
    let error = refused("[category.game]", "[categry.game]");
    assert!(error.contains("did you mean `category`?"), "{error}");
    let error = refused("writes_mb_s = 1.5", "writes_mb_s = \"much\"");
    assert!(
        error.contains("`category.game.writes_mb_s`: expected a decimal number, found a value of type string"),
        "{error}"
    );
    let error = FootprintTable::load("androit").unwrap_err().to_string();
    assert_eq!(
        error,
        "unknown footprint table `androit` (did you mean `android`?); expected the path of a .toml file or `android`"
    );
    assert!(FootprintTable::load("nowhere.toml").unwrap_err().to_string().starts_with("cannot read nowhere.toml"));
}

#[test]
fn the_numbers_of_a_launch_are_listed_with_what_is_known_of_them() {
    let entries = table().entries();
    let fitted: Vec<_> = entries.iter().filter(|entry| entry.kind == Kind::Fitted).collect();
    assert_eq!(fitted.len(), 1);
    assert_eq!((fitted[0].name.as_str(), fitted[0].value, fitted[0].unit), ("launch.extra.mb", 100.0, "MB"));
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let rest = ["launch.least_s", "launch.most_s", "launch.return_share", "launch.return_s"];
    assert_eq!(names, [&rest[..], &["launch.extra.mb", "spread.of_ln"]].concat());
}
