//! What the statistics of a tensor cost on a GPU, from the counts of the kernels that compute them.

use haversack_devices::processor::{Cost, Gpu};
use haversack_devices::stack::StackOnGpu;
use haversack_gpu::Machine;
use haversack_gpu::baseline::framework;
use haversack_gpu::profile::{CONTROL, Profiler, Search};
use haversack_kernels::KernelError;
use haversack_policies::quantised::Control;

/// The cost of the statistics of `values` values: as the epilogue of the kernel that makes them, by the plan that a
/// profile finds fastest, or by a framework's operators.
///
/// # Errors
/// A GPU that no kernel fits.
pub(crate) fn cost(gpu: &Gpu, on_gpu: &StackOnGpu, values: u64, control: Control) -> Result<Cost, KernelError> {
    let machine = Machine::of(gpu);
    let profiler = Profiler { gpu: gpu.clone(), machine, stack: Some(on_gpu.clone()), search: Search::default() };
    let time = match control {
        Control::Fused => profiler.fastest(&CONTROL, values, profiler.epilogue())?.time,
        Control::OwnKernels => profiler.time_of(&framework(&CONTROL, values, &machine)?),
    };
    Ok(time.cost())
}
