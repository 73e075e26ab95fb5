//! What everything costs in a run: the machine's prices for its graph, worked out once.

mod packing;

use std::collections::BTreeMap;
use std::sync::Arc;

use haversack_devices::processor::{Cost, CpuCores, ProcessorKind};
use haversack_devices::units::Bytes;
use haversack_devices::work::Precision;
use haversack_policies::quantised::{Control, Packing, Quantisation, Quantised, WHOLE};
use haversack_policies::setting::{Compression, ElementBytes, RestoreProfile};
use haversack_workloads::training_graph::Need;
use haversack_workloads::{NodeId, Phase, TensorId, TrainingGraph};

use crate::error::{Result, Stop};
use crate::machine::Machine;
use crate::machine::codec::CodecProfile;
use crate::tensors::Tensors;

/// The prices of a run.
pub(crate) struct RunCosts<'a> {
    pub(crate) machine: Arc<Machine>,
    graph: &'a TrainingGraph,
    precision: Precision,
    /// How the policy stores quantised tensors; `None` if it does not.
    quantiser: Option<Quantiser>,
    /// What compressing takes.
    codec: &'a CodecProfile<'a>,
    /// Who packs each tensor, once one of several ways was chosen for it.
    ways: BTreeMap<TensorId, Packing>,
    /// What each node costs at the current micro-batch, once it was asked.
    nodes: Vec<Option<Cost>>,
    /// What the statistics of a tensor cost, by its values.
    statistics: Vec<(u64, Cost)>,
}

/// How quantised tensors are stored in a run.
pub(crate) struct Quantiser {
    pub(crate) rules: Quantisation,
    pub(crate) stored: Quantised,
}

impl<'a> RunCosts<'a> {
    /// The prices of `graph` on `machine`; quantised tensors are stored by `rules`.
    pub(crate) fn new(
        machine: &Machine,
        graph: &'a TrainingGraph,
        precision: Precision,
        rules: Option<(Quantisation, ElementBytes)>,
        codec: &'a CodecProfile<'a>,
    ) -> Self {
        let quantiser = rules.map(|(rules, sizes)| Quantiser { rules, stored: Quantised::new(graph, &rules, sizes) });
        let (machine, nodes) = (Arc::new(machine.clone()), vec![None; graph.nodes.len()]);
        let (ways, statistics) = (BTreeMap::new(), Vec::new());
        Self { machine, graph, precision, quantiser, codec, ways, nodes, statistics }
    }

    /// The processor that trains.
    pub(crate) fn processor(&self) -> ProcessorKind {
        self.machine.processor.kind()
    }

    /// A governor has set the CPU's cores anew.
    pub(crate) fn run_on(&mut self, cores: CpuCores) {
        self.machine = Arc::new(self.machine.with_cores(cores));
        self.forget_nodes();
        self.statistics.clear();
    }

    /// The micro-batch has changed.
    pub(crate) fn forget_nodes(&mut self) {
        self.nodes.fill(None);
    }

    /// What `node` costs on the processor that trains.
    pub(crate) fn node(&mut self, node: NodeId, samples: u64) -> Cost {
        let (machine, graph, precision) = (&self.machine, self.graph, self.precision);
        *self.nodes[node as usize].get_or_insert_with(|| machine.cost(graph, node as usize, samples, precision))
    }

    /// The same if it reads `less` bytes fewer from memory than the graph says.
    pub(crate) fn node_reading_less(&self, node: NodeId, samples: u64, less: Bytes) -> Cost {
        self.machine.cost_reading_less(self.graph, node as usize, samples, self.precision, less)
    }

    /// What `node` costs on the DSP in parts of `split` samples.
    pub(crate) fn on_dsp(&self, node: NodeId, samples: u64, split: u64) -> Cost {
        self.machine.dsp_cost(self.graph, node as usize, samples, self.precision, split).unwrap_or_default()
    }

    /// The workspace that a library takes while it runs `node`.
    pub(crate) fn workspace(&self, node: NodeId, samples: u64) -> Bytes {
        self.machine.workspace(self.graph, node as usize, samples, self.precision)
    }

    /// `tensor` compressed; `None` if no codec reaches it.
    pub(crate) fn compression(&self, tensor: TensorId, samples: u64) -> Option<Compression> {
        self.codec.compression(tensor, samples)
    }

    /// The rules by which tensors are quantised.
    ///
    /// # Errors
    /// A policy that quantises although its schedule does not say how.
    pub(crate) fn quantiser(&self) -> Result<&Quantiser, Stop> {
        let reason = "its schedule does not say how quantised tensors are stored";
        self.quantiser.as_ref().ok_or_else(|| Stop::illegal("quantise a tensor".to_owned(), reason))
    }

    /// Bytes of what stays of a tensor that is given up: what a ReLU needs of it.
    pub(crate) fn signs(&self, tensor: TensorId, samples: u64) -> Bytes {
        self.quantiser.as_ref().map_or(Bytes::ZERO, |quantiser| quantiser.stored.bytes(tensor, 0, samples))
    }

    /// What the statistics of `values` values cost; profiled once a size, as offline profiling does.
    pub(crate) fn statistics(&mut self, values: u64, control: Control) -> Result<Cost> {
        if let Some(&(_, known)) = self.statistics.iter().find(|(size, _)| *size == values) {
            return Ok(known);
        }
        let cost = self.machine.control_cost(values, control)?;
        self.statistics.push((values, cost));
        Ok(cost)
    }

    /// Whether `node` needs the values of a tensor in memory that is stored otherwise.
    pub(crate) fn reads_values(&self, node: NodeId, tensor: TensorId, tensors: &Tensors<'_>) -> bool {
        let node = &self.graph.nodes[node as usize];
        match tensors.storage(tensor) {
            Some(haversack_policies::Storage::Quantised(bits)) => {
                let within = node.phase == Phase::Backward && self.unpacked_within(tensor);
                !within && bits != WHOLE && node.need_of(tensor) == Need::Values
            }
            _ => node.need_of(tensor) != Need::Shape,
        }
    }
}
