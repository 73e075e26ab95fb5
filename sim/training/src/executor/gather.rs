//! Bringing the inputs of a node into memory; dropped ones are computed again.

use haversack_devices::Nanos;
use haversack_workloads::{NodeId, TensorId};

use super::Executor;
use crate::error::{Result, RunError, Stop};
use crate::tensors::Tensors;
use crate::timeline::SpanKind;

/// Operators computed again, in multiples of the graph, at which a run counts as thrashing.
const THRASHING: u64 = 40;

/// Nodes whose inputs are being gathered: the schedule's, and above it those that have to be computed again first.
///
/// Chains of dropped tensors are as long as the network, hence no recursion. The inputs of every node on the stack are
/// locked as they are found (the set D of Sage's algorithm 1), see [`GatherStack::release_waiting`].
#[derive(Default)]
pub(super) struct GatherStack {
    frames: Vec<Frame>,
    /// Inputs that are in memory and locked: the lowest node's first.
    locked: Vec<TensorId>,
}

/// A node whose inputs are being brought into memory.
struct Frame {
    node: NodeId,
    /// The tensor that it is run again for; `None` for the schedule's own node.
    target: Option<TensorId>,
    /// Where its inputs begin among those that are locked.
    first_locked: usize,
    /// When it was put on the stack.
    since: Nanos,
}

impl GatherStack {
    /// Empties the stack: nothing is being gathered.
    pub(super) fn clear(&mut self) {
        self.frames.clear();
        self.locked.clear();
    }

    fn push(&mut self, node: NodeId, target: Option<TensorId>, since: Nanos) {
        self.frames.push(Frame { node, target, first_locked: self.locked.len(), since });
    }

    /// Locks an input that is in memory for the node on top.
    fn lock(&mut self, input: TensorId, tensors: &mut Tensors<'_>) {
        tensors.lock(input);
        self.locked.push(input);
    }

    /// Where the inputs of the node on top begin among those that are locked.
    fn first_of_top(&self) -> usize {
        self.frames.last().map_or(0, |frame| frame.first_locked)
    }

    /// Whether `input` is locked for the node on top.
    fn holds(&self, input: TensorId) -> bool {
        self.locked[self.first_of_top()..].contains(&input)
    }

    /// Unlocks the inputs that the node on top has gathered.
    pub(super) fn release_top(&mut self, tensors: &mut Tensors<'_>) {
        for input in self.locked.drain(self.first_of_top()..) {
            tensors.unlock(input);
        }
    }

    /// Unlocks the inputs that waiting nodes on the stack have gathered so far; they gather them again. Returns whether
    /// there were any. Used when nothing else is left to drop, a case that algorithm 1 leaves open.
    pub(super) fn release_waiting(&mut self, tensors: &mut Tensors<'_>) -> bool {
        let waiting = self.first_of_top();
        for tensor in self.locked.drain(..waiting) {
            tensors.unlock(tensor);
        }
        self.frames.iter_mut().for_each(|frame| frame.first_locked = 0);
        waiting > 0
    }
}

impl Executor<'_> {
    /// Brings the inputs of the schedule's node into memory, locked.
    pub(super) fn gather(&mut self, id: NodeId) -> Result<(), Stop> {
        self.stack.clear();
        self.stack.push(id, None, self.clock.now());
        while let Some((node, target)) = self.stack.frames.last().map(|frame| (frame.node, frame.target)) {
            if let Some(input) = self.lock_inputs(node)? {
                let first = self.first_writer(input, node, id)?;
                self.stack.push(first, Some(input), self.clock.now());
                continue;
            }
            let Some(target) = target else { break };
            self.recompute(node, target, id)?;
            let Some(done) = self.stack.frames.pop() else { break };
            // Measured as in an engine that evaluates on demand: including everything that had to be computed again for
            // it.
            self.tensors.set_cost(target, self.clock.now() - done.since);
            // A tensor that is written in place is made by all its writers up to the schedule's position.
            let mut writers = self.tensors.uses.writers(target).iter();
            if let Some(&next) = writers.find(|&&writer| writer > node && writer < id) {
                self.stack.push(next, Some(target), done.since);
            }
        }
        Ok(())
    }

    /// Locks the inputs of the node on top of the stack; inputs that are not stored whole are restored once all others
    /// are in memory. Returns the first input that is missing, if any.
    fn lock_inputs(&mut self, node: NodeId) -> Result<Option<TensorId>, Stop> {
        let mut stored = Vec::new();
        for &input in &self.tensors.graph.nodes[node as usize].inputs {
            if self.stack.holds(input) {
                continue;
            }
            if self.tensors.storage(input).is_some() && self.costs.serves(node, input, &self.tensors) {
                stored.push(input);
            } else if self.tensors.is_whole(input) {
                self.stack.lock(input, &mut self.tensors);
            } else {
                return Ok(Some(input));
            }
        }
        for input in stored {
            if self.costs.reads_values(node, input, &self.tensors) {
                self.restore(input, node)?;
                self.stack.lock(input, &mut self.tensors);
            }
        }
        Ok(None)
    }

    /// The first node to run again for a `tensor` that `reader` wants, when the schedule is at `at`.
    fn first_writer(&self, tensor: TensorId, reader: NodeId, at: NodeId) -> Result<NodeId> {
        let uses = &self.tensors.uses;
        let first = uses.writers(tensor).first().copied().filter(|&writer| writer < at);
        first.filter(|_| uses.is_rematerialisable(tensor)).ok_or_else(|| {
            let tensor = self.tensors.graph.tensor(tensor).name.clone();
            RunError::Unwritten { node: self.name_of(reader), tensor }
        })
    }

    /// Runs `node` again, whose inputs are in memory and locked, to make `target`.
    fn recompute(&mut self, id: NodeId, target: TensorId, wanted_by: NodeId) -> Result<(), Stop> {
        self.make_room(id)?;
        self.record.recomputed += 1;
        self.check_thrashing(wanted_by)?;
        self.run_node(id, SpanKind::Recomputed)?;
        let node = &self.tensors.graph.nodes[id as usize];
        self.stack.release_top(&mut self.tensors);
        for &output in &node.outputs {
            self.tensors.unlock(output);
        }
        for &used in node.inputs.iter().chain(&node.outputs) {
            self.tensors.note_use(used, self.clock.now());
            // Inputs needed only for this computation are not kept; its target is.
            if used != target && !self.tensors.is_locked(used) {
                if self.tensors.is_dead(used) {
                    self.tensors.evict(used, false);
                } else if self.tensors.storage(used).is_some() {
                    self.tensors.drop_whole(used);
                }
            }
        }
        self.tensors.lock(target);
        let respected = self.respect_plan(wanted_by);
        self.tensors.unlock(target);
        respected
    }

    fn check_thrashing(&self, node: NodeId) -> Result {
        let (recomputed, nodes) = (self.record.recomputed, self.tensors.graph.nodes.len());
        let parts = self.record.micro_batches.len() as u64 + 1;
        if recomputed > THRASHING * nodes as u64 * parts {
            return Err(RunError::Thrashing { node: self.name_of(node), recomputed, nodes });
        }
        Ok(())
    }
}
