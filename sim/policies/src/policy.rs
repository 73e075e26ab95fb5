//! What a policy is asked and what it may answer.
//!
//! A policy decides, the executor validates and charges: policies never touch bytes or clocks themselves, so all of
//! them are compared on exactly the same machine. An answer that cannot be carried out is an error of the run, never
//! ignored. What a policy sees is in [`setting`] before the first iteration and in
//! [`view`](crate::view) during one.

pub mod setting;

use haversack_devices::{Bytes, Nanos, Precision};
use haversack_workloads::{Extent, TensorId, TrainingGraph};
use serde::{Deserialize, Serialize};

use crate::planning::{Planning, Room};
use crate::{BudgetRule, Learned, MemoryView, Operations, PolicyError, Quantisation, Setting, TensorSet};

/// A memory policy: six questions, each with a default. An error in place of an answer ends the run.
pub trait Policy: Send {
    /// Before the first iteration: what holds for all of them.
    ///
    /// # Errors
    /// A policy that cannot work in this setting.
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        Ok(Schedule::plain(setting.batch))
    }

    /// Before each iteration: what holds for this one. `plan` comes as the schedule has it.
    ///
    /// # Errors
    /// A policy that can decide nothing any more.
    fn begin_iteration(&mut self, _plan: &mut IterationPlan) -> Result<(), PolicyError> {
        Ok(())
    }

    /// A tensor with a later backward use was just made: how is it to be held? Asked again after a relief.
    ///
    /// # Errors
    /// As [`Policy::begin_iteration`].
    fn hold(&mut self, _tensor: TensorId, _memory: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        Ok(Holding::Keep)
    }

    /// Memory is wanted: what gives way? Asked again while it is not enough. An empty answer to a shortfall means that
    /// the policy is at its end; the run goes on as it is after one to what exceeds the plan.
    ///
    /// # Errors
    /// As [`Policy::begin_iteration`].
    fn relieve(&mut self, _want: Want, _memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        Ok(Vec::new())
    }

    /// After each iteration. Returns what deciding has taken so far, on the device: it is charged once for each memory that was
    /// decided for, as what was decided then is the plan.
    ///
    /// # Errors
    /// As [`Policy::begin_iteration`].
    fn end_iteration(&mut self, _seen: &IterationSummary) -> Result<Operations, PolicyError> {
        Ok(Operations::default())
    }

    /// What it has learned of the data. A later run on the same graph is given it back in [`Setting::learned`].
    fn learned(&self) -> Learned {
        Learned::Null
    }
}

/// What a policy fixes before the first iteration.
#[derive(Debug, Default)]
pub struct Schedule {
    /// Samples of the first micro-batch.
    pub micro_batch: u64,
    /// The graph to run instead of the one that was given, with the same tensors.
    pub graph: Option<TrainingGraph>,
    /// The number format of the arithmetic; `None` for the run's.
    pub precision: Option<Precision>,
    /// How quantised tensors are stored; `None` if the policy quantises none.
    pub quantisation: Option<Quantisation>,
    /// Which nodes run on the DSP; `None` if none does.
    pub offload: Option<Offload>,
    /// What may be left in use after an operator, if something can give way (see [`Want::OverPlan`]); `None` if all that
    /// there is.
    pub computing_budget: Option<ComputingBudget>,
    /// Whose statistics batch normalisations take.
    pub batch_statistics: BatchStatistics,
    /// What plans ahead within the memory that there is; `None` if everything is decided as memory runs short.
    pub planner: Option<Box<dyn PlanAhead>>,
    /// Who decides the memory budget of a run on a phone in use; `None` if nobody does.
    pub budget_rule: Option<Box<dyn BudgetRule>>,
    /// Iterations of a round: the rule is asked before it, and after it the process gives the memory back that no tensor is
    /// in. `None` if each iteration is a round, and the process keeps its memory.
    pub round: Option<u64>,
}

impl Schedule {
    /// The graph as it is, from a micro-batch of `micro_batch` samples.
    pub fn plain(micro_batch: u64) -> Self {
        Self { micro_batch, ..Self::default() }
    }

    /// Whether it is [`plain`](Self::plain), from a micro-batch of `batch` samples: where memory is not short, nothing is
    /// decided before the first iteration.
    pub const fn is_plain(&self, batch: u64) -> bool {
        self.micro_batch == batch
            && self.graph.is_none()
            && self.precision.is_none()
            && self.quantisation.is_none()
            && self.offload.is_none()
            && self.computing_budget.is_none()
            && matches!(self.batch_statistics, BatchStatistics::Part)
            && self.budget_rule.is_none()
            && self.round.is_none()
    }
}

/// Plans ahead what gives way; part of the [`Schedule`] of a policy that does.
pub trait PlanAhead: std::fmt::Debug + Send {
    /// Before each iteration, of which nothing is fixed yet, and when a process that was ended has started again: sees to the plan for the memory that it
    /// may take of. Returns what that took, nothing where the plan in force holds.
    ///
    /// # Errors
    /// A policy that can decide nothing any more.
    fn plan_within(
        &mut self,
        graph: &TrainingGraph,
        room: Room,
        oracle: &dyn Oracle,
    ) -> Result<Option<Planning>, PolicyError>;
}

/// The executor, as whoever looks for a plan asks it.
pub trait Oracle {
    /// What the last of so many iterations under `policy` within `room` takes, of which nothing stays. A [`Planned`](crate::Planned) tries a
    /// plan, a [`Recorder`](crate::Recorder) makes one of what its policy decides.
    ///
    /// # Errors
    /// Why there is none, such as memory that nothing frees.
    fn run(&self, policy: &mut dyn Policy, room: Room, iterations: u32) -> Result<Tried, PolicyError>;
}

/// What an iteration took, and all of them gave up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// How long it was.
    pub time: Nanos,
    /// The most that was in memory.
    pub peak: Bytes,
    /// Operators that ran, again or for the first time.
    pub operators: u64,
    /// Operators that ran again.
    pub recomputed: u64,
    /// Bytes that were written to flash.
    pub written: Bytes,
    /// What gradients gave up, a number a kind: gradients of weights, arithmetic, bits a value, batch statistics.
    pub losses: [u64; 4],
}

/// How much of the memory budget beside weights and the optimiser's state may be left in use after an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComputingBudget {
    /// So many percent of it.
    Percent(u64),
    /// What an operator leaves of it that works in so much, as far as a pool holds it that becomes `pool` where `live`
    /// lives in it.
    Pool {
        /// What an operator makes and borrows while it runs.
        working: Extent,
        /// What the pool takes.
        pool: Bytes,
        /// What lives in it.
        live: Bytes,
    },
}

impl ComputingBudget {
    /// The bytes that may be left in use of `covered`, while parts have `samples` samples.
    pub fn of(self, covered: Bytes, samples: u64) -> Bytes {
        match self {
            Self::Percent(percent) => Bytes(covered.0 / 100 * percent),
            Self::Pool { working, pool, live } => {
                let left = covered.0.saturating_sub(working.at(samples));
                let held = u128::from(left) * u128::from(live.0) / u128::from(pool.0.max(live.0).max(1));
                // No more than was left.
                Bytes(u64::try_from(held).unwrap_or(left))
            }
        }
    }
}

/// Whose statistics a batch normalisation takes where a mini-batch is trained in parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BatchStatistics {
    /// Each part's own, as frameworks do it.
    #[default]
    Part,
    /// The whole mini-batch's: before each iteration all of it goes forward once, and nothing of that is kept but the
    /// statistics (Gim and Ko, MobiSys 2022, section 5).
    Whole,
}

/// What a policy runs on the DSP, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offload {
    /// Whether each node runs there.
    pub on_dsp: Vec<bool>,
    /// Samples of the parts that a node's batch is split into there; 0 for a node that runs whole.
    pub split: Vec<u64>,
    /// Whether a subgraph begins at each node. Where a scale is taken anew within one, it is cut there for that
    /// iteration: the piece that follows begins at a node that is not marked.
    pub begins: Vec<bool>,
    /// Of the subgraphs, in order of execution, those that are prepared in every iteration; the others only in the
    /// first. `None` if all are.
    pub prepared_again: Option<Vec<bool>>,
}

/// What a policy fixes for one iteration.
#[derive(Clone, Debug)]
#[must_use]
pub struct IterationPlan {
    /// Samples of the first micro-batch; at least one, at most the mini-batch's.
    pub micro_batch: u64,
    /// The importance of tensors as iterations before have measured it, by tensor; empty if none has.
    pub importance: Vec<f64>,
    /// The scale factors of integer tensors as the iteration before left them, by tensor, `None` for those that have none
    /// yet; empty where no data is carried in integers.
    pub factors: Vec<Option<u32>>,
    /// So often is the mini-batch carried forward and backward once more, without an update, to see what each tensor does to
    /// gradients.
    pub rehearsals: u64,
    kept_scales: TensorSet,
}

impl IterationPlan {
    /// From a micro-batch of `micro_batch` samples; every scale is taken anew.
    pub const fn new(micro_batch: u64) -> Self {
        Self { micro_batch, importance: Vec::new(), factors: Vec::new(), rehearsals: 0, kept_scales: TensorSet::new() }
    }

    /// `tensor` keeps the scale that it has: its rescaling does not run in this iteration.
    pub fn keep_scale(&mut self, tensor: TensorId) {
        self.kept_scales.insert(tensor);
    }

    /// The tensors that keep theirs.
    pub fn kept_scales(&self) -> impl Iterator<Item = TensorId> {
        self.kept_scales.iter()
    }

    /// Whether the scale of `tensor` is taken anew.
    pub fn rescales(&self, tensor: TensorId) -> bool {
        !self.kept_scales.contains(tensor)
    }
}

/// How a tensor with a later backward use is to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holding {
    /// Whole, in memory.
    Keep,
    /// Not at all: it is computed again at its use.
    Rematerialise,
    /// Where the schedule's quantisation stores tensors, with so many bits a value: 1 to 8, 16, or 32 for whole.
    Quantise(u8),
    /// Not at all, and the weight gradients that need it are given up.
    Skip,
    /// Compressed, within an error bound.
    Compress,
    /// On flash.
    Swap,
}

/// Why memory is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// So many more bytes are wanted than the budget leaves.
    Shortfall(Bytes),
    /// An operator has left so many bytes more in use than the schedule's computing budget.
    OverPlan(Bytes),
}

impl Want {
    /// How much is wanted.
    pub const fn bytes(self) -> Bytes {
        match self {
            Self::Shortfall(bytes) | Self::OverPlan(bytes) => bytes,
        }
    }
}

/// How a policy gives memory back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relief {
    /// Drop the tensor; it is computed again at its use.
    Rematerialise(TensorId),
    /// Go on with so many samples: in forward the last samples' columns of every tensor are dropped,
    /// in backward, where their gradients are already summed, the part starts again. Their time is lost.
    ShrinkMicroBatch(u64),
    /// Store a quantised tensor with fewer bits, in place.
    Requantise(TensorId, u8),
    /// Quantise a tensor that is whole in memory, as the schedule says.
    Quantise(TensorId, u8),
    /// Give up the weight gradients that need the tensor, for this iteration.
    Skip(TensorId),
    /// Compress the tensor; it is decompressed at its use.
    Compress(TensorId),
    /// Write the tensor to flash; it is read at its use.
    Swap(TensorId),
}

impl Relief {
    /// How the tensor is held then; as it is where samples give way.
    pub const fn holding(&self) -> Holding {
        match *self {
            Self::ShrinkMicroBatch(_) => Holding::Keep,
            Self::Rematerialise(_) => Holding::Rematerialise,
            Self::Requantise(_, bits) | Self::Quantise(_, bits) => Holding::Quantise(bits),
            Self::Skip(_) => Holding::Skip,
            Self::Compress(_) => Holding::Compress,
            Self::Swap(_) => Holding::Swap,
        }
    }

    /// The tensor that gives way; `None` if samples do.
    pub const fn tensor(&self) -> Option<TensorId> {
        match *self {
            Self::ShrinkMicroBatch(_) => None,
            Self::Rematerialise(tensor)
            | Self::Requantise(tensor, _)
            | Self::Quantise(tensor, _)
            | Self::Skip(tensor)
            | Self::Compress(tensor)
            | Self::Swap(tensor) => Some(tensor),
        }
    }
}

/// What a policy learns from an iteration.
#[derive(Clone, Debug, Default)]
pub struct IterationSummary {
    /// How long it took.
    pub time: Nanos,
    /// The micro-batches that it was split into.
    pub micro_batches: Vec<u64>,
}
