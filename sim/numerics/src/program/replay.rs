//! The arithmetic of each node of an eager graph: the differentiation is followed once more, operator by operator, and
//! every node of the graph gets its part of the arithmetic.
//!
//! The order of nodes is that of [`haversack_workloads::autograd`]; a graph with another order is refused.

use haversack_workloads::{
    Copying, FP32, Layout, Network, Node, Op, OperatorNode, Phase, Role, TensorId, TrainingGraph, ValueId, View,
};

use super::forward::refused;
use super::{Derivative, Look, Part, Result, Step};
use crate::ProgramError;

/// The arithmetic of every node of `graph`, in its order.
pub(super) fn replay(network: &Network, graph: &TrainingGraph) -> Result<Vec<Step>> {
    let mut replay = Replay {
        network,
        graph,
        steps: Vec::with_capacity(graph.nodes.len()),
        gradients: vec![None; network.values.len()],
    };
    replay.forward()?;
    replay.seed()?;
    for (id, node) in network.nodes.iter().enumerate().rev() {
        replay.backward(id as u32, node)?;
    }
    replay.update()?;
    Ok(replay.steps)
}

struct Replay<'a> {
    network: &'a Network,
    graph: &'a TrainingGraph,
    /// One step for each node so far.
    steps: Vec<Step>,
    /// The gradient of each value, once a reader of the value has given one.
    gradients: Vec<Option<Look>>,
}

impl<'a> Replay<'a> {
    /// The next node, if it is in `phase` and comes from operator `origin`.
    fn next(&self, phase: Phase, origin: Option<u32>) -> Result<&'a Node> {
        let place = self.steps.len();
        let node = self.graph.nodes.get(place).filter(|node| node.phase == phase && node.origin == origin);
        node.ok_or_else(|| {
            let found = self.graph.nodes.get(place).map_or("nothing", |node| node.name.as_str());
            self.other_graph(format!("node {place} is {found}"))
        })
    }

    fn other_graph(&self, found: String) -> ProgramError {
        super::other_graph(self.network, &found)
    }

    fn forward(&mut self) -> Result {
        for (id, _) in (0..).zip(&self.network.nodes).filter(|(_, node)| !node.op.is_look()) {
            self.next(Phase::Forward, Some(id))?;
            self.steps.push(Step::Forward(id));
        }
        Ok(())
    }

    fn seed(&mut self) -> Result {
        let loss = self.network.loss.ok_or_else(|| self.other_graph("it has no loss".to_owned()))?;
        // The graph lists the node under the last operator of forward.
        let node = self.next(Phase::Backward, Some(self.network.nodes.len().saturating_sub(1) as u32))?;
        let gradient = self.only_output(node)?;
        self.steps.push(Step::Seed(gradient));
        self.gradients[loss as usize] = Some(Look::whole(gradient));
        Ok(())
    }

    fn only_output(&self, node: &Node) -> Result<TensorId> {
        match node.outputs[..] {
            [output] => Ok(output),
            _ => Err(self.other_graph(format!("{} has {} outputs", node.name, node.outputs.len()))),
        }
    }

    fn backward(&mut self, id: u32, node: &'a OperatorNode) -> Result {
        let Some(gradient) = self.gradients[node.output as usize].clone() else { return Ok(()) };
        match &node.op {
            Op::View(_) | Op::Copy(_) if self.wants(node.inputs[0]) => {
                let back = back(self.network, node)?;
                self.give(id, node.inputs[0], gradient.through(back))
            }
            Op::View(_) | Op::Copy(_) => Ok(()),
            Op::Concat { axis } => self.backward_concat(id, node, *axis, gradient),
            Op::Add => self.backward_add(id, node, gradient),
            Op::Convolution { .. } | Op::Linear => self.backward_product_with_weight(id, node, gradient),
            Op::Matmul => {
                for place in 0..2 {
                    self.backward_to(id, node, place, gradient.clone())?;
                }
                Ok(())
            }
            Op::CrossEntropy => {
                let of_log = self.derive(id, Part::LogProbabilities, gradient, &[], &[])?;
                let of_log = Look::whole(of_log);
                self.backward_to(id, node, 0, of_log)
            }
            Op::Embedding | Op::IndexTable => {
                let trained = self.trained(node);
                self.derive(id, Part::Whole, gradient, &[], &trained).map(drop)
            }
            _ => {
                let wanted: Vec<usize> =
                    (0..node.inputs.len()).filter(|&place| self.wants(node.inputs[place])).collect();
                let trained = self.trained(node);
                self.derive(id, Part::Whole, gradient, &wanted, &trained)?;
                self.hand_on(id, node, &wanted)
            }
        }
    }

    /// The parts of the gradient are views of it.
    fn backward_concat(&mut self, id: u32, node: &OperatorNode, axis: usize, gradient: Look) -> Result {
        let mut first = 0;
        for (place, &input) in node.inputs.iter().enumerate() {
            let part = part(self.network, node, place, axis, first);
            self.give(id, input, gradient.clone().through(part))?;
            first += self.network.shape(input).size(axis);
        }
        Ok(())
    }

    /// A sum passes its gradient on; an operand that was broadcast gets the sum over the broadcast dimensions.
    fn backward_add(&mut self, id: u32, node: &OperatorNode, gradient: Look) -> Result {
        let output = self.network.shape(node.output).elements();
        for (place, &input) in node.inputs.iter().enumerate() {
            if self.network.shape(input).elements() == output {
                self.give(id, input, gradient.clone())?;
            } else {
                self.backward_to(id, node, place, gradient.clone())?;
            }
        }
        Ok(())
    }

    fn backward_product_with_weight(&mut self, id: u32, node: &OperatorNode, gradient: Look) -> Result {
        let trained = self.trained(node);
        if !trained.is_empty() {
            self.derive(id, Part::Weights, gradient.clone(), &[], &trained)?;
        }
        self.backward_to(id, node, 0, gradient)
    }

    /// The node that computes the gradient of the input at index `place`, if it is needed.
    fn backward_to(&mut self, id: u32, node: &OperatorNode, place: usize, gradient: Look) -> Result {
        if !self.wants(node.inputs[place]) {
            return Ok(());
        }
        self.derive(id, Part::Input, gradient, &[place], &[])?;
        self.hand_on(id, node, &[place])
    }

    /// Takes the next node as one that computes `part` of operator `id` from `gradient`; returns its first output.
    fn derive(&mut self, id: u32, part: Part, gradient: Look, inputs: &[usize], trained: &[usize]) -> Result<TensorId> {
        let node = self.next(Phase::Backward, Some(id))?;
        let expected = (inputs.len() + trained.len()).max(usize::from(part == Part::LogProbabilities));
        let of_weights = |&&output: &&TensorId| self.graph.tensor(output).role == Role::ParameterGradient;
        let fits = node.outputs.len() == expected && node.outputs.iter().filter(of_weights).count() == trained.len();
        let Some(&first) = node.outputs.first().filter(|_| fits) else {
            return Err(self.other_graph(format!("{} has {} outputs, not {expected}", node.name, node.outputs.len())));
        };
        let place = |place: usize| node.outputs[place];
        let of_inputs = inputs.iter().enumerate().map(|(output, &input)| (input, place(output))).collect();
        let of_weights = trained.iter().enumerate().map(|(output, &weight)| (weight, place(inputs.len() + output)));
        let derivative = Derivative {
            operator: id,
            part,
            gradient,
            inputs: of_inputs,
            weights: of_weights.collect(),
            result: first,
        };
        self.steps.push(Step::Backward(derivative));
        Ok(first)
    }

    /// Gives the gradients that the last node computed to the inputs at the indices `places`.
    fn hand_on(&mut self, id: u32, node: &OperatorNode, places: &[usize]) -> Result {
        let Some(made) = self.graph.nodes.get(self.steps.len() - 1) else { return Ok(()) };
        for (&place, &output) in places.iter().zip(&made.outputs) {
            self.give(id, node.inputs[place], Look::whole(output))?;
        }
        Ok(())
    }

    /// Adds `gradient` to those of other readers of `value`, if `value` needs a gradient.
    fn give(&mut self, id: u32, value: ValueId, gradient: Look) -> Result {
        if !self.wants(value) {
            return Ok(());
        }
        let mut total = gradient;
        if let Some(earlier) = self.gradients[value as usize].take() {
            let sum = self.only_output(self.next(Phase::Backward, Some(id))?)?;
            self.steps.push(Step::Accumulate { parts: [earlier, total], sum });
            total = Look::whole(sum);
        }
        self.gradients[value as usize] = Some(total);
        Ok(())
    }

    fn wants(&self, value: ValueId) -> bool {
        self.network.value(value).requires_grad
    }

    /// The indices of the operator's trained weights among its weights.
    fn trained(&self, node: &OperatorNode) -> Vec<usize> {
        let trains = |&place: &usize| self.network.parameter(node.parameters[place]).trainable;
        (0..node.parameters.len()).filter(trains).collect()
    }

    fn update(&mut self) -> Result {
        for node in &self.graph.nodes[self.steps.len()..] {
            let (Phase::Update, [weight, gradient, states @ ..]) = (node.phase, &node.inputs[..]) else {
                return Err(self.other_graph(format!("{} is not an update of a weight", node.name)));
            };
            self.steps.push(Step::Update { weight: *weight, gradient: *gradient, states: states.to_vec() });
        }
        Ok(())
    }
}

// Views: in which order a value's elements are stored, and in which order its gradient is read.

/// The layout of every value that is not stored row by row over the whole of its storage.
pub(super) fn looks(network: &Network) -> Result<Vec<Option<Layout>>> {
    let layouts = network.layouts().map_err(|error| ProgramError::Refused(error.to_string()))?;
    let looks = network.values.iter().zip(layouts).map(|(value, layout)| {
        let storage = network.storage(value.storage).bytes.times(1, FP32);
        let whole = layout.offset == 0 && layout.is_row_major() && value.shape.elements() == storage;
        (!whole && network.storage(value.storage).element != haversack_workloads::training_graph::Element::Whole)
            .then_some(layout)
    });
    Ok(looks.collect())
}

/// The order in which the gradient of a view's output is read as that of its input; `None` if it is the same.
///
/// # Errors
/// A view whose gradient cannot be read from that of its output.
pub(super) fn back(network: &Network, node: &OperatorNode) -> Result<Option<Layout>> {
    let (input, output) = (network.shape(node.inputs[0]), network.shape(node.output));
    let order = match &node.op {
        Op::View(View::Reshape) | Op::Copy(Copying::Plain) => return Ok(None),
        Op::View(View::Permute(order)) => order,
        _ => return Err(refused(node, "its gradient is not a look at that of what it makes")),
    };
    let layout = Layout::row_major(output).ok_or_else(|| refused(node, "its batch is not outermost"))?;
    let inverse: Vec<usize> = (0..input.rank()).filter_map(|axis| order.iter().position(|&to| to == axis)).collect();
    Ok(Some(layout.permuted(&inverse)))
}

/// The part of the gradient of a concatenation that belongs to the input that begins at position `first` of `axis`.
pub(super) fn part(network: &Network, node: &OperatorNode, input: usize, axis: usize, first: u64) -> Option<Layout> {
    let whole = Layout::row_major(network.shape(node.output))?;
    let part = haversack_workloads::operator::Part::whole(whole.shape.rank()).from(axis, first, 1);
    Some(whole.part(&part, network.shape(node.inputs[input])))
}
