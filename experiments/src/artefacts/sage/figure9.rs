//! Figure 9: throughput on a single core and on infinitely many.

use super::setting::{RESNET, scenario};
use super::throughput::{SCHEMES, Scheme, throughputs};
use crate::artefacts::prelude::*;

const EXTREMES: [&str; 2] = ["single-core", "infinite-cores"];

/// The schemes without Sage, which merges with the better of its parts here.
fn schemes() -> &'static [Scheme] {
    &SCHEMES[..4]
}

pub(super) fn one(context: &Context<'_>, device: &str, row: &str) -> Result<Outcome> {
    let found = throughputs(context, device, RESNET, schemes())?;
    let mut outcome = Outcome::of("device,scheme,budget_mb,samples_per_s");
    for point in &found.points {
        outcome.row((device, point.scheme, point.megabytes, point.rate))?;
    }
    // Where both fit and memory is short.
    let is_short = found.points.iter().map(|point| point.percent < 100.0);
    let pairs = found.of("DGC").zip(found.of("DGA")).zip(is_short).filter(|(_, is_short)| *is_short);
    let (dgc, dga): (Vec<f64>, Vec<f64>) = pairs.filter_map(|((dgc, dga), _)| dgc.zip(dga)).unzip();
    outcome.quantity("throughput of DGC", "samples/s", dgc);
    outcome.quantity("throughput of DGA", "samples/s", dga);
    context.judge(&mut outcome, row)?;
    found.draw(&mut outcome, "");
    Ok(outcome)
}

pub(super) fn both(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("device,scheme,least_memory_mb");
    let mut reached = vec![Vec::new(); schemes().len()];
    for device in EXTREMES {
        let scenario = scenario(context, device, RESNET)?;
        for ((name, policy, set), reached) in schemes().iter().zip(&mut reached) {
            let memory = context.least(&under(&scenario, policy, set))?.megabytes();
            outcome.row((device, *name, memory))?;
            reached.push(memory);
        }
        throughputs(context, device, RESNET, schemes())?.draw(&mut outcome, &spelled(device));
    }
    for ((name, ..), reached) in schemes().iter().zip(reached) {
        outcome.quantity(&format!("least memory of {name}"), "MB", reached);
    }
    context.judge(&mut outcome, "sage/figure9/all/dynamic-vs-static/lowest-reachable-memory")?;
    Ok(outcome)
}
