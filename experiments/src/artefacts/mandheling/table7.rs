//! Table 7: which cores, and at which frequency; time and energy of VGG-16.

use haversack_devices::{ClusterClass, CoreSelection, Frequency};

use super::setting::{Network, on};
use crate::scenario::Scenario;

/// The configurations of the CPU as the reference names them, and for people.
pub(crate) const CORES: [(&str, &str, CoreSelection); 6] = [
    ("big-1", "big 1", CoreSelection::Some { class: ClusterClass::Big, count: 1 }),
    ("big-2", "big 2", CoreSelection::Some { class: ClusterClass::Big, count: 2 }),
    ("big-4", "big 4", CoreSelection::Some { class: ClusterClass::Big, count: 4 }),
    ("little-1", "little 1", CoreSelection::Some { class: ClusterClass::Little, count: 1 }),
    ("little-4", "little 4", CoreSelection::Some { class: ClusterClass::Little, count: 4 }),
    ("hybrid-8", "hybrid 8", CoreSelection::All),
];
/// The methods of the table.
pub(crate) const METHODS: [(&str, &str); 3] =
    [("mnn-fp32", "MNN-FP32"), ("mnn-int8", "MNN-INT8"), ("mandheling", "Mandheling")];
/// The frequencies as the metrics name them.
pub(crate) const FREQUENCIES: [(&str, Frequency); 2] = [("high", Frequency::Highest), ("low", Frequency::Lowest)];

/// The scenario of a row: its cores, its method, and the frequency that its metric ends in.
pub(crate) fn of_row(cores: &str, method: &str, metric: &str, batch: u64) -> Option<Scenario> {
    let (.., selection) = CORES.iter().find(|(id, ..)| *id == cores)?;
    let (_, frequency) = FREQUENCIES.iter().find(|(id, _)| metric.ends_with(id))?;
    let mut scenario = Scenario::new("xiaomi-11-pro", Network::called("vgg16").ok()?.model);
    method.clone_into(&mut scenario.policy);
    scenario.batch = batch;
    Some(on(&scenario, *selection, *frequency))
}
