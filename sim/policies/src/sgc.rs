//! `sgc`: static gradient checkpointing (Chen et al., 2016; Sage, section 4.3.1).
//!
//! Of the n articulation points of the forward graph, the tensors through which all of it passes, every
//! √n-th is kept; everything else that backward needs is computed again from the one before, a segment
//! at a time, when backward reaches it.

use haversack_workloads::{Phase, Role, TensorId, TrainingGraph};

use crate::{Holding, MemoryView, Policy, PolicyError, Schedule, Setting};

/// Static gradient checkpointing.
#[derive(Clone, Debug, Default)]
pub struct StaticCheckpointing {
    kept: Vec<bool>,
}

impl Policy for StaticCheckpointing {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let points = articulation_points(setting.graph);
        let step = (points.len() as f64).sqrt().round().max(1.0) as usize;
        // Tensors that are not saved are freed without a decision of the policy.
        self.kept = vec![false; setting.graph.tensors.len()];
        for &point in points.iter().step_by(step) {
            self.kept[point as usize] = true;
        }
        Ok(Schedule::plain(setting.batch))
    }

    fn hold(&mut self, tensor: TensorId, _memory: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        Ok(if self.kept[tensor as usize] { Holding::Keep } else { Holding::Rematerialise })
    }
}

/// The tensors that separate later computations of forward from earlier ones: all dependencies pass through them.
fn articulation_points(graph: &TrainingGraph) -> Vec<TensorId> {
    let forward = || graph.nodes.iter().filter(|node| node.phase == Phase::Forward);
    let mut last_use = vec![None; graph.tensors.len()];
    for (position, node) in forward().enumerate() {
        for &input in &node.inputs {
            last_use[input as usize] = Some(position);
        }
    }
    let mut live: Vec<TensorId> = Vec::new();
    let mut points = Vec::new();
    for (position, node) in forward().enumerate() {
        live.extend(node.outputs.iter().filter(|&&output| graph.tensor(output).role == Role::Activation));
        live.sort_unstable();
        live.dedup();
        live.retain(|&tensor| last_use[tensor as usize].is_some_and(|last| last > position));
        if let [only] = live[..]
            && points.last() != Some(&only)
        {
            points.push(only);
        }
    }
    points
}
