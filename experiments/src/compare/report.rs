//! The differences, as text and as JSON.

use std::fmt::Write as _;

use haversack_reports::table::shortest;
use haversack_reports::{Column, TextTable};
use serde_json::{Map, Value, json};

use super::rows::{Change, Moved, RowChanges};
use super::{CompareOptions, Pair, RecordChanges};
use crate::quantities::{cut, more};

/// The most changed rows that are listed.
const ROWS: usize = 25;
/// The most rows of only one side, digests and constants that are listed, each.
const NAMED: usize = 8;
/// The most values of a key that are listed.
const WRITTEN_OUT: usize = 6;
/// The most columns of a row.
const COLUMNS: usize = 3;
/// Where to find the items left out.
const IN_JSON: &str = "; --format json has all";

/// The terminal's output.
pub(super) fn text(record: &RecordChanges, rows: Option<&RowChanges>, common: bool) -> String {
    let mut text = String::new();
    // Writing to a text cannot fail.
    for (key, values) in &record.plain {
        let _ = writeln!(text, "{key}: {}", arrow(values));
    }
    named(&mut text, "keys of the specification", &record.specification);
    named(&mut text, "digests", &record.digests);
    named(&mut text, "fitted constants", &record.constants);
    match rows {
        Some(rows) => text += &of_rows(rows, common, record.number() > 0),
        None if record.number() == 0 => text += "nothing differs\n",
        None => {}
    }
    text
}

fn of_rows(rows: &RowChanges, common: bool, is_below: bool) -> String {
    let mut text = if is_below { "\n".to_owned() } else { String::new() };
    let RowChanges { kind, both, moved, .. } = rows;
    let _ = writeln!(text, "{} of {both} {kind} moved", moved.len());
    if !moved.is_empty() {
        let mut table = TextTable::new([Column::right(0).fitted(), Column::left(0).fitted().after(2)]).indented(2);
        for row in moved.iter().take(ROWS) {
            table.row([distance(row), row.id.clone(), format!("  {}", changes(&row.changes))]);
        }
        text += &table.to_string();
        text += &more("  … ", moved.len(), ROWS, IN_JSON);
    }
    let sides = [("before", &rows.only_before), ("after", &rows.only_after)];
    for (side, ids) in sides.into_iter().filter(|(_, ids)| !ids.is_empty() && !common) {
        let _ = writeln!(text, "{} only {side}:", ids.len());
        ids.iter().take(NAMED).for_each(|id| text += &format!("  {id}\n"));
        text += &more("  … ", ids.len(), NAMED, IN_JSON);
    }
    if !rows.columns.is_empty() {
        let _ = writeln!(text, "columns of one alone: {}", rows.columns.join(", "));
    }
    text
}

fn named(text: &mut String, what: &str, changes: &[(String, Pair)]) {
    if changes.is_empty() {
        return;
    }
    let _ = writeln!(text, "{} {what} differ:", changes.len());
    changes.iter().take(NAMED).for_each(|(name, values)| *text += &format!("  {name}: {}\n", arrow(values)));
    *text += &more("  … ", changes.len(), NAMED, IN_JSON);
}

fn arrow(Pair { before, after }: &Pair) -> String {
    let text = |value: &Value| match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) if values.len() > WRITTEN_OUT => {
            format!("{} to {}, {} values", text_of(values.first()), text_of(values.last()), values.len())
        }
        Value::Array(values) => values.iter().map(|value| text_of(Some(value))).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    format!("{} → {}", text(before), text(after))
}

fn text_of(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).map_or_else(|| value.map(Value::to_string).unwrap_or_default(), str::to_owned)
}

/// "+12.5%" for the number with the largest change, or empty.
fn distance(row: &Moved) -> String {
    let number = |text: &Option<String>| text.as_deref()?.parse::<f64>().ok();
    let signed = row.changes.first().and_then(|change| Some(number(&change.after)? - number(&change.before)?));
    match (row.distance.is_finite(), signed) {
        (true, Some(signed)) if signed < 0.0 => format!("-{:.1}%", row.distance * 100.0),
        (true, Some(_)) => format!("+{:.1}%", row.distance * 100.0),
        (true, None) => format!("{:.1}%", row.distance * 100.0),
        (false, _) => String::new(),
    }
}

/// "simulated 12.3 → 14.1, verdict ok → off".
fn changes(changes: &[Change]) -> String {
    let one = |Change { column, before, after }: &Change| {
        let (before, after) = (shown(before.as_deref()), shown(after.as_deref()));
        format!("{column} {before} → {after}")
    };
    cut(&changes.iter().map(one).collect::<Vec<_>>(), COLUMNS, changes.len())
}

/// A cell; numbers have six digits, so that small changes show.
fn shown(cell: Option<&str>) -> String {
    let Some(cell) = cell else { return "nothing".to_owned() };
    let rounded = cell.parse::<f64>().ok().filter(|number| number.fract() != 0.0);
    let rounded = rounded.and_then(|number| format!("{number:.5e}").parse::<f64>().ok());
    rounded.map_or_else(|| cell.to_owned(), shortest)
}

/// All of it as JSON.
pub(super) fn json(options: &CompareOptions, record: &RecordChanges, rows: Option<&RowChanges>) -> Value {
    let paths = [&options.before, &options.after].map(|path| path.display().to_string());
    let mut all = json!({ "before": paths[0], "after": paths[1], "record": record.to_json() });
    if let (Some(rows), Value::Object(all)) = (rows, &mut all) {
        all.insert("kind".to_owned(), json!(rows.kind));
        all.insert("both".to_owned(), json!(rows.both));
        all.insert("moved".to_owned(), rows.moved.iter().map(moved).collect());
        all.insert("only_before".to_owned(), json!(rows.only_before));
        all.insert("only_after".to_owned(), json!(rows.only_after));
        all.insert("columns_of_one_alone".to_owned(), json!(rows.columns));
    }
    all
}

fn moved(row: &Moved) -> Value {
    let change = |change: &Change| {
        (change.column.clone(), json!({ "before": value(&change.before), "after": value(&change.after) }))
    };
    let distance = row.distance.is_finite().then_some(row.distance);
    let changes: Map<String, Value> = row.changes.iter().map(change).collect();
    json!({ "id": row.id, "distance": distance, "changes": changes })
}

/// A number as a number, anything else as text.
fn value(cell: &Option<String>) -> Value {
    let Some(cell) = cell else { return Value::Null };
    match cell.parse::<u64>() {
        Ok(number) => json!(number),
        Err(_) => {
            cell.parse::<f64>().ok().filter(|number| number.is_finite()).map_or_else(|| json!(cell), |n| json!(n))
        }
    }
}
