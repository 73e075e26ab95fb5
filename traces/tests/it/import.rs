//! Every fixture imports to exactly its rows; packings, archives and broken files are distinguished.

use super::import_support::{Imported, count, finding, fixture, gzip, import, import_all, strict};
use haversack_traces::import::{ImportError, Kind, Options, Reason};

fn import_fixture(kind: Kind, name: &str) -> Imported {
    import_all(Options::new(kind), &[(name, &fixture(name))]).unwrap()
}

/// The rows of the public Carat's fixture.
fn carat_rows() -> Vec<String> {
    // Time, then the values of com.android.chrome, com.example.appN, com.google.process.gapps and com.skype.raider:
    // Foreground app 0, Foreground service 50, Visible task 100, Service 500, Background process 900; Unknown also
    // counts as 900, marked here by 901.
    let samples: [(char, u64, usize, [u16; 4]); 8] = [
        ('a', 1_443_340_077, 0, [50, 901, 0, 0]),
        ('a', 1_443_345_066, 1, [900, 100, 0, 900]),
        ('a', 1_443_345_973, 2, [500, 0, 0, 100]),
        ('a', 1_443_351_087, 3, [901, 100, 900, 0]),
        ('b', 1_443_342_591, 0, [0, 900, 100, 0]),
        ('b', 1_443_344_281, 1, [100, 900, 900, 0]),
        ('b', 1_443_347_408, 2, [900, 100, 900, 50]),
        ('b', 1_443_351_058, 3, [900, 100, 0, 900]),
    ];
    let mut rows = Vec::new();
    for (user, time, app, adjs) in samples {
        let user = user.to_string().repeat(64);
        let app = format!("com.example.app{app}");
        let packages = ["com.android.chrome", &app, "com.google.process.gapps", "com.skype.raider"];
        for (package, adj) in packages.into_iter().zip(adjs) {
            let (adj, confidence) = if adj == 901 { (900, "assumed") } else { (adj, "inferred") };
            rows.push(format!("{user} {time} {package} {adj} carat-process-list {confidence}"));
        }
    }
    rows
}

#[test]
fn public_carat() {
    for name in ["carat_top1k.SYNTHETIC.jsonl", "part-00000.SYNTHETIC.gz"] {
        let imported = import_fixture(Kind::Carat, name);
        assert_eq!(imported.apps, carat_rows());
        // Of each of 8 samples the battery, the charger and the clock, three hours ahead in September.
        let user = "a".repeat(64);
        let first = ["battery_percent 46", "charging 0", "utc_offset_s 10800"];
        assert_eq!(imported.counters[..3], first.map(|counter| format!("{user} 1443340077 {counter}")));
        assert_eq!(imported.counters.len(), 8 * 3);
        let report = imported.report;
        // 8 samples of 4 processes.
        assert_eq!((report.lines, report.samples, report.app_rows, report.bad_lines), (8, 8, 32, 0));
        assert_eq!(report.unmapped_priorities.names.get("Unknown"), Some(&2));
        assert_eq!(count(&report, Reason::UnknownPriority), 2);
        // Seconds apart: a 4989, 907, 5114; b 1690, 3127, 3650. Three are under an hour, three under six.
        assert_eq!(report.gaps.bins, [0, 0, 0, 3, 3, 0, 0, 0]);
        let coverage: Vec<(u64, f64)> = report.users.iter().map(|user| (user.samples, user.longest_gap_s)).collect();
        assert_eq!(coverage, [(4, 5114.0), (4, 3650.0)]);
        assert_eq!(report.battery.names.get("charging"), Some(&4));
        assert_eq!(report.battery.names.values().sum::<u64>(), 8);
    }
}

#[test]
fn full_carat() {
    let imported = import_fixture(Kind::CaratFull, "carat_full_jsonsample.SYNTHETIC.jsonl");
    assert_eq!(imported.apps, ["cccccccccccccccc 1443336825 com.android.chrome 0 carat-process-list inferred"]);
    // September 2015, and memoryUser above memoryFree: the earlier client, whose memoryUser is the used memory, and
    // whose memoryActive is Inactive and vice versa. 1821334 + 81234 = 1902568 kB; times 1024 B.
    assert_eq!(
        imported.counters,
        [
            "cccccccccccccccc 1443336825 battery_percent 46",
            "cccccccccccccccc 1443336825 charging 0",
            "cccccccccccccccc 1443336825 network 2",
            "cccccccccccccccc 1443336825 utc_offset_s 10800",
            "cccccccccccccccc 1443336825 MemTotal 1948229632",
            "cccccccccccccccc 1443336825 MemFree 83183616",
            "cccccccccccccccc 1443336825 Active 510167040",
            "cccccccccccccccc 1443336825 Inactive 627036160",
            // 83183616 and half of the inactive list.
            "cccccccccccccccc 1443336825 MemAvailable (inferred) 396701696",
        ]
    );
    assert_eq!(imported.report.battery.names.get("discharging"), Some(&1));
    // The public importer reads the same line, without its memory.
    let public = import_fixture(Kind::Carat, "carat_full_jsonsample.SYNTHETIC.jsonl");
    assert_eq!((public.apps, &public.counters[..]), (imported.apps, &imported.counters[..4]));
}

#[test]
fn lsapp() {
    // 2018-01-16 06:01:05 is 1516082465: see the tests of the clock. 06:25:54 is 1489 s later.
    let expected = [
        "0 1516082465 Minesweeper Classic (Mines) 0 lsapp inferred",
        "0 1516082465 Minesweeper Classic (Mines) 700 lsapp inferred",
        "0 1516083954 Gmail 0 lsapp inferred",
        "0 1516083965 Google 0 lsapp inferred",
        "0 1516083970 Google 700 lsapp inferred",
    ];
    let imported = import_fixture(Kind::Lsapp, "lsapp_readme_rows.tsv");
    assert_eq!(imported.apps, expected);
    assert_eq!((imported.report.other_lines, imported.report.bad_lines), (1, 0));
    assert!(imported.report.notes[0].contains("+00:00"), "{:?}", imported.report.notes);
    // As it is published: a tar.gz.
    let text = fixture("lsapp_readme_rows.tsv");
    let archive = gzip(&tar("lsapp.tsv", &text));
    let imported = import_all(Options::new(Kind::Lsapp), &[("lsapp.tsv.gz", &archive)]).unwrap();
    assert_eq!(imported.apps, expected);
    // Two hours ahead of UTC, the clock showed those times two hours earlier.
    let options = Options { offset: Some("+02:00".parse().unwrap()), ..Options::new(Kind::Lsapp) };
    let imported = import_all(options, &[("lsapp.tsv", &text)]).unwrap();
    assert_eq!(imported.apps[0], "0 1516075265 Minesweeper Classic (Mines) 0 lsapp inferred");
}

/// A tar of one file.
fn tar(name: &str, content: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    header[156] = b'0';
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let padding = vec![0; content.len().next_multiple_of(512) - content.len() + 1024];
    [&header, content, &padding].concat()
}

#[test]
fn tsinghua() {
    let imported = import_fixture(Kind::Tsinghua, "tsinghua_App_usage_trace.SYNTHETIC.txt");
    // 2016-04-20 is 16911 days after 1970, and 08:00 in China is 00:00 in UTC: 16911 * 86400 = 1461110400.
    assert_eq!(
        imported.apps,
        [
            "0 1461110412 17 500 tsinghua assumed",
            "0 1461110504 3 500 tsinghua assumed",
            "1 1461114900 17 500 tsinghua assumed",
        ]
    );
    assert!(imported.report.notes[0].contains("+08:00"), "{:?}", imported.report.notes);
}

#[test]
fn no_importer_takes_the_context_factors_for_its_own() {
    let text = String::from_utf8(fixture("carat_context_factor_header_and_readme_example.txt")).unwrap();
    for &kind in Kind::ALL {
        let imported = import(kind, &text);
        assert!(imported.apps.is_empty() && imported.counters.is_empty(), "{kind:?}");
        // A log may contain lines about anything.
        let left = if kind == Kind::Lmkd { imported.report.other_lines } else { imported.report.bad_lines };
        assert_eq!(left, 2, "{kind:?}");
    }
}

#[test]
fn several_gzip_members_are_one_file() {
    let text = fixture("carat_top1k.SYNTHETIC.jsonl");
    let half = text.iter().position(|&byte| byte == b'\n').unwrap() + 100;
    let members = [gzip(&text[..half]), gzip(&text[half..])].concat();
    let imported = import_all(Options::new(Kind::Carat), &[("part", &members)]).unwrap();
    assert_eq!(imported.apps, carat_rows());
}

#[test]
fn a_gzip_that_grows_a_thousandfold_ends_the_file() {
    // 32 MiB of blanks after a recording.
    let text = [fixture("carat_top1k.SYNTHETIC.jsonl"), b" ".repeat(1 << 25)].concat();
    let mut small = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut small, &text).unwrap();
    let packed = small.finish().unwrap();
    let report = import_all(Options::new(Kind::Carat), &[("part.gz", &packed)]).unwrap().report;
    assert!(finding(&report, Reason::DamagedFile).contains("more than 500 times as large"));
}

#[test]
fn of_a_truncated_gzip_the_beginning_is_kept() {
    // Stored, not deflated: the first 2000 bytes unpack to known text. The header takes 10 + 5 bytes; lines have
    // 500 bytes or so.
    let text = fixture("carat_top1k.SYNTHETIC.jsonl");
    let mut stored = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    std::io::Write::write_all(&mut stored, &text).unwrap();
    let packed = stored.finish().unwrap();
    let cut = &packed[..2000];
    let whole = text[..2000 - 15].iter().filter(|&&byte| byte == b'\n').count();
    let imported = import_all(Options::new(Kind::Carat), &[("part.gz", cut)]).unwrap();
    assert_eq!(imported.apps, carat_rows()[..4 * whole]);
    let report = imported.report;
    assert_eq!((report.bad_lines, count(&report, Reason::DamagedFile), count(&report, Reason::CutLine)), (1, 1, 1));
    assert!(finding(&report, Reason::DamagedFile).starts_with(&format!("part.gz:{}: ", whole + 1)));
    assert!(strict(Kind::Carat, cut).contains("the file ends within this line"));
    // Damage in the middle is reported, too.
    let mut damaged = gzip(&text);
    let middle = damaged.len() / 2;
    damaged[middle..].fill(0xff);
    let report = import_all(Options::new(Kind::Carat), &[("part.gz", &damaged)]).unwrap().report;
    assert_eq!(count(&report, Reason::DamagedFile), 1);
    assert!(strict(Kind::Carat, &damaged).starts_with("file.txt:"));
}

#[test]
fn archives_are_refused_with_advice() {
    for (bytes, words) in [
        (&b"PK\x03\x04\x14\x00\x01\x00"[..], &["zip archive", "7z x", "data-sharing page"][..]),
        (b"Rar!\x1a\x07\x00", &["RAR archive", "unrar x"]),
        (b"7z\xbc\xaf\x27\x1c", &["7z archive", "7z x"]),
        (b"PAR1....", &["Parquet", "trace stats"]),
    ] {
        let error = import_all(Options::new(Kind::Carat), &[("carat.zip", bytes)]).err().unwrap();
        assert!(matches!(error, ImportError::Archive { .. }));
        let error = error.to_string();
        assert!(error.starts_with("carat.zip: "), "{error}");
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}

#[test]
fn only_a_strict_import_ends_at_a_bad_line() {
    let good = r#"{"uuid":"a","time":1443340077,"apps":[{"processName":"com.a","priority":"Service"}]}"#;
    let text = format!("{good}\n{{broken\n\n{}\n", good.replace("077", "078"));
    let imported = import(Kind::Carat, &text);
    assert_eq!(imported.apps.len(), 2);
    let report = imported.report;
    assert_eq!((report.lines, report.bad_lines, report.blank_lines), (4, 1, 1));
    assert!(finding(&report, Reason::NotJson).starts_with("file.txt:2: expected a JSON object"));
    assert!(strict(Kind::Carat, text.as_bytes()).starts_with("file.txt:2: expected a JSON object"));
}

#[test]
fn findings_are_counted_beyond_those_that_are_kept() {
    let options = Options { listed: 3, ..Options::new(Kind::Tsinghua) };
    let report = import_all(options, &[("f", "x\n".repeat(7).as_bytes())]).unwrap().report;
    let found = &report.findings[&Reason::Columns];
    assert_eq!((found.count, found.first.len(), report.bad_lines), (7, 3, 7));
}

#[test]
fn a_sink_that_fails_ends_the_import() {
    let mut sink = |_: haversack_traces::row::Row<'_>| Err("the disc is full".into());
    let mut import = haversack_traces::import::Import::new(Options::new(Kind::Tsinghua), &mut sink);
    let error = import.read("f", &b"0 20160420080012 1532 17 2048.0\n"[..]).unwrap_err();
    assert_eq!(error.to_string(), "the disc is full");
}
