//! Table 8: time and energy to convergence, by rounds that are taken from the table.

use haversack_devices::Frequency;

use super::setting::Network;
use crate::reproduce::reference::{Reference, Row};
use crate::scenario::Scenario;

/// The scenario of a batch of a row's training; nothing for federated ones.
pub(crate) fn of_row(subject: &str, method: &str, batch: u64) -> Option<Scenario> {
    let model = match subject {
        "vgg11-cifar10" => Network::called("vgg11").ok()?.model,
        "resnet18-cifar10" => "resnet18-cifar",
        _ => return None,
    };
    let mut scenario = Scenario::new("xiaomi-11-pro", model);
    method.clone_into(&mut scenario.policy);
    scenario.batch = batch;
    scenario.frequency = Frequency::Highest;
    Some(scenario)
}

/// The rounds of the row's training, an input.
pub(crate) fn rounds(reference: &Reference, row: &Row) -> Option<f64> {
    let same = |other: &&Row| other.metric == "rounds" && other.subject == row.subject && other.method == row.method;
    reference.of(&row.paper, &row.artefact).find(same)?.number()
}
