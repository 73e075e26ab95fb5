//! The server's cost of making plans for a federation.

use super::Costs;
use crate::federate::iteration::Making;
use crate::federate::on_device::OnDevice;

/// The server's cost of making plans.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Planning {
    /// For each phone the seconds to make a plan for it alone: zero if it needs no plan or none fits. Making a plan for
    /// its own budget is assumed to take as long as for that of its cluster.
    pub(crate) each_s: Vec<f64>,
    /// The number of plans of all clusters.
    pub(crate) plans: usize,
    /// The time to make them, in seconds.
    pub(crate) plans_s: f64,
    /// The time of clustering per report, in seconds.
    pub(crate) clustering_s: f64,
}

impl Costs<'_> {
    /// The server's operations for all plans of clusters, clustering included.
    #[cfg(test)]
    pub(in crate::federate) fn server_operations(&self) -> u64 {
        let plans = self.devices.iter().flatten().flat_map(OnDevice::plans);
        let making: u64 = plans.filter_map(|cost| Some(cost.making?.operations)).sum();
        making + self.clustered.as_ref().map_or(0, |clustered| clustered.visits)
    }

    /// The seconds that the server needs for all plans of clusters; each visit of a report during clustering costs as
    /// much as one operation.
    pub(super) fn server_s(&self) -> f64 {
        let plans = self.devices.iter().flatten().flat_map(OnDevice::plans);
        let making: Vec<Making> = plans.filter_map(|cost| cost.making).collect();
        let visits = self.clustered.as_ref().map_or(0, |clustered| clustered.visits);
        let operations: u64 = making.iter().map(|making| making.operations).sum();
        let seconds: f64 = making.iter().map(|making| making.server_s).sum();
        seconds * (1.0 + visits as f64 / operations.max(1) as f64)
    }

    /// The server's cost of making plans.
    pub(in crate::federate) fn planning(&self) -> Planning {
        let plans = || self.devices.iter().flatten().flat_map(OnDevice::plans);
        let making: Vec<Making> = plans().filter_map(|cost| cost.making).collect();
        let operations: u64 = making.iter().map(|making| making.operations).sum();
        let plans_s: f64 = making.iter().map(|making| making.server_s).sum();
        let visits = self.clustered.as_ref().map_or(0.0, |all| all.visits as f64 / all.reports().max(1) as f64);
        let own =
            |phone| self.usual(phone).ok().and_then(|(cost, _)| cost.making).map_or(0.0, |making| making.server_s);
        Planning {
            each_s: (0..self.phones.len() as u32).map(own).collect(),
            plans: making.len(),
            plans_s,
            clustering_s: plans_s / operations.max(1) as f64 * visits,
        }
    }
}
