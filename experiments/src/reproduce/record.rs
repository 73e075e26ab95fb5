//! The description of a reproduction: the record in its folder, and the report for a terminal.

use std::collections::{BTreeMap, BTreeSet};

use haversack_devices::{ConstantEntry, Kind};
use haversack_reports::{Column, TextTable};
use haversack_traces::{FootprintTable, UsageModel};
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Artefact, Content, Finished, ReproduceOptions, Sources};
use crate::papers::scoring::Scoring;
use crate::papers::summary::{COLUMNS, Tally, Total, distance};
use crate::papers::{Answer, Claim, ComparedCell, Reading, Reference, Role, Verdict, accounts};
use crate::quantities::counted;
use crate::{CommandError, Result, measured, texts};

/// The calibrations that artefacts use, with digests and fitted constants, and the measurements that they read.
#[derive(Clone, Debug, Default)]
pub(super) struct Calibrations {
    pub(super) digests: BTreeMap<String, String>,
    pub(super) fitted: Vec<ConstantEntry>,
    /// Files of measured values, with their digests.
    pub(super) measured: BTreeMap<String, String>,
}

impl Calibrations {
    /// The calibrations of these artefacts, each file once and in order.
    ///
    /// # Errors
    /// An unknown calibration, or one that does not load.
    pub(super) fn of(artefacts: &[Artefact]) -> Result<Self> {
        let named = |names: fn(&Artefact) -> &'static [&'static str]| -> BTreeSet<&str> {
            artefacts.iter().flat_map(names).copied().collect()
        };
        let mut all = Self::default();
        let mut add = |entries: Vec<ConstantEntry>, file: String, digest: String| {
            all.fitted.extend(entries);
            all.digests.insert(file, digest);
        };
        for id in named(|artefact| artefact.devices) {
            let device = haversack_devices::load(id)?;
            add(device.entries(), device.file, device.digest);
        }
        for id in named(|artefact| artefact.stacks) {
            let stack = haversack_devices::load_stack(id)?;
            add(stack.entries(), stack.file, stack.digest);
        }
        for id in named(|artefact| artefact.systems) {
            let system = haversack_devices::load_system(id)?;
            add(system.entries(), system.file, system.digest);
        }
        for place in named(|artefact| artefact.measured) {
            // A measurement that was never committed is read by no run until it has been made.
            let source = measured::source(place).ok();
            all.measured.extend(source.map(|(file, digest)| (file.to_owned(), digest)));
        }
        if artefacts.iter().any(|artefact| artefact.users) {
            all.fitted.extend(UsageModel::built_in().map_err(CommandError::failed)?.entries());
            all.fitted.extend(FootprintTable::built_in().map_err(CommandError::failed)?.entries());
        }
        all.fitted.retain(|entry| entry.kind == Kind::Fitted);
        Ok(all)
    }
}

/// A declared reading, with its paper.
#[derive(Clone, Debug, Serialize)]
struct Declared<'a> {
    paper: &'a str,
    #[serde(flatten)]
    reading: &'a Reading,
}

/// The command that writes the record.
pub(super) const COMMAND: &str = "reproduce";
/// The record's key for the selection.
pub(super) const SELECTION: &str = "selection";

/// The part of the record that identifies the folder, without the selection.
pub(super) fn owner(options: &ReproduceOptions) -> Map<String, Value> {
    let shard = options.shard.map(|shard| shard.to_string());
    let keys = [
        ("command", json!(COMMAND)),
        ("seed", json!(options.seed)),
        ("full", json!(options.full)),
        ("shard", json!(shard)),
    ];
    let trace = options.trace.as_ref().map(|trace| ("trace", json!(trace.display().to_string())));
    let learn = options.learns_one().then(|| ("learn", json!(true)));
    keys.into_iter().chain(trace).chain(learn).map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The part of the record with the selection.
pub(super) fn selection(selectors: &[String]) -> Map<String, Value> {
    Map::from_iter([(SELECTION.to_owned(), json!(selectors))])
}

/// The record as JSON, with its keys in this order.
pub(super) fn record(content: &Content<'_>) -> Result<Map<String, Value>, serde_json::Error> {
    let Content { sources, finished, calibrations, declared, .. } = content;
    let Sources { options, reference, left_out, .. } = *sources;
    let constant = |entry: &ConstantEntry| {
        let ConstantEntry { name, value, unit, file, source, .. } = entry;
        json!({ "name": name, "value": value, "unit": unit, "file": file, "source": source })
    };
    let digests: BTreeMap<_, _> = reference.digests().iter().map(|(file, digest)| (*file, digest)).collect();
    let readings: Vec<_> = declared.iter().map(|(paper, reading)| Declared { paper, reading }).collect();
    let mut record: Map<String, Value> = serde_json::from_value(json!({
        "program": "haversack", "version": env!("CARGO_PKG_VERSION"), "command": COMMAND,
        "seed": options.seed, "full": options.full, "shard": options.shard.map(|shard| shard.to_string()),
        SELECTION: content.selectors,
        "artefacts": finished.iter().map(|f| format!("{}/{}", f.paper, f.artefact)).collect::<Vec<_>>(),
        "calibrations": calibrations.digests, "reference": digests, "fitted_constants_count": calibrations.fitted.len(),
        "fit_rows": content.cells.iter().filter(|cell| cell.role() == Role::Fit).count(),
        "declared_readings_count": declared.len(),
        "fitted_constants": calibrations.fitted.iter().map(constant).collect::<Vec<_>>(),
        "declared_readings": readings, "accounting": accounts(&calibrations.fitted, declared),
        "total": Total::of(&content.cells), "summary": content.tallies,
    }))?;
    if options.learns_one() {
        record.insert("learn".to_owned(), json!(true));
    }
    if let Some(trace) = &options.trace {
        record.insert("trace".to_owned(), json!(trace.display().to_string()));
    }
    let (file, digest) = &left_out.source;
    record.insert("left_out".to_owned(), json!({ *file: digest }));
    if !calibrations.measured.is_empty() {
        record.insert("measured".to_owned(), json!(calibrations.measured));
    }
    Ok(record)
}

/// The most rows listed per kind of miss.
const MISSES: usize = 20;
/// The most reasons listed for missing answers.
const REASONS: usize = 12;

/// The report as text.
pub(super) fn text(
    tallies: &[Tally],
    cells: &[ComparedCell],
    finished: &[Finished<'_>],
    remarks: &[String],
    reference: &Reference,
) -> String {
    let word = Column::left(0).fitted();
    let number = Column::right(0).fitted().after(2);
    let mut roles = TextTable::new([word, word.after(2), number, number, number, number, number, number, number]);
    roles.row(COLUMNS);
    tallies.iter().for_each(|tally| _ = roles.row(tally.figures()));
    let summaries = finished.iter().filter(|finished| !finished.summary.is_empty());
    let summary = |finished: &Finished<'_>| json!({ "place": format!("{}/{}", finished.paper, finished.artefact), "lines": finished.summary });
    // Rows that contradict their paper do not count as misses.
    let missed = cells.iter().filter(|cell| matches!(cell.verdict, Verdict::Off | Verdict::Fails) && cell.counts());
    let (accuracies, others): (Vec<_>, Vec<_>) = missed.partition(|cell| cell.points.is_some());
    let error = |cell: &ComparedCell| cell.error.map_or_else(String::new, |error| format!("{:+.1}%", error * 100.0));
    let points = |cell: &ComparedCell| cell.points.unwrap_or_default();
    let one = "accuracy differs from its baseline otherwise than the paper's, worst first";
    let several = "accuracies differ from their baselines otherwise than the paper's, worst first";
    let headings = [
        counted(others.len(), "row does not match, worst first", "rows do not match, worst first"),
        counted(accuracies.len(), one, several),
    ];
    let [of_others, of_accuracies] = [
        worst_first(others, distance, error),
        worst_first(accuracies, |cell| points(cell).abs(), |cell| format!("{:+.1} pts", points(cell))),
    ];
    let unanswered: Vec<&ComparedCell> = cells.iter().filter(|cell| !cell.answered()).collect();
    let mut reasons: IndexMap<&str, usize> = IndexMap::new();
    unanswered.iter().for_each(|cell| *reasons.entry(&cell.reason).or_default() += 1);
    let reasons: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count:>4}  {reason}")).collect();
    let answer = json!({
        "total": Total::of(cells).to_string(), "roles": roles.to_string(),
        "remarks": tallies.iter().flat_map(Tally::remarks).collect::<Vec<_>>(),
        "nulls": Scoring::beside(cells, reference),
        "summaries": summaries.map(summary).collect::<Vec<_>>(),
        "lists": [
            { "heading": headings[0], "lines": of_others, "most": MISSES },
            { "heading": headings[1], "lines": of_accuracies, "most": MISSES },
            { "heading": counted(unanswered.len(), "row is not modelled yet", "rows are not modelled yet"), "lines": reasons, "most": REASONS },
        ],
        "others": remarks,
    });
    texts::text(include_str!("../../texts/reproduce.txt"), &answer)
}

/// Rows that do not match, the one with the largest `distance` first, each with its `measure` in words.
fn worst_first(
    mut missed: Vec<&ComparedCell>,
    distance: impl Fn(&ComparedCell) -> f64,
    measure: impl Fn(&ComparedCell) -> String,
) -> Vec<String> {
    missed.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
    let line = |cell: &&ComparedCell| {
        format!("{:<5} {:>8}  {}: {}", cell.verdict.to_string(), measure(cell), cell.id, beside(cell))
    };
    missed.iter().map(line).collect()
}

/// "2531 MB, the paper 908"; for an order, the paper's words and that it is false.
fn beside(cell: &ComparedCell) -> String {
    if let (Claim::Order(words), Some(Answer::Order(holds))) = (&cell.claim, &cell.answer) {
        let words = if words.is_empty() { String::new() } else { format!(" '{words}'") };
        return format!("the order claim{words} is {holds}");
    }
    let unit = if cell.unit.is_empty() { String::new() } else { format!(" {}", cell.unit) };
    let paper = cell.paper_value();
    let paper = if paper.is_empty() { paper } else { format!(", the paper {paper}") };
    format!("{}{unit}{paper}", cell.simulated())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::Answer;
    use crate::papers::left_out::Errors;
    use crate::papers::reference::ReferenceRow;
    use crate::papers::summary::tallies;

    #[test]
    fn the_worst_miss_comes_first_and_reasons_are_counted() {
        let reference = Reference::load().unwrap();
        // As if no row had been in view, and none contradicted another.
        let plain = |row: &ReferenceRow| ReferenceRow { status: row.role().into(), contradicted: false, ..row.clone() };
        let cell = |id: &str, answer| ComparedCell::new(&plain(reference.row(id).unwrap()), answer).unwrap();
        let mut cells = vec![
            // (1.2 − 1) / 1 = +20%, (10 − 20) / 20 = −50%, 9 ≥ 8 is true.
            cell("sage/figure2/mobilenetv2/training/memory", Answer::Number(1.2)),
            cell("sage/figure8/resnet50/sage/minimum-memory-reduction", Answer::Number(10.0)),
            cell("sage/introduction/bert-small/training/memory", Answer::Number(9.0)),
            cell("sage/section5/all/fp16/memory-reduction", Answer::NotModelled("later".into())),
            cell("sage/figure10/rtx-3090-vs-phones/throughput/ratio", Answer::NotModelled("later".into())),
        ];
        // (0.9 − 1) / 1 = −10%, compared with our +20%.
        cells[0].null = Some(0.9);
        let text = text(&tallies(&cells, &Errors::default()), &cells, &[], &["comparison: later".into()], &reference);
        let expected = "\
5 rows: 1 matches, 2 miss, 2 are not modelled

paper  role   rows  answered  median error of numbers  unanswered as 100%       all as fitted  null baseline on the same rows  claims that hold
sage   fit       4         2           50.0% (1 of 3)              100.0%  50.0% (0 left out)                               –            1 of 1
sage   check     1         1           20.0% (1 of 1)               20.0%                   –           10.0%, ours 20.0% (1)                 –

sage, check: on 1 row the null baseline is nearer than this model (10.0% off, ours 20.0%).

2 rows do not match, worst first:
  off     -50.0%  sage/figure8/resnet50/sage/minimum-memory-reduction: 10 x, the paper 20
  off     +20.0%  sage/figure2/mobilenetv2/training/memory: 1.2 GB, the paper 1

2 rows are not modelled yet:
     2  later

comparison: later
";
        // fit: errors 0.5, 1 and 1 (two are not modelled), median 1; check: only 0.2.
        assert_eq!(text, expected);
    }

    #[test]
    fn accuracies_stand_among_themselves_by_the_points_that_they_are_judged_by() {
        let reference = Reference::load().unwrap();
        let row = |id: &str| reference.row(id).unwrap();
        let of = |method: &str| row(&format!("daf/table1/resnet18-cifar10/{method}/accuracy"));
        let rows = [of("original"), of("daf"), of("fixed8"), row("sage/section5/all/fp16/memory-reduction")];
        let paper = |place: usize| rows[place].number().unwrap();
        // Ours is 10 points below the paper's throughout, and DAF's 1.5 points more, Fixed 8's 2.5 points less: 8.5 of
        // about 90 is −9%, a negligible relative error. 30 for 40 is −25%.
        let answers = [
            Answer::Input(paper(0) - 10.0),
            Answer::Number(paper(1) - 8.5),
            Answer::Number(paper(2) - 12.5),
            Answer::Number(30.0),
        ];
        let judged = rows.iter().zip(answers).map(|(row, answer)| ComparedCell::new(row, answer).unwrap());
        let mut cells: Vec<ComparedCell> = judged.collect();
        crate::papers::cells::judge_differences(&rows, &[], &mut cells);
        let text = text(&[], &cells, &[], &[], &reference);
        let misses = text.split_once("1 row does not match, worst first:\n").unwrap().1;
        let lines: Vec<&str> = misses.lines().collect();
        assert!(
            lines[0].starts_with("  off     -25.0%  sage/section5/all/fp16/memory-reduction: 30 percent"),
            "{text}"
        );
        let heading = "2 accuracies differ from their baselines otherwise than the paper's, worst first:";
        assert_eq!((lines[1], lines[2]), ("", heading));
        assert!(lines[3].starts_with("  off   -2.5 pts  daf/table1/resnet18-cifar10/fixed8/accuracy"), "{text}");
        assert!(lines[4].starts_with("  off   +1.5 pts  daf/table1/resnet18-cifar10/daf/accuracy"), "{text}");
        assert_eq!(lines.len(), 5);
    }

    #[test]
    fn an_order_that_does_not_hold_is_said_to_be_false() {
        let reference = Reference::load().unwrap();
        let order = |row: &&ReferenceRow| matches!(&row.claim, Claim::Order(words) if !words.is_empty());
        let row = reference.rows().iter().find(order).unwrap();
        let cell = ComparedCell::new(row, Answer::Order(false)).unwrap();
        assert_eq!(beside(&cell), format!("the order claim '{}' is false", cell.paper_value()));
    }

    #[test]
    fn long_lists_are_cut_with_a_count() {
        let reference = Reference::load().unwrap();
        let off = |row| {
            let cell = ComparedCell::new(row, Answer::Number(1e9)).ok();
            cell.filter(|cell| cell.verdict == Verdict::Off && cell.counts())
        };
        let cells: Vec<ComparedCell> = reference.rows().iter().filter_map(off).take(MISSES + 3).collect();
        let text = text(&[], &cells, &[], &[], &reference);
        assert!(text.contains("23 rows do not match") && text.ends_with("  … and 3 more in cells.csv\n"), "{text}");
    }
}
