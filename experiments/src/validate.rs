//! `haversack validate`: simulates every row of measured sets, and reports the error of each.
//!
//! ```text
//! set.toml, rows.csv ─► Set        what was measured, how, and on which scenario
//!                        │
//!                      answers     what the simulator says of each row, each scenario run once
//!                        │
//!                      Report      errors by quantity and role: text, JSON, validation.csv, a picture
//! ```

mod answer;
mod memory;
mod report;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use haversack_devices::text::{alternatives, hint};
use haversack_reports::{Panel, Table, write_atomically};
use serde_json::{Map, Value, json};

use answer::answers;
use report::Report;

use crate::measured_set::{Row, Set, name_of};
use crate::output::Format;
use crate::papers::reference::Role;
use crate::truth::SETS;
use crate::work::OutputFolder;
use crate::{Cache, CommandError};

/// The table of all rows.
const TABLE: &str = "validation.csv";

/// The options of `validate`.
#[derive(Clone, Debug, Args)]
#[command(after_help = include_str!("../help/validate.txt"))]
pub struct ValidateOptions {
    /// Bundled measured sets by name, or folders with `set.toml` and `rows.csv` [default: all bundled sets]
    #[arg(value_name = "SET|DIR")]
    pub sets: Vec<String>,
    /// Only rows of this quantity, such as iteration_time_s
    #[arg(long, value_name = "QUANTITY")]
    pub what: Option<String>,
    /// Only rows of this role
    #[arg(long, value_name = "fit|check|withheld", value_parser = role)]
    pub role: Option<Role>,
    /// List the sets without running anything
    #[arg(long)]
    pub list: bool,
    /// Write `validation.csv` and a picture of each set to DIR
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Delete the listed files of another command or other sets from the folder
    #[arg(long, requires = "out")]
    pub overwrite: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

fn role(word: &str) -> Result<Role, String> {
    word.parse().map_err(|()| {
        let roles = Role::ALL.map(|role| role.to_string());
        let roles = || roles.iter().map(String::as_str);
        format!("expected {}{}", alternatives(roles()), hint(word, roles()))
    })
}

/// Simulates the rows and prints their errors.
///
/// # Errors
/// An unknown or wrong set; a folder that cannot be written. A large error is a result, not an error.
pub fn run(options: &ValidateOptions) -> Result<(), CommandError> {
    let mut sets = asked(&options.sets)?;
    if let Some(what) = &options.what {
        let known: BTreeSet<&str> =
            sets.iter().flat_map(|set| &set.rows).map(|row| row.quantity.name.as_str()).collect();
        if !known.contains(what.as_str()) {
            let (hint, known) = (hint(what, known.iter().copied()), alternatives(known.iter().copied()));
            return Err(CommandError::input(format!("--what: no row is of '{what}'{hint}; expected {known}")));
        }
    }
    for set in &mut sets {
        let is_wanted = |row: &Row| {
            options.what.as_ref().is_none_or(|what| *what == row.quantity.name)
                && options.role.is_none_or(|role| role == row.role)
        };
        set.rows.retain(is_wanted);
    }
    if options.list {
        return options.format.print(|| report::list(&sets), || sets.iter().map(report::about).collect());
    }
    let pictures = sets.iter().flat_map(|set| ["svg", "png"].map(|extension| format!("{}.{extension}", set.name)));
    let files: Vec<String> = pictures.chain([TABLE.to_owned()]).collect();
    let claim = |out: &PathBuf| OutputFolder::claim(out, &owner(options), options.overwrite, &files);
    let owned = options.out.as_ref().map(claim).transpose()?;
    let cache = Cache::new();
    let reports = sets.into_iter().map(|set| Ok(Report { answers: answers(&set, &cache)?, set }));
    let reports: Vec<Report> = reports.collect::<Result<_, CommandError>>()?;
    if let Some(folder) = &owned {
        write(folder, owner(options), &reports)?;
    }
    let text = || reports.iter().map(Report::text).collect::<Vec<_>>().join("\n");
    options.format.print(text, || reports.iter().map(Report::json).collect())
}

/// The errors of the bundled sets, by quantity and role; for each set a panel of its first quantity; and the finding.
///
/// # Errors
/// A set that does not load.
pub(crate) fn overview(cache: &Cache) -> Result<(Table, Vec<Panel>, String), CommandError> {
    let reports = SETS.iter().map(|set| {
        let set = Set::embedded(set)?;
        Ok(Report { answers: answers(&set, cache)?, set })
    });
    let reports: Vec<Report> = reports.collect::<Result<_, CommandError>>()?;
    let panels = reports.iter().filter_map(Report::glance).collect();
    Ok((report::errors(&reports).map_err(CommandError::failed)?, panels, report::finding(&reports)))
}

/// The named sets; without names, all bundled ones.
fn asked(names: &[String]) -> Result<Vec<Set>, CommandError> {
    if names.is_empty() {
        return SETS.iter().map(Set::embedded).collect();
    }
    let one = |name: &String| {
        if let Some(set) = SETS.iter().find(|set| set.name == name) {
            return Set::embedded(set);
        }
        if Path::new(name).is_dir() {
            return Set::read(Path::new(name));
        }
        let known = || SETS.iter().map(|set| set.name);
        let sets = alternatives(known());
        Err(CommandError::input(format!(
            "no measured set and no folder '{name}'{}; sets are {sets}",
            hint(name, known())
        )))
    };
    names.iter().map(one).collect()
}

/// The owner of a folder of results.
fn owner(options: &ValidateOptions) -> Map<String, Value> {
    let sets = options.sets.iter().map(|name| name_of(Path::new(name)));
    Map::from_iter([
        ("command".to_owned(), json!("validate")),
        ("sets".to_owned(), sets.collect()),
        ("what".to_owned(), json!(options.what)),
        ("role".to_owned(), json!(options.role.map(|role| role.to_string()))),
    ])
}

/// Writes the table, the pictures and the record.
fn write(folder: &OutputFolder, mut record: Map<String, Value>, reports: &[Report]) -> Result<(), CommandError> {
    let table = report::table(reports).map_err(CommandError::failed)?;
    write_atomically(&folder.path(TABLE), table.to_csv().as_bytes())?;
    let mut outputs = vec![TABLE.to_owned()];
    for report in reports {
        if let Some(picture) = report.picture() {
            let name = &report.set.name;
            picture.render()?.write(&folder.path(name))?;
            outputs.extend(["svg", "png"].map(|extension| format!("{name}.{extension}")));
        }
    }
    record.insert("version".to_owned(), json!(env!("CARGO_PKG_VERSION")));
    folder.record(record, &outputs)
}
