//! Figure 9: the reduction over batch sizes.

use haversack_reports::figure::{Axis, Figure, Lines, Panel, Series};
use haversack_reports::table::Table;

use super::setting::{BOARD, Network, run as simulate, store, under};
use crate::reproduce::{Answer, ArtefactError, Context, Outcome};
use crate::scenario::Scenario;

/// The reduction may vary by so much.
const STABLE: f64 = 1.5;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let batches = context.reading_numbers("figure9-batches")?;
    let bits = context.reading_number("bits")?.to_string();
    let mut outcome = Outcome::default();
    let mut table = Table::new(["network", "batch", "original_mb", "store_mb", "reduction"]);
    let mut lines = Lines::new();
    let mut stable = true;
    let tokens = context.reading_text("roberta-tokens")?.parse()?;
    for (network, model, input) in
        [(Network::ResNetCifar, "resnet18-cifar", None), (Network::Roberta, "roberta-base-lora", Some(tokens))]
    {
        let mut points = Vec::new();
        for &batch in batches {
            let mut scenario = Scenario::new(BOARD, model);
            scenario.allocator = Some(haversack_training::AllocatorKind::Caching);
            scenario.input.clone_from(&input);
            scenario.batch = batch as u64;
            let original = simulate(context, &scenario)?.reserved.megabytes();
            let held = store(&simulate(context, &under(&scenario, "daf", &[("bits", &bits)]))?).megabytes();
            table.push([
                network.name().into(),
                batch.into(),
                original.into(),
                held.into(),
                (original / held).into(),
            ])?;
            points.push((batch, original / held));
        }
        let (low, high) = points.iter().fold((f64::MAX, 0.0f64), |(low, high), &(_, r)| (low.min(r), high.max(r)));
        stable &= high <= STABLE * low;
        lines = lines.series(Series::new(network.name(), points));
    }
    let row = context.rows.first().map(|row| row.id.clone());
    let row = row.ok_or_else(|| anyhow::anyhow!("figure 9 has no row"))?;
    context.predicate(&row)?;
    outcome.answer(row, Answer::Order(stable));
    outcome.figure = Some(
        Figure::new("DAF, figure 9: reduction of memory over batch sizes, Jetson AGX Xavier")
            .panel_size(560, 340)
            .panel(
                Panel::new(lines).x(Axis::new("batch").ticks_at(batches)).y(Axis::new(
                    "Original's footprint over DAF's store",
                )
                .unit("times")
                .from_zero()),
            ),
    );
    outcome.table = Some(table);
    outcome.notes.predicted.push(
        "All points. Weights do not shrink with the batch, so that the paper's way of counting favours small ones."
            .into(),
    );
    Ok(outcome)
}
