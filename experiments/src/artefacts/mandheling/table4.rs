//! Table 4: the gradient of a convolution's weight on the DSP, over batches and sizes of its map.

use haversack_devices::{Device, Flops, OperatorKind, Precision, Product, ProductRole, Stack, Traffic, Work};

use super::setting::XIAOMI_10;
use crate::artefacts::prelude::*;
use crate::papers::reference::{Reference, Role};

const CHANNELS: u64 = 64;
const TAPS: [u64; 2] = [3, 3];

/// The size of the map and the batch of a row: `conv-64x64-8x8`, `batch-32`.
pub(crate) fn setting(subject: &str, method: &str) -> Option<(u64, u64)> {
    let size = subject.rsplit('-').next()?.split('x').next()?.parse().ok()?;
    Some((size, method.strip_prefix("batch-")?.parse().ok()?))
}

/// The time of the gradient, called alone.
pub(crate) fn called_alone(device: &Device, stack: &Stack, size: u64, batch: u64) -> Option<Nanos> {
    let offloader = device.offloader(stack).ok()?;
    let product = Product {
        role: ProductRole::WeightGradient,
        inputs: CHANNELS,
        outputs: CHANNELS,
        input_size: [size, size],
        output_size: [size, size],
        taps: TAPS,
        groups: 1,
        of_each_sample: false,
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
    Some(offloader.dsp.call() + offloader.cost(&work).alone())
}

/// The null baseline, a roofline with one efficiency: the convolution's multiply-adds over one rate, the median over
/// the table's `fit` rows.
fn null(reference: &Reference, row: &ReferenceRow) -> Option<f64> {
    // Channels and taps are alike in all rows, so that samples and pixels alone tell their multiply-adds apart.
    let work = |row: &ReferenceRow| {
        let (size, batch) = setting(&row.subject, &row.method)?;
        Some((size * size * batch) as f64)
    };
    let known = reference.of(row.paper, &row.artefact).filter(|other| other.role() == Role::Fit);
    let rates = known.filter_map(|other| Some(work(other)? / other.number()?)).collect();
    Some(work(row)? / median(rates)?)
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let (device, stack) = (context.device(XIAOMI_10)?, context.stack("mandheling")?);
    let records = records(context, "simulated_ms,null_ms", |_, ids| {
        let [size, batch]: [u64; 2] = [ids[0].parse()?, ids[1].parse()?];
        let row = context.row(&format!("mandheling/table4/conv-64x64-{size}x{size}/batch-{batch}/latency"))?;
        let time = called_alone(&device, &stack, size, batch).context("the Xiaomi 10 has no DSP")?;
        Ok([Some(time.seconds() * 1e3), null(context.reference, row)])
    })?;
    let mut outcome = Outcome::default();
    outcome.nulls_of(&context.rows, |row| null(context.reference, row));
    show(context, records, outcome)
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
        let offloader = device.offloader(&stack).unwrap();
        let fixed = (offloader.dsp.call() + offloader.stack.operator_overhead.value).seconds();
        assert!((time(32) - 2.0 * first - fixed).abs() < 1e-6, "{fixed}");
    }

    #[test]
    fn one_rate_for_every_convolution() {
        let reference = Reference::load().unwrap();
        let null = |id: &str| null(&reference, reference.row(id)?);
        // Pixels of all samples a millisecond on the ten fit rows: 8×8 at 2, 8, 16 and 64 samples 203.2, 602.4, 994.2
        // and 2226.1; 16×16 at 2, 4 and 8 609.5, 1150.6 and 484.2; 32×32 at 2, 4 and 32 1211.8, 1638.4 and 481.0.
        // The middle two are 609.5 and 994.2, their mean is 801.8: 32 · 32 · 8 / 801.8 = 10.216 ms.
        for id in [
            "mandheling/table4/conv-64x64-32x32/batch-8/latency",
            "mandheling/table4/conv-64x64-16x16/batch-32/latency",
        ] {
            let value = null(id).unwrap();
            assert!((value - 10.216).abs() < 1e-3, "{id}: {value}");
        }
    }
}
