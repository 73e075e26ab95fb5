//! Table 4: the gradient of a convolution's weight on the DSP, over batches and sizes of its map.

use haversack_devices::units::{Bytes, Flops, Nanos};
use haversack_devices::work::{OperatorKind, Precision, Product, ProductRole, Traffic, Work};
use haversack_devices::{Device, Stack};
use haversack_reports::figure::{Axis, Figure, Lines, Look, Panel, Series, Stroke};
use haversack_reports::table::{Cell, Table};

use super::setting::compare_with_null;
use crate::reproduce::{ArtefactError, Context, Outcome, mandheling_table4_null};

const SIZES: [u64; 3] = [8, 16, 32];
const BATCHES: [u64; 6] = [2, 4, 8, 16, 32, 64];
const CHANNELS: u64 = 64;
const TAPS: [u64; 2] = [3, 3];

/// The size of the map and the batch of a row: `conv-64x64-8x8`, `batch-32`.
pub(crate) fn setting(subject: &str, method: &str) -> Option<(u64, u64)> {
    let size = subject.rsplit('-').next()?.split('x').next()?.parse().ok()?;
    Some((size, method.strip_prefix("batch-")?.parse().ok()?))
}

/// The time of the gradient, called alone.
pub(crate) fn called_alone(device: &Device, stack: &Stack, size: u64, batch: u64) -> Option<Nanos> {
    let (dsp, on_dsp) = device.offloader(stack).ok()?;
    let product = Product {
        role: ProductRole::WeightGradient,
        inputs: CHANNELS,
        outputs: CHANNELS,
        input_size: [size, size],
        output_size: [size, size],
        taps: TAPS,
    };
    let weights = CHANNELS * CHANNELS * TAPS[0] * TAPS[1];
    let operands = Bytes(2 * batch * CHANNELS * size * size + weights);
    let work = Work {
        flops: Flops(2.0 * product.multiply_adds(batch)),
        traffic: Traffic { dram: operands, shared: Bytes::ZERO },
        working_set: operands,
        parallelism: weights as f64,
        samples: batch,
        product: Some(product),
        ..Work::empty(OperatorKind::Convolution, Precision::Int8)
    };
    Some(dsp.call() + dsp.cost(&work, &on_dsp).alone())
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    // The operator is fixed by `called_alone`; the reading says which it is.
    let operator = context.reading_text("table4-operator")?;
    let (device, stack) = (context.device("xiaomi-10")?, context.stack("mandheling")?);
    let mut outcome = Outcome::default();
    let mut table = Table::new(["map", "batch", "simulated_ms", "paper_ms", "null_ms"]);
    let mut lines = Lines::new();
    for size in SIZES {
        let (mut simulated, mut paper) = (Vec::new(), Vec::new());
        for batch in BATCHES {
            let row = format!("mandheling/table4/conv-64x64-{size}x{size}/batch-{batch}/latency");
            let time = called_alone(&device, &stack, size, batch);
            let milliseconds = time.ok_or_else(|| anyhow::anyhow!("the Xiaomi 10 has no DSP"))?.seconds() * 1e3;
            let given = context.row(&row)?.number();
            let null = mandheling_table4_null(context.reference, &row);
            let cell = |value: Option<f64>| value.map_or(Cell::Empty, Cell::Number);
            table.push([size.into(), batch.into(), milliseconds.into(), cell(given), cell(null)])?;
            simulated.push((batch as f64, milliseconds));
            paper.extend(given.map(|given| (batch as f64, given)));
            if let Some(null) = null {
                outcome.null(row.clone(), null);
            }
            outcome.number(row, milliseconds);
        }
        let name = format!("{size}×{size}");
        lines = lines.series(Series::new(name.as_str(), simulated));
        lines = lines.series(Series::new(name, paper).look(Look::Hatched).stroke(Stroke::None));
    }
    outcome.figure =
        Some(
            Figure::new("Mandheling, table 4: a convolution of 64 channels on the Hexagon 698")
                .note(format!("Read as {operator}. Batches whose latency is withheld have no point of the paper."))
                .panel_size(680, 400)
                .panel(
                    Panel::new(lines)
                        .x(Axis::new("batch").log().ticks_at(BATCHES.map(|batch| batch as f64)))
                        .y(Axis::new("latency").unit("ms").log()),
                ),
        );
    outcome.table = Some(table);
    compare_with_null(context, &mut outcome, &[("latency", "table 4")]);
    notes(&mut outcome);
    Ok(outcome)
}

fn notes(outcome: &mut Outcome) {
    let notes = &mut outcome.notes;
    notes.calibrated.push("Four constants of the DSP on the fit rows of the table: the call, operations a cycle, and the rates at which a filter streams from L2 and from DRAM. The last two rest on one fit row each.".into());
    notes.predicted.push("Where the cliffs are: above a batch of 4 the library pads the depth to a multiple of 32, and the gradient of the output, which is the filter, then takes 128 KiB at 8×8, 512 KiB at 16×16 and 2 MiB at 32×32 beside a tightly coupled memory of 256 KiB and an L2 of 1 MiB. Every check and withheld cell.".into());
    notes.predicted.push("Cells at an edge. 16×16 at batch 64 is at that of L2: its filter alone fills the cache and one channel of the input, 20 KiB, goes beyond, so that a few reads in a hundred miss; with a tenth less of the cache to itself it would take about half as long again. 8×8 at batch 64 and 32×32 at batch 4 fill the tightly coupled memory to the byte, and count as fitting.".into());
    notes
        .left_out
        .push("How well the vector units are used at different depths and sizes: arithmetic has one rate.".into());
    notes.misses.push("8×8 at batch 64 and 32×32 at batch 4 are the same number of multiply-adds; the paper's latencies differ by a third, here they are alike and lie between. For the same reason small maps come out a little slow at small batches.".into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_its_map_and_its_batch() {
        assert_eq!(setting("conv-64x64-16x16", "batch-32"), Some((16, 32)));
        assert_eq!(setting("conv-64x64-16x16", "32"), None);
        assert_eq!(setting("transpose", "batch-32"), None);
    }

    #[test]
    fn the_call_is_paid_once_and_the_rest_is_work_while_all_fits() {
        let device = haversack_devices::load("xiaomi-10").unwrap();
        let stack = haversack_devices::load_stack("mandheling").unwrap();
        let time = |batch| called_alone(&device, &stack, 8, batch).unwrap().seconds();
        // 8×8 at 16, 32 and 64: the filter takes 8 · 8 · 64 · 64 B = 256 KiB at most, all of the tightly coupled memory,
        // so that twice the batch costs twice the arithmetic: t(64) − t(32) = 2 (t(32) − t(16)).
        let (first, second) = (time(32) - time(16), time(64) - time(32));
        assert!((second / first - 2.0).abs() < 1e-3, "{first} {second}");
        // What is left at no arithmetic is a call and an operator's overhead.
        let (dsp, on_dsp) = device.offloader(&stack).unwrap();
        let fixed = (dsp.call() + on_dsp.operator_overhead.value).seconds();
        assert!((time(32) - 2.0 * first - fixed).abs() < 1e-6, "{fixed}");
    }
}
