//! The interface of policies: the questions to them, and their possible answers.
//!
//! A policy decides, the executor validates and charges: policies never touch bytes or clocks themselves, so all of
//! them are compared on exactly the same machine. An answer that cannot be carried out is an error of the run, never
//! ignored. The inputs of a policy are defined in [`setting`] for the time before the first iteration and in
//! [`view`](crate::view) for the time during one.

pub mod setting;

use haversack_devices::{Bytes, Nanos, Precision};
use haversack_workloads::{Extent, TensorId, TrainingGraph};
use serde::{Deserialize, Serialize};

use crate::planning::{Planning, Room};
use crate::{BudgetRule, Learned, MemoryView, Operations, PolicyError, Quantisation, Setting, TensorSet};

/// A memory policy: six methods, each with a default. An error instead of an answer ends the run.
pub trait Policy: Send {
    /// Before the first iteration: decisions for all of them.
    ///
    /// # Errors
    /// A policy that cannot work in this setting.
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        Ok(Schedule::plain(setting.batch))
    }

    /// Before each iteration: decisions for this one. `plan` is initialised from the schedule.
    ///
    /// # Errors
    /// A policy that cannot decide any more.
    fn begin_iteration(&mut self, _plan: &mut IterationPlan) -> Result<(), PolicyError> {
        Ok(())
    }

    /// A tensor with a later backward use was just made: how to hold it? Called again after a relief.
    ///
    /// # Errors
    /// As [`Policy::begin_iteration`].
    fn hold(&mut self, _tensor: TensorId, _memory: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        Ok(Holding::Keep)
    }

    /// Memory is short: which tensors or samples give way? Called again while that is not enough. An empty answer to a
    /// shortfall means that the policy can free nothing more; an empty answer to [`Want::OverPlan`] lets the run
    /// continue.
    ///
    /// # Errors
    /// As [`Policy::begin_iteration`].
    fn relieve(&mut self, _want: Want, _memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        Ok(Vec::new())
    }

    /// After each iteration. Returns the operations spent on decisions on the device so far: they are charged once for
    /// each memory limit, since the decisions made for it become the plan.
    ///
    /// # Errors
    /// As [`Policy::begin_iteration`].
    fn end_iteration(&mut self, _seen: &IterationSummary) -> Result<Operations, PolicyError> {
        Ok(Operations::default())
    }

    /// The policy's learned parameters. A later run on the same graph gets them in [`Setting::learned`].
    fn learned(&self) -> Learned {
        Learned::Null
    }
}

/// A policy's decisions before the first iteration.
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
    /// The memory that may be left in use after an operator, if something can give way (see [`Want::OverPlan`]); `None`
    /// for all of the memory.
    pub computing_budget: Option<ComputingBudget>,
    /// The statistics that batch normalisations use.
    pub batch_statistics: BatchStatistics,
    /// The planner for the available memory; `None` if everything is decided as memory runs short.
    pub planner: Option<Box<dyn PlanAhead>>,
    /// The rule for the memory budget of a run on a phone in use; `None` without one.
    pub budget_rule: Option<Box<dyn BudgetRule>>,
    /// Iterations of a round: the rule decides before it, and after it the process frees the memory that no tensor
    /// occupies. `None` if each iteration is a round, and the process keeps its memory.
    pub round: Option<u64>,
}

impl Schedule {
    /// The schedule of the unchanged graph, from a micro-batch of `micro_batch` samples.
    pub fn plain(micro_batch: u64) -> Self {
        Self { micro_batch, ..Self::default() }
    }

    /// Whether it is [`plain`](Self::plain), from a micro-batch of `batch` samples: unless memory is short, nothing is
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

/// Plans ahead which tensors give way; part of the [`Schedule`] of a policy that plans.
pub trait PlanAhead: std::fmt::Debug + Send {
    /// Called before each iteration, before anything is fixed for it, and when a killed process has started again:
    /// updates the plan for the memory that the iteration may use. Returns its cost; `None` if the plan in force stays.
    ///
    /// # Errors
    /// A policy that cannot decide any more.
    fn plan_within(
        &mut self,
        graph: &TrainingGraph,
        room: Room,
        oracle: &dyn Oracle,
    ) -> Result<Option<Planning>, PolicyError>;
}

/// The executor, for policies that search for a plan.
pub trait Oracle {
    /// Runs a number of iterations under `policy` within `room`, without lasting effects, and returns the cost of the
    /// last. A [`Planned`](crate::Planned) tries a plan, a [`Recorder`](crate::Recorder) makes one from the decisions
    /// of its policy.
    ///
    /// # Errors
    /// The reason of failure, such as memory that cannot be freed.
    fn run(&self, policy: &mut dyn Policy, room: Room, iterations: u32) -> Result<Tried, PolicyError>;
}

/// The costs of an iteration, and the losses over all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Its time.
    pub time: Nanos,
    /// The peak memory.
    pub peak: Bytes,
    /// Operators that ran, repetitions included.
    pub operators: u64,
    /// Operators that ran again.
    pub recomputed: u64,
    /// Bytes that were written to flash.
    pub written: Bytes,
    /// Losses in gradients, one number per kind: gradients of weights, arithmetic, bits a value, batch statistics.
    pub losses: [u64; 4],
}

/// The part of the memory budget, without weights and the optimiser's state, that may be left in use after an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComputingBudget {
    /// A percentage of it.
    Percent(u64),
    /// The part left by an operator's working memory, scaled by the share of a pool that live tensors fill: a pool
    /// grows to `pool` bytes when `live` bytes live in it.
    Pool {
        /// An operator's outputs and workspace while it runs.
        working: Extent,
        /// The size of the pool.
        pool: Bytes,
        /// Bytes that live in it.
        live: Bytes,
    },
}

impl ComputingBudget {
    /// The bytes that may be left in use out of `covered`, for parts of `samples` samples.
    pub fn of(self, covered: Bytes, samples: u64) -> Bytes {
        match self {
            Self::Percent(percent) => Bytes(covered.0 / 100 * percent),
            Self::Pool { working, pool, live } => {
                let left = covered.0.saturating_sub(working.at(samples));
                let held = u128::from(left) * u128::from(live.0) / u128::from(pool.0.max(live.0).max(1));
                // At most the memory left.
                Bytes(u64::try_from(held).unwrap_or(left))
            }
        }
    }
}

/// The statistics that a batch normalisation uses when a mini-batch is trained in parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BatchStatistics {
    /// Each part's statistics, as in frameworks.
    #[default]
    Part,
    /// The whole mini-batch's: before each iteration all of it goes forward once, and only the statistics are kept (Gim
    /// and Ko, MobiSys 2022, section 5).
    Whole,
}

/// The nodes that a policy runs on the DSP, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offload {
    /// Whether each node runs there.
    pub on_dsp: Vec<bool>,
    /// Samples of the parts that a node's batch is split into there; 0 for a node that runs whole.
    pub split: Vec<u64>,
    /// Whether a subgraph begins at each node. If a scale is recomputed within one, it is cut there for that iteration:
    /// the piece that follows begins at a node that is not marked.
    pub begins: Vec<bool>,
    /// Of the subgraphs, in order of execution, those that are prepared in every iteration; the others only in the
    /// first. `None` if all are.
    pub prepared_again: Option<Vec<bool>>,
}

/// A policy's decisions for one iteration.
#[derive(Clone, Debug)]
#[must_use]
pub struct IterationPlan {
    /// Samples of the first micro-batch; at least one, at most the mini-batch's.
    pub micro_batch: u64,
    /// The importance of tensors measured in earlier iterations, by tensor; empty if none was.
    pub importance: Vec<f64>,
    /// The scale factors of integer tensors after the previous iteration, by tensor, `None` for those without one so
    /// far; empty without integer data.
    pub factors: Vec<Option<u32>>,
    /// The number of additional forward and backward passes over the mini-batch, without an update, that measure each
    /// tensor's effect on gradients.
    pub rehearsals: u64,
    kept_scales: TensorSet,
}

impl IterationPlan {
    /// A plan from a micro-batch of `micro_batch` samples, with every scale recomputed.
    pub const fn new(micro_batch: u64) -> Self {
        Self { micro_batch, importance: Vec::new(), factors: Vec::new(), rehearsals: 0, kept_scales: TensorSet::new() }
    }

    /// `tensor` keeps its scale: its rescaling does not run in this iteration.
    pub fn keep_scale(&mut self, tensor: TensorId) {
        self.kept_scales.insert(tensor);
    }

    /// The tensors that keep their scale.
    pub fn kept_scales(&self) -> impl Iterator<Item = TensorId> {
        self.kept_scales.iter()
    }

    /// Whether the scale of `tensor` is recomputed.
    pub fn rescales(&self, tensor: TensorId) -> bool {
        !self.kept_scales.contains(tensor)
    }
}

/// How to hold a tensor with a later backward use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holding {
    /// Whole, in memory.
    Keep,
    /// Not at all: it is computed again at its use.
    Rematerialise,
    /// In the store defined by the schedule's quantisation, with this number of bits a value: 1 to 8, 16, or 32 for
    /// whole.
    Quantise(u8),
    /// Not at all, and the weight gradients that need it are given up.
    Skip,
    /// Compressed, within an error bound.
    Compress,
    /// On flash.
    Swap,
}

/// Why memory is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// This number of bytes more is needed than the budget leaves.
    Shortfall(Bytes),
    /// An operator has left this number of bytes more in use than the schedule's computing budget.
    OverPlan(Bytes),
}

impl Want {
    /// The number of bytes needed.
    pub const fn bytes(self) -> Bytes {
        match self {
            Self::Shortfall(bytes) | Self::OverPlan(bytes) => bytes,
        }
    }
}

/// How a policy frees memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relief {
    /// Drop the tensor; it is computed again at its use.
    Rematerialise(TensorId),
    /// Continue with this number of samples: in forward the last samples' columns of every tensor are dropped, in
    /// backward, where their gradients are already summed, the part starts again. Their time is lost.
    ShrinkMicroBatch(u64),
    /// Store a quantised tensor with fewer bits, in place.
    Requantise(TensorId, u8),
    /// Quantise a tensor that is whole in memory, by the schedule's rules.
    Quantise(TensorId, u8),
    /// Give up the weight gradients that need the tensor, for this iteration.
    Skip(TensorId),
    /// Compress the tensor; it is decompressed at its use.
    Compress(TensorId),
    /// Write the tensor to flash; it is read at its use.
    Swap(TensorId),
}

impl Relief {
    /// How to hold the tensor after it; unchanged if samples give way.
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

/// The executor's report on an iteration to the policy.
#[derive(Clone, Debug, Default)]
pub struct IterationSummary {
    /// How long it took.
    pub time: Nanos,
    /// The micro-batches that it was split into.
    pub micro_batches: Vec<u64>,
}
