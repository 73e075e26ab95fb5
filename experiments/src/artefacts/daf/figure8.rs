//! Figure 8: how much less memory DAF takes.

use super::setting::{BOARD, DafNetwork, NETWORKS, artefact, of_method, reported, scenario};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact = artefact("figure8", "reduction of memory where memory alone is short", run);

/// A network, and Original's footprint over a method's memory: DAF's as the paper counts and like for like, and ActNN's.
pub(super) type Reduction = (&'static str, [f64; 3]);

pub(super) fn reductions(context: &Context<'_>) -> Result<Vec<Reduction>> {
    let of_network = |network: DafNetwork| {
        let plain = scenario(context, BOARD, network)?;
        let run = |method: &str| context.run(&of_method(context, &plain, method)?);
        let (original, actnn, daf) = (run("original")?, run("actnn")?, run("daf")?);
        let over = |memory: Bytes| original.reserved.as_f64() / memory.as_f64().max(1.0);
        Ok((network.name, [reported(&daf), daf.reserved, actnn.reserved].map(over)))
    };
    NETWORKS.into_iter().map(of_network).collect()
}

pub(super) fn largest(reductions: &[Reduction]) -> f64 {
    reductions.iter().map(|(_, reduction)| reduction[0]).fold(0.0, f64::max)
}

fn run(context: &Context<'_>) -> Result<Outcome> {
    let found = reductions(context)?;
    let mut outcome = Outcome::of("network,daf_store,daf_footprint,actnn_footprint");
    outcome.number("daf/figure8/all/daf/memory-reduction", largest(&found));
    for one in &found {
        outcome.row(*one)?;
    }
    let series: [Quantity<Reduction>; 3] = [
        ("DAF's store, as the paper counts", |one| one.1[0]),
        ("DAF, whole footprint", |one| one.1[1]),
        ("ActNN, whole footprint", |one| one.1[2]),
    ];
    outcome.bars("", columns(found.iter().map(|one| one.0), &found, series), from_zero("reduction", "times"));
    Ok(outcome)
}
