//! A plan: what is given up before which operator, and how, so that training fits into a budget.
//!
//! It is made by algorithm 1 from a graph, the profile of a device and a budget, wherever that is done, and sent as
//! text. It says which graph, profile and budget it is for, so that it is carried out for no other; making it counts
//! operations, which take time on whatever core makes it.

use haversack_devices::units::Bytes;
use haversack_workloads::{NodeId, TensorId, TrainingGraph};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::digest::Digest;
use super::profile::Profile;
use crate::planning::Room;
pub use crate::planning::{Operations, Planner, Treatments};
use crate::restore::Technique;

/// The form of a plan that this program writes and reads.
const VERSION: u32 = 1;

/// One tensor gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The operator of the schedule before which it does.
    pub before: NodeId,
    /// Which tensor.
    pub tensor: TensorId,
    /// How.
    pub technique: Technique,
}

/// What gives way, when and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

/// Why a plan cannot be made, read or carried out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// No choice of tensors makes room.
    #[error("no plan fits {room}: {shortfall} are missing before {node}")]
    Infeasible {
        /// The operator.
        node: String,
        /// What is missing.
        shortfall: Bytes,
        /// The budget.
        room: Room,
    },
    /// Operators are computed again and again.
    #[error("no plan fits {room}: before {node} {recomputed} operators were computed again")]
    Thrashing {
        /// The operator.
        node: String,
        /// How many were.
        recomputed: u64,
        /// The budget.
        room: Room,
    },
    /// The text is no plan.
    #[error("the plan cannot be read: {reason}")]
    Unreadable {
        /// Why.
        reason: String,
    },
    /// The text was changed since it was written.
    #[error("the plan is damaged: its checksum is {found}; expected {expected}")]
    Damaged {
        /// What it says.
        found: Digest,
        /// What it should say.
        expected: Digest,
    },
    /// It was written in another form.
    #[error("the plan has version {found}; expected {VERSION}")]
    Version {
        /// Its version.
        found: u32,
    },
    /// It is for another graph or another batch.
    #[error("the plan is for another graph or batch ({found}); expected one for {expected}")]
    OtherGraph {
        /// Of what it is for.
        found: Digest,
        /// Of the graph at hand.
        expected: Digest,
    },
    /// It is for another device, or one with other times.
    #[error("the plan is for another profile ({found}); expected one for {expected}")]
    OtherProfile {
        /// Of what it is for.
        found: Digest,
        /// Of the profile at hand.
        expected: Digest,
    },
}

impl Plan {
    /// That of `steps`, made for a profile's graph with `operations`.
    pub(super) fn new(profile: &Profile, room: Room, operations: Operations, steps: Vec<Step>) -> Self {
        let (graph, profile) = (profile.graph_digest(), profile.digest());
        let mut plan = Self { version: VERSION, graph, profile, room, operations, steps, checksum: Digest::EMPTY };
        plan.checksum = plan.sum();
        plan
    }

    /// What gives way, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The budget that it is for.
    pub const fn room(&self) -> Room {
        self.room
    }

    /// What making it took.
    pub const fn operations(&self) -> Operations {
        self.operations
    }

    /// Checks that it is for the graph and the times of `profile`.
    ///
    /// # Errors
    /// What it is for instead.
    pub fn check(&self, profile: &Profile) -> Result<(), PlanError> {
        let (found, expected) = (self.graph, profile.graph_digest());
        if found != expected {
            return Err(PlanError::OtherGraph { found, expected });
        }
        let (found, expected) = (self.profile, profile.digest());
        if found != expected { Err(PlanError::OtherProfile { found, expected }) } else { Ok(()) }
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

    /// The text that is sent.
    ///
    /// # Errors
    /// None that a plan can cause.
    pub fn to_text(&self) -> Result<String, PlanError> {
        serde_json::to_string(self).map_err(|error| PlanError::Unreadable { reason: error.to_string() })
    }

    /// The plan of a text.
    ///
    /// # Errors
    /// A text that is none, that another version has written, or that was changed.
    pub fn from_text(text: &str) -> Result<Self, PlanError> {
        let plan: Self =
            serde_json::from_str(text).map_err(|error| PlanError::Unreadable { reason: error.to_string() })?;
        if plan.version != VERSION {
            return Err(PlanError::Version { found: plan.version });
        }
        let (found, expected) = (plan.checksum, plan.sum());
        if found != expected { Err(PlanError::Damaged { found, expected }) } else { Ok(plan) }
    }

    /// Bytes of the text that is sent.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.to_text().map_or(0, |text| text.len() as u64))
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
