//! What two results were made with: version, seed, digests and fitted constants, as far as they differ.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Pair {
    pub(super) before: Value,
    pub(super) after: Value,
}

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
        let of = |key: &str| [before, after].map(|record| record.get(key).cloned().unwrap_or_default());
        let plain = PLAIN.iter().map(|key| ((*key).to_owned(), of(key)));
        let maps = |keys: &[&str]| keys.iter().flat_map(|key| pairs(of(key).map(|value| map(&value)))).collect();
        Self {
            plain: changed(plain),
            specification: changed::<Vec<_>>(maps(&[SPECIFICATION])),
            digests: changed::<Vec<_>>(maps(&DIGESTS)),
            constants: changed(pairs(of(CONSTANTS).map(|list| constants(&list)))),
        }
    }

    /// How many there are.
    pub(super) fn number(&self) -> usize {
        self.plain.len() + self.specification.len() + self.digests.len() + self.constants.len()
    }

    pub(super) fn to_json(&self) -> Value {
        let named = |changes: &[(String, Pair)]| -> Map<String, Value> {
            changes.iter().map(|(name, pair)| (name.clone(), json!(pair))).collect()
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
fn pairs([before, after]: [BTreeMap<String, Value>; 2]) -> Vec<(String, [Value; 2])> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let get = |map: &BTreeMap<String, Value>, name: &String| map.get(name).cloned().unwrap_or_default();
    names.into_iter().map(|name| (name.clone(), [get(&before, name), get(&after, name)])).collect()
}

/// Those whose values differ.
fn changed<I: IntoIterator<Item = (String, [Value; 2])>>(pairs: I) -> Vec<(String, Pair)> {
    let differ = pairs.into_iter().filter(|(_, [before, after])| before != after);
    differ.map(|(name, [before, after])| (name, Pair { before, after })).collect()
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
        let pair = |name: &str, before, after| (name.to_owned(), Pair { before, after });
        assert_eq!(changes.plain, [pair("version", json!("0.1"), json!("0.2"))]);
        assert_eq!(changes.digests, [pair("b.toml", json!("2"), json!("3"))]);
        assert_eq!(changes.constants, [pair("a.toml gpu.launch (us)", json!(10.0), json!(12.5))]);
        assert_eq!((changes.number(), RecordChanges::new(Some(&one), Some(&one)).number()), (3, 0));
        assert_eq!(RecordChanges::new(Some(&one), None).number(), 0, "beside nothing nothing has changed");
    }
}
