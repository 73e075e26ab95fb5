//! A plan for every saved tensor, recorded from a run or made by a solver; and `planned`, the policy that carries one
//! out.
//!
//! ```text
//! any policy ─► Recorder ─► executor ─► Plan (JSON) ─► Planned ─► executor: the same run again, event by event
//! a solver ───────────────────────────► Plan ────────► Planned ─► executor: its time and peak
//! ```
//!
//! A plan is for one graph, batch and machine, and identifies them by each node's shape and time. It contains the
//! decisions made before the first iteration, and for each iteration the micro-batch, the treatment of saved tensors,
//! and as steps all other answers of the policy, each with the node before which it was given. Iterations after the
//! last one repeat it.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use haversack_devices::calibration::Digest;
use haversack_devices::{Bytes, Nanos, ensure};
use haversack_workloads::{Node, NodeId, Phase, TensorId, TrainingGraph};
use serde::{Deserialize, Serialize};

use crate::fixed8::Fixed8;
use crate::planning::{Operations, Planning, Room, Treatments};
use crate::{
    BatchStatistics, ComputingBudget, Holding, IterationPlan, IterationSummary, MemoryView, Offload, Oracle, PlanAhead,
    Policy, PolicyError, Quantisation, Relief, Schedule, Setting, Want,
};

/// The id of the policy that carries plans out; also the policy name in plans made by solvers.
pub const PLANNED: &str = "planned";

/// The format version of plans that this program reads and writes.
const VERSION: u32 = 1;

pub(crate) fn failed(reason: impl Into<String>) -> PolicyError {
    PolicyError::Plan(reason.into())
}

/// The treatment of saved tensors over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[must_use]
pub struct Plan {
    version: u32,
    /// The policy that made it; its stack, processor and number format are those of the run.
    pub policy: String,
    /// Its parameters.
    pub set: BTreeMap<String, String>,
    /// Samples of a mini-batch.
    pub batch: u64,
    /// The memory that it is for.
    pub room: Room,
    /// The nodes of the run's graph, before the fixed decisions change it.
    pub nodes: Vec<PlannedNode>,
    /// Decisions for all iterations.
    pub fixed: Fixed,
    /// Each iteration; later ones repeat the last.
    pub iterations: Vec<PlannedIteration>,
}

/// A node as a plan identifies it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedNode {
    /// Its name.
    pub name: String,
    /// Digest of the tensors that it reads, writes and frees, and of their sizes.
    digest: String,
    /// Its time in nanoseconds when run alone, with the whole mini-batch.
    pub time_ns: u64,
}

/// Decisions for all iterations: see [`Schedule`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixed {
    /// Samples of the first micro-batch.
    pub micro_batch: u64,
    /// Gradients of weights that the graph does not compute.
    pub given_up: Vec<TensorId>,
    /// Tensors that stay until backward ends, although nothing reads them.
    pub held: Vec<TensorId>,
    /// Whether weights and activations have eight bits throughout.
    pub eight_bits: bool,
    /// How quantised tensors are stored.
    pub quantisation: Option<Quantisation>,
    /// Nodes that run on the DSP.
    pub offload: Option<Offload>,
    /// The memory that may be left in use after an operator.
    pub computing_budget: Option<ComputingBudget>,
    /// The statistics that batch normalisations use.
    pub batch_statistics: BatchStatistics,
    /// Whether iterations record the cost of planning ahead.
    pub plans_ahead: bool,
}

/// One iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedIteration {
    /// Samples of the first micro-batch.
    pub micro_batch: u64,
    /// How saved tensors are stored, by tensor, once forward has used them for the last time; others are kept.
    pub treatments: BTreeMap<TensorId, Treatment>,
    /// Further actions, in order.
    pub steps: Vec<Step>,
    /// The number of additional passes over the mini-batch to measure tensors.
    pub rehearsals: u64,
    /// Tensors that keep their scale.
    pub kept_scales: Vec<TensorId>,
    /// The cost of planning ahead, for each request.
    pub planning: Vec<Option<Planning>>,
    /// Operations spent on decisions so far, at its end.
    pub operations: Operations,
}

/// How to hold a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Treatment {
    /// The tensor's name, for readability.
    pub name: String,
    /// Its form.
    pub hold: Holding,
}

/// A further action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The micro-batch, counted from 0; a restarted one counts again.
    pub part: u64,
    /// The node before which it happens, or later.
    pub before: NodeId,
    /// The action.
    pub action: Action,
}

/// An action of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// From here on the tensor is stored in this form.
    Hold(TensorId, Holding),
    /// Memory is short: these give way, in order.
    Relieve(Vec<Relief>),
}

impl Plan {
    /// A plan for the graph, batch and machine of `setting` that keeps everything; a starting point for solvers.
    pub fn keeping_all(setting: &Setting<'_>) -> Self {
        let micro_batch = setting.batch;
        Self {
            version: VERSION,
            policy: PLANNED.to_owned(),
            set: BTreeMap::new(),
            batch: setting.batch,
            room: setting.room,
            nodes: nodes_of(setting),
            fixed: Fixed { micro_batch, ..Fixed::default() },
            iterations: vec![PlannedIteration { micro_batch, ..PlannedIteration::default() }],
        }
    }

    /// Reads the plan in a file.
    ///
    /// # Errors
    /// A file that cannot be read, or is not a plan.
    pub fn read(file: &str) -> Result<Self, PolicyError> {
        let text = fs::read_to_string(file).map_err(|error| failed(format!("{file}: {error}")))?;
        Self::of_text(&text).map_err(|error| match error {
            PolicyError::Plan(reason) => failed(format!("{file}: {reason}")),
            other => other,
        })
    }

    /// Parses the plan in a file's text.
    ///
    /// # Errors
    /// Text that is not a plan, or one of another version.
    pub fn of_text(text: &str) -> Result<Self, PolicyError> {
        let plan: Self = serde_json::from_str(text).map_err(|error| failed(error.to_string()))?;
        let found = plan.version;
        ensure!(found == VERSION, failed(format!("version is {found}; expected {VERSION}")));
        ensure!(!plan.iterations.is_empty(), failed("iterations is empty; expected one at least"));
        Ok(plan)
    }

    /// Bytes of a planner's input when sent elsewhere: the nodes and their times.
    pub(crate) fn profile_bytes(&self) -> Bytes {
        Bytes(serde_json::to_string(&self.nodes).map_or(0, |text| text.len() as u64))
    }

    /// How many of the tensors that are `saved` are treated in each way, counting each by its first treatment.
    pub(crate) fn treatments(&self, saved: &[bool]) -> Treatments {
        let mut treatments = Treatments::default();
        let Some(iteration) = self.iterations.first() else { return treatments };
        let mut first: BTreeMap<TensorId, Holding> = BTreeMap::new();
        let held = iteration.treatments.iter().map(|(&tensor, treatment)| (tensor, treatment.hold));
        let relieved = iteration.reliefs().filter_map(|relief| Some((relief.tensor()?, relief.holding())));
        for (tensor, hold) in held.filter(|(_, hold)| *hold != Holding::Keep).chain(relieved) {
            first.entry(tensor).or_insert(hold);
        }
        for tensor in (0..).zip(saved).filter_map(|(tensor, is_saved)| is_saved.then_some(tensor)) {
            *match first.get(&tensor) {
                None | Some(Holding::Keep) => &mut treatments.kept,
                Some(Holding::Compress | Holding::Quantise(_)) => &mut treatments.compressed,
                Some(Holding::Rematerialise | Holding::Skip) => &mut treatments.recomputed,
                Some(Holding::Swap) => &mut treatments.swapped,
            } += 1;
        }
        treatments
    }

    /// The text of a file with this plan.
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Checks that it is for the graph, batch and machine of `setting`.
    fn check(&self, setting: &Setting<'_>) -> Result<(), PolicyError> {
        let (own, batch) = (self.batch, setting.batch);
        ensure!(own == batch, failed(format!("is for a batch of {own}; this run has one of {batch}")));
        let here = nodes_of(setting);
        let differs = |(planned, found): &(&PlannedNode, &PlannedNode)| planned != found;
        if let Some((planned, found)) = self.nodes.iter().zip(&here).find(differs) {
            let why = if (&planned.name, &planned.digest) != (&found.name, &found.digest) {
                format!("another network: where it has {}, this run has {}", planned.name, found.name)
            } else {
                format!(
                    "another machine: {} takes {} there and {} here",
                    found.name,
                    Nanos(planned.time_ns),
                    Nanos(found.time_ns)
                )
            };
            return Err(failed(format!("is for {why}")));
        }
        let (own, here) = (self.nodes.len(), here.len());
        ensure!(own == here, failed(format!("is for another network: of {own} nodes; this run has {here}")));
        let tensors = setting.graph.tensors.len() as TensorId;
        let bad = self.iterations.iter().flat_map(PlannedIteration::tensors).find(|&tensor| tensor >= tensors);
        bad.map_or(Ok(()), |bad| Err(failed(format!("names tensor {bad}; this graph has {tensors}"))))
    }

    /// The graph that runs; `None` if it is the given one.
    fn graph(&self, setting: &Setting<'_>) -> Result<Option<TrainingGraph>, PolicyError> {
        if self.fixed.eight_bits {
            return Ok(Fixed8.prepare(setting)?.graph);
        }
        let Fixed { given_up, held, .. } = &self.fixed;
        if given_up.is_empty() && held.is_empty() {
            return Ok(None);
        }
        let mut graph = setting.graph.without_gradients(|id| given_up.contains(&id));
        if let Some(last) = graph.nodes.iter_mut().rev().find(|node| node.phase == Phase::Backward) {
            last.releases.extend(held);
        }
        Ok(Some(graph))
    }
}

impl PlannedIteration {
    /// The reliefs, in order.
    fn reliefs(&self) -> impl Iterator<Item = &Relief> {
        self.steps.iter().flat_map(|step| match &step.action {
            Action::Hold(..) => &[],
            Action::Relieve(reliefs) => &reliefs[..],
        })
    }

    /// Every tensor that it names.
    fn tensors(&self) -> impl Iterator<Item = TensorId> {
        let held = self.steps.iter().filter_map(|step| match step.action {
            Action::Hold(tensor, _) => Some(tensor),
            Action::Relieve(_) => None,
        });
        let of_steps = held.chain(self.reliefs().filter_map(Relief::tensor));
        self.treatments.keys().chain(&self.kept_scales).copied().chain(of_steps)
    }
}

/// The nodes of the graph of `setting` as a plan identifies them.
fn nodes_of(setting: &Setting<'_>) -> Vec<PlannedNode> {
    let graph = setting.graph;
    let of_list = |tensors: &[TensorId]| {
        let tensors = tensors.iter().map(|&id| [u64::from(id), graph.tensor(id).bytes.at(setting.batch)]);
        std::iter::once(tensors.len() as u64).chain(tensors.flatten()).collect::<Vec<_>>()
    };
    let node = |(node, &time): (&Node, &Nanos)| {
        let lists = [&node.inputs, &node.outputs, &node.releases].map(|tensors| of_list(tensors));
        let digest = Digest::of([node.phase as u64, node.work.kind as u64].into_iter().chain(lists.concat()));
        PlannedNode { name: node.name.clone(), digest: digest.to_string(), time_ns: time.0 }
    };
    graph.nodes.iter().zip(setting.times()).map(node).collect()
}

/// The tensors that the last node of backward frees.
fn at_the_end(graph: &TrainingGraph) -> &[TensorId] {
    let last = graph.nodes.iter().rfind(|node| node.phase == Phase::Backward);
    last.map_or(&[], |node| &node.releases)
}

/// The progress of an iteration, and how to hold saved tensors from here on.
#[derive(Debug, Default)]
struct Progress {
    part: u64,
    at: NodeId,
    holds: BTreeMap<TensorId, Holding>,
}

impl Progress {
    fn of(iteration: &PlannedIteration) -> Self {
        let holds = iteration.treatments.iter().map(|(&tensor, treatment)| (tensor, treatment.hold));
        Self { holds: holds.collect(), ..Self::default() }
    }

    /// The policy is called at a node; one earlier than the last belongs to the next part.
    fn come_to(&mut self, at: NodeId) {
        self.part += u64::from(at < self.at);
        self.at = at;
    }

    fn hold(&self, tensor: TensorId) -> Holding {
        self.holds.get(&tensor).copied().unwrap_or(Holding::Keep)
    }

    /// Tensors made smaller by a relief stay so in later parts.
    fn relieved(&mut self, reliefs: &[Relief]) {
        for relief in reliefs {
            match *relief {
                Relief::Requantise(tensor, bits) => self.holds.insert(tensor, Holding::Quantise(bits)),
                Relief::Skip(tensor) => self.holds.insert(tensor, Holding::Skip),
                _ => None,
            };
        }
    }

    /// The step of `action` at the current call.
    const fn step(&self, action: Action) -> Step {
        Step { part: self.part, before: self.at, action }
    }
}

/// Carries a plan out.
#[derive(Debug)]
#[must_use]
pub struct Planned {
    plan: Arc<Plan>,
    /// The number of iterations that have begun.
    begun: usize,
    progress: Progress,
    /// The next step of the current iteration.
    next: usize,
}

impl Planned {
    /// Carries out `plan`, which has at least one iteration.
    pub fn new(plan: Plan) -> Self {
        Self { plan: Arc::new(plan), begun: 0, progress: Progress::default(), next: 0 }
    }

    /// The next step of the current iteration, if it is due.
    fn due(&self) -> Option<&Step> {
        let Progress { part, at, .. } = self.progress;
        let step = nth(&self.plan, self.begun)?.steps.get(self.next)?;
        (step.part < part || (step.part == part && step.before <= at)).then_some(step)
    }
}

/// The current iteration, when `begun` iterations have begun.
fn nth(plan: &Plan, begun: usize) -> Option<&PlannedIteration> {
    plan.iterations.get(begun.saturating_sub(1)).or(plan.iterations.last())
}

impl Policy for Planned {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        self.plan.check(setting)?;
        (self.begun, self.next) = (0, 0);
        let fixed = self.plan.fixed.clone();
        let ahead = || Ahead { plan: Arc::clone(&self.plan), asked: 0 };
        Ok(Schedule {
            micro_batch: fixed.micro_batch,
            graph: self.plan.graph(setting)?,
            quantisation: fixed.quantisation,
            offload: fixed.offload,
            computing_budget: fixed.computing_budget,
            batch_statistics: fixed.batch_statistics,
            planner: fixed.plans_ahead.then(|| Box::new(ahead()) as Box<dyn PlanAhead>),
            ..Schedule::default()
        })
    }

    fn begin_iteration(&mut self, plan: &mut IterationPlan) -> Result<(), PolicyError> {
        self.begun += 1;
        let Some(iteration) = nth(&self.plan, self.begun) else { return Ok(()) };
        (self.progress, self.next) = (Progress::of(iteration), 0);
        (plan.micro_batch, plan.rehearsals) = (iteration.micro_batch, iteration.rehearsals);
        iteration.kept_scales.iter().for_each(|&tensor| plan.keep_scale(tensor));
        Ok(())
    }

    fn hold(&mut self, tensor: TensorId, memory: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        self.progress.come_to(memory.at);
        if let Some(&Step { action: Action::Hold(of, holding), .. }) = self.due()
            && of == tensor
        {
            self.next += 1;
            self.progress.holds.insert(tensor, holding);
        }
        Ok(self.progress.hold(tensor))
    }

    fn relieve(&mut self, _want: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        self.progress.come_to(memory.at);
        let Some(Step { action: Action::Relieve(reliefs), .. }) = self.due() else { return Ok(Vec::new()) };
        let reliefs = reliefs.clone();
        self.next += 1;
        self.progress.relieved(&reliefs);
        Ok(reliefs)
    }

    fn end_iteration(&mut self, _seen: &IterationSummary) -> Result<Operations, PolicyError> {
        Ok(nth(&self.plan, self.begun).map(|iteration| iteration.operations).unwrap_or_default())
    }
}

/// Repeats the recorded costs of planning ahead.
#[derive(Debug)]
struct Ahead {
    plan: Arc<Plan>,
    /// The number of calls.
    asked: usize,
}

impl PlanAhead for Ahead {
    fn plan_within(&mut self, _: &TrainingGraph, _: Room, _: &dyn Oracle) -> Result<Option<Planning>, PolicyError> {
        self.asked += 1;
        let all = self.plan.iterations.iter().flat_map(|iteration| iteration.planning.iter().copied());
        Ok(all.into_iter().nth(self.asked - 1).flatten())
    }
}

/// Recorded answers of a planner, shared with the recorder.
type Answers = Arc<Mutex<Vec<Option<Planning>>>>;

/// Calls a planner, and records its answers.
#[derive(Debug)]
struct Overheard {
    planner: Box<dyn PlanAhead>,
    answers: Answers,
}

impl PlanAhead for Overheard {
    fn plan_within(
        &mut self,
        graph: &TrainingGraph,
        room: Room,
        oracle: &dyn Oracle,
    ) -> Result<Option<Planning>, PolicyError> {
        let planning = self.planner.plan_within(graph, room, oracle)?;
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(planning);
        Ok(planning)
    }
}

/// Calls a policy, and records its answers as a plan.
#[must_use]
pub struct Recorder<'p> {
    policy: &'p mut dyn Policy,
    plan: Option<Plan>,
    /// Names of tensors.
    names: Vec<String>,
    progress: Progress,
    answers: Answers,
}

impl<'p> Recorder<'p> {
    /// A recorder of the answers of `policy`.
    pub fn new(policy: &'p mut dyn Policy) -> Self {
        Self { policy, plan: None, names: Vec::new(), progress: Progress::default(), answers: Answers::default() }
    }

    /// The plan, once a run under this has ended.
    ///
    /// # Errors
    /// A run that has not begun.
    pub fn into_plan(self) -> Result<Plan, PolicyError> {
        let mut plan = self.plan.filter(|plan| !plan.iterations.is_empty()).ok_or_else(|| failed("was not begun"))?;
        // Iterations that repeat the previous one up to the end are stored once.
        while let [.., before, last] = &plan.iterations[..]
            && before == last
        {
            plan.iterations.pop();
        }
        Ok(plan)
    }

    fn iteration(&mut self) -> Result<&mut PlannedIteration, PolicyError> {
        let last = self.plan.as_mut().and_then(|plan| plan.iterations.last_mut());
        last.ok_or_else(|| failed("was not begun"))
    }
}

impl Policy for Recorder<'_> {
    fn prepare(&mut self, setting: &Setting<'_>) -> Result<Schedule, PolicyError> {
        let mut schedule = self.policy.prepare(setting)?;
        if schedule.budget_rule.is_some() || schedule.precision.is_some() {
            return Err(failed(
                "cannot be written: a plan is for one budget, and here a rule decides it before each round",
            ));
        }
        let mut plan = Plan { iterations: Vec::new(), ..Plan::keeping_all(setting) };
        if let Some(graph) = &schedule.graph {
            let (all, kept) = (setting.graph.applied_gradients(), graph.applied_gradients());
            plan.fixed.given_up = all.difference(&kept).copied().collect();
            let sizes = |graph: &TrainingGraph| graph.tensors.iter().map(|tensor| tensor.bytes).collect::<Vec<_>>();
            plan.fixed.eight_bits = sizes(graph) != sizes(setting.graph);
            let before = plan.graph(setting)?;
            let before = at_the_end(before.as_ref().unwrap_or(setting.graph)).len();
            plan.fixed.held = at_the_end(graph).get(before..).unwrap_or_default().to_vec();
            let is_same = plan.graph(setting)?.is_none_or(|again| {
                let nodes = graph.nodes.iter().zip(&again.nodes);
                let same =
                    |(own, other): (&Node, &Node)| (&own.outputs, &own.releases) == (&other.outputs, &other.releases);
                graph.nodes.len() == again.nodes.len() && nodes.into_iter().all(same) && sizes(graph) == sizes(&again)
            });
            ensure!(is_same, failed("cannot be written: the policy changes the graph in a way that no plan says"));
        }
        plan.fixed = Fixed {
            micro_batch: schedule.micro_batch,
            quantisation: schedule.quantisation,
            offload: schedule.offload.clone(),
            computing_budget: schedule.computing_budget,
            batch_statistics: schedule.batch_statistics,
            plans_ahead: schedule.planner.is_some(),
            ..plan.fixed
        };
        self.names = setting.graph.tensors.iter().map(|tensor| tensor.name.clone()).collect();
        self.plan = Some(plan);
        let answers = Arc::clone(&self.answers);
        let overheard = |planner| Box::new(Overheard { planner, answers }) as Box<dyn PlanAhead>;
        schedule.planner = schedule.planner.map(overheard);
        Ok(schedule)
    }

    fn begin_iteration(&mut self, plan: &mut IterationPlan) -> Result<(), PolicyError> {
        self.policy.begin_iteration(plan)?;
        self.progress = Progress::default();
        let mut kept_scales: Vec<TensorId> = plan.kept_scales().collect();
        kept_scales.sort_unstable();
        let (micro_batch, rehearsals) = (plan.micro_batch, plan.rehearsals);
        let iteration = PlannedIteration { micro_batch, rehearsals, kept_scales, ..PlannedIteration::default() };
        self.plan.iter_mut().for_each(|plan| plan.iterations.push(iteration.clone()));
        Ok(())
    }

    fn hold(&mut self, tensor: TensorId, memory: &MemoryView<'_>) -> Result<Holding, PolicyError> {
        let holding = self.policy.hold(tensor, memory)?;
        self.progress.come_to(memory.at);
        let known = self.progress.holds.insert(tensor, holding);
        let step = self.progress.step(Action::Hold(tensor, holding));
        let name = self.names.get(tensor as usize).cloned().unwrap_or_default();
        let iteration = self.iteration()?;
        if known.is_none() {
            iteration.treatments.insert(tensor, Treatment { name, hold: holding });
        } else if known != Some(holding) {
            iteration.steps.push(step);
        }
        Ok(holding)
    }

    fn relieve(&mut self, want: Want, memory: &MemoryView<'_>) -> Result<Vec<Relief>, PolicyError> {
        let reliefs = self.policy.relieve(want, memory)?;
        if reliefs.is_empty() && self.iteration().is_err() {
            // Memory is short before the first iteration.
            return Ok(reliefs);
        }
        self.progress.come_to(memory.at);
        self.progress.relieved(&reliefs);
        let step = self.progress.step(Action::Relieve(reliefs.clone()));
        self.iteration()?.steps.push(step);
        Ok(reliefs)
    }

    fn end_iteration(&mut self, seen: &IterationSummary) -> Result<Operations, PolicyError> {
        let operations = self.policy.end_iteration(seen)?;
        let planning = std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner));
        let iteration = self.iteration()?;
        (iteration.operations, iteration.planning) = (operations, planning);
        Ok(operations)
    }

    fn learned(&self) -> crate::Learned {
        self.policy.learned()
    }
}
