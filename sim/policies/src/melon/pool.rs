//! Melon's memory pool (section 4.2 of its paper, and the allocator that its authors published): every tensor has its
//! place from the beginning, those that live longest first, each at the lowest address that is free all its life.
//!
//! Such a placement has gaps. The planner's budget has to leave room for the pool's size beyond the live tensors, and
//! for the working memory of an operator while it runs.

use haversack_devices::Bytes;
use haversack_workloads::{Extent, NodeId, TensorId, TrainingGraph, Uses};

use crate::{ComputingBudget, Setting};

/// Tensors that are placed one by one; smaller ones than these lie in gaps.
const PLACED: usize = 4096;

/// A tensor while it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// The operator that makes it.
    pub from: NodeId,
    /// The last that uses it.
    pub to: NodeId,
    /// Its size.
    pub bytes: Bytes,
}

/// The size of a placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packing {
    /// The highest address in use.
    pub pool: Bytes,
    /// The peak of live bytes.
    pub live: Bytes,
}

/// The memory that the planner may leave in use after an operator: the device's, less an operator's outputs and
/// workspace while it runs, scaled by the share of a pool with gaps that live tensors fill.
pub(super) fn computing_budget(setting: &Setting<'_>) -> ComputingBudget {
    let Packing { pool, live } = pack(lives(setting.graph, setting.batch));
    let working = Extent::fixed(setting.workspace.0) + largest(setting.graph, setting.batch);
    ComputingBudget::Pool { working, pool, live }
}

/// The outputs of the operator with the largest outputs.
fn largest(graph: &TrainingGraph, batch: u64) -> Extent {
    let made = graph.nodes.iter().map(|node| {
        // Outputs written in place need no new memory.
        let new = node.outputs.iter().filter(|output| !node.inputs.contains(output));
        new.map(|&output| graph.tensor(output)).filter(|tensor| !tensor.role.is_state()).map(|tensor| tensor.bytes)
    });
    let sums = made.map(|outputs| outputs.fold(Extent::ZERO, |sum, bytes| sum + bytes));
    sums.max_by_key(|sum| sum.at(batch)).unwrap_or(Extent::ZERO)
}

/// The lives of all operator outputs, if nothing is given up.
pub fn lives(graph: &TrainingGraph, batch: u64) -> Vec<Life> {
    let uses = Uses::new(graph);
    let life = |tensor: TensorId| {
        let from = *uses.writers(tensor).first()?;
        let to = uses.of(tensor).last().copied().unwrap_or(from);
        Some(Life { from, to, bytes: Bytes(graph.tensor(tensor).bytes.at(batch)) })
    };
    let made = (0..).zip(&graph.tensors).filter(|(_, tensor)| !tensor.role.is_state());
    made.filter_map(|(id, _)| life(id)).filter(|life| life.bytes > Bytes::ZERO).collect()
}

/// Places tensors: the longest life first, of equals the largest, then the earliest.
pub fn pack(mut lives: Vec<Life>) -> Packing {
    if lives.len() > PLACED {
        lives.sort_by_key(|life| std::cmp::Reverse(life.bytes));
        lives.truncate(PLACED);
    }
    let live = most_alive(&lives);
    lives.sort_by_key(|life| (std::cmp::Reverse((life.to - life.from, life.bytes)), life.from));
    let mut placed: Vec<(Life, u64)> = Vec::with_capacity(lives.len());
    let mut pool = 0;
    let mut taken: Vec<(u64, u64)> = Vec::new();
    for life in lives {
        taken.clear();
        let beside = placed.iter().filter(|(other, _)| other.from <= life.to && life.from <= other.to);
        taken.extend(beside.map(|&(other, at)| (at, at + other.bytes.0)));
        taken.sort_unstable();
        let mut at = 0;
        for &(from, to) in &taken {
            if from >= at + life.bytes.0 {
                break;
            }
            at = at.max(to);
        }
        pool = pool.max(at + life.bytes.0);
        placed.push((life, at));
    }
    Packing { pool: Bytes(pool), live }
}

/// The peak of live bytes.
fn most_alive(lives: &[Life]) -> Bytes {
    let mut changes: Vec<(u64, bool, u64)> = Vec::with_capacity(2 * lives.len());
    for life in lives {
        changes.push((u64::from(life.from), true, life.bytes.0));
        // It lives until its last operator has ended.
        changes.push((u64::from(life.to) + 1, false, life.bytes.0));
    }
    // At equal times, ends come before beginnings.
    changes.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, begins, bytes) in changes {
        now = if begins { now + bytes } else { now - bytes };
        most = most.max(now);
    }
    Bytes(most)
}
