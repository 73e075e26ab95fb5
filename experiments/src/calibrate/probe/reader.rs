//! A probe's JSON, checked before it is used: `probes/keys.csv` has a row for every key.
//!
//! The unit of a key is in its name (`_s`, `_hz`, `_bytes`, `_bytes_per_s`, `_flops_per_s`, `_ops_per_s`). A number
//! that could not be measured is null, and `reasons` gives the reason. The columns of `keys.csv`: the probe, the dotted
//! key, in which `*` matches an index in a list, the plausible values, and, for keys that become a constant unchanged,
//! its name, unit, kind and note.

use std::str::FromStr;

use haversack_devices::text::{aside, nearest};
use haversack_devices::{Kind, ensure};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use crate::{CommandError, Result};

/// The only format that is accepted.
const FORMAT: &str = "haversack-probe-1";
const KEYS: &str = include_str!("../../../probes/keys.csv");

/// The probe that wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Probe {
    /// A row of `keys.csv` for both probes.
    Any,
    /// `probe.c`.
    Cpu,
    /// `probe_opencl.c` or `probe.cu`.
    Gpu,
}

/// A row of `keys.csv`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Key {
    probe: Probe,
    pub(super) key: String,
    holds: String,
    /// The device's constant; empty if the key is not one, or is combined with others.
    pub(super) constant: String,
    pub(super) unit: String,
    pub(super) kind: Option<Kind>,
    pub(super) note: String,
}

/// A probe's file, in which every key exists and every number is in its range.
#[derive(Clone, Debug)]
pub(super) struct Probed {
    pub(super) file: String,
    pub(super) probe: Probe,
    /// `cpu`, `opencl` or `cuda`.
    pub(super) name: String,
    pub(super) keys: Vec<Key>,
    value: Value,
}

/// Parses `text`; `file` is its name in errors.
///
/// # Errors
/// All errors, one per line: file, line, field, and what was expected.
pub(super) fn read(file: &str, text: &str) -> Result<Probed> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        CommandError::input(format!("{file}:{}: no JSON: {error}; expected what a probe prints, whole", error.line()))
    })?;
    let said = |key: &str| value.get(key).and_then(Value::as_str);
    let mut check = Check { file, text, keys: Vec::new(), wrong: Vec::new() };
    let name = said("probe").unwrap_or_default();
    let probe = match (said("format"), name) {
        (Some(FORMAT), "cpu") => Ok(Probe::Cpu),
        (Some(FORMAT), "opencl" | "cuda") => Ok(Probe::Gpu),
        (Some(FORMAT), other) => {
            let near = aside(nearest(other, ["cpu", "opencl", "cuda"]));
            Err(("probe", format!("unknown probe \"{other}\"{near}; expected cpu, opencl or cuda")))
        }
        (Some(other), _) => {
            let instead = format!("expected \"{FORMAT}\": build and run the probe of this version");
            Err(("format", format!("unknown format \"{other}\"; {instead}")))
        }
        (None, _) => Err(("format", format!("missing; expected \"{FORMAT}\", which every probe prints"))),
    };
    let probe = probe.map_err(|(key, what)| {
        check.refuse(key, &what);
        check.error()
    })?;
    let rows = csv::Reader::from_reader(KEYS.as_bytes()).into_deserialize::<Key>();
    check.keys = rows.collect::<Result<_, _>>().map_err(|error| CommandError::failed(format!("keys.csv: {error}")))?;
    check.keys.retain(|key| [Probe::Any, probe].contains(&key.probe));
    check.table("", "", &value);
    ensure!(check.wrong.is_empty(), check.error());
    let (file, name, keys) = (file.to_owned(), name.to_owned(), check.keys);
    Ok(Probed { file, probe, name, keys, value })
}

struct Check<'a> {
    file: &'a str,
    text: &'a str,
    keys: Vec<Key>,
    wrong: Vec<String>,
}

impl Check<'_> {
    fn refuse(&mut self, path: &str, message: &str) {
        let line = line_of(self.text, path);
        self.wrong.push(format!("{}:{line}: `{path}`: {message}", self.file));
    }

    fn error(&self) -> CommandError {
        CommandError::input(self.wrong.join("\n"))
    }

    /// The names directly below the key `above`, in the order of the rows.
    fn names(&self, above: &str) -> Vec<String> {
        let prefix = below(above, "");
        let rest = self.keys.iter().filter_map(|key| key.key.strip_prefix(&prefix));
        let mut names: Vec<String> = rest.filter_map(|rest| Some(rest.split('.').next()?.to_owned())).collect();
        names.dedup();
        names
    }

    /// The expected value of a key, in words.
    fn expected(&self, key: &str) -> String {
        match self.keys.iter().find(|known| known.key == key) {
            Some(known) => match range(&known.holds) {
                Some((low, high)) => {
                    let null = if known.holds.ends_with("null") { ", or null" } else { "" };
                    format!("a number from {low:e} to {high:e}{null}")
                }
                None => match known.holds.as_str() {
                    "text or null" => "text, or null".to_owned(),
                    "switch" => "true or false".to_owned(),
                    "anything" => "a table {…} of reasons by key".to_owned(),
                    other => other.to_owned(),
                },
            },
            None if self.names(key).first().is_some_and(|name| name == "*") => {
                "a list of tables, at least one".to_owned()
            }
            None => "a table {…}".to_owned(),
        }
    }

    /// Checks the table at `path`, whose keys are below `key`.
    fn table(&mut self, path: &str, key: &str, value: &Value) {
        let Some(table) = value.as_object() else {
            return self.refuse(path, &format!("expected a table {{…}}, found {}", shown(value)));
        };
        let names = self.names(key);
        for found in table.keys().filter(|found| !names.contains(found)) {
            let near = aside(nearest(found, names.iter().map(String::as_str)));
            self.refuse(&below(path, found), &format!("unknown key{near}; a key's name holds its unit"));
        }
        for name in &names {
            let (path, key) = (below(path, name), below(key, name));
            match table.get(name) {
                None => self.refuse(&path, &format!("missing; expected {}: run the probe again", self.expected(&key))),
                Some(value) => self.value(&path, &key, value),
            }
        }
    }

    fn value(&mut self, path: &str, key: &str, value: &Value) {
        let holds = self.keys.iter().find(|known| known.key == key).map(|known| known.holds.clone());
        let wrong = format!("expected {}, found {}", self.expected(key), shown(value));
        let Some(holds) = holds else {
            match (self.names(key).first().is_some_and(|name| name == "*"), value) {
                (true, Value::Array(tables)) if !tables.is_empty() => {
                    for (place, table) in tables.iter().enumerate() {
                        self.table(&format!("{path}.{place}"), &format!("{key}.*"), table);
                    }
                }
                (true, _) => self.refuse(path, &wrong),
                (false, _) => self.table(path, key, value),
            }
            return;
        };
        match (range(&holds), value) {
            (_, Value::Null) if holds.ends_with("null") => {}
            (Some((low, high)), Value::Number(number)) => {
                let found = number.as_f64().unwrap_or(f64::NAN);
                if !(low..=high).contains(&found) {
                    let guess = guess(key, found, low, high);
                    self.refuse(path, &format!("{found} is absurd; expected {}{guess}", self.expected(key)));
                }
            }
            (None, Value::String(_)) if holds.starts_with("text") => {}
            (None, Value::Bool(_)) if holds == "switch" => {}
            (None, _) if holds == "anything" => {}
            _ => self.refuse(path, &wrong),
        }
    }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The bounds of a number, `1 to 1024` or `1 to 1024 or null`.
fn range(holds: &str) -> Option<(f64, f64)> {
    let (low, high) = holds.strip_suffix(" or null").unwrap_or(holds).split_once(" to ")?;
    f64::from_str(low).ok().zip(f64::from_str(high).ok())
}

/// A suggestion for the intended value: the same number with another prefix of its unit.
fn guess(key: &str, found: f64, low: f64, high: f64) -> String {
    let units = [
        ("_bytes_per_s", "bytes a second"),
        ("_flops_per_s", "FLOP a second"),
        ("_ops_per_s", "operations a second"),
        ("_bytes", "bytes"),
        ("_hz", "hertz"),
        ("_s", "seconds"),
    ];
    let Some((_, unit)) = units.iter().find(|(ending, _)| key.ends_with(ending)) else { return String::new() };
    let factors = [(1e3, "kilo"), (1e6, "mega"), (1e9, "giga"), (1e-6, "micro"), (1e-9, "nano"), (1e-3, "milli")];
    let fits = factors.iter().find(|(factor, _)| {
        let is_small = *factor < 1.0;
        is_small == (*unit == "seconds") && (low * 10.0..=high).contains(&(found * factor))
    });
    fits.map_or_else(String::new, |(_, prefix)| format!(" (was it in {prefix}{unit}?)"))
}

/// A value as shown in errors.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() > 40 { text.chars().take(40).chain(['…']).collect() } else { text }
}

impl Probed {
    /// The number at a dotted path, which has been checked; `None` if it is null.
    pub(super) fn number(&self, path: &str) -> Option<f64> {
        self.at(path)?.as_f64()
    }

    /// The text at a dotted path; empty if there is none.
    pub(super) fn text(&self, path: &str) -> &str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// The number of tables at a dotted path.
    pub(super) fn tables(&self, path: &str) -> usize {
        self.at(path).and_then(Value::as_array).map_or(0, Vec::len)
    }

    /// The reason why the number at `path` is null.
    pub(super) fn reason(&self, path: &str) -> &str {
        let reasons = self.value.get("reasons");
        reasons.and_then(|reasons| reasons.get(path)).and_then(Value::as_str).unwrap_or("no reason is given")
    }

    fn at(&self, path: &str) -> Option<&Value> {
        self.value.pointer(&format!("/{}", path.replace('.', "/")))
    }

    /// The copy rates of the working sets in `table`, which has a list `bandwidth`, by size.
    pub(super) fn copies(&self, table: &str) -> Vec<Copied> {
        let rows = 0..self.tables(&format!("{table}.bandwidth"));
        let copied = |row| {
            let of = |key: &str| self.number(&format!("{table}.bandwidth.{row}.{key}"));
            Some(Copied { set: of("working_set_bytes")?, rate: of("copy_bytes_per_s")? })
        };
        rows.filter_map(copied).collect()
    }
}

/// The copy rate of a working set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Copied {
    /// Its size in bytes.
    pub(super) set: f64,
    /// Bytes per second, reads and writes together.
    pub(super) rate: f64,
}

/// The highest rate of the sets between `at_least` and `at_most` bytes.
pub(super) fn fastest(copies: &[Copied], at_least: f64, at_most: f64) -> Option<f64> {
    let within = copies.iter().filter(|copied| (at_least..=at_most).contains(&copied.set));
    within.map(|copied| copied.rate).reduce(f64::max)
}

/// The line of the value at a path, or of the innermost existing value around it; the text is JSON.
fn line_of(text: &str, path: &str) -> usize {
    fn read<T: DeserializeOwned>(text: &str, at: usize) -> Option<(T, usize)> {
        let mut values = serde_json::Deserializer::from_str(text.get(at..)?).into_iter();
        let value = values.next()?.ok()?;
        Some((value, at + values.byte_offset()))
    }
    let next = |at: usize| text.len() - text[at..].trim_start_matches([' ', '\t', '\r', '\n', ',', ':']).len();
    // The value with this name in the table, or at this index in the list, that begins there.
    let below = |from: usize, name: &str| {
        let (is_table, mut at) = (text[from..].starts_with('{'), next(from + 1));
        for place in 0_usize.. {
            let (key, value) = if is_table { read(text, at)? } else { (place.to_string(), at) };
            let value = next(value);
            if key == name {
                return Some(value);
            }
            at = next(read::<IgnoredAny>(text, value)?.1);
        }
        None
    };
    let parts = path.split('.').filter(|part| !part.is_empty());
    let found = parts.scan(next(0), |at, part| below(*at, part).inspect(|found| *at = *found)).last();
    text[..found.unwrap_or_default()].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of a GPU probe.
    const GPU_JSON: &str = r#"{"format": "haversack-probe-1", "probe": "cuda", "quick": false, "gpu": {"name": "x",
        "vendor": "NVIDIA", "driver": "1", "version": "8.6", "type": "gpu", "units": 82, "clock_hz": 1.7e9,
        "shared_bytes": 102400, "l2_bytes": 6291456, "memory_bytes": 2.4e10, "launch_s": 2e-6, "round_trip_s": 5e-6,
        "bandwidth": [{"working_set_bytes": 1e6, "read_bytes_per_s": 2e12, "copy_bytes_per_s": 1e12}],
        "fp32_peak_flops_per_s": 3.5e13, "fp32_gemm_flops_per_s": null, "fp32_convolution_flops_per_s": 5e12,
        "barrier_s": 1e-8, "atomic_interval_s": 1e-9, "atomic_latency_s": 1e-6}, "reasons": {}}"#;

    #[test]
    fn what_a_probe_prints_is_read() {
        let probed = read("gpu.json", GPU_JSON).unwrap();
        assert_eq!((probed.probe, probed.number("gpu.units")), (Probe::Gpu, Some(82.0)));
        assert_eq!(probed.number("gpu.fp32_gemm_flops_per_s"), None);
        // The only set, of 1 MB, is between the first bounds but not between the second.
        let copies = probed.copies("gpu");
        assert_eq!((fastest(&copies, 1e5, 2e6), fastest(&copies, 2e6, 4e6)), (Some(1e12), None));
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        crate::fuzz::against("probe", &[GPU_JSON.as_bytes().to_vec()], |bytes| {
            let _ = read("gpu.json", &String::from_utf8_lossy(bytes));
        });
    }

    #[test]
    fn a_key_is_found_by_its_path_and_a_missing_one_in_its_table() {
        let text = "{\n \"a\": {\"x\": 1},\n \"b\": [\n  {\"x\": \"}\\\"\"},\n  {\n   \"x\": [1, 2]}]}";
        let lines = ["a.x", "b.0.x", "b.1.x", "b.1.y", "c", "b.7"].map(|path| line_of(text, path));
        // `b.1` begins on line 5 and `b` on line 3; an unknown path is attributed to the outer table,
        // which begins on line 1.
        assert_eq!(lines, [2, 4, 6, 5, 1, 3]);
    }
}
