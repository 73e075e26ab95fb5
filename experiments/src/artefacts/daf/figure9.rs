//! Figure 9: the reduction over batch sizes.

use super::setting::{BOARD, RESNET_CIFAR, ROBERTA, artefact, store};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact = artefact("figure9", "reduction of memory over batch sizes", run);

fn run(context: &Context<'_>) -> Result<Outcome> {
    let batches = context.reading_numbers("figure9-batches")?;
    let bits = context.reading_number("bits")?.to_string();
    let mut outcome = Outcome::of("network,batch,original_mb,store_mb,reduction");
    let (mut points, mut ends) = (Vec::new(), Vec::new());
    let tokens = context.reading_text("roberta-tokens")?.parse()?;
    for (network, input) in [(RESNET_CIFAR, None), (ROBERTA, Some(tokens))] {
        let first = points.len();
        for &batch in batches {
            let mut scenario = Scenario::new(BOARD, network.model);
            scenario.allocator = Some(haversack_training::AllocatorKind::Caching);
            scenario.input.clone_from(&input);
            scenario.batch = batch as u64;
            let original = context.run(&scenario)?.reserved.megabytes();
            let held = store(&context.run(&under(&scenario, "daf", &[("bits", &bits)]))?).megabytes();
            outcome.row((network.name, [batch, original, held, original / held]))?;
            points.push((network.name, batch, original / held));
        }
        ends.extend(range(points[first..].iter().map(|point| point.2)));
    }
    outcome.quantity("smallest reduction", "", ends.iter().map(|(low, _)| *low));
    outcome.quantity("largest reduction", "", ends.iter().map(|(_, high)| *high));
    context.judge(&mut outcome, "daf/figure9/resnet18,roberta-base/daf/memory-reduction")?;
    let lines = curves(&points, |point| point.0, |point| Some((point.1, point.2)));
    let reduction = from_zero("Original's footprint over DAF's store", "times");
    outcome.panel("", lines, Axis::new("batch").ticks_at(batches), reduction);
    Ok(outcome)
}
