//! Figure 8: how much less memory DAF takes.

use super::setting::{BOARD, Network, artefact, of_method, reported, scenario};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact = artefact("figure8", "reduction of memory where memory alone is short", run);

/// Original's footprint over a method's memory, as the paper counts and like for like.
pub(super) struct Reduction {
    network: Network,
    daf: f64,
    daf_whole: f64,
    actnn: f64,
}

pub(super) fn reductions(context: &Context<'_>) -> Result<Vec<Reduction>, ArtefactError> {
    let of_network = |network: Network| {
        let plain = scenario(context, BOARD, network)?;
        let run = |method: &str| context.run(&of_method(context, &plain, method)?);
        let (original, actnn, daf) = (run("original")?, run("actnn")?, run("daf")?);
        let over = |memory: Bytes| original.reserved.as_f64() / memory.as_f64().max(1.0);
        let (actnn, daf_whole) = (over(actnn.reserved), over(daf.reserved));
        Ok(Reduction { network, daf: over(reported(&daf)), daf_whole, actnn })
    };
    Network::ALL.into_iter().map(of_network).collect()
}

pub(super) fn largest(reductions: &[Reduction]) -> f64 {
    reductions.iter().map(|reduction| reduction.daf).fold(0.0, f64::max)
}

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let found = reductions(context)?;
    let mut outcome = Outcome::default();
    outcome.number("daf/figure8/all/daf/memory-reduction", largest(&found));
    let mut table = Table::new(["network", "daf_store", "daf_footprint", "actnn_footprint"]);
    for one in &found {
        table.push([one.network.name().into(), one.daf.into(), one.daf_whole.into(), one.actnn.into()])?;
    }
    let column = |of: fn(&Reduction) -> f64| found.iter().map(of).collect::<Vec<_>>();
    let bars = Bars::new(Network::ALL.map(Network::name))
        .series(BarSeries::new("DAF's store, as the paper counts", column(|one| one.daf)))
        .series(BarSeries::new("DAF, whole footprint", column(|one| one.daf_whole)))
        .series(BarSeries::new("ActNN, whole footprint", column(|one| one.actnn)))
        .show_values();
    let figure = Figure::new("DAF, figure 8: Original's footprint over each method's memory")
        .note("Two bits a value; accuracy is not measured here.")
        .panel_size(820, 340)
        .panel(Panel::new(bars).y(Axis::new("reduction").unit("times").from_zero()));
    Ok(outcome.drawn(figure, table))
}
