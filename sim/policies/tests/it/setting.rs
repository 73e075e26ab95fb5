//! What a policy is told before a run.

use haversack_devices::units::Nanos;
use haversack_policies::{NodeTimes, Setting};
use haversack_workloads::TrainingGraph;

/// A setting of fp32 and masks of a byte, without budgets.
pub(crate) fn setting<'a>(graph: &'a TrainingGraph, batch: u64, times: &'a [Nanos]) -> Setting<'a> {
    Setting::plain(graph, batch, NodeTimes::on_demand(|| times.to_vec()))
}
