//! What the artefacts of reductions share: the operations of section 4.3.1, and what the statistics of their outputs
//! take on a device, done in each of the three ways that the paper compares.

use haversack_devices::{Device, KernelTime, Stack};
use haversack_gpu::profile::Profiler;

use crate::artefacts::prelude::*;

/// An operation of section 4.3.1, by the tensor that it makes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// Its name in the paper.
    pub(super) name: &'static str,
    /// The name with the tensor's shape.
    pub(super) title: &'static str,
    /// Elements of the tensor.
    pub(super) elements: u64,
}

/// Both operations, with the shapes that the reading `reduction-tensors` declares.
pub(super) const OPERATIONS: [Operation; 2] = [
    Operation { name: "conv2d", title: "conv2d [1, 256, 14, 14]", elements: 256 * 14 * 14 },
    Operation { name: "attention", title: "attention [1, 512, 768]", elements: 512 * 768 },
];

/// A profiler of the device's GPU under the stack that the device comes with.
///
/// # Errors
/// A device without a GPU; a stack that the artefact does not name, or that has no kernels for a GPU.
pub(super) fn profiler(context: &Context<'_>, device: &Device) -> Result<Profiler> {
    let stack = stack(context, device)?.gpu().cloned();
    let Some(profiler) = Profiler::of(device) else { bail!("{} has no modelled GPU", device.id) };
    ensure!(stack.is_some(), "the stack of {} has no kernels for a GPU", device.id);
    Ok(Profiler { stack, ..profiler })
}

/// The stack that the device comes with.
///
/// # Errors
/// A stack that the artefact does not name.
pub(super) fn stack(context: &Context<'_>, device: &Device) -> Result<Stack> {
    context.stack(&device.constants.default_stack)
}

/// Microseconds, unrounded: an epilogue takes less than one.
pub(super) fn micros(time: &KernelTime) -> f64 {
    (time.overhead + time.launch + time.busy).0 * 1e6
}
