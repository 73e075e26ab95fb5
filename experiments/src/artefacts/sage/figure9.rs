//! Figure 9: throughput on a single core and on infinitely many.

use super::setting::{RESNET, artefact, scenario};
use super::throughput::{Curves, SCHEMES, Scheme, curves};
use crate::artefacts::prelude::*;

pub(super) static BOTH: Artefact = Artefact {
    devices: &EXTREMES,
    ..artefact("figure9", "whether dynamic schemes reach lower than static ones on the two extremes", both)
};
pub(super) static SINGLE_CORE: Artefact = Artefact {
    devices: &["single-core"],
    ..artefact("figure9a", "throughput against memory on a single core", |context| {
        one(context, "single-core", "9a", "sage/figure9a/single-core/dga>dgc/throughput")
    })
};
pub(super) static INFINITE_CORES: Artefact = Artefact {
    devices: &["infinite-cores"],
    ..artefact("figure9b", "throughput against memory on infinitely many cores", |context| {
        one(context, "infinite-cores", "9b", "sage/figure9b/infinite-cores/dgc>dga/throughput")
    })
};

const EXTREMES: [&str; 2] = ["single-core", "infinite-cores"];
const DGC: usize = 2;
const DGA: usize = 3;

/// The schemes without Sage, which merges with the better of its parts here.
fn schemes() -> &'static [Scheme] {
    &SCHEMES[..4]
}

fn one(context: &Context<'_>, device: &str, number: &str, row: &str) -> Result<Outcome, ArtefactError> {
    let found = curves(context, device, RESNET, schemes())?;
    let mut outcome = Outcome::default();
    // Where both fit and memory is short.
    let curve = |scheme: usize| found.by_scheme[scheme].iter();
    let pairs = curve(DGC).zip(curve(DGA)).zip(&found.percents).filter(|(_, percent)| **percent < 100.0);
    let (dgc, dga): (Vec<f64>, Vec<f64>) = pairs.filter_map(|((dgc, dga), _)| Some(((*dgc)?, (*dga)?))).unzip();
    outcome.quantity("throughput of DGC", "samples/s", dgc);
    outcome.quantity("throughput of DGA", "samples/s", dga);
    context.judge(&mut outcome, row)?;
    outcome.table = Some(data(&found, device)?);
    let title = format!("Sage, figure {number}: ResNet-50 on {device}");
    outcome.figure = Some(Figure::new(title).panel_size(560, 340).panel(found.panel("", schemes())));
    Ok(outcome)
}

fn data(curves: &Curves, device: &str) -> Result<Table, ArtefactError> {
    let mut table = Table::new(["device", "scheme", "budget_mb", "samples_per_s"]);
    for ((name, _, _), curve) in SCHEMES.iter().zip(&curves.by_scheme) {
        for (&percent, value) in curves.percents.iter().zip(curve) {
            table.push([device.into(), (*name).into(), curves.megabytes(percent).into(), (*value).into()])?;
        }
    }
    Ok(table)
}

fn both(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut table = Table::new(["device", "scheme", "least_memory_mb"]);
    let mut figure = Figure::new("Sage, figure 9: ResNet-50 on two extreme machines").panel_size(430, 320);
    let mut reached = vec![Vec::new(); schemes().len()];
    for device in EXTREMES {
        let scenario = scenario(context, device, RESNET)?;
        for ((name, policy, set), reached) in schemes().iter().zip(&mut reached) {
            let memory = context.least(&under(&scenario, policy, set))?.megabytes();
            table.push([device.into(), (*name).into(), memory.into()])?;
            reached.push(memory);
        }
        let found = curves(context, device, RESNET, schemes())?;
        figure = figure.panel(found.panel(device, schemes()));
    }
    for ((name, ..), reached) in schemes().iter().zip(reached) {
        outcome.quantity(&format!("least memory of {name}"), "MB", reached);
    }
    context.judge(&mut outcome, "sage/figure9/all/dynamic-vs-static/lowest-reachable-memory")?;
    Ok(outcome.drawn(figure, table))
}
