//! What a policy knows before the first iteration.

use std::cell::LazyCell;

use haversack_devices::{Bytes, FactorConstants, Nanos};
use haversack_workloads::{NodeId, TensorId, TrainingGraph};
use serde::Deserialize;

use crate::{ElementBytes, Oracle, Room};

/// What a policy has learned of the data, as a value of its own; null if it learns nothing from data.
pub type Learned = serde_json::Value;

/// What a policy knows before the first iteration.
#[must_use]
pub struct Setting<'a> {
    /// The graph that will be executed.
    pub graph: &'a TrainingGraph,
    /// Samples of a mini-batch.
    pub batch: u64,
    /// The smallest micro-batch that fills the processor (Sage's under-utilisation point).
    pub filling_micro_batch: u64,
    /// What each node takes alone; see [`Setting::times`].
    pub node_times: NodeTimes<'a>,
    /// Bytes of elements.
    pub elements: ElementBytes,
    /// Bytes that are in memory beside tensors from the beginning to the end: the workspace of libraries.
    pub beside: Bytes,
    /// The most that an operator borrows beside tensors while it runs.
    pub workspace: Bytes,
    /// The memory that an iteration may take.
    pub room: Room,
    /// Bytes that saved tensors may take.
    pub activation_budget: Option<Bytes>,
    /// Time that an iteration may take.
    pub time_budget: Option<Nanos>,
    /// The DSP beside the CPU; `None` if the run may not use one.
    pub dsp: Option<&'a dyn DspProfile>,
    /// What compressing and swapping tensors costs; `None` if that is not known.
    pub restore: Option<&'a dyn RestoreProfile>,
    /// The executor, to try plans on; `None` where the setting is not a run's.
    pub oracle: Option<&'a dyn Oracle>,
    /// The importance of tensors as iterations before have measured it, by tensor; `None` if none has.
    pub importance: Option<&'a [f64]>,
    /// What the policy had [`learned`](crate::Policy::learned) in a run on the same graph that this one goes on from.
    pub learned: Option<&'a Learned>,
    /// How scale factors scatter; `None` if that is not known.
    pub factors: Option<&'a FactorConstants>,
    /// Whether every iteration tells the scale factors that the data have given: see [`crate::IterationPlan`].
    pub tells_factors: bool,
}

impl<'a> Setting<'a> {
    /// `batch` samples of `graph` in fp32, with masks of a byte an element, without budgets, a DSP, a codec, flash or factors;
    /// one sample fills the processor.
    pub fn plain(graph: &'a TrainingGraph, batch: u64, node_times: NodeTimes<'a>) -> Self {
        Self {
            graph,
            batch,
            filling_micro_batch: 1,
            node_times,
            elements: ElementBytes { value: 4, mask: 1 },
            beside: Bytes::ZERO,
            workspace: Bytes::ZERO,
            room: Room::default(),
            activation_budget: None,
            time_budget: None,
            dsp: None,
            restore: None,
            oracle: None,
            importance: None,
            learned: None,
            factors: None,
            tells_factors: false,
        }
    }

    /// What tensors are worth: as measured, or by `metric` while nothing is.
    pub const fn worth(&self, metric: Metric) -> Worth<'a> {
        match self.importance {
            Some(measured) => Worth::Measured(measured),
            None => Worth::Prior(metric),
        }
    }

    /// What each node takes with the whole mini-batch, alone. Worked out when it is first asked for.
    pub fn times(&self) -> &[Nanos] {
        &self.node_times.0
    }
}

/// The times of a graph's nodes, worked out when they are first asked for.
#[must_use]
pub struct NodeTimes<'a>(LazyCell<Vec<Nanos>, Box<dyn FnOnce() -> Vec<Nanos> + 'a>>);

impl<'a> NodeTimes<'a> {
    /// Those that `measure` yields, one a node.
    pub fn on_demand(measure: impl FnOnce() -> Vec<Nanos> + 'a) -> Self {
        Self(LazyCell::new(Box::new(measure)))
    }
}

/// What compressing, swapping and packing tensors and running smaller parts costs, as profiled before the first iteration.
pub trait RestoreProfile {
    /// `tensor` compressed, at `samples` samples; `None` if no codec reaches it.
    fn compression(&self, tensor: TensorId, samples: u64) -> Option<Compression>;
    /// `bytes` swapped to flash; `None` if the device has none.
    fn swapping(&self, bytes: Bytes) -> Option<Swapping>;
    /// Packing `values` values to `bits` bits each on the processor that trains, and unpacking them.
    fn packing(&self, _values: u64, _bits: u8) -> Swapping {
        Swapping::default()
    }
    /// What each node takes alone with `samples` samples; nothing where that is not known.
    fn times_at(&self, _samples: u64) -> Vec<Nanos> {
        Vec::new()
    }
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
    /// The time of `node` with `samples` samples; `None` if the DSP has no operator for it.
    fn time(&self, node: NodeId, samples: u64) -> Option<Nanos>;
    /// The time of crossing between the processors with `bytes` to copy.
    fn crossing(&self, bytes: Bytes) -> Nanos;
    /// Memory that subgraphs may take there together.
    fn memory(&self) -> Bytes;
    /// The time of adding what one more part of a split batch gives to the results of `node`.
    fn accumulation(&self, _node: NodeId) -> Nanos {
        Nanos::ZERO
    }
}

/// The metrics that need no data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// The trained values whose gradients a tensor enters, each weighted by how deep its layer lies, from 0 at the
    /// input to 1 at the loss: late layers change most in training and in fine-tuning.
    #[default]
    Depth,
    /// The same without the weights.
    Values,
    /// One for each tensor.
    Uniform,
    /// For bits the number of the tensor's own values, since what measures worth by the error that few bits add is about
    /// in proportion to it, whatever made the tensor (`experiments/measured/comparison-sensitivity.toml`: of ResNet-8's
    /// variance 63% by the 45% of the values that a ReLU made, 37% by the others). For weights as by depth.
    Stored,
}

/// What tensors are worth: by a metric that needs no data, or as a run with data has measured it.
///
/// What is measured is, of the gradient of a weight, the sum of its squares, by which the loss falls at a small step along
/// it (Huang et al., MobiSys 2023); of a saved tensor, the variance that storing it with one step over its range adds to
/// the gradients of the weights that read it (Liu et al., ICML 2022, section 4). A tensor that was never measured is worth
/// nothing.
#[derive(Clone, Copy, Debug)]
pub enum Worth<'a> {
    /// By a metric.
    Prior(Metric),
    /// By moving averages of what was measured, by tensor.
    Measured(&'a [f64]),
}
