//! LSApp, Tsinghua, `/proc`, Perfetto and lmkd: the rows, and the findings.

use super::import_support::{count, finding, import, import_all};
use haversack_traces::import::{Kind, Options, Reason};

#[test]
fn lsapp_columns_go_by_their_names() {
    let text = "event_type\tapp_name\ttimestamp\tsession_id\tuser_id\nOpened\tMaps\t1970-01-01 00:01:00\t1\t7\n";
    assert_eq!(import(Kind::Lsapp, text).apps, ["7 60 Maps 0 lsapp inferred"]);
    let report = import(Kind::Lsapp, "user_id\tsession_id\ttimestmp\tapp_name\tevent_type\n").report;
    assert_eq!(
        finding(&report, Reason::Columns),
        "file.txt:1: timestamp: the column is missing; did you mean 'timestmp'?"
    );
}

#[test]
fn lsapp_tells_of_what_it_cannot_take() {
    let text = "1\t1\t2018-01-16 06:01:05\tMaps\tOpened\n\
                1\t1\t2018-01-16 06:01:05\tMaps\tOpened\n\
                1\t1\t2018-01-16 06:01:06\tMaps\tBroken\n\
                1\t1\t2018-01-16 06:01:07\tMaps\tClozed\n\
                1\t1\t16.1.2018\tMaps\tClosed\n\
                1\t1\n";
    let imported = import(Kind::Lsapp, text);
    assert_eq!(imported.apps.len(), 1);
    let report = imported.report;
    assert_eq!((report.bad_lines, count(&report, Reason::Duplicate), count(&report, Reason::IdleEvent)), (3, 1, 1));
    let found = &report.findings[&Reason::Field].first;
    assert_eq!(
        found[0].to_string(),
        "file.txt:4: event_type: expected Opened, Closed, User Interaction, Broken, found 'Clozed'; did you mean 'Closed'?"
    );
    assert!(found[1].to_string().contains("timestamp: expected YYYY-MM-DD HH:MM:SS"));
    assert!(finding(&report, Reason::Columns).starts_with("file.txt:6: "));
}

#[test]
fn tsinghua_names_the_field() {
    let text = "0 20160420080012 1532 17 -1\n0 2016042008001 1532 17 1\nx 20160420080012 1532 17 1\n\
                0 20160420080012 1532 17\n0 20160420080012 1532 17 1 9\n";
    let report = import(Kind::Tsinghua, text).report;
    assert_eq!((report.bad_lines, report.app_rows), (5, 0));
    let fields: Vec<&str> = report.findings.values().flat_map(|found| &found.first).map(|f| f.field.as_str()).collect();
    // Columns come first: line 4 lacks its traffic, line 5 has a sixth column.
    assert_eq!(fields, ["traffic", "", "traffic", "time", "user"]);
}

const MEMINFO: &str = "MemTotal:  2000 kB\nMemAvailable:  900 kB\nActive(anon): 300 kB\nHugePages_Total: 4\n";

#[test]
fn meminfo_goes_by_names_and_blocks_have_times() {
    let text = format!("1443336825\n{MEMINFO}2015-09-27 06:53:46.5\nActive(anon): 310 kB\nMemTotal: 2000 kB\n");
    let options = Options { user: Some("phone".to_owned()), ..Options::new(Kind::Meminfo) };
    let imported = import_all(options, &[("x.log", text.as_bytes())]).unwrap();
    // Memory in kB, times 1024; a number of pages has no unit. 06:53:45 on that day is 1443336825.
    assert_eq!(
        imported.counters,
        [
            "phone 1443336825 MemTotal 2048000",
            "phone 1443336825 MemAvailable 921600",
            "phone 1443336825 Active(anon) 307200",
            "phone 1443336825 HugePages_Total 4",
            "phone 1443336826.5 Active(anon) 317440",
            "phone 1443336826.5 MemTotal 2048000",
        ]
    );
    assert_eq!((imported.report.samples, imported.report.gaps.bins[1]), (2, 1));
}

#[test]
fn blocks_without_times_are_an_interval_apart() {
    let interval = haversack_devices::units::Nanos(500_000_000);
    let start = haversack_traces::row::UtcTime::from_seconds(100);
    let options = Options { interval, start, ..Options::new(Kind::Vmstat) };
    let text = "nr_free_pages 7\npgfault 1\nnr_free_pages 6\npgfault 3\n";
    let imported = import_all(options, &[("logs/pixel.vmstat.txt", text.as_bytes())]).unwrap();
    assert_eq!(
        imported.counters,
        ["pixel 100 nr_free_pages 7", "pixel 100 pgfault 1", "pixel 100.5 nr_free_pages 6", "pixel 100.5 pgfault 3",]
    );
    assert!(imported.report.notes[0].contains("apart"), "{:?}", imported.report.notes);
}

#[test]
fn proc_files_tell_of_wrong_values_and_of_each_other() {
    let report = import(Kind::Meminfo, "MemTotal: -5 kB\nMemFree: many kB\nMemFree 5\nMemFree: 5 MB\n").report;
    assert_eq!((report.bad_lines, report.counter_rows), (4, 0));
    assert_eq!(finding(&report, Reason::NegativeMemory), "file.txt:1: MemTotal: expected zero or more, found -5");
    assert_eq!(finding(&report, Reason::Field), "file.txt:2: MemFree: expected a whole number, found 'many'");
    assert!(finding(&report, Reason::Columns).ends_with("did you mean --kind vmstat?"));
    let report = import(Kind::Vmstat, "MemTotal: 5 kB\n").report;
    assert!(finding(&report, Reason::Columns).ends_with("did you mean --kind meminfo?"));
}

#[test]
fn perfetto_counters_and_values_of_processes() {
    let text = "\"ts\",\"name\",\"value\",\"process\",\"pid\"\n\
                1500000000,\"MemFree\",4096.0,\"[NULL]\",\"[NULL]\"\n\
                2000000000,\"oom_score_adj\",900,\"com.a\",42\n\
                2000000001,\"mem.rss\",8192,\"com.a\",42\n\
                2000000002,\"mem.swap\",1,,43\n\
                2000000003,\"mem.lmk\",,\"com.a\",42\n";
    let imported = import(Kind::Perfetto, text);
    assert_eq!(imported.apps, ["file 2 com.a 900 perfetto recorded"]);
    let expected = [
        "file 1.5 MemFree 4096",
        "file 2.000000001 com.a/mem.rss 8192",
        "file 2.000000002 pid:43/mem.swap 1",
        "file 2.000000003 com.a/mem.lmk 1",
    ];
    assert_eq!(imported.counters, expected);
    assert_eq!((imported.report.bad_lines, imported.report.samples), (0, 5));
}

#[test]
fn perfetto_columns_go_by_their_names_and_counters_by_their_own_order() {
    // The second counter begins again, which is not a reversal; the third line of the first counter is.
    let text =
        "value,ts[ns],name\n1,10,a\n2,30,a\n3,20,b\n4,20,a\n-1,40,MemFree\nx,50,a\n1,-5,a\n2000,60,oom_score_adj\n";
    let imported = import(Kind::Perfetto, text);
    let report = imported.report;
    assert_eq!((imported.counters.len(), imported.apps.len()), (5, 0));
    assert_eq!((count(&report, Reason::TimeReversal), report.bad_lines), (1, 3));
    assert!(finding(&report, Reason::TimeReversal).starts_with("file.txt:5: "));
    assert_eq!(finding(&report, Reason::NegativeMemory), "file.txt:6: value: expected bytes of MemFree, found -1");
    assert_eq!(finding(&report, Reason::Field), "file.txt:7: value: expected a number, found 'x'");
    let report = import(Kind::Perfetto, "ts,nam,value,process,pid\n1,a,2,,\n").report;
    assert!(finding(&report, Reason::Columns).contains("did you mean 'nam'?"));
    let report = import(Kind::Perfetto, "ts,name,value,process\n1,oom_score_adj,1001,com.a\n").report;
    assert!(finding(&report, Reason::Field).contains("-1000 to 1000, found '1001'"));
}

#[test]
fn perfetto_columns_may_be_those_of_its_own_queries() {
    let text = "\"ts\",\"value\",\"counter_name\",\"proc_name\",\"pid\"\n\
                1500000000,4096.0,\"mem.rss\",\"com.a\",42\n2000000000,906,\"oom_score_adj\",\"com.a\",42\n";
    let imported = import(Kind::Perfetto, text);
    assert_eq!(imported.counters, ["file 1.5 com.a/mem.rss 4096"]);
    assert_eq!(imported.apps, ["file 2 com.a 906 perfetto recorded"]);
    assert_eq!(imported.report.bad_lines, 0);
}

#[test]
fn older_kills_say_what_they_free_on_the_next_line() {
    // Android 8 and 9, with 24 October 2025 at 20,385 days after 1970: 20385 * 86400 + 14:24:26.500.
    let lines = "10-24 14:24:26.500   710   710 I lowmemorykiller: Killing 'com.a' (17933), uid 10446, adj 906\n\
                 10-24 14:24:26.500   710   710 I lowmemorykiller:    to free 140528kB because system is under low\n\
                 10-24 14:24:27.000   710   710 I other: to free 5kB\n";
    let options = Options { year: Some(2025), ..Options::new(Kind::Lmkd) };
    let imported = import_all(options, &[("file", lines.as_bytes())]).unwrap();
    assert_eq!(imported.apps, ["file 1761315866.5 com.a 906 lmkd-kill recorded"]);
    // 140,528 kB times 1024.
    assert_eq!(imported.counters, ["file 1761315866.5 lmkd/task_size 143900672"]);
    assert_eq!((imported.report.other_lines, imported.report.bad_lines), (1, 0));
    // The kernel's driver, as `dmesg` prints it: seconds since the phone's start.
    let lines = "[ 1234.500000] lowmemorykiller: Killing 'd.process.acore' (2345) (tgid 2345), adj 606,\n\
                 [ 1234.500001]    to free 30000kB on behalf of 'kswapd0' (45) because\n\
                 [ 1234.500002]    cache 100kB is below limit 200kB for oom_score_adj 529\n";
    let imported = import(Kind::Lmkd, lines);
    assert_eq!(imported.apps, ["file 1234.5 d.process.acore 606 lmkd-kill recorded"]);
    assert_eq!(imported.counters, ["file 1234.5 lmkd/task_size 30720000"]);
    assert!(imported.report.notes.iter().any(|note| note.contains("own start")), "{:?}", imported.report.notes);
}

#[test]
fn meminfo_of_an_old_kernel_has_what_could_be_had() {
    let block =
        "MemTotal: 2000 kB\nMemFree: 100 kB\nActive(file): 200 kB\nInactive(file): 300 kB\nSReclaimable: 4 kB\n";
    let text = format!("Sun Sep 27 06:53:45 UTC 2015\n{block}1443336826000\n{block}");
    let imported = import(Kind::Meminfo, &text);
    let available: Vec<&String> = imported.counters.iter().filter(|row| row.contains("MemAvailable")).collect();
    // 100 + 200 + 300 + 4 kB.
    assert_eq!(available, ["file 1443336825 MemAvailable 618496", "file 1443336826 MemAvailable 618496"]);
    assert!(imported.report.notes.iter().any(|note| note.contains("no MemAvailable")), "{:?}", imported.report.notes);
}

const KILL: &str =
    "Kill 'com.a' (42), uid 10123, oom_score_adj 905 to free 12345kB rss, 678kB swap; reason: low watermark";
/// Pid, Uid, OomAdj, MinOomAdj, TaskSize, reason, MemFree, Cached, SwapCached.
const KILLINFO: &str = "[42,10123,905,0,12345,3,5000,60000,700]";

#[test]
fn both_lines_of_a_kill_are_one_whichever_comes_first() {
    let text = format!("2024-05-12 10:11:12.500  600  600 I lowmemorykiller: {KILL}\n");
    let event = format!("2024-05-12 10:11:12.499  600  600 I killinfo: {KILLINFO}\n");
    // 2024-05-12 10:11:12 is 1715508672: see the tests of the calendar.
    let row = |seconds: &str| format!("file {seconds} com.a 905 lmkd-kill recorded");
    for lines in [format!("{text}{event}"), format!("{event}{text}")] {
        let imported = import(Kind::Lmkd, &lines);
        assert_eq!(imported.apps, [row("1715508672.5")], "{lines}");
        assert_eq!(imported.report.samples, 1);
        // kB times 1024; lmkd's own numbers as they are.
        assert_eq!(
            imported.counters,
            [
                "file 1715508672.499 lmkd/min_oom_adj 0",
                "file 1715508672.499 lmkd/task_size 12641280",
                "file 1715508672.499 lmkd/reason 3",
                "file 1715508672.499 MemFree 5120000",
                "file 1715508672.499 Cached 61440000",
                "file 1715508672.499 SwapCached 716800",
            ]
        );
    }
    assert_eq!(import(Kind::Lmkd, &text).apps, [row("1715508672.5")]);
    // A single event has no name but the process.
    assert_eq!(import(Kind::Lmkd, &event).apps, ["file 1715508672.499 pid:42 905 lmkd-kill recorded"]);
    // A pid that comes again an hour later is another process.
    let later = event.replace("10:11", "11:11");
    let apps = import(Kind::Lmkd, &format!("{text}{later}")).apps;
    assert_eq!(apps, [row("1715508672.5"), "file 1715512272.499 pid:42 905 lmkd-kill recorded".to_owned()]);
}

#[test]
fn a_log_without_a_year_says_so() {
    let text =
        format!("--------- beginning of main\n05-12 10:11:12.000   600   600 I lowmemorykiller: {KILL}\nother\n");
    let imported = import(Kind::Lmkd, &text);
    // 12 May 1970 is 131 days after the 1st of January: 131 * 86400 + 36672.
    assert_eq!(imported.apps, ["file 11355072 com.a 905 lmkd-kill recorded"]);
    assert_eq!(imported.report.other_lines, 2);
    assert!(imported.report.notes[0].contains("--year"), "{:?}", imported.report.notes);
    let options = Options { year: Some(2024), ..Options::new(Kind::Lmkd) };
    let imported = import_all(options, &[("file", text.as_bytes())]).unwrap();
    assert_eq!(imported.apps, ["file 1715508672 com.a 905 lmkd-kill recorded"]);
    assert!(imported.report.notes.is_empty());
}

#[test]
fn kills_that_cannot_be_read_are_told_of() {
    let at = "2024-05-12 10:11:12.500 I lowmemorykiller: ";
    for (line, expected) in [
        (format!("{at}Kill 'com.a'"), "package: expected Kill 'package' (pid)"),
        (format!("{at}Kill 'com.a' (x), oom_score_adj 5"), "pid: expected the number of a process"),
        (format!("{at}{}", KILL.replace("905", "1905")), "oom_score_adj: expected oom_score_adj from -1000 to 1000"),
        (KILL.to_owned(), "time: expected a line that begins with its time"),
        (format!("{at}killinfo: [1,2,3]"), "killinfo: expected at least Pid"),
        (format!("{at}killinfo: [1,2,x,0,0,0,0]"), "OomAdj: expected a whole number"),
        (format!("{at}killinfo: [1,2,3,0,0,0,-9]"), "MemFree: expected kB, found -9"),
    ] {
        let report = import(Kind::Lmkd, &line).report;
        assert_eq!(report.bad_lines, 1, "{line}");
        let message = finding(&report, *report.findings.keys().next().unwrap());
        assert!(message.contains(expected), "{line}: {message}");
    }
    // Before Android 10 lmkd wrote oom_adj.
    let old = format!("{at}{}", KILL.replace("oom_score_adj", "oom_adj"));
    assert_eq!(import(Kind::Lmkd, &old).apps.len(), 1);
}
