//! The differences, as text and as JSON.

use serde_json::{Map, Value, json};

use super::rows::{Change, Moved, RowChanges};
use super::{CONSTANTS, CompareOptions, RecordChanges, SPECIFICATION};
use crate::output::join;

/// The terminal's output.
pub(super) fn text(options: &CompareOptions, record: &RecordChanges, rows: Option<&RowChanges>) -> String {
    let mut answer = json(options, record, rows);
    let nested = [SPECIFICATION, "digests", CONSTANTS];
    join(&mut answer, json!({ "common": options.common, "differences": record.number(), "nested": nested }));
    crate::texts::text(include_str!("../../texts/compare.txt"), &answer)
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
