//! A plan: what is given up before which operator, and how, so that training fits into a budget.
//!
//! It is made by algorithm 1 from a graph, the profile of a device and a budget, wherever that is done, and sent as
//! text. It says which graph, profile and budget it is for, so that it is carried out for no other; making it counts
//! operations, which take time on whatever core makes it.

use haversack_devices::calibration::Digest;
use haversack_devices::units::Bytes;
use haversack_workloads::{NodeId, TensorId, TrainingGraph};
use serde::Serialize;

use crate::planning::Room;
pub use crate::planning::{Operations, Planner, Treatments};
use crate::restore::Technique;

/// The form of a plan that this program writes.
const VERSION: u32 = 1;

/// One tensor gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The operator of the schedule before which it does.
    pub before: NodeId,
    /// Which tensor.
    pub tensor: TensorId,
    /// How.
    pub technique: Technique,
}

/// What gives way, when and how.
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
    /// Of all before it.
    checksum: Digest,
}

impl Plan {
    /// That of `steps`, made with `operations` for what has these digests.
    pub(super) fn new(graph: Digest, profile: Digest, room: Room, operations: Operations, steps: Vec<Step>) -> Self {
        let mut plan = Self { version: VERSION, graph, profile, room, operations, steps, checksum: Digest::default() };
        plan.checksum = plan.sum();
        plan
    }

    /// What gives way, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What making it took.
    pub const fn operations(&self) -> Operations {
        self.operations
    }

    /// How many of the tensors that `graph` saves go which way.
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
