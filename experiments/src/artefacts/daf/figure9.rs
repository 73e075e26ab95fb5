//! Figure 9: the reduction over batch sizes.

use super::accuracy::{self, Learned};
use super::setting::{BOARD, RESNET_CIFAR, ROBERTA, of_method, store};
use crate::artefacts::learning::Training;
use crate::artefacts::prelude::*;

/// Stand-ins under Original and DAF with mini-batches of each size; if not everything is asked for, of their own alone.
fn learned(context: &Context<'_>, batches: &[f64]) -> Result<Vec<Learned>> {
    let mut learned = accuracy::learned(context, |kind, stand_in| {
        let sizes = batches.iter().map(|&batch| batch as u64);
        let own = stand_in.scenario.batch;
        let mut ways = Vec::new();
        for batch in sizes.filter(|&batch| context.full || batch == own) {
            let stand_in = if batch == own { stand_in.clone() } else { stand_in.clone().for_batch(batch) };
            for (method, name) in [("original", "Original"), ("daf", "DAF")] {
                let scenario = of_method(context, kind, &stand_in.scenario, method)?;
                ways.push((format!("{name}, batch {batch}"), Training { stand_in: stand_in.clone(), scenario }));
            }
        }
        Ok(ways)
    })?;
    // Of each size DAF is compared with Original.
    learned.iter_mut().for_each(|one| one.group = 2);
    Ok(learned)
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let batches = context.reading_numbers("figure9-batches")?;
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
            let held = store(&context.run(&of_method(context, network.kind(), &scenario, "daf")?)?).megabytes();
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
    accuracy::draw(context, &mut outcome, &learned(context, batches)?)?;
    Ok(outcome)
}
