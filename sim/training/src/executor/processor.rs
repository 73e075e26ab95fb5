//! The processor and DRAM: a kernel is launched, computes, and moves its bytes.

use std::sync::Arc;

use haversack_devices::processor::{Cost, ProcessorKind};
use haversack_devices::units::{Bytes, BytesPerSecond, Nanos};
use haversack_devices::work::OperatorKind;
use haversack_workloads::NodeId;

use super::offload::lane;
use super::{Event, Executor, Stop};
use crate::job::RunError;
use crate::timeline::{Span, SpanKind};

/// Whose bytes DRAM moves.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flow {
    /// The kernel's.
    Kernel,
    /// The packing CPU's.
    Packer,
}

/// What an event meant for the kernel that is running.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It can begin.
    Launched,
    /// It has ended.
    Done,
    /// A pause is over.
    Paused,
    /// Nothing.
    Other,
}

impl Executor<'_> {
    /// Lets the processor run the node and waits for it.
    pub(super) fn occupy(&mut self, id: NodeId, kind: SpanKind) -> Result<(), Stop> {
        let samples = self.store.samples;
        let (machine, graph, precision) = (Arc::clone(&self.machine), self.graph, self.precision);
        if graph.nodes[id as usize].rescales.is_some_and(|tensor| !self.plan.rescales(tensor)) {
            return Ok(());
        }
        self.page_in(id)?;
        self.cross_to(id)?;
        let on_dsp = self.runs_on_dsp(id);
        let cost = match self.within(id) {
            _ if on_dsp => self.dsp_cost(id),
            Some((unpacking, less)) => {
                self.spend(&unpacking, SpanKind::Packing)?;
                machine.cost_reading_less(graph, id as usize, samples, precision, less)
            }
            None => {
                *self.costs[id as usize].get_or_insert_with(|| machine.cost(graph, id as usize, samples, precision))
            }
        };
        let began = self.now;
        let on = lane(on_dsp, &machine);
        self.run_kernel(&cost, on)?;
        let spent = self.now - began;
        let node = &graph.nodes[id as usize];
        for &output in &node.outputs {
            // In-place operators add to the cost of what they overwrite.
            let first = self.store.uses.producers[output as usize] == id;
            let before = self.store.states[output as usize].cost;
            self.store.set_cost(output, if first { spent } else { before.max(spent) });
        }
        if kind == SpanKind::Recomputed {
            self.part.recompute += spent;
            if node.work.kind == OperatorKind::Layout {
                self.record.recomputed_layout += spent;
            }
        } else {
            self.part.launch += cost.launch;
            self.part.add(node.work.kind, spent.saturating_sub(cost.launch));
        }
        self.draw(id, began, kind, on);
        Ok(())
    }

    /// Work of the processor beside the graph's nodes: statistics, packing or paging.
    pub(super) fn spend(&mut self, cost: &Cost, kind: SpanKind) -> Result<(), RunError> {
        let start = self.now;
        let on = self.machine.processor.kind();
        self.run_kernel(cost, on)?;
        let spent = self.now - start;
        match kind {
            SpanKind::Control => self.part.control += spent,
            SpanKind::Paging => self.part.paging += spent,
            SpanKind::Crossing => self.part.crossing += spent,
            SpanKind::Preparation => self.part.preparation += spent,
            SpanKind::Compression => self.part.compression += spent,
            SpanKind::Reclaim => self.part.reclaim += spent,
            _ => self.part.packing += spent,
        }
        self.draw(self.at, start, kind, on);
        Ok(())
    }

    /// Puts what took from `start` until now beside the graph's nodes on the timeline, where there is one.
    pub(super) fn draw_span(&mut self, start: Nanos, kind: SpanKind) {
        self.draw(self.at, start, kind, self.machine.processor.kind());
    }

    /// Puts what ran from `start` until now on the timeline, where there is one.
    fn draw(&mut self, node: NodeId, start: Nanos, kind: SpanKind, on: ProcessorKind) {
        let (memory, budget, micro_batch) = (self.store.allocated(), self.budget, self.store.samples);
        let (start, duration) = (start - self.started, self.now - start);
        if let Some(timeline) = &mut self.record.timeline {
            timeline.spans.push(Span { node, start, duration, kind, on, micro_batch, memory, budget });
        }
    }

    /// Runs a kernel of `cost` on one of the processors to its end.
    fn run_kernel(&mut self, cost: &Cost, on: ProcessorKind) -> Result<(), RunError> {
        let start = self.now;
        self.events.schedule_in(cost.launch, Event::Launched);
        while let Some(progress) = self.next_event()? {
            match progress {
                Progress::Launched => self.begin(cost)?,
                Progress::Done => break,
                Progress::Paused | Progress::Other => {}
            }
        }
        // On a CPU the framework's own work is the CPU's too.
        let before = if on == ProcessorKind::Cpu { Nanos::ZERO } else { cost.launch };
        let busy = (self.now - start).saturating_sub(before);
        match on {
            ProcessorKind::Cpu => self.usage.cpu_busy += busy,
            ProcessorKind::Gpu => self.usage.gpu_busy += busy,
            ProcessorKind::Dsp => self.usage.dsp_busy += busy,
        }
        self.usage.dram += cost.dram;
        self.note_power(on, self.now - busy, busy, cost.dram);
        Ok(())
    }

    /// The next event, and what it means; nothing where none is to come.
    pub(super) fn next_event(&mut self) -> Result<Option<Progress>, RunError> {
        let Some((time, event)) = self.events.pop() else { return Ok(None) };
        self.now = time;
        let progress = match event {
            Event::Launched => Progress::Launched,
            Event::Done => Progress::Done,
            Event::Moved => {
                self.moved = None;
                self.collect_moved()?
            }
            Event::Pause => Progress::Paused,
            Event::Written(tensor) => {
                self.written(tensor);
                Progress::Other
            }
            Event::Read(tensor) => {
                self.read(tensor);
                Progress::Other
            }
            Event::Wall(memory) => {
                self.set_budget(memory);
                Progress::Other
            }
            Event::ActivationWall(memory) => {
                self.activations = Some(memory);
                self.cut = true;
                Progress::Other
            }
        };
        Ok(Some(progress))
    }

    /// The flows that DRAM has completed by now.
    fn collect_moved(&mut self) -> Result<Progress, RunError> {
        let mut progress = Progress::Other;
        while let Some(completion) = self.dram.advance(self.now)? {
            match completion.item {
                Flow::Kernel => progress = Progress::Done,
                Flow::Packer => self.packer_done()?,
            }
        }
        self.await_dram();
        Ok(progress)
    }

    /// The processor computes while DRAM moves the kernel's bytes, at most as fast as the processor asks for them.
    fn begin(&mut self, cost: &Cost) -> Result<(), RunError> {
        if cost.dram == Bytes::ZERO || cost.busy == Nanos::ZERO {
            self.events.schedule_in(cost.busy, Event::Done);
            return Ok(());
        }
        let rate = BytesPerSecond(cost.dram.as_f64() / cost.busy.seconds());
        self.dram.insert(self.now, cost.dram, Some(rate), Flow::Kernel)?;
        self.await_dram();
        Ok(())
    }

    /// Has the engine announce when DRAM completes its next flow.
    pub(super) fn await_dram(&mut self) {
        if let Some(earlier) = self.moved.take() {
            self.events.cancel(earlier);
        }
        self.moved =
            self.dram.next_completion().map(|due| self.events.schedule_in(due.saturating_sub(self.now), Event::Moved));
    }
}
