//! The DSP beside the CPU: which of the two runs a node, what has to cross before it can, and subgraphs that have to
//! be prepared (Xu et al., MobiCom 2022, sections 3.3 to 3.6).
//!
//! The two have memory spaces of their own. A tensor is where it was written, and on both sides once it was copied. A
//! subgraph of the DSP is a run of nodes that no work of the CPU interrupts.

use std::sync::Arc;

use haversack_devices::processor::{Cost, ProcessorKind};
use haversack_devices::units::{Bytes, Nanos};
use haversack_devices::work::Precision;
use haversack_policies::policy::Offload;
use haversack_policies::setting::DspProfile;
use haversack_workloads::{NodeId, TensorId, TrainingGraph};

use super::Executor;
use crate::job::RunError;
use crate::machine::Machine;
use crate::timeline::SpanKind;

/// In whose memory space a tensor lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Cpu,
    Dsp,
    Both,
}

impl Side {
    fn reaches(self, on_dsp: bool) -> bool {
        match self {
            Self::Both => true,
            Self::Dsp => on_dsp,
            Self::Cpu => !on_dsp,
        }
    }
}

/// What runs where, and how far an iteration has come.
pub(super) struct Offloading {
    plan: Offload,
    sides: Vec<Side>,
    /// Whether the DSP ran the last node.
    on_dsp: bool,
    /// Subgraphs of the plan that have begun in this iteration.
    subgraphs: usize,
    /// Whether an iteration has ended, so that subgraphs are there to be used again.
    prepared: bool,
}

impl Offloading {
    pub(super) fn new(plan: Offload, tensors: usize) -> Self {
        Self { plan, sides: vec![Side::Cpu; tensors], on_dsp: false, subgraphs: 0, prepared: false }
    }

    fn runs_on_dsp(&self, id: NodeId) -> bool {
        self.plan.on_dsp.get(id as usize).copied().unwrap_or(false)
    }

    fn split(&self, id: NodeId) -> u64 {
        self.plan.split.get(id as usize).copied().unwrap_or(0)
    }

    /// Whether a subgraph begins at node `id` on the DSP, and whether it has to be prepared.
    ///
    /// One of the plan's begins at a marked node; any other that the CPU's work has brought about is a piece of one,
    /// cut where a scale is taken anew. Pieces are kept as the plan's are.
    fn begins(&mut self, id: NodeId, changes: bool) -> bool {
        let marked = self.plan.begins.get(id as usize).copied().unwrap_or(false);
        let prepares = match (&self.plan.prepared_again, self.prepared) {
            (Some(again), true) => marked && again.get(self.subgraphs).copied().unwrap_or(false),
            _ => marked || changes,
        };
        self.subgraphs += usize::from(marked);
        prepares
    }
}

impl Executor<'_> {
    /// Whether the DSP runs node `id`.
    pub(super) fn runs_on_dsp(&self, id: NodeId) -> bool {
        self.offloading.as_ref().is_some_and(|offloading| offloading.runs_on_dsp(id))
    }

    /// What node `id` costs on the DSP.
    pub(super) fn dsp_cost(&self, id: NodeId) -> Cost {
        let split = self.offloading.as_ref().map_or(0, |offloading| offloading.split(id));
        let cost = self.machine.dsp_cost(self.graph, id as usize, self.store.samples, self.precision, split);
        cost.unwrap_or_default()
    }

    /// Whatever has to happen before node `id` can run where it runs.
    pub(super) fn cross_to(&mut self, id: NodeId) -> Result<(), RunError> {
        let whole = Arc::clone(&self.machine);
        let (Some(offloading), Some(machine)) = (&mut self.offloading, &whole.dsp) else { return Ok(()) };
        let graph = self.graph;
        let node = &graph.nodes[id as usize];
        let on_dsp = offloading.runs_on_dsp(id);
        let samples = self.store.samples;
        let size = |tensor: TensorId| Bytes(graph.tensor(tensor).bytes.at(samples));
        let mut copied = Bytes::ZERO;
        for &input in &node.inputs {
            if !offloading.sides[input as usize].reaches(on_dsp) {
                // What is rescaled lies there as sums of 32 bits, for which the node has a temporary.
                let sums = || node.outputs.iter().filter(|&&output| output != input).map(|&output| size(output)).sum();
                copied += if node.rescales == Some(input) { sums() } else { size(input) };
                offloading.sides[input as usize] = Side::Both;
            }
        }
        let changes = on_dsp != offloading.on_dsp;
        let prepares = on_dsp && offloading.begins(id, changes);
        offloading.on_dsp = on_dsp;
        for &output in &node.outputs {
            offloading.sides[output as usize] = if on_dsp { Side::Dsp } else { Side::Cpu };
        }
        let preparation = machine.stack.preparation.value;
        let crossing = whole.crossing(copied);
        // Without a change of processors the call is under way already.
        let crossing = if changes { crossing } else { crossing - whole.crossing(Bytes::ZERO) };
        if crossing > Nanos::ZERO {
            self.drive(crossing, SpanKind::Crossing)?;
        }
        if prepares {
            self.drive(preparation, SpanKind::Preparation)?;
        }
        Ok(())
    }

    /// The host works for `span` beside the graph's nodes.
    fn drive(&mut self, span: Nanos, kind: SpanKind) -> Result<(), RunError> {
        self.spend(&Cost { busy: span, ..Cost::default() }, kind)
    }

    /// The iteration is over: its subgraphs are there for the next one, which the CPU begins.
    pub(super) fn end_offloading(&mut self) {
        if let Some(offloading) = &mut self.offloading {
            (offloading.on_dsp, offloading.subgraphs, offloading.prepared) = (false, 0, true);
        }
    }
}

/// The DSP as a policy profiles it.
pub(super) struct Profile<'a> {
    pub(super) machine: &'a Machine,
    pub(super) graph: &'a TrainingGraph,
    pub(super) precision: Precision,
}

impl DspProfile for Profile<'_> {
    fn time(&self, node: NodeId, samples: u64) -> Option<Nanos> {
        self.machine.dsp_cost(self.graph, node as usize, samples, self.precision, 0).map(|cost| cost.alone())
    }

    fn crossing(&self, bytes: Bytes) -> Nanos {
        self.machine.crossing(bytes)
    }

    fn accumulation(&self, node: NodeId) -> Nanos {
        self.machine.accumulation(self.graph, node as usize).alone()
    }

    fn memory(&self) -> Bytes {
        self.machine.dsp.as_ref().map_or(Bytes::ZERO, |offloader| offloader.dsp.memory())
    }
}

/// Whose lane on the timeline a node's span belongs to.
pub(super) fn lane(on_dsp: bool, machine: &Machine) -> ProcessorKind {
    if on_dsp { ProcessorKind::Dsp } else { machine.processor.kind() }
}
