//! Table 4: the gradient of a convolution's weight on the DSP, over batches and sizes of its map.

use haversack_devices::units::{Bytes, Flops, Nanos};
use haversack_devices::work::{OperatorKind, Precision, Product, ProductRole, Traffic, Work};
use haversack_devices::{Device, Stack};

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
