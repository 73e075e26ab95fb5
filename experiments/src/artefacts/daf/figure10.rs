//! Figure 10: how much faster DAF trains where time is short.

use super::setting::{ACCURACY, Network, PLATFORMS, on_platforms};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact =
    on_platforms("figure10", "speed-up where time alone is short, four platforms", run);

const NETWORKS: [Network; 3] = [Network::ResNetCifar, Network::Roberta, Network::Gpt2];

/// One bar.
pub(super) struct Speedup {
    device: &'static str,
    network: Network,
    /// The original iteration over DAF's.
    pub(super) speedup: f64,
}

/// Every platform and network.
pub(super) fn speedups(context: &Context<'_>) -> Result<Vec<Speedup>, ArtefactError> {
    let share = context.reading_number("kept-importance")?.to_string();
    let batches = context.reading_numbers("figure10-batches")?;
    let mut found = Vec::new();
    for &device in PLATFORMS {
        for (network, &batch) in NETWORKS.into_iter().zip(batches) {
            let mut scenario = Scenario::new(device, network.model());
            scenario.batch = batch as u64;
            let original = context.run(&scenario)?.iteration.seconds();
            let daf = under(&scenario, "daf", &[("bits", "32"), ("trained_share", &share)]);
            let speedup = original / context.run(&daf)?.iteration.seconds();
            found.push(Speedup { device, network, speedup });
        }
    }
    Ok(found)
}

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let found = speedups(context)?;
    let mut outcome = Outcome::default();
    if let Some((low, high)) = range(found.iter().map(|one| one.speedup)) {
        outcome.answer("daf/figure10/all/daf/speedup", Answer::Range(low, high));
    }
    outcome.not_modelled("daf/figure10/all/daf>elastictrainer,fixed8/accuracy-at-equal-time", ACCURACY);
    let mut table = Table::new(["device", "network", "speedup"]);
    let mut bars = Bars::new(PLATFORMS.iter().copied());
    for network in NETWORKS {
        let of_network = || found.iter().filter(|one| one.network == network);
        for one in of_network() {
            table.push([one.device.into(), network.name().into(), one.speedup.into()])?;
        }
        bars = bars.series(BarSeries::new(network.name(), of_network().map(|one| one.speedup).collect::<Vec<_>>()));
    }
    let figure = Figure::new("DAF, figure 10: speed-up of an iteration that trains half of what matters")
        .panel_size(820, 340)
        .panel(Panel::new(bars.show_values()).y(Axis::new("speed-up").unit("times").from_zero()));
    Ok(outcome.drawn(figure, table))
}
