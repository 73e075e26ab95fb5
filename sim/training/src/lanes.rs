//! The lanes that work in parallel with the schedule: packing cores, flash, the DSP.
//!
//! Only [`Lanes::next`] advances time: it moves the clock to the next event and passes the event to the lane that it
//! belongs to.

pub(crate) mod dsp;
pub(crate) mod packer;

use dsp::DspLane;

use haversack_devices::{Cost, Nanos, ProcessorKind};
use haversack_engine::EventHandle;
use packer::{FlashLane, PackerLane};

use crate::clock::{Clock, Event, Flow};
use crate::error::Result;
use crate::tensors::Tensors;
use crate::{Breakdown, SpanKind, Wall};

/// The lanes of a run.
pub(crate) struct Lanes {
    /// Cores that pack in parallel with the processor; `None` if it packs itself.
    pub(crate) packer: Option<PackerLane>,
    pub(crate) flash: FlashLane,
    /// State of the DSP's work; `None` if the DSP is not used.
    pub(crate) dsp: Option<DspLane>,
    /// Budget changes that are still to come in this iteration.
    walls: Vec<EventHandle>,
}

/// The meaning of an event for the kernel that is running.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It can begin.
    Launched,
    /// It has ended.
    Done,
    /// A pause is over.
    Paused,
    /// Nothing.
    Other,
}

impl Lanes {
    /// Lanes with packing cores and the DSP's work, if the run uses them.
    pub(crate) fn new(packer: Option<PackerLane>, dsp: Option<DspLane>) -> Self {
        Self { packer, flash: FlashLane::default(), dsp, walls: Vec::new() }
    }

    /// Budgets change at the times of `walls`, from now on.
    pub(crate) fn expect_walls(&mut self, walls: &[Wall], event: impl Fn(&Wall) -> Event, clock: &mut Clock) {
        self.walls.extend(walls.iter().map(|wall| clock.schedule_in(wall.at, event(wall))));
    }

    /// Budgets change no more in this iteration.
    pub(crate) fn cancel_walls(&mut self, clock: &mut Clock) {
        for wall in self.walls.drain(..) {
            clock.cancel(wall);
        }
    }

    /// Advances to the next event, and returns its meaning for the kernel; `None` if none is pending.
    pub(crate) fn next(&mut self, clock: &mut Clock, tensors: &mut Tensors<'_>) -> Result<Option<Progress>> {
        let Some(event) = clock.next() else { return Ok(None) };
        let mut progress = Progress::Other;
        match event {
            Event::Launched => progress = Progress::Launched,
            Event::Done => progress = Progress::Done,
            Event::Pause => progress = Progress::Paused,
            Event::Moved => {
                while let Some(flow) = clock.completed()? {
                    match (flow, &mut self.packer) {
                        (Flow::Kernel, _) => progress = Progress::Done,
                        (Flow::Packer, Some(packer)) => packer.done(clock, tensors)?,
                        (Flow::Packer, None) => {}
                    }
                }
                clock.await_dram();
            }
            Event::Written(tensor) => self.flash.written(tensor, tensors),
            Event::Read(tensor) => self.flash.read(tensor, tensors),
            Event::Wall(memory) => tensors.set_budget(Some(memory)),
            Event::ActivationWall(memory) => {
                (tensors.limits.activations, tensors.limits.cut) = (Some(memory), true);
            }
        }
        Ok(Some(progress))
    }

    /// Runs a kernel of `cost` on one of the processors to its end, and returns its cost at its position in the queue.
    pub(crate) fn run(
        &mut self,
        cost: &Cost,
        on: ProcessorKind,
        clock: &mut Clock,
        tensors: &mut Tensors<'_>,
    ) -> Result<Cost> {
        let (start, cost) = (clock.now(), &clock.issue(cost));
        if !clock.compute_undisturbed(cost)? {
            clock.schedule_in(cost.launch, Event::Launched);
            while let Some(progress) = self.next(clock, tensors)? {
                match progress {
                    Progress::Launched => clock.compute(cost)?,
                    Progress::Done => break,
                    Progress::Paused | Progress::Other => {}
                }
            }
        }
        clock.was_busy(on, start, cost);
        Ok(*cost)
    }

    /// Work of a processor outside the graph's nodes: statistics, packing, paging, crossing and the like.
    pub(crate) fn spend(
        &mut self,
        cost: &Cost,
        kind: SpanKind,
        on: ProcessorKind,
        clock: &mut Clock,
        tensors: &mut Tensors<'_>,
    ) -> Result {
        let start = clock.now();
        self.run(cost, on, clock, tensors)?;
        clock.charge(start, |part| match kind {
            SpanKind::Control => &mut part.control,
            SpanKind::Paging => &mut part.paging,
            SpanKind::Crossing => &mut part.crossing,
            SpanKind::Preparation => &mut part.preparation,
            SpanKind::Compression => &mut part.compression,
            SpanKind::Reclaim => &mut part.reclaim,
            _ => &mut part.packing,
        });
        clock.draw(start, kind, on, tensors);
        Ok(())
    }

    /// Idles for `span`.
    pub(crate) fn pause(&mut self, span: Nanos, clock: &mut Clock, tensors: &mut Tensors<'_>) -> Result {
        clock.schedule_in(span, Event::Pause);
        while !matches!(self.next(clock, tensors)?, Some(Progress::Paused) | None) {}
        Ok(())
    }

    /// Waits until the cores that pack have come far enough.
    pub(crate) fn await_packer(
        &mut self,
        far_enough: impl Fn(&PackerLane) -> bool,
        clock: &mut Clock,
        tensors: &mut Tensors<'_>,
    ) -> Result {
        let waits = |lanes: &Self| lanes.packer.as_ref().is_some_and(|packer| !far_enough(packer));
        self.wait(waits, |part| &mut part.packing, clock, tensors)
    }

    /// Waits until flash has come far enough.
    pub(crate) fn await_flash(
        &mut self,
        far_enough: impl Fn(&FlashLane) -> bool,
        clock: &mut Clock,
        tensors: &mut Tensors<'_>,
    ) -> Result {
        self.wait(|lanes| !far_enough(&lanes.flash), |part| &mut part.swapping, clock, tensors)
    }

    /// The lanes finish their current work.
    pub(crate) fn finish(&mut self, clock: &mut Clock, tensors: &mut Tensors<'_>) -> Result {
        self.finish_packing(clock, tensors)?;
        self.await_flash(|flash| flash.in_flight() == 0, clock, tensors)
    }

    /// The packing cores finish the current tensor; queued ones are dropped.
    pub(crate) fn finish_packing(&mut self, clock: &mut Clock, tensors: &mut Tensors<'_>) -> Result {
        if let Some(packer) = &mut self.packer {
            packer.waiting.clear();
        }
        self.await_packer(|packer| packer.in_flight() == 0, clock, tensors)
    }

    fn wait(
        &mut self,
        waits: impl Fn(&Self) -> bool,
        part: impl FnOnce(&mut Breakdown) -> &mut Nanos,
        clock: &mut Clock,
        tensors: &mut Tensors<'_>,
    ) -> Result {
        let start = clock.now();
        while waits(self) {
            if self.next(clock, tensors)?.is_none() {
                break;
            }
        }
        clock.charge(start, part);
        Ok(())
    }
}
