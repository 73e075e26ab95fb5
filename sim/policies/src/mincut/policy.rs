//! `mincut`: all ways of freeing memory, chosen together by minimum cuts and tried on the executor.
//!
//! ```text
//! size of a micro-batch, bytes for saved tensors ─► least cut ─► kept, packed, signs, on flash, or computed again ─┐
//!                                                          what is short beyond that gives way as `dgc` has it    │
//! policies of papers as they are shipped ──────────────────────────────────────────────────────────────────────────┤
//!                                                                                                                  ▼
//!                                executor: an iteration of each ─► the fastest that is as faithful as requested
//! ```
//!
//! A cut (see [`mincut`](crate::mincut)) is taken where backward begins, when most tensors are saved. It does not
//! include the extra memory needed for recomputation, so the bytes and the size are searched starting from the cuts:
//! every size with all the room and with less, and from the fastest on in decreasing steps; where none works, the whole
//! mini-batch with ever less room. An operator that runs again reads whole tensors only: a tensor of which backward
//! needs signs is kept as signs if no recomputation reads it.
//!
//! The plan is made for the memory available before the first iteration, and again when that changes. If memory is
//! shorter in the run than in the tries, the tensor with the lowest latency per byte gives way, then samples.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haversack_devices::{Bytes, Nanos};
use haversack_replay::Heuristic;
use haversack_workloads::{NodeId, Phase, TensorId, TrainingGraph, Uses};
use serde::Deserialize;

use super::{Moment, Needed, Price, Terms};
use crate::dtr::Dtr;
use crate::entry::Settings;
use crate::fedhybrid::{self, FedHybrid};
use crate::original::Original;
use crate::plan::Fixed;
use crate::planning::sizes;
use crate::quantised::{Copies, Reach};
use crate::sage::{Dynamic, Order};
use crate::{
    Control, Holding, IterationPlan, IterationSummary, MemoryView, Operations, Oracle, Packing, Plan, PlanAhead,
    Planned, Planner, Planning, Policy, PolicyError, Quantisation, Quantised, Recorder, Relief, RestoreProfile, Room,
    Rounding, Schedule, Setting, Storage, TensorSet, WHOLE, Want,
};

/// The worst acceptable gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gradients {
    /// The mini-batch's own.
    Exact,
    /// Gradients of parts with separate batch statistics.
    BatchStatistics,
    /// Gradients computed from saved tensors with fewer bits.
    Stored,
}

/// Parameters of `mincut`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Parameters {
    /// The worst acceptable gradients.
    pub fidelity: Gradients,
    /// Bits a value of saved tensors that are stored with fewer.
    pub least_bits: u64,
    /// Whether tensors may go to flash.
    pub flash: bool,
    /// The maximum number of iterations tried for a plan.
    pub tries: u64,
    /// Where plans are made.
    pub planner: Planner,
}

impl Parameters {
    fn bits(&self) -> u8 {
        if self.fidelity == Gradients::Stored { self.least_bits as u8 } else { WHOLE }
    }

    /// The maximum losses of a run, one number per kind: see [`Tried::losses`](crate::Tried).
    fn most(&self) -> [u64; 4] {
        let statistics = if self.fidelity == Gradients::Exact { 0 } else { 2 };
        [0, 0, u64::from(WHOLE - self.bits()), statistics]
    }
}

/// The number of policies that handle memory that a cut leaves short.
const THEN: usize = 3;

impl Parameters {
    /// The policy for shortages that no plan covers: drops by latency per byte, then samples if allowed.
    fn unforeseen(&self) -> Dynamic {
        let exact = self.fidelity == Gradients::Exact;
        Dynamic::new(if exact { Order::CheckpointingOnly } else { Order::CheckpointingFirst }, None)
    }

    /// The policies tried for memory that a cut leaves short.
    fn then(&self) -> [Box<dyn Policy>; THEN] {
        let chooser =
            fedhybrid::Parameters { compression: false, swapping: self.flash, ..fedhybrid::Parameters::default() };
        [Box::new(self.unforeseen()), Box::new(Dtr::new(Heuristic::Dtr)), Box::new(FedHybrid::new(chooser))]
    }
}

/// The rules for tensors with fewer bits: each is stored once for all readers, by separate kernels.
const RULES: Quantisation = Quantisation {
    reach: Reach::Everything,
    copies: Copies::PerTensor,
    redraw_masks: true,
    writes_signs: false,
    control: Control::Fused,
    packing: Packing::Profiled,
    rounding: Rounding::Nearest,
    arena: None,
};

/// Policies of papers, with default settings: all are tried.
pub(crate) type Papers = fn() -> Vec<Box<dyn Policy>>;

/// Iterations of a try: a policy may learn in the first, and an allocator has its pieces from then on.
const ITERATIONS: u32 = 2;
/// Iterations that the fastest plan must last, because the gaps in an allocator's memory may grow with each, unless the
/// room is this multiple of its peak.
const LASTING: u32 = 8;
const SPARE: u64 = 2;
/// Weights of flash time in the objective: expensive and cheap.
const SHARES: [f64; 2] = [0.4, 0.1];
/// Fractions of the room for saved tensors that are tried first, and those while no cut has worked: the gaps of an
/// allocator and the workspace of operators that are computed again need the rest.
const ROOM: [f64; 2] = [1.0, 0.8];
const TIGHT: [f64; 4] = [0.6, 0.4, 0.2, 0.0];
/// The fraction by which the room is then moved: the first, halved when no step is faster, down to the last.
const STEPS: (f64, f64) = (0.2, 0.01);

/// The forms in which saved tensors may be stored.
#[derive(Debug)]
struct Ways {
    saved: Vec<bool>,
    stored: Quantised,
    bits: u8,
    flash: bool,
}

impl Ways {
    /// The forms of `tensor` that provide the parts needed; tensors without any are computed again.
    fn of(&self, tensor: TensorId, needed: Needed) -> Vec<Holding> {
        let mut ways = Vec::new();
        if !self.saved[tensor as usize] {
            return ways;
        }
        ways.push(Holding::Keep);
        if self.stored.reaches(tensor) && !needed.values {
            ways.push(Holding::Quantise(1));
        } else if self.bits < WHOLE && self.stored.values(tensor, 1) > 0 {
            ways.push(Holding::Quantise(self.bits));
        }
        if self.flash {
            ways.push(Holding::Swap);
        }
        ways
    }

    fn price(&self, tensor: TensorId, way: Holding, samples: u64, whole: u64, costs: &dyn RestoreProfile) -> Price {
        let parts = self.stored.parts(tensor, samples).unwrap_or_default();
        match way {
            Holding::Quantise(bits) => {
                let packed = if parts.values > 0 { parts.values } else { parts.bits };
                let both = costs.packing(packed, bits);
                let time = (both.out + both.back).0;
                Price { time, bytes: parts.bytes_at(bits), flash: 0 }
            }
            Holding::Swap => {
                let flash = costs.swapping(Bytes(whole)).map_or(u64::MAX >> 20, |both| (both.out + both.back).0);
                Price { flash, ..Price::default() }
            }
            _ => Price { bytes: whole, ..Price::default() },
        }
    }
}

/// Micro-batches of one size.
#[derive(Debug)]
struct Size {
    samples: u64,
    moment: Moment,
}

/// The fastest plan found.
#[derive(Debug)]
struct Best {
    time: Nanos,
    peak: Bytes,
    plan: Plan,
}

/// A cut to try: the size, the bytes for saved tensors, and the policy for memory that is short beyond that.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    size: usize,
    bytes: u64,
    then: usize,
}

/// Searches for plans.
#[derive(Debug)]
struct Search {
    parameters: Parameters,
    papers: Papers,
    ways: Ways,
    batch: u64,
    /// Bytes in addition to tensors.
    beside: Bytes,
    /// In descending order.
    sizes: Vec<Size>,
    /// The schedule that plans cannot change once a run has begun.
    fixed: Option<Fixed>,
    /// The room of the last request.
    room: Room,
    /// Micro-batch sizes that policies ended with.
    splits: BTreeSet<u64>,
    tries: u64,
    /// Whether the last try was not faithful enough.
    is_lossy: bool,
    operations: Operations,
    best: Option<Best>,
    /// The fastest cut.
    cut: Option<(Nanos, Point)>,
}

impl Search {
    fn new(setting: &Setting<'_>, parameters: Parameters, papers: Papers) -> Self {
        let mut saved = vec![false; setting.graph.tensors.len()];
        setting.graph.saved().iter().for_each(|&tensor| saved[tensor as usize] = true);
        let has_flash = setting.restore.is_some_and(|costs| costs.swapping(Bytes(1)).is_some());
        let ways = Ways {
            saved,
            stored: Quantised::new(setting.graph, &RULES, setting.elements),
            bits: parameters.bits(),
            flash: parameters.flash && has_flash,
        };
        Self {
            parameters,
            papers,
            ways,
            batch: setting.batch,
            beside: setting.beside,
            sizes: Vec::new(),
            fixed: None,
            room: setting.room,
            splits: BTreeSet::new(),
            tries: 0,
            is_lossy: false,
            operations: Operations::default(),
            best: None,
            cut: None,
        }
    }

    /// Adds micro-batches of these `samples` to the search.
    fn add_sizes(&mut self, setting: &Setting<'_>, samples: impl IntoIterator<Item = u64>) {
        let (Some(costs), graph) = (setting.restore, setting.graph) else { return };
        let Some(turn) = graph.nodes.iter().position(|node| node.phase == Phase::Backward) else { return };
        let (uses, ways) = (Uses::new(graph), &self.ways);
        for samples in samples {
            if self.sizes.iter().any(|size| size.samples == samples) {
                continue;
            }
            let times: Vec<u64> = costs.times_at(samples).into_iter().map(|time| time.0).collect();
            if times.len() != graph.nodes.len() {
                continue;
            }
            let price =
                |tensor: TensorId, way| ways.price(tensor, way, samples, graph.tensor(tensor).bytes.at(samples), costs);
            let forms = |tensor, needed| ways.of(tensor, needed).into_iter().map(|way| price(tensor, way)).collect();
            let leaves_out = |_| false;
            let terms = Terms { graph, uses: &uses, samples, times: &times, forms: &forms, leaves_out: &leaves_out };
            self.sizes.push(Size { samples, moment: Moment::new(&terms, turn as NodeId) });
            self.operations.scores += graph.tensors.len() as u64;
        }
        self.sizes.sort_by_key(|size| std::cmp::Reverse(size.samples));
    }

    /// Tries `iterations` iterations of `policy`; returns the time of the last, if it works and is faithful enough.
    fn attempt(&mut self, policy: &mut dyn Policy, iterations: u32, oracle: &dyn Oracle) -> Option<Nanos> {
        self.tries += 1;
        let mut recorder = Recorder::new(policy);
        self.is_lossy = false;
        let tried = oracle.run(&mut recorder, self.room, iterations).ok()?;
        self.operations.operators += tried.operators;
        let allowed = self.parameters.most();
        self.is_lossy = tried.losses.iter().zip(allowed).any(|(loss, most)| *loss > most);
        if self.is_lossy {
            return None;
        }
        if tried.written > Bytes::ZERO && !self.parameters.flash {
            return None;
        }
        let mut plan = recorder.into_plan().ok()?;
        // The rules have no effect if nothing is stored by them.
        plan.fixed.quantisation.get_or_insert(RULES);
        self.splits.extend(plan.iterations.last().map(|iteration| iteration.micro_batch));
        let alike = |fixed: &Fixed| Fixed { micro_batch: 0, ..fixed.clone() };
        if self.fixed.as_ref().is_some_and(|fixed| alike(fixed) != alike(&plan.fixed)) {
            return None;
        }
        let (time, peak) = (tried.time, tried.peak);
        if self.best.as_ref().is_none_or(|best| (time, peak) < (best.time, best.peak)) {
            if self.room.memory.is_some_and(|memory| memory.0 < SPARE * peak.0) {
                self.operations.operators +=
                    oracle.run(&mut Planned::new(plan.clone()), self.room, LASTING).ok()?.operators;
            }
            self.best = Some(Best { time, peak, plan });
        }
        Some(time)
    }

    /// Tries the cut of `point`, with flash expensive and cheap.
    fn attempt_cut(&mut self, point: Point, oracle: &dyn Oracle) {
        let shares = if self.ways.flash { &SHARES[..] } else { &[0.0] };
        for &share in shares {
            if self.tries >= self.parameters.tries {
                return;
            }
            let Some(found) = self.sizes.get_mut(point.size) else { return };
            let (micro_batch, mut holds) = (found.samples, BTreeMap::new());
            for (tensor, needed, way) in found.moment.choice(point.bytes, share) {
                let hold = way.map_or(Holding::Rematerialise, |way| self.ways.of(tensor, needed)[way]);
                // A tensor needed both whole and as signs gets the form chosen for one of them, not recomputation.
                if self.ways.saved[tensor as usize] && (way.is_some() || !holds.contains_key(&tensor)) {
                    holds.insert(tensor, hold);
                }
            }
            self.operations.scores += holds.len() as u64;
            let Some(then) = self.parameters.then().into_iter().nth(point.then) else { return };
            match self.attempt(&mut Held { micro_batch, holds, then }, ITERATIONS, oracle) {
                Some(time) if self.cut.is_none_or(|(fastest, _)| time < fastest) => self.cut = Some((time, point)),
                // Smaller parts lose as much: batch normalisations see one at a time.
                None if self.is_lossy => return self.sizes.truncate(point.size.max(1)),
                _ => {}
            }
        }
    }

    /// Bytes for saved tensors at a size, if they could use all the room.
    fn bytes(&self, size: usize) -> u64 {
        let Some(Size { samples, moment }) = self.sizes.get(size) else { return 0 };
        let beside = moment.beside[usize::from(*samples < self.batch)] + self.beside.0;
        let left = self.room.memory.map_or(u64::MAX, |memory| memory.0.saturating_sub(beside));
        left.min(self.room.activations.map_or(u64::MAX, |saved| saved.0)).min(moment.all)
    }

    /// Tries plans without cuts: keeping everything, and policies of papers. Returns whether everything fits.
    fn try_papers(&mut self, oracle: &dyn Oracle) -> bool {
        if self.attempt(&mut Original, 1, oracle).is_some() {
            return true;
        }
        for mut policy in (self.papers)() {
            if self.tries >= self.parameters.tries {
                break;
            }
            self.attempt(policy.as_mut(), ITERATIONS, oracle);
        }
        false
    }

    /// Tries cuts: every size with all the room and with less, then from the fastest on.
    fn try_cuts(&mut self, oracle: &dyn Oracle) {
        self.cut = None;
        let of = |search: &Self, size: usize, share: f64, then| Point {
            size,
            bytes: (search.bytes(size) as f64 * share) as u64,
            then,
        };
        for share in ROOM {
            for size in 0..self.sizes.len() {
                self.attempt_cut(of(self, size, share, 0), oracle);
            }
        }
        for (share, then) in TIGHT.into_iter().flat_map(|share| (0..THEN).map(move |then| (share, then))) {
            if self.cut.is_some() {
                break;
            }
            self.attempt_cut(of(self, 0, share, then), oracle);
        }
        let (mut step, least) = STEPS;
        while let Some((before, point)) = self.cut.filter(|_| step > least) {
            let Point { size, bytes, then } = point;
            let moved = |share: f64| Point { bytes: (bytes as f64 * share) as u64, ..point };
            let others = (0..THEN).filter(|&other| other != then).map(|then| Point { then, ..point });
            let sizes = [size.wrapping_sub(1), size + 1].into_iter().filter(|&size| size < self.sizes.len());
            let sizes: Vec<Point> = sizes.map(|size| of(self, size, 1.0, then)).collect();
            for point in [moved(1.0 + step), moved(1.0 - step)].into_iter().chain(others).chain(sizes) {
                if self.tries >= self.parameters.tries {
                    return;
                }
                self.attempt_cut(point, oracle);
            }
            if self.cut.is_some_and(|(time, _)| time == before) {
                step /= 2.0;
            }
        }
    }

    /// The plan before the first iteration; `None` if nothing fits.
    fn start(&mut self, setting: &Setting<'_>, oracle: &dyn Oracle) -> Option<Plan> {
        if !self.try_papers(oracle) {
            let found = self.splits.clone();
            self.add_sizes(setting, sizes(self.batch).chain([setting.filling_micro_batch]).chain(found));
            self.try_cuts(oracle);
        }
        self.settled(oracle)
    }

    /// A plan for a room during the run; `None` if nothing fits.
    fn within(&mut self, room: Room, oracle: &dyn Oracle) -> Option<Plan> {
        (self.room, self.tries, self.operations) = (room, 0, Operations::default());
        if !self.try_papers(oracle) {
            self.try_cuts(oracle);
        }
        self.settled(oracle)
    }

    /// The fastest plan, without its learning iterations if it is as fast without them.
    fn settled(&mut self, oracle: &dyn Oracle) -> Option<Plan> {
        let Best { time, mut plan, .. } = self.best.take()?;
        let learned = plan.iterations.split_off(plan.iterations.len().saturating_sub(1));
        let mut short = plan.clone();
        short.iterations.clone_from(&learned);
        if plan.iterations.is_empty()
            || self.attempt(&mut Planned::new(short.clone()), ITERATIONS, oracle).is_some_and(|found| found <= time)
        {
            return Some(short);
        }
        plan.iterations.extend(learned);
        Some(plan)
    }

    /// The cost of searching for `plan`.
    fn planning(&self, plan: Option<&Plan>) -> Planning {
        let sends = plan.filter(|_| self.parameters.planner == Planner::Server);
        Planning {
            planner: self.parameters.planner,
            room: self.room,
            operations: self.operations,
            sent: sends.map_or(Bytes::ZERO, Plan::profile_bytes),
            received: sends.map_or(Bytes::ZERO, |plan| Bytes(plan.to_text().len() as u64)),
            treatments: plan.map(|plan| plan.treatments(&self.ways.saved)),
        }
    }
}

/// Stores tensors as chosen by a cut; `then` handles memory that is short beyond that.
struct Held {
    micro_batch: u64,
    holds: BTreeMap<TensorId, Holding>,
    then: Box<dyn Policy>,
}

impl Policy for Held {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let schedule = self.then.prepare(setting)?;
        Ok(Schedule { micro_batch: self.micro_batch, quantisation: Some(RULES), planner: None, ..schedule })
    }

    fn hold(&mut self, tensor: TensorId, _memory: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        Ok(self.holds.get(&tensor).copied().unwrap_or(Holding::Keep))
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        self.then.relieve(want, memory)
    }
}

/// Carries out the fastest plan that it finds.
#[must_use]
pub struct MinCut {
    parameters: Parameters,
    papers: Papers,
    in_force: Arc<Mutex<Planned>>,
    then: Dynamic,
    /// Tensors changed since the last call.
    news: TensorSet,
}

fn locked(in_force: &Mutex<Planned>) -> MutexGuard<'_, Planned> {
    in_force.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MinCut {
    /// With `parameters`, and policies to try.
    pub(crate) fn new(parameters: Parameters, papers: Papers) -> Self {
        let nothing = Planned::new(Plan::default());
        Self {
            parameters,
            papers,
            in_force: Arc::new(Mutex::new(nothing)),
            then: parameters.unforeseen(),
            news: TensorSet::new(),
        }
    }

    /// The same, after checking that the settings fit together.
    pub(crate) fn checked(self, set: &Settings<'_>) -> Result<Self, PolicyError> {
        set.only_with("fidelity=stored", self.parameters.fidelity == Gradients::Stored, &["least_bits"])?;
        Ok(self)
    }
}

impl Policy for MinCut {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let mut search = Search::new(setting, self.parameters, self.papers);
        let found = setting.oracle.filter(|_| setting.room != Room::default());
        let found = found.and_then(|oracle| search.start(setting, oracle));
        let first = found.as_ref().map(|plan| search.planning(Some(plan)));
        let mut plan = found.unwrap_or_else(|| Plan::keeping_all(setting));
        plan.fixed.quantisation.get_or_insert(RULES);
        search.fixed = Some(plan.fixed.clone());
        let mut planned = Planned::new(plan);
        let schedule = planned.prepare(setting)?;
        *locked(&self.in_force) = planned;
        let planner = Ahead { search, first, in_force: Arc::clone(&self.in_force) };
        Ok(Schedule { planner: Some(Box::new(planner)), ..schedule })
    }

    fn begin_iteration(&mut self, plan: &mut IterationPlan) -> Result<(), PolicyError> {
        locked(&self.in_force).begin_iteration(plan)
    }

    fn hold(&mut self, tensor: TensorId, memory: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        locked(&self.in_force).hold(tensor, memory)
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        for tensor in memory.changed.iter() {
            self.news.insert(tensor);
        }
        let mut reliefs = locked(&self.in_force).relieve(want, memory)?;
        // A relief outside the plan may have dropped the tensor already.
        reliefs.retain(|relief| match *relief {
            Relief::ShrinkMicroBatch(samples) => samples < memory.micro_batch,
            Relief::Requantise(tensor, bits) => {
                matches!(memory.form(tensor).storage(), Some(Storage::Quantised(held)) if bits < held)
            }
            other => other.tensor().is_some_and(|tensor| memory.candidates.contains(tensor)),
        });
        if reliefs.is_empty() {
            reliefs = self.then.relieve(want, &MemoryView { changed: &self.news, ..*memory })?;
            self.news.clear();
        }
        Ok(reliefs)
    }

    fn end_iteration(&mut self, seen: &IterationSummary) -> Result<Operations, PolicyError> {
        locked(&self.in_force).end_iteration(seen)
    }
}

/// Updates the plan when the memory changes.
#[derive(Debug)]
struct Ahead {
    search: Search,
    /// The cost of the plan that was made before the first iteration.
    first: Option<Planning>,
    in_force: Arc<Mutex<Planned>>,
}

impl PlanAhead for Ahead {
    fn plan_within(
        &mut self,
        _: &TrainingGraph,
        room: Room,
        oracle: &dyn Oracle,
    ) -> Result<Option<Planning>, PolicyError> {
        // Without a memory limit, the last plan is good enough.
        if room == self.search.room || room == Room::default() {
            return Ok(self.first.take());
        }
        let found = self.search.within(room, oracle);
        let planning = self.search.planning(found.as_ref());
        if let Some(plan) = found {
            *locked(&self.in_force) = Planned::new(plan);
        }
        Ok(Some(planning))
    }
}
