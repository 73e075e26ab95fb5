//! A device file made from another: the constants of the base count as guesses until measurements replace them.

use std::fmt::Write as _;

use haversack_devices::{CalibrationError, Device, Dimension, Kind};
use toml::{Table, Value};

/// The keys of a constant, in the order of a file.
const KEYS: [&str; 5] = ["value", "unit", "kind", "source", "note"];

/// The origin of a constant.
#[derive(Clone, Copy, Debug)]
pub(super) struct How<'a> {
    pub(super) kind: Kind,
    pub(super) source: &'a str,
    /// Empty if there is none.
    pub(super) note: &'a str,
}

/// A whole file; constants are named as in [`Device::entries`], and their values here are in base units.
#[derive(Clone, Debug)]
pub(super) struct DeviceFile(pub(super) Table);

impl DeviceFile {
    /// A copy of `base` without its curves and without the memory that its firmware keeps, every constant a guess.
    pub(super) fn over(base: &Device) -> Result<Self, CalibrationError> {
        let mut top = base.tables()?;
        top.retain(|key, _| !["base", "remark", "dvfs", "carve_outs"].contains(&key));
        top.insert("default_stack".to_owned(), base.constants.default_stack.clone().into());
        top.iter_mut().for_each(|(_, value)| guess(value, &base.id));
        Ok(Self(top))
    }

    /// Sets a constant, replacing its old value; does nothing if its section is missing.
    pub(super) fn set(&mut self, name: &str, value: f64, unit: &str, how: How<'_>) {
        let mut constant = Table::new();
        constant.insert("value".to_owned(), Value::Float(rounded(value / scale(unit))));
        let words = [("unit", unit), ("kind", &how.kind.to_string()), ("source", how.source), ("note", how.note)];
        for (key, word) in words.into_iter().filter(|(_, word)| !word.is_empty()) {
            constant.insert(key.to_owned(), word.into());
        }
        self.put(name, Value::Table(constant));
    }

    /// Sets a key that is not a constant, in the same way.
    pub(super) fn put(&mut self, name: &str, value: impl Into<Value>) {
        if let Some((section, key)) = self.place(name) {
            section.insert(key.to_owned(), value.into());
        }
    }

    /// Removes a key.
    pub(super) fn drop(&mut self, name: &str) {
        self.place(name).and_then(|(section, key)| section.remove(key));
    }

    /// The value of a measured constant.
    pub(super) fn measured(&mut self, name: &str) -> Option<f64> {
        let (section, key) = self.place(name)?;
        let constant = section.get(key)?;
        let is_measured = constant.get("kind")?.as_str() == Some("measured");
        Some(constant.get("value")?.as_float()? * scale(constant.get("unit")?.as_str()?)).filter(|_| is_measured)
    }

    /// The section of a constant, and its name there.
    pub(super) fn place<'n>(&mut self, name: &'n str) -> Option<(&mut Table, &'n str)> {
        let Some((section, key)) = name.rsplit_once('.') else { return Some((&mut self.0, name)) };
        let mut parts = section.split('.');
        let mut here = self.0.get_mut(parts.next()?)?;
        for part in parts {
            here = match here {
                Value::Array(items) => items.get_mut(part.parse::<usize>().ok()?)?,
                other => other.get_mut(part)?,
            };
        }
        Some((here.as_table_mut()?, key))
    }

    /// The text of the file; each of `remarks` is a line at the top.
    pub(super) fn text(&self, remarks: &[String]) -> String {
        let mut text: String = remarks.iter().map(|line| format!("# {line}\n")).collect();
        write(&mut text, "", "", &self.0);
        text
    }
}

fn is_constant(value: &Value) -> bool {
    value.as_table().is_some_and(|table| table.contains_key("value") && table.contains_key("unit"))
}

/// The values below `value`; none for a constant.
fn below(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Table(table) => table.iter_mut().map(|(_, value)| value).collect(),
        Value::Array(items) => items.iter_mut().collect(),
        _ => Vec::new(),
    }
}

/// Marks every constant of `value` as a guess from `base`.
fn guess(value: &mut Value, base: &str) {
    if !is_constant(value) {
        return below(value).into_iter().for_each(|value| guess(value, base));
    }
    let Some(constant) = value.as_table_mut() else { return };
    let word = |key: &str| constant.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let note = format!("as there; {}, {}", word("kind"), word("source"));
    for (key, word) in [("kind", "estimated"), ("source", base), ("note", &note)] {
        constant.insert(key.to_owned(), word.into());
    }
}

/// Writes `table` under the heading `head`: its texts and constants, one per line, then the tables below it.
fn write(text: &mut String, head: &str, name: &str, table: &Table) {
    let is_section = |value: &Value| match value {
        Value::Table(_) => !is_constant(value),
        Value::Array(items) => items.iter().any(Value::is_table),
        _ => false,
    };
    let mut lines: Vec<(&String, &Value)> = table.iter().filter(|(_, value)| !is_section(value)).collect();
    lines.sort_by_key(|(_, value)| is_constant(value));
    // A section that only has subsections needs no heading. Writing to a text cannot fail.
    let _ = if lines.is_empty() || head.is_empty() { writeln!(text) } else { writeln!(text, "\n{head}") };
    for (key, value) in lines {
        let _ = match value.as_table() {
            Some(constant) => {
                let has = |key: &&str| Some(format!("{key} = {}", constant.get(*key)?));
                writeln!(text, "{key} = {{ {} }}", KEYS.iter().filter_map(has).collect::<Vec<_>>().join(", "))
            }
            None => writeln!(text, "{key} = {value}"),
        };
    }
    for (key, value) in table.iter().filter(|(_, value)| is_section(value)) {
        let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
        match value {
            Value::Array(items) => {
                items
                    .iter()
                    .filter_map(Value::as_table)
                    .for_each(|item| write(text, &format!("[[{name}]]"), &name, item));
            }
            value => value.as_table().into_iter().for_each(|table| write(text, &format!("[{name}]"), &name, table)),
        }
    }
}

/// The size of `unit` in base units.
fn scale(unit: &str) -> f64 {
    use Dimension::{Bandwidth, Frequency, Size, Throughput, Time};
    let found = [Bandwidth, Frequency, Size, Throughput, Time].iter().find_map(|dimension| dimension.unit(unit));
    found.map_or(1.0, |unit| unit.scale)
}

/// Four digits: probes are not more precise. Whole numbers are counted, not measured.
fn rounded(value: f64) -> f64 {
    if value.fract() == 0.0 || !value.is_finite() { value } else { format!("{value:.3e}").parse().unwrap_or(value) }
}
