//! Figure 10: how much faster DAF trains where time is short.

use haversack_reports::figure::{Axis, BarSeries, Bars, Figure, Panel};
use haversack_reports::table::Table;

use super::PLATFORMS;
use super::setting::{Network, run as simulate, under};
use super::table1::ACCURACY;
use crate::reproduce::{Answer, ArtefactError, Context, Outcome};
use crate::scenario::Scenario;

/// What the model cannot know of the speed-ups.
pub(super) const LEFT_OUT: &str = "Which weights can go untrained at what cost in accuracy, and epochs saved: the paper's speed-ups are to an accuracy, these are of an iteration that trains the declared share of importance. An iteration can gain at most forward alone against all of it: about 3 times where products take all the time, more where backward has more small kernels than forward, as on the phones.";

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
            let original = simulate(context, &scenario)?.iteration.seconds();
            let daf = under(&scenario, "daf", &[("bits", "32"), ("trained_share", &share)]);
            let speedup = original / simulate(context, &daf)?.iteration.seconds();
            found.push(Speedup { device, network, speedup });
        }
    }
    Ok(found)
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let found = speedups(context)?;
    let mut outcome = Outcome::default();
    let (low, high) =
        found.iter().fold((f64::MAX, 0.0f64), |(low, high), one| (low.min(one.speedup), high.max(one.speedup)));
    outcome.answer("daf/figure10/all/daf/speedup", Answer::Range(low, high));
    let accuracy = "daf/figure10/all/daf>elastictrainer,fixed8/accuracy-at-equal-time";
    context.predicate(accuracy)?;
    outcome.answer(accuracy, Answer::NotModelled(ACCURACY.into()));
    let mut table = Table::new(["device", "network", "speedup"]);
    let mut bars = Bars::new(PLATFORMS.iter().copied());
    for network in NETWORKS {
        let of_network = || found.iter().filter(|one| one.network == network);
        for one in of_network() {
            table.push([one.device.into(), network.name().into(), one.speedup.into()])?;
        }
        bars = bars.series(BarSeries::new(network.name(), of_network().map(|one| one.speedup).collect::<Vec<_>>()));
    }
    outcome.figure = Some(
        Figure::new("DAF, figure 10: speed-up of an iteration that trains half of what matters")
            .panel_size(820, 340)
            .panel(Panel::new(bars.show_values()).y(Axis::new("speed-up").unit("times").from_zero())),
    );
    outcome.table = Some(table);
    outcome
        .notes
        .predicted
        .push("All bars, from the declared share of importance; nothing is fitted to the figure.".into());
    outcome.notes.left_out.push(LEFT_OUT.to_owned());
    outcome.notes.misses.push("Both ends: RoBERTa's classification head holds more than half of all trained values, so that the prior trains it alone and backward all but vanishes; GPT-2's adapters are alike and backward is cut in half at most. Importance that is measured would not be so lopsided.".into());
    Ok(outcome)
}
