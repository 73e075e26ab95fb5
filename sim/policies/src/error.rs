//! Why a policy cannot work.

use haversack_devices::text::question_or;
use haversack_devices::{Bytes, Nanos};
use thiserror::Error;

/// Why a policy cannot work here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// No policy has this name.
    #[error("unknown policy '{found}'{}", question_or(nearest.as_deref(), "`haversack list policies` has them all"))]
    Unknown {
        /// The given name.
        found: String,
        /// The nearest name.
        nearest: Option<String>,
    },
    /// The policy has no such parameter.
    #[error("policy '{policy}' has no parameter '{found}'{}", question_or(nearest.as_deref(), has))]
    UnknownParameter {
        /// The policy.
        policy: &'static str,
        /// The given name.
        found: String,
        /// The nearest name.
        nearest: Option<String>,
        /// The parameters that it has, in words.
        has: String,
    },
    /// The policy's page table refuses an entry.
    #[error("{policy}: {reason}")]
    Table {
        /// The policy.
        policy: &'static str,
        /// Why.
        reason: String,
    },
    /// A plan cannot be read, written or carried out.
    #[error("plan: {0}")]
    Plan(String),
    /// The policy cannot decide any more.
    #[error("the policy failed: {0}")]
    Failed(String),
    /// The budget is below what the policy can reach.
    #[error("{policy}: no plan takes less than {least}; the budget is {budget}")]
    Budget {
        /// The policy.
        policy: &'static str,
        /// The least that it can reach, with its unit.
        least: String,
        /// The budget, with its unit.
        budget: String,
    },
    /// The policy of this id offloads to a DSP, and the run has none.
    #[error("{0} needs a DSP; expected a device and a stack that have one")]
    NoDsp(&'static str),
    /// The policy recomputes scale factors only as often as they change, and the stack does not define how often they
    /// do.
    #[error("{0} needs to know how scale factors change; expected a stack with `[factors]`, or rescaling = dynamic")]
    NoFactors(&'static str),
    /// An operator's buffers are larger than the DSP's memory.
    #[error("{policy}: the buffers of {node} take {bytes} on the DSP; expected at most {memory}")]
    DspMemory {
        /// The policy.
        policy: &'static str,
        /// The operator.
        node: String,
        /// Its buffers.
        bytes: Bytes,
        /// The DSP's memory.
        memory: Bytes,
    },
    /// The parameter cannot have this value.
    #[error("{policy}.{parameter} cannot be '{found}'; expected {expected}")]
    BadValue {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// The given value.
        found: String,
        /// The allowed values.
        expected: String,
    },
    /// The parameter does nothing without another.
    #[error("{policy}.{parameter} does nothing without {other}; set that too, or leave {parameter} out")]
    Idle {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// The other parameter, with the value it needs.
        other: &'static str,
    },
}

impl PolicyError {
    /// A policy cannot bring an iteration below `least`.
    pub(crate) fn too_slow(policy: &'static str, least: Nanos, budget: Nanos) -> Self {
        let seconds = |time: Nanos| format!("{:.6} s", time.seconds());
        Self::Budget { policy, least: seconds(least), budget: seconds(budget) }
    }
}
