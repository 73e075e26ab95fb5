//! What a convolution computes and moves where layouts are packed, as inference engines on CPUs have them.
//!
//! Before it multiplies, the windows of its input are laid out in the order in which the product reads them (im2col), or
//! the tiles of its input are transformed (Winograd's algorithm; Lavin and Gray, CVPR 2016): the input is read, what comes
//! of it is written, and that is what the product reads in its place. Transformed weights are kept, and larger than plain
//! ones. Which convolutions are computed so, and by tiles of which size, is ncnn's `src/layer/arm/convolution_arm*`.

use haversack_devices::units::{Bytes, Flops};
use haversack_devices::work::{ProductRole, Work};

/// Operations of a transform on each value of a tile: in F(4×4, 3×3) twelve transforms in one dimension of a dozen
/// operations each make 36 values.
const TRANSFORM: f64 = 4.0;

/// Lays out the operands of a dense convolution forward, by Winograd's algorithm in tiles of `tile` × `tile` outputs if that is
/// given; other work stays as it is.
pub(crate) fn lay_out(work: &mut Work, tile: Option<u64>) {
    let Some(product) = work.product.filter(|product| product.role == ProductRole::Forward && product.is_dense())
    else {
        return;
    };
    let area = |[height, width]: [u64; 2]| height as f64 * width as f64;
    let (samples, element) = (work.samples as f64, work.precision.bytes().as_f64());
    let (inputs, outputs) = (product.inputs as f64, product.outputs as f64);
    let map = samples * inputs * area(product.input_size) * element;
    let (windows, more_weights) = match tile {
        None => (samples * area(product.output_size) * area(product.taps), 0.0),
        Some(side) => {
            let around = area(product.taps.map(|taps| side + taps - 1));
            let values = samples * area(product.output_size.map(|length| length.div_ceil(side))) * around;
            work.flops = Flops(2.0 * values * inputs * outputs);
            work.transforms = Flops(TRANSFORM * values * (inputs + outputs));
            (values, inputs * outputs * (around - area(product.taps)) * element)
        }
    };
    let laid_out = windows * inputs * element;
    work.laid_out = Bytes((map + laid_out) as u64);
    // A float cast saturates: what reads less than its map reads nothing.
    work.traffic.dram = Bytes((work.traffic.dram.as_f64() - map + laid_out + more_weights) as u64);
    work.working_set = work.traffic.dram;
}
