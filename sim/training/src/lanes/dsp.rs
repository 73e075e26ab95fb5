//! The DSP next to the CPU: which of the two runs a node, which tensors have to cross before it can, and subgraphs that
//! have to be prepared (Xu et al., MobiCom 2022, sections 3.3 to 3.6).
//!
//! CPU and DSP have separate memory spaces. A tensor is in the space where it was written, and in both once it was
//! copied. A subgraph of the DSP is a run of nodes that no work of the CPU interrupts.

use haversack_devices::{Bytes, Nanos};
use haversack_policies::Offload;
use haversack_workloads::{NodeId, TensorId};

use crate::machine::Machine;
use crate::tensors::Tensors;

/// In whose memory space a tensor lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Cpu,
    Dsp,
    Both,
}

impl Side {
    const fn reaches(self, on_dsp: bool) -> bool {
        match self {
            Self::Both => true,
            Self::Dsp => on_dsp,
            Self::Cpu => !on_dsp,
        }
    }
}

/// A crossing from one side to the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    copied: Bytes,
    /// Whether the other processor continues. Otherwise the call is already running.
    changes: bool,
}

impl Crossing {
    /// Its time with the host's cores of `machine` in their current state.
    pub(crate) fn time(&self, machine: &Machine) -> Nanos {
        let call = if self.changes { Nanos::ZERO } else { machine.crossing(Bytes::ZERO) };
        machine.crossing(self.copied) - call
    }
}

/// Where each node runs, and the progress of an iteration.
pub(crate) struct DspLane {
    plan: Offload,
    sides: Vec<Side>,
    /// Whether the DSP ran the last node.
    on_dsp: bool,
    /// The number of the plan's subgraphs that have begun in this iteration.
    subgraphs: usize,
    /// Whether an iteration has ended, so that its prepared subgraphs can be reused.
    prepared: bool,
}

impl DspLane {
    pub(crate) fn new(plan: Offload, tensors: usize) -> Self {
        Self { plan, sides: vec![Side::Cpu; tensors], on_dsp: false, subgraphs: 0, prepared: false }
    }

    pub(crate) fn runs(&self, id: NodeId) -> bool {
        self.plan.on_dsp.get(id as usize).copied().unwrap_or(false)
    }

    /// Samples of the parts in which the DSP runs a node; 0 if it runs whole.
    pub(crate) fn split(&self, id: NodeId) -> u64 {
        self.plan.split.get(id as usize).copied().unwrap_or(0)
    }

    /// Whether a subgraph begins at node `id` on the DSP, and whether it has to be prepared.
    ///
    /// A planned subgraph begins at a marked node; any other, caused by CPU work, is a piece of one, cut where a scale
    /// is recomputed. Pieces are kept like planned subgraphs.
    fn begins(&mut self, id: NodeId, changes: bool) -> bool {
        let marked = self.plan.begins.get(id as usize).copied().unwrap_or(false);
        let prepares = match (&self.plan.prepared_again, self.prepared) {
            (Some(again), true) => marked && again.get(self.subgraphs).copied().unwrap_or(false),
            _ => marked || changes,
        };
        self.subgraphs += usize::from(marked);
        prepares
    }

    /// Continues at node `id` on its processor; returns the crossing needed first, and whether a subgraph has to be
    /// prepared.
    pub(crate) fn cross_to(&mut self, id: NodeId, tensors: &Tensors<'_>) -> (Crossing, bool) {
        let node = &tensors.graph.nodes[id as usize];
        let on_dsp = self.runs(id);
        let size = |tensor: TensorId| tensors.size(tensor);
        let mut copied = Bytes::ZERO;
        for &input in &node.inputs {
            if !self.sides[input as usize].reaches(on_dsp) {
                // Rescaled values are stored on the DSP as 32-bit sums, for which the node has a temporary.
                let sums = || node.outputs.iter().filter(|&&output| output != input).map(|&output| size(output)).sum();
                copied += if node.rescales == Some(input) { sums() } else { size(input) };
                self.sides[input as usize] = Side::Both;
            }
        }
        let changes = on_dsp != self.on_dsp;
        let prepares = on_dsp && self.begins(id, changes);
        self.on_dsp = on_dsp;
        for &output in &node.outputs {
            self.sides[output as usize] = if on_dsp { Side::Dsp } else { Side::Cpu };
        }
        (Crossing { copied, changes }, prepares)
    }

    /// The iteration is over: its subgraphs can be reused by the next one, which the CPU begins.
    pub(crate) fn end_iteration(&mut self) {
        (self.on_dsp, self.subgraphs, self.prepared) = (false, 0, true);
    }
}
