//! The errors of rows that were left out of the fit: `left-out.toml`, embedded and read strictly.
//!
//! `haversack calibrate … --leave-one-out --store experiments/left-out.toml` writes it; `reproduce` is told of it ([`errors`]).
//!
//! ```toml
//! [[calibration]]                 # one for each of calibrations.toml, in its order
//! device = "server-core"
//! stack = "pytorch-cpu"
//! observations = "pytorch-timings"
//! command = "haversack calibrate server-core --stack pytorch-cpu --leave-one-out --store experiments/left-out.toml"
//! version = "0.1.0"
//!
//! [calibration.digests]           # of all that the errors depend on, by file; of the declarations, this one's alone
//! "devices/calibrations/server-core.toml" = "0123456789abcdef"
//!
//! [[calibration.row]]
//! id = "lenet5/forward"           # of a cell, where the row is a paper's
//! unit = "s"
//! observed = 0.00105
//! shipped = 0.00101               # simulated at the constants of the files
//! left_out = 0.00092              # simulated at the constants that all other rows decide
//! ```

mod errors;
mod origin;

use std::collections::BTreeMap;
use std::path::Path;

use haversack_devices::CalibrationError;
use haversack_devices::text::{TomlError, hint, read_toml};
use haversack_reports::files::{FileError, write_atomically};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::declared::{self, Calibration, Observations};
use super::report::Report;
use crate::error::CommandError;
use crate::papers::answer::rounded;
use crate::papers::reference::{Reference, ReferenceError, Role};

pub use errors::{errors, errors_of};
pub use origin::{command, digests};

/// The path of the committed file in the project.
pub const FILE: &str = "experiments/left-out.toml";
const TEXT: &str = include_str!("../../left-out.toml");

/// The rows of calibrations, each as the others have it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// The calibrations, in the order of their declarations.
    #[serde(rename = "calibration", default)]
    pub calibrations: Vec<Stored>,
}

/// One calibration.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// The device.
    pub device: String,
    /// The stack.
    pub stack: String,
    /// What its constants are fitted to.
    pub observations: Observations,
    /// The command that found the errors.
    pub command: String,
    /// The version of haversack that it was of.
    pub version: String,
    /// The digest of each file that the errors depend on.
    pub digests: BTreeMap<String, String>,
    /// The rows.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

/// A row that was left out.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The row: the id of a cell, where it is a paper's.
    pub id: String,
    /// The unit of the values.
    pub unit: String,
    /// What was observed.
    pub observed: f64,
    /// What is simulated at the constants of the files.
    pub shipped: f64,
    /// What is simulated at the constants that all other rows decide.
    pub left_out: f64,
}

impl Row {
    /// (simulated − observed) / observed, the row left out.
    pub fn error(&self) -> f64 {
        self.left_out / self.observed - 1.0
    }
}

/// Left-out errors that cannot be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LeftOutError {
    /// A file that does not follow the schema.
    #[error(transparent)]
    Schema(#[from] TomlError),
    /// A file that contradicts itself, the declarations or the papers' rows: file, line, field and what was expected.
    #[error("{0}")]
    Contradiction(String),
    /// A calibration that does not load.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// The papers' rows do not load.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// What is calibrated does not load.
    #[error("{0}")]
    Declared(String),
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl LeftOut {
    /// What came with this version.
    ///
    /// # Errors
    /// A committed file that is wrong; a test sees to it that it is not.
    pub fn committed() -> Result<Self, LeftOutError> {
        Self::parse(FILE, TEXT, &Reference::load()?)
    }

    /// Reads a file; `file` is how errors name it.
    ///
    /// # Errors
    /// Text that does not follow the schema, a calibration that is not declared, a row twice, one of a paper that is none
    /// of its rows of role *fit*, or a value that is no number above zero.
    pub fn parse(file: &str, text: &str, reference: &Reference) -> Result<Self, LeftOutError> {
        let read: Self = read_toml(file, text)?;
        let declared = declared()?;
        let (mut heads, mut seen) = (lines(text, "[[calibration]]"), Vec::new());
        let mut row_heads = lines(text, "[[calibration.row]]");
        for (place, stored) in read.calibrations.iter().enumerate() {
            let head = heads.next().unwrap_or(1);
            let wrong = |line: usize, field: &str, why: String| {
                LeftOutError::Contradiction(format!("{file}:{line}: `calibration.{place}{field}`: {why}"))
            };
            if !declared.iter().any(|known| stored.is_of(known)) {
                let titles: Vec<String> = declared.iter().map(Calibration::title).collect();
                let why = format!(
                    "{} is not among what {} declares{}",
                    stored.title(),
                    declared::FILE,
                    hint(&stored.title(), titles.iter().map(String::as_str))
                );
                return Err(wrong(head, "", why));
            }
            for (at, row) in stored.rows.iter().enumerate() {
                let line = row_heads.next().unwrap_or(head);
                let values = [("observed", row.observed), ("shipped", row.shipped), ("left_out", row.left_out)];
                if let Some((field, value)) = values.into_iter().find(|(_, value)| !(value.is_finite() && *value > 0.0))
                {
                    let why = format!("expected a finite number above zero, found {value}");
                    return Err(wrong(line, &format!(".row.{at}.{field}"), why));
                }
                let why = if seen.contains(&&row.id) {
                    Some(format!("`{}` stands here twice", row.id))
                } else {
                    unknown_row(stored.observations, &row.id, reference)
                };
                if let Some(why) = why {
                    return Err(wrong(line, &format!(".row.{at}.id"), why));
                }
                seen.push(&row.id);
            }
        }
        Ok(read)
    }

    /// The file at `path` without what is to be `replaced` or is declared no more, whatever is wrong there; nothing where
    /// there is no file yet.
    ///
    /// # Errors
    /// A file that cannot be read, or as [`LeftOut::parse`].
    pub fn read(path: &Path, replaced: &[Calibration]) -> Result<Self, LeftOutError> {
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let kept = without(&text, replaced)?;
                Self::parse(&path.display().to_string(), kept.as_deref().unwrap_or(&text), &Reference::load()?)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(FileError { action: "read", path: path.to_path_buf(), source }.into()),
        }
    }

    /// Puts a calibration at its place, instead of what is there of it; what is declared no more goes.
    ///
    /// # Errors
    /// Declarations that do not load.
    pub fn put(&mut self, stored: Stored) -> Result<(), LeftOutError> {
        let declared = declared()?;
        let place = |stored: &Stored| declared.iter().position(|known| stored.is_of(known));
        let of = place(&stored);
        self.calibrations.retain(|other| place(other).is_some_and(|place| Some(place) != of));
        self.calibrations.push(stored);
        self.calibrations.sort_by_key(place);
        Ok(())
    }

    /// Writes the file beside its name and renames it.
    ///
    /// # Errors
    /// A place that cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), LeftOutError> {
        Ok(write_atomically(path, self.to_text().as_bytes())?)
    }

    /// The file as it is committed: the same bytes whenever it was found.
    pub fn to_text(&self) -> String {
        // A struct of numbers, words and lists of them is always TOML.
        let body = toml::to_string(self).unwrap_or_default();
        format!(
            "# Written by the commands below; not to be edited. The schema: experiments/src/calibrate/left_out.rs.\n\n{body}"
        )
    }
}

impl Stored {
    /// What was found of `calibration`.
    ///
    /// # Errors
    /// A row that cannot be simulated, a file that does not load.
    pub fn new(calibration: &Calibration, report: &Report, seed: u64) -> Result<Self, LeftOutError> {
        let row = |row: &super::report::Residual| {
            let left_out = row.left_out.filter(|value| value.is_finite() && row.before.is_finite());
            let missing = || LeftOutError::Contradiction(format!("{}: it has no answer, so that it is no row", row.id));
            Ok(Row {
                id: row.id.clone(),
                unit: row.unit.to_owned(),
                observed: rounded(row.observed),
                shipped: rounded(row.before),
                left_out: rounded(left_out.ok_or_else(missing)?),
            })
        };
        Ok(Self {
            device: calibration.device.clone(),
            stack: calibration.stack.clone(),
            observations: calibration.observations,
            command: command(calibration, seed),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            digests: digests(calibration, &Reference::load()?)?,
            rows: report.rows.iter().map(row).collect::<Result<_, LeftOutError>>()?,
        })
    }

    /// Whether it is of `calibration`.
    pub fn is_of(&self, calibration: &Calibration) -> bool {
        let Self { device, stack, observations, .. } = self;
        (device, stack, observations) == (&calibration.device, &calibration.stack, &calibration.observations)
    }

    /// What tells it from the others, as of the calibration.
    pub fn title(&self) -> String {
        format!("{} under {} ({})", self.device, self.stack, self.observations.name())
    }
}

/// The text of a file without what is to be `replaced` or is declared no more; `None` if nothing is.
fn without(text: &str, replaced: &[Calibration]) -> Result<Option<String>, LeftOutError> {
    let Ok(mut file) = toml::from_str::<toml::Table>(text) else { return Ok(None) };
    let Some(toml::Value::Array(calibrations)) = file.get_mut("calibration") else { return Ok(None) };
    let (declared, all) = (declared()?, calibrations.len());
    calibrations.retain(|stored| {
        let is_of = |known: &Calibration| {
            let said = ["device", "stack", "observations"].map(|key| stored.get(key).and_then(toml::Value::as_str));
            said == [Some(known.device.as_str()), Some(known.stack.as_str()), Some(known.observations.name())]
        };
        declared.iter().any(is_of) && !replaced.iter().any(is_of)
    });
    let is_changed = calibrations.len() < all;
    Ok(toml::to_string(&file).ok().filter(|_| is_changed))
}

fn declared() -> Result<Vec<Calibration>, LeftOutError> {
    declared::all().map_err(|error: CommandError| LeftOutError::Declared(error.to_string()))
}

/// Why `id` is no row that may be fitted; `None` where it is, or where its rows are not a paper's.
fn unknown_row(observations: Observations, id: &str, reference: &Reference) -> Option<String> {
    if !reference.digests().iter().any(|(file, _)| *file == observations.file()) {
        return None;
    }
    match reference.row(id) {
        Some(row) if row.role() == Role::Fit => None,
        Some(row) => Some(format!("`{id}` has the role {}, and only rows of role fit are fitted", row.role())),
        None => {
            let hint = hint(id, reference.rows().iter().map(|row| row.id.as_str()));
            Some(format!("no row of {} is called `{id}`{hint}", observations.file()))
        }
    }
}

/// The numbers of the lines that say `head`, from one.
fn lines<'t>(text: &'t str, head: &'t str) -> impl Iterator<Item = usize> + 't {
    let heads = text.lines().enumerate().filter(move |(_, line)| line.trim() == head);
    heads.map(|(line, _)| line + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of one paper's calibration and one of another's rows, with its text.
    pub(super) fn example() -> (LeftOut, String) {
        let declared = declared::all().unwrap();
        let of = |observations: Observations| declared.iter().find(|known| known.observations == observations).unwrap();
        let stored = |calibration: &Calibration, ids: &[&str]| Stored {
            device: calibration.device.clone(),
            stack: calibration.stack.clone(),
            observations: calibration.observations,
            command: command(calibration, 0),
            version: "0.1.0".into(),
            digests: digests(calibration, &Reference::load().unwrap()).unwrap(),
            rows: ids
                .iter()
                .map(|id| Row { id: (*id).into(), unit: "s".into(), observed: 2.0, shipped: 2.1, left_out: 2.5 })
                .collect(),
        };
        let mut file = LeftOut::default();
        let fit = |metric: &str| {
            let reference = Reference::load().unwrap();
            let mut rows = reference.of("daf", "table2").filter(|row| row.role() == Role::Fit && row.metric == metric);
            rows.next().unwrap().id.clone()
        };
        file.put(stored(of(Observations::DafTable2), &[&fit("time"), &fit("time-overhead")])).unwrap();
        file.put(stored(of(Observations::PytorchTimings), &["lenet5/forward"])).unwrap();
        let text = file.to_text();
        (file, text)
    }

    fn refused(from: &str, to: &str) -> String {
        let (_, text) = example();
        assert!(text.contains(from), "{text}");
        LeftOut::parse("l.toml", &text.replacen(from, to, 1), &Reference::load().unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn a_file_is_in_the_order_of_the_declarations_and_read_as_it_was_written() {
        let (file, text) = example();
        let of = |file: &LeftOut| file.calibrations.iter().map(|stored| stored.observations).collect::<Vec<_>>();
        assert_eq!(of(&file), [Observations::PytorchTimings, Observations::DafTable2]);
        let read = LeftOut::parse("l.toml", &text, &Reference::load().unwrap()).unwrap();
        assert_eq!((&read, read.to_text()), (&file, text));
        // 2.5 / 2 − 1 = 0.25.
        assert_eq!(read.calibrations[0].rows[0].error(), 0.25);
        // The same again takes the place of what was there.
        let mut again = file.clone();
        again.put(file.calibrations[1].clone()).unwrap();
        assert_eq!(again, file);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_the_nearest() {
        let (file, _) = example();
        let id = file.calibrations[1].rows[0].id.clone();
        let other = file.calibrations[1].rows[1].id.clone();
        let near = refused(&id, &format!("{id}s"));
        assert!(near.contains("`calibration.1.row.0.id`: no row of experiments/reference/daf.csv is called"), "{near}");
        assert!(near.contains(&format!("did you mean '{id}'?")) && near.starts_with("l.toml:"), "{near}");
        let twice = refused(&other, &id);
        assert!(twice.contains("`calibration.1.row.1.id`") && twice.contains("stands here twice"), "{twice}");
        let device = refused("device = \"server-core\"", "device = \"server-cor\"");
        assert!(
            device.contains("l.toml:3: `calibration.0`: server-cor under pytorch-cpu (pytorch-timings)"),
            "{device}"
        );
        assert!(device.contains("did you mean 'server-core under pytorch-cpu (pytorch-timings)'?"), "{device}");
        let number = refused("left_out = 2.5", "left_out = -2.5");
        assert!(number.contains("`calibration.0.row.0.left_out`: expected a finite number above zero"), "{number}");
        assert!(refused("observed = 2.0", "observe = 2.0").contains("(did you mean `observed`?)"));
        let check = Reference::load()
            .unwrap()
            .of("daf", "table2")
            .find(|row| row.role() != Role::Fit)
            .map(|row| row.id.clone());
        if let Some(check) = check {
            assert!(refused(&id, &check).contains("only rows of role fit are fitted"));
        }
    }
}
