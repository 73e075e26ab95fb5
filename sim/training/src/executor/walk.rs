//! The course of a micro-batch: node after node of forward and backward; then the update.

use haversack_devices::{Bytes, Cost, Nanos, ProcessorKind};
use haversack_workloads::{Node, NodeId, Phase, Role, TensorId, TrainingGraph};

use super::Executor;
use crate::error::{Result, Stop};
use crate::governors::LoadGovernor;
use crate::{SpanKind, StoredForms};

/// Whether a node applies a gradient to its weight within backward.
pub(crate) fn streams(graph: &TrainingGraph, node: &Node) -> bool {
    let is_weight = |&id: &TensorId| matches!(graph.tensor(id).role, Role::Parameter { .. });
    node.phase == Phase::Backward && node.outputs.iter().any(is_weight)
}

impl Executor<'_> {
    /// Forward and backward of one micro-batch; returns how many samples it ended with.
    pub(super) fn run_part(&mut self, samples: u64) -> Result<u64, Stop> {
        let mut samples = samples;
        loop {
            self.in_phase(Phase::Forward, |run| run.begin_part(samples))?;
            match self.walk() {
                Ok(()) => break,
                Err(Stop::Restart(fewer)) => {
                    self.finish_lanes()?;
                    if let Some(values) = self.tensors.values() {
                        values.undo_part();
                    }
                    // Gradients of the dropped samples are already summed in, so the part is lost.
                    self.clock.discard(1, 1);
                    self.end_part();
                    samples = fewer;
                }
                Err(stop) => return Err(stop),
            }
        }
        self.finish_lanes()?;
        self.end_part();
        if let Some(learning) = &mut self.learning {
            learning.end_part();
        }
        Ok(self.tensors.samples)
    }

    /// Brings in the samples.
    fn begin_part(&mut self, samples: u64) -> Result<(), Stop> {
        if self.tensors.samples != samples {
            self.set_samples(samples);
        }
        self.tensors.rewind();
        for (id, tensor) in (0..).zip(&self.tensors.graph.tensors) {
            if matches!(tensor.role, Role::Input | Role::Target) && !self.tensors.is_whole(id) {
                self.admit(id, NodeId::MAX)?;
                self.fill(id);
            }
        }
        let draw = self.learning.as_ref().map_or(0, |learning| learning.draw(self.done));
        let is_first = self.done == 0;
        if let Some(values) = self.tensors.values() {
            values.begin_part(is_first, draw);
        }
        self.tensors.note_baseline();
        Ok(())
    }

    pub(super) fn set_samples(&mut self, samples: u64) {
        self.costs.forget_nodes();
        self.tensors.set_samples(samples);
    }

    /// The lanes finish their current work, within the phase.
    pub(super) fn finish_lanes(&mut self) -> Result<(), Stop> {
        let phase = self.clock.phase();
        self.in_phase(phase, |run| Ok(run.lanes.finish(&mut run.clock, &mut run.tensors)?))
    }

    /// Everything that belongs to one micro-batch leaves memory.
    pub(super) fn end_part(&mut self) {
        self.clock.merge_part();
        self.stack.clear();
        self.tensors.release_all();
        let is_of_a_part = |role| matches!(role, Role::Activation | Role::Gradient | Role::Input | Role::Target);
        self.tensors.evict_all(is_of_a_part);
    }

    fn walk(&mut self) -> Result<(), Stop> {
        let graph = self.tensors.graph;
        for (id, node) in (0..).zip(&graph.nodes) {
            if node.phase == Phase::Update {
                break;
            }
            if node.phase == Phase::Backward && self.clock.phase() == Phase::Forward {
                self.note_arena();
                self.note_stored();
            }
            if self.is_given_up(id) {
                self.clock.enter(node.phase);
                self.pass_over(id);
            } else if streams(graph, node) && self.done + self.tensors.samples < self.job.batch {
                // Its gradient is not whole before the last part, and is summed until then.
                self.tensors.advance(id, self.clock.now());
            } else {
                self.in_phase(node.phase, |run| run.run_scheduled(id))?;
            }
        }
        Ok(())
    }

    pub(super) fn update(&mut self) -> Result<(), Stop> {
        for (id, node) in (0..).zip(&self.tensors.graph.nodes) {
            if node.phase == Phase::Update && !self.is_given_up(id) {
                self.in_phase(Phase::Update, |run| run.run_scheduled(id))?;
            }
        }
        self.clock.merge_part();
        self.tensors.evict_all(|role| role == Role::ParameterGradient);
        Ok(())
    }

    /// Runs the schedule's next node.
    fn run_scheduled(&mut self, id: NodeId) -> Result<(), Stop> {
        self.clock.come_to(id);
        self.tensors.at = id;
        self.gather(id)?;
        self.make_room(id)?;
        self.unpack_ahead(id)?;
        self.read_ahead(id)?;
        let workspace = self.tensors.borrow(self.costs.workspace(id, self.tensors.samples));
        if workspace.is_some() {
            self.note_memory(id);
        }
        let ran = self.run_node(id, SpanKind::Scheduled);
        if let Some(workspace) = workspace {
            self.tensors.give_back(workspace);
        }
        ran?;
        self.stack.release_top(&mut self.tensors);
        self.finish_uses(id)?;
        self.respect_wall(id)?;
        self.respect_plan(id)
    }

    /// After a node has used its tensors: those without further use leave memory, and the policy decides about those
    /// that only backward uses again.
    fn finish_uses(&mut self, id: NodeId) -> Result<(), Stop> {
        let node = &self.tensors.graph.nodes[id as usize];
        for &output in &node.outputs {
            self.tensors.unlock(output);
        }
        self.tensors.advance(id, self.clock.now());
        for tensor in node.uses() {
            if self.tensors.is_dead(tensor) {
                self.tensors.evict(tensor, false);
            } else if self.tensors.storage(tensor).is_some() {
                if !self.tensors.is_locked(tensor) {
                    self.tensors.drop_whole(tensor);
                }
            } else if node.phase == Phase::Forward {
                self.hold(tensor, id)?;
            }
        }
        Ok(())
    }

    /// A node that is not run uses its tensors no more.
    fn pass_over(&mut self, id: NodeId) {
        self.tensors.advance(id, self.clock.now());
        for tensor in self.tensors.graph.nodes[id as usize].uses() {
            if self.tensors.is_dead(tensor) {
                self.tensors.evict(tensor, false);
            }
        }
    }

    /// Whether all purposes of a node were given up.
    pub(super) fn is_given_up(&self, id: NodeId) -> bool {
        if self.tensors.given_up() == 0 {
            return false;
        }
        let graph = self.tensors.graph;
        let node = &graph.nodes[id as usize];
        let lost = |tensor: &TensorId| self.tensors.is_given_up(*tensor);
        match node.phase {
            Phase::Forward => false,
            Phase::Backward => !node.outputs.is_empty() && node.outputs.iter().all(lost),
            Phase::Update => node.inputs.iter().any(|id| graph.tensor(*id).role == Role::ParameterGradient && lost(id)),
        }
    }

    /// Lets a processor run the node, whose inputs and outputs are in memory, and waits for it.
    pub(super) fn run_node(&mut self, id: NodeId, kind: SpanKind) -> Result<(), Stop> {
        let node = &self.tensors.graph.nodes[id as usize];
        if node.rescales.is_some_and(|tensor| !self.plan.rescales(tensor)) {
            return Ok(());
        }
        self.page_in(id)?;
        self.cross_to(id)?;
        let samples = self.tensors.samples;
        let mut on = self.costs.processor();
        let cost = if let Some(dsp) = self.lanes.dsp.as_ref().filter(|dsp| dsp.runs(id)) {
            on = ProcessorKind::Dsp;
            self.costs.on_dsp(id, samples, dsp.split(id))
        } else if let Some((unpacking, less)) = self.costs.unpacking_within(id, &self.tensors) {
            self.spend(&unpacking, SpanKind::Packing)?;
            self.costs.node_reading_less(id, samples, less)
        } else {
            self.costs.node(id, samples)
        };
        let began = self.clock.now();
        let cost = self.run_on(id, cost, on)?;
        self.clock.note_operator(id, began, &cost);
        self.compute(id, kind == SpanKind::Recomputed)?;
        if on == ProcessorKind::Cpu {
            self.record.minor_faults += self.costs.machine.fresh_pages(self.tensors.graph, id as usize, samples);
        }
        let spent = self.clock.now() - began;
        for &output in &node.outputs {
            // In-place operators add to the cost of the tensor they overwrite.
            let first = self.tensors.uses.producers()[output as usize] == id;
            let before = self.tensors.state(output).cost;
            self.tensors.set_cost(output, if first { spent } else { before.max(spent) });
        }
        if kind == SpanKind::Recomputed {
            self.clock.charge_recomputation(began, node.work.kind);
        } else {
            self.clock.charge_operator(began, node.work.kind, &cost);
        }
        self.clock.draw_node(id, began, kind, on, &self.tensors);
        Ok(())
    }

    /// Lets a processor run node `id` of `cost`, and returns the actual cost. Cores that a governor has slowed down
    /// speed up while they work, so that the rest of the node costs less.
    fn run_on(&mut self, id: NodeId, mut cost: Cost, on: ProcessorKind) -> Result<Cost> {
        let (mut left, mut launch) = (1.0, Nanos::ZERO);
        loop {
            let part = if on == ProcessorKind::Cpu { self.part_at_once(cost.alone()).min(left) } else { left };
            let cut = if part < 1.0 { cost.part(part) } else { cost };
            let ran = self.lanes.run(&cut, on, &mut self.clock, &mut self.tensors)?;
            launch += ran.launch;
            self.follow_load();
            left -= part;
            if left <= 0.0 {
                return Ok(Cost { launch, ..if part < 1.0 { cost } else { ran } });
            }
            cost = self.costs.node(id, self.tensors.samples);
        }
    }

    /// Does all crossings and preparations that node `id` needs before it can run on its processor.
    fn cross_to(&mut self, id: NodeId) -> Result {
        let Some(dsp) = &mut self.lanes.dsp else { return Ok(()) };
        let (crossing, prepares) = dsp.cross_to(id, &self.tensors);
        let mut left = 1.0;
        while left > 0.0 {
            let whole = crossing.time(&self.costs.machine);
            let part = self.part_at_once(whole).min(left);
            let busy = if part < 1.0 { Nanos((whole.0 as f64 * part) as u64) } else { whole };
            if busy > Nanos::ZERO {
                self.drive(busy, SpanKind::Crossing)?;
            }
            left -= part;
        }
        let dsp = self.costs.machine.dsp.as_ref().filter(|_| prepares);
        let preparation = dsp.map(|offloader| offloader.stack.preparation.value);
        preparation.map_or(Ok(()), |preparation| self.drive(preparation, SpanKind::Preparation))
    }

    /// Records how saved tensors are stored, if this was requested.
    fn note_stored(&mut self) {
        if self.job.observe.stored {
            let rounding = self.costs.quantiser().map(|quantiser| quantiser.rules.rounding).unwrap_or_default();
            let ids = 0..self.tensors.graph.tensors.len() as TensorId;
            let tensors = ids.filter_map(|tensor| Some((tensor, self.tensors.storage(tensor)?))).collect();
            self.record.stored = Some(StoredForms { rounding, tensors });
        }
    }

    /// The share of the host's work, `whole` long at the current frequency, that is done by the governor's next tick; 1
    /// if the cores cannot become faster.
    fn part_at_once(&self, whole: Nanos) -> f64 {
        if self.load.as_ref().is_some_and(LoadGovernor::can_rise) {
            LoadGovernor::TICK.seconds() / whole.seconds().max(f64::MIN_POSITIVE)
        } else {
            1.0
        }
    }

    /// Records how well the arena is filled if it is fuller than before: when forward has ended.
    fn note_arena(&mut self) {
        let found = self.tensors.fragmentation().filter(|found| found.stored > Bytes::ZERO);
        if let Some(found) = found
            && self.record.arena.is_none_or(|fullest| found.stored > fullest.stored)
        {
            self.record.arena = Some(found);
        }
    }
}
