//! Statistics of the whole mini-batch, where it is trained in parts (Sage, section 5).
//!
//! Before an iteration all samples go forward once, up to the last batch normalisation. Only each normalisation's mean
//! and deviation are kept; the parts are then normalised by them. In backward each part counts separately: the two sums
//! of gradients in its normalisations are over its own samples.

use haversack_devices::{Bytes, OperatorKind};
use haversack_memory::Allocation;
use haversack_policies::BatchStatistics;
use haversack_workloads::{Element, Node, NodeId, Phase, Role, TensorId, TrainingGraph};

use super::Executor;
use crate::error::{RunError, Stop};
use crate::timeline::SpanKind;

/// The statistics that an iteration normalises by.
pub(crate) struct Statistics {
    pub(super) of: BatchStatistics,
    /// Batch normalisations, in order; of those that are composed of several nodes, the ones that average over samples.
    normalisations: Vec<NodeId>,
    /// Where their statistics lie from the beginning of an iteration to its end.
    block: Option<Allocation>,
}

impl Statistics {
    /// The statistics of the batch normalisations of `graph`: of the forward nodes that update a running mean and a
    /// running variance, or, if the graph is composed of smaller operations, of those that reduce samples to a size
    /// independent of their number. The last of these is the loss and is excluded.
    pub(crate) fn new(of: BatchStatistics, graph: &TrainingGraph) -> Self {
        let is_average = |&id: &TensorId| {
            let tensor = graph.tensor(id);
            tensor.role == Role::Buffer && tensor.element != Element::Whole
        };
        let moves = |node: &Node| node.inputs.iter().filter(|&id| is_average(id)).count() == 2;
        let grows = |&id: &TensorId| graph.tensor(id).bytes.per_sample > 0;
        let reduces = |node: &Node| {
            let is_composed = node.step.is_none() && node.work.kind == OperatorKind::Reduction;
            is_composed && node.inputs.iter().any(grows) && !node.outputs.iter().any(grows)
        };
        let forward = || (0..).zip(&graph.nodes).filter(|(_, node)| node.phase == Phase::Forward);
        let loss = forward().last().map(|(id, _)| id);
        let all = forward().filter(|(id, node)| moves(node) || (Some(*id) != loss && reduces(node)));
        Self { of, normalisations: all.map(|(id, _)| id).collect(), block: None }
    }

    /// Whether anything is normalised by statistics of samples.
    pub(crate) const fn are_taken(&self) -> bool {
        !self.normalisations.is_empty()
    }

    fn are_of(&self, node: NodeId) -> bool {
        self.normalisations.binary_search(&node).is_ok()
    }
}

impl Executor<'_> {
    /// Takes the statistics of the whole mini-batch, if it is normalised by them.
    pub(super) fn take_statistics(&mut self) -> Result<(), Stop> {
        let is_whole = self.statistics.of == BatchStatistics::Whole;
        let Some(&last) = self.statistics.normalisations.last().filter(|_| is_whole) else { return Ok(()) };
        self.give_statistics_back();
        self.in_phase(Phase::Forward, Self::admit_all_samples)?;
        for id in 0..=last {
            self.in_phase(Phase::Forward, |run| run.look_at(id))?;
        }
        self.finish_lanes()?;
        self.end_part();
        let bytes = self.statistics.normalisations.iter().flat_map(|&id| self.statistics_of(id));
        let bytes = bytes.map(|tensor| self.tensors.size(tensor)).fold(Bytes::ZERO, |sum, bytes| sum + bytes);
        self.statistics.block = self.tensors.borrow(bytes);
        self.note_memory(last);
        Ok(())
    }

    /// Frees the statistics, which are no longer needed.
    pub(super) fn give_statistics_back(&mut self) {
        if let Some(block) = self.statistics.block.take() {
            self.tensors.give_back(block);
        }
    }

    /// Whether node `id` normalises by statistics that were taken before.
    pub(super) fn has_statistics(&self, id: NodeId) -> bool {
        self.statistics.block.is_some() && self.statistics.are_of(id)
    }

    /// The tensors with the statistics of a batch normalisation: those of its outputs that do not grow with samples.
    pub(super) fn statistics_of(&self, id: NodeId) -> impl Iterator<Item = TensorId> + use<> {
        let graph = self.tensors.graph;
        let is_fixed = |&output: &TensorId| {
            let tensor = graph.tensor(output);
            tensor.role == Role::Activation && tensor.bytes.per_sample == 0
        };
        let outputs = graph.nodes[id as usize].outputs.iter().copied();
        outputs.filter(is_fixed).collect::<Vec<_>>().into_iter()
    }

    /// Brings in the whole mini-batch.
    fn admit_all_samples(&mut self) -> Result<(), Stop> {
        self.set_samples(self.job.batch);
        self.tensors.rewind();
        for (id, tensor) in (0..).zip(&self.tensors.graph.tensors) {
            if matches!(tensor.role, Role::Input | Role::Target) {
                self.admit_to_look(id, NodeId::MAX)?;
                self.fill(id);
            }
        }
        Ok(())
    }

    /// Runs a forward node whose outputs are not kept.
    fn look_at(&mut self, id: NodeId) -> Result<(), Stop> {
        let node = &self.tensors.graph.nodes[id as usize];
        self.clock.come_to(id);
        self.tensors.at = id;
        for &output in &node.outputs {
            self.admit_to_look(output, id)?;
            self.tensors.lock(output);
        }
        self.run_node(id, SpanKind::Scheduled)?;
        if self.statistics.are_of(id) {
            let held: Vec<TensorId> = self.statistics_of(id).collect();
            if let Some(values) = self.tensors.values() {
                values.keep_statistics(&held);
            }
        }
        for &output in &node.outputs {
            self.tensors.unlock(output);
        }
        self.tensors.advance(id, self.clock.now());
        for tensor in node.uses() {
            let is_passing = self.tensors.graph.tensor(tensor).role == Role::Activation;
            if is_passing && self.tensors.uses.last_forward(tensor) == Some(id) {
                self.tensors.evict(tensor, false);
            }
        }
        Ok(())
    }

    /// Brings in a tensor when nothing can give way, since everything in memory is needed.
    fn admit_to_look(&mut self, tensor: TensorId, node: NodeId) -> Result<(), Stop> {
        if self.tensors.is_whole(tensor) {
            return Ok(());
        }
        if self.tensors.admit(tensor).is_err() {
            let budget = self.tensors.limits.memory.unwrap_or(Bytes::MAX);
            let needed = self.tensors.allocated() + self.tensors.size(tensor);
            let (node, shortfall) = (self.name_of(node), needed.saturating_sub(budget));
            let node = format!("{node}, for the statistics of the whole mini-batch");
            return Err(RunError::OutOfMemory { node, shortfall, budget }.into());
        }
        self.note_memory(node);
        Ok(())
    }
}
