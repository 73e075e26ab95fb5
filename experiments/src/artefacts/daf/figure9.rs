//! Figure 9: the reduction over batch sizes.

use super::setting::{BOARD, Network, artefact, store};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact = artefact("figure9", "reduction of memory over batch sizes", run);

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let batches = context.reading_numbers("figure9-batches")?;
    let bits = context.reading_number("bits")?.to_string();
    let mut outcome = Outcome::default();
    let mut table = Table::new(["network", "batch", "original_mb", "store_mb", "reduction"]);
    let mut lines = Lines::new();
    let mut ends = Vec::new();
    let tokens = context.reading_text("roberta-tokens")?.parse()?;
    for (network, input) in [(Network::ResNetCifar, None), (Network::Roberta, Some(tokens))] {
        let mut points = Vec::new();
        for &batch in batches {
            let mut scenario = Scenario::new(BOARD, network.model());
            scenario.allocator = Some(haversack_training::AllocatorKind::Caching);
            scenario.input.clone_from(&input);
            scenario.batch = batch as u64;
            let original = context.run(&scenario)?.reserved.megabytes();
            let held = store(&context.run(&under(&scenario, "daf", &[("bits", &bits)]))?).megabytes();
            let reduction = original / held;
            table.push([network.name().into(), batch.into(), original.into(), held.into(), reduction.into()])?;
            points.push((batch, reduction));
        }
        ends.extend(range(points.iter().map(|(_, reduction)| *reduction)));
        lines = lines.series(Series::new(network.name(), points));
    }
    outcome.quantity("smallest reduction", "", ends.iter().map(|(low, _)| *low));
    outcome.quantity("largest reduction", "", ends.iter().map(|(_, high)| *high));
    context.judge(&mut outcome, "daf/figure9/resnet18,roberta-base/daf/memory-reduction")?;
    let reduction = Axis::new("Original's footprint over DAF's store").unit("times").from_zero();
    let figure = Figure::new("DAF, figure 9: reduction of memory over batch sizes, Jetson AGX Xavier")
        .panel_size(560, 340)
        .panel(Panel::new(lines).x(Axis::new("batch").ticks_at(batches)).y(reduction));
    Ok(outcome.drawn(figure, table))
}
