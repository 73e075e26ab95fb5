//! What a sweep would run and write, counted without a run of it.

use std::fmt::Write as _;

use haversack_reports::text_table::{Column, TextTable};
use indicatif::HumanCount;

use super::found::Found;
use super::{CSV, RESULTS, Specification, SweepOptions};
use crate::progress::word;
use crate::scenario::Key;
use crate::work::RECORD;

/// Values of a key that are written out, at most.
const WRITTEN_OUT: usize = 6;
/// Names of files that are written out, at most.
const NAMES: usize = 8;

/// The text of `sweep --dry-run`; of `unsupported` runs it is known that their values do not go together.
pub(super) fn text(options: &SweepOptions, specification: &Specification, unsupported: u64) -> String {
    let axes = specification.axes();
    let mut text = format!("{} runs\n\n", HumanCount(specification.runs()));
    let mut table = TextTable::new([
        Column::left(0).fitted(),
        Column::right(0).fitted().after(2),
        Column::left(0).fitted().after(2),
    ]);
    for (key, values) in &axes {
        table.row([key.name().to_owned(), HumanCount(values.len() as u64).to_string(), shown(values)]);
    }
    // Writing to a text cannot fail.
    let _ = write!(
        text,
        "{table}\n{} are known to be unsupported: their values do not go together\n",
        HumanCount(unsupported)
    );
    if let Some(shard) = options.shard {
        let runs = shard.of(specification.runs());
        let number = HumanCount(runs.end - runs.start);
        let _ = writeln!(text, "shard {shard} runs {number} of them, from run {} on", runs.start);
    }
    let mut files = vec![RESULTS.to_owned(), CSV.to_owned(), RECORD.to_owned()];
    if options.shard.is_none() {
        files.extend(pictures(&axes).into_iter().map(|name| format!("{name}.{{svg,png}}")));
    }
    let _ = writeln!(text, "would write to {}: {}", word(&options.work.out), cut(&files, NAMES, files.len()));
    text
}

/// The names of the pictures, in the order in which a sweep comes to them.
fn pictures(axes: &[(Key, Vec<String>)]) -> Vec<String> {
    let values = |key: Key| axes.iter().find(|(found, _)| *found == key).map(|(_, values)| values.as_slice());
    let (devices, models) = (values(Key::Device).unwrap_or_default(), values(Key::Model).unwrap_or_default());
    let mut found = Found::default();
    devices
        .iter()
        .flat_map(|device| models.iter().map(move |model| (device, model)))
        .map(|(device, model)| found.cloud(device, model).name.clone())
        .collect()
}

/// The values, or the first of them and the last.
fn shown(values: &[String]) -> String {
    match values {
        [first @ .., last] if values.len() > WRITTEN_OUT => {
            format!("{}, …, {last}", first.iter().take(WRITTEN_OUT - 2).cloned().collect::<Vec<_>>().join(", "))
        }
        _ => values.join(", "),
    }
}

/// The first `most` names, and how many more there are of `all`.
fn cut(names: &[String], most: usize, all: usize) -> String {
    let shown = names.iter().take(most).cloned().collect::<Vec<_>>().join(", ");
    if all > most { format!("{shown} and {} more", all - most) } else { shown }
}
