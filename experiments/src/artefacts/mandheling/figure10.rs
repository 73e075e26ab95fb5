//! Figure 10: the techniques, one after the other.

use haversack_devices::Frequency;

use super::setting::{Network, with};
use crate::scenario::Scenario;

/// The steps as the reference names them, for people, and what each sets.
pub(crate) const STEPS: [(&str, &str, &str, &str); 5] = [
    ("none", "none", "", ""),
    ("+self-adaptive-rescaling", "+ rescaling", "rescaling", "adaptive"),
    ("+subgraph-reuse", "+ reuse", "reuse", "on"),
    ("+batch-splitting", "+ splitting", "splitting", "on"),
    ("+co-scheduling", "+ co-scheduling", "coscheduling", "on"),
];

/// The scenario in which all techniques up to `step` are at work, on the Xiaomi 10.
pub(crate) fn of_step(step: &str, network: &str, batch: u64) -> Option<Scenario> {
    let last = STEPS.iter().position(|(id, ..)| *id == step)?;
    let mut scenario = Scenario::new("xiaomi-10", Network::called(network).ok()?.model);
    "mandheling".clone_into(&mut scenario.policy);
    scenario.batch = batch;
    scenario.frequency = Frequency::Governor;
    let mut set = vec![("rescaling", "dynamic"), ("reuse", "off"), ("splitting", "off"), ("coscheduling", "off")];
    set.extend(STEPS[1..=last].iter().map(|&(.., key, value)| (key, value)));
    Some(with(&scenario, &set))
}
