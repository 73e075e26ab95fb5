//! A policy's information before a run.

use haversack_devices::units::Nanos;
use haversack_policies::policy::BatchStatistics;
use haversack_policies::{NodeTimes, Setting, melon};
use haversack_workloads::TrainingGraph;

/// Melon's default parameters.
pub(crate) const MELON: melon::Parameters =
    melon::Parameters { micro_batching: true, computing_budget: None, statistics: BatchStatistics::Part };

/// A setting of fp32 and masks of a byte, without budgets.
pub(crate) fn setting<'a>(graph: &'a TrainingGraph, batch: u64, times: &'a [Nanos]) -> Setting<'a> {
    Setting::plain(graph, batch, NodeTimes::on_demand(|| times.to_vec()))
}
