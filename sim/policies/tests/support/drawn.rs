//! Graphs drawn up tensor by tensor and node by node.

use haversack_devices::units::Nanos;
use haversack_devices::work::OperatorKind;
use haversack_policies::{NodeTimes, Setting};
use haversack_workloads::training_graph::{Element, Need, Node, NodeWork, Saved, Tensor};
use haversack_workloads::{Extent, Phase, Role, TensorId, TrainingGraph};

/// A graph under construction.
#[derive(Default)]
pub(crate) struct Drawn(pub(crate) TrainingGraph);

impl Drawn {
    /// A tensor of so many bytes a sample.
    pub(crate) fn tensor(&mut self, role: Role, bytes: u64) -> TensorId {
        self.add(role, Extent::per_sample(bytes))
    }

    /// A tensor of so many bytes.
    pub(crate) fn fixed(&mut self, role: Role, bytes: u64) -> TensorId {
        self.add(role, Extent::fixed(bytes))
    }

    fn add(&mut self, role: Role, bytes: Extent) -> TensorId {
        self.0.tensors.push(Tensor { name: String::new(), bytes, role, element: Element::Float });
        (self.0.tensors.len() - 1) as TensorId
    }

    pub(crate) fn node(&mut self, phase: Phase, inputs: &[TensorId], outputs: &[TensorId]) {
        let work = NodeWork {
            kind: OperatorKind::ElementWise,
            flops: Extent::ZERO,
            index_translations: Extent::ZERO,
            dram: Extent::ZERO,
            parallelism: Extent::ZERO,
            launches: 1,
            single_kernel: false,
            winograd: false,
            columns: 0,
            precision: None,
            product: None,
        };
        self.0.nodes.push(Node {
            name: String::new(),
            phase,
            inputs: inputs.to_vec(),
            outputs: outputs.to_vec(),
            releases: Vec::new(),
            origin: None,
            rescales: None,
            saved: Vec::new(),
            work,
        });
    }

    /// A backward node that reads what forward saved: the tensor, what is needed of it, whether a module keeps it.
    pub(crate) fn backward(&mut self, saved: &[(TensorId, Need, bool)], outputs: &[TensorId]) {
        let inputs: Vec<TensorId> = saved.iter().map(|&(tensor, ..)| tensor).collect();
        self.node(Phase::Backward, &inputs, outputs);
        if let Some(node) = self.0.nodes.last_mut() {
            let of = |&(tensor, need, by_module): &(TensorId, Need, bool)| Saved { tensor, need, by_module };
            node.saved = saved.iter().map(of).collect();
        }
    }
}

/// A setting of fp32 and masks of a byte, without budgets.
pub(crate) fn setting<'a>(graph: &'a TrainingGraph, batch: u64, times: &'a [Nanos]) -> Setting<'a> {
    Setting::plain(graph, batch, NodeTimes::known(times))
}
