//! A measured set: a folder with `set.toml`, `rows.csv` and `networks/*.onnx`.
//!
//! ```toml
//! kind = "training"                     # what its rows are of
//! title = "ncnn: inference on CPUs"
//! source = "where the numbers come from, with a commit"
//! method = "how they were measured"
//!
//! [scenario]                            # keys that all rows have
//! stack = "ncnn"
//! ```
//!
//! The columns of `rows.csv` are `id`, the columns that distinguish the rows (keys of a scenario, or the properties of
//! transfers of storage and of windows of stalls: [`subject`]), and `what, unit, value, role, note`; an empty cell is
//! not given, and an empty value is predicted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use csv::StringRecord;
use haversack_devices::text::{alternatives, hint, nearest, read_toml};
use haversack_devices::{Bytes, Direction};
use haversack_memory::phone::Counters;
use serde::Deserialize;

use crate::papers::reference::Role;
use crate::run::Results;
use crate::scenario::{Kind as Written, Literal, Origin, workload};
use crate::truth::{Embedded, FOLDER};
use crate::{CommandError, Key, Scenario};

/// A quantity that rows of training may have in addition to the figures of a run.
pub(crate) const LARGEST_BATCH: &str = "largest_batch";
/// The batches that were tried for it, separated by blanks.
const BATCHES: &str = "batches";
/// Columns that every set has; and one that is optional.
const COLUMNS: [&str; 5] = ["id", "what", "unit", "value", "role"];
const NOTE: &str = "note";

/// The subject of a set's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Kind {
    /// Iterations of training, or inference.
    Training,
    /// Transfers of flash and of compressed memory.
    Storage,
    /// Memory stalls in windows of a recording.
    Stall,
}

/// `set.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    kind: Kind,
    title: String,
    source: String,
    method: String,
    /// For stalls, the device that is simulated instead of the recorded one.
    device: Option<String>,
    #[serde(default)]
    scenario: BTreeMap<String, toml::Value>,
}

/// A measured set.
pub(crate) struct Set {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) title: String,
    pub(crate) source: String,
    pub(crate) method: String,
    pub(crate) rows: Vec<Row>,
}

/// One measurement.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) quantity: Quantity,
    /// In the quantity's unit; `None` if it is to be predicted.
    pub(crate) measured: Option<f64>,
    pub(crate) role: Role,
    pub(crate) note: String,
    pub(crate) subject: Subject,
}

impl Row {
    /// The scenario of a row of training.
    pub(crate) fn scenario(&self) -> Option<&Scenario> {
        match &self.subject {
            Subject::Training { scenario, .. } => Some(scenario),
            Subject::Storage(_) | Subject::Stall(_) => None,
        }
    }
}

/// The name of the set in a folder.
pub(crate) fn name_of(folder: &Path) -> String {
    let full = fs::canonicalize(folder);
    let folder = full.as_deref().unwrap_or(folder);
    folder.file_name().map_or_else(|| "set".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// A position in a file of a set.
struct Place<'a> {
    file: &'a Arc<str>,
    line: usize,
}

impl Place<'_> {
    fn error(&self, field: &str, message: &str) -> CommandError {
        CommandError::input(format!("{}:{}: `{field}`: {message}", self.file, self.line))
    }

    fn origin(&self) -> Origin {
        Origin::File { file: Arc::clone(self.file), line: self.line }
    }
}

impl Set {
    /// A bundled set.
    ///
    /// # Errors
    /// A set that is wrong.
    pub(crate) fn embedded(set: &Embedded) -> Result<Self, CommandError> {
        Self::parse(set.name, &Path::new(FOLDER).join(set.name), set.about, set.rows)
    }

    /// The set in `folder`.
    ///
    /// # Errors
    /// Files that are missing or wrong, with the line and the column.
    pub(crate) fn read(folder: &Path) -> Result<Self, CommandError> {
        let text = |name: &str| {
            let path = folder.join(name);
            let expected = "expected a measured set: a folder with set.toml and rows.csv";
            fs::read_to_string(&path)
                .map_err(|error| CommandError::input(format!("{}: {error}; {expected}", path.display())))
        };
        Self::parse(&name_of(folder), folder, &text("set.toml")?, &text("rows.csv")?)
    }

    fn parse(name: &str, folder: &Path, about: &str, rows: &str) -> Result<Self, CommandError> {
        let [about_file, rows_file] = ["set.toml", "rows.csv"].map(|file| folder.join(file).display().to_string());
        let About { kind, title, source, method, device, scenario } =
            read_toml(&about_file, about).map_err(CommandError::input)?;
        let mut common = Scenario::new("", "");
        let about_file: Arc<str> = about_file.into();
        for (name, value) in scenario {
            let is_its = |line: &str| line.split('=').next().is_some_and(|key| key.trim() == name);
            let line = about.lines().position(is_its).map_or(0, |before| before + 1);
            let place = Place { file: &about_file, line };
            let literal = literal(&value).ok_or_else(|| place.error(&name, "expected one value"))?;
            set_key(&mut common, &name, &literal, &place, &[])?;
        }
        let file: Arc<str> = rows_file.into();
        let mut reader = csv::Reader::from_reader(rows.as_bytes());
        let wrong = |error: csv::Error| {
            let line = error.position().map_or(1, csv::Position::line);
            CommandError::input(format!("{file}:{line}: {error}"))
        };
        let columns = reader.headers().map_err(wrong)?;
        let header = Header { names: columns.iter().map(str::to_owned).collect(), kind, common, device };
        header.check(&file)?;
        let mut found = Vec::new();
        for record in reader.records() {
            let record = record.map_err(wrong)?;
            let line = record.position().map_or(0, csv::Position::line) as usize;
            let place = Place { file: &file, line };
            found.push(header.row(&record, &place, folder)?);
        }
        Ok(Self { name: name.to_owned(), kind, title, source, method, rows: found })
    }
}

/// A value of `set.toml` as a scenario's literal; `None` for a list or a table.
fn literal(value: &toml::Value) -> Option<Literal> {
    let (text, kind) = match value {
        toml::Value::String(text) => (text.clone(), Written::Text),
        toml::Value::Integer(number) => (number.to_string(), Written::Integer),
        toml::Value::Float(number) => (number.to_string(), Written::Real),
        toml::Value::Boolean(on) => (on.to_string(), Written::Boolean),
        _ => return None,
    };
    Some(Literal { text, kind })
}

/// Sets the key named `name`; `others` are further valid names, for suggestions in errors.
fn set_key(
    scenario: &mut Scenario,
    name: &str,
    value: &Literal,
    place: &Place<'_>,
    others: &[&str],
) -> Result<(), CommandError> {
    let Some(key) = Key::named(name) else {
        let known = Key::ALL.map(Key::name);
        let hint = hint(name, known.iter().chain(others).copied());
        return Err(place.error(name, &format!("no key of a scenario{hint}")));
    };
    scenario.set(key, value, place.origin()).map_err(CommandError::Scenario)
}

/// The columns of `rows.csv`, and the values that all rows share.
struct Header {
    names: Vec<String>,
    kind: Kind,
    /// The keys that all scenarios share.
    common: Scenario,
    device: Option<String>,
}

impl Header {
    /// Checks that all required columns exist.
    fn check(&self, file: &Arc<str>) -> Result<(), CommandError> {
        let place = Place { file, line: 1 };
        let of_kind: &[&str] = match self.kind {
            Kind::Training => &[],
            Kind::Storage => &Transfers::COLUMNS,
            Kind::Stall => &Window::COLUMNS,
        };
        let needed: Vec<&str> = COLUMNS.iter().chain(of_kind).copied().collect();
        for name in &needed {
            if !self.names.iter().any(|column| column == name) {
                let near = nearest(name, self.names.iter().map(String::as_str));
                let near = near.map_or_else(String::new, |near| format!(" (is it '{near}'?)"));
                return Err(place.error(name, &format!("no such column{near}; expected {}", needed.join(", "))));
            }
        }
        if self.kind == Kind::Stall && self.device.is_none() {
            return Err(place.error("device", "missing from set.toml; expected the stand-in device"));
        }
        Ok(())
    }

    fn row(&self, record: &StringRecord, place: &Place<'_>, folder: &Path) -> Result<Row, CommandError> {
        let cells = Cells { header: self, record, place };
        let cell = |name: &str| cells.get(name);
        let what = cell("what");
        let known = figures(self.kind);
        if !known.iter().any(|name| name == what) {
            let hint = hint(what, known.iter().map(String::as_str));
            return Err(place.error("what", &format!("no run gives '{what}'{hint}")));
        }
        let quantity = Quantity::new(what, cell("unit")).map_err(|expected| place.error("unit", &expected))?;
        let measured =
            match cell("value") {
                "" => None,
                text => {
                    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
                    Some(number.ok_or_else(|| {
                        place.error("value", &format!("expected a number or nothing, found '{text}'"))
                    })?)
                }
            };
        let role = cell("role");
        let role = role.parse::<Role>().map_err(|()| {
            let roles = Role::ALL.map(|role| role.to_string());
            let roles = || roles.iter().map(String::as_str);
            place.error("role", &format!("expected {}, found '{role}'{}", alternatives(roles()), hint(role, roles())))
        })?;
        let subject = match self.kind {
            Kind::Training => self.training(record, &cells, what, folder)?,
            Kind::Storage => Subject::Storage(Transfers::read(&cells)?),
            Kind::Stall => Subject::Stall(Window::read(&cells, self.device.as_deref().unwrap_or_default())?),
        };
        let (id, note) = (cell("id").to_owned(), cell(NOTE).to_owned());
        Ok(Row { id, quantity, measured, role, note, subject })
    }

    /// The scenario of a row of training.
    fn training(
        &self,
        record: &StringRecord,
        cells: &Cells<'_>,
        what: &str,
        folder: &Path,
    ) -> Result<Subject, CommandError> {
        let place = cells.place;
        let mut scenario = self.common.clone();
        let given = self.names.iter().zip(record).filter(|(column, cell)| {
            !cell.trim().is_empty()
                && !COLUMNS.contains(&column.as_str())
                && ![NOTE, BATCHES].contains(&column.as_str())
        });
        for (column, cell) in given {
            set_key(&mut scenario, column, &Literal::text(cell.trim()), place, &[BATCHES, NOTE])?;
        }
        if workload::is_file(&scenario.model) {
            scenario.model = folder.join(&scenario.model).display().to_string();
        }
        scenario.complete(place.origin())?;
        let batch = |text: &str| {
            let number = text.parse::<u64>().ok().filter(|&number| number > 0);
            number
                .ok_or_else(|| place.error(BATCHES, &format!("expected whole numbers between blanks, found '{text}'")))
        };
        let batches: Vec<u64> = cells.get(BATCHES).split_whitespace().map(batch).collect::<Result<_, _>>()?;
        if what == LARGEST_BATCH && batches.is_empty() {
            return Err(place.error(BATCHES, "missing; expected the batches that were tried, between blanks"));
        }
        // A measured run must have fitted into memory; only the largest batch, and a phone in use, depend on
        // the device's memory.
        scenario.ignore_ram |= what != LARGEST_BATCH && scenario.system.is_none();
        Ok(Subject::Training { scenario: Box::new(scenario), batches })
    }
}

/// The cells of a row by their columns.
struct Cells<'a> {
    header: &'a Header,
    record: &'a StringRecord,
    place: &'a Place<'a>,
}

impl Cells<'_> {
    /// The text of a cell; empty without such a column.
    fn get(&self, name: &str) -> &str {
        let at = self.header.names.iter().position(|column| column == name);
        at.and_then(|at| self.record.get(at)).unwrap_or_default().trim()
    }

    /// The number in a cell.
    fn number(&self, name: &str) -> Result<f64, CommandError> {
        let text = self.get(name);
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| self.place.error(name, &format!("expected a number, found '{text}'")))
    }

    /// A whole number above zero.
    fn count(&self, name: &str) -> Result<u64, CommandError> {
        let text = self.get(name);
        let number = text.parse::<u64>().ok().filter(|&number| number > 0);
        number.ok_or_else(|| self.place.error(name, &format!("expected a whole number above zero, found '{text}'")))
    }

    /// One of some words.
    fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, CommandError> {
        let text = self.get(name);
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, meant)| *meant).ok_or_else(|| {
            let known = || words.iter().map(|(word, _)| *word);
            let said = known().map(|word| if word.is_empty() { "nothing" } else { word });
            let expected = alternatives(said);
            self.place.error(name, &format!("expected {expected}, found '{text}'{}", hint(text, known())))
        })
    }
}

/// The quantities that a row of a kind may have: for training, the figures of a run that are a single number, and
/// the largest batch.
fn figures(kind: Kind) -> Vec<String> {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    match kind {
        Kind::Training => {
            let figures = Results::zero().to_json().into_iter().filter(|(_, value)| value.is_number());
            figures.map(|(name, _)| name).chain([LARGEST_BATCH.to_owned()]).collect()
        }
        Kind::Storage => names(&Transfers::FIGURES),
        Kind::Stall => names(&Window::FIGURES),
    }
}

/// The units of a quantity, by the ending of its name, each with its size in the answer's unit.
const UNITS: [(&str, &[(&str, f64)]); 6] = [
    (
        "_bytes_per_s",
        &[("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9), ("KiB/s", KIB), ("MiB/s", MIB), ("GiB/s", GIB)],
    ),
    ("_per_s", &[("", 1.0), ("1/s", 1.0)]),
    ("_bytes", &[("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("KiB", KIB), ("MiB", MIB), ("GiB", GIB)]),
    ("_s", &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9)]),
    ("_w", &[("W", 1.0), ("mW", 1e-3)]),
    ("_j", &[("J", 1.0), ("mJ", 1e-3), ("Wh", 3600.0)]),
];
const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;
const GIB: f64 = 1024.0 * MIB;

/// A quantity of an answer, in a unit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quantity {
    /// The key.
    pub(crate) name: String,
    /// The unit; empty for a plain number.
    pub(crate) unit: String,
    /// The size of the unit in the answer's unit.
    pub(crate) size: f64,
}

impl Quantity {
    /// The quantity `name` in `unit`.
    ///
    /// # Errors
    /// The expected units.
    pub(crate) fn new(name: &str, unit: &str) -> Result<Self, String> {
        let units =
            UNITS.iter().find(|(ending, _)| name.ends_with(ending)).map_or(&[("", 1.0)][..], |(_, units)| units);
        match units.iter().find(|(known, _)| *known == unit) {
            Some((_, size)) => Ok(Self { name: name.to_owned(), unit: unit.to_owned(), size: *size }),
            None if units == [("", 1.0)] => Err(format!("'{unit}', expected nothing: {name} is a number")),
            None => Err(format!("'{unit}', expected {}", alternatives(units.iter().map(|(known, _)| *known)))),
        }
    }
}

/// The subject of a measurement.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    /// A run, with the batches that were tried if the largest is the quantity.
    Training {
        /// The scenario of the run.
        scenario: Box<Scenario>,
        /// In the order of the file.
        batches: Vec<u64>,
    },
    /// Transfers of a storage device.
    Storage(Transfers),
    /// Counters of a window.
    Stall(Window),
}

/// The target of transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A file in flash.
    Flash,
    /// Compressed memory.
    Zram,
}

/// The contents of compressed memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    /// Pages of apps.
    Apps,
    /// Pages that cannot be compressed.
    Incompressible,
}

/// Transfers by threads, each with a number in flight.
#[derive(Clone, Debug)]
pub(crate) struct Transfers {
    pub(crate) device: String,
    pub(crate) target: Target,
    pub(crate) direction: Direction,
    pub(crate) block: Bytes,
    pub(crate) threads: u64,
    pub(crate) depth: u64,
    pub(crate) data: Data,
    /// Whether the write cache is full beforehand.
    pub(crate) behind_cache: bool,
}

impl Transfers {
    pub(super) const COLUMNS: [&str; 8] =
        ["device", "target", "operation", "block_kib", "threads", "depth", "data", "state"];
    pub(super) const FIGURES: [&str; 3] = ["bandwidth_bytes_per_s", "latency_mean_s", "completion_p99_s"];

    fn read(cells: &Cells<'_>) -> Result<Self, CommandError> {
        let states = [("", false), ("cache", false), ("behind the cache", true)];
        let data = [("", Data::Apps), ("app-pages", Data::Apps), ("incompressible", Data::Incompressible)];
        Ok(Self {
            device: cells.get("device").to_owned(),
            target: cells.word("target", &[("ufs", Target::Flash), ("zram", Target::Zram)])?,
            direction: cells.word("operation", &[("read", Direction::Read), ("write", Direction::Write)])?,
            block: Bytes(cells.count("block_kib")? << 10),
            threads: cells.count("threads")?,
            depth: cells.count("depth")?,
            data: cells.word("data", &data)?,
            behind_cache: cells.word("state", &states)?,
        })
    }
}

/// The kernel's counters in a window, in pages of 4 KiB.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// The device that is simulated.
    pub(crate) device: String,
    /// The length in seconds.
    pub(crate) duration: f64,
    pub(crate) counted: Counters,
}

impl Window {
    pub(super) const COLUMNS: [&str; 7] = [
        "duration_s",
        "swap_ins_pages",
        "other_refaults_pages",
        "swap_outs_pages",
        "direct_scans_pages",
        "direct_steals_pages",
        "allocation_stalls",
    ];
    pub(super) const FIGURES: [&str; 2] = ["some_s", "full_s"];

    fn read(cells: &Cells<'_>, device: &str) -> Result<Self, CommandError> {
        let mut numbers = [0.0; Self::COLUMNS.len()];
        for (number, column) in numbers.iter_mut().zip(Self::COLUMNS) {
            *number = cells.number(column)?;
        }
        let [duration, rest @ ..] = numbers;
        // A float cast saturates: the kernel's shadow entries are not exact, so a difference may be negative.
        let [pswpin, workingset_refault_file, pswpout, pgscan_direct, pgsteal_direct, allocstall] =
            rest.map(|number| number as u64);
        let counted = Counters {
            pswpin,
            pswpout,
            workingset_refault_file,
            pgscan_direct,
            pgsteal_direct,
            allocstall,
            ..Counters::default()
        };
        Ok(Self { device: device.to_owned(), duration, counted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_fits_the_ending_of_a_name() {
        assert_eq!(Quantity::new("iteration_time_s", "ms").unwrap().size, 1e-3);
        assert_eq!(Quantity::new("peak_memory_bytes", "MiB").unwrap().size, 1_048_576.0);
        assert_eq!(Quantity::new("bandwidth_bytes_per_s", "MB/s").unwrap().size, 1e6);
        assert_eq!(Quantity::new("busy_cores", "").unwrap().size, 1.0);
        assert_eq!(Quantity::new("iteration_time_s", "MiB").unwrap_err(), "'MiB', expected s, ms, us, µs or ns");
        assert_eq!(Quantity::new("busy_cores", "s").unwrap_err(), "'s', expected nothing: busy_cores is a number");
    }
}
