//! Products of integers: what is laid out before them, the new scale of their sums, and an algorithm's own sweeps.

use haversack_devices::work::{OperatorKind, Precision, ProductRole};

use super::Computes;
use super::algorithm::{Operand, Sweep};
use super::rewriter::{Rewriter, sweep};
use crate::network::FP32;
use crate::operator::Op;
use crate::shape::Extent;
use crate::training_graph::{Element, Node, NodeWork, Phase, Role, Saved, TensorId};

/// Operations an element of a rescaling: the maximum of the leading bits, the shift (Mandheling, listing 1).
const RESCALE_FLOPS: u64 = 2;
/// Bytes an element that a rescaling moves beside the product itself: the sum is written and read again in 32 bits, and
/// its eight bits are written (Mandheling, listing 1).
const RESCALE_BYTES: u64 = 4 + 4 + 1;

impl Rewriter<'_> {
    /// A convolution, a linear layer or a batched product, or one of their gradients.
    pub(super) fn product(&mut self, node: &Node) {
        let role = node.role(&self.eager.tensors);
        let inputs: Vec<TensorId> = node.inputs.iter().map(|&input| self.read(input, false, node)).collect();
        let operands = self.lay_out_operands(node, role, &inputs);
        let saved = self.saved(node, &operands);
        let outputs: Vec<TensorId> =
            node.outputs.iter().map(|&output| self.write(output, false, node, &inputs)).collect();
        let wide = node.origin.is_some_and(|origin| self.plan.wide[origin as usize]);
        let precision = Some(if wide { Precision::Int16 } else { Precision::Int8 });
        let work = NodeWork { precision, ..node.work };
        // What is held in more bits than eight takes the sums as they are.
        let eight = |r: &Self, (made, eager): (TensorId, TensorId)| {
            (r.writer.graph.tensor(made).bytes == r.values(eager)).then_some((made, r.values(eager)))
        };
        let pairs = outputs.iter().copied().zip(node.outputs.iter().copied());
        let (made, values): (Vec<TensorId>, Vec<Extent>) = pairs.filter_map(|pair| eight(self, pair)).unzip();
        let computes = Computes::Product { step: node.step.unwrap_or_default(), rescaled: made.first().copied() };
        self.write_node(computes, &node.name, operands, outputs, work).saved = saved;

        let values: Extent = values.into_iter().sum();
        if made.is_empty() {
            return;
        }
        if self.algorithm.rescales(role) {
            self.rescale(node, &made, values);
        }
        self.sweeps(node, role, &made, values);
    }

    /// The elements of a tensor of the eager graph.
    fn values(&self, tensor: TensorId) -> Extent {
        self.eager.tensor(tensor).bytes.times(1, FP32)
    }

    /// The operands of a convolution's gradient in the order in which its kernel reads them; `inputs` if it is not one.
    fn lay_out_operands(&mut self, node: &Node, role: ProductRole, inputs: &[TensorId]) -> Vec<TensorId> {
        let mut operands = inputs.to_vec();
        let rules = &self.algorithm.backpropagation;
        // A bias's gradient without the weight's is a sum.
        let convolves =
            matches!(self.op(node), Some(Op::Convolution { .. })) && node.work.kind != OperatorKind::Reduction;
        match role {
            ProductRole::WeightGradient if convolves => {
                for (place, operand) in [(0, Operand::Gradient), (1, Operand::Input)] {
                    if rules.transposes.contains(&operand) && place < operands.len() {
                        let verb = if operand == Operand::Input { "transpose_input" } else { "transpose_gradient" };
                        operands[place] = self.lay_out(node, place, inputs[place], verb);
                    }
                }
            }
            ProductRole::InputGradient if convolves && rules.rotates_weight && inputs.len() > 1 => {
                operands[1] = self.lay_out(node, 1, inputs[1], "rotate_weight");
            }
            _ => {}
        }
        operands
    }

    /// A copy of `from`, which stands for the input of `node` at `place`, in another order.
    fn lay_out(&mut self, node: &Node, place: usize, from: TensorId, verb: &str) -> TensorId {
        let name = format!("{}.{verb}", node.name);
        let (bytes, values) = (self.writer.graph.tensor(from).bytes, self.values(node.inputs[place]));
        let copy = self.new_tensor(&name, bytes, Role::Gradient, Element::Float, Some(node.inputs[place]));
        let saved = node.saved.iter().filter(|saved| saved.tensor == node.inputs[place]);
        let saved = saved.map(|saved| Saved { tensor: from, ..*saved }).collect();
        let work = sweep(OperatorKind::Layout, Precision::Int8, values, values);
        self.write_node(Computes::Layout, name, vec![from], vec![copy], work).saved = saved;
        copy
    }

    /// The node that takes the scale of `made`, `values` values in all, anew: the product then writes its sums in 32
    /// bits, their maximum gives the scale, and they are shifted to eight. Where it does not run, the product shifts by
    /// the scale that it has.
    fn rescale(&mut self, node: &Node, made: &[TensorId], values: Extent) {
        let role = if node.phase == Phase::Forward { Role::Activation } else { Role::Gradient };
        let sums = self.new_tensor(&format!("{}.sums", node.name), values * FP32, role, Element::Whole, None);
        let mut outputs = made.to_vec();
        outputs.push(sums);
        let work = sweep(OperatorKind::Reduction, Precision::Int32, values * RESCALE_FLOPS, values);
        let name = format!("{}.rescale", node.name);
        let rescale = self.write_node(Computes::Rescaling, name, made.to_vec(), outputs, work);
        (rescale.rescales, rescale.work.dram) = (made.first().copied(), values * RESCALE_BYTES);
    }

    /// What the algorithm does besides, over what the product made.
    fn sweeps(&mut self, node: &Node, role: ProductRole, made: &[TensorId], values: Extent) {
        let algorithm = self.algorithm;
        for (place, pass) in algorithm.passes.iter().enumerate().filter(|(_, pass)| pass.after.contains(&role)) {
            let (kind, elements) = match pass.over {
                Sweep::Outputs => (OperatorKind::ElementWise, values),
                // Within the loops of the product, at the rate of its multiply-adds.
                Sweep::GroupSums => (node.work.kind, self.group_sums(node, role, values)),
            };
            let work = sweep(kind, pass.precision, elements * pass.flops, values);
            let name = format!("{}.{}", node.name, pass.name);
            let written = self.write_node(Computes::Pass { place }, name, made.to_vec(), made.to_vec(), work);
            written.rescales = made.first().copied().filter(|_| pass.with_rescaling);
            written.work.dram = elements * pass.bytes;
        }
    }

    /// The sums that a product has within groups of one scale, a channel of a sample each; `values` where it is no
    /// convolution.
    fn group_sums(&self, node: &Node, role: ProductRole, values: Extent) -> Extent {
        let Some(Op::Convolution { window, .. }) = self.op(node) else { return values };
        let output = node.origin.map(|origin| self.network.shape(self.network.nodes[origin as usize].output));
        let positions = output.map_or(1, |shape| shape.size(2) * shape.size(3));
        let group = if role == ProductRole::WeightGradient { positions } else { window.taps() };
        // Two operations a multiply-add.
        node.work.flops.times(1, 2 * group.max(1))
    }
}
