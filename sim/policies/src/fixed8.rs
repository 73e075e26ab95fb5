//! `fixed8`: weights and activations of eight bits throughout, used in computations without dequantising (DAF, section
//! 4.1).
//!
//! Modules pass eight-bit tensors on; tensors that functional code saves (products of attention, softmax) stay in fp32,
//! out of the modules' reach, as do gradients and statistics. Nothing is packed or unpacked: kernels load eight-bit
//! values and multiply them at the rate of fp32, since none of the modelled training engines has integer kernels for
//! backward, and backward multiplies with gradients of fp32.

use haversack_workloads::{Element, Need, Phase, Role, TrainingGraph};

use crate::{Policy, PolicyError, Schedule, Setting};

/// Eight-bit training.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fixed8;

impl Policy for Fixed8 {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let graph = in_eight_bits(setting.graph);
        Ok(Schedule { graph: Some(graph), ..Schedule::plain(setting.batch) })
    }
}

/// The same iteration with a quarter of the bytes for every fp32 weight and activation stored by modules.
fn in_eight_bits(graph: &TrainingGraph) -> TrainingGraph {
    let mut whole = vec![false; graph.tensors.len()];
    for saved in graph.nodes.iter().flat_map(|node| &node.saved) {
        let out_of_reach = !saved.by_module || matches!(saved.need, Need::Statistics | Need::Mask);
        whole[saved.tensor as usize] |= out_of_reach;
    }
    let mut graph = graph.clone();
    for (tensor, whole) in graph.tensors.iter_mut().zip(whole) {
        let shrinks = matches!(tensor.role, Role::Activation | Role::Parameter { .. });
        if shrinks && !whole && tensor.element != Element::Whole {
            tensor.bytes = tensor.bytes.times(1, 4);
        }
    }
    for node in graph.nodes.iter_mut().filter(|node| node.phase != Phase::Update) {
        let bytes = |tensor: &u32| graph.tensors[*tensor as usize].bytes;
        node.work.dram = node.inputs.iter().chain(&node.outputs).map(bytes).sum();
    }
    graph
}
