//! What a rewrite decides before its first node: what becomes of each operator, and how each tensor is held.

use super::algorithm::{Algorithm, BiasFormat, Layers, StateFormat, Treatment, WeightFormat};
use crate::error::WorkloadError;
use crate::network::{FP32, INT64, Network, OperatorNode};
use crate::operator::Op;
use crate::shape::Extent;
use crate::training_graph::{Element, Need, Node, Phase, Role, TrainingGraph};

/// The numbers in which a tensor of the eager graph is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// Those of the node that writes it.
    Writer,
    /// Integers.
    Integer,
    /// fp32.
    Float,
    /// One form for every reader: ids, masks, positions, statistics.
    Any,
}

/// How a tensor of the eager graph is held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub(super) home: Home,
    /// Its bytes as integers, or in its one form.
    pub(super) integer: Extent,
}

/// What a rewrite decides before its first node.
pub(super) struct RewritePlan {
    /// What becomes of each operator of the network; `None` for a view.
    pub(super) treatments: Vec<Option<Treatment>>,
    /// Whether the products of each operator of the network have sixteen-bit weights.
    pub(super) wide: Vec<bool>,
    /// How each tensor of the eager graph is held.
    pub(super) forms: Vec<Form>,
    /// How many nodes that remain read each tensor of the eager graph.
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
            // A gradient's node of an operator that vanishes goes with it; its forward hands its input on to others.
            if plan.treatment(node) != Some(Treatment::Absent) || node.phase == Phase::Forward {
                for &input in &node.inputs {
                    plan.readers[input as usize] += 1;
                }
            }
        }
        Ok(plan)
    }

    /// What becomes of a node of the eager graph before its update.
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
    for (node, &wide) in network.nodes.iter().zip(wide) {
        if !matches!(node.op, Op::Convolution { .. } | Op::Linear) {
            continue;
        }
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
        // A bias's gradient is the sum that a 32-bit bias takes as it is; that of a weight is rescaled to eight bits.
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
