//! What a plan is made from beside the budget: a graph, and what a device takes for it.

use haversack_devices::calibration::Digest;
use haversack_devices::units::Bytes;
use haversack_workloads::{TensorId, TrainingGraph};

use super::choice::Chooser;
use super::parameters::Parameters;
use super::plan::{Plan, PlanError};
use super::planner::Walk;
use crate::planning::Room;
use crate::restore::Technique;
use crate::setting::Setting;

/// Bytes of a number of the profile, as a client sends it.
const NUMBER: u64 = 4;

/// A device's times for a graph: of every operator, and of compressing and swapping every tensor.
#[derive(Clone, Debug)]
#[must_use]
pub struct Profile {
    pub(super) chooser: Chooser,
    batch: u64,
    /// What is in memory beside tensors.
    beside: Bytes,
    graph: Digest,
    digest: Digest,
    /// Operators of the graph.
    operators: u64,
}

impl Profile {
    /// What `setting` says, for plans that may do what `parameters` allow.
    pub fn new(setting: &Setting<'_>, parameters: Parameters) -> Self {
        let chooser = Chooser::new(parameters, setting);
        let graph = digest_of(setting.graph, setting.batch);
        let allowed = parameters.allowed().map(|technique| technique as u64);
        let switches = [parameters.layout, parameters.crossing].map(u64::from);
        let beside = setting.beside;
        let own = allowed.chain(switches).chain([beside.0]).chain(chooser.costs.numbers());
        let (digest, operators) = (Digest::of(own), setting.graph.nodes.len() as u64);
        Self { batch: setting.batch, beside, graph, digest, operators, chooser }
    }

    /// A plan for `graph`, of which this is the profile, within `room`.
    ///
    /// # Errors
    /// A room that no choice of tensors fits, and another graph than the profile's.
    pub fn plan(&self, graph: &TrainingGraph, room: Room) -> Result<Plan, PlanError> {
        let (found, expected) = (digest_of(graph, self.batch), self.graph);
        if found != expected {
            return Err(PlanError::OtherGraph { found: expected, expected: found });
        }
        let (steps, operations) = Walk::new(graph, self.batch, self.beside, room, self.chooser.clone()).run()?;
        Ok(Plan::new(self.graph, self.digest, room, operations, steps))
    }

    /// Whether any tensor can be given up so.
    pub(super) fn offers(&self, technique: Technique) -> bool {
        self.chooser.costs.offers(technique)
    }

    /// Bytes that a client sends of it: a time for every operator, the rates of its codec both ways, and the budget.
    pub fn bytes(&self) -> Bytes {
        Bytes(NUMBER * (self.operators + 2) + size_of::<u64>() as u64)
    }
}

/// Of all that a plan depends on in a graph: who reads and writes what, of which size.
fn digest_of(graph: &TrainingGraph, batch: u64) -> Digest {
    let list = |tensors: &[TensorId]| -> Vec<u64> {
        let ids = tensors.iter().map(|&tensor| u64::from(tensor));
        std::iter::once(tensors.len() as u64).chain(ids).collect()
    };
    let nodes = graph.nodes.iter().flat_map(|node| {
        let lists = [&node.inputs, &node.outputs, &node.releases].map(|tensors| list(tensors));
        [node.phase as u64, node.work.kind as u64].into_iter().chain(lists.into_iter().flatten())
    });
    let tensors = graph.tensors.iter().flat_map(|tensor| [tensor.bytes.at(batch), u64::from(tensor.role.is_state())]);
    Digest::of(std::iter::once(batch).chain(nodes).chain(tensors))
}
