//! What is to be simulated, and why it may not be possible.

use haversack_devices::ThermalError;
use haversack_devices::units::{Bytes, Celsius, Nanos};
use haversack_devices::work::Precision;
use haversack_engine::ResourceError;
use haversack_kernels::KernelError;
use haversack_memory::pages::PageError;
use haversack_memory::phone::{Kill, PhoneError};
use haversack_policies::PolicyError;
use haversack_policies::budget::SampleError;
use haversack_workloads::TrainingGraph;
use thiserror::Error;

use crate::phone::Phone;

/// A budget that holds from a given time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wall {
    /// When it begins, from the start of the iteration.
    pub at: Nanos,
    /// The bytes that may be held from then on.
    pub memory: Bytes,
}

/// What a run may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budgets {
    /// Bytes of all that the framework holds, weights and states included.
    pub memory: Option<Bytes>,
    /// Bytes of saved tensors alone.
    pub activations: Option<Bytes>,
    /// Time of an iteration.
    pub time: Option<Nanos>,
    /// Memory budgets that replace `memory` at given times. They take hold when the operator that
    /// is running then has ended: a kernel cannot give back its operands.
    pub walls: Vec<Wall>,
    /// Budgets that replace `activations` in the same way.
    pub activation_walls: Vec<Wall>,
}

/// Which allocator stands between tensors and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllocatorKind {
    /// Every tensor its own exact piece.
    #[default]
    Exact,
    /// PyTorch's caching allocator.
    Caching,
}

/// What to record beside the results.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observe {
    /// Every operator's span and the memory after it.
    pub timeline: bool,
    /// What is resident at the peak.
    pub peak: bool,
}

/// One simulation.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The iteration's graph.
    pub graph: &'a TrainingGraph,
    /// Samples of a mini-batch; at least one.
    pub batch: u64,
    /// The number format of the arithmetic.
    pub precision: Precision,
    /// What it may use.
    pub budgets: Budgets,
    /// The allocator.
    pub allocator: AllocatorKind,
    /// Iterations to run; the record is the last one's.
    pub iterations: u32,
    /// The temperature of the device at the start and of what surrounds it; without it heat is left out.
    pub ambient: Option<Celsius>,
    /// The phone that it runs on, where its memory is shared with a system and with apps.
    pub phone: Option<&'a Phone>,
    /// What to record.
    pub observe: Observe,
}

/// Why a run ended without a record.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The policy has nothing left to give back.
    #[error(
        "out of memory at {node}: {shortfall} short of a budget of {budget}, and the policy has nothing left to give back"
    )]
    OutOfMemory {
        /// The operator that wanted memory.
        node: String,
        /// How much is missing.
        shortfall: Bytes,
        /// The budget.
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
    /// The policy answered what cannot be done.
    #[error("the policy asked to {action}, which is not possible: {reason}")]
    IllegalAction {
        /// What it asked for.
        action: String,
        /// Why not.
        reason: &'static str,
    },
    /// The policy cannot work here.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The arena for quantised tensors cannot be what the policy wants.
    #[error("the arena of quantised tensors: {0}")]
    Arena(#[from] PageError),
    /// A GPU that the kernels of quantisation do not fit.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A graph that reads what nobody has written.
    #[error("{node} reads {tensor}, which nothing has written")]
    Unwritten {
        /// The node.
        node: String,
        /// The tensor.
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
        /// The iteration, from nought.
        iteration: u32,
        /// How often in it.
        times: u32,
        /// What the killer says.
        kill: Box<Kill>,
    },
    /// An empty mini-batch.
    #[error("a mini-batch has at least one sample")]
    EmptyBatch,
}

impl RunError {
    /// Whether more memory would help.
    #[must_use]
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
