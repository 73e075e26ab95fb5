//! A policy's information before the first iteration.

use std::cell::LazyCell;

use haversack_devices::{Bytes, FactorConstants, Nanos};
use haversack_workloads::{NodeId, TensorId, TrainingGraph};
use serde::Deserialize;

use crate::{ElementBytes, Oracle, Room};

/// A policy's learned parameters, as a JSON value; null if it learns nothing from data.
pub type Learned = serde_json::Value;

/// A policy's information before the first iteration.
#[must_use]
pub struct Setting<'a> {
    /// The graph that will be executed.
    pub graph: &'a TrainingGraph,
    /// Samples of a mini-batch.
    pub batch: u64,
    /// The smallest micro-batch that fills the processor (Sage's under-utilisation point).
    pub filling_micro_batch: u64,
    /// The time of each node when run alone; see [`Setting::times`].
    pub node_times: NodeTimes<'a>,
    /// Bytes of elements.
    pub elements: ElementBytes,
    /// Bytes in memory in addition to tensors throughout the run: the workspace of libraries.
    pub beside: Bytes,
    /// The largest additional workspace of an operator while it runs.
    pub workspace: Bytes,
    /// The memory that an iteration may use.
    pub room: Room,
    /// Bytes that saved tensors may use.
    pub activation_budget: Option<Bytes>,
    /// Time that an iteration may take.
    pub time_budget: Option<Nanos>,
    /// The DSP; `None` if the run may not use one.
    pub dsp: Option<&'a dyn DspProfile>,
    /// The costs of compressing and swapping tensors; `None` if unknown.
    pub restore: Option<&'a dyn RestoreProfile>,
    /// The executor, to try plans on; `None` outside of a run.
    pub oracle: Option<&'a dyn Oracle>,
    /// The importance of tensors measured in earlier iterations, by tensor; `None` if none was.
    pub importance: Option<&'a [f64]>,
    /// The state that the policy had [`learned`](crate::Policy::learned) in an earlier run on the same graph, if this
    /// run continues it.
    pub learned: Option<&'a Learned>,
    /// How scale factors scatter; `None` if unknown.
    pub factors: Option<&'a FactorConstants>,
    /// Whether every iteration passes on the scale factors found in the data: see [`crate::IterationPlan`].
    pub tells_factors: bool,
}

impl<'a> Setting<'a> {
    /// `batch` samples of `graph` in fp32, with masks of a byte an element, without budgets, a DSP, a codec, flash or
    /// factors; one sample fills the processor.
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

    /// The importance of tensors: as measured, or by `metric` without measurements.
    pub const fn worth(&self, metric: Metric) -> Worth<'a> {
        match self.importance {
            Some(measured) => Worth::Measured(measured),
            None => Worth::Prior(metric),
        }
    }

    /// The time of each node with the whole mini-batch, run alone. Computed on first use.
    pub fn times(&self) -> &[Nanos] {
        &self.node_times.0
    }
}

/// The times of a graph's nodes, computed on first use.
#[must_use]
pub struct NodeTimes<'a>(LazyCell<Vec<Nanos>, Box<dyn FnOnce() -> Vec<Nanos> + 'a>>);

impl<'a> NodeTimes<'a> {
    /// The times that `measure` returns, one per node.
    pub fn on_demand(measure: impl FnOnce() -> Vec<Nanos> + 'a) -> Self {
        Self(LazyCell::new(Box::new(measure)))
    }
}

/// The costs of compressing, swapping and packing tensors and of running smaller parts, profiled before the first
/// iteration.
pub trait RestoreProfile {
    /// Compression of `tensor` with `samples` samples; `None` if no codec can compress it.
    fn compression(&self, tensor: TensorId, samples: u64) -> Option<Compression>;
    /// `bytes` swapped to flash; `None` if the device has none.
    fn swapping(&self, bytes: Bytes) -> Option<Swapping>;
    /// Packing `values` values to `bits` bits each on the processor that trains, and unpacking them.
    fn packing(&self, _values: u64, _bits: u8) -> Swapping {
        Swapping::default()
    }
    /// The time of each node when run alone with `samples` samples; empty if unknown.
    fn times_at(&self, _samples: u64) -> Vec<Nanos> {
        Vec::new()
    }
}

/// A tensor compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// Its compressed size.
    pub bytes: Bytes,
    /// The time of compressing it.
    pub compress: Nanos,
    /// The time of decompressing it.
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

/// The costs of the DSP, profiled before the first iteration.
pub trait DspProfile {
    /// The time of `node` with `samples` samples; `None` if the DSP has no operator for it.
    fn time(&self, node: NodeId, samples: u64) -> Option<Nanos>;
    /// The time of crossing between the processors with `bytes` to copy.
    fn crossing(&self, bytes: Bytes) -> Nanos;
    /// Memory that all subgraphs together may use there.
    fn memory(&self) -> Bytes;
    /// The time of adding the results of one more part of a split batch to those of `node`.
    fn accumulation(&self, _node: NodeId) -> Nanos {
        Nanos::ZERO
    }
}

/// Metrics that need no data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// The trained values whose gradients a tensor enters, each weighted by how deep its layer lies, from 0 at the
    /// input to 1 at the loss: late layers change most in training and in fine-tuning.
    #[default]
    Depth,
    /// The same without the weights.
    Values,
    /// The same value for each tensor.
    Uniform,
    /// For bits, the number of the tensor's own values, since importance measured by the error of few bits is roughly
    /// proportional to it, whatever operator made the tensor (`experiments/measured/comparison-sensitivity.toml`: of
    /// ResNet-8's variance 63% by the 45% of the values that a ReLU made, 37% by the others). For weights, the same as
    /// by depth.
    Stored,
}

/// The importance of tensors: by a metric that needs no data, or as measured in a run with data.
///
/// For the gradient of a weight, the measure is the sum of its squares, the rate at which the loss falls at a small
/// step along it (Huang et al., MobiSys 2023); for a saved tensor, the variance that storing it with one step over its
/// range adds to the gradients of the weights that read it (Liu et al., ICML 2022, section 4). A tensor that was never
/// measured has importance zero.
#[derive(Clone, Copy, Debug)]
pub enum Worth<'a> {
    /// By a metric.
    Prior(Metric),
    /// By moving averages of the measurements, by tensor.
    Measured(&'a [f64]),
}
