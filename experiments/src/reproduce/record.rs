//! `run.json`: what a reproduction was made of. No time, host, path or job count.

use std::collections::{BTreeMap, BTreeSet};

use haversack_devices::{ConstantEntry, Kind};
use haversack_traces::{FootprintTable, UsageModel};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Artefact, Content, ReproduceOptions, Sources};
use crate::papers::summary::Total;
use crate::papers::{Reading, Role, accounts};
use crate::{CommandError, Result, measured};

/// The calibrations that artefacts use: their digests and what of them was fitted; and the measured values that they read.
#[derive(Clone, Debug, Default)]
pub(super) struct Calibrations {
    pub(super) digests: BTreeMap<String, String>,
    pub(super) fitted: Vec<ConstantEntry>,
    /// Files of measured values, with their digests.
    pub(super) measured: BTreeMap<String, String>,
}

impl Calibrations {
    /// Of these artefacts, each file once and in order.
    ///
    /// # Errors
    /// A name that no calibration has, or one that does not load.
    pub(super) fn of(artefacts: &[Artefact]) -> Result<Self> {
        let named = |names: fn(&Artefact) -> &'static [&'static str]| -> BTreeSet<&str> {
            artefacts.iter().flat_map(names).copied().collect()
        };
        let mut all = Self::default();
        let mut add = |entries: Vec<ConstantEntry>, file: String, digest: String| {
            all.fitted.extend(entries);
            all.digests.insert(file, digest);
        };
        for id in named(|artefact| artefact.devices) {
            let device = haversack_devices::load(id)?;
            add(device.entries(), device.file, device.digest);
        }
        for id in named(|artefact| artefact.stacks) {
            let stack = haversack_devices::load_stack(id)?;
            add(stack.entries(), stack.file, stack.digest);
        }
        for id in named(|artefact| artefact.systems) {
            let system = haversack_devices::load_system(id)?;
            add(system.entries(), system.file, system.digest);
        }
        for place in named(|artefact| artefact.measured) {
            // What was never committed is measured first, and read by no run before that.
            let source = measured::source(place).ok();
            all.measured.extend(source.map(|(file, digest)| (file.to_owned(), digest)));
        }
        if artefacts.iter().any(|artefact| artefact.users) {
            all.fitted.extend(UsageModel::built_in().map_err(CommandError::failed)?.entries());
            all.fitted.extend(FootprintTable::built_in().map_err(CommandError::failed)?.entries());
        }
        all.fitted.retain(|entry| entry.kind == Kind::Fitted);
        Ok(all)
    }
}

/// A declared reading, with its paper.
#[derive(Clone, Debug, Serialize)]
struct Declared<'a> {
    paper: &'a str,
    #[serde(flatten)]
    reading: &'a Reading,
}

/// The command that writes the record.
pub(super) const COMMAND: &str = "reproduce";
/// The key of what was asked for.
pub(super) const SELECTION: &str = "selection";

/// What of the record says whose the folder is: the selection is not of it.
pub(super) fn owner(options: &ReproduceOptions) -> Map<String, Value> {
    let shard = options.shard.map(|shard| shard.to_string());
    let keys = [
        ("command", json!(COMMAND)),
        ("seed", json!(options.seed)),
        ("full", json!(options.full)),
        ("shard", json!(shard)),
    ];
    let trace = options.trace.as_ref().map(|trace| ("trace", json!(trace.display().to_string())));
    let learn = options.learns_one().then(|| ("learn", json!(true)));
    keys.into_iter().chain(trace).chain(learn).map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The part of the record that says what was asked for.
pub(super) fn selection(selectors: &[String]) -> Map<String, Value> {
    Map::from_iter([(SELECTION.to_owned(), json!(selectors))])
}

/// The record as JSON, with its keys in this order.
pub(super) fn record(content: &Content<'_>) -> Result<Map<String, Value>, serde_json::Error> {
    let Content { sources, finished, calibrations, declared, .. } = content;
    let Sources { options, reference, left_out, .. } = *sources;
    let constant = |entry: &ConstantEntry| {
        let ConstantEntry { name, value, unit, file, source, .. } = entry;
        json!({ "name": name, "value": value, "unit": unit, "file": file, "source": source })
    };
    let digests: BTreeMap<_, _> = reference.digests().iter().map(|(file, digest)| (*file, digest)).collect();
    let readings: Vec<_> = declared.iter().map(|(paper, reading)| Declared { paper, reading }).collect();
    let mut record: Map<String, Value> = serde_json::from_value(json!({
        "program": "haversack",
        "version": env!("CARGO_PKG_VERSION"),
        "command": COMMAND,
        "seed": options.seed,
        "full": options.full,
        "shard": options.shard.map(|shard| shard.to_string()),
        SELECTION: content.selectors,
        "artefacts": finished.iter().map(|f| format!("{}/{}", f.paper, f.artefact)).collect::<Vec<_>>(),
        "calibrations": calibrations.digests,
        "reference": digests,
        "fitted_constants_count": calibrations.fitted.len(),
        "fit_rows": content.cells.iter().filter(|cell| cell.role() == Role::Fit).count(),
        "declared_readings_count": declared.len(),
        "fitted_constants": calibrations.fitted.iter().map(constant).collect::<Vec<_>>(),
        "declared_readings": readings,
        "accounting": accounts(&calibrations.fitted, declared),
        "total": Total::of(&content.cells),
        "summary": content.tallies,
    }))?;
    if options.learns_one() {
        record.insert("learn".to_owned(), json!(true));
    }
    if let Some(trace) = &options.trace {
        record.insert("trace".to_owned(), json!(trace.display().to_string()));
    }
    let (file, digest) = &left_out.source;
    record.insert("left_out".to_owned(), json!({ *file: digest }));
    if !calibrations.measured.is_empty() {
        record.insert("measured".to_owned(), json!(calibrations.measured));
    }
    Ok(record)
}
