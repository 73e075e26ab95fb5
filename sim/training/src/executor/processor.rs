//! The processor and DRAM: a kernel is launched, computes, and moves its bytes.

use haversack_devices::processor::{Cost, Processor};
use haversack_devices::units::{Bytes, BytesPerSecond, Nanos};
use haversack_workloads::NodeId;

use super::{Event, Executor};
use crate::job::RunError;
use crate::timeline::{Span, SpanKind};

impl Executor<'_> {
    /// Lets the processor run the node and waits for it.
    pub(super) fn occupy(&mut self, id: NodeId, kind: SpanKind) -> Result<(), RunError> {
        let samples = self.store.samples;
        let (machine, job) = (self.machine, self.job);
        let cost = *self.costs[id as usize]
            .get_or_insert_with(|| machine.cost(job.graph, id as usize, samples, job.precision));
        let start = self.now;
        let (memory, budget) = (self.store.allocated(), self.budget);
        self.events.schedule_in(cost.launch, Event::Launched);
        while let Some((time, event)) = self.events.pop() {
            self.now = time;
            match event {
                Event::Launched => self.begin(&cost)?,
                Event::Done => break,
                Event::Moved if self.dram.advance(time)?.is_some() => break,
                Event::Moved => self.await_dram(),
                Event::Wall(memory) => self.set_budget(memory),
            }
        }
        let spent = self.now - start;
        let busy = spent.saturating_sub(cost.launch);
        let node = &job.graph.nodes[id as usize];
        for &output in &node.outputs {
            // In-place operators add to the cost of what they overwrite.
            let state = &mut self.store.states[output as usize];
            let first = self.store.uses.producers[output as usize] == id;
            state.cost = if first { spent } else { state.cost.max(spent) };
        }
        if kind == SpanKind::Recomputed {
            self.part.recompute += spent;
        } else {
            self.part.launch += cost.launch;
            self.part.add(node.work.kind, busy);
        }
        match machine.processor {
            Processor::Cpu(..) => self.usage.cpu_busy += busy,
            Processor::Gpu(..) => self.usage.gpu_busy += busy,
        }
        self.usage.dram += cost.dram;
        if let Some(timeline) = &mut self.record.timeline {
            timeline.spans.push(Span {
                node: id,
                start: start - self.started,
                duration: spent,
                kind,
                micro_batch: samples,
                memory,
                budget,
            });
        }
        Ok(())
    }

    /// The processor computes while DRAM moves the kernel's bytes, at most as fast as the processor asks for them.
    pub(super) fn begin(&mut self, cost: &Cost) -> Result<(), RunError> {
        if cost.dram == Bytes::ZERO || cost.busy == Nanos::ZERO {
            self.events.schedule_in(cost.busy, Event::Done);
            return Ok(());
        }
        let rate = BytesPerSecond(cost.dram.as_f64() / cost.busy.seconds());
        self.dram.insert(self.now, cost.dram, Some(rate), ())?;
        self.await_dram();
        Ok(())
    }

    fn await_dram(&mut self) {
        let due = self.dram.next_completion().unwrap_or(self.now);
        self.events.schedule_in(due.saturating_sub(self.now), Event::Moved);
    }
}
