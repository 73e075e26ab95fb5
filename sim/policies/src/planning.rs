//! What whoever runs a policy learns of its plans: where they are made, what that counts, and what they do.

use serde::{Deserialize, Serialize};

/// Where plans are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Planner {
    /// By a server, which is sent the profile and sends the plan (section 4.3.2).
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
}

/// How many saved tensors go which way; one that goes several times counts by its first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
