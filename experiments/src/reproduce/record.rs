//! `run.json`: what a reproduction was made of. No time, host, path or job count.

use std::collections::{BTreeMap, BTreeSet};

use haversack_devices::{ConstantEntry, Kind};
use haversack_traces::footprint::FootprintTable;
use haversack_traces::usage::UsageModel;
use serde::Serialize;

use super::artefact::Artefact;
use super::content::Content;
use super::error::ReproduceError;
use super::readings::Reading;
use super::reference::Role;
use super::summary::Tally;

/// A fitted constant.
#[derive(Clone, Debug, Serialize)]
struct Constant<'a> {
    name: &'a str,
    value: f64,
    unit: &'a str,
    file: &'a str,
    source: &'a str,
}

/// A declared reading, with its paper.
#[derive(Clone, Debug, Serialize)]
struct Declared<'a> {
    paper: &'a str,
    #[serde(flatten)]
    reading: &'a Reading,
}

/// The calibrations that artefacts use: their digests and what of them was fitted.
#[derive(Clone, Debug, Default)]
pub(super) struct Calibrations {
    pub(super) digests: BTreeMap<String, String>,
    pub(super) fitted: Vec<ConstantEntry>,
}

impl Calibrations {
    /// Of these artefacts, each file once and in order.
    ///
    /// # Errors
    /// A name that no calibration has, or one that does not load.
    pub(super) fn of(artefacts: &[Artefact]) -> Result<Self, ReproduceError> {
        let named = |names: fn(&Artefact) -> &'static [&'static str]| -> BTreeSet<&str> {
            artefacts.iter().flat_map(names).copied().collect()
        };
        let mut all = Self::default();
        for id in named(|artefact| artefact.devices) {
            let device = haversack_devices::load(id)?;
            all.fitted.extend(device.entries());
            all.digests.insert(device.file, device.digest);
        }
        for id in named(|artefact| artefact.stacks) {
            let stack = haversack_devices::load_stack(id)?;
            all.fitted.extend(stack.entries());
            all.digests.insert(stack.file, stack.digest);
        }
        for id in named(|artefact| artefact.systems) {
            let system = haversack_devices::load_system(id)?;
            all.fitted.extend(system.entries());
            all.digests.insert(system.file, system.digest);
        }
        if artefacts.iter().any(|artefact| artefact.users) {
            all.fitted.extend(UsageModel::built_in()?.entries());
            all.fitted.extend(FootprintTable::built_in()?.entries());
        }
        all.fitted.retain(|entry| entry.kind == Kind::Fitted);
        Ok(all)
    }
}

/// The file, with its keys in this order.
#[derive(Serialize)]
struct Record<'a> {
    program: &'static str,
    version: &'static str,
    command: &'static str,
    seed: u64,
    full: bool,
    selection: &'a [String],
    artefacts: Vec<String>,
    calibrations: &'a BTreeMap<String, String>,
    reference: BTreeMap<&'a str, &'a str>,
    fitted_constants_count: usize,
    fit_rows: usize,
    declared_readings_count: usize,
    fitted_constants: Vec<Constant<'a>>,
    declared_readings: Vec<Declared<'a>>,
    summary: &'a [Tally],
}

/// The record as JSON.
pub(super) fn json(content: &Content<'_>) -> Result<String, serde_json::Error> {
    let fitted = content.calibrations.fitted.iter().map(|entry| Constant {
        name: &entry.name,
        value: entry.value,
        unit: entry.unit,
        file: &entry.file,
        source: &entry.source,
    });
    let record = Record {
        program: "haversack",
        version: env!("CARGO_PKG_VERSION"),
        command: "reproduce",
        seed: content.options.seed,
        full: content.options.full,
        selection: content.selectors,
        artefacts: content.finished.iter().map(|f| format!("{}/{}", f.paper, f.artefact)).collect(),
        calibrations: &content.calibrations.digests,
        reference: content.reference.digests().iter().map(|(file, digest)| (*file, digest.as_str())).collect(),
        fitted_constants_count: content.calibrations.fitted.len(),
        fit_rows: content.cells.iter().filter(|cell| cell.role == Role::Fit).count(),
        declared_readings_count: content.declared.len(),
        fitted_constants: fitted.collect(),
        declared_readings: content.declared.iter().map(|(paper, reading)| Declared { paper, reading }).collect(),
        summary: &content.tallies,
    };
    serde_json::to_string_pretty(&record).map(|json| json + "\n")
}
