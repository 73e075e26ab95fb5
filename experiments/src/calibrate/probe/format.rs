//! What a probe's JSON holds: every key with the range that a number of it can have, checked before anything is made of it.
//!
//! A key names its unit (`_s`, `_hz`, `_bytes`, `_bytes_per_s`, `_flops_per_s`, `_ops_per_s`). A number that could not be
//! measured is null, and `reasons` says why.

use std::fmt::Write as _;

use haversack_devices::text::{aside, nearest};
use serde_json::Value;

use super::place::line_of;

/// The only format that is read.
pub(super) const FORMAT: &str = "haversack-probe-1";

/// What a key holds.
#[derive(Clone, Copy)]
enum Holds {
    /// A number from the first to the second.
    Number(f64, f64),
    /// The same, or null.
    Perhaps(f64, f64),
    /// Text.
    Text,
    /// Text, or null.
    PerhapsText,
    /// `true` or `false`.
    Switch,
    /// A table.
    Table(&'static [Field]),
    /// Tables, at least one.
    Tables(&'static [Field]),
    /// Anything: reasons.
    Anything,
}
use Holds::{Anything, Number, Perhaps, PerhapsText, Switch, Table, Tables, Text};

/// A key, and what it holds.
type Field = (&'static str, Holds);

const COUNT: Holds = Number(1.0, 1024.0);
const HERTZ: Holds = Perhaps(1e7, 2e10);
const RATE: Holds = Number(1e6, 1e17);
const BANDWIDTH: Holds = Number(1e6, 1e14);
const CACHE: Holds = Perhaps(1024.0, 4e9);
const MEMORY: Holds = Perhaps(6.4e7, 1e14);
const WAIT: Holds = Perhaps(1e-11, 10.0);

const BANDWIDTHS: &[Field] = &[
    ("working_set_bytes", Number(1024.0, 1e11)),
    ("read_bytes_per_s", BANDWIDTH),
    ("write_bytes_per_s", BANDWIDTH),
    ("copy_bytes_per_s", BANDWIDTH),
];

const GPU_BANDWIDTHS: &[Field] =
    &[("working_set_bytes", Number(1024.0, 1e11)), ("read_bytes_per_s", BANDWIDTH), ("copy_bytes_per_s", BANDWIDTH)];

const CLUSTER: &[Field] = &[
    ("first_core", Number(0.0, 1024.0)),
    ("cores", COUNT),
    ("frequency_hz", HERTZ),
    ("frequency_lowest_hz", HERTZ),
    ("frequency_measured_hz", Number(1e7, 2e10)),
    ("l1_bytes", CACHE),
    ("l2_bytes", CACHE),
    ("l3_bytes", CACHE),
    ("vector_bytes", Number(4.0, 1024.0)),
    ("fp32_peak_flops_per_s", RATE),
    ("fp32_gemm_flops_per_s", RATE),
    ("fp32_convolution_flops_per_s", RATE),
    ("int8_kernel", Text),
    ("int8_gemm_ops_per_s", RATE),
    ("bandwidth", Tables(BANDWIDTHS)),
];

const MACHINE: &[Field] =
    &[("system", Text), ("release", Text), ("architecture", Text), ("kernels", Text), ("memory_bytes", MEMORY)];

const ALL_CORES: &[Field] = &[
    ("threads", COUNT),
    ("read_bytes_per_s", BANDWIDTH),
    ("copy_bytes_per_s", BANDWIDTH),
    ("fp32_gemm_flops_per_s", RATE),
    ("int8_gemm_ops_per_s", RATE),
    ("barrier_s", WAIT),
    ("atomic_s", WAIT),
    ("thread_start_s", WAIT),
];

const FLASH: Holds = Perhaps(1e4, 1e12);

const STORAGE: &[Field] = &[
    ("past_page_cache", Switch),
    ("file_bytes", Perhaps(4096.0, 1e12)),
    ("sequential_write_bytes_per_s", FLASH),
    ("sequential_read_bytes_per_s", FLASH),
    ("random_read_bytes_per_s", FLASH),
    ("latency_read_s", WAIT),
    ("random_write_bytes_per_s", FLASH),
    ("latency_write_s", WAIT),
];

const ZRAM: &[Field] = &[
    ("algorithm", PerhapsText),
    ("size_bytes", Perhaps(4096.0, 1e13)),
    ("ratio", Perhaps(0.5, 1e4)),
    ("write_page_s", WAIT),
    ("read_page_s", WAIT),
];

const CPU_PROBE: &[Field] = &[
    ("format", Text),
    ("probe", Text),
    ("quick", Switch),
    ("machine", Table(MACHINE)),
    ("clusters", Tables(CLUSTER)),
    ("all_cores", Table(ALL_CORES)),
    ("storage", Table(STORAGE)),
    ("zram", Table(ZRAM)),
    ("reasons", Anything),
];

const GPU: &[Field] = &[
    ("name", Text),
    ("vendor", Text),
    ("driver", Text),
    ("version", Text),
    ("type", Text),
    ("units", COUNT),
    ("clock_hz", HERTZ),
    ("shared_bytes", CACHE),
    ("l2_bytes", CACHE),
    ("memory_bytes", MEMORY),
    ("launch_s", Number(1e-9, 1.0)),
    ("round_trip_s", Number(1e-9, 1.0)),
    ("bandwidth", Tables(GPU_BANDWIDTHS)),
    ("fp32_peak_flops_per_s", RATE),
    ("fp32_gemm_flops_per_s", Perhaps(1e6, 1e17)),
    ("fp32_convolution_flops_per_s", RATE),
    ("barrier_s", WAIT),
    ("atomic_interval_s", WAIT),
    ("atomic_latency_s", WAIT),
];

const GPU_PROBE: &[Field] =
    &[("format", Text), ("probe", Text), ("quick", Switch), ("gpu", Table(GPU)), ("reasons", Anything)];

/// Which probe wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// `probe.c`.
    Cpu,
    /// `probe_opencl.c` or `probe.cu`.
    Gpu,
}

/// A probe's file, in which every key is there and every number in its range.
#[derive(Clone, Debug)]
pub(super) struct Probed {
    pub(super) file: String,
    pub(super) probe: Probe,
    /// `cpu`, `opencl` or `cuda`.
    pub(super) name: String,
    pub(super) value: Value,
}

/// Reads `text`; `file` is how errors name it.
///
/// # Errors
/// All that is wrong with it, a line each: file, line, field, and what was expected.
pub(super) fn read(file: &str, text: &str) -> Result<Probed, String> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| format!("{file}:{}: no JSON: {error}; expected what a probe prints, whole", error.line()))?;
    let mut check = Check { file, text, wrong: Vec::new() };
    let Some(format) = value.get("format").and_then(Value::as_str) else {
        check.refuse("format", &format!("missing; expected \"{FORMAT}\", which every probe prints"));
        return Err(check.wrong.join("\n"));
    };
    if format != FORMAT {
        check.refuse(
            "format",
            &format!("unknown format \"{format}\"; expected \"{FORMAT}\": build and run the probe of this version"),
        );
        return Err(check.wrong.join("\n"));
    }
    let name = value.get("probe").and_then(Value::as_str).unwrap_or_default().to_owned();
    let names = ["cpu", "opencl", "cuda"];
    let (probe, fields) = match name.as_str() {
        "cpu" => (Probe::Cpu, CPU_PROBE),
        "opencl" | "cuda" => (Probe::Gpu, GPU_PROBE),
        other => {
            let near = aside(nearest(other, names));
            check.refuse("probe", &format!("unknown probe \"{other}\"{near}; expected cpu, opencl or cuda"));
            return Err(check.wrong.join("\n"));
        }
    };
    check.table("", &value, fields);
    if check.wrong.is_empty() {
        Ok(Probed { file: file.to_owned(), probe, name, value })
    } else {
        Err(check.wrong.join("\n"))
    }
}

struct Check<'a> {
    file: &'a str,
    text: &'a str,
    wrong: Vec<String>,
}

impl Check<'_> {
    fn refuse(&mut self, path: &str, message: &str) {
        let line = line_of(self.text, path);
        self.wrong.push(format!("{}:{line}: `{path}`: {message}", self.file));
    }

    fn table(&mut self, path: &str, value: &Value, fields: &[Field]) {
        let Some(table) = value.as_object() else {
            return self.refuse(path, &format!("expected a table {{…}}, found {}", shown(value)));
        };
        let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        for key in table.keys() {
            if !fields.iter().any(|(name, _)| name == key) {
                let near = aside(nearest(key, fields.iter().map(|(name, _)| *name)));
                self.refuse(&below(key), &format!("unknown key{near}; a key's name holds its unit"));
            }
        }
        for (key, holds) in fields {
            match table.get(*key) {
                None => {
                    let expected = expected(*holds);
                    self.refuse(&below(key), &format!("missing; expected {expected}: run the probe again"));
                }
                Some(value) => self.value(&below(key), key, value, *holds),
            }
        }
    }

    fn value(&mut self, path: &str, key: &str, value: &Value, holds: Holds) {
        match (holds, value) {
            (Perhaps(..) | PerhapsText, Value::Null)
            | (Text | PerhapsText, Value::String(_))
            | (Switch, Value::Bool(_))
            | (Anything, _) => {}
            (Number(low, high) | Perhaps(low, high), Value::Number(number)) => {
                let found = number.as_f64().unwrap_or(f64::NAN);
                if !(low..=high).contains(&found) {
                    let guess = guess(key, found, low, high);
                    self.refuse(path, &format!("{found} is absurd; expected {}{guess}", expected(holds)));
                }
            }
            (Table(fields), _) => self.table(path, value, fields),
            (Tables(fields), Value::Array(tables)) if !tables.is_empty() => {
                for (place, table) in tables.iter().enumerate() {
                    self.table(&format!("{path}.{place}"), table, fields);
                }
            }
            _ => self.refuse(path, &format!("expected {}, found {}", expected(holds), shown(value))),
        }
    }
}

/// The unit that a key's name ends in, in words.
fn unit(key: &str) -> &'static str {
    let units = [
        ("_bytes_per_s", "bytes a second"),
        ("_flops_per_s", "FLOP a second"),
        ("_ops_per_s", "operations a second"),
        ("_bytes", "bytes"),
        ("_hz", "hertz"),
        ("_s", "seconds"),
    ];
    units.iter().find(|(ending, _)| key.ends_with(ending)).map_or("", |(_, unit)| unit)
}

/// What may have been meant: the same number with another prefix of its unit.
fn guess(key: &str, found: f64, low: f64, high: f64) -> String {
    let unit = unit(key);
    let factors = [(1e3, "kilo"), (1e6, "mega"), (1e9, "giga"), (1e-6, "micro"), (1e-9, "nano"), (1e-3, "milli")];
    let fits = factors.iter().find(|(factor, _)| {
        let is_small = *factor < 1.0;
        is_small == (unit == "seconds") && (low * 10.0..=high).contains(&(found * factor))
    });
    match fits {
        Some((_, prefix)) if !unit.is_empty() => format!(" (was it in {prefix}{unit}?)"),
        _ => String::new(),
    }
}

fn expected(holds: Holds) -> String {
    match holds {
        Number(low, high) => format!("a number from {low:e} to {high:e}"),
        Perhaps(low, high) => format!("a number from {low:e} to {high:e}, or null"),
        Text => "text".to_owned(),
        PerhapsText => "text, or null".to_owned(),
        Switch => "true or false".to_owned(),
        Table(_) => "a table {…}".to_owned(),
        Tables(_) => "a list of tables, at least one".to_owned(),
        Anything => "a table {…} of reasons by key".to_owned(),
    }
}

/// A value as an error shows it.
fn shown(value: &Value) -> String {
    let mut text = String::new();
    let _ = write!(text, "{value}");
    if text.chars().count() > 40 { text.chars().take(40).chain(['…']).collect() } else { text }
}

impl Probed {
    /// The number at a dotted path, which has been checked; `None` where it is null.
    pub(super) fn number(&self, path: &str) -> Option<f64> {
        self.at(path)?.as_f64()
    }

    /// The text at a dotted path; empty where there is none.
    pub(super) fn text(&self, path: &str) -> &str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// Number of tables at a dotted path.
    pub(super) fn tables(&self, path: &str) -> usize {
        self.at(path).and_then(Value::as_array).map_or(0, Vec::len)
    }

    /// Why the number at `path` is null.
    pub(super) fn reason(&self, path: &str) -> &str {
        let reasons = self.value.get("reasons");
        reasons.and_then(|reasons| reasons.get(path)).and_then(Value::as_str).unwrap_or("no reason is given")
    }

    fn at(&self, path: &str) -> Option<&Value> {
        path.split('.').try_fold(&self.value, |value, key| match key.parse::<usize>() {
            Ok(place) => value.get(place),
            Err(_) => value.get(key),
        })
    }

    /// The most bytes a second that were copied within a working set of at least `at_least` bytes and at most `at_most`.
    pub(super) fn copied(&self, table: &str, at_least: f64, at_most: f64) -> Option<f64> {
        let rows = (0..self.tables(&format!("{table}.bandwidth"))).filter_map(|row| {
            let of = |key: &str| self.number(&format!("{table}.bandwidth.{row}.{key}"));
            Some((of("working_set_bytes")?, of("copy_bytes_per_s")?))
        });
        rows.filter(|(size, _)| (at_least..=at_most).contains(size)).map(|(_, rate)| rate).reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a probe of a GPU prints.
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
        // The one set, of 1 MB, lies between these bounds and not between those.
        assert_eq!(probed.copied("gpu", 1e5, 2e6), Some(1e12));
        assert_eq!(probed.copied("gpu", 2e6, 4e6), None);
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        crate::fuzz::against("probe", &[GPU_JSON.as_bytes().to_vec()], |bytes| {
            let _ = read("gpu.json", &String::from_utf8_lossy(bytes));
        });
    }
}
