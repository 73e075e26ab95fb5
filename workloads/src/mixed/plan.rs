//! Decisions of a rewrite before its first node: the treatment of each operator, and the format of each tensor.
//!
//! Also products of integers: the layout of their operands, the rescaling of their sums, and an algorithm's own sweeps.

use haversack_devices::{OperatorKind, Precision, ProductRole};

use super::Computes;
use super::algorithm::{Algorithm, BiasFormat, Layers, Operand, StateFormat, Sweep, Treatment, WeightFormat};
use super::rewriter::{Rewriter, sweep};
use crate::network::{FP32, INT64, OperatorNode};
use crate::training_graph::{Element, Need, Node, NodeWork, Saved};
use crate::{Extent, Network, Op, Phase, Role, TensorId, TrainingGraph, WorkloadError};

/// The number format in which a tensor of the eager graph is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// Those of the node that writes it.
    Writer,
    /// Integers.
    Integer,
    /// fp32.
    Float,
    /// One format for every reader: ids, masks, positions, statistics.
    Any,
}

/// How a tensor of the eager graph is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub(super) home: Home,
    /// Its bytes as integers, or in its one format.
    pub(super) integer: Extent,
}

/// Decisions of a rewrite before its first node.
pub(super) struct RewritePlan {
    /// The treatment of each operator of the network; `None` for a view.
    pub(super) treatments: Vec<Option<Treatment>>,
    /// Whether the products of each operator of the network have sixteen-bit weights.
    pub(super) wide: Vec<bool>,
    /// How each tensor of the eager graph is stored.
    pub(super) forms: Vec<Form>,
    /// The number of remaining nodes that read each tensor of the eager graph.
    pub(super) readers: Vec<u32>,
}

impl RewritePlan {
    pub(super) fn new(network: &Network, eager: &TrainingGraph, algorithm: &Algorithm) -> Result<Self, WorkloadError> {
        let treatments = treatments(network, algorithm)?;
        let wide = wide_layers(network, algorithm);
        let mut forms: Vec<Form> =
            eager.tensors.iter().map(|tensor| form_of(tensor.role, tensor.element, tensor.bytes)).collect();
        for (node, treatment) in network.nodes.iter().zip(&treatments) {
            if let (Op::MaxPool(_), Some(&positions)) = (&node.op, node.saved.get(1)) {
                // A position within a window fits in a byte.
                forms[positions as usize].integer = eager.tensor(positions).bytes.times(1, INT64);
            }
            if *treatment == Some(Treatment::Float) {
                for &parameter in &node.parameters {
                    forms[network.parameter(parameter).storage as usize].home = Home::Float;
                }
            }
        }
        weights(network, algorithm, &wide, &mut forms);
        for node in &eager.nodes {
            for saved in node.saved.iter().filter(|saved| saved.need == Need::Statistics) {
                let tensor = eager.tensor(saved.tensor);
                if tensor.role == Role::Activation {
                    forms[saved.tensor as usize] = Form { home: Home::Any, integer: tensor.bytes };
                }
            }
        }
        updates(eager, algorithm, &mut forms);
        let mut plan = Self { treatments, wide, forms, readers: vec![0; eager.tensors.len()] };
        for node in &eager.nodes {
            // The gradient node of a removed operator is removed with it; its forward node passes its input on
            // to others.
            if plan.treatment(node) != Some(Treatment::Absent) || node.phase == Phase::Forward {
                for &input in &node.inputs {
                    plan.readers[input as usize] += 1;
                }
            }
        }
        Ok(plan)
    }

    /// The treatment of a node of the eager graph before its update.
    pub(super) fn treatment(&self, node: &Node) -> Option<Treatment> {
        node.origin.and_then(|origin| self.treatments[origin as usize])
    }
}

fn treatments(network: &Network, algorithm: &Algorithm) -> Result<Vec<Option<Treatment>>, WorkloadError> {
    let of = |node: &OperatorNode| match node.op {
        Op::View(_) | Op::Slice(_) => Ok(None),
        _ => algorithm.treatment(node.op.name()).map(Some).ok_or_else(|| WorkloadError::NoTranslation {
            algorithm: algorithm.name.clone(),
            operator: node.op.name(),
            module: node.module.clone(),
            translated: algorithm.translation.operators().collect::<Vec<_>>().join(", "),
        }),
    };
    network.nodes.iter().map(of).collect()
}

fn wide_layers(network: &Network, algorithm: &Algorithm) -> Vec<bool> {
    let layers: Vec<bool> =
        network.nodes.iter().map(|node| matches!(node.op, Op::Convolution { .. } | Op::Linear)).collect();
    if algorithm.weight.format == WeightFormat::Int16 {
        return layers;
    }
    let mut wide = vec![false; layers.len()];
    if algorithm.weight.int16 == Layers::FirstAndLast {
        let ends = [layers.iter().position(|&layer| layer), layers.iter().rposition(|&layer| layer)];
        for end in ends.into_iter().flatten() {
            wide[end] = true;
        }
    }
    wide
}

fn form_of(role: Role, element: Element, bytes: Extent) -> Form {
    let one = Form { home: Home::Any, integer: bytes };
    let numbers = |home| Form { home, integer: bytes.times(1, FP32) };
    match role {
        _ if element == Element::Whole => one,
        Role::Target | Role::Buffer => one,
        Role::Input => numbers(Home::Float),
        Role::Parameter { .. } | Role::ParameterGradient | Role::OptimiserState => numbers(Home::Integer),
        Role::Activation | Role::Gradient => numbers(Home::Writer),
    }
}

/// Integer weights of more than eight bits.
fn weights(network: &Network, algorithm: &Algorithm, wide: &[bool], forms: &mut [Form]) {
    let has_weights = |node: &OperatorNode| matches!(node.op, Op::Convolution { .. } | Op::Linear);
    for (node, &wide) in network.nodes.iter().zip(wide).filter(|(node, _)| has_weights(node)) {
        for (place, &parameter) in node.parameters.iter().enumerate() {
            let parameter = network.parameter(parameter);
            let bytes = match (place, algorithm.weight.bias) {
                (0, _) if wide => 2,
                (0, _) | (_, BiasFormat::Int8) => 1,
                (_, BiasFormat::Int32) => 4,
            };
            let form = &mut forms[parameter.storage as usize];
            // A weight that several layers share suits the widest.
            form.integer = form.integer.max(Extent::fixed(parameter.elements * bytes));
        }
    }
}

/// The gradients and the states of weights follow the weights.
fn updates(eager: &TrainingGraph, algorithm: &Algorithm, forms: &mut [Form]) {
    for node in eager.nodes.iter().filter(|node| node.phase == Phase::Update) {
        let &[weight, gradient, ref states @ ..] = node.inputs.as_slice() else { continue };
        let held = forms[weight as usize];
        let bytes = eager.tensor(gradient).bytes;
        // A 32-bit bias adds its gradient, a sum, directly; a weight's gradient is rescaled to eight bits.
        let integer = if held.integer == bytes { bytes } else { bytes.times(1, FP32) };
        forms[gradient as usize] = Form { home: held.home, integer };
        let halves = held.home == Home::Integer && algorithm.optimiser.state == StateFormat::Int16;
        for &state in states {
            let bytes = eager.tensor(state).bytes;
            let integer = if halves { bytes.times(1, 2) } else { bytes };
            forms[state as usize] = Form { home: Home::Any, integer };
        }
    }
}

/// Operations per element of a rescaling: the maximum of the leading bits, the shift (Mandheling, listing 1).
const RESCALE_FLOPS: u64 = 2;
/// Bytes per element that a rescaling moves in addition to the product: the sum is written and read again in 32 bits,
/// and its eight bits are written (Mandheling, listing 1).
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
        // Outputs of more than eight bits take the sums without rescaling.
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
        // The gradient of a bias without its weight's is a sum.
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

    /// Copies `from`, the tensor for the input of `node` at `place`, into another order.
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

    /// The node that recomputes the scale of `made`, with `values` values in all: the product then writes its sums in
    /// 32 bits, their maximum gives the scale, and they are shifted to eight bits. In iterations without it, the
    /// product shifts by the scale that it has.
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

    /// The algorithm's own sweeps over the results of the product.
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

    /// The number of sums that a product has within groups of one scale (one channel of one sample); `values` if it is
    /// not a convolution.
    fn group_sums(&self, node: &Node, role: ProductRole, values: Extent) -> Extent {
        let Some(Op::Convolution { window, .. }) = self.op(node) else { return values };
        let output = node.origin.map(|origin| self.network.shape(self.network.nodes[origin as usize].output));
        let positions = output.map_or(1, |shape| shape.size(2) * shape.size(3));
        let group = if role == ProductRole::WeightGradient { positions } else { window.taps() };
        // Two operations a multiply-add.
        node.work.flops.times(1, 2 * group.max(1))
    }
}
