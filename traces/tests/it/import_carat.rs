//! The pitfalls of Carat's data, one by one.

use super::import_support::{Imported, count, finding, import, import_all, strict};
use haversack_traces::import::{CaratSemantics, Kind, Options, Reason};
use haversack_traces::row::INFERRED_AVAILABLE;

/// A sample of the user `u` at `time` with processes.
fn sample(time: u64, apps: &[(&str, &str)]) -> String {
    let apps: Vec<String> =
        apps.iter().map(|(name, priority)| format!(r#"{{"processName":"{name}","priority":"{priority}"}}"#)).collect();
    format!(r#"{{"uuid":"u","timestamp":{time},"batteryLevel":46,"batteryStatus":"full","apps":[{}]}}"#, apps.join(","))
        + "\n"
}

fn packages(imported: &Imported) -> Vec<&str> {
    imported.apps.iter().map(|row| row.split(' ').nth(2).unwrap()).collect()
}

#[test]
fn processes_of_a_package_are_one_with_the_least_value() {
    let text = sample(
        1000,
        &[
            ("com.b", "Service"),
            ("com.a", "Background process"),
            ("com.b:remote", "Foreground service"),
            ("com.a", "Service"),
            ("com.b", "Background process"),
        ],
    );
    let imported = import(Kind::Carat, &text);
    // com.a: least of 900 and 500; com.b: least of 500, 50 and 900.
    assert_eq!(
        imported.apps,
        ["u 1000 com.a 500 carat-process-list inferred", "u 1000 com.b 50 carat-process-list inferred"]
    );
    assert_eq!(imported.report.merged_processes, 3);
}

#[test]
fn words_match_in_both_spellings_and_events_are_no_processes() {
    let text = sample(
        1000,
        &[
            ("a", "Not running"),
            ("b", "Not Running"),
            ("c", "PERCEPTIBLE TASK"),
            ("d", "uninstalled"),
            ("e", "disabled"),
            ("f", "Suggestion"),
            ("g", "Visible tusk"),
        ],
    );
    let imported = import(Kind::Carat, &text);
    assert_eq!(
        imported.apps,
        [
            "u 1000 a 999 carat-process-list inferred",
            "u 1000 b 999 carat-process-list inferred",
            "u 1000 c 200 carat-process-list inferred",
            "u 1000 g 900 carat-process-list assumed",
        ]
    );
    let report = imported.report;
    assert_eq!(
        (count(&report, Reason::PackageEvent), count(&report, Reason::UnknownPriority), report.bad_lines),
        (3, 1, 0)
    );
    assert_eq!(
        finding(&report, Reason::UnknownPriority),
        "file.txt:1: apps.priority: expected an importance, found 'Visible tusk'; did you mean 'Visible task'?"
    );
    assert_eq!(report.unmapped_priorities.names.keys().collect::<Vec<_>>(), ["Visible tusk"]);
}

#[test]
fn what_a_list_means_goes_by_its_date() {
    // 2017-06-21 00:00:00 UTC is 17338 days after 1970.
    let switch = 17_338 * 86_400;
    let apps = [("com.a", "Foreground app")];
    let text = sample(switch - 1, &apps) + &sample(switch, &apps);
    let list = |time: u64| format!("u {time} com.a 0 carat-process-list inferred");
    let interval = |time: u64| format!("u {time} com.a 0 carat-usage-interval assumed");
    for (semantics, expected) in [
        (CaratSemantics::Auto, [list(switch - 1), interval(switch)]),
        (CaratSemantics::ProcessList, [list(switch - 1), list(switch)]),
        (CaratSemantics::UsageInterval, [interval(switch - 1), interval(switch)]),
    ] {
        let options = Options { semantics, ..Options::new(Kind::Carat) };
        assert_eq!(import_all(options, &[("f", text.as_bytes())]).unwrap().apps, expected);
    }
    // A late sample with services comes from an older client.
    let report = import(Kind::Carat, &sample(switch, &[("a", "Foreground app"), ("b", "Service")])).report;
    assert!(finding(&report, Reason::MixedInterval).contains("--carat-semantics process-list"));
}

#[test]
fn both_names_of_a_field_are_read() {
    let public = r#"{"uuid":"u","timestamp":1000,"batteryStatus":"Charging","apps":null}"#;
    let full = r#"{"uuid":"u","time":2000.0,"batteryState":"charging","apps":[]}"#;
    let report = import(Kind::Carat, &format!("{public}\n{full}\n")).report;
    assert_eq!((report.samples, report.bad_lines, report.users[0].last_s), (2, 0, 2000.0));
    assert_eq!(report.battery.names.get("charging"), Some(&2));
}

#[test]
fn order_and_gaps_are_told_of_by_line() {
    let day = 86_400;
    let apps = [("a", "Service")];
    let times = [1000, 1000, 900, 1060, 1060 + 3 * day];
    let mut text: String = times.iter().map(|time| sample(*time, &apps)).collect();
    text += &sample(1060 + 3 * day, &[("b", "Service")]);
    let imported = import(Kind::Carat, &text);
    // The second line repeats the first and gives no row; all others do.
    assert_eq!(packages(&imported), ["a", "a", "a", "a", "b"]);
    let report = imported.report;
    assert_eq!((report.samples, report.bad_lines), (5, 0));
    assert!(finding(&report, Reason::Duplicate).starts_with("file.txt:2: "));
    assert_eq!(
        finding(&report, Reason::TimeReversal),
        "file.txt:3: 1970-01-01 00:15:00 UTC comes after 1970-01-01 00:16:40 UTC"
    );
    assert_eq!(finding(&report, Reason::Gap), "file.txt:5: 3.0 days after the sample before");
    assert!(finding(&report, Reason::RepeatedTime).starts_with("file.txt:6: "));
    // 900 to 1060 is 160 s, under five minutes; then three days.
    assert_eq!(report.gaps.bins, [0, 0, 1, 0, 0, 0, 1, 0]);
}

#[test]
fn bad_fields_are_named() {
    for (line, expected) in [
        (r#"{"uuid":"u","timestmp":1}"#, "timestamp: the field is missing; is 'timestmp' meant?"),
        (r#"{"uuid":"u","timestamp":"noon"}"#, "timestamp: expected a number, found \"noon\""),
        (r#"{"timestamp":1,"UUID":"u"}"#, "uuid: the field is missing; is 'UUID' meant?"),
        (r#"{"uuid":7,"timestamp":1}"#, "uuid: expected a text, found 7"),
        (r#"{"uuid":"","timestamp":1}"#, "uuid: expected a name of 1 to 512 bytes, found 0"),
        (r#"{"uuid":"u","timestamp":-5}"#, "timestamp: expected seconds since 1970 and before 2100, found -5"),
        (r#"{"uuid":"u","timestamp":1443340077000}"#, "this looks like milliseconds"),
        (r#"{"uuid":"u","timestamp":1,"apps":{}}"#, "apps: expected a list of processes, found {}"),
        (r#"{"uuid":"u","timestamp":1,"apps":[{"processName":"a"},{"name":"b"}]}"#, "apps[1].processName: the field"),
        (
            r#"{"uuid":"u","timestamp":1,"apps":[{"processName":"a","priority":3}]}"#,
            "apps[0].priority: expected a text",
        ),
        (r#"{"uuid":"u","timestamp":1,"batteryStatus":3}"#, "batteryStatus: expected a text, found 3"),
        (r#"{"uuid":"u","timestamp":1,"memory":{"memoryActive":1}}"#, "memory.memoryInactive: the field is missing"),
        (r#"[{"uuid":"u","timestamp":1}]"#, "expected a JSON object, found [{"),
        (r#"{"uuid":"u","timestamp":1"#, "expected a JSON object, one a line"),
        ("uuid;timestamp", "expected a JSON object, one a line"),
    ] {
        let imported = import(Kind::CaratFull, line);
        assert!(imported.apps.is_empty());
        assert_eq!(imported.report.bad_lines, 1, "{line}");
        let reason = *imported.report.findings.keys().next().unwrap();
        let message = finding(&imported.report, reason);
        assert!(message.starts_with("file.txt:1: ") && message.contains(expected), "{line}: {message}");
        assert_eq!(strict(Kind::CaratFull, line.as_bytes()), message);
    }
    // A process without a name is left out; the others of the sample are not.
    let imported = import(Kind::Carat, &sample(1000, &[(":ui", "Service"), ("b", "Service")]));
    assert_eq!((packages(&imported), imported.report.bad_lines), (vec!["b"], 1));
    // A process without a priority is of an unknown one.
    let imported = import(Kind::Carat, r#"{"uuid":"u","time":1,"apps":[{"processName":"a"}]}"#);
    assert_eq!(imported.apps, ["u 1 a 900 carat-process-list assumed"]);
}

#[test]
fn escapes_in_names_are_read() {
    let imported =
        import(Kind::Carat, r#"{"uuid":"u","time":1,"apps":[{"processName":"com.\u0061","priority":"Ser\u0076ice"}]}"#);
    assert_eq!(imported.apps, ["u 1 com.a 500 carat-process-list inferred"]);
}

/// A sample of a full record, with memoryActive, memoryInactive, memoryFree and memoryUser.
fn full(user: &str, time: u64, [active, inactive, free, used]: [i64; 4]) -> String {
    format!(
        "{{\"uuid\":\"{user}\",\"time\":{time},\"apps\":[],\"memory\":{{\"memoryWired\":0,\"memoryActive\":{active},\
         \"memoryInactive\":{inactive},\"memoryFree\":{free},\"memoryUser\":{used}}}}}\n"
    )
}

/// The contents of `/proc/meminfo`, in kB: the counters of one sample.
fn meminfo(user: &str, time: u64, counters: [(&str, u64); 5]) -> Vec<String> {
    counters.iter().map(|(name, kilobytes)| format!("{user} {time} {name} {}", kilobytes * 1024)).collect()
}

/// The contents of a phone's `/proc/meminfo`, and what each client sends for it.
struct Phone {
    total: i64,
    free: i64,
    active: i64,
    inactive: i64,
    swap_cached: i64,
}

impl Phone {
    /// The fields that the client sends: {memoryActive, memoryInactive, memoryFree, memoryUser}.
    fn sent(&self, is_later: bool, has_available: bool) -> [i64; 4] {
        // Lines 6 and 7 of the file.
        let (sixth, seventh) =
            if has_available { (self.swap_cached, self.active) } else { (self.active, self.inactive) };
        if is_later {
            [sixth, seventh, self.total, self.free]
        } else {
            [seventh, sixth, self.free, self.total - self.free]
        }
    }

    /// The counters that are right: for the two lists, the one that the client read.
    fn counters(&self, user: &str, time: u64, has_available: bool) -> Vec<String> {
        let kilobytes = |number: i64| u64::try_from(number).unwrap();
        let other = if has_available { ("SwapCached", self.swap_cached) } else { ("Inactive", self.inactive) };
        // Below a gigabyte, the kernel would have the inactive list as long as the active one.
        let inactive = if has_available { self.active } else { self.inactive };
        meminfo(
            user,
            time,
            [
                ("MemTotal", kilobytes(self.total)),
                ("MemFree", kilobytes(self.free)),
                ("Active", kilobytes(self.active)),
                (other.0, kilobytes(other.1)),
                (INFERRED_AVAILABLE, kilobytes(self.free + inactive / 2)),
            ],
        )
    }
}

const PHONES: [Phone; 3] = [
    Phone { total: 1_900_000, free: 81_000, active: 600_000, inactive: 500_000, swap_cached: 3_000 },
    Phone { total: 1_900_000, free: 95_000, active: 650_000, inactive: 430_000, swap_cached: 9_000 },
    Phone { total: 1_900_000, free: 60_000, active: 580_000, inactive: 520_000, swap_cached: 0 },
];

#[test]
fn every_client_on_every_kernel_is_undone() {
    for is_later in [false, true] {
        for has_available in [false, true] {
            // The clock of a phone may be wrong: the samples themselves show the client.
            for start in [1_400_000_000, 1_500_000_000] {
                let (mut text, mut expected) = (String::new(), Vec::new());
                for (time, phone) in (start..).step_by(3600).zip(&PHONES) {
                    text += &full("u", time, phone.sent(is_later, has_available));
                    expected.extend(phone.counters("u", time, has_available));
                }
                let imported = import(Kind::CaratFull, &text);
                assert_eq!(imported.counters, expected, "later {is_later}, available {has_available}, {start}");
                assert_eq!(imported.report.memory_clients.names.values().copied().collect::<Vec<_>>(), [3]);
                assert_eq!(imported.report.bad_lines, 0);
            }
        }
    }
}

#[test]
fn devices_are_undone_one_by_one_and_may_change_their_client() {
    let [first, second, third] = &PHONES;
    let text = [
        full("u", 1000, first.sent(false, false)),
        full("v", 1500, first.sent(true, true)),
        full("u", 2000, second.sent(false, false)),
        full("v", 2500, second.sent(true, true)),
        // The app was updated.
        full("u", 3000, third.sent(true, false)),
        full("u", 4000, first.sent(true, false)),
    ]
    .concat();
    let mut counters = import(Kind::CaratFull, &text).counters;
    counters.sort();
    let mut expected = [
        first.counters("u", 1000, false),
        second.counters("u", 2000, false),
        third.counters("u", 3000, false),
        first.counters("u", 4000, false),
        first.counters("v", 1500, true),
        second.counters("v", 2500, true),
    ]
    .concat();
    expected.sort();
    assert_eq!(counters, expected);
}

#[test]
fn a_single_sample_goes_by_its_date_and_its_sizes() {
    let phone = &PHONES[0];
    // 2015-10-02 00:00:00 UTC is 16710 days after 1970.
    let switch = 16_710 * 86_400;
    for (time, is_later) in [(switch - 1, false), (switch, true), (switch, false)] {
        for has_available in [false, true] {
            let text = full("u", time, phone.sent(is_later, has_available));
            assert_eq!(import(Kind::CaratFull, &text).counters, phone.counters("u", time, has_available));
        }
    }
}

#[test]
fn memory_that_cannot_be_is_left_out_and_told_of() {
    let good = PHONES[0].sent(false, false);
    let text = [
        full("u", 1000, [-1, 2, 3, 4]),
        full("v", 1000, [0; 4]),
        // The active list cannot exceed the memory; the previous sample is of another device.
        full("w", 1000, [5_000_000, 400_000, 80_000, 1_800_000]),
        full("x", 1000, good),
    ]
    .concat();
    let imported = import(Kind::CaratFull, &text);
    assert_eq!(imported.counters, PHONES[0].counters("x", 1000, false));
    let report = imported.report;
    assert_eq!((report.samples, report.bad_lines), (4, 2));
    assert_eq!(finding(&report, Reason::NegativeMemory), "file.txt:1: memory.memoryActive: expected kB, found -1");
    assert_eq!(count(&report, Reason::NoMemory), 1);
    // It was kept until the end, and is reported with its own line.
    assert!(
        finding(&report, Reason::ImplausibleMemory).starts_with("file.txt:3: memory: expected parts of 1880000 kB")
    );
}

#[test]
fn iphones_are_left_out() {
    let report = import(Kind::CaratFull, &full("0123ABCD-0123-ABCD", 1000, [1, 2, 3, 4])).report;
    assert_eq!((report.samples, count(&report, Reason::AppleDevice), report.counter_rows), (0, 1, 0));
}

/// Five parts of enough samples for several blocks each, some of them odd, and one line of part 3 that is not a sample.
fn parts(bad: &str) -> Vec<(String, Vec<u8>)> {
    let part = |part: u64| {
        let mut text = String::new();
        for number in 0..1500 {
            let name = "x".repeat(400);
            let apps = [("com.a", "Service"), ("com.b:ui", "No word"), (name.as_str(), "Foreground app")];
            text += &sample(1_443_336_825 + 1500 * part + 7 * number, &apps);
            if (part, number) == (3, 1001) {
                text += bad;
            }
        }
        text
    };
    (1..=5).map(|number| (format!("part-{number}"), part(number).into_bytes())).collect()
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let parts = parts("{\n");
    let files: Vec<(&str, &[u8])> = parts.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
    let with = |threads: usize, strict: bool| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| import_all(Options { strict, ..Options::new(Kind::Carat) }, &files))
    };
    let one = with(1, false).unwrap();
    // 5 × 1500 samples of three packages; 1002 samples precede the line that is not one.
    assert_eq!((one.apps.len(), one.report.samples, one.report.lines), (22_500, 7500, 7501));
    let wrong = finding(&one.report, Reason::NotJson);
    assert!(wrong.starts_with("part-3:1003: expected a JSON object"), "{wrong}");
    for threads in [2, 4] {
        let several = with(threads, false).unwrap();
        assert!(several.apps == one.apps && several.counters == one.counters, "{threads} threads");
        assert_eq!(several.report, one.report);
        let error = with(threads, true).err().unwrap().to_string();
        assert_eq!(error, wrong);
    }
}
