//! Plans made ahead: their memory limits, the place and cost of making them, and a summary of their contents.

use std::fmt;

use haversack_devices::Bytes;
use serde::{Deserialize, Serialize};

/// The memory that an iteration may use; `None` if it is not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Room {
    /// Of everything.
    pub memory: Option<Bytes>,
    /// Of saved tensors only.
    pub activations: Option<Bytes>,
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.memory, self.activations) {
            (None, None) => f.write_str("memory without a bound"),
            (Some(memory), None) => write!(f, "{memory}"),
            (None, Some(saved)) => write!(f, "{saved} of saved tensors"),
            (Some(memory), Some(saved)) => write!(f, "{memory}, {saved} of them of saved tensors"),
        }
    }
}

/// The cost of getting a new plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planning {
    /// The planner that made it.
    pub planner: Planner,
    /// The budget that it is for.
    pub room: Room,
    /// The operations needed to make it; none if the planner had it already.
    pub operations: Operations,
    /// Bytes that were sent to the server: the profile and the budget.
    pub sent: Bytes,
    /// Bytes that came back: the plan.
    pub received: Bytes,
    /// The treatment of saved tensors; `None` if no plan fits, so that everything is decided as memory runs short.
    pub treatments: Option<Treatments>,
}

/// Sizes of micro-batches worth trying: the mini-batch's, and those of more and more parts.
pub(crate) fn sizes(batch: u64) -> impl Iterator<Item = u64> {
    let parts = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64].into_iter().filter(move |&parts| parts <= batch.max(1));
    parts.map(move |parts| batch.div_ceil(parts))
}

/// Where plans are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Planner {
    /// By a server, which receives the profile and sends the plan (section 4.3.2).
    #[default]
    Server,
    /// By the device itself.
    Phone,
}

/// Operations of making a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operations {
    /// Tensors that were scored.
    pub scores: u64,
    /// Operators that were visited: as the schedule runs them, computed again, or for the cost of doing so.
    pub operators: u64,
}

impl Operations {
    /// All of them.
    pub const fn total(self) -> u64 {
        self.scores + self.operators
    }

    /// The operations since the count `before`.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        let scores = self.scores.saturating_sub(before.scores);
        Self { scores, operators: self.operators.saturating_sub(before.operators) }
    }
}

/// The number of saved tensors by treatment; one that gives way several times counts by its first treatment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Treatments {
    /// Kept whole.
    pub kept: u64,
    /// Compressed.
    pub compressed: u64,
    /// Computed again.
    pub recomputed: u64,
    /// Swapped.
    pub swapped: u64,
}
