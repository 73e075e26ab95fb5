//! `haversack simulate`: one run, as text or as JSON.

mod phone;
mod text;

use std::path::PathBuf;

use clap::Args;
use haversack_devices::{Bytes, Nanos, OperatorKind};
use haversack_reports::write_atomically;
use haversack_training::{Observe, OperatorTime, PeakReport, PhoneTrack, Record, RunError, Wall};
use haversack_workloads::TrainingGraph;
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::checked::doubt;
use crate::output::{Format, Plot, check_apart, new_file, note, print, print_json, warn};
use crate::quantities;
use crate::run::{PlanError, Results, share};
use crate::scenario::{ScenarioFlags, workload};
use crate::{Cache, CommandError, Plan};

/// The options of `simulate`.
#[derive(Clone, Debug, Args)]
#[command(after_help = include_str!("../help/simulate.txt"))]
pub struct SimulateOptions {
    /// Scenario file; flags override its keys
    #[arg(value_name = "SCENARIO.toml")]
    pub file: Option<PathBuf>,
    /// Scenario keys given as flags.
    #[command(flatten)]
    pub scenario: ScenarioFlags,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Outputs in addition to the results
    #[command(flatten)]
    pub asked: Asked,
}

/// Outputs in addition to the results of a run.
#[derive(Clone, Debug, Default, Args)]
pub struct Asked {
    /// Write every operator and the memory to FILE, for chrome://tracing or Perfetto
    #[arg(long, value_name = "FILE", value_parser = new_file)]
    pub timeline: Option<PathBuf>,
    /// Plot the memory of a phone in use over time, with stalls, launches and kills, to FILE (.svg or .png)
    #[arg(long, value_name = "FILE")]
    pub plot: Option<Plot>,
    /// Write the policy's actions to FILE, to repeat with `--policy planned --set plan=FILE`
    #[arg(long, value_name = "FILE", value_parser = new_file)]
    pub plan: Option<PathBuf>,
    /// List the ten largest tensors at the peak, and the operator there
    #[arg(long)]
    pub explain: bool,
    /// Also print the smallest memory budget that works
    #[arg(long)]
    pub least_memory: bool,
}

/// A finished simulation, with everything that is reported about it.
#[must_use]
pub struct Simulation {
    ended: Ended,
    /// Caveats of the results, one sentence each.
    pub remarks: Vec<Remark>,
}

/// The outcome of a run.
enum Ended {
    Ran(Box<Simulated>),
    /// The low-memory killer ended every attempt: a valid answer, without figures.
    Killed(Box<Plan>, RunError),
}

/// A sentence about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// A fact that the results depend on.
    Note(String),
    /// A surprise for the user.
    Warning(String),
}

/// The results of a run.
struct Simulated {
    plan: Plan,
    record: Record,
    results: Results,
    longest: Vec<Longest>,
    /// The time of each module, with `--explain`.
    modules: Vec<(String, Nanos)>,
    least_memory: Option<Bytes>,
}

/// Simulates the scenario and prints the result.
///
/// # Errors
/// As [`Plan::new`] and [`simulate`]; a time budget that is exceeded, after the result is printed.
pub fn run(options: &SimulateOptions) -> Result<(), CommandError> {
    let cache = Cache::new();
    let (file, asked) = (options.file.as_deref(), &options.asked);
    let scenario = options.scenario.over(file)?;
    let [timeline, plan] = [&asked.timeline, &asked.plan].map(Option::as_deref);
    let plot = asked.plot.as_ref().map(Plot::path);
    check_apart([("--timeline", timeline), ("--plan", plan), ("--plot", plot)], scenario.names(file))?;
    let plan = Plan::new(&scenario, &cache)?;
    for sentence in &plan.resolved.notes {
        note(sentence);
    }
    let simulation = simulate(plan, &options.asked, &cache)?;
    for remark in &simulation.remarks {
        match remark {
            Remark::Note(sentence) => note(sentence),
            Remark::Warning(sentence) => warn(sentence),
        }
    }
    match options.format {
        Format::Json => {
            print_json(&Value::Object(simulation.to_json()))?;
            simulation.doubt().iter().for_each(|doubt| note(doubt));
        }
        Format::Text => print(&simulation.to_text(&cache))?,
    }
    simulation.missed().map_or(Ok(()), Err)
}

/// Simulates `plan`, within the memory of its device.
///
/// # Errors
/// Budgets, or a memory of the device, that no plan meets, with the least that works; a run that fails; a timeline that
/// cannot be written.
pub fn simulate(mut plan: Plan, asked: &Asked, cache: &Cache) -> Result<Simulation, CommandError> {
    let timeline = asked.timeline.is_some();
    if asked.plot.is_some() && plan.resolved.phone.is_none() {
        return Err(CommandError::input(
            "--plot draws a phone in use: --system android makes it one, --apps gives it apps",
        ));
    }
    plan.observe = Observe { timeline, phone: true, peak: asked.explain, operators: true, stored: false };
    let mut recorded = None;
    let record = match &asked.plan {
        Some(file) => plan.run_recorded(cache).map(|(record, plan)| {
            recorded = Some((file, plan));
            record
        }),
        None => plan.run_within_device(cache),
    };
    let record = match record {
        Ok(record) => record,
        Err(error @ RunError::Killed { .. }) => {
            if let RunError::Killed { track: Some(track), .. } = &error {
                draw(asked, &plan, track, None)?;
            }
            return Ok(Simulation { ended: Ended::Killed(Box::new(plan), error), remarks: Vec::new() });
        }
        Err(error) => return Err(plan.explain_failure(error, cache).into()),
    };
    if let Some((file, plan)) = recorded {
        write_atomically(file, plan.to_text().as_bytes())?;
    }
    let mut remarks = Vec::new();
    let budgets = &plan.budgets;
    let changing = [&budgets.walls, &budgets.activation_walls, &budgets.traced];
    if asked.least_memory && changing.iter().any(|walls| !walls.is_empty()) {
        let sentence = "the least memory budget is of a run whose budget does not change";
        remarks.push(Remark::Note(sentence.to_owned()));
    }
    let least_memory = if asked.least_memory { Some(plan.least_memory().map_err(PlanError::Run)?) } else { None };
    if let (Some(path), Some(timeline)) = (&asked.timeline, &record.timeline) {
        write_atomically(path, timeline.to_chrome_json(&plan.graph).to_string().as_bytes())?;
    }
    if let Some(track) = &record.track {
        draw(asked, &plan, track, short_trace(&plan, &record))?;
    }
    remarks.extend(late_walls(&plan, &record));
    remarks.extend(short_trace(&plan, &record));
    if plan.scenario().ignore_ram && plan.exceeds_ram(plan.footprint(&record)) {
        let (peak, device) = (record.peak_memory, &plan.resolved.device);
        remarks.push(Remark::Warning(format!(
            "{peak} are more than the {} that {} leaves",
            device.available(),
            device.id
        )));
    }
    let (results, longest) = (Results::new(&plan, &record), longest_of(&plan.graph, &record));
    let modules = if asked.explain { modules_of(&plan.graph, &record) } else { Vec::new() };
    let simulated = Simulated { plan, record, results, longest, modules, least_memory };
    Ok(Simulation { ended: Ended::Ran(Box::new(simulated)), remarks })
}

/// Draws the phone during the run, if requested; `short` is the remark about a trace that is too short.
fn draw(asked: &Asked, plan: &Plan, track: &PhoneTrack, short: Option<Remark>) -> Result<(), CommandError> {
    let is_long_enough = track.samples.last().is_some_and(|sample| sample.at > Nanos::ZERO);
    let Some(plot) = asked.plot.as_ref().filter(|_| is_long_enough) else { return Ok(()) };
    let scenario = plan.scenario();
    let (model, found) = (workload::called(&scenario.model), phone::finding(track));
    let title = format!("{model} on {} in use: {found}", scenario.device);
    let mut note = format!("batch {}, policy {}", scenario.batch, scenario.policy);
    if let Some(Remark::Note(sentence) | Remark::Warning(sentence)) = short {
        note = format!("{note}; {sentence}");
    }
    plot.draw(&phone::figure(track, title).note(note))
}

/// Remarks on budget changes that never took effect, because the iteration or the run ended before.
fn late_walls(plan: &Plan, record: &Record) -> Vec<Remark> {
    let budgets = &plan.budgets;
    let walls = || budgets.walls.iter().chain(&budgets.activation_walls);
    // A run is not expected to reach the end of a recorded trace.
    let traced: &[Wall] = if plan.resolved.covered.is_some() { &[] } else { &budgets.traced };
    let late = walls().filter(|wall| wall.at >= record.iteration).count();
    let late_of_trace = traced.iter().filter(|wall| wall.at >= record.ended).count();
    let of_iteration = (late, walls().count(), "iteration", record.iteration);
    let of_run = (late_of_trace, traced.len(), "run", record.ended);
    let remark = |(late, all, what, ended)| {
        let ended = quantities::time(ended);
        Remark::Note(format!(
            "{late} of {all} changes of the budget come after the {what} has ended, at {ended}, and never hold"
        ))
    };
    [of_iteration, of_run].into_iter().filter(|(late, ..)| *late > 0).map(remark).collect()
}

/// The remark that a trace ended before the run did.
fn short_trace(plan: &Plan, record: &Record) -> Option<Remark> {
    let covered = plan.resolved.covered.as_ref().filter(|covered| covered.held(record.ended) > Nanos::ZERO)?;
    let (length, ended) = (quantities::time(covered.length), quantities::time(record.ended));
    Some(Remark::Warning(format!("the trace covers {length} of a run of {ended}; after its end the last values stay")))
}

impl Simulation {
    /// The run as JSON.
    pub fn to_json(&self) -> Map<String, Value> {
        let simulated = match &self.ended {
            Ended::Ran(simulated) => simulated,
            Ended::Killed(plan, error) => {
                let scenario = plan.scenario().to_json(plan.budget_bytes());
                let killed = json!({"status": "killed", "reason": error.to_string(), "scenario": scenario});
                return killed.as_object().cloned().unwrap_or_default();
            }
        };
        let mut map = simulated.results.to_json();
        map.insert("status".to_owned(), json!("ok"));
        let plan = &simulated.plan;
        map.insert("scenario".to_owned(), Value::Object(plan.scenario().to_json(plan.budget_bytes())));
        map.insert("longest".to_owned(), simulated.longest.iter().map(Longest::to_json).collect());
        if let Some(bytes) = simulated.least_memory {
            map.insert("least_memory_bytes".to_owned(), json!(bytes.0));
        }
        if let (Some(track), Some(Value::Object(of_phone))) = (&simulated.record.track, map.get_mut("phone")) {
            of_phone.extend(phone::json(track).map(|(key, value)| (key.to_owned(), value)));
        }
        if let Some(peak) = &simulated.record.peak {
            map.insert("peak".to_owned(), peak_json(peak));
            let of_module = |(name, time): &(String, Nanos)| {
                let share = share(*time, simulated.record.iteration);
                json!({"module": name, "time_s": time.seconds(), "share": share})
            };
            map.insert("modules".to_owned(), simulated.modules.iter().map(of_module).collect());
        }
        map
    }

    /// The run as text, with its comparison to the baseline.
    fn to_text(&self, cache: &Cache) -> String {
        match &self.ended {
            Ended::Killed(_, error) => format!("{error}\n"),
            Ended::Ran(simulated) => {
                let plan = &simulated.plan;
                let time =
                    || Plan::new(&plan.baseline(), cache)?.run().map(|record| record.iteration).map_err(PlanError::Run);
                let baseline = (!plan.is_baseline()).then(time);
                simulated.to_text(Value::Object(self.to_json()), baseline.as_ref())
            }
        }
    }

    /// The note under the results if no measurement has checked this device and stack.
    pub fn doubt(&self) -> Option<String> {
        if let Ended::Ran(simulated) = &self.ended { doubt(&simulated.plan) } else { None }
    }

    /// The error that the iteration exceeds the time budget, if it does.
    pub fn missed(&self) -> Option<CommandError> {
        let Ended::Ran(simulated) = &self.ended else { return None };
        let (took, budget) = (simulated.record.iteration, simulated.plan.budgets.time?);
        let says = || format!("the iteration takes {took}, more than the time budget of {budget}");
        (took > budget).then(|| CommandError::NoPlan(says()))
    }
}

fn peak_json(peak: &PeakReport) -> Value {
    let largest = peak.largest.iter().map(|held| json!({"name": held.name, "bytes": held.bytes.0, "hold": held.hold}));
    json!({"node": peak.node, "micro_batch": peak.micro_batch, "largest": largest.collect::<Vec<_>>()})
}

/// Most modules listed, unless the first parts of their names are more.
const MODULES: usize = 24;

/// The time of the operators of `record`, a run of `graph`, by module: the parts of their names down to the deepest level
/// with at most [`MODULES`] names, in the order of execution.
fn modules_of(graph: &TrainingGraph, record: &Record) -> Vec<(String, Nanos)> {
    let sums = |depth: usize| {
        let mut sums: IndexMap<&str, Nanos> = IndexMap::new();
        for operator in &record.operators {
            let name = graph.nodes.get(operator.node as usize).map_or("", |node| node.name.as_str());
            let end = name.match_indices('.').nth(depth).map_or(name.len(), |(end, _)| end);
            *sums.entry(&name[..end]).or_default() += operator.time;
        }
        sums
    };
    let deepest = (1..LISTED).map(sums).take_while(|sums| sums.len() <= MODULES).last();
    deepest.unwrap_or_else(|| sums(0)).into_iter().map(|(name, time)| (name.to_owned(), time)).collect()
}

/// The number of operators listed.
const LISTED: usize = 10;

/// An operator that takes long.
struct Longest {
    name: String,
    kind: OperatorKind,
    phase: &'static str,
    /// How often it ran.
    times: u64,
    time: Nanos,
    /// Its fraction of the iteration.
    share: f64,
    bound_by: &'static str,
}

/// The operators of `record`, a run of `graph`, that take longest; of equal ones the first of the graph.
fn longest_of(graph: &TrainingGraph, record: &Record) -> Vec<Longest> {
    let mut operators: Vec<&OperatorTime> = record.operators.iter().collect();
    operators.sort_by_key(|operator| std::cmp::Reverse(operator.time));
    let named = |operator: &OperatorTime| {
        let node = graph.nodes.get(operator.node as usize)?;
        Some(Longest {
            name: node.name.clone(),
            kind: node.work.kind,
            phase: node.phase.into(),
            times: operator.times,
            time: operator.time,
            share: share(operator.time, record.iteration),
            bound_by: operator.bound_by.longest(),
        })
    };
    operators.into_iter().take(LISTED).filter_map(named).collect()
}

impl Longest {
    fn to_json(&self) -> Value {
        let Self { name, kind, phase, times, time, share, bound_by } = self;
        json!({
            "name": name, "kind": kind.name(), "phase": phase, "times": times, "time_s": time.0 as f64 / 1e9,
            "share": share, "bound_by": bound_by,
        })
    }
}
