//! Convolutions over maps that lie in frames, and what products spend on laying out their operands.
//!
//! In a frame each row of a map is followed by the zeros that the window reads beyond it, so that every tap is one distance
//! away from every position; a kernel then computes all positions of the frame side by side, those between two rows
//! too, and keeps the others (`sim/numerics/src/dense/convolution.rs`).

use crate::stack::StackOnCpu;
use crate::units::Hertz;
use crate::work::{OperatorKind, ProductRole, Work};

/// How many times the arithmetic of `work` a stack computes that lays maps in frames; 1 for other work and other stacks.
pub(super) fn computed(work: &Work, stack: &StackOnCpu) -> f64 {
    stack.frame.as_ref().map_or(1.0, |group| framed(work, group.value.0 as u64))
}

/// The same of a stack that computes `group` positions side by side.
pub fn framed(work: &Work, group: u64) -> f64 {
    let is_convolution = matches!(work.kind, OperatorKind::Convolution | OperatorKind::DepthwiseConvolution);
    let Some(product) = work.product.filter(|_| is_convolution) else { return 1.0 };
    let size = if product.role == ProductRole::InputGradient { product.input_size } else { product.output_size };
    let [rows, columns] = size.map(|side| side.max(1));
    // The stride, from what it makes of the input.
    let stride = (product.input_size[1] as f64 / product.output_size[1].max(1) as f64).round().max(1.0) as u64;
    let pitch = columns + product.taps[1].saturating_sub(1) / stride;
    let positions = (rows - 1) * pitch + columns;
    positions.next_multiple_of(group.max(1)) as f64 / (rows * columns) as f64
}

/// Seconds that a core at `frequency` takes to lay out the operands and the result of `work`, alone.
pub(super) fn laying(work: &Work, frequency: Hertz, stack: &StackOnCpu) -> f64 {
    let rate = match work.kind {
        OperatorKind::Convolution => &stack.convolution_operands,
        OperatorKind::Gemm => &stack.gemm_operands,
        _ => &None,
    };
    rate.as_ref().map_or(0.0, |rate| work.traffic.dram.as_f64() / (rate.value * frequency).0)
}
