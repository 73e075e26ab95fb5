//! The walk over the eager graph, and the tensors that replace its tensors, in integers and in fp32.

use haversack_devices::{OperatorKind, Precision};

use super::Computes;
use super::algorithm::{Algorithm, Treatment, Update};
use super::plan::{Form, Home, RewritePlan};
use crate::graph_writer::GraphWriter;
use crate::{Element, Extent, FP32, Network, Node, NodeWork, Op, Phase, Role, Saved, Tensor, TensorId, TrainingGraph};

/// Operations per element of a quantisation: a multiplication by the inverse scale, a rounding.
pub(super) const QUANTISE: u64 = 2;
/// Operations per element of a dequantisation: a multiplication by the scale.
pub(super) const DEQUANTISE: u64 = 1;

/// The tensors that replace a tensor of the eager graph.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    integer: Option<TensorId>,
    float: Option<TensorId>,
    /// The phase in which `float` was copied from `integer`, so that no copy is kept for backward.
    copied_in: Option<Phase>,
}

/// A rewrite in progress.
pub(super) struct Rewriter<'a> {
    pub(super) network: &'a Network,
    pub(super) eager: &'a TrainingGraph,
    pub(super) algorithm: &'a Algorithm,
    pub(super) plan: RewritePlan,
    pub(super) writer: GraphWriter,
    computes: Vec<Computes>,
    stands_for: Vec<Option<TensorId>>,
    held: Vec<Held>,
    /// Whether a tensor's replacement has other readers, which would see it overwritten.
    shared: Vec<bool>,
}

impl<'a> Rewriter<'a> {
    pub(super) fn new(
        network: &'a Network,
        eager: &'a TrainingGraph,
        algorithm: &'a Algorithm,
        plan: RewritePlan,
    ) -> Self {
        Self {
            network,
            eager,
            algorithm,
            plan,
            writer: GraphWriter::new(&eager.name),
            computes: Vec::new(),
            stands_for: Vec::new(),
            held: vec![Held::default(); eager.tensors.len()],
            shared: vec![false; eager.tensors.len()],
        }
    }

    /// The graph, the computation of its nodes, and the eager tensor behind each of its tensors.
    pub(super) fn run(mut self) -> (TrainingGraph, Vec<Computes>, Vec<Option<TensorId>>) {
        let eager = self.eager;
        for node in &eager.nodes {
            (self.writer.phase, self.writer.origin) = (node.phase, node.origin);
            match (node.phase, self.plan.treatment(node)) {
                (Phase::Update, _) => self.update(node),
                // The gradient of the loss with respect to itself.
                _ if node.inputs.is_empty() => self.plain(node, true),
                _ if self.sums_gradients(node) => self.plain(node, false),
                (_, Some(Treatment::Absent)) => self.pass_through(node),
                (_, Some(Treatment::Float)) => self.plain(node, true),
                _ if self.is_product(node) => self.product(node),
                _ => self.plain(node, false),
            }
        }
        (self.writer.graph, self.computes, self.stands_for)
    }

    /// Adds a node and its computation.
    pub(super) fn write_node(
        &mut self,
        computes: Computes,
        name: impl Into<String>,
        inputs: Vec<TensorId>,
        outputs: Vec<TensorId>,
        work: NodeWork,
    ) -> &mut Node {
        let step = self.computes.len() as u32;
        self.computes.push(computes);
        // The eager graph counts parts of operands in fp32 bytes; here operands are read whole.
        let work = NodeWork { unread: Extent::ZERO, copied: Extent::ZERO, ..work };
        let node = self.writer.write(name, inputs, outputs, work);
        node.step = Some(step);
        node
    }

    /// Whether a backward node adds the gradients from two consumers, whichever operator it is noted under.
    fn sums_gradients(&self, node: &Node) -> bool {
        let is_gradient = |&tensor: &TensorId| self.eager.tensor(tensor).role == Role::Gradient;
        node.phase == Phase::Backward && node.inputs.len() == 2 && node.inputs.iter().all(is_gradient)
    }

    /// Whether a node makes sums of products, which need a new scale.
    fn is_product(&self, node: &Node) -> bool {
        self.op(node).is_some_and(|op| matches!(op, Op::Convolution { .. } | Op::Linear | Op::Matmul))
    }

    /// The operator that a node comes from.
    pub(super) fn op(&self, node: &Node) -> Option<&'a Op> {
        node.origin.map(|origin| &self.network.nodes[origin as usize].op)
    }

    /// An operator that is kept, on integers or on fp32 copies.
    fn plain(&mut self, node: &Node, float: bool) {
        let inputs: Vec<TensorId> = node.inputs.iter().map(|&input| self.read(input, float, node)).collect();
        let saved = self.saved(node, &inputs);
        let outputs: Vec<TensorId> =
            node.outputs.iter().map(|&output| self.write(output, float, node, &inputs)).collect();
        let adds = matches!(self.op(node), Some(Op::Add | Op::Subtract | Op::Mul)) && node.phase == Phase::Forward;
        // Two integer operands of different scales: one is shifted to the other's scale, or the product to its own.
        let shifts = !float && (adds || self.sums_gradients(node));
        let work = NodeWork {
            flops: node.work.flops * if shifts { 2 } else { 1 },
            precision: Some(if float { Precision::Fp32 } else { Precision::Int8 }),
            ..node.work
        };
        let step = node.step.unwrap_or_default();
        let computes = if float { Computes::Float { step } } else { Computes::Integer { step } };
        self.write_node(computes, &node.name, inputs, outputs, work).saved = saved;
    }

    /// An operator that is removed: the tensors for its input replace its output, too.
    fn pass_through(&mut self, node: &Node) {
        let (Some(&from), Some(&to)) = (node.inputs.first(), node.outputs.first()) else { return };
        if self.eager.tensor(to).role == Role::ParameterGradient {
            return;
        }
        self.held[to as usize] = self.admitted(from);
        self.shared[to as usize] = self.shared[from as usize] || self.plan.readers[from as usize] > 1;
    }

    /// The tensor with the values of `tensor` in integers or in fp32 for `node`, converted if it is stored otherwise.
    pub(super) fn read(&mut self, tensor: TensorId, float: bool, node: &Node) -> TensorId {
        let held = self.admitted(tensor);
        let kept = held.copied_in.is_none_or(|phase| phase == node.phase);
        match (held.integer, held.float) {
            (_, Some(there)) if float && kept => there,
            (Some(there), _) if !float => there,
            (Some(from), _) => {
                let copy = self.convert(tensor, from, true, node);
                self.held[tensor as usize] = Held { float: Some(copy), copied_in: Some(node.phase), ..held };
                copy
            }
            (None, Some(from)) => {
                let copy = self.convert(tensor, from, false, node);
                self.held[tensor as usize].integer = Some(copy);
                copy
            }
            (None, None) => self.admit(tensor),
        }
    }

    /// The node that copies `from` into fp32 or into integers, for `reader`.
    fn convert(&mut self, tensor: TensorId, from: TensorId, float: bool, reader: &Node) -> TensorId {
        let eager = self.eager.tensor(tensor);
        let (verb, flops) = if float { ("dequantise", DEQUANTISE) } else { ("quantise", QUANTISE) };
        let bytes = if float { eager.bytes } else { self.plan.forms[tensor as usize].integer };
        let role = if reader.phase == Phase::Forward { Role::Activation } else { Role::Gradient };
        let name = format!("{}.{verb}", eager.name);
        let element = if float { Element::FullFloat } else { Element::Float };
        let copy = self.new_tensor(&name, bytes, role, element, Some(tensor));
        let values = eager.bytes.times(1, FP32);
        let saved = reader.saved.iter().filter(|saved| saved.tensor == tensor);
        let saved = saved.map(|saved| Saved { tensor: from, ..*saved }).collect();
        let work = sweep(OperatorKind::ElementWise, Precision::Fp32, values * flops, values);
        let computes = if float { Computes::Dequantise } else { Computes::Quantise };
        self.write_node(computes, name, vec![from], vec![copy], work).saved = saved;
        copy
    }

    /// The tensor that `node` writes for `tensor`: in place over the one that it read, or a new one.
    pub(super) fn write(&mut self, tensor: TensorId, float: bool, node: &Node, read: &[TensorId]) -> TensorId {
        let place = node.inputs.iter().position(|&input| input == tensor);
        let held = self.held[tensor as usize];
        let there = match place {
            Some(place) if !self.shared[tensor as usize] => Some(read[place]),
            Some(_) => None,
            // The gradient of a shared weight is summed in place.
            None => held.integer.or(held.float).filter(|_| self.eager.tensor(tensor).role == Role::ParameterGradient),
        };
        self.shared[tensor as usize] = false;
        let form = self.plan.forms[tensor as usize];
        let Some(there) = there else { return self.make(tensor, float) };
        self.hold(tensor, there, form.home, float)
    }

    /// A tensor that exists before the iteration: state, samples, labels.
    pub(super) fn admit(&mut self, tensor: TensorId) -> TensorId {
        self.make(tensor, self.plan.forms[tensor as usize].home == Home::Float)
    }

    fn make(&mut self, tensor: TensorId, float: bool) -> TensorId {
        let Form { home, integer } = self.plan.forms[tensor as usize];
        let float = home == Home::Float || (home == Home::Writer && float);
        let eager = self.eager.tensor(tensor);
        let element = match eager.element {
            Element::Float if float => Element::FullFloat,
            // Tensors that autocast keeps in fp32 are integers here, like those that it halves.
            Element::FullFloat if !float && home != Home::Any && !eager.role.is_state() => Element::Float,
            other => other,
        };
        let bytes = if float { eager.bytes } else { integer };
        let made = self.new_tensor(&eager.name, bytes, eager.role, element, Some(tensor));
        self.hold(tensor, made, home, float)
    }

    fn hold(&mut self, tensor: TensorId, by: TensorId, home: Home, float: bool) -> TensorId {
        let any = home == Home::Any;
        self.held[tensor as usize] =
            Held { integer: (any || !float).then_some(by), float: (any || float).then_some(by), copied_in: None };
        by
    }

    /// The replacement of `tensor`, in either format; `None` if no node made it.
    pub(super) fn found(&self, tensor: TensorId) -> Option<TensorId> {
        let held = self.held[tensor as usize];
        held.integer.or(held.float)
    }

    /// The replacements of `tensor`, which is admitted if it has none.
    fn admitted(&mut self, tensor: TensorId) -> Held {
        if self.found(tensor).is_none() {
            self.admit(tensor);
        }
        self.held[tensor as usize]
    }

    /// The saved tensors that `node` still reads itself, as replaced by `inputs`, which correspond to its own.
    pub(super) fn saved(&self, node: &Node, inputs: &[TensorId]) -> Vec<Saved> {
        let places = node.saved.iter().filter_map(|saved| {
            let place = node.inputs.iter().position(|&input| input == saved.tensor)?;
            Some(Saved { tensor: inputs[place], ..*saved })
        });
        // For a copy made in backward, the node that makes it notes the need.
        places.filter(|saved| self.writer.graph.tensor(saved.tensor).role != Role::Gradient).collect()
    }

    /// A tensor with the values of `stands_for`, if that is given.
    pub(super) fn new_tensor(
        &mut self,
        name: &str,
        bytes: Extent,
        role: Role,
        element: Element,
        stands_for: Option<TensorId>,
    ) -> TensorId {
        self.stands_for.push(stands_for);
        self.writer.tensor(Tensor { element, ..Tensor::new(name, bytes, role) })
    }
}

/// The work of a sweep over `elements` elements.
pub(super) fn sweep(kind: OperatorKind, precision: Precision, flops: Extent, elements: Extent) -> NodeWork {
    NodeWork { precision: Some(precision), ..NodeWork::computing(kind, flops, elements) }
}

impl Rewriter<'_> {
    /// The update of one weight, unless the operators that had it were removed.
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
        // A master copy multiplies the gradient by its scale.
        let flops = if keeps_master { node.work.flops + values * DEQUANTISE } else { node.work.flops };
        let update = NodeWork { precision: Some(precision), flops, ..node.work };
        let (inputs, outputs) = (with_states(&[updated, gradient]), with_states(&[updated]));
        let step = node.step.unwrap_or_default();
        let computes = if floats || keeps_master { Computes::Float { step } } else { Computes::Update };
        self.write_node(computes, &node.name, inputs, outputs, update);
        if keeps_master {
            let name = format!("{}.quantise", self.eager.tensor(weight).name);
            let work = sweep(OperatorKind::ElementWise, Precision::Fp32, values * QUANTISE, values);
            self.write_node(Computes::Quantise, name, vec![updated], vec![weight_held], work);
        }
    }

    /// The master copy that the update of `weight` works on, in addition to the integers that products read.
    fn master(&mut self, weight: TensorId) -> TensorId {
        let eager = self.eager.tensor(weight);
        let name = format!("{}.master", eager.name);
        self.new_tensor(&name, eager.bytes, eager.role, Element::FullFloat, Some(weight))
    }
}
