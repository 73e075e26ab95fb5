//! Carrying data: inputs come in, nodes are computed, and the learned state goes out.

use haversack_numerics::{Pass, Statistics};
use haversack_workloads::{NodeId, Phase, TensorId};

use super::Executor;
use crate::error::Stop;
use crate::lesson::{Learning, Lesson};

impl Executor<'_> {
    /// Fills a micro-batch's samples and labels.
    pub(super) fn fill(&mut self, tensor: TensorId) {
        let (role, samples) = (self.tensors.graph.tensor(tensor).role, self.tensors.samples);
        if let Some(learning) = &mut self.learning {
            learning.take(self.done, samples);
        }
        if let (Some(learning), Some(values)) = (&self.learning, self.tensors.values()) {
            let contents = learning.given(role, &values.meter);
            values.set(tensor, contents);
        }
    }

    /// Computes a node whose inputs and outputs are in memory; `again` if it was computed for the micro-batch before.
    pub(super) fn compute(&mut self, id: NodeId, again: bool) -> Result<(), Stop> {
        let given = self.has_statistics(id).then(|| self.statistics_of(id).collect::<Vec<_>>());
        let Some(learning) = &mut self.learning else { return Ok(()) };
        let node = &self.tensors.graph.nodes[id as usize];
        learning.take(self.done, self.tensors.samples);
        if let (Some(given), Some(values)) = (&given, self.tensors.values()) {
            values.give_statistics(given);
        }
        let statistics = if given.is_some() { Statistics::Given } else { Statistics::Own };
        let Some(mut carried) = self.tensors.carried() else { return Ok(()) };
        let loss = learning.program.run(node, &mut carried, &Pass { statistics, ..learning.pass }, again)?;
        if let Some(importance) = &mut learning.importance {
            importance.measure(node, &carried)?;
        }
        let Some(loss) = loss else { return Ok(()) };
        learning.note(loss);
        let graph = self.tensors.graph;
        let values = self.tensors.values();
        learning.check(loss, || {
            let forward = graph.nodes.iter().filter(|node| node.phase == Phase::Forward);
            let mut written = forward.filter_map(|node| node.outputs.first().map(|&output| (node, output)));
            let bad = values.and_then(|values| written.find(|&(_, output)| !values.is_finite(output)));
            bad.map_or_else(|| node.name.clone(), |(node, _)| node.name.clone())
        })?;
        Ok(())
    }

    /// Saves the training state to flash on a phone in use, where the process may be killed.
    pub(super) fn keep_state(&mut self) {
        if self.phone.is_none() {
            return;
        }
        let state = self.tensors.values().map(|values| values.state());
        if let (Some(learning), Some(state)) = (&mut self.learning, state) {
            learning.keep(state);
        }
    }

    /// A new process has read the saved state, and has seen nothing of the mini-batch.
    pub(super) fn recall_state(&mut self) {
        let kept = self.learning.as_mut().map(Learning::begin_again).unwrap_or_default();
        if let Some(values) = self.tensors.values() {
            kept.into_iter().for_each(|(tensor, contents)| values.set(tensor, contents));
        }
    }

    /// Loads the training state into memory with its tensors.
    pub(crate) fn learn_from(&mut self, lesson: &mut Lesson<'_>) {
        if let Some(values) = self.tensors.values() {
            for (tensor, contents) in lesson.state.tensors_mut().drain(..) {
                values.set(tensor, contents);
            }
            if lesson.factors.len() == values.factors().len() {
                values.factors().clone_from(&lesson.factors);
            }
        }
    }

    /// Passes the policy the scale factors that the previous iteration ended with.
    pub(super) fn tell_factors(&mut self) {
        if let Some(told) = self.job.factors.get(self.iterations - 1) {
            self.plan.factors.clone_from(told);
        } else if self.learning.as_ref().is_some_and(|learning| learning.program.is_in_integers())
            && let Some(values) = self.tensors.values()
        {
            self.plan.factors.clone_from(values.factors());
        }
    }

    /// Products keep the scale factors that the policy keeps.
    pub(super) fn keep_factors(&mut self) {
        let plan = &self.plan;
        if let Some(values) = self.tensors.values() {
            values.keep_factors(|tensor| !plan.rescales(tensor));
        }
    }

    /// The reverse: moves the state back, with the importance that was measured and what the policy has learned.
    pub(crate) fn learned(&mut self, lesson: &mut Lesson<'_>) {
        if let Some(importance) = self.learning.as_ref().and_then(|learning| learning.importance.as_ref()) {
            lesson.importance = importance.averages().collect();
        }
        lesson.learned = self.policy.learned();
        let graph = self.tensors.graph;
        if let Some(values) = self.tensors.values() {
            lesson.factors = std::mem::take(values.factors());
            let states = (0..).zip(&graph.tensors).filter(|(_, tensor)| tensor.role.is_state());
            let held = states.filter_map(|(id, _)| values.take(id).map(|held| (id, held)));
            *lesson.state.tensors_mut() = held.collect();
        }
    }
}
