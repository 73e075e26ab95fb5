//! A device file, constant by constant: what a base says counts as a guess, until something that was measured takes its place.

use std::fmt::Write as _;

use haversack_devices::calibration::entries;
use haversack_devices::device::ClusterConstants;
use haversack_devices::{Device, Kind};

/// One constant as it is written.
#[derive(Clone, Debug)]
pub(in crate::calibrate) struct Line {
    key: String,
    value: f64,
    unit: String,
    kind: Kind,
    source: String,
    note: Option<String>,
}

/// A table of a file: its texts first, then its constants.
#[derive(Clone, Debug, Default)]
pub(in crate::calibrate) struct Section {
    /// What stands in brackets; empty for the top.
    head: String,
    texts: Vec<(String, String)>,
    lines: Vec<Line>,
}

/// How many constants are known in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::calibrate) struct Tally {
    /// Those that were measured.
    pub(in crate::calibrate) measured: usize,
    /// Those that a driver or the kernel says.
    pub(in crate::calibrate) said: usize,
    /// All others.
    pub(in crate::calibrate) guessed: usize,
}

impl Section {
    pub(in crate::calibrate) fn new(head: &str) -> Self {
        Self { head: head.to_owned(), ..Self::default() }
    }

    /// Sets a text; `raw` is as TOML has it.
    pub(in crate::calibrate) fn text(&mut self, key: &str, text: &str) {
        self.raw(key, format!("{}", toml::Value::String(text.to_owned())));
    }

    pub(in crate::calibrate) fn raw(&mut self, key: &str, raw: String) {
        match self.texts.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => *known = raw,
            None => self.texts.push((key.to_owned(), raw)),
        }
    }

    /// Sets a constant, in place of what was there.
    pub(in crate::calibrate) fn set(&mut self, key: &str, (value, unit): (f64, &str), how: &How) {
        let How { kind, source, note } = how.clone();
        let line = Line { key: key.to_owned(), value: rounded(value), unit: unit.to_owned(), kind, source, note };
        match self.lines.iter_mut().find(|known| known.key == key) {
            Some(known) => *known = line,
            None => self.lines.push(line),
        }
    }

    pub(in crate::calibrate) fn drop(&mut self, key: &str) {
        self.lines.retain(|line| line.key != key);
    }

    /// The value of a constant that was set, in its unit.
    pub(in crate::calibrate) fn value(&self, key: &str) -> Option<f64> {
        self.lines.iter().find(|line| line.key == key).map(|line| line.value)
    }

    /// The same in the first of `units`, each with how many of those it has.
    pub(in crate::calibrate) fn value_in(&self, key: &str, units: &[(&str, f64)]) -> Option<f64> {
        let line = self.lines.iter().find(|line| line.key == key)?;
        units.iter().find(|(unit, _)| *unit == line.unit).map(|(_, scale)| line.value * scale)
    }

    /// Whether a constant was set to what was measured.
    pub(in crate::calibrate) fn is_measured(&self, key: &str) -> bool {
        self.lines.iter().any(|line| line.key == key && line.kind == Kind::Measured)
    }

    /// Takes a text away.
    pub(in crate::calibrate) fn forget(&mut self, key: &str) {
        self.texts.retain(|(known, _)| known != key);
    }

    fn write(&self, text: &mut String) {
        if !self.head.is_empty() {
            let _ = writeln!(text, "\n{}", self.head);
        }
        for (key, raw) in &self.texts {
            let _ = writeln!(text, "{key} = {raw}");
        }
        for Line { key, value, unit, kind, source, note } in &self.lines {
            let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
            let note = note.as_ref().map_or_else(String::new, |note| format!(", note = {}", quoted(note)));
            let (unit, source) = (quoted(unit), quoted(source));
            let _ = writeln!(
                text,
                "{key} = {{ value = {value}, unit = {unit}, kind = \"{kind}\", source = {source}{note} }}"
            );
        }
    }
}

/// Four digits: no probe knows more. Whole numbers are counted, not measured.
fn rounded(value: f64) -> f64 {
    if value.fract() == 0.0 || !value.is_finite() {
        return value;
    }
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// How a constant is known.
#[derive(Clone, Debug)]
pub(in crate::calibrate) struct How {
    kind: Kind,
    source: String,
    note: Option<String>,
}

impl How {
    pub(in crate::calibrate) fn measured(source: &str) -> Self {
        Self { kind: Kind::Measured, source: source.to_owned(), note: None }
    }

    /// What the kernel or a driver says.
    pub(in crate::calibrate) fn said(source: &str) -> Self {
        Self { kind: Kind::Datasheet, source: source.to_owned(), note: None }
    }

    pub(in crate::calibrate) fn guessed(source: &str) -> Self {
        Self { kind: Kind::Estimated, source: source.to_owned(), note: None }
    }

    pub(in crate::calibrate) fn noting(&self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self.clone() }
    }
}

/// A whole file.
#[derive(Clone, Debug)]
pub(in crate::calibrate) struct DeviceFile {
    pub(in crate::calibrate) top: Section,
    pub(in crate::calibrate) clusters: Vec<Section>,
    pub(in crate::calibrate) others: Vec<Section>,
}

/// A cluster as its base has it, all of it a guess.
pub(in crate::calibrate) fn cluster_of(base: &Device, cluster: &ClusterConstants) -> Section {
    let mut section = Section::new("[[cpu]]");
    section.text("class", cluster.class.word());
    section.text("core", &cluster.core);
    for entry in entries(cluster, &base.file) {
        let how = How::guessed(&base.id).noting(format!("as {} there; {}, {}", cluster.core, entry.kind, entry.source));
        section.set(&entry.name, (entry.value, entry.unit), &how);
    }
    section
}

impl DeviceFile {
    /// All that `base` says but its clusters and curves, every constant of it a guess.
    pub(in crate::calibrate) fn over(base: &Device) -> Self {
        let constants = &base.constants;
        let mut top = Section::new("");
        top.text("name", &constants.name);
        top.text("soc", &constants.soc);
        if let Some(form) = constants.form {
            top.text("form", &form.to_string());
        }
        top.text("default_stack", &constants.default_stack);
        if let Some(set) = constants.instruction_set {
            top.text("instruction_set", &set.to_string());
        }
        let mut others: Vec<Section> = Vec::new();
        for entry in base.entries() {
            let parts: Vec<&str> = entry.name.split('.').collect();
            let Some((key, tables)) = parts.split_last() else { continue };
            if tables.first() == Some(&"cpu") {
                continue;
            }
            let how = How::guessed(&base.id).noting(format!("as there; {}, {}", entry.kind, entry.source));
            if tables.is_empty() {
                top.set(key, (entry.value, entry.unit), &how);
                continue;
            }
            let head = format!("[{}]", tables.join("."));
            if !others.iter().any(|section| section.head == head) {
                others.push(Section::new(&head));
            }
            if let Some(section) = others.iter_mut().find(|section| section.head == head) {
                section.set(key, (entry.value, entry.unit), &how);
            }
        }
        let mut file = Self { top, clusters: Vec::new(), others };
        file.texts_of(base);
        file
    }

    /// The texts of sections, which are no constants.
    fn texts_of(&mut self, base: &Device) {
        let constants = &base.constants;
        if let (Some(section), Some(storage)) = (self.section("[storage]"), &constants.storage) {
            section.text("class", &storage.class);
        }
        if let (Some(section), Some(gpu)) = (self.section("[gpu]"), &constants.gpu) {
            section.text("name", &gpu.name);
            if let Some(vendor) = gpu.vendor {
                section.text("vendor", vendor_word(vendor));
            }
            if gpu.native_float_atomics {
                section.raw("native_float_atomics", "true".to_owned());
            }
        }
        if let (Some(section), Some(dsp)) = (self.section("[dsp]"), &constants.dsp) {
            section.text("name", &dsp.name);
            section.text("version", &dsp.version.to_string());
        }
        if let Some(section) = self.section("[dram]") {
            section.text("technology", &constants.dram.technology);
        }
    }

    /// A section by its head, if it is there.
    pub(in crate::calibrate) fn section(&mut self, head: &str) -> Option<&mut Section> {
        self.others.iter_mut().find(|section| section.head == head)
    }

    /// The same; it is made where it is not there.
    pub(in crate::calibrate) fn section_or_new(&mut self, head: &str) -> &mut Section {
        let place = self.others.iter().position(|section| section.head == head).unwrap_or_else(|| {
            self.others.push(Section::new(head));
            self.others.len() - 1
        });
        &mut self.others[place]
    }

    /// The file; each of `remarks` is a line of its head.
    pub(in crate::calibrate) fn text(&self, remarks: &[String]) -> String {
        let mut text: String = remarks.iter().map(|line| format!("# {line}\n")).collect();
        text.push('\n');
        self.sections().for_each(|section| section.write(&mut text));
        text
    }

    pub(in crate::calibrate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for line in self.sections().flat_map(|section| &section.lines) {
            match line.kind {
                Kind::Measured => tally.measured += 1,
                Kind::Datasheet => tally.said += 1,
                Kind::Fitted | Kind::Estimated => tally.guessed += 1,
            }
        }
        tally
    }

    fn sections(&self) -> impl Iterator<Item = &Section> {
        [&self.top].into_iter().chain(&self.clusters).chain(&self.others)
    }
}

/// A vendor as a calibration writes it.
const fn vendor_word(vendor: haversack_devices::GpuVendor) -> &'static str {
    use haversack_devices::GpuVendor::{Arm, Idealised, Nvidia, Qualcomm};
    match vendor {
        Nvidia => "nvidia",
        Qualcomm => "qualcomm",
        Arm => "arm",
        Idealised => "idealised",
    }
}
