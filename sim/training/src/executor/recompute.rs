//! Computing dropped tensors again.

use haversack_devices::units::Nanos;
use haversack_workloads::{NodeId, TensorId};

use super::{Executor, Stop};
use crate::job::RunError;
use crate::timeline::SpanKind;

/// Operators computed again, in multiples of the graph, at which a run counts as thrashing.
const THRASHING: u64 = 40;

impl Executor<'_> {
    /// Brings the inputs of the schedule's node into memory, locked; what was dropped is computed again.
    ///
    /// Works on an explicit stack: chains of dropped tensors are as long as the network. The inputs of every node on
    /// the stack are locked as they are found (the set D of Sage's algorithm 1), see [`Self::release_waiting`].
    pub(super) fn gather(&mut self, id: NodeId) -> Result<(), Stop> {
        let graph = self.graph;
        self.frames.clear();
        self.frames.push(Frame::scheduled(id, self.now));
        let mut packed = Vec::new();
        while let Some(frame) = self.frames.last_mut() {
            let node = frame.node;
            let mut missing = None;
            for &input in &graph.nodes[node as usize].inputs {
                if frame.locked.contains(&input) {
                    continue;
                }
                if self.store.is_packed(input) {
                    packed.push(input);
                    continue;
                }
                if !self.store.is_resident(input) {
                    missing = Some(input);
                    break;
                }
                self.store.lock(input);
                frame.locked.push(input);
            }
            if let Some(input) = missing {
                packed.clear();
                let remaking = self.remake(input, node, id)?;
                self.frames.push(remaking);
                continue;
            }
            for input in packed.drain(..) {
                if self.reads_unpacked(node, input) {
                    self.bring_back(input, node)?;
                    self.store.lock(input);
                    if let Some(frame) = self.frames.last_mut() {
                        frame.locked.push(input);
                    }
                }
            }
            let Some(frame) = self.frames.last() else { break };
            let (writer, Some(target)) = (frame.node, frame.target) else { break };
            self.recompute(writer, target, id)?;
            let Some(done) = self.frames.pop() else { break };
            // Measured as an engine that evaluates on demand measures it: with all that had to be computed again for it.
            self.store.set_cost(target, self.now - done.since);
            if let Some(next) = done.next_writer(&self.store.uses.writers[target as usize], id) {
                self.frames.push(next);
            }
        }
        Ok(())
    }

    /// Unlocks what nodes that wait for others on the stack have gathered so far; they gather it again. Returns whether
    /// there was anything. Used when nothing else is left to drop, which algorithm 1 leaves open.
    pub(super) fn release_waiting(&mut self) -> bool {
        let waiting = self.frames.len().saturating_sub(1);
        let mut released = false;
        for frame in &mut self.frames[..waiting] {
            for tensor in frame.locked.drain(..) {
                self.store.unlock(tensor);
                released = true;
            }
        }
        released
    }

    /// The first step towards computing `tensor` again for `reader`, while the schedule stands at `now_at`.
    pub(super) fn remake(&self, tensor: TensorId, reader: NodeId, now_at: NodeId) -> Result<Frame, RunError> {
        let first = self.store.uses.writers[tensor as usize].first().copied().filter(|&writer| writer < now_at);
        match first {
            Some(node) if self.store.is_rematerialisable(tensor) => Ok(Frame::remaking(tensor, node, self.now)),
            _ => Err(self.unwritten(reader, tensor)),
        }
    }

    /// Runs `node` again, whose inputs are in memory and locked, to make `target`.
    pub(super) fn recompute(&mut self, node: NodeId, target: TensorId, wanted_by: NodeId) -> Result<(), Stop> {
        let graph = self.graph;
        self.make_room(node)?;
        self.record.recomputed += 1;
        self.check_thrashing(wanted_by)?;
        self.occupy(node, SpanKind::Recomputed)?;
        let node = &graph.nodes[node as usize];
        if let Some(frame) = self.frames.last_mut() {
            for input in frame.locked.drain(..) {
                self.store.unlock(input);
            }
        }
        for &output in &node.outputs {
            self.store.unlock(output);
        }
        for &used in node.inputs.iter().chain(&node.outputs) {
            self.store.note_use(used, self.now);
            // What only this computation needed is not kept; what it was for is.
            if used != target && !self.store.is_locked(used) {
                if self.store.is_dead(used) {
                    self.store.evict(used, false);
                } else if self.store.is_packed(used) {
                    self.store.evict_whole(used, false);
                }
            }
        }
        self.store.lock(target);
        let trimmed = self.trim(wanted_by);
        self.store.unlock(target);
        trimmed
    }

    pub(super) fn unwritten(&self, node: NodeId, tensor: TensorId) -> RunError {
        let name = |id: NodeId| self.graph.nodes[id as usize].name.clone();
        RunError::Unwritten { node: name(node), tensor: self.graph.tensor(tensor).name.clone() }
    }

    pub(super) fn check_thrashing(&self, node: NodeId) -> Result<(), RunError> {
        let nodes = self.graph.nodes.len();
        let parts = self.record.micro_batches.len() as u64 + 1;
        if self.record.recomputed > THRASHING * nodes as u64 * parts {
            let node = self.graph.nodes[node as usize].name.clone();
            return Err(RunError::Thrashing { node, recomputed: self.record.recomputed, nodes });
        }
        Ok(())
    }
}

/// A node whose inputs are being brought into memory.
pub(super) struct Frame {
    pub(super) node: NodeId,
    /// What it is run again for; nothing for the schedule's own node.
    target: Option<TensorId>,
    /// Inputs that are there and locked.
    pub(super) locked: Vec<TensorId>,
    /// When it was put on the stack.
    since: Nanos,
}

impl Frame {
    const fn scheduled(node: NodeId, since: Nanos) -> Self {
        Self { node, target: None, locked: Vec::new(), since }
    }

    const fn remaking(target: TensorId, node: NodeId, since: Nanos) -> Self {
        Self { node, target: Some(target), locked: Vec::new(), since }
    }

    /// A tensor that is written in place is made by all its writers up to where the schedule stands.
    fn next_writer(&self, writers: &[NodeId], now_at: NodeId) -> Option<Self> {
        let next = writers.iter().copied().find(|&writer| writer > self.node && writer < now_at)?;
        Some(Self { node: next, target: self.target, locked: Vec::new(), since: self.since })
    }
}
