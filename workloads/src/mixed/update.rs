//! The update of weights: of the integers themselves, or of a master from which the integers are made.

use haversack_devices::work::{OperatorKind, Precision};

use super::algorithm::Update;
use super::plan::Home;
use super::rewriter::{DEQUANTISE, QUANTISE, Rewriter, sweep};
use crate::network::FP32;
use crate::training_graph::{Element, Node, NodeWork, TensorId};

impl Rewriter<'_> {
    /// The update of one weight, unless the operators that had it vanished.
    pub(super) fn update(&mut self, node: &Node) {
        let &[weight, gradient, ref states @ ..] = node.inputs.as_slice() else { return };
        let (Some(weight_held), Some(gradient)) = (self.found(weight), self.found(gradient)) else { return };
        let states: Vec<TensorId> = states.iter().map(|&state| self.admit(state)).collect();
        let floats = self.plan.forms[weight as usize].home == Home::Float;
        let keeps_master = !floats && self.algorithm.weight.update != Update::Int8;
        let values = self.eager.tensor(weight).bytes.times(1, FP32);
        let updated = if keeps_master { self.master(weight) } else { weight_held };
        let with_states = |first: &[TensorId]| first.iter().chain(&states).copied().collect::<Vec<_>>();
        let precision = if floats || keeps_master { Precision::Fp32 } else { Precision::Int8 };
        // A master takes the gradient by its scale.
        let flops = if keeps_master { node.work.flops + values * DEQUANTISE } else { node.work.flops };
        let update = NodeWork { precision: Some(precision), flops, ..node.work };
        let (inputs, outputs) = (with_states(&[updated, gradient]), with_states(&[updated]));
        self.writer.write(&node.name, inputs, outputs, update);
        if keeps_master {
            let name = format!("{}.quantise", self.eager.tensor(weight).name);
            let work = sweep(OperatorKind::ElementWise, Precision::Fp32, values * QUANTISE, values);
            self.writer.write(name, vec![updated], vec![weight_held], work);
        }
    }

    /// The numbers that the update of `weight` works on, beside the integers that products read.
    fn master(&mut self, weight: TensorId) -> TensorId {
        let eager = self.eager.tensor(weight);
        self.new_tensor(&format!("{}.master", eager.name), eager.bytes, eager.role, Element::FullFloat)
    }
}
