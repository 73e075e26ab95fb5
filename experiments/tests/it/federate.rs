//! `federate`: its output, resuming after an interruption, and its errors.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use haversack_reports::frame::read_parquet;
use tempfile::TempDir;

use crate::reproduce::tree;
use crate::support::{call_in, command, refusal, stderr, stdout};

pub(crate) const SPEC: &str = "population = 60\nselector = \"oort-paper\"\ncohort = 4\nrounds = 6\nnetwork = \"lenet5\"\n\
    policy = \"sage\"\nmemory_mix = { 8 = 1.0 }\nsamples = 20\nbatch = 10\nstand_in = \"logistic\"\ndata = \"synthetic\"\n\
    split = \"natural\"\nevaluate_every = 2\n";

pub(crate) fn folder(specification: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("spec.toml"), specification).unwrap();
    folder
}

fn federate(within: &Path, flags: &str) -> String {
    let line = format!("federate spec.toml {flags}");
    let output = call_in(within, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output)
}

fn refused(specification: &str) -> String {
    refusal(&call_in(folder(specification).path(), &["federate", "spec.toml"]), 2)
}

/// A column as text.
fn column(path: &Path, name: &str) -> Vec<String> {
    let frame = read_parquet(path).unwrap();
    let column = frame.column(name).unwrap();
    (0..frame.height()).map(|row| column.get(row).unwrap().to_string()).collect()
}

#[test]
fn a_federation_is_the_same_on_any_number_of_threads_and_goes_on_where_it_was() {
    let folder = folder(SPEC);
    let at = |name: &str| folder.path().join(name);
    let said = federate(folder.path(), "--out one --jobs 1");
    assert!(said.starts_with("6 rounds in ") && said.contains("accuracy "), "{said}");
    let rounds = at("one/rounds.parquet");
    assert_eq!(column(&rounds, "round"), ["1", "2", "3", "4", "5", "6"]);
    let measured: Vec<bool> = column(&rounds, "accuracy").iter().map(|text| text != "null").collect();
    assert_eq!(measured, [false, true, false, true, false, true]);
    // Every phone that began is in exactly one of the counts.
    let number = |name: &str| column(&rounds, name).iter().map(|text| text.parse::<usize>().unwrap()).sum::<usize>();
    let [selected, completed] = ["selected", "completed"].map(number);
    assert_eq!(selected, completed + ["dropped", "killed", "timed_out"].map(number).iter().sum::<usize>());
    let outcomes = column(&at("one/clients.parquet"), "outcome");
    assert_eq!(outcomes.len(), selected);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.contains("completed")).count(), completed);
    assert!(column(&at("one/clients.parquet"), "memory_class").iter().all(|class| class.contains("8 GB")));
    // Six rounds on two threads give the same result as on one thread, and so does a run that reads the
    // rounds from its checkpoint.
    federate(folder.path(), "--out two --jobs 2");
    assert_eq!(tree(&at("one")), tree(&at("two")));
    fs::remove_file(at("two/rounds.parquet")).unwrap();
    federate(folder.path(), "--out two --resume");
    assert_eq!(tree(&at("one")), tree(&at("two")));
    // Another seed is another specification.
    let other = refusal(&call_in(folder.path(), &["federate", "spec.toml", "--out", "two", "--seed", "5"]), 2);
    assert!(other.contains("another specification"), "{other}");
}

#[test]
fn a_target_that_all_samples_in_one_place_fall_short_of_is_said() {
    let spec = SPEC.replace("data = \"synthetic\"", "data = \"linear\"").replace("split = \"natural\"\n", "");
    let said = |target: f64| {
        let folder = folder(&format!("{spec}target_accuracy = {target}\n"));
        stderr(&call_in(folder.path(), &["federate", "spec.toml"]))
    };
    assert!(said(1.0).contains("`target_accuracy` is 1, but even with all samples in one place logistic reaches 0."));
    assert!(!said(0.1).contains("in one place"));
}

#[test]
fn it_ends_once_the_accuracy_is_there() {
    let folder = folder(&format!("{SPEC}target_accuracy = 0.01\n"));
    assert!(federate(folder.path(), "--out out").starts_with("2 rounds in "));
    // No round begins a tenth of a second after the first.
    fs::write(folder.path().join("spec.toml"), format!("{SPEC}horizon = \"100ms\"\n")).unwrap();
    assert!(federate(folder.path(), "--out short").starts_with("1 round in "));
}

#[test]
fn phones_that_can_hold_no_plan_are_counted_and_an_oracle_asks_for_no_memory() {
    let large = "population = 6\nselector = \"random\"\ncohort = 3\nrounds = 2\nnetwork = \"resnet50\"\nmemory_mix = { 4 = 1.0 }\n\
        samples = 64\nbatch = 64\n";
    let folder = folder(large);
    let output = call_in(folder.path(), &["federate", "spec.toml", "--out", "out"]);
    let said = stdout(&output);
    assert!(said.contains("phones were left out"), "{said}");
    let warned = stderr(&output);
    assert!(warned.contains("0 of 6 phones can take part, fewer than twice the cohort of 3"), "{warned}");
    let reasons = column(&folder.path().join("out/exclusions.parquet"), "reason");
    assert!(
        reasons[0].contains("training with original takes ") && reasons[0].contains("a phone with 4 GB"),
        "{}",
        reasons[0]
    );
    fs::write(folder.path().join("spec.toml"), format!("{large}oracle = true\n")).unwrap();
    assert!(!federate(folder.path(), "--out oracle").contains("left out"));
}

#[test]
fn what_nobody_has_is_refused() {
    assert!(refused(&SPEC.replace("lenet5", "lenet6")).contains("lenet5"));
    assert!(refused(&SPEC.replace("\"sage\"", "\"sagr\"")).contains("sage"));
    assert!(refused(&SPEC.replace("\"logistic\"", "\"logstic\"")).contains("logistic"));
    assert!(
        refused(&SPEC.replace("cohort = 4", "cohort = 61"))
            .contains("spec.toml:3: `cohort` is 61, expected from 1 to the 60")
    );
    assert!(refused(&format!("{SPEC}traces = \"none.parquet\"\n")).contains("none.parquet"));
    let mixed = SPEC.replace("8 = 1.0", "8 = 0.9999, 16 = 0.0001");
    let mixed = mixed.replace("\"synthetic\"\nsplit = \"natural\"", "\"linear\"");
    let alone = refused(&format!("{mixed}data_by_memory = 0.5\n"));
    assert!(alone.contains("no phone of the population has 16 GB, whose classes no phone would have"), "{alone}");
}

/// As [`SPEC`] with other values of keys, and more lines.
fn with(changes: &[(&str, &str)], more: &str) -> String {
    let changed = changes.iter().fold(SPEC.to_owned(), |text, (from, to)| text.replace(from, to));
    assert!(changes.iter().all(|(_, to)| changed.contains(to)));
    format!("{changed}{more}")
}

#[test]
fn heterofls_phones_learn_networks_as_wide_as_they_hold() {
    let changes = [
        ("\"oort-paper\"", "\"heterofl\""),
        ("\"sage\"", "\"original\""),
        ("\"lenet5\"", "\"resnet18\""),
        ("8 = 1.0", "4 = 1.0"),
        ("\"logistic\"", "\"mlp\""),
        ("batch = 10", "batch = 60"),
        ("rounds = 6", "rounds = 2"),
    ];
    let folder = folder(&with(&changes, ""));
    let said = federate(folder.path(), "--out out");
    assert!(said.contains("accuracy "), "{said}");
    // The whole of ResNet-18 has 11.7 million weights; narrower networks are fewer bytes.
    let rounds = folder.path().join("out/rounds.parquet");
    let number = |name| column(&rounds, name).iter().map(|text| text.parse::<u64>().unwrap()).sum::<u64>();
    let each = number("up_bytes") / number("completed").max(1);
    assert!(each > 0 && each < 11_689_512 * 4 * 3 / 4, "{each}");
}

#[test]
fn keys_that_contradict_each_other_are_refused_with_their_line() {
    let refused = |more: &str| refused(&format!("{SPEC}{more}\n"));
    for gone in ["aggregation = \"buffered\"", "concurrency = 9", "max_staleness = 5"] {
        let key = gone.split(' ').next().unwrap();
        assert!(refused(gone).contains(&format!("spec.toml:14: `{key}` is gone: rounds are synchronous")));
    }
    assert!(refused("local_steps = 1\nlocal_epochs = 2").contains("spec.toml:14: `local_epochs` and `local_steps`"));
    assert!(refused("local_steps = 0").contains("spec.toml:14: `local_steps` is 0"));
    assert!(refused("proximal = 0.1").contains("expected aggregator = \"fedprox\""));
    assert!(refused("server_learning_rate = 0.1").contains("expected aggregator = \"fedyogi\""));
    assert!(
        refused("aggregator = \"fedyogi\"\nserver_learning_rate = 0.0")
            .contains("spec.toml:15: `server_learning_rate` is 0")
    );
}

#[test]
fn lists_span_federations_whose_shards_merge_to_the_same_bytes() {
    let changes = [("\"oort-paper\"", "[\"random\", \"fedhybrid\"]"), ("rounds = 6", "rounds = [1, 2]")];
    let folder = folder(&with(&changes, ""));
    let at = |name: &str| folder.path().join(name);
    let said = federate(folder.path(), "--out whole --jobs 1");
    assert!(said.starts_with("4 federations\n6 rounds in "), "{said}");
    let rounds = at("whole/rounds.parquet");
    assert_eq!(column(&rounds, "run"), ["0", "1", "1", "2", "3", "3"]);
    assert_eq!(column(&rounds, "rounds"), ["1", "2", "2", "1", "2", "2"]);
    assert!(column(&rounds, "selector")[..3].iter().all(|selector| selector.contains("random")));
    for part in 1..=2 {
        federate(folder.path(), &format!("--out part{part} --shard {part}/2 --jobs 2"));
    }
    let merge =
        |shards: &str| call_in(folder.path(), &format!("merge {shards} --out merged").split(' ').collect::<Vec<_>>());
    let missing = refusal(&merge("part2"), 2);
    assert!(missing.contains("federations 0 to 1 are in none of the folders"), "{missing}");
    let merged = merge("part2 part1");
    assert_eq!(merged.status.code(), Some(0), "{}", stderr(&merged));
    assert_eq!(stdout(&merged), said.replace("whole/", "merged/"));
    assert_eq!(tree(&at("whole")), tree(&at("merged")));
    assert!(refusal(&merge("whole"), 2).contains("whole: holds no shard"));
}

#[test]
fn a_shard_that_is_killed_goes_on_and_merges_to_the_bytes_of_one_run() {
    let folder = folder(&with(
        &[("\"oort-paper\"", "[\"random\", \"fedhybrid\", \"oort-paper\"]"), ("rounds = 6", "rounds = 300")],
        "",
    ));
    let at = |name: &str| folder.path().join(name);
    federate(folder.path(), "--out whole");
    federate(folder.path(), "--out part1 --shard 1/2 --jobs 1");
    // The second shard has the last two of the three: it is killed once the second of them has learned something.
    let mut second = command(folder.path(), &["federate", "spec.toml", "--out", "part2", "--shard", "2/2"]);
    let mut second = second.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let has_begun = || {
        let log = fs::read_to_string(at("part2/checkpoint")).unwrap_or_default();
        log.lines().any(|line| line.split(' ').nth(1) == Some("2"))
    };
    while !has_begun() && second.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    second.kill().unwrap();
    second.wait().unwrap();
    assert!(has_begun() && !at("part2/rounds.parquet").exists());
    federate(folder.path(), "--out part2 --shard 2/2 --resume --jobs 2");
    let merged = call_in(folder.path(), &["merge", "part1", "part2", "--out", "merged"]);
    assert_eq!(merged.status.code(), Some(0), "{}", stderr(&merged));
    assert_eq!(tree(&at("whole")), tree(&at("merged")));
}

#[test]
fn the_page_of_a_run_shows_what_came_of_it_and_loads_nothing() {
    let folder = folder(&with(
        &[("8 = 1.0", "4 = 0.5, 8 = 0.5"), ("\"lenet5\"", "\"resnet50\""), ("rounds = 6", "rounds = 2")],
        "ready = \"always\"\n",
    ));
    let said = federate(folder.path(), "--out out");
    let page = fs::read_to_string(folder.path().join("out/index.html")).unwrap();
    assert!(said.lines().filter(|line| !line.starts_with("out/")).all(|line| page.contains(line)), "{said}");
    for heading in ["Accuracy over simulated time", "Who was left out, and why", "Memory and energy by memory class"] {
        assert!(page.contains(&format!("<h2>{heading}</h2>")), "{heading}");
    }
    // Three pictures in it, each with a description; nothing is loaded.
    assert_eq!(page.matches("<svg role=\"img\" aria-label=\"").count(), 3);
    assert!(!page.contains("aria-label=\"\"") && !page.contains(" src=") && !page.contains("http"));
    // For each memory class, as many phones as in the table.
    let classes = folder.path().join("out/classes.parquet");
    for (class, phones) in column(&classes, "memory_class").iter().zip(column(&classes, "phones")) {
        let class = class.trim_matches('"');
        assert!(page.contains(&format!("<tr><td>{class}</td><td class=\"number\">{phones}</td>")), "{class}");
    }
    assert!(fs::read_to_string(folder.path().join("out/run.json")).unwrap().contains("\"index.html\""));
}

#[test]
fn phones_like_users_whose_traces_end_early_are_left_out_and_counted() {
    let folder = folder(&with(&[("rounds = 6", "rounds = 1")], "traces = \"l.parquet\"\nready = \"always\"\n"));
    let row = |user: &str, minute: u32, event: &str| {
        format!("{user}\t1\t2018-01-16 {:02}:{:02}:00\tA\t{event}\n", minute / 60, minute % 60)
    };
    let import = |last: u32| {
        let events = [
            row("long", 0, "Opened"),
            row("long", last, "Closed"),
            row("short", 0, "Opened"),
            row("short", 9, "Closed"),
        ];
        fs::write(folder.path().join("l.tsv"), events.concat()).unwrap();
        let line = ["trace", "import", "--kind", "lsapp", "l.tsv", "--out", "l.parquet"];
        assert_eq!(call_in(folder.path(), &line).status.code(), Some(0));
    };
    import(90);
    let said = federate(folder.path(), "--out out");
    let left_out: usize = column(&folder.path().join("out/classes.parquet"), "without_trace")[0].parse().unwrap();
    // Half of the sixty phones follow each of the two users.
    assert!((15..=45).contains(&left_out), "{left_out}");
    assert!(
        said.contains(&format!("{left_out} phones were left out, since their users' traces end too early")),
        "{said}"
    );
    let reasons = column(&folder.path().join("out/exclusions.parquet"), "reason");
    let own = reasons.iter().filter(|reason| reason.contains("the trace of its user, short, ends after 540 s"));
    assert_eq!(own.count(), left_out, "{reasons:?}");
    import(20);
    let refused = refusal(&call_in(folder.path(), &["federate", "spec.toml", "--out", "none"]), 2);
    assert!(refused.contains("no user's trace is longer than twenty minutes"), "{refused}");
}

#[test]
fn phones_that_get_no_sample_of_a_set_are_left_out_and_counted() {
    // `linear` has 10,000 training samples, one for each of as many of these phones.
    let spec = "population = 10400\nselector = \"fedhybrid\"\ncohort = 4\nrounds = 1\nnetwork = \"lenet5\"\noracle = true\n\
        memory_mix = { 8 = 1.0 }\nstand_in = \"logistic\"\ndata = \"linear\"\ndealt = true\nready = \"always\"\n";
    let folder = folder(spec);
    let said = federate(folder.path(), "--out out");
    assert!(said.contains("400 phones were left out, since they hold no samples: 400 with 8 GB"), "{said}");
    let reasons = column(&folder.path().join("out/exclusions.parquet"), "reason");
    assert!(reasons.len() == 400 && reasons.iter().all(|reason| reason.contains("it holds no samples")), "{reasons:?}");
}
