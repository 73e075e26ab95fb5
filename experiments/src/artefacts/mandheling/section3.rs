//! Sections 3.3, 3.4 and 3.6: a crossing, dynamic against static rescaling, and preparing a graph.

use haversack_devices::units::Nanos;
use haversack_training::Machine;

use super::setting::Network;
use crate::run::Plan;
use crate::scenario::Scenario;

/// A batch of VGG-16 under the engine of a row of section 3.6.
pub(crate) fn preparing(engine: &str, batch: u64) -> Scenario {
    let model = Network::called("vgg16").map_or("vgg16-cifar", |network| network.model);
    Scenario { policy: format!("{engine}-fp32"), batch, ..Scenario::new("xiaomi-11-pro", model) }
}

/// What the engine spends on preparing the batch's graph, operator by operator.
pub(crate) fn preparation(plan: &Plan, machine: &Machine) -> Nanos {
    let scenario = plan.scenario();
    let launch = |id| machine.cost(&plan.graph, id, scenario.batch, scenario.precision).launch;
    (0..plan.graph.nodes.len()).map(launch).sum()
}
