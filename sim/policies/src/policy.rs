//! What a policy is asked, what it sees, and what it may answer.
//!
//! A policy decides, the executor validates and charges: policies never touch bytes or clocks
//! themselves, so all of them are compared on exactly the same machine. An answer that cannot be
//! carried out is an error of the run, never ignored.

use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::work::Precision;
use haversack_workloads::{Extent, NodeId, Phase, TensorId, TrainingGraph};
use thiserror::Error;

use crate::budget::BudgetRule;
use crate::quantised::Quantisation;

/// What a policy knows before the first iteration.
pub struct Setting<'a> {
    /// The graph that will be executed.
    pub graph: &'a TrainingGraph,
    /// Samples of a mini-batch.
    pub batch: u64,
    /// The smallest micro-batch that fills the processor (Sage's under-utilisation point).
    pub filling_micro_batch: u64,
    /// What each node takes with the whole mini-batch, alone; empty unless the policy [needs](Policy::needs_times) it.
    pub times: &'a [Nanos],
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Bytes of an element of a dropout mask.
    pub mask_bytes: u64,
    /// Bytes that saved tensors may take.
    pub activation_budget: Option<Bytes>,
    /// Time that an iteration may take.
    pub time_budget: Option<Nanos>,
    /// The DSP beside the CPU, where the run may use one.
    pub dsp: Option<&'a dyn DspProfile>,
    /// What giving a tensor up costs otherwise than by computing it again; nothing where that is not known.
    pub regain: Option<&'a dyn RegainProfile>,
}

/// What compressing and swapping tensors would cost, as profiled before the first iteration.
pub trait RegainProfile {
    /// `tensor` compressed, at `samples` samples; nothing where no codec reaches it.
    fn compression(&self, tensor: TensorId, samples: u64) -> Option<Compression>;
    /// So many bytes swapped to flash; nothing where the device has none.
    fn swapping(&self, bytes: Bytes) -> Option<Swapping>;
}

/// A tensor compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// What is left of it.
    pub bytes: Bytes,
    /// The time of compressing it.
    pub compress: Nanos,
    /// The time of getting it back.
    pub decompress: Nanos,
}

/// A tensor on flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swapping {
    /// The time of writing it.
    pub out: Nanos,
    /// The time of reading it.
    pub back: Nanos,
}

/// What the DSP would take, as profiled before the first iteration.
pub trait DspProfile {
    /// The time of `node` with `samples` samples; nothing where the DSP has no operator for it.
    fn time(&self, node: NodeId, samples: u64) -> Option<Nanos>;
    /// The time of crossing between the processors with so many bytes to copy.
    fn crossing(&self, bytes: Bytes) -> Nanos;
    /// Memory that subgraphs may take there together.
    fn memory(&self) -> Bytes;
    /// The time of adding what one more part of a split batch gives to the results of `node`.
    fn accumulation(&self, _node: NodeId) -> Nanos {
        Nanos::ZERO
    }
}

/// What a policy fixes before the first iteration.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Samples of the first micro-batch.
    pub micro_batch: u64,
    /// The graph to run instead of the one that was given, with the same tensors.
    pub graph: Option<TrainingGraph>,
    /// The number format of the arithmetic, where it is not the run's.
    pub precision: Option<Precision>,
    /// How quantised tensors are stored; nothing where the policy quantises none.
    pub quantisation: Option<Quantisation>,
    /// Which nodes run on the DSP; nothing where none does.
    pub offload: Option<Offload>,
    /// Percent of the memory budget beside weights and the optimiser's state that are left in use after an operator,
    /// where something can give way (see [`Policy::trim`]); nothing where all of it may be.
    pub computing_budget: Option<u64>,
}

/// What a policy runs on the DSP, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// Whether each node runs there.
    pub on_dsp: Vec<bool>,
    /// Samples of the parts that a node's batch is split into there; 0 where it runs whole.
    pub split: Vec<u64>,
    /// Whether a subgraph begins at each node. Where a scale is taken anew within one, it is cut there for that
    /// iteration: the piece that follows begins at a node that is not marked.
    pub begins: Vec<bool>,
    /// Of the subgraphs, in order of execution, those that are prepared in every iteration; the others only in the
    /// first. Nothing where all are.
    pub prepared_again: Option<Vec<bool>>,
}

impl Schedule {
    /// The graph as it is, from a micro-batch of `micro_batch` samples.
    #[must_use]
    pub const fn plain(micro_batch: u64) -> Self {
        Self { micro_batch, graph: None, precision: None, quantisation: None, offload: None, computing_budget: None }
    }
}

/// How a tensor with a later backward use is to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// How a policy gives memory back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relief {
    /// Drop the tensor; it is computed again at its use.
    Rematerialise(TensorId),
    /// Go on with so many samples: in forward the last samples' columns of every tensor are dropped,
    /// in backward, where their gradients are already summed, the part starts again. Their time is lost.
    ShrinkMicroBatch(u64),
    /// Store a quantised tensor with fewer bits, in place.
    Requantise(TensorId, u8),
    /// Give up the weight gradients that need the tensor, for this iteration.
    Skip(TensorId),
    /// Compress the tensor; it is decompressed at its use.
    Compress(TensorId),
    /// Write the tensor to flash; it is read at its use.
    Swap(TensorId),
}

/// One tensor as a policy sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct TensorState {
    /// Its bytes at the current micro-batch.
    pub bytes: Bytes,
    /// Time of the operator that makes it.
    pub cost: Nanos,
    /// When it was last read or written.
    pub last_use: Nanos,
    /// The next node of the schedule that reads it; `NodeId::MAX` if none does.
    pub next_use: NodeId,
    /// Whether it is in memory.
    pub resident: bool,
    /// Whether it was dropped and will be computed again.
    pub dropped: bool,
    /// The bits a value with which it is stored; 0 where it is not quantised.
    pub bits: u8,
}

/// Memory as it stands when a policy is asked.
pub struct MemoryView<'a> {
    /// The graph.
    pub graph: &'a TrainingGraph,
    /// Every tensor, by id.
    pub tensors: &'a [TensorState],
    /// Tensors that may be dropped: resident, not in use, possible to compute again.
    pub candidates: &'a [TensorId],
    /// The node that makes each tensor; `NodeId::MAX` for inputs and weights.
    pub producers: &'a [NodeId],
    /// Samples of the current micro-batch.
    pub micro_batch: u64,
    /// All that is resident, and what the next node wants beside it.
    pub needed: Extent,
    /// Bytes that may be resident; nothing where memory is not bounded.
    pub budget: Bytes,
    /// The clock.
    pub now: Nanos,
    /// The phase of the node at which memory is short.
    pub phase: Phase,
}

impl MemoryView<'_> {
    /// The largest micro-batch, no smaller than `least`, with which everything needed fits; `least` where none does.
    #[must_use]
    pub fn fitting_micro_batch(&self, least: u64) -> u64 {
        let room = self.budget.0.saturating_sub(self.needed.fixed);
        let fits = room.checked_div(self.needed.per_sample).unwrap_or(self.micro_batch);
        fits.clamp(least.min(self.micro_batch), self.micro_batch)
    }

    /// Candidates in the order in which `score` lets them go, until `shortfall` is freed.
    pub fn evict_lowest(&self, shortfall: Bytes, score: impl Fn(TensorId, &TensorState) -> f64) -> Vec<Relief> {
        let state = |id: TensorId| &self.tensors[id as usize];
        let mut ranked: Vec<(f64, TensorId)> = self.candidates.iter().map(|&id| (score(id, state(id)), id)).collect();
        let mut reliefs = Vec::new();
        let mut freed = Bytes::ZERO;
        while freed < shortfall && !ranked.is_empty() {
            // One pass a victim: few go at a time, and a full sort would cost more.
            let lowest = (0..ranked.len())
                .min_by(|&a, &b| ranked[a].0.total_cmp(&ranked[b].0).then(ranked[a].1.cmp(&ranked[b].1)));
            let Some(lowest) = lowest else { break };
            let (_, victim) = ranked.swap_remove(lowest);
            freed += state(victim).bytes;
            reliefs.push(Relief::Rematerialise(victim));
        }
        reliefs
    }
}

/// What a policy learns from an iteration.
#[derive(Clone, Debug, Default)]
pub struct IterationSummary {
    /// How long it took.
    pub time: Nanos,
    /// The micro-batches that it was split into.
    pub micro_batches: Vec<u64>,
    /// The importance of saved tensors, where the run carried data to measure it on.
    pub importance: Vec<(TensorId, f64)>,
}

/// Why a policy cannot work here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// No policy has this name.
    #[error("unknown policy '{found}'{}", suggestion(nearest.as_deref()))]
    Unknown {
        /// What was asked for.
        found: String,
        /// The nearest name.
        nearest: Option<String>,
    },
    /// The policy has no such parameter.
    #[error("policy '{policy}' has no parameter '{found}'{}", suggestion(nearest.as_deref()))]
    UnknownParameter {
        /// The policy.
        policy: &'static str,
        /// What was set.
        found: String,
        /// The nearest name.
        nearest: Option<String>,
    },
    /// The policy's page table refuses an entry.
    #[error("{policy}: {reason}")]
    Table {
        /// The policy.
        policy: &'static str,
        /// Why.
        reason: String,
    },
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
    /// The policy offloads to a DSP, and the run has none.
    #[error("{policy} needs a DSP; expected a device and a stack that have one")]
    NoDsp {
        /// The policy.
        policy: &'static str,
    },
    /// An operator's buffers are larger than the DSP's memory.
    #[error("{policy}: the buffers of {node} take {bytes} on the DSP; expected at most {memory}")]
    DspMemory {
        /// The policy.
        policy: &'static str,
        /// The operator.
        node: String,
        /// Its buffers.
        bytes: Bytes,
        /// What the DSP has.
        memory: Bytes,
    },
    /// The parameter cannot have this value.
    #[error("{policy}.{parameter} cannot be '{found}'; expected {expected}")]
    BadValue {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// What was set.
        found: String,
        /// What it may be.
        expected: String,
    },
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default()
}

/// A memory policy.
pub trait Policy: Send {
    /// Whether [`Setting::times`] is to be worked out for it.
    fn needs_times(&self) -> bool {
        false
    }

    /// Before the first iteration: the first micro-batch.
    ///
    /// # Errors
    /// Where the policy cannot work in this setting.
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        Ok(Schedule::plain(setting.batch))
    }

    /// Who decides the memory budget of a run on a phone in use, where this policy does; an iteration takes about so
    /// long.
    fn budget_rule(&mut self, _iteration: Nanos) -> Option<Box<dyn BudgetRule>> {
        None
    }

    /// Before each iteration: its first micro-batch, where that is not the schedule's.
    fn begin_iteration(&mut self) -> Option<u64> {
        None
    }

    /// Whether the scale of `tensor` is taken anew in this iteration; otherwise it keeps the one that it has.
    fn rescales(&mut self, _tensor: TensorId) -> bool {
        true
    }

    /// A tensor with a later backward use was just made: how is it to be held? Asked again after a relief.
    fn hold(&mut self, _tensor: TensorId) -> Holding {
        Holding::Keep
    }

    /// `shortfall` more bytes are wanted than the budget leaves: what gives way? Asked again while it
    /// is not enough; nothing means that the policy is at its end.
    fn relieve(&mut self, _shortfall: Bytes, _memory: &MemoryView<'_>) -> Vec<Relief> {
        Vec::new()
    }

    /// An operator has left `excess` bytes more in use than the schedule's computing budget: what gives way? Nothing
    /// means that the run goes on as it is.
    fn trim(&mut self, _excess: Bytes, _memory: &MemoryView<'_>) -> Vec<Relief> {
        Vec::new()
    }

    /// After each iteration.
    fn end_iteration(&mut self, _seen: &IterationSummary) {}
}
