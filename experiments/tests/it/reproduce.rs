//! `reproduce` as a library function: rows, files, verdicts and failures, with artefacts made up for the tests
//! and with the built-in ones.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use haversack::artefacts::ARTEFACTS;
use haversack::measured::{self, Measured};
use haversack::papers::Answer;
use haversack::papers::catalogue::Entry;
use haversack::papers::readings::Readings;
use haversack::papers::reference::{Claim, Reference};
use haversack::reproduce::{Artefact, ArtefactError, Context, Outcome, ReproduceOptions, Reproduction};
use haversack::work::WorkOptions;
use haversack_reports::figure::{Axis, Lines, Series};
use haversack_reports::table::Table;

use crate::support::{call_in, refusal, reproduce, stderr, stdout};

const SAGE: Entry = Entry { paper: "sage", about: "made up", ..Entry::EMPTY };
const TABLE: Artefact = Artefact {
    entry: Entry { id: "table1", devices: &["galaxy-s10"], stacks: &["sage-opencl"], ..SAGE },
    run: half_of_the_paper,
};
const DRAWN: Artefact = Artefact { entry: Entry { id: "figure8", ..SAGE }, run: drawn };
const BROKEN: Artefact = Artefact { entry: Entry { id: "figure10", ..SAGE }, run: broken };
const PLAIN: Artefact = Artefact { entry: Entry { id: "figure13", ..SAGE }, run: plain };

/// Half of the paper's value (−50%), and 3 if the paper has none.
fn half_of_the_paper(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    context.device("galaxy-s10")?;
    let mut outcome = Outcome::default();
    for row in &context.rows {
        outcome.number(&row.id, row.number().map_or(3.0, |paper| paper / 2.0));
        outcome.null(&row.id, 1.0);
    }
    outcome.summary.push(format!("seed {}", context.seed));
    Ok(outcome)
}

fn drawn(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let id = "sage/figure8/resnet50/sage/minimum-memory-reduction";
    let mut outcome = Outcome::default();
    outcome.number(id, context.row(id)?.number().unwrap_or_default());
    outcome.not_modelled("sage/figure8/densenet121/sage/minimum-memory-reduction", "no such network here");
    outcome.remark(id, "at micro-batch 1, \"as stated\"");
    let lines = Lines::new().series(Series::new("sage", [(1.0, 2.0), (2.0, 3.0)]));
    outcome.panel("", lines, Axis::new("x"), Axis::new("y"));
    Ok(outcome)
}

fn broken(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    context.device("rtx-3090")?;
    Ok(Outcome::default())
}

fn plain(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    for row in &context.rows {
        outcome.answer(&row.id, Answer::Input(row.number().unwrap_or_default()));
    }
    let mut table = Table::new(["time_s"]);
    table.push([0.5.into()])?;
    outcome.table = Some(table);
    Ok(outcome)
}

/// One artefact that measures a share with each seed, and one that reads another's measurement.
const MEASURING: Artefact =
    Artefact { entry: Entry { id: "figure9a", measured: &["sage/figure9a"], ..SAGE }, run: measuring };
const READING: Artefact = Artefact { entry: Entry { id: "figure9b", measured: &["daf/bits"], ..SAGE }, run: reading };

fn measuring(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let measured = context.measured("sage/figure9a", || {
        let mut measured = context.measuring("Shares", &["glyphs"], &["lenet5"]);
        let shares: Vec<f64> = context.seeds().iter().map(|&seed| seed as f64 / 3.0).collect();
        measured.add("share", "%", &shares);
        Ok(measured)
    })?;
    let mut outcome = Outcome::of("share");
    outcome.row([measured.value("share")?.value])?;
    Ok(outcome)
}

fn reading(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let measured = context.measured("daf/bits", || panic!("it belongs to another artefact"))?;
    let mut outcome = Outcome::of("bits");
    outcome.row([measured.value("images/loss")?.value])?;
    Ok(outcome)
}

/// An artefact that finds something in the first run, and fails until a later run has it.
const RETRIED: Artefact = Artefact { entry: Entry { id: "figure9a", ..SAGE }, run: retried };

fn retried(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    if context.kept.get::<u8>("found").is_some() {
        return Ok(Outcome::default());
    }
    context.kept.keep("found", &1)?;
    Err(ArtefactError::msg("it broke"))
}

fn options(out: &Path, selectors: &[&str], jobs: usize) -> ReproduceOptions {
    ReproduceOptions {
        selectors: selectors.iter().map(|selector| (*selector).to_owned()).collect(),
        work: WorkOptions { out: out.to_path_buf(), jobs: NonZeroUsize::new(jobs), ..WorkOptions::default() },
        seed: 7,
        ..ReproduceOptions::default()
    }
}

/// `cells.csv` by id, and how many rows it has.
fn cells(out: &Path) -> (BTreeMap<String, BTreeMap<String, String>>, usize) {
    let mut reader = csv::Reader::from_path(out.join("cells.csv")).unwrap();
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let expected = ["id", "simulated", "unit", "paper", "role", "error", "verdict", "null", "reason"];
    assert_eq!(header, expected);
    let mut rows = 0;
    let mut by_id = BTreeMap::new();
    for record in reader.records() {
        let record = record.unwrap();
        rows += 1;
        let fields: BTreeMap<_, _> = header.iter().cloned().zip(record.iter().map(str::to_owned)).collect();
        by_id.insert(record[0].to_owned(), fields);
    }
    (by_id, rows)
}

/// Every file below `folder` with its bytes.
pub(crate) fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read(path).unwrap());
            }
        }
    }
    files
}

#[test]
fn every_reference_id_stands_once_in_the_cells() {
    let out = tempfile::tempdir().unwrap();
    reproduce(&options(out.path(), &[], 2), &[TABLE]).unwrap();
    let (cells, rows) = cells(out.path());
    let reference = Reference::load().unwrap();
    let expected: HashSet<&str> = reference.rows().iter().map(|row| row.id.as_str()).collect();
    assert_eq!(rows, reference.rows().len());
    assert_eq!(cells.keys().map(String::as_str).collect::<HashSet<_>>(), expected);
    // Only table 1 has a model: every other cell has a reason why it has no value.
    for (id, cell) in &cells {
        let unanswered = cell["verdict"] == "not-modelled";
        assert_eq!(unanswered, !id.starts_with("sage/table1/"), "{id}");
        assert_eq!(unanswered, cell["simulated"].is_empty() && !cell["reason"].is_empty(), "{id}");
    }
    assert_eq!(
        cells["sage/figure13/resnet50-on-galaxy-s10/sage/energy-per-iteration"]["reason"],
        "no artefact models this yet"
    );
    let daf = "daf/table1/resnet18-cifar10/original/memory";
    assert_eq!(cells[daf]["reason"], "daf belongs to a later version of haversack");
}

#[test]
fn one_thread_and_two_give_the_same_bytes() {
    let out = tempfile::tempdir().unwrap();
    let (one, two) = (out.path().join("one"), out.path().join("two"));
    let artefacts = [TABLE, DRAWN, PLAIN];
    let first = reproduce(&options(&one, &["sage"], 1), &artefacts).unwrap();
    let second = reproduce(&options(&two, &["sage"], 2), &artefacts).unwrap();
    assert_eq!(first, second);
    let files = tree(&one);
    assert_eq!(files, tree(&two));
    for name in ["cells.csv", "index.html", "run.json", "sage/figure8.svg", "sage/figure8.png", "sage/figure8.csv"] {
        assert!(files.contains_key(name), "{name}");
    }
    // An artefact without a figure has only its data; its own table comes before its cells.
    assert!(!files.contains_key("sage/figure13.svg"));
    assert_eq!(files["sage/figure13.csv"], b"time_s\n0.5\n");
    assert!(files["sage/figure8.csv"].starts_with(b"id,simulated,"));
}

#[test]
fn answers_are_judged_and_reported() {
    let out = tempfile::tempdir().unwrap();
    let Reproduction { report, failures } =
        reproduce(&options(out.path(), &["sage/table1", "sage/figure8", "sage/figure13"], 2), &[TABLE, DRAWN, PLAIN])
            .unwrap();
    assert!(failures.is_empty(), "{failures:?}");
    let (cells, _) = cells(out.path());
    let direct = &cells["sage/table1/mobilenetv2/direct/latency"];
    // Half of the paper's value: (p / 2 − p) / p = −0.5.
    assert_eq!((direct["error"].as_str(), direct["verdict"].as_str(), direct["null"].as_str()), ("-0.5", "off", "1"));
    let withheld = &cells["sage/table1/densenet121/direct/latency"];
    assert_eq!((withheld["simulated"].as_str(), withheld["paper"].as_str()), ("3", ""));
    assert_eq!((withheld["error"].as_str(), withheld["verdict"].as_str()), ("", "predicted"));
    let exact = &cells["sage/figure8/resnet50/sage/minimum-memory-reduction"];
    let reason = "at micro-batch 1, \"as stated\"; contradicts another number of the paper";
    assert_eq!((exact["verdict"].as_str(), exact["reason"].as_str()), ("ok", reason));
    assert_eq!(cells["sage/figure8/all/sage/minimum-memory-reduction"]["reason"], "the artefact gives no answer");
    assert_eq!(cells["sage/figure13/resnet50-on-galaxy-s10/sage/energy-per-iteration"]["verdict"], "input");
    assert!(report.contains("sage/table1\n  seed 7\n"), "{report}");
    assert!(report.contains("   1  no such network here\n"), "{report}");
    let page = fs::read_to_string(out.path().join("index.html")).unwrap();
    assert!(page.contains("Table 1: made up") && page.contains("href=\"sage/figure8.svg\""));
    assert!(!page.contains("href=\"sage/table1.svg\""));
}

#[test]
fn the_record_names_calibrations_and_counts_choices_but_no_place() {
    let out = tempfile::tempdir().unwrap();
    reproduce(&options(out.path(), &["sage/table1"], 2), &[TABLE]).unwrap();
    let text = fs::read_to_string(out.path().join("run.json")).unwrap();
    assert!(!text.contains(out.path().to_str().unwrap()));
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((record["seed"].as_u64(), record["version"].as_str()), (Some(7), Some(env!("CARGO_PKG_VERSION"))));
    assert_eq!(record["selection"], serde_json::json!(["sage/table1"]));
    let device = haversack_devices::load("galaxy-s10").unwrap();
    assert_eq!(record["calibrations"][&device.file], device.digest.as_str());
    assert_eq!(record["calibrations"].as_object().unwrap().len(), 2);
    for (list, count) in
        [("fitted_constants", "fitted_constants_count"), ("declared_readings", "declared_readings_count")]
    {
        assert_eq!(record[list].as_array().unwrap().len() as u64, record[count].as_u64().unwrap(), "{list}");
    }
    // Every reading is open, whether stated or from a stand-in; those that were chosen by rows are among them.
    let sage = record["accounting"].as_array().unwrap().iter().find(|account| account["paper"] == "sage").unwrap();
    let count = |key: &str| sage[key].as_u64().unwrap();
    assert_eq!(count("readings") + count("stated") + count("stand_ins"), record["declared_readings_count"]);
    assert!(count("readings_chosen_on_rows") > 0 && count("readings_chosen_on_rows") <= count("readings"));
    assert!(count("constants") > 0 && count("constants") <= record["fitted_constants_count"].as_u64().unwrap());
    let stack = haversack_devices::load_stack("sage-opencl").unwrap();
    let fitted = haversack_devices::fitted_constants(&device, &stack);
    assert_eq!(record["fitted_constants"].as_array().unwrap().len(), fitted.len());
    assert_eq!(record["fitted_constants"][0]["name"], fitted[0].name.as_str());

    // An artefact that draws users also depends on constants that were fitted to users.
    let users = tempfile::tempdir().unwrap();
    reproduce(
        &options(users.path(), &["sage/table1"], 2),
        &[Artefact { entry: Entry { users: true, ..TABLE.entry }, ..TABLE }],
    )
    .unwrap();
    let text = fs::read_to_string(users.path().join("run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    let names: Vec<&str> =
        record["fitted_constants"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names[fitted.len()..], ["sessions.regular_share", "sessions.spread", "launch.extra.mb"]);
}

#[test]
fn an_artefact_that_fails_leaves_the_others_whole() {
    let out = tempfile::tempdir().unwrap();
    let done = reproduce(&options(out.path(), &["sage/figure8", "sage/figure10"], 2), &[DRAWN, BROKEN]).unwrap();
    let why = "the artefact uses the device `rtx-3090` but does not name it among its own";
    assert_eq!(done.failures, [format!("sage/figure10: {why}")]);
    assert_eq!(done.failure().unwrap().exit_code(), 1);
    let (cells, _) = cells(out.path());
    assert_eq!(cells["sage/figure10/bert-small/sage/throughput"]["reason"], why);
    assert_eq!(cells["sage/figure8/resnet50/sage/minimum-memory-reduction"]["verdict"], "ok");
    assert!(out.path().join("sage/figure8.png").exists() && out.path().join("sage/figure10.csv").exists());
}

#[test]
fn another_selection_into_the_same_folder_joins_the_cells() {
    let top = tempfile::tempdir().unwrap();
    let (out, once) = (top.path().join("out"), top.path().join("once"));
    let artefacts = [DRAWN, PLAIN, TABLE];
    reproduce(&options(&out, &["sage/figure8"], 1), &artefacts).unwrap();
    let joined = reproduce(&options(&out, &["sage/figure13"], 1), &artefacts).unwrap();
    // The report covers the selected artefacts, the files cover all.
    assert!(!joined.report.contains("no such network here") && joined.report.contains("holds 2 artefacts"));
    reproduce(&options(&once, &["sage/figure8", "sage/figure13"], 1), &artefacts).unwrap();
    assert_eq!(tree(&out), tree(&once), "the same bytes as one run");
    // One more row of an artefact adds to the earlier selection.
    let row = "sage/table1/mobilenetv2/direct/latency";
    reproduce(&options(&out, &[row], 1), &artefacts).unwrap();
    reproduce(&options(&out, &["sage/table1/densenet121/direct/latency"], 1), &artefacts).unwrap();
    let (now, rows) = cells(&out);
    assert_eq!(now.keys().filter(|id| id.starts_with("sage/table1/")).count(), 2);
    assert_eq!(rows, cells(&once).1 + 2);
    // The artefact no longer has a figure: its old one does not stay next to new numbers.
    reproduce(&options(&out, &["sage/figure8"], 1), &[Artefact { run: plain, ..DRAWN }, PLAIN, TABLE]).unwrap();
    assert!(!out.join("sage/figure8.svg").exists());
}

/// Artefacts made with other calibrations are not mixed with new ones.
#[test]
fn what_was_made_otherwise_is_refused_or_deleted() {
    let out = tempfile::tempdir().unwrap();
    reproduce(&options(out.path(), &["sage/table1", "sage/figure8"], 1), &[TABLE, DRAWN]).unwrap();
    // As if the device's file had changed in the meantime.
    let stored = out.path().join("sage/table1.json");
    let device = haversack_devices::load("galaxy-s10").unwrap();
    fs::write(&stored, fs::read_to_string(&stored).unwrap().replace(&device.digest, "0123456789abcdef")).unwrap();
    let before = tree(out.path());
    let refused = reproduce(&options(out.path(), &["sage/figure13"], 1), &[TABLE, DRAWN, PLAIN]).unwrap_err();
    assert_eq!(refused.exit_code(), 2);
    let message = refused.to_string();
    assert!(message.contains("has sage/table1 of another build") && message.contains("--overwrite"), "{message}");
    assert_eq!(tree(out.path()), before);
    // Requested again, it is recomputed, and the matching ones stay.
    let mut wanted = options(out.path(), &["sage/figure13"], 1);
    wanted.work.overwrite = true;
    reproduce(&wanted, &[TABLE, DRAWN, PLAIN]).unwrap();
    let files = tree(out.path());
    assert!(!files.contains_key("sage/table1.csv") && !files.contains_key("sage/table1.json"), "{:?}", files.keys());
    assert!(files.contains_key("sage/figure8.svg") && files.contains_key("sage/figure13.csv"));
}

/// How often [`counted_run`] ran.
static RUNS: AtomicUsize = AtomicUsize::new(0);

fn counted_run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    RUNS.fetch_add(1, Ordering::Relaxed);
    plain(context)
}

#[test]
fn what_is_finished_is_left_alone_if_asked() {
    let top = tempfile::tempdir().unwrap();
    let (out, whole) = (top.path().join("out"), top.path().join("whole"));
    let artefacts = [Artefact { run: counted_run, ..PLAIN }, DRAWN, BROKEN];
    let all = ["sage/figure8", "sage/figure10", "sage/figure13"];
    reproduce(&options(&whole, &all, 1), &artefacts).unwrap();
    let mut resumed = options(&out, &all, 1);
    resumed.work.resume = true;
    reproduce(&resumed, &artefacts).unwrap();
    assert_eq!(RUNS.load(Ordering::Relaxed), 2, "in a new folder all of them run");
    // As after a kill: the files of the whole folder are missing, and so is the mark that one artefact is complete.
    for name in ["cells.csv", "index.html", "sage/figure8.json"] {
        fs::remove_file(out.join(name)).unwrap();
    }
    let again = reproduce(&resumed, &artefacts).unwrap();
    assert_eq!((RUNS.load(Ordering::Relaxed), again.failures.len()), (2, 1), "what failed fails again");
    assert_eq!(tree(&out), tree(&whole));
    // Another seed is another specification, and without --resume everything runs again.
    let other = reproduce(&ReproduceOptions { seed: 8, ..resumed }, &artefacts).unwrap_err();
    assert_eq!(other.exit_code(), 2);
    reproduce(&options(&out, &all, 1), &artefacts).unwrap();
    assert_eq!(RUNS.load(Ordering::Relaxed), 3);
}

#[test]
fn shards_are_merged_to_the_bytes_of_one_run() {
    let top = tempfile::tempdir().unwrap();
    let haversack = |line: &str| call_in(top.path(), &line.split(' ').collect::<Vec<_>>());
    let selectors = "sage/section5 daf/table3 mandheling/table3 sage/figure2";
    let done = haversack(&format!("reproduce {selectors} --out whole --jobs 2"));
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    for part in 1..=3 {
        let done = haversack(&format!("reproduce {selectors} --out part{part} --shard {part}/3"));
        assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    }
    let merged = haversack("merge part2 part1 part3 --out merged");
    assert_eq!(
        (merged.status.code(), stdout(&merged)),
        (Some(0), stdout(&haversack(&format!("reproduce {selectors} --out whole --resume"))))
    );
    assert_eq!(tree(&top.path().join("whole")), tree(&top.path().join("merged")));
    // A shard is part of a specification: the whole is not reproduced into its folder.
    refusal(&haversack(&format!("reproduce {selectors} --out part1")), 2);
    let said = refusal(&haversack("merge part1 part3 --out other"), 2);
    assert!(said.contains(" is in none of the folders"), "{said}");
    let said = refusal(&haversack("merge part1 part2 part2 part3 --out other"), 2);
    assert!(said.contains(" is in another folder too"), "{said}");
    let done = haversack(&format!("reproduce {selectors} --out other-seed --shard 2/3 --seed 1"));
    assert_eq!(done.status.code(), Some(0));
    let said = refusal(&haversack("merge part1 other-seed part3 --out other"), 2);
    assert!(said.contains("are of different reproductions"), "{said}");
    assert!(!top.path().join("other").exists());
}

#[test]
fn a_trace_that_nothing_takes_is_refused() {
    let said = refusal(&call_in(Path::new("."), &["reproduce", "daf/table3", "--trace", "days.parquet"]), 2);
    assert!(said.contains("--trace days.parquet: no artefact that was selected takes a trace"), "{said}");
}

#[test]
fn wrong_input_writes_nothing() {
    let top = tempfile::tempdir().unwrap();
    let out = top.path().join("out");
    let unknown = reproduce(&options(&out, &["sage/table1", "sage/table99"], 1), &[TABLE]).unwrap_err();
    assert_eq!(unknown.exit_code(), 2);
    assert!(unknown.to_string().contains("`sage/table99` (did you mean `sage/table1`?)"), "{unknown}");
    assert!(!out.exists());
    let file = top.path().join("file");
    fs::write(&file, "kept").unwrap();
    let unwritable = reproduce(&options(&file.join("deep/out"), &["sage/table1"], 1), &[TABLE]).unwrap_err();
    assert_eq!(unwritable.exit_code(), 2);
    assert!(unwritable.to_string().contains("file/deep/out"), "{unwritable}");
    assert_eq!(tree(top.path()), BTreeMap::from([("file".to_owned(), b"kept".to_vec())]));
}

#[test]
fn the_comparison_can_be_asked_for() {
    let out = tempfile::tempdir().unwrap();
    let alone = reproduce(&options(out.path(), &["comparison"], 1), &[TABLE]).unwrap();
    assert!(alone.report.contains("The comparison belongs to a later version"), "{}", alone.report);
    assert_eq!(cells(out.path()).1, 0);
    let comparison = Artefact { entry: Entry { paper: "comparison", id: "policies", ..SAGE }, run: plain };
    reproduce(&options(out.path(), &["comparison"], 1), &[comparison]).unwrap();
    assert!(out.path().join("comparison/policies.csv").exists());
}

/// Figures for which a paper prints no numbers.
const PICTURES: [(&str, &str); 22] = [
    ("daf", "bits"),
    ("daf", "figure1b"),
    ("fedhybrid", "figure9"),
    ("fedhybrid", "figure12"),
    ("fedhybrid", "figure14"),
    ("fedhybrid", "figure15"),
    ("fedhybrid", "figure16"),
    ("fedhybrid", "figure18"),
    ("fedhybrid", "figure18b"),
    ("fedhybrid", "figure20a"),
    ("fedhybrid", "readings"),
    ("fedhybrid", "section4.4.1"),
    ("fedhybrid", "section5.2"),
    ("mandheling", "figure1b"),
    ("mandheling", "figure4a"),
    ("mandheling", "figure8a"),
    ("mandheling", "figure8b"),
    ("mandheling", "figure8c"),
    ("mandheling", "figure8d"),
    ("mandheling", "rescaling"),
    ("mandheling", "section3.5"),
    ("mandheling", "section5"),
];

#[test]
fn the_built_in_artefacts_are_what_the_reference_asks_for() {
    let reference = Reference::load().unwrap();
    let mut seen = HashSet::new();
    for artefact in ARTEFACTS.iter() {
        let place = (artefact.paper, artefact.id);
        assert!(seen.insert(place), "{place:?} is registered twice");
        assert!(!artefact.about.is_empty(), "{place:?}");
        let has_rows = reference.of(artefact.paper, artefact.id).next().is_some();
        assert!(artefact.paper == "comparison" || has_rows != PICTURES.contains(&place), "{place:?}");
        for device in artefact.devices {
            haversack_devices::load(device).unwrap();
        }
        for stack in artefact.stacks {
            haversack_devices::load_stack(stack).unwrap();
        }
        for system in artefact.systems {
            haversack_devices::load_system(system).unwrap();
        }
    }
}

#[test]
fn every_order_row_of_an_implemented_paper_has_a_predicate() {
    let reference = Reference::load().unwrap();
    let readings = Readings::load(&reference).unwrap();
    let implemented: HashSet<&str> = ARTEFACTS.iter().map(|artefact| artefact.paper).collect();
    for row in reference.rows().iter().filter(|row| implemented.contains(row.paper)) {
        let missing = matches!(row.claim, Claim::Order(_)) && readings.predicate(&row.id).is_none();
        assert!(!missing, "no predicate is declared for {}", row.id);
    }
}

#[test]
fn the_program_says_what_was_wrong_and_leaves_nothing() {
    let top = tempfile::tempdir().unwrap();
    let haversack = |line: &str| call_in(top.path(), &line.split(' ').collect::<Vec<_>>());
    let said = refusal(&haversack("reproduce sage/table99 --out out"), 2);
    assert!(said.contains("sage/table99") && said.contains("sage/table1"), "{said}");
    fs::write(top.path().join("file"), "kept").unwrap();
    refusal(&haversack("reproduce sage/section5 --out file"), 2);
    assert_eq!(tree(top.path()).len(), 1);
    let done = haversack("reproduce daf/table3 --out out --jobs 2");
    assert_eq!(done.status.code(), Some(0));
    // A slow machine may have printed its progress.
    assert!(stderr(&done).lines().all(crate::support::tells_how_far), "{}", stderr(&done));
    assert!(stdout(&done).contains("daf"));
    assert!(top.path().join("out/cells.csv").exists());
}

#[test]
fn what_an_artefact_that_failed_has_found_is_there_when_it_is_run_again() {
    let top = tempfile::tempdir().unwrap();
    let run = |resume| {
        let mut options = ReproduceOptions { full: true, ..options(top.path(), &["sage/figure9a"], 1) };
        options.work.resume = resume;
        reproduce(&options, &[RETRIED]).unwrap().failures
    };
    assert_eq!(run(false), ["sage/figure9a: it broke"]);
    assert!(top.path().join("kept.part").is_file());
    assert!(run(true).is_empty());
    assert!(!top.path().join("kept.part").exists());
}

#[test]
fn what_full_measures_is_a_file_beside_the_table_and_the_plain_command_asks_for_it() {
    let top = tempfile::tempdir().unwrap();
    let artefacts = [MEASURING, READING];
    let full = |name: &str, jobs| {
        let options = ReproduceOptions { full: true, ..options(&top.path().join(name), &["sage/figure9"], jobs) };
        assert_eq!(reproduce(&options, &artefacts).unwrap().failures, Vec::<String>::new());
        tree(&options.work.out)
    };
    let files = full("one", 1);
    assert_eq!(files, full("two", 2));
    // Seeds 7 to 11 give a mean of 9 / 3; the artefact that only reads has no such file.
    let text = String::from_utf8(files["sage/figure9a.toml"].clone()).unwrap();
    let measured = Measured::parse("figure9a.toml", &text).unwrap();
    assert_eq!(
        (measured.seeds.as_slice(), measured.value("share").unwrap().value),
        ([7, 8, 9, 10, 11].as_slice(), 3.0)
    );
    assert_eq!(measured.command, "haversack reproduce sage/figure9a --full --seed 7");
    assert!(!files.contains_key("sage/figure9b.toml"));
    assert_eq!(String::from_utf8_lossy(&files["sage/figure9a.csv"]), "share\n3\n");
    let bits = measured::committed("daf/bits").unwrap().value("images/loss").unwrap().value;
    assert_eq!(String::from_utf8_lossy(&files["sage/figure9b.csv"]), format!("bits\n{bits}\n"));
    let page = String::from_utf8_lossy(&files["index.html"]).into_owned();
    assert!(page.contains("measured on lenet5, learning glyphs with seeds 7, 8, 9, 10, 11"), "{page}");
    // The measurement has not been committed.
    let plain = reproduce(&options(&top.path().join("plain"), &["sage/figure9a"], 1), &artefacts).unwrap();
    assert!(plain.failures[0].contains("`haversack reproduce sage/figure9a --full` measures it"), "{plain:?}");
    // An artefact that reads an undeclared measurement is an error.
    let nameless = [Artefact { entry: Entry { measured: &[], ..MEASURING.entry }, ..MEASURING }];
    let refused = reproduce(&options(&top.path().join("nameless"), &["sage/figure9a"], 1), &nameless).unwrap();
    assert!(refused.failures[0].contains("does not name it among its own"), "{refused:?}");
}
