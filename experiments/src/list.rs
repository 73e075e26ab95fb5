//! `haversack list`: what scenarios can name, one id a line first, then its description.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use haversack_bench::Kernel;
use haversack_policies::entry::Entry;
use haversack_policies::registry::POLICIES;
use haversack_reports::text_table::{Column, TextTable};
use haversack_workloads::models::MODELS;

use crate::artefacts::ARTEFACTS;
use crate::error::CommandError;
use crate::output::print;
use crate::reproduce::ReproduceError;
use crate::reproduce::reference::Reference;

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Devices that train
    Devices,
    /// Networks that are trained
    Models,
    /// Memory policies, with their parameters
    Policies,
    /// Software stacks
    Stacks,
    /// Operating systems
    Systems,
    /// Figures and tables of the papers
    Artefacts,
    /// Kernels that really run
    Kernels,
}

/// What `list` is asked for.
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = "Example:\n  haversack list policies")]
pub struct ListOptions {
    /// What to list: one id a line, then its description
    pub what: Listed,
}

/// Prints the list.
///
/// # Errors
/// A built-in calibration that does not load, a `HAVERSACK_SIMD` that this machine lacks, or a standard output that
/// cannot be written.
pub fn run(options: ListOptions) -> Result<(), CommandError> {
    let rows: Vec<(String, String)> = match options.what {
        Listed::Devices => calibrations(haversack_devices::list()?),
        Listed::Stacks => calibrations(haversack_devices::list_stacks()?),
        Listed::Systems => calibrations(haversack_devices::list_systems()?),
        Listed::Models => MODELS.iter().map(|model| (model.id.to_owned(), model.about.to_owned())).collect(),
        Listed::Policies => POLICIES.iter().map(policy).collect(),
        Listed::Artefacts => artefacts()?,
        Listed::Kernels => kernels()?,
    };
    let mut table = TextTable::new([Column::left(0).fitted(), Column::left(0).after(2)]);
    for (id, line) in rows {
        table.row([id, line]);
    }
    print(&table.to_string())
}

fn calibrations(listed: Vec<haversack_devices::Listing>) -> Vec<(String, String)> {
    listed.into_iter().map(|listing| (listing.id.to_owned(), listing.line)).collect()
}

/// Every kernel that can be measured here.
fn kernels() -> Result<Vec<(String, String)>, CommandError> {
    let row = |kernel: &Kernel| (kernel.id().to_owned(), kernel.about().to_owned());
    Ok(haversack_bench::catalogue().map_err(CommandError::input)?.iter().map(row).collect())
}

/// A policy with its source and its parameters.
fn policy(entry: &&Entry) -> (String, String) {
    let mut line = format!("{} ({})", entry.about, entry.citation);
    for (place, parameter) in entry.parameters.iter().enumerate() {
        let before = if place == 0 { "; parameters: " } else { "; " };
        // Writing to a text cannot fail.
        let _ = write!(line, "{before}{} = {}", parameter.name(), parameter.help());
    }
    (entry.id.to_owned(), line)
}

/// Every artefact that can be selected, in the order of the reference.
fn artefacts() -> Result<Vec<(String, String)>, CommandError> {
    let reference = Reference::load().map_err(ReproduceError::from)?;
    let mut rows = Vec::new();
    for (paper, id) in reference.artefacts() {
        let known = ARTEFACTS.iter().find(|artefact| artefact.paper == paper && artefact.id == id);
        rows.push((format!("{paper}/{id}"), known.map_or("not modelled yet", |artefact| artefact.about).to_owned()));
    }
    // Those of the comparison belong to no paper's reference.
    let others = ARTEFACTS.iter().map(|artefact| (format!("{}/{}", artefact.paper, artefact.id), artefact.about));
    for (id, about) in others {
        if !rows.iter().any(|(known, _)| *known == id) {
            rows.push((id, about.to_owned()));
        }
    }
    Ok(rows)
}
