//! A plan of what becomes of every saved tensor, as a run recorded it or a solver made it; and `planned`, the policy that
//! carries one out.
//!
//! ```text
//! any policy ─► Recorder ─► executor ─► Plan (JSON) ─► Planned ─► executor: the same run again, event by event
//! a solver ───────────────────────────► Plan ────────► Planned ─► executor: its time and peak
//! ```
//!
//! A plan is for one graph, batch and machine, and says of them how each node looked and how long it took. It holds what was
//! fixed before the first iteration, and for each iteration the micro-batch, the treatment of saved tensors, and in steps
//! what else was answered, each before the node at which it was asked. Iterations after its last one are as that.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use haversack_devices::calibration::Digest;
use haversack_devices::{Bytes, Nanos, ensure};
use haversack_workloads::{Node, NodeId, Phase, Role, TensorId, TrainingGraph};
use serde::{Deserialize, Serialize};

use crate::fixed8::Fixed8;
use crate::planning::{Operations, Planning, Room, Treatments};
use crate::{
    BatchStatistics, ComputingBudget, Holding, IterationPlan, IterationSummary, MemoryView, Offload, Oracle, PlanAhead,
    Policy, PolicyError, Quantisation, Relief, Schedule, Setting, Want,
};

/// The policy that carries plans out; whoever has solved for one goes by this name too.
pub const PLANNED: &str = "planned";

/// The form of a plan that this program reads and writes.
const VERSION: u32 = 1;

pub(crate) fn failed(reason: impl Into<String>) -> PolicyError {
    PolicyError::Plan(reason.into())
}

/// What becomes of saved tensors, and when.
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
    /// The nodes of the run's graph, before what is fixed changes it.
    pub nodes: Vec<PlannedNode>,
    /// What holds for all iterations.
    pub fixed: Fixed,
    /// Each iteration; those after the last are as that.
    pub iterations: Vec<PlannedIteration>,
}

/// A node as a plan knows it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedNode {
    /// Its name.
    pub name: String,
    /// Of what it reads, writes and sets free, and how large that is.
    digest: String,
    /// Nanoseconds that it takes alone, with the whole mini-batch.
    pub time_ns: u64,
}

/// What holds for all iterations: see [`Schedule`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixed {
    /// Samples of the first micro-batch.
    pub micro_batch: u64,
    /// Gradients of weights without which the graph runs.
    pub given_up: Vec<TensorId>,
    /// Tensors that are held until backward ends, though nobody reads them.
    pub held: Vec<TensorId>,
    /// Whether weights and activations have eight bits throughout.
    pub eight_bits: bool,
    /// How quantised tensors are stored.
    pub quantisation: Option<Quantisation>,
    /// What runs on the DSP.
    pub offload: Option<Offload>,
    /// What may be left in use after an operator.
    pub computing_budget: Option<ComputingBudget>,
    /// Whose statistics batch normalisations take.
    pub batch_statistics: BatchStatistics,
    /// Whether iterations say what planning ahead took.
    pub plans_ahead: bool,
}

/// One iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedIteration {
    /// Samples of the first micro-batch.
    pub micro_batch: u64,
    /// How saved tensors are held, by tensor, where forward has used them for the last time; others are kept.
    pub treatments: BTreeMap<TensorId, Treatment>,
    /// What is done beside that, in order.
    pub steps: Vec<Step>,
    /// So often is the mini-batch carried through once more to measure tensors.
    pub rehearsals: u64,
    /// Tensors that keep their scale.
    pub kept_scales: Vec<TensorId>,
    /// What planning ahead took, each time that it was asked for.
    pub planning: Vec<Option<Planning>>,
    /// What deciding has taken by its end.
    pub operations: Operations,
}

/// How a tensor is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Treatment {
    /// The tensor's name, for people.
    pub name: String,
    /// How.
    pub hold: Holding,
}

/// What is done besides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The micro-batch, from 0; one that has begun again counts again.
    pub part: u64,
    /// The node before which it is done, or later.
    pub before: NodeId,
    /// What.
    pub action: Action,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// From here on the tensor is held so.
    Hold(TensorId, Holding),
    /// Memory is wanted: this gives way, in order.
    Relieve(Vec<Relief>),
}

impl Plan {
    /// One for the graph, batch and machine of `setting` that keeps everything; a solver goes on from there.
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

    /// The plan in a file.
    ///
    /// # Errors
    /// A file that cannot be read, or holds none.
    pub fn read(file: &str) -> Result<Self, PolicyError> {
        let text = fs::read_to_string(file).map_err(|error| failed(format!("{file}: {error}")))?;
        Self::of_text(&text).map_err(|error| match error {
            PolicyError::Plan(reason) => failed(format!("{file}: {reason}")),
            other => other,
        })
    }

    /// The plan that a file's text holds.
    ///
    /// # Errors
    /// Text that holds none, or one of another version.
    pub fn of_text(text: &str) -> Result<Self, PolicyError> {
        let plan: Self = serde_json::from_str(text).map_err(|error| failed(error.to_string()))?;
        let found = plan.version;
        ensure!(found == VERSION, failed(format!("version is {found}; expected {VERSION}")));
        ensure!(!plan.iterations.is_empty(), failed("iterations is empty; expected one at least"));
        Ok(plan)
    }

    /// Bytes of what a planner elsewhere has to be told: the nodes and their times.
    pub(crate) fn profile_bytes(&self) -> Bytes {
        Bytes(serde_json::to_string(&self.nodes).map_or(0, |text| text.len() as u64))
    }

    /// How many of the tensors that are `saved` go which way, each by its first.
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

    /// The text of a file with it.
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

    /// The graph that runs; `None` for the one that was given.
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
    /// What gives way, in order.
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

/// The nodes of the graph of `setting` as a plan knows them again.
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

/// What the last node of backward sets free.
fn at_the_end(graph: &TrainingGraph) -> &[TensorId] {
    let last = graph.nodes.iter().rfind(|node| node.phase == Phase::Backward);
    last.map_or(&[], |node| &node.releases)
}

/// The gradients of weights that `graph` applies.
fn applied(graph: &TrainingGraph) -> BTreeSet<TensorId> {
    let updates = graph.nodes.iter().filter(|node| node.phase == Phase::Update);
    let read = updates.flat_map(|node| node.inputs.iter().copied());
    read.filter(|&id| graph.tensor(id).role == Role::ParameterGradient).collect()
}

/// How far an iteration has come, and how saved tensors are held from here on.
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

    /// A question comes; one from an earlier node than the last is of the next part.
    fn come_to(&mut self, at: NodeId) {
        self.part += u64::from(at < self.at);
        self.at = at;
    }

    fn hold(&self, tensor: TensorId) -> Holding {
        self.holds.get(&tensor).copied().unwrap_or(Holding::Keep)
    }

    /// What is made smaller by a relief stays so in later parts.
    fn relieved(&mut self, reliefs: &[Relief]) {
        for relief in reliefs {
            match *relief {
                Relief::Requantise(tensor, bits) => self.holds.insert(tensor, Holding::Quantise(bits)),
                Relief::Skip(tensor) => self.holds.insert(tensor, Holding::Skip),
                _ => None,
            };
        }
    }

    /// The step of `action` at the question under way.
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
    /// The next step of the iteration under way.
    next: usize,
}

impl Planned {
    /// That of `plan`, which has an iteration at least.
    pub fn new(plan: Plan) -> Self {
        Self { plan: Arc::new(plan), begun: 0, progress: Progress::default(), next: 0 }
    }

    /// The iteration under way, and the next of its steps if that is due by now.
    fn due(&self) -> Option<&Step> {
        let Progress { part, at, .. } = self.progress;
        let step = nth(&self.plan, self.begun)?.steps.get(self.next)?;
        (step.part < part || (step.part == part && step.before <= at)).then_some(step)
    }
}

/// The iteration with which `begun` have begun.
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

/// Says again what planning ahead took.
#[derive(Debug)]
struct Ahead {
    plan: Arc<Plan>,
    /// How often it was asked.
    asked: usize,
}

impl PlanAhead for Ahead {
    fn plan_within(&mut self, _: &TrainingGraph, _: Room, _: &dyn Oracle) -> Result<Option<Planning>, PolicyError> {
        self.asked += 1;
        let all = self.plan.iterations.iter().flat_map(|iteration| iteration.planning.iter().copied());
        Ok(all.into_iter().nth(self.asked - 1).flatten())
    }
}

/// What a planner has answered, for who writes it down.
type Answers = Arc<Mutex<Vec<Option<Planning>>>>;

/// Asks a planner, and writes down what it says.
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

/// Asks a policy, and writes what it answers down as a plan.
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
    /// Of what `policy` answers.
    pub fn new(policy: &'p mut dyn Policy) -> Self {
        Self { policy, plan: None, names: Vec::new(), progress: Progress::default(), answers: Answers::default() }
    }

    /// The plan, once a run under this has ended.
    ///
    /// # Errors
    /// A run that has not begun.
    pub fn into_plan(self) -> Result<Plan, PolicyError> {
        let mut plan = self.plan.filter(|plan| !plan.iterations.is_empty()).ok_or_else(|| failed("was not begun"))?;
        // What repeats the iteration before it to the end is said once.
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
            let (all, kept) = (applied(setting.graph), applied(graph));
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
