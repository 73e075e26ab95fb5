//! Time against memory of the policies that fit.

use haversack_devices::units::Bytes;
use haversack_reports::figure::{Axis, Front};
use haversack_reports::{Figure, Panel};

use super::Advice;
use crate::scenario::workload;

impl Advice {
    /// A point for every policy that fits, and the front of all of them.
    pub(super) fn figure(&self) -> Figure {
        let points = self.fitting().filter_map(|candidate| {
            let results = candidate.fits()?;
            let megabytes = Bytes(results.peak_memory_bytes).megabytes();
            Some((candidate.policy.id, vec![(megabytes, results.iteration_time_s)]))
        });
        let front = points.fold(Front::new().overall(), |front, (policy, point)| front.cloud(policy, point));
        let panel = Panel::new(front)
            .x(Axis::new("peak memory").unit("MB").from_zero())
            .y(Axis::new("iteration").unit("s").from_zero());
        let scenario = &self.scenario;
        let model = workload::called(&scenario.model);
        Figure::new(format!("{model}, batch {}, on {}", scenario.batch, scenario.device)).panel(panel)
    }
}
