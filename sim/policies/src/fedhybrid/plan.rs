//! A plan: which tensors are given up before which operator, and how, so that training fits a budget.
//!
//! Algorithm 1 makes it from a graph, the profile of a device and a budget, on a server or the device, and it is sent
//! as text. It contains digests of its graph, profile and budget, so that it is not carried out for others. Making it
//! counts operations, which take time on the core that makes it.

use haversack_devices::calibration::Digest;
use haversack_devices::units::Bytes;
use haversack_workloads::{NodeId, TensorId, TrainingGraph};
use serde::Serialize;

use crate::planning::Room;
pub use crate::planning::{Operations, Planner, Treatments};
use crate::restore::Technique;

/// The form of a plan that this program writes.
const VERSION: u32 = 1;

/// A step: one tensor gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The operator of the schedule before which it gives way.
    pub before: NodeId,
    /// The tensor.
    pub tensor: TensorId,
    /// The technique.
    pub technique: Technique,
}

/// The tensors that give way, when and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[must_use]
pub struct Plan {
    version: u32,
    /// Of the graph, with its batch.
    graph: Digest,
    /// Of the profile.
    profile: Digest,
    room: Room,
    operations: Operations,
    steps: Vec<Step>,
    /// Of all fields before it.
    checksum: Digest,
}

impl Plan {
    /// A plan of `steps`, made with `operations` for the inputs with these digests.
    pub(super) fn new(graph: Digest, profile: Digest, room: Room, operations: Operations, steps: Vec<Step>) -> Self {
        let mut plan = Self { version: VERSION, graph, profile, room, operations, steps, checksum: Digest::default() };
        plan.checksum = plan.sum();
        plan
    }

    /// The steps, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Operations spent on making it.
    pub const fn operations(&self) -> Operations {
        self.operations
    }

    /// How many of the tensors that `graph` saves are treated in each way.
    pub fn treatments(&self, graph: &TrainingGraph) -> Treatments {
        let mut first = vec![None; graph.tensors.len()];
        for step in &self.steps {
            if let Some(first) = first.get_mut(step.tensor as usize) {
                *first = first.or(Some(step.technique));
            }
        }
        let mut treatments = Treatments::default();
        for tensor in graph.saved() {
            *match first[tensor as usize] {
                None => &mut treatments.kept,
                Some(Technique::Compress) => &mut treatments.compressed,
                Some(Technique::Recompute) => &mut treatments.recomputed,
                Some(Technique::Swap) => &mut treatments.swapped,
            } += 1;
        }
        treatments
    }

    /// Bytes of the text that is sent.
    pub fn bytes(&self) -> Bytes {
        Bytes(serde_json::to_string(self).map_or(0, |text| text.len() as u64))
    }

    fn sum(&self) -> Digest {
        let bound = |bytes: Option<Bytes>| bytes.map_or(u64::MAX, |bytes| bytes.0);
        let head = [u64::from(self.version), self.graph.0, self.profile.0];
        let room = [bound(self.room.memory), bound(self.room.activations)];
        let operations = [self.operations.scores, self.operations.operators];
        let of_step = |step: &Step| [u64::from(step.before), u64::from(step.tensor), step.technique as u64];
        Digest::of(head.into_iter().chain(room).chain(operations).chain(self.steps.iter().flat_map(of_step)))
    }
}
