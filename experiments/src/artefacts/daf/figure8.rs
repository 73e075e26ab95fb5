//! Figure 8: how much less memory DAF takes.

use super::setting::{BOARD, DafNetwork, NETWORKS, artefact, of_method, reported, scenario};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact = artefact("figure8", "reduction of memory where memory alone is short", run);

/// Original's footprint over a method's memory, as the paper counts and like for like.
pub(super) struct Reduction {
    network: DafNetwork,
    daf: f64,
    daf_whole: f64,
    actnn: f64,
}

pub(super) fn reductions(context: &Context<'_>) -> Result<Vec<Reduction>> {
    let of_network = |network: DafNetwork| {
        let plain = scenario(context, BOARD, network)?;
        let run = |method: &str| context.run(&of_method(context, &plain, method)?);
        let (original, actnn, daf) = (run("original")?, run("actnn")?, run("daf")?);
        let over = |memory: Bytes| original.reserved.as_f64() / memory.as_f64().max(1.0);
        let (actnn, daf_whole) = (over(actnn.reserved), over(daf.reserved));
        Ok(Reduction { network, daf: over(reported(&daf)), daf_whole, actnn })
    };
    NETWORKS.into_iter().map(of_network).collect()
}

pub(super) fn largest(reductions: &[Reduction]) -> f64 {
    reductions.iter().map(|reduction| reduction.daf).fold(0.0, f64::max)
}

fn run(context: &Context<'_>) -> Result<Outcome> {
    let found = reductions(context)?;
    let mut outcome = Outcome::of("network,daf_store,daf_footprint,actnn_footprint");
    outcome.number("daf/figure8/all/daf/memory-reduction", largest(&found));
    for one in &found {
        outcome.row((one.network.name, [one.daf, one.daf_whole, one.actnn]))?;
    }
    let series: [(_, fn(&Reduction) -> f64); 3] = [
        ("DAF's store, as the paper counts", |one| one.daf),
        ("DAF, whole footprint", |one| one.daf_whole),
        ("ActNN, whole footprint", |one| one.actnn),
    ];
    outcome.bars("", columns(NETWORKS.map(|network| network.name), &found, series), from_zero("reduction", "times"));
    Ok(outcome)
}
