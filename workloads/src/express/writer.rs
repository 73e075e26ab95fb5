//! The graph being written: variables, nodes and their work, and the expressions to be differentiated.

use std::collections::HashMap;

use haversack_devices::{OperatorKind, Product, ProductRole};

use super::{DataFormat, Expression, Function, Layout, Operation, Variable, VariableId, Version};
use crate::autograd::{EagerRules, differentiate};
use crate::graph_writer::GraphWriter;
use crate::network::FP32;
use crate::training_graph::{Need, NodeWork, Saved, Tensor};
use crate::{Extent, Network, Op, Phase, Role, Shape, StorageId, TensorId, ValueId, WorkloadError};

/// Channels of a block.
const BLOCK: u64 = 4;

/// The variable that shows a value of the network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    pub(super) variable: VariableId,
    /// Whether the value's axes are a permutation of the variable's, which its first reader copies: consecutive
    /// permutations are one.
    pub(super) permuted: bool,
}

/// Writes the expressions of one network.
pub(super) struct ExpressionWriter<'a> {
    pub(super) network: &'a Network,
    pub(super) writer: GraphWriter,
    pub(super) variables: Vec<Variable>,
    /// Expressions of forward that pass a gradient on.
    pub(super) expressions: Vec<Expression>,
    /// The gradient of each variable, once a reader has given one.
    pub(super) gradients: Vec<Option<VariableId>>,
    /// The variable of each value of the network, once it is known.
    pub(super) shown: Vec<Option<Shown>>,
    /// The variable of each parameter.
    pub(super) weights: Vec<VariableId>,
    /// The parts that are cut from each value, in order.
    pub(super) parts: HashMap<ValueId, Vec<ValueId>>,
    pub(super) version: Version,
    /// The conversions of each tensor, by shape and format.
    conversions: HashMap<(TensorId, Shape, DataFormat), VariableId>,
    /// The broadcast copies of each tensor, by shape.
    pub(super) broadcasts: HashMap<(TensorId, Shape), VariableId>,
    /// The tensor of each storage that forward does not make.
    leaves: Vec<Option<TensorId>>,
    /// The work of each operator's forward product in the eager graph, as it is the same layer.
    pub(super) layers: Vec<Option<NodeWork>>,
}

impl<'a> ExpressionWriter<'a> {
    pub(super) fn new(network: &'a Network, version: Version) -> Result<Self, WorkloadError> {
        let mut layers = vec![None; network.nodes.len()];
        let eager = differentiate(network, EagerRules::default())?;
        for node in eager.nodes.iter().filter(|node| node.phase == Phase::Forward && node.work.is_product()) {
            if let Some(origin) = node.origin {
                layers[origin as usize] = Some(node.work);
            }
        }
        let mut parts: HashMap<ValueId, Vec<ValueId>> = HashMap::new();
        for node in network.nodes.iter().filter(|node| matches!(node.op, Op::Slice(_))) {
            parts.entry(node.inputs[0]).or_default().push(node.output);
        }
        let mut writer = GraphWriter::new(&network.name);
        let given = |storage: &crate::network::Storage| storage.role != Role::Activation;
        let leaves =
            network.storages.iter().map(|storage| given(storage).then(|| writer.tensor(storage.tensor()))).collect();
        let mut this = Self {
            network,
            writer,
            variables: Vec::new(),
            expressions: Vec::new(),
            gradients: Vec::new(),
            shown: vec![None; network.values.len()],
            weights: Vec::new(),
            parts,
            version,
            conversions: HashMap::new(),
            broadcasts: HashMap::new(),
            leaves,
            layers,
        };
        for parameter in &network.parameters {
            let weight = this.leaf(parameter.storage, Shape::fixed(&[parameter.elements]));
            this.variables[weight as usize].trains = parameter.trainable;
            this.weights.push(weight);
        }
        Ok(this)
    }

    pub(super) fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id as usize]
    }

    pub(super) fn shape(&self, id: VariableId) -> Shape {
        self.variable(id).shape.clone()
    }

    pub(super) fn layout(&self, id: VariableId) -> Layout {
        Layout { shape: self.shape(id), format: self.variable(id).format }
    }

    pub(super) fn elements(&self, id: VariableId) -> Extent {
        self.variable(id).shape.elements()
    }

    /// The tensor behind a variable.
    pub(super) fn tensor(&mut self, id: VariableId) -> &mut Tensor {
        &mut self.writer.graph.tensors[self.variables[id as usize].tensor as usize]
    }

    /// The bytes of the tensor behind a variable.
    pub(super) fn bytes(&self, id: VariableId) -> Extent {
        self.writer.graph.tensor(self.variable(id).tensor).bytes
    }

    /// A variable for the samples, the labels or a buffer, viewed as `shape`.
    pub(super) fn leaf(&mut self, storage: StorageId, shape: Shape) -> VariableId {
        // A tensor that forward does not make exists from the start.
        let tensor = self.leaves[storage as usize].unwrap_or(TensorId::MAX);
        self.look(tensor, Layout::rows(shape))
    }

    /// A variable over `tensor`.
    pub(super) fn look(&mut self, tensor: TensorId, layout: Layout) -> VariableId {
        let Layout { shape, format } = layout;
        self.variables.push(Variable { tensor, shape, format, trains: false, need: Need::Values });
        self.gradients.push(None);
        (self.variables.len() - 1) as VariableId
    }

    /// The variable of `value`; a value that no operator made is a leaf.
    pub(super) fn show(&mut self, value: ValueId) -> Shown {
        if let Some(shown) = self.shown[value as usize] {
            return shown;
        }
        let seen = self.network.value(value);
        let shown = Shown { variable: self.leaf(seen.storage, seen.shape.clone()), permuted: false };
        self.shown[value as usize] = Some(shown);
        shown
    }

    /// A new tensor in `layout`, and the variable over it.
    pub(super) fn make(&mut self, label: &str, layout: Layout) -> VariableId {
        let role = if self.writer.phase == Phase::Forward { Role::Activation } else { Role::Gradient };
        let tensor = Tensor::new(self.name_of(label), bytes_of(&layout), role);
        let tensor = self.writer.tensor(tensor);
        self.look(tensor, layout)
    }

    /// Writes a node. It costs a sweep over the largest of its inputs and outputs, and the bytes of all of them, unless
    /// the caller corrects that.
    pub(super) fn push(
        &mut self,
        label: &str,
        kind: OperatorKind,
        inputs: &[VariableId],
        outputs: &[VariableId],
    ) -> &mut NodeWork {
        let sweep = self.largest(inputs.iter().chain(outputs)).map_or(Extent::ZERO, |v| self.elements(v));
        if self.writer.phase == Phase::Forward && inputs.iter().any(|&v| self.variable(v).trains) {
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
        let outputs = outputs.iter().map(|&v| self.variable(v).tensor).collect();
        let name = self.name_of(label);
        let node = self.writer.write(name, tensors, outputs, NodeWork::computing(kind, sweep, sweep));
        node.saved = saved;
        &mut node.work
    }

    /// A node with one output in `layout`.
    pub(super) fn map(&mut self, label: &str, kind: OperatorKind, inputs: &[VariableId], layout: Layout) -> VariableId {
        let y = self.make(label, layout);
        self.push(label, kind, inputs, &[y]);
        y
    }

    /// An element-wise node, as large as the largest of its inputs.
    pub(super) fn sweep(&mut self, label: &str, inputs: &[VariableId]) -> VariableId {
        let inputs: Vec<_> = inputs.iter().map(|&input| self.blocked(input)).collect();
        let model = self.largest(&inputs).unwrap_or(inputs[0]);
        let layout = self.layout(model);
        let (operands, looped) = self.operands(&inputs, &layout);
        let y = self.map(label, OperatorKind::ElementWise, &operands, layout);
        if looped {
            self.last().parts = Extent::fixed(1);
        }
        y
    }

    /// `x`, with its postponed conversion to blocks made.
    pub(super) fn blocked(&mut self, x: VariableId) -> VariableId {
        if self.variable(x).format == DataFormat::Unblocked { self.as_told(x) } else { x }
    }

    /// The variable with the most elements, those of a batch before those that do not depend on it.
    fn largest<'v>(&self, among: impl IntoIterator<Item = &'v VariableId>) -> Option<VariableId> {
        let size = |v: VariableId| (self.elements(v).per_sample, self.elements(v).fixed);
        // The first of equals decides the format of the result.
        among.into_iter().copied().reduce(|most, v| if size(v) > size(most) { v } else { most })
    }

    /// The product of the current operator's layer that computes `role` of it.
    pub(super) fn product(
        &mut self,
        label: &str,
        role: ProductRole,
        inputs: &[VariableId],
        layout: Layout,
    ) -> VariableId {
        let y = self.make(label, layout);
        let parallelism = self.elements(y);
        let layer = self.writer.origin.and_then(|origin| self.layers[origin as usize]);
        let kind = layer.map_or(OperatorKind::Gemm, |layer| layer.kind);
        let work = self.push(label, kind, inputs, &[y]);
        if let Some(layer) = layer {
            let product = layer.product.map(|product| Product { role, ..product });
            *work = NodeWork { product, dram: work.dram, ..layer };
        }
        work.parallelism = parallelism;
        y
    }

    /// Notes an expression for backward, if a gradient flows to its output `y`, and hands `y` on.
    pub(super) fn record(&mut self, operation: Operation, inputs: &[VariableId], y: VariableId) -> VariableId {
        self.record_all(operation, inputs, vec![y]);
        y
    }

    /// Notes an expression of several outputs for backward, if a gradient flows to the first.
    pub(super) fn record_all(&mut self, operation: Operation, inputs: &[VariableId], outputs: Vec<VariableId>) {
        if self.variable(outputs[0]).trains {
            let origin = self.writer.origin;
            self.expressions.push(Expression { operation, inputs: inputs.to_vec(), outputs, origin });
        }
    }

    /// The node that was pushed last needs only the shapes of the forward tensors.
    pub(super) fn needs_shapes(&mut self) {
        if let Some(node) = self.writer.graph.nodes.last_mut() {
            node.saved.iter_mut().for_each(|saved| saved.need = Need::Shape);
        }
    }

    /// The forward tensors among `inputs`, with the property that a backward node needs of each.
    fn saved_among(&self, inputs: &[VariableId]) -> Vec<Saved> {
        let backward = self.writer.phase == Phase::Backward;
        let Some(origin) = self.writer.origin.filter(|_| backward) else { return Vec::new() };
        let by_module = !self.network.nodes[origin as usize].op.is_functional();
        let mut saved: Vec<Saved> = Vec::new();
        for input in inputs.iter().map(|&v| self.variable(v)) {
            let known = saved.iter().any(|s| s.tensor == input.tensor);
            if self.writer.graph.tensor(input.tensor).role == Role::Activation && !known {
                saved.push(Saved { tensor: input.tensor, need: input.need, by_module });
            }
        }
        saved
    }

    fn name_of(&self, label: &str) -> String {
        match self.writer.origin {
            Some(origin) => format!("{}.{label}", self.network.nodes[origin as usize].module),
            None => label.to_owned(),
        }
    }
}

/// The steps of expressions, each of which notes itself for backward.
impl ExpressionWriter<'_> {
    /// An element-wise expression.
    pub(super) fn step(&mut self, operation: Operation, inputs: &[VariableId]) -> VariableId {
        let y = self.sweep(operation.sweep_name(), inputs);
        self.record(operation, inputs, y)
    }

    pub(super) fn apply(&mut self, function: Function, x: VariableId) -> VariableId {
        self.step(Operation::Function(function), &[x])
    }

    /// The mean, or the sum, of `x` over the axes that `shape` lacks.
    pub(super) fn reduce(&mut self, mean: bool, x: VariableId, shape: Shape) -> VariableId {
        let label = if mean { "reduce_mean" } else { "reduce_sum" };
        let y = self.sum(label, x, Layout::rows(shape));
        self.record(Operation::Reduce { mean }, &[x], y)
    }

    /// A copy of `x` in `layout`.
    pub(super) fn rearrange(&mut self, label: &'static str, x: VariableId, layout: Layout) -> VariableId {
        let y = self.moved(label, x, layout);
        self.record(Operation::Rearrange(label), &[x], y)
    }

    /// `x` in `format`: itself, or its conversion, which all readers share.
    pub(super) fn in_format(&mut self, x: VariableId, format: DataFormat) -> VariableId {
        let found = self.variable(x);
        if found.format == format {
            return x;
        }
        if (found.format, format) == (DataFormat::Unblocked, DataFormat::Rows) {
            return self.seen_in(x, format);
        }
        let looked_at = (found.tensor, found.shape.clone(), format);
        if let Some(&known) = self.conversions.get(&looked_at) {
            return known;
        }
        // The result of a product is first transposed to rows.
        let between = found.format == DataFormat::Columns && format == DataFormat::Blocks;
        let x = if between { self.in_rows(x) } else { x };
        let converted = self.rearrange("convert", x, Layout { shape: looked_at.1.clone(), format });
        self.conversions.insert(looked_at, converted);
        converted
    }

    /// The tensor of `x`, declared to be in `format`, whatever its layout in memory is.
    pub(super) fn seen_in(&mut self, x: VariableId, format: DataFormat) -> VariableId {
        let (tensor, shape) = (self.variable(x).tensor, self.shape(x));
        self.look(tensor, Layout { shape, format })
    }

    /// `x` in the format that is declared to its readers.
    pub(super) fn as_told(&mut self, x: VariableId) -> VariableId {
        self.in_format(x, self.variable(x).format.told())
    }

    /// `x` in rows.
    pub(super) fn in_rows(&mut self, x: VariableId) -> VariableId {
        self.in_format(x, DataFormat::Rows)
    }

    /// `x` as `shape`: without a copy if it is in rows; blocks are converted first.
    pub(super) fn reshape(&mut self, x: VariableId, shape: Shape) -> VariableId {
        let x = self.in_rows(x);
        let seen = self.variable(x);
        let (tensor, trains) = (seen.tensor, seen.trains);
        let y = self.look(tensor, Layout::rows(shape));
        self.variables[y as usize].trains = trains;
        self.record(Operation::Reshape, &[x], y)
    }
}

/// The bytes of `shape` in `format`.
fn bytes_of(layout: &Layout) -> Extent {
    let mut shape = layout.shape.clone();
    if layout.format == DataFormat::Blocks
        && let Some(channels) = shape.0.get_mut(1)
    {
        channels.size = channels.size.next_multiple_of(BLOCK);
    }
    shape.elements() * FP32
}
