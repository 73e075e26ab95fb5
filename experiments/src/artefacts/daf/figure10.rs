//! Figure 10: how much faster DAF trains where time is short.

use super::setting::{DafNetwork, GPT2, PLATFORMS, RESNET_CIFAR, ROBERTA};
use super::{accuracy, equal_time};
use crate::artefacts::prelude::*;

/// The row about accuracy.
const AT_EQUAL_TIME: &str = "daf/figure10/all/daf>elastictrainer,fixed8/accuracy-at-equal-time";

/// The networks of the figure.
const SHOWN: [DafNetwork; 3] = [RESNET_CIFAR, ROBERTA, GPT2];

/// The original iteration over DAF's: the platform, the network's name, and the ratio.
pub(super) type Speedup = (&'static str, &'static str, f64);

/// Every network and platform.
pub(super) fn speedups(context: &Context<'_>) -> Result<Vec<Speedup>> {
    let share = context.reading_number("kept-importance")?.to_string();
    let batches = context.reading_numbers("figure10-batches")?;
    let mut found = Vec::new();
    for (network, &batch) in SHOWN.into_iter().zip(batches) {
        for &device in PLATFORMS {
            let scenario = Scenario { batch: batch as u64, ..Scenario::new(device, network.model) };
            let original = context.run(&scenario)?.iteration.seconds();
            let daf = under(&scenario, "daf", &[("bits", "32"), ("trained_share", &share)]);
            found.push((device, network.name, original / context.run(&daf)?.iteration.seconds()));
        }
    }
    Ok(found)
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut records = Records::of("device,network,speedup");
    speedups(context)?.into_iter().try_for_each(|found| records.row(found))?;
    let mut outcome = Outcome::default();
    let learned = equal_time::of_methods(context)?;
    equal_time::compare(&mut outcome, AT_EQUAL_TIME, &learned);
    let mut outcome = show(context, records, outcome)?;
    equal_time::draw(&mut outcome, &learned);
    accuracy::draw(outcome, &learned)
}
