//! What making plans takes a federation's server.

use super::Costs;
use crate::federate::iteration::Making;
use crate::federate::on_device::OnDevice;

/// What making plans takes the server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Planning {
    /// Of each phone a plan for itself, in seconds: none where it needs none or holds none. A plan for its own budget is taken
    /// to take as long as that of its cluster.
    pub(crate) each_s: Vec<f64>,
    /// The number of plans of all clusters.
    pub(crate) plans: usize,
    /// How long they take, in seconds.
    pub(crate) plans_s: f64,
    /// How long clustering takes for each report, in seconds.
    pub(crate) clustering_s: f64,
}

impl Costs<'_> {
    /// What the server counts for all plans of clusters, clustering included.
    #[cfg(test)]
    pub(in crate::federate) fn server_operations(&self) -> u64 {
        let plans = self.devices.iter().flatten().flat_map(OnDevice::plans);
        let making: u64 = plans.filter_map(|cost| Some(cost.making?.operations)).sum();
        making + self.clustered.as_ref().map_or(0, |clustered| clustered.visits)
    }

    /// What making all plans of clusters takes the server, and clustering itself at the price of an operation for each visit of a report.
    pub(super) fn server_s(&self) -> f64 {
        let plans = self.devices.iter().flatten().flat_map(OnDevice::plans);
        let making: Vec<Making> = plans.filter_map(|cost| cost.making).collect();
        let visits = self.clustered.as_ref().map_or(0, |clustered| clustered.visits);
        let operations: u64 = making.iter().map(|making| making.operations).sum();
        let seconds: f64 = making.iter().map(|making| making.server_s).sum();
        seconds * (1.0 + visits as f64 / operations.max(1) as f64)
    }

    /// What making plans takes the server.
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
