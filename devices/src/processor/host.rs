//! The thread of the host that drives an accelerator: on which core Linux lets it run, and how fast.

use crate::device::Device;
use crate::processor::{CoreSelection, CpuCores, Frequency, Schedutil};
use crate::units::Fraction;

/// What a cluster has to have for a load of one, so that a task fits: `fits_capacity` of `kernel/sched/fair.c`.
const MARGIN: f64 = 1280.0 / 1024.0;

impl Device {
    /// The core, at its frequency, on which a thread runs that has been at work for a share `load` of the time of the
    /// fastest core at its highest frequency. `None` if no core's CoreMark is known, by which capacities are compared.
    ///
    /// Energy-aware scheduling takes the cluster of the least capacity that the load fits into, and the fastest where it
    /// fits into none; `schedutil` sets the frequency, at least the cluster's floor.
    pub fn core_for(&self, load: Fraction) -> Option<CpuCores> {
        let cpu = self.cpu()?;
        let mut clusters: Vec<(f64, CpuCores)> = Vec::new();
        for cluster in &self.constants.cpu {
            let Some(coremark) = &cluster.coremark else { continue };
            let one = CoreSelection::Some { class: cluster.class, count: 1 };
            let capacity = coremark.value.0 * cluster.frequency.value.0;
            clusters.push((capacity, cpu.choose(one, Frequency::Highest).ok()?));
        }
        clusters.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let most = clusters.last()?.0;
        let wanted = load.0.clamp(0.0, 1.0) * most;
        let place = clusters.iter().position(|(capacity, _)| wanted * MARGIN < *capacity);
        let (capacity, core) = clusters.swap_remove(place.unwrap_or(clusters.len() - 1));
        Some(Schedutil::settled(&core, Fraction(wanted / capacity)))
    }
}
