//! The graph of computable operations: every node makes one tensor.

use std::collections::HashMap;

use haversack_devices::OperatorKind;

use crate::{Extent, FP32, Phase, Role, Tensor, TensorId};

/// The class of a computable operation, which decides what it can be fused with (section 3.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Element-wise over tensors of one shape: fuses with every neighbour but opaque ones.
    Symmetrical,
    /// A broadcast or a cut: no arithmetic, only another index into its input, which section 3.2.3
    /// translates inside the kernel that reads it.
    Translation,
    /// Product, convolution, reduction, window: fuses with symmetrical neighbours only.
    Asymmetrical,
    /// Look-ups, scatters and random numbers: fuses with nothing.
    Opaque,
}

/// One computable operation.
#[derive(Clone, Debug)]
pub(super) struct ComputableNode {
    /// Its operation: `mul`, `reduce_sum`, `conv`, …
    pub(super) operator: &'static str,
    /// Its class, for fusion.
    pub(super) class: Class,
    /// The rate that a processor reaches on it.
    pub(super) kind: OperatorKind,
    /// When it is evaluated: forward or backward.
    pub(super) phase: Phase,
    /// The operator of the network that it comes from.
    pub(super) origin: u32,
    /// Tensors that it reads.
    pub(super) inputs: Vec<TensorId>,
    /// The tensor that it makes.
    pub(super) output: TensorId,
    /// Operations of its arithmetic.
    pub(super) flops: Extent,
    /// Independent outputs; a reduction spreads over its input.
    pub(super) parallelism: Extent,
}

/// The computable graph of one training iteration, in an order of evaluation.
#[derive(Clone, Debug, Default)]
pub(super) struct ComputableGraph {
    /// All tensors: the network's inputs and weights first, then one a node.
    pub(super) tensors: Vec<Tensor>,
    /// The elements of each tensor.
    pub(super) elements: Vec<Extent>,
    /// The node that makes each tensor; `None` for inputs and weights.
    pub(super) producer: Vec<Option<u32>>,
    /// The tensors that together form one that no node makes ([`Self::join`]).
    pub(super) joined: HashMap<TensorId, Vec<TensorId>>,
    /// All nodes, in an order of evaluation.
    pub(super) nodes: Vec<ComputableNode>,
    /// The tensor of each parameter of the network.
    pub(super) weights: Vec<TensorId>,
    /// The gradient of each parameter of the network that has one.
    pub(super) weight_gradients: Vec<Option<TensorId>>,
    /// The loss, once forward is lowered.
    pub(super) loss: Option<TensorId>,
    /// Where the next node belongs.
    pub(super) phase: Option<Phase>,
    pub(super) origin: u32,
}

impl ComputableGraph {
    /// A tensor that no node makes.
    pub(super) fn leaf(&mut self, tensor: Tensor, elements: Extent) -> TensorId {
        self.tensors.push(tensor);
        self.elements.push(elements);
        self.producer.push(None);
        (self.tensors.len() - 1) as TensorId
    }

    /// `parts` read as one tensor: its reader reads all of them, and translates the index (section 3.3).
    pub(super) fn join(&mut self, parts: &[TensorId], elements: Extent) -> TensorId {
        let whole = self.leaf(Tensor::new("", Extent::ZERO, Role::Activation), elements);
        let parts = parts.iter().flat_map(|&part| self.parts(part)).collect();
        self.joined.insert(whole, parts);
        whole
    }

    /// The tensors that are read where `tensor` is: its parts, or itself.
    fn parts(&self, tensor: TensorId) -> Vec<TensorId> {
        self.joined.get(&tensor).cloned().unwrap_or_else(|| vec![tensor])
    }

    pub(super) fn elements_of(&self, tensor: TensorId) -> Extent {
        self.elements[tensor as usize]
    }

    /// For each tensor, the nodes that read it, in order.
    pub(super) fn consumers(&self) -> Vec<Vec<u32>> {
        let mut consumers = vec![Vec::new(); self.tensors.len()];
        for (id, node) in (0..).zip(&self.nodes) {
            for &input in &node.inputs {
                if consumers[input as usize].last() != Some(&id) {
                    consumers[input as usize].push(id);
                }
            }
        }
        consumers
    }

    /// Whether a tensor outlives the iteration's graph: a weight's gradient or the loss.
    pub(super) fn is_result(&self, tensor: TensorId) -> bool {
        self.loss == Some(tensor) || self.tensors[tensor as usize].role == Role::ParameterGradient
    }

    /// An element-wise operation over tensors of one shape.
    pub(super) fn symmetrical(&mut self, operator: &'static str, inputs: &[TensorId]) -> TensorId {
        let elements = self.elements_of(inputs[0]);
        self.add(operator, Class::Symmetrical, OperatorKind::ElementWise, inputs, elements, [elements; 2])
    }

    /// Element-wise operations of one tensor, one after the other.
    pub(super) fn chain(&mut self, operators: &[&'static str], x: TensorId) -> TensorId {
        operators.iter().fold(x, |x, operator| self.symmetrical(operator, &[x]))
    }

    /// An element-wise operation of `x` and `small`, which is broadcast to it.
    pub(super) fn with_wide(&mut self, operator: &'static str, x: TensorId, small: TensorId) -> TensorId {
        let wide = self.translate("expand", small, self.elements_of(x));
        self.symmetrical(operator, &[x, wide])
    }

    /// `x` seen as a tensor of `elements` elements: broadcast, cut or placed.
    pub(super) fn translate(&mut self, operator: &'static str, x: TensorId, elements: Extent) -> TensorId {
        self.add(operator, Class::Translation, OperatorKind::Layout, &[x], elements, [Extent::ZERO, elements])
    }

    /// A reduction of `x` to `elements` elements.
    pub(super) fn reduce(&mut self, operator: &'static str, x: TensorId, elements: Extent) -> TensorId {
        let read = self.elements_of(x);
        self.add(operator, Class::Asymmetrical, OperatorKind::Reduction, &[x], elements, [read; 2])
    }

    /// A product or convolution with `elements` outputs.
    pub(super) fn contract(
        &mut self,
        operator: &'static str,
        kind: OperatorKind,
        inputs: &[TensorId],
        elements: Extent,
        flops: Extent,
    ) -> TensorId {
        self.add(operator, Class::Asymmetrical, kind, inputs, elements, [flops, elements])
    }

    /// The gradient of a weight: `elements` sums over the positions of `operands`, which a kernel splits among its
    /// threads, so that there is work for as many as the second operand has elements.
    pub(super) fn contract_weight(
        &mut self,
        operator: &'static str,
        kind: OperatorKind,
        operands: [TensorId; 2],
        elements: Extent,
        flops: Extent,
    ) -> TensorId {
        let parallelism = elements + self.elements_of(operands[1]);
        self.add(operator, Class::Asymmetrical, kind, &operands, elements, [flops, parallelism])
    }

    /// A copy into another layout: windows gathered, operands transposed, parts joined.
    pub(super) fn rearrange(&mut self, operator: &'static str, inputs: &[TensorId], elements: Extent) -> TensorId {
        self.add(operator, Class::Asymmetrical, OperatorKind::Layout, inputs, elements, [Extent::ZERO, elements])
    }

    /// A look-up, a scatter or random numbers.
    pub(super) fn opaque(&mut self, operator: &'static str, inputs: &[TensorId], elements: Extent) -> TensorId {
        self.add(operator, Class::Opaque, OperatorKind::Gather, inputs, elements, [elements; 2])
    }

    /// Adds a node of the current phase and operator that makes `elements` elements, and the tensor that it makes.
    fn add(
        &mut self,
        operator: &'static str,
        class: Class,
        kind: OperatorKind,
        inputs: &[TensorId],
        elements: Extent,
        [flops, parallelism]: [Extent; 2],
    ) -> TensorId {
        let phase = self.phase.unwrap_or(Phase::Forward);
        let role = if phase == Phase::Forward { Role::Activation } else { Role::Gradient };
        let output = self.leaf(Tensor::new("", elements * FP32, role), elements);
        self.producer[output as usize] = Some(self.nodes.len() as u32);
        let (origin, inputs) = (self.origin, inputs.iter().flat_map(|&input| self.parts(input)).collect());
        self.nodes.push(ComputableNode { operator, class, kind, phase, origin, inputs, output, flops, parallelism });
        output
    }
}
