//! A lower bound on the time of any plan, however it is made: the time of the schedule without memory limits, plus the
//! extra time that the least cut of [`mincut`](haversack_policies::mincut) requires.
//!
//! The bound is for this executor: every operator of the schedule runs once in each micro-batch, an operator that runs
//! again takes the same time, gradients, state and samples stay, and a node runs once all its inputs and outputs are in
//! memory. Left out is everything that only adds time: workspaces, fragmentation, planning, contention for DRAM,
//! throttled cores, paging phones. Left out is also work that might be hidden, such as packing by cores in parallel
//! with the processor.

use haversack_devices::{Bytes, Cost, Nanos, Processor};
use haversack_policies::mincut::{Moment, Needed, Price, Terms};
use haversack_policies::quantised::{Copies, Reach};
use haversack_policies::{Control, Packing, Quantisation, Quantised, RestoreProfile, Rounding, WHOLE};
use haversack_workloads::{Need, NodeId, Phase, TensorId, Uses};

use crate::executor::statistics::Statistics;
use crate::executor::walk::streams;
use crate::machine::packing::CodecProfile;
use crate::record::{FidelityClass, codec_bits};
use crate::setting::element_bytes;
use crate::{Job, Machine, Record};

/// Actions that a plan may take in addition to dropping tensors and computing them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Train in micro-batches although batch normalisations then see only a part of the mini-batch; graphs without
    /// batch normalisation may always be split.
    pub parts: bool,
    /// Store saved tensors with this number of bits a value, or more; 32 allows no quantisation.
    pub least_bits: u8,
    /// Write tensors to flash.
    pub flash: bool,
}

impl Allowed {
    /// The actions of plans that are as faithful as the run of `record`, including swapping if it wrote to flash;
    /// `None` for integer arithmetic and where gradients are given up, since each such plan works with its own graph.
    pub fn like(record: &Record) -> Option<Self> {
        let (fidelity, flash) = (&record.fidelity, record.flash_written > Bytes::ZERO);
        let parts = match fidelity.class() {
            FidelityClass::Exact => false,
            FidelityClass::BatchStatistics | FidelityClass::Stored => true,
            FidelityClass::Integer | FidelityClass::WeightsSkipped => return None,
        };
        Some(Self { parts, least_bits: fidelity.least_bits, flash })
    }
}

/// Number of backward nodes at which memory is checked.
const MOMENTS: usize = 24;
/// Number of micro-batch sizes that are distinguished.
const SIZES: u64 = 256;
/// Weights tried for flash time in the objective.
const SHARES: [f64; 6] = [0.02, 0.05, 0.1, 0.2, 0.35, 0.5];
/// The time of an infeasible plan.
const NEVER: u64 = u64::MAX;

/// A lower bound on the time of an iteration of `job` on `machine` under any plan within `allowed`; `None` if none fits
/// its memory budget.
pub fn least_time(machine: &Machine, job: &Job<'_>, allowed: Allowed) -> Option<Nanos> {
    let on_phone = job.phone.map(|_| machine.clone().faulted_by_a_kernel());
    let search = Search::new(on_phone.as_ref().unwrap_or(machine), job, allowed);
    let mut sizes = search.sizes();
    loop {
        let (time, chosen) = search.cheapest(&sizes);
        let Some(&open) = chosen.iter().find(|&&place| !sizes[place].is_known) else {
            return (time < NEVER).then_some(Nanos(time));
        };
        let size = &mut sizes[open];
        (size.least, size.is_known) = (search.within_memory(size), true);
    }
}

/// A lower bound on the framework's memory under any plan, with all actions allowed.
pub fn least_room(machine: &Machine, job: &Job<'_>) -> Bytes {
    let search = Search::new(machine, job, Allowed { parts: true, least_bits: 1, flash: true });
    let times = vec![0; job.graph.nodes.len()];
    let most = search.moments(1, &times, true).map(|(_, moment)| moment.beside[0]).max();
    Bytes(most.unwrap_or_default()) + machine.library_workspace()
}

/// Micro-batches within a range of sizes.
struct Size {
    /// Samples of the smallest, for which times and bytes are computed.
    samples: u64,
    /// Samples of the largest.
    most: u64,
    /// Lower bound on each node's time, in nanoseconds.
    times: Vec<u64>,
    /// Lower bounds on the time of forward and backward, in nanoseconds: of the first micro-batch, and of a later one.
    least: [u64; 2],
    /// Whether `least` already accounts for memory.
    is_known: bool,
}

struct Search<'a> {
    machine: &'a Machine,
    job: &'a Job<'a>,
    allowed: Allowed,
    uses: Uses,
    stored: Quantised,
    codec: CodecProfile<'a>,
    /// Whether cores pack in parallel with the processor that trains.
    packs_beside: bool,
    budget: u64,
    /// Whether launching all asynchronously launched kernels takes longer than running them.
    by_launches: bool,
    /// At each node, how long a processor has waited so far for the host that launches ahead, with the whole
    /// mini-batch.
    waited: Vec<u64>,
}

impl<'a> Search<'a> {
    fn new(machine: &'a Machine, job: &'a Job<'a>, allowed: Allowed) -> Self {
        // The storage rules under which tensors take the least memory.
        let rules = Quantisation {
            reach: Reach::Everything,
            copies: Copies::PerTensor,
            redraw_masks: true,
            writes_signs: true,
            control: Control::Fused,
            packing: Packing::Unified,
            rounding: Rounding::Nearest,
            arena: None,
        };
        let graph = job.graph;
        let (mut launched, mut run, mut waited) = (0, 0, vec![0]);
        for id in 0..graph.nodes.len() {
            let cost = machine.cost(graph, id, job.batch, job.precision);
            let of = |time: Nanos| if cost.ahead { time.0 } else { 0 };
            launched += of(cost.launch);
            waited.push(waited[id].max(launched.saturating_sub(run)));
            run += of(cost.busy);
        }
        let by_launches = launched > run;
        if by_launches {
            waited.fill(0);
        }
        let (budgets, addressable) = (&job.budgets, machine.addressable());
        let changes = budgets.walls.iter().chain(&budgets.traced).map(|wall| wall.memory);
        let given = budgets.memory.map(|memory| changes.fold(memory, Bytes::max));
        let budget = given.into_iter().chain(addressable).min().unwrap_or(Bytes::MAX);
        Self {
            machine,
            job,
            allowed,
            uses: Uses::new(graph),
            stored: Quantised::new(graph, &rules, element_bytes(machine, job)),
            codec: CodecProfile::new(machine, graph, job.precision),
            packs_beside: machine.packing_cores().is_some(),
            budget: budget.saturating_sub(machine.library_workspace()).0,
            by_launches,
            waited,
        }
    }

    /// The micro-batches that the mini-batch may be trained in, with their nodes' times.
    fn sizes(&self) -> Vec<Size> {
        let (graph, batch) = (self.job.graph, self.job.batch);
        let any = self.allowed.parts || !Statistics::new(Default::default(), graph).are_taken();
        let step = batch.div_ceil(SIZES).max(1) as usize;
        let mut samples: Vec<u64> = if any { (1..batch).step_by(step).collect() } else { Vec::new() };
        samples.push(batch);
        let mut least: Option<Vec<u64>> = None;
        let mut sizes: Vec<Size> = samples
            .iter()
            .rev()
            .map(|&samples| {
                let own = (0..graph.nodes.len()).map(|id| self.time(id, samples));
                // If a larger micro-batch takes less time for a node, this one may have run it before it shrank.
                let times: Vec<u64> = match least.take() {
                    Some(larger) => own.zip(larger).map(|(own, larger)| own.min(larger)).collect(),
                    None => own.collect(),
                };
                least = Some(times.clone());
                let every: u64 =
                    (0..).zip(&times).filter(|(id, _)| self.is_of_every_part(*id)).map(|(_, time)| time).sum();
                let most = if samples == batch { batch } else { (samples + step as u64 - 1).min(batch - 1) };
                Size { samples, most, times, least: [every; 2], is_known: false }
            })
            .collect();
        sizes.reverse();
        sizes
    }

    /// Whether forward or backward runs a node in every micro-batch, and not only in the last.
    fn is_of_every_part(&self, id: NodeId) -> bool {
        let node = &self.job.graph.nodes[id as usize];
        node.phase != Phase::Update && !streams(self.job.graph, node)
    }

    /// The least time of a mini-batch split into micro-batches of these `sizes`, and the sizes chosen.
    fn cheapest(&self, sizes: &[Size]) -> (u64, Vec<usize>) {
        let batch = self.job.batch;
        let reach = |place: usize, samples: u64| samples.saturating_sub(sizes[place].most) as usize;
        // For each number of samples, all in later micro-batches: their time, and the size of the first of them.
        let mut rest = vec![(0_u64, 0_usize)];
        for samples in 1..batch {
            let with = |place: usize| (sizes[place].least[1].saturating_add(rest[reach(place, samples)].0), place);
            let best = (0..sizes.len()).filter(|&place| sizes[place].samples < batch).map(with).min();
            rest.push(best.unwrap_or((NEVER, 0)));
        }
        let with = |place: usize| (sizes[place].least[0].saturating_add(rest[reach(place, batch)].0), place);
        let Some((time, first)) = (0..sizes.len()).map(with).min() else { return (NEVER, Vec::new()) };
        let (mut chosen, mut left) = (vec![first], reach(first, batch));
        while left > 0 && time < NEVER {
            chosen.push(rest[left].1);
            left = reach(rest[left].1, left as u64);
        }
        let once = (0..).zip(&sizes[0].times).filter(|(id, _)| !self.is_of_every_part(*id)).map(|(_, time)| time);
        let of_whole = if chosen.len() == 1 && time < NEVER { self.unbounded() } else { 0 };
        (time.saturating_add(once.sum()).max(of_whole), chosen)
    }

    /// The time of the whole mini-batch in one piece, where the host launches ahead and no kernel reads fewer bytes.
    fn unbounded(&self) -> u64 {
        if self.allowed.least_bits < WHOLE {
            return 0;
        }
        let time = self.machine.unbounded_time(self.job.graph, self.job.batch, self.job.precision);
        time.0.saturating_sub(self.job.graph.nodes.len() as u64)
    }

    /// Lower bound on the time of node `id` with this number of samples, in nanoseconds: less what clocks may round
    /// off, and, where fewer bits are allowed, as on a GPU that unpacks its inputs in the kernel.
    fn time(&self, id: usize, samples: u64) -> u64 {
        let (machine, graph, precision) = (self.machine, self.job.graph, self.job.precision);
        let of = |cost: Cost| match (cost.ahead, self.by_launches) {
            (false, _) => cost.alone(),
            (true, false) => cost.busy,
            (true, true) => cost.launch,
        };
        let whole = of(machine.cost(graph, id, samples, precision));
        let node = &graph.nodes[id];
        let unpacks = self.allowed.least_bits < WHOLE && machine.unpacks_within(Packing::Unified);
        let is_packed = |input: &&TensorId| node.need_of(**input) == Need::Values && self.stored.reaches(**input);
        let mut packed: Vec<TensorId> = node.inputs.iter().filter(is_packed).copied().collect();
        packed.truncate(if unpacks && node.phase == Phase::Backward { 4 } else { 0 });
        let with = |some: u32| {
            let some = packed.iter().enumerate().filter(|(place, _)| some >> place & 1 == 1);
            let (mut less, mut unpacking) = (Bytes::ZERO, Nanos::ZERO);
            for (_, &input) in some {
                let values = self.stored.values(input, samples);
                less += Bytes(graph.tensor(input).bytes.at(samples));
                unpacking += machine.unpacking_within(values, self.allowed.least_bits, node.work.columns).busy;
            }
            of(machine.cost_reading_less(graph, id, samples, precision, less)) + unpacking
        };
        let least = (1..1_u32 << packed.len()).map(with).fold(whole, Nanos::min);
        least.0.saturating_sub(1)
    }

    /// The forms in which `tensor` may be stored, given which parts of it are needed.
    fn forms(&self, tensor: TensorId, needed: Needed, samples: u64) -> Vec<Price> {
        let bytes = self.job.graph.tensor(tensor).bytes.at(samples);
        let whole = Price { bytes, ..Price::default() };
        let bits = self.allowed.least_bits;
        let Some(parts) = self.stored.parts(tensor, samples) else { return vec![whole] };
        let of_bits = if needed.bits { parts.bits.div_ceil(8) + parts.positions } else { 0 };
        let mut forms = vec![whole];
        if !needed.values {
            forms.push(Price { bytes: of_bits.min(bytes), ..Price::default() });
        } else if bits < WHOLE && parts.values > 0 {
            let bytes = (parts.copy_bytes(bits) + of_bits).min(bytes);
            forms.push(Price { bytes, time: self.packing(parts.values, bits).0, flash: 0 });
            if let Some(compressed) = self.codec.compression(tensor, samples).filter(|_| bits <= codec_bits()) {
                let time = (compressed.compress + compressed.decompress).0;
                forms.push(Price { bytes: compressed.bytes.0, time, flash: 0 });
            }
        }
        if let Some(swapping) = self.machine.swapping(Bytes(bytes)).filter(|_| self.allowed.flash) {
            // A phone in use has its own queue.
            let flash = if self.job.phone.is_some() { 0 } else { (swapping.out + swapping.back).0 };
            forms.push(Price { flash, ..Price::default() });
        }
        forms
    }

    /// Lower bound on the time that the processor that trains spends packing and unpacking values.
    fn packing(&self, values: u64, bits: u8) -> Nanos {
        let packing = self.machine.packing_cost(values, bits).alone();
        match self.machine.processor {
            Processor::Cpu(..) => packing + self.machine.unpacking_cost(values, bits, Packing::Gpu).alone(),
            Processor::Gpu(..) if self.packs_beside => Nanos::ZERO,
            Processor::Gpu(..) => packing,
        }
    }

    /// Memory at some nodes of backward, in a micro-batch of `samples` samples, which is the whole mini-batch if
    /// `is_only`.
    fn moments(&self, samples: u64, times: &[u64], is_only: bool) -> impl Iterator<Item = (NodeId, Moment)> {
        let graph = self.job.graph;
        let every = (0..graph.nodes.len() as NodeId).filter(|&id| self.is_of_every_part(id));
        let backward: Vec<NodeId> = every.filter(|&id| graph.nodes[id as usize].phase == Phase::Backward).collect();
        let step = backward.len().div_ceil(MOMENTS).max(1);
        backward.into_iter().step_by(step).map(move |at| {
            let terms = Terms {
                graph,
                uses: &self.uses,
                samples,
                times,
                forms: &|tensor, needed| self.forms(tensor, needed, samples),
                leaves_out: &|id| !is_only && streams(graph, &graph.nodes[id as usize]),
            };
            (at, Moment::new(&terms, at))
        })
    }

    /// Lower bounds on the time of forward and backward for micro-batches of a size within the memory budget, in
    /// nanoseconds.
    fn within_memory(&self, size: &Size) -> [u64; 2] {
        let is_whole = size.samples == self.job.batch;
        let mut least = size.least;
        for (at, mut moment) in self.moments(size.samples, &size.times, is_whole) {
            let waited = if is_whole { self.waited[at as usize + 1] } else { 0 };
            let parts = size.least.into_iter().zip(moment.beside).zip(&mut least);
            for ((schedule, beside), least) in parts.take(if is_whole { 1 } else { 2 }) {
                let room = self.budget.checked_sub(beside);
                let time = room.map_or(NEVER, |room| self.with_again(&mut moment, room, schedule + waited));
                *least = time.max(*least);
            }
        }
        least
    }

    /// Lower bound on the time of a micro-batch whose `schedule` takes this long, in nanoseconds, with the extra work
    /// needed to fit `room` bytes. Flash must have finished by the end, so its time can be weighted against the
    /// schedule's.
    fn with_again(&self, moment: &mut Moment, room: u64, schedule: u64) -> u64 {
        if !self.allowed.flash {
            return schedule.saturating_add(moment.least(room, 0.0));
        }
        let with = |share: f64| (schedule as f64 * (1.0 - share)) as u64 + moment.least(room, share);
        SHARES.into_iter().map(with).fold(schedule, u64::max)
    }
}
