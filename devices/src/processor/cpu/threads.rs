//! How an operator is shared out over threads, one on each core, and what it costs to start it.

use crate::processor::cpu::CpuCores;
use crate::stack::StackOnCpu;
use crate::units::{Bytes, Nanos};
use crate::work::Work;

impl CpuCores {
    /// How many cores have a part in `work`, and by what it is divided on the one that has most of it.
    ///
    /// Parts are even, unless packed layouts hand out whole vectors of output channels: 24 channels in vectors of 8 are
    /// three parts, however many threads there are, and one of two threads has two of them.
    pub(super) fn split(&self, work: &Work, stack: &StackOnCpu) -> (usize, f64) {
        let threads = self.cores.len().max(1);
        let packed = work.product.filter(|_| stack.packed == Some(true)).zip(self.cores.first());
        if let Some((product, core)) = packed {
            let vectors = product.outputs.div_ceil(core.lanes(work.precision)).max(1);
            let used = vectors.min(threads as u64);
            return (used as usize, vectors as f64 / vectors.div_ceil(used) as f64);
        }
        // A float cast saturates, and turns not-a-number into zero.
        let used = (work.parallelism as usize).clamp(1, threads);
        (used, used as f64)
    }

    /// What it costs to start an operator: its dispatch, and for each of its steps the threads. A product that lays out its
    /// operands first has two steps. Threads are started and waited for as a tree: a level for every doubling.
    pub(super) fn dispatch(&self, work: &Work, stack: &StackOnCpu) -> Nanos {
        let core = self.cores.iter().find_map(|core| Some(core.cluster.coremark?.0 * core.frequency.0));
        let scalar = stack.operator_work.as_ref().zip(core).map(|(work, speed)| work.value.0 * 1e-6 / speed);
        let Some(fork_join) = &stack.fork_join else {
            return scalar.map_or(stack.operator_overhead.value, Nanos::from_seconds);
        };
        let steps = if work.laid_out > Bytes::ZERO { 2.0 } else { 1.0 };
        let levels = (self.cores.len().max(1) as f64).log2();
        let alone = scalar.unwrap_or(stack.operator_overhead.value.seconds());
        Nanos::from_seconds(alone * (1.0 + fork_join.value.0 * steps * levels))
    }
}
