//! No input makes an importer panic, and every line is accounted for: it is a sample, a row, or counted.

use super::import_support::{count, gzip, import_all};
use haversack_traces::import::{Kind, Options, Reason, Report};
use proptest::prelude::*;

/// Good lines of each kind, to be mutated.
fn seed(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Carat | Kind::CaratFull => &[
            r#"{"uuid":"a","timestamp":1443340077,"batteryStatus":"full","apps":[{"processName":"com.a","priority":"Service"}]}"#,
            r#"{"uuid":"b","time":1543340077,"apps":[{"processName":"com.b:x","priority":"Foreground app"}],"memory":{"memoryWired":0,"memoryActive":600,"memoryInactive":500,"memoryFree":80,"memoryUser":1800}}"#,
        ],
        Kind::Lsapp => &[
            "user_id\tsession_id\ttimestamp\tapp_name\tevent_type",
            "0\t1\t2018-01-16 06:01:05\tMinesweeper Classic (Mines)\tOpened",
            "0\t2\t2018-01-16 06:25:54\tGmail\tUser Interaction",
        ],
        Kind::Tsinghua => &["0 20160420080012 1532 17 2048.0", "1 20160420091500 88 17 512.0"],
        Kind::Meminfo => &["1443336825.5", "MemTotal:  2000 kB", "Active(anon): 300 kB", "HugePages_Total: 4"],
        Kind::Vmstat => &["2015-09-27 06:53:46", "nr_free_pages 7", "pgfault 1"],
        Kind::Perfetto => &[
            "\"ts\",\"name\",\"value\",\"process\",\"pid\"",
            "1500000000,\"MemFree\",4096.0,\"[NULL]\",\"[NULL]\"",
            "2000000000,\"oom_score_adj\",900,\"com.a\",42",
        ],
        Kind::Lmkd => &[
            "2024-05-12 10:11:12.500  600  600 I lowmemorykiller: Kill 'com.a' (42), uid 1, oom_score_adj 905 to free 1kB",
            "05-12 10:11:12.499  600  600 I killinfo: [42,10123,905,0,12345,3,5000,60000,700]",
        ],
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(Kind::ALL)
}

/// One change to a text: a byte, a removed piece, a repeated piece, or a foreign piece.
fn mutate(text: &mut Vec<u8>, (what, place, length, byte): (u8, usize, usize, u8)) {
    let start = place % (text.len() + 1);
    let end = (start + length).min(text.len());
    match what % 5 {
        0 => drop(text.splice(start..end, [])),
        1 => drop(text.splice(start..start, [byte])),
        2 => {
            let piece = text[start..end].to_vec();
            drop(text.splice(end..end, piece));
        }
        3 => drop(text.splice(start..end, *b"-99999999999999999999e9")),
        _ => text[start..end].iter_mut().for_each(|old| *old ^= byte),
    }
}

/// Every line is accounted for: it is a sample, a bad line, a duplicate, or one that has no sample in it.
fn account(kind: Kind, report: &Report, apps: usize, counters: usize) -> Result<(), TestCaseError> {
    prop_assert_eq!((report.app_rows, report.counter_rows), (apps as u64, counters as u64));
    prop_assert!(report.bad_lines <= report.lines);
    let left = [Reason::Duplicate, Reason::IdleEvent, Reason::AppleDevice].map(|reason| count(report, reason));
    let known = report.samples + report.bad_lines + report.other_lines + report.blank_lines + left.iter().sum::<u64>();
    // A block of /proc has many lines, and each is a counter.
    let known = if matches!(kind, Kind::Meminfo | Kind::Vmstat) { known + report.counter_rows } else { known };
    // The other line of a kill adds to a sample that has been counted: it comes with counters or a row.
    let known = if kind == Kind::Lmkd { known + report.lines } else { known };
    prop_assert!(known >= report.lines, "{:?}: {} of {} lines", kind, known, report.lines);
    let told: u64 = report.findings.iter().filter(|(reason, _)| reason.is_bad()).map(|(_, found)| found.count).sum();
    prop_assert!(told >= report.bad_lines);
    Ok(())
}

fn check(kind: Kind, bytes: &[u8]) -> Result<(), TestCaseError> {
    let imported = import_all(Options::new(kind), &[("f", bytes)]);
    if let Ok(imported) = &imported {
        account(kind, &imported.report, imported.apps.len(), imported.counters.len())?;
    }
    let bad = imported.as_ref().map_or(1, |imported| imported.report.bad_lines);
    let strict = import_all(Options { strict: true, ..Options::new(kind) }, &[("f", bytes)]);
    // A strict import ends exactly if there is something bad.
    prop_assert_eq!(strict.is_err(), bad > 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_rows_or_counted(kind in kind(), bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check(kind, &bytes)?;
    }

    #[test]
    fn any_gzip_is_rows_or_counted(kind in kind(), bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0..400_usize) {
        let mut packed = gzip(&bytes);
        packed.truncate(cut.max(3));
        check(kind, &packed)?;
    }

    #[test]
    fn mutated_lines_are_rows_or_counted(
        kind in kind(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
        changes in prop::collection::vec((any::<u8>(), any::<usize>(), 0..20_usize, any::<u8>()), 0..6),
        packed in any::<bool>(),
    ) {
        let lines = seed(kind);
        let mut text = order.iter().map(|index| format!("{}\n", index.get(lines))).collect::<String>().into_bytes();
        for change in changes {
            mutate(&mut text, change);
        }
        let text = if packed { gzip(&text) } else { text };
        check(kind, &text)?;
    }
}

#[test]
fn the_seeds_are_good() {
    for &kind in Kind::ALL {
        let text = seed(kind).join("\n");
        let imported = import_all(Options::new(kind), &[("f", text.as_bytes())]).unwrap();
        assert_eq!(imported.report.bad_lines, 0, "{kind:?}: {:?}", imported.report.findings);
        assert!(imported.apps.len() + imported.counters.len() >= 2, "{kind:?}");
    }
}
