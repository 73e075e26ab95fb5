//! What two results were made with: version, seed, digests and fitted constants, as far as they differ.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// Keys of a record that hold one thing each.
const PLAIN: [&str; 6] = ["command", "version", "seed", "full", "shard", "selection"];
/// The key that holds what a sweep ran, by key.
const SPECIFICATION: &str = "specification";
/// Keys that hold files with their digests.
const DIGESTS: [&str; 3] = ["calibrations", "reference", "files"];
/// Constants that were fitted.
const CONSTANTS: &str = "fitted_constants";

/// A value before and after; null where there is none.
pub(super) type Pair = (Value, Value);

/// How two records differ; nothing if one of them is not there.
#[derive(Default)]
pub(super) struct RecordChanges {
    /// By key.
    pub(super) plain: Vec<(String, Pair)>,
    /// By key.
    pub(super) specification: Vec<(String, Pair)>,
    /// By file.
    pub(super) digests: Vec<(String, Pair)>,
    /// By file and name.
    pub(super) constants: Vec<(String, Pair)>,
}

impl RecordChanges {
    pub(super) fn new(before: Option<&Value>, after: Option<&Value>) -> Self {
        let (Some(before), Some(after)) = (before, after) else { return Self::default() };
        let get = |record: &Value, key: &str| record.get(key).cloned().unwrap_or_default();
        let differ = |(before, after): &Pair| before != after;
        let plain = PLAIN.iter().map(|key| ((*key).to_owned(), (get(before, key), get(after, key))));
        let specification = pairs(&map(&get(before, SPECIFICATION)), &map(&get(after, SPECIFICATION)));
        let digests = DIGESTS.iter().flat_map(|key| pairs(&map(&get(before, key)), &map(&get(after, key))));
        let constants = [before, after].map(|record| constants(&get(record, CONSTANTS)));
        Self {
            plain: plain.filter(|(_, pair)| differ(pair)).collect(),
            specification: specification.into_iter().filter(|(_, pair)| differ(pair)).collect(),
            digests: digests.filter(|(_, pair)| differ(pair)).collect(),
            constants: pairs(&constants[0], &constants[1]).into_iter().filter(|(_, pair)| differ(pair)).collect(),
        }
    }

    /// How many there are.
    pub(super) fn number(&self) -> usize {
        self.plain.len() + self.specification.len() + self.digests.len() + self.constants.len()
    }

    pub(super) fn to_json(&self) -> Value {
        let pair = |(before, after): &Pair| json!({ "before": before, "after": after });
        let named = |changes: &[(String, Pair)]| -> Map<String, Value> {
            changes.iter().map(|(name, values)| (name.clone(), pair(values))).collect()
        };
        let mut all = named(&self.plain);
        all.insert(SPECIFICATION.to_owned(), Value::Object(named(&self.specification)));
        all.insert("digests".to_owned(), Value::Object(named(&self.digests)));
        all.insert(CONSTANTS.to_owned(), Value::Object(named(&self.constants)));
        Value::Object(all)
    }
}

fn map(value: &Value) -> BTreeMap<String, Value> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Fitted constants by file and name.
fn constants(list: &Value) -> BTreeMap<String, Value> {
    let text = |constant: &Value, key: &str| constant.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let named = |constant: &Value| {
        let name = format!("{} {} ({})", text(constant, "file"), text(constant, "name"), text(constant, "unit"));
        (name, constant.get("value").cloned().unwrap_or_default())
    };
    list.as_array().into_iter().flatten().map(named).collect()
}

/// Every name of either with both values.
fn pairs(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> Vec<(String, Pair)> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let get = |map: &BTreeMap<String, Value>, name: &String| map.get(name).cloned().unwrap_or_default();
    names.into_iter().map(|name| (name.clone(), (get(before, name), get(after, name)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_and_what_is_the_same_is_not() {
        let record = |version: &str, digest: &str, value: f64| {
            json!({
                "command": "reproduce", "version": version, "seed": 1,
                "calibrations": { "a.toml": "1", "b.toml": digest },
                "fitted_constants": [{ "name": "gpu.launch", "value": value, "unit": "us", "file": "a.toml" }],
            })
        };
        let (one, other) = (record("0.1", "2", 10.0), record("0.2", "3", 12.5));
        let changes = RecordChanges::new(Some(&one), Some(&other));
        assert_eq!(changes.plain, [("version".to_owned(), (json!("0.1"), json!("0.2")))]);
        assert_eq!(changes.digests, [("b.toml".to_owned(), (json!("2"), json!("3")))]);
        assert_eq!(changes.constants, [("a.toml gpu.launch (us)".to_owned(), (json!(10.0), json!(12.5)))]);
        assert_eq!((changes.number(), RecordChanges::new(Some(&one), Some(&one)).number()), (3, 0));
        assert_eq!(RecordChanges::new(Some(&one), None).number(), 0, "beside nothing nothing has changed");
    }
}
