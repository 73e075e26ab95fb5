//! Leave-one-out errors of rows that constants were fitted to: `left-out.toml`, embedded and parsed strictly.
//!
//! `haversack calibrate fit … --leave-one-out --store experiments/left-out.toml` writes it; `reproduce` reads
//! it through [`errors`].
//!
//! ```toml
//! [[calibration]]                 # one for each of calibrations.toml, in its order
//! device = "server-core"
//! stack = "pytorch-cpu"
//! observations = "pytorch-timings"
//! command = "haversack calibrate fit server-core --stack pytorch-cpu --leave-one-out --store experiments/left-out.toml"
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

use std::collections::BTreeMap;
use std::path::Path;

use haversack_devices::load;
use haversack_devices::registry::digest;
use haversack_devices::text::{hint, read_toml};
use haversack_reports::{if_there, write_atomically};
use serde::{Deserialize, Serialize};

use super::observation::{self, Calibration, Observations, title};
use super::report::{Report, Residual};
use crate::papers::cells::rounded;
use crate::papers::left_out::{Errors, Known};
use crate::papers::reference::{Reference, Role};
use crate::scenario::World;
use crate::{CommandError, Result, truth};

/// The path of the committed file in the project.
pub const FILE: &str = "experiments/left-out.toml";
const TEXT: &str = include_str!("../../left-out.toml");

/// The stored rows of calibrations.
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
    /// The observations that its constants are fitted to.
    pub observations: Observations,
    /// The command that computed the errors.
    pub command: String,
    /// The version of haversack that computed them.
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
    /// The row: the id of a cell if it is a paper's.
    pub id: String,
    /// The unit of the values.
    pub unit: String,
    /// The observed value.
    pub observed: f64,
    /// The simulated value with the constants of the files.
    pub shipped: f64,
    /// The simulated value with the constants fitted to all other rows.
    pub left_out: f64,
}

impl Row {
    /// (simulated − observed) / observed, with the row left out.
    pub fn error(&self) -> f64 {
        self.left_out / self.observed - 1.0
    }
}

impl LeftOut {
    /// The errors that ship with this version.
    ///
    /// # Errors
    /// A committed file that is wrong, which a test excludes.
    pub fn committed() -> Result<Self> {
        Self::parse(FILE, TEXT, &reference()?)
    }

    /// Parses a file; `file` is its name in errors.
    ///
    /// # Errors
    /// Text that does not follow the schema, a calibration that is not declared, a duplicate row, a row that is not one
    /// of the paper's rows of role *fit*, or a value that is not a positive number.
    pub fn parse(file: &str, text: &str, reference: &Reference) -> Result<Self> {
        let read: Self = read_toml(file, text).map_err(CommandError::input)?;
        let declared = observation::all()?;
        let mut row_heads = lines(text, "[[calibration.row]]");
        let mut seen = Vec::new();
        for ((place, stored), head) in read.calibrations.iter().enumerate().zip(lines(text, "[[calibration]]")) {
            let wrong = |line: usize, field: &str, why: &str| {
                Err(CommandError::input(format!("{file}:{line}: `calibration.{place}{field}`: {why}")))
            };
            let Some(calibration) = declared.iter().find(|known| stored.is_of(known)) else {
                let titles: Vec<String> = declared.iter().map(Calibration::title).collect();
                let title = title(&stored.device, &stored.stack, stored.observations);
                let hint = hint(&title, titles.iter().map(String::as_str));
                return wrong(head, "", &format!("{title} is not among what {} declares{hint}", observation::FILE));
            };
            for (at, row) in stored.rows.iter().enumerate() {
                let line = row_heads.next().unwrap_or(head);
                let values = [("observed", row.observed), ("shipped", row.shipped), ("left_out", row.left_out)];
                let is_wrong = |value: f64| !(value.is_finite() && value > 0.0);
                if let Some((field, value)) = values.into_iter().find(|(_, value)| is_wrong(*value)) {
                    let why = format!("expected a finite number above zero, found {value}");
                    return wrong(line, &format!(".row.{at}.{field}"), &why);
                }
                let twice = seen.contains(&&row.id).then(|| format!("`{}` is given twice", row.id));
                if let Some(why) = twice.or_else(|| unknown_row(calibration, &row.id, reference)) {
                    return wrong(line, &format!(".row.{at}.id"), &why);
                }
                seen.push(&row.id);
            }
        }
        Ok(read)
    }

    /// Reads the file at `path`, ignoring calibrations that are to be `replaced` or no longer declared, even if these
    /// are wrong; empty if the file does not exist yet.
    ///
    /// # Errors
    /// A file that cannot be read, or as [`LeftOut::parse`].
    pub fn read(path: &Path, replaced: &[Calibration]) -> Result<Self> {
        let read = if_there("read", path, std::fs::read_to_string(path));
        match read.map_err(|error| CommandError::input(format!("--store: {error}")))? {
            Some(text) => {
                let kept = without(&text, replaced)?;
                Self::parse(&path.display().to_string(), kept.as_deref().unwrap_or(&text), &reference()?)
            }
            None => Ok(Self::default()),
        }
    }

    /// Inserts a calibration, or replaces its stored version; removes calibrations that are no longer declared.
    ///
    /// # Errors
    /// Declarations that do not load.
    pub fn put(&mut self, stored: Stored) -> Result<()> {
        let declared = observation::all()?;
        let place = |stored: &Stored| declared.iter().position(|known| stored.is_of(known));
        let of = place(&stored);
        self.calibrations.retain(|other| place(other).is_some_and(|place| Some(place) != of));
        self.calibrations.push(stored);
        self.calibrations.sort_by_key(place);
        Ok(())
    }

    /// Writes the file under a temporary name and renames it.
    ///
    /// # Errors
    /// A path that cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        Ok(write_atomically(path, self.to_text().as_bytes())?)
    }

    /// The text of the file; the bytes are the same whenever the errors are computed.
    pub fn to_text(&self) -> String {
        // A struct of numbers, texts and lists of them can always be written as TOML.
        let body = toml::to_string(self).unwrap_or_default();
        format!(
            "# Written by the commands below; not to be edited. The schema: experiments/src/calibrate/left_out.rs.\n\n{body}"
        )
    }
}

impl Stored {
    /// The results of fitting `calibration`.
    ///
    /// # Errors
    /// A row that cannot be simulated, a file that does not load.
    pub fn new(calibration: &Calibration, report: &Report, seed: u64) -> Result<Self> {
        let row = |row: &Residual| {
            let left_out = row.left_out.filter(|value| value.is_finite() && row.before.is_finite());
            let missing = || CommandError::failed(format!("{}: it has no answer, so it cannot be a row", row.id));
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
            digests: digests(calibration, &reference()?)?,
            rows: report.rows.iter().map(row).collect::<Result<_>>()?,
        })
    }

    /// Whether it belongs to `calibration`.
    pub fn is_of(&self, calibration: &Calibration) -> bool {
        let Self { device, stack, observations, .. } = self;
        (device, stack, observations) == (&calibration.device, &calibration.stack, &calibration.observations)
    }
}

/// The text of a file without calibrations that are to be `replaced` or no longer declared; `None` if it
/// has none of these.
fn without(text: &str, replaced: &[Calibration]) -> Result<Option<String>> {
    let Ok(mut file) = toml::from_str::<toml::Table>(text) else { return Ok(None) };
    let Some(toml::Value::Array(calibrations)) = file.get_mut("calibration") else { return Ok(None) };
    let (declared, all) = (observation::all()?, calibrations.len());
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

fn reference() -> Result<Reference> {
    Reference::load().map_err(CommandError::failed)
}

/// The reason why the row `id` may not be fitted; `None` if it may, or if the calibration's rows do not
/// belong to a paper.
fn unknown_row(calibration: &Calibration, id: &str, reference: &Reference) -> Option<String> {
    if !reference.digests().iter().any(|(file, _)| *file == calibration.rows) {
        return None;
    }
    match reference.row(id) {
        Some(row) if row.role() == Role::Fit => None,
        Some(row) => Some(format!("`{id}` has the role {}, and only rows of role fit are fitted", row.role())),
        None => {
            let hint = hint(id, reference.rows().iter().map(|row| row.id.as_str()));
            Some(format!("no row of {} is called `{id}`{hint}", calibration.rows))
        }
    }
}

/// The numbers of the lines equal to `head`, from one.
fn lines<'t>(text: &'t str, head: &'t str) -> impl Iterator<Item = usize> + 't {
    let heads = text.lines().enumerate().filter(move |(_, line)| line.trim() == head);
    heads.map(|(line, _)| line + 1)
}

/// The command that stores the errors of `calibration` in the committed file.
pub fn command(calibration: &Calibration, seed: u64) -> String {
    let Calibration { device, stack, .. } = calibration;
    let seed = if seed == 0 { String::new() } else { format!(" --seed {seed}") };
    format!("haversack calibrate fit {device} --stack {stack}{seed} --leave-one-out --store {FILE}")
}

/// The present digests of all files that the errors of `calibration` depend on.
///
/// # Errors
/// A file that does not load.
pub fn digests(calibration: &Calibration, reference: &Reference) -> Result<BTreeMap<String, String>> {
    let World { device, stack, system } = calibration.world()?;
    let mut digests = BTreeMap::from([(device.file, device.digest), (stack.file, stack.digest)]);
    digests.extend(system.map(|system| (system.file, system.digest)));
    for other in &calibration.others {
        let device = load(other)?;
        digests.insert(device.file, device.digest);
    }
    let file = &calibration.rows;
    let own = truth::embedded(file).map(|set| digest(set.rows));
    let of_paper = || reference.digests().iter().find(|(of, _)| of == file).map(|(_, digest)| digest.clone());
    digests.extend(own.or_else(of_paper).map(|digest| (file.clone(), digest)));
    digests.insert(observation::FILE.to_owned(), calibration.digest());
    Ok(digests)
}

/// The errors that ship with this version.
///
/// # Errors
/// A committed file that is wrong.
pub fn errors() -> Result<Errors> {
    errors_of(&LeftOut::committed()?)
}

/// The errors of a file, compared with the constants of this program.
///
/// # Errors
/// A calibration that does not load.
pub fn errors_of(file: &LeftOut) -> Result<Errors> {
    let reference = reference()?;
    let mut errors = Errors { source: (FILE, digest(TEXT)), ..Errors::default() };
    for calibration in observation::all()? {
        let stored = file.calibrations.iter().find(|stored| stored.is_of(&calibration));
        let is_current = match stored {
            Some(stored) => stored.digests == digests(&calibration, &reference)?,
            None => false,
        };
        if !is_current {
            let (title, command) = (calibration.title(), command(&calibration, 0));
            let what = match stored {
                Some(_) => "are older than the constants, and its rows are shown as fitted",
                None => "are not stored",
            };
            let remark = format!("Left-out errors of {title} {what}: run `{command}` and build again");
            errors.remarks.push((calibration.rows.clone(), remark));
        }
        let known = |error| if is_current { Known::LeftOut(error) } else { Known::Stale };
        let rows = stored.iter().flat_map(|stored| &stored.rows);
        errors.rows.extend(rows.map(|row| (row.id.clone(), known(row.error()))));
    }
    Ok(errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of one paper's calibration and one of another's rows, with its text.
    fn example() -> (LeftOut, String) {
        let declared = observation::all().unwrap();
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
        // Storing it again replaces the earlier version.
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
        assert!(twice.contains("`calibration.1.row.1.id`") && twice.contains("is given twice"), "{twice}");
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

    #[test]
    fn an_error_counts_only_beside_the_constants_that_it_was_found_with() {
        let (mut file, _) = example();
        let id = file.calibrations[1].rows[0].id.clone();
        let current = errors_of(&file).unwrap();
        assert_eq!(
            (current.of(&id), current.of("lenet5/forward")),
            (Some(Known::LeftOut(0.25)), Some(Known::LeftOut(0.25)))
        );
        assert_eq!((current.of("daf/table2/nothing"), current.remarks_of("daf").count()), (None, 0));
        // Sage's is not stored.
        let missing: Vec<&str> = current.remarks_of("sage").collect();
        assert_eq!(
            missing,
            [
                "Left-out errors of galaxy-s10 under sage-opencl (sage-table1) are not stored: run `haversack calibrate fit \
              galaxy-s10 --stack sage-opencl --leave-one-out --store experiments/left-out.toml` and build again"
            ]
        );
        let of_device = file.calibrations[1].digests.get_mut("devices/calibrations/jetson-agx-xavier.toml").unwrap();
        *of_device = "0".repeat(16);
        let stale = errors_of(&file).unwrap();
        assert_eq!((stale.of(&id), stale.of("lenet5/forward")), (Some(Known::Stale), Some(Known::LeftOut(0.25))));
        let remark = stale.remarks_of("daf").next().unwrap();
        assert!(
            remark.contains("jetson-agx-xavier under pytorch-cuda (daf-table2) are older than the constants"),
            "{remark}"
        );
        assert!(
            remark.contains("`haversack calibrate fit jetson-agx-xavier --stack pytorch-cuda --leave-one-out --store")
        );
    }
}
