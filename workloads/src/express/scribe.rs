//! The graph being written: variables, nodes and what they cost, and the expressions to be differentiated.

use std::collections::HashMap;

use haversack_devices::work::{OperatorKind, Product, ProductRole};

use super::expression::{Expression, Function, Order, Variable, VariableId};
use crate::autograd::{EagerRules, differentiate};
use crate::error::WorkloadError;
use crate::network::{FP32, Network, StorageId, ValueId};
use crate::shape::{Extent, Shape};
use crate::training_graph::{Need, Node, NodeWork, Phase, Role, Saved, Tensor, TensorId, TrainingGraph};

/// Channels of a block.
const BLOCK: u64 = 4;

/// Where a value of the network is found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) variable: VariableId,
    /// Whether the value shows the variable's axes in another order, for which its first reader copies it: permutations
    /// that follow one another are one.
    pub(super) permuted: bool,
}

/// Writes the nodes of one network.
pub(super) struct Scribe<'a> {
    pub(super) network: &'a Network,
    pub(super) graph: TrainingGraph,
    pub(super) variables: Vec<Variable>,
    /// Expressions of forward that pass a gradient on, with the operator that they come from.
    pub(super) expressions: Vec<(Expression, Option<u32>)>,
    /// The gradient of each variable, once a reader has given one.
    pub(super) gradients: Vec<Option<VariableId>>,
    pub(super) places: Vec<Option<Place>>,
    /// The variable of each parameter.
    pub(super) weights: Vec<VariableId>,
    pub(super) phase: Phase,
    /// The operator of the network that is being written.
    pub(super) origin: Option<u32>,
    /// What each tensor was converted to, as it was seen.
    conversions: HashMap<(TensorId, Shape), VariableId>,
    /// The tensor of each storage that forward does not make.
    leaves: Vec<Option<TensorId>>,
    /// What the eager graph says of each operator's product in forward: it is the same layer.
    layers: Vec<Option<NodeWork>>,
}

impl<'a> Scribe<'a> {
    pub(super) fn new(network: &'a Network) -> Result<Self, WorkloadError> {
        let mut layers = vec![None; network.nodes.len()];
        let eager = differentiate(network, EagerRules::default())?;
        for node in eager.nodes.iter().filter(|node| node.phase == Phase::Forward && is_product(node.work.kind)) {
            if let Some(origin) = node.origin {
                layers[origin as usize] = Some(node.work);
            }
        }
        let mut scribe = Self {
            network,
            graph: TrainingGraph { name: network.name.clone(), ..TrainingGraph::default() },
            variables: Vec::new(),
            expressions: Vec::new(),
            gradients: Vec::new(),
            places: vec![None; network.values.len()],
            weights: Vec::new(),
            phase: Phase::Forward,
            origin: None,
            conversions: HashMap::new(),
            leaves: vec![None; network.storages.len()],
            layers,
        };
        for (id, storage) in network.storages.iter().enumerate().filter(|(_, s)| s.role != Role::Activation) {
            let (name, element) = (storage.name.clone(), storage.element);
            scribe.leaves[id] =
                Some(scribe.new_tensor(Tensor { name, bytes: storage.bytes, role: storage.role, element }));
        }
        for parameter in &network.parameters {
            let weight = scribe.leaf(parameter.storage, Shape::fixed(&[parameter.elements]));
            scribe.variables[weight as usize].trains = parameter.trainable;
            scribe.weights.push(weight);
        }
        Ok(scribe)
    }

    pub(super) fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id as usize]
    }

    pub(super) fn shape(&self, id: VariableId) -> Shape {
        self.variable(id).shape.clone()
    }

    pub(super) fn elements(&self, id: VariableId) -> Extent {
        self.variable(id).shape.elements()
    }

    /// The bytes of the tensor behind a variable.
    pub(super) fn bytes(&self, id: VariableId) -> Extent {
        self.graph.tensor(self.variable(id).tensor).bytes
    }

    /// What the samples, the labels or a buffer hold, seen as `shape`.
    pub(super) fn leaf(&mut self, storage: StorageId, shape: Shape) -> VariableId {
        // Whatever forward does not make has a tensor from the start.
        let tensor = self.leaves[storage as usize].unwrap_or(TensorId::MAX);
        self.look(tensor, shape, Order::Rows)
    }

    /// A variable over `tensor`.
    pub(super) fn look(&mut self, tensor: TensorId, shape: Shape, order: Order) -> VariableId {
        self.variables.push(Variable { tensor, shape, order, trains: false, need: Need::Values });
        self.gradients.push(None);
        (self.variables.len() - 1) as VariableId
    }

    /// Where `value` is found; what no operator made is a leaf.
    pub(super) fn place(&mut self, value: ValueId) -> Place {
        if let Some(place) = self.places[value as usize] {
            return place;
        }
        let seen = self.network.value(value);
        let place = Place { variable: self.leaf(seen.storage, seen.shape.clone()), permuted: false };
        self.places[value as usize] = Some(place);
        place
    }

    /// A new tensor of `shape` in `order`, and the variable over it.
    pub(super) fn make(&mut self, label: &str, shape: Shape, order: Order) -> VariableId {
        let role = if self.phase == Phase::Forward { Role::Activation } else { Role::Gradient };
        let (name, bytes) = (self.name_of(label), bytes_of(&shape, order));
        let tensor = self.new_tensor(Tensor { name, bytes, role, element: Default::default() });
        self.look(tensor, shape, order)
    }

    /// Writes a node. It costs a sweep over the largest of its inputs and outputs, and the bytes of all of them, unless
    /// the caller knows better.
    pub(super) fn push(
        &mut self,
        label: &str,
        kind: OperatorKind,
        inputs: &[VariableId],
        outputs: &[VariableId],
    ) -> &mut NodeWork {
        let sweep = self.largest(inputs.iter().chain(outputs)).map_or(Extent::ZERO, |v| self.elements(v));
        if self.phase == Phase::Forward && inputs.iter().any(|&v| self.variable(v).trains) {
            for &output in outputs {
                self.variables[output as usize].trains = true;
            }
        }
        let saved = self.saved_among(inputs);
        let mut tensors: Vec<TensorId> = Vec::new();
        for &input in inputs {
            // A square reads one tensor, though twice.
            if !tensors.contains(&self.variable(input).tensor) {
                tensors.push(self.variable(input).tensor);
            }
        }
        let outputs: Vec<TensorId> = outputs.iter().map(|&v| self.variable(v).tensor).collect();
        let dram = tensors.iter().chain(&outputs).map(|&t| self.graph.tensor(t).bytes).sum();
        let work = NodeWork {
            kind,
            flops: sweep,
            index_translations: Extent::ZERO,
            dram,
            parallelism: sweep,
            launches: 1,
            single_kernel: false,
            winograd: false,
            columns: 0,
            precision: None,
            product: None,
        };
        let id = self.graph.nodes.len();
        self.graph.nodes.push(Node {
            name: self.name_of(label),
            phase: self.phase,
            inputs: tensors,
            outputs,
            releases: Vec::new(),
            saved,
            origin: self.origin,
            rescales: None,
            work,
        });
        &mut self.graph.nodes[id].work
    }

    /// A node with one output of `shape` in `order`.
    pub(super) fn map(
        &mut self,
        label: &str,
        kind: OperatorKind,
        inputs: &[VariableId],
        shape: Shape,
        order: Order,
    ) -> VariableId {
        let y = self.make(label, shape, order);
        self.push(label, kind, inputs, &[y]);
        y
    }

    /// An element-wise node, as large as the largest of its inputs.
    pub(super) fn sweep(&mut self, label: &str, inputs: &[VariableId]) -> VariableId {
        let model = self.largest(inputs).unwrap_or(inputs[0]);
        let (shape, order) = (self.shape(model), self.variable(model).order);
        self.map(label, OperatorKind::ElementWise, inputs, shape, order)
    }

    /// The variable with the most elements, those of a batch before those that do not depend on it.
    fn largest<'v>(&self, among: impl IntoIterator<Item = &'v VariableId>) -> Option<VariableId> {
        let size = |v: VariableId| (self.elements(v).per_sample, self.elements(v).fixed);
        // The first of equals decides the order that the result lies in.
        among.into_iter().copied().reduce(|most, v| if size(v) > size(most) { v } else { most })
    }

    /// A reduction of `x` to the shape and order of `like`.
    pub(super) fn reduce_like(&mut self, label: &str, x: VariableId, like: VariableId) -> VariableId {
        let (shape, order) = (self.shape(like), self.variable(like).order);
        self.map(label, OperatorKind::Reduction, &[x], shape, order)
    }

    /// The product of the current operator's layer that computes `role` of it.
    pub(super) fn product(
        &mut self,
        label: &str,
        role: ProductRole,
        inputs: &[VariableId],
        shape: Shape,
        order: Order,
    ) -> VariableId {
        let y = self.make(label, shape, order);
        let parallelism = self.elements(y);
        let layer = self.origin.and_then(|origin| self.layers[origin as usize]);
        let kind = layer.map_or(OperatorKind::Gemm, |layer| layer.kind);
        let work = self.push(label, kind, inputs, &[y]);
        work.parallelism = parallelism;
        if let Some(layer) = layer {
            work.flops = layer.flops;
            work.winograd = layer.winograd;
            work.columns = layer.columns;
            work.product = layer.product.map(|product| Product { role, ..product });
        }
        y
    }

    /// Notes an expression for backward, where a gradient flows to its output `y`, and hands `y` on.
    pub(super) fn record(&mut self, y: VariableId, expression: Expression) -> VariableId {
        if self.variable(y).trains {
            self.expressions.push((expression, self.origin));
        }
        y
    }

    pub(super) fn new_tensor(&mut self, tensor: Tensor) -> TensorId {
        self.graph.tensors.push(tensor);
        (self.graph.tensors.len() - 1) as TensorId
    }

    /// The node that was pushed last needs nothing but the shapes of what forward made.
    pub(super) fn needs_shapes(&mut self) {
        if let Some(node) = self.graph.nodes.last_mut() {
            node.saved.iter_mut().for_each(|saved| saved.need = Need::Shape);
        }
    }

    /// What a node of backward needs of the tensors among `inputs` that forward made.
    fn saved_among(&self, inputs: &[VariableId]) -> Vec<Saved> {
        let Some(origin) = self.origin.filter(|_| self.phase == Phase::Backward) else { return Vec::new() };
        let by_module = !self.network.nodes[origin as usize].op.is_functional();
        let mut saved: Vec<Saved> = Vec::new();
        for input in inputs.iter().map(|&v| self.variable(v)) {
            let known = saved.iter().any(|s| s.tensor == input.tensor);
            if self.graph.tensor(input.tensor).role == Role::Activation && !known {
                saved.push(Saved { tensor: input.tensor, need: input.need, by_module });
            }
        }
        saved
    }

    fn name_of(&self, label: &str) -> String {
        match self.origin {
            Some(origin) => format!("{}.{label}", self.network.nodes[origin as usize].module),
            None => label.to_owned(),
        }
    }
}

/// The steps of element-wise expressions, each of which notes itself for backward.
impl Scribe<'_> {
    pub(super) fn add(&mut self, a: VariableId, b: VariableId) -> VariableId {
        let y = self.sweep("add", &[a, b]);
        self.record(y, Expression::Add { a, b, y })
    }

    pub(super) fn subtract(&mut self, a: VariableId, b: VariableId) -> VariableId {
        let y = self.sweep("subtract", &[a, b]);
        self.record(y, Expression::Subtract { a, b, y })
    }

    pub(super) fn multiply(&mut self, a: VariableId, b: VariableId) -> VariableId {
        let y = self.sweep("multiply", &[a, b]);
        self.record(y, Expression::Multiply { a, b, y })
    }

    pub(super) fn offset(&mut self, x: VariableId) -> VariableId {
        let y = self.sweep("add_constant", &[x]);
        self.record(y, Expression::Offset { x, y })
    }

    pub(super) fn scale(&mut self, x: VariableId) -> VariableId {
        let y = self.sweep("scale", &[x]);
        self.record(y, Expression::Scale { x, y })
    }

    pub(super) fn apply(&mut self, function: Function, x: VariableId) -> VariableId {
        let y = self.sweep(function.name(), &[x]);
        self.record(y, Expression::Function { function, x, y })
    }

    /// The mean, or the sum, of `x` over the axes that `shape` lacks.
    pub(super) fn reduce(&mut self, mean: bool, x: VariableId, shape: Shape) -> VariableId {
        let label = if mean { "reduce_mean" } else { "reduce_sum" };
        let y = self.map(label, OperatorKind::Reduction, &[x], shape, Order::Rows);
        self.record(y, Expression::Reduce { mean, x, y })
    }

    /// A copy of `x` as `shape` in `order`.
    pub(super) fn rearrange(&mut self, label: &'static str, x: VariableId, shape: Shape, order: Order) -> VariableId {
        let y = self.map(label, OperatorKind::Layout, &[x], shape, order);
        self.record(y, Expression::Rearrange { label, x, y })
    }

    /// `x` in `order`: itself, or its conversion, which all readers share.
    pub(super) fn in_order(&mut self, x: VariableId, order: Order) -> VariableId {
        let found = self.variable(x);
        if found.order == order {
            return x;
        }
        let looked_at = (found.tensor, found.shape.clone());
        if let Some(&known) = self.conversions.get(&looked_at) {
            return known;
        }
        let converted = self.rearrange("convert", x, looked_at.1.clone(), order);
        self.conversions.insert(looked_at, converted);
        converted
    }

    /// `x` as `shape`, without a copy within rows; blocks are converted first.
    pub(super) fn reshape(&mut self, x: VariableId, shape: Shape) -> VariableId {
        let x = self.in_order(x, Order::Rows);
        let seen = self.variable(x);
        let (tensor, trains) = (seen.tensor, seen.trains);
        let y = self.look(tensor, shape, Order::Rows);
        self.variables[y as usize].trains = trains;
        self.record(y, Expression::Reshape { x, y })
    }
}

/// The bytes of `shape` in `order`.
fn bytes_of(shape: &Shape, order: Order) -> Extent {
    let mut shape = shape.clone();
    if order == Order::Blocks
        && let Some(channels) = shape.0.get_mut(1)
    {
        channels.size = channels.size.next_multiple_of(BLOCK);
    }
    shape.elements() * FP32
}

const fn is_product(kind: OperatorKind) -> bool {
    matches!(kind, OperatorKind::Convolution | OperatorKind::DepthwiseConvolution | OperatorKind::Gemm)
}
