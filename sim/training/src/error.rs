//! Why a run, or a part of it, ends early.

use haversack_devices::{Bytes, Nanos, ThermalError};
use haversack_engine::ResourceError;
use haversack_kernels::KernelError;
use haversack_memory::pages::PageError;
use haversack_memory::phone::{Kill, PhoneError};
use haversack_numerics::ProgramError;
use haversack_policies::PolicyError;
use haversack_policies::budget::SampleError;
use thiserror::Error;

use crate::{PhoneTrack, StoreError};

/// Why a run ended without a record.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The policy has nothing left to give back.
    #[error(
        "out of memory at {node}: {shortfall} beyond a budget of {budget}, and the policy has nothing left to give back"
    )]
    OutOfMemory {
        /// The operator that wanted memory.
        node: String,
        /// How much is missing.
        shortfall: Bytes,
        /// The budget that was exceeded.
        budget: Bytes,
    },
    /// Tensors are computed again and again without progress.
    #[error("thrashing at {node}: {recomputed} operators were computed again for a graph of {nodes}")]
    Thrashing {
        /// The operator that cannot be reached.
        node: String,
        /// Operators computed again so far.
        recomputed: u64,
        /// Operators of the graph.
        nodes: usize,
    },
    /// The policy requested an illegal action.
    #[error("the policy tried to {action}, which is not possible: {reason}")]
    IllegalAction {
        /// The requested action.
        action: String,
        /// Why not.
        reason: &'static str,
    },
    /// The policy cannot work here.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The arena for quantised tensors cannot be set up as the policy requests.
    #[error("the arena of quantised tensors: {0}")]
    Arena(#[from] PageError),
    /// A GPU that the kernels of quantisation do not fit.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A graph that reads a tensor before anything has written it.
    #[error("{node} reads {tensor}, which nothing has written")]
    Unwritten {
        /// The node that reads.
        node: String,
        /// The tensor that it reads.
        tensor: String,
    },
    /// A device whose DRAM the engine cannot model.
    #[error("the device's DRAM: {0}")]
    Resource(#[from] ResourceError),
    /// Too hot to start, or to run on.
    #[error(transparent)]
    Heat(#[from] ThermalError),
    /// Surroundings were given for a device without a thermal model.
    #[error("{0} has no thermal model")]
    NoThermalModel(String),
    /// The phone's memory refuses something.
    #[error("the phone's memory: {0}")]
    Phone(#[from] PhoneError),
    /// The budget rule refuses a sample.
    #[error("the rule for the budget: {0}")]
    BudgetRule(#[from] SampleError),
    /// The low-memory killer has ended the process; the run begins again where it can.
    #[error("killed by the low-memory killer ({}) at {}, {} times in iteration {iteration}", kill.reason.name(), kill.at, times)]
    Killed {
        /// The iteration, counted from zero.
        iteration: u32,
        /// How often in it.
        times: u32,
        /// The killer's report.
        kill: Box<Kill>,
        /// The phone's history until then, if it was recorded.
        track: Option<Box<PhoneTrack>>,
    },
    /// A tensor's values cannot be stored, or not be restored.
    #[error("{tensor} cannot be stored: {error}")]
    Store {
        /// The tensor.
        tensor: String,
        /// Why not.
        error: StoreError,
    },
    /// A node that cannot be computed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A value is no longer finite.
    #[error("training diverged at update {update}: {layer} is the first with a value that is not finite")]
    Diverged {
        /// The number of updates before.
        update: u64,
        /// The first operator with such a value; the loss, if all others are finite.
        layer: String,
    },
    /// An iteration without a time.
    #[error("an iteration takes {0}: a constant of the device or the stack is out of all proportion")]
    NoTime(Nanos),
    /// An empty mini-batch.
    #[error("a mini-batch has at least one sample")]
    EmptyBatch,
}

impl RunError {
    /// Whether more memory would help.
    pub const fn is_infeasible(&self) -> bool {
        matches!(
            self,
            Self::OutOfMemory { .. }
                | Self::Thrashing { .. }
                | Self::Policy(PolicyError::Budget { .. })
                | Self::Arena(PageError::BudgetBelowPage { .. })
        )
    }
}

/// The result of a part of a run.
pub(crate) type Result<T = (), E = RunError> = std::result::Result<T, E>;

/// Why the walk through a part ended early.
pub(crate) enum Stop {
    /// The part has to start again with this number of samples.
    Restart(u64),
    /// The process was ended.
    Killed(Box<Kill>),
    /// The run has failed.
    Failed(RunError),
}

impl<E: Into<RunError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Stop {
    /// The policy requested an illegal action.
    pub(crate) fn illegal(action: String, reason: &'static str) -> Self {
        Self::Failed(RunError::IllegalAction { action, reason })
    }

    /// The error, if no part is running that could start again.
    pub(crate) fn outside_a_part(self) -> RunError {
        match self {
            Self::Failed(error) => error,
            Self::Killed(kill) => RunError::Killed { iteration: 0, times: 1, kill, track: None },
            Self::Restart(samples) => RunError::IllegalAction {
                action: format!("shrink the micro-batch to {samples}"),
                reason: "no micro-batch is in progress",
            },
        }
    }
}
