//! What the statistics of a tensor cost on a GPU, from the counts of the kernels that compute them.

use haversack_devices::processor::{Cost, Gpu};
use haversack_devices::stack::StackOnGpu;
use haversack_devices::units::Nanos;
use haversack_kernels::KernelError;
use haversack_kernels::reduce::Statistic;
use haversack_kernels::simt::baseline::framework;
use haversack_kernels::simt::profile::{Profiler, Search, Setting};
use haversack_policies::quantised::Control;

/// A scale needs the minimum and the maximum, an importance the sum of squares.
pub(crate) const STATISTICS: [Statistic; 3] = [Statistic::Minimum, Statistic::Maximum, Statistic::SumOfSquares];

/// The cost of the statistics of `values` values: as the epilogue of the kernel that makes them, by the plan that a
/// profile finds fastest, or by a framework's operators.
///
/// # Errors
/// A GPU that no kernel fits.
pub(crate) fn cost(gpu: &Gpu, on_gpu: &StackOnGpu, values: u64, control: Control) -> Result<Cost, KernelError> {
    let machine = haversack_kernels::simt::Machine::of(gpu);
    let profiler = Profiler { gpu: *gpu, machine, stack: Some(on_gpu.clone()), search: Search::default() };
    let time = match control {
        Control::Fused => {
            let outputs = on_gpu.outputs_per_thread.value.0.max(1.0) as u32;
            profiler.fastest(&STATISTICS, values, Setting::Epilogue { outputs })?.time
        }
        Control::OwnKernels => profiler.time_of(&framework(&STATISTICS, values, &machine)?),
    };
    Ok(Cost {
        launch: Nanos::from_seconds(time.overhead.0 + time.launch.0),
        busy: Nanos::from_seconds(time.busy.0),
        dram: time.dram,
        occupancy: 1.0,
    })
}
