//! `mandheling`: integer training on the DSP, assisted by the CPU (Xu et al., MobiCom 2022).
//!
//! Four techniques, each of which can be turned off. [`placement`] puts operators where crossing between the processors
//! costs least, and runs products in parts that fit the DSP's caches; [`factors`] recomputes scale factors only as
//! often as they change, which is drawn at random without data; [`subgraphs`] keeps subgraphs prepared for the DSP from
//! batch to batch. The graph arrives rewritten in integers.

pub mod factors;
pub mod placement;
pub mod subgraphs;

use std::ops::Range;

use factors::Factors;
use haversack_devices::Bytes;
use haversack_workloads::{TensorId, TrainingGraph};
use placement::{OperatorRow, Wanted};
use serde::Deserialize;

use crate::error::PolicyError;
use crate::planning::sizes;
use crate::policy::setting::{DspProfile, Learned, NodeTimes, Setting};
use crate::policy::{IterationPlan, Offload, Policy, Relief, Schedule, Want};
use crate::sage::{Dynamic, Order};
use crate::{MemoryView, Room};

const NAME: &str = "mandheling";

/// The default algorithm of integer training, of those in table 1.
pub const ALGORITHM: &str = "niti";

/// When scale factors are recomputed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rescaling {
    /// According to how often they were seen to change.
    Adaptive,
    /// In every batch.
    Dynamic,
}

/// Parameters of `mandheling`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[must_use]
pub struct Parameters {
    /// Whether crossings decide where an operator runs; otherwise each runs on the processor that suits it.
    pub coscheduling: bool,
    /// When scale factors are recomputed.
    pub rescaling: Rescaling,
    /// Whether products run in parts.
    pub splitting: bool,
    /// Whether subgraphs stay prepared.
    pub reuse: bool,
    /// Batches with rescaling that determine the next period.
    pub history: u64,
    /// Batches trained before the first simulated one.
    pub warm_up: u64,
    /// The seed of the scale factors' changes.
    pub seed: u64,
    /// Whether samples and tensors give way when memory is short.
    pub relief: bool,
}

/// Mandheling.
#[derive(Debug)]
#[must_use]
pub struct Mandheling {
    parameters: Parameters,
    /// `None` if scale factors are recomputed in every batch.
    factors: Option<Factors>,
    /// Whether data show how they change; otherwise that is drawn.
    has_data: bool,
    /// Samples of a micro-batch; `None` before it is decided.
    micro_batch: Option<u64>,
    /// The policy that frees memory.
    relief: Option<Dynamic>,
}

impl Mandheling {
    /// Mandheling with `parameters`.
    pub fn new(parameters: Parameters) -> Self {
        let relief = parameters.relief.then(|| Dynamic::new(Order::CheckpointingFirst, None));
        Self { parameters, factors: None, has_data: false, micro_batch: None, relief }
    }

    /// The micro-batch with which an iteration is fastest within the memory.
    fn fastest(&self, setting: &Setting<'_>) -> u64 {
        let bounded = self.parameters.relief && setting.room != Room::default();
        let Some(oracle) = setting.oracle.filter(|_| bounded) else { return setting.batch };
        // In the first iteration subgraphs are prepared.
        let time = |samples: u64| {
            let mut part = Self { micro_batch: Some(samples), ..Self::new(self.parameters) };
            Some((oracle.run(&mut part, setting.room, 2).ok()?.time, samples))
        };
        sizes(setting.batch).filter_map(time).min().map_or(setting.batch, |(_, samples)| samples)
    }

    fn offload(&self, setting: &Setting<'_>, dsp: &dyn DspProfile) -> Result<Offload, PolicyError> {
        let graph = setting.graph;
        let wanted = Wanted { splitting: self.parameters.splitting, factors: self.factors.as_ref() };
        let placement = OperatorRow::new(setting, dsp, wanted).place(setting, dsp, self.parameters.coscheduling);
        let absent: Vec<bool> = graph.nodes.iter().map(|node| wanted.turns(node).is_some()).collect();
        let mut begins = vec![false; graph.nodes.len()];
        let mut sizes = Vec::new();
        for run in subgraphs::runs(&placement.on_dsp, &absent) {
            for (first, bytes) in within_memory(setting, &placement.on_dsp, run, dsp.memory())? {
                begins[first] = true;
                sizes.push(bytes);
            }
        }
        let prepared_again = match self.parameters.reuse {
            // No subgraph is too large: they were cut so that each fits.
            true => subgraphs::plan(&sizes, dsp.memory()).ok().map(|plan| plan.prepared_again),
            false => None,
        };
        Ok(Offload { on_dsp: placement.on_dsp, split: placement.split, begins, prepared_again })
    }
}

/// Cuts a run on the DSP where its buffers would outgrow `memory`: the first node of each subgraph, and its buffers.
///
/// Buffers are all tensors that its operators read and write, each once: the vendor's library keeps a graph's tensors
/// from its preparation to its end.
fn within_memory(
    setting: &Setting<'_>,
    on_dsp: &[bool],
    run: Range<usize>,
    memory: Bytes,
) -> Result<Vec<(usize, Bytes)>, PolicyError> {
    let graph = setting.graph;
    let mut cuts: Vec<(usize, Bytes)> = Vec::new();
    let mut held: Vec<TensorId> = Vec::new();
    for node in run.filter(|&node| on_dsp[node]) {
        let more = buffers(graph, node, &held, setting.batch);
        match cuts.last_mut() {
            Some((_, bytes)) if *bytes + more <= memory => *bytes += more,
            _ => {
                held.clear();
                let bytes = buffers(graph, node, &held, setting.batch);
                if bytes > memory {
                    let node = graph.nodes[node].name.clone();
                    return Err(PolicyError::DspMemory { policy: NAME, node, bytes, memory });
                }
                cuts.push((node, bytes));
            }
        }
        held.extend(tensors_of(graph, node));
    }
    Ok(cuts)
}

fn tensors_of(graph: &TrainingGraph, node: usize) -> impl Iterator<Item = TensorId> {
    let node = &graph.nodes[node];
    node.inputs.iter().chain(&node.outputs).copied()
}

/// The bytes of the tensors of `node` that are not `held`.
fn buffers(graph: &TrainingGraph, node: usize, held: &[TensorId], samples: u64) -> Bytes {
    let mut own: Vec<TensorId> = tensors_of(graph, node).filter(|tensor| !held.contains(tensor)).collect();
    own.sort_unstable();
    own.dedup();
    own.into_iter().map(|tensor| Bytes(graph.tensor(tensor).bytes.at(samples))).sum()
}

impl Policy for Mandheling {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let dsp = setting.dsp.ok_or(PolicyError::NoDsp(NAME))?;
        if self.parameters.rescaling == Rescaling::Adaptive {
            let Parameters { seed, history, warm_up, .. } = self.parameters;
            let factors = if setting.tells_factors {
                Factors::told(setting.graph, history, setting.learned)
            } else {
                let constants = setting.factors.ok_or(PolicyError::NoFactors(NAME))?;
                let mut factors = Factors::drawn(setting.graph, seed, history, constants);
                (0..warm_up).for_each(|_| factors.advance());
                factors
            };
            (self.factors, self.has_data) = (Some(factors), setting.tells_factors);
        }
        let samples = self.micro_batch.unwrap_or_else(|| self.fastest(setting));
        let costs = setting.restore;
        let times = move || costs.map(|costs| costs.times_at(samples)).unwrap_or_default();
        let part = Setting::plain(setting.graph, samples, NodeTimes::on_demand(times));
        let offload = self.offload(if samples == setting.batch { setting } else { &part }, dsp)?;
        Ok(Schedule { offload: Some(offload), ..Schedule::plain(samples) })
    }

    fn begin_iteration(&mut self, plan: &mut IterationPlan) -> Result<(), PolicyError> {
        if let Some(factors) = &mut self.factors {
            if plan.factors.is_empty() {
                factors.advance()
            } else {
                factors.observe(&plan.factors)
            }
            for tensor in factors.kept() {
                plan.keep_scale(tensor);
            }
        }
        Ok(())
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        self.relief.as_mut().map_or(Ok(Vec::new()), |relief| relief.relieve(want, memory))
    }

    fn learned(&self) -> Learned {
        let factors = self.factors.as_ref().filter(|_| self.has_data);
        factors.map_or(Learned::Null, Factors::learned)
    }
}
