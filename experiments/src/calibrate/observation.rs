//! What constants are fitted to: something that was measured, and what simulates it.

use serde::Deserialize;

use haversack_devices::processor::Usage;
use haversack_devices::units::Nanos;
use haversack_training::Record;
use haversack_workloads::Phase;
use haversack_workloads::lowering::Variant;

use super::declared::{Calibration, Files, Observations};
use super::paper::Paper;
use super::{fedhybrid, gpu_steps, mandheling, phone_inference};
use crate::artefacts::daf::table2;
use crate::cache::Cache;
use crate::error::CommandError;
use crate::papers::reference::ReferenceRow;
use crate::run::Plan;
use crate::scenario::Scenario;

const TIMINGS: &str = "experiments/reference/server-core.csv";
const TIMINGS_TEXT: &str = include_str!("../../reference/server-core.csv");

/// The files of rows that are no paper's, with their texts.
pub const FILES: [(&str, &str); 3] = [
    (TIMINGS, TIMINGS_TEXT),
    (gpu_steps::STEPS, gpu_steps::STEPS_TEXT),
    (phone_inference::TIMES, phone_inference::TIMES_TEXT),
];

/// The part of an iteration that was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// From the samples to the loss.
    Forward,
    /// From the loss to the gradients.
    Backward,
    /// All of it, the update included.
    #[serde(skip)]
    Iteration,
    /// All of it but packing and unpacking.
    #[serde(skip)]
    BesidePacking,
    /// Packing, unpacking and waiting for them.
    #[serde(skip)]
    Packing,
}

impl Part {
    fn holds(self, phase: Phase) -> bool {
        match self {
            Self::Forward => phase == Phase::Forward,
            Self::Backward => phase == Phase::Backward,
            Self::Iteration | Self::BesidePacking | Self::Packing => true,
        }
    }
}

/// A value under the constants of some files.
pub type Simulated = dyn Fn(&Files) -> f64 + Send + Sync;

/// What simulates an observation under the constants of some files.
pub enum Measure {
    /// The seconds of a part of an iteration: the sum of its operators', which is the executor's where nothing is short.
    Time(Part, Box<Plan>),
    /// The seconds of an iteration as the executor has them, the mean over some runs.
    Run(Vec<Plan>),
    /// The joules of an iteration on a CPU, from the sum of its operators.
    EnergyOfSum(Box<Plan>),
    /// The joules of an iteration as the executor has them, likewise.
    Energy(Vec<Plan>),
    /// Anything else.
    Other(Box<Simulated>),
}

/// Something that was observed.
pub struct Observation {
    /// What people call it.
    pub id: String,
    /// The value.
    pub observed: f64,
    /// The unit of the value.
    pub unit: &'static str,
    /// What simulates it.
    pub measure: Measure,
}

impl Observation {
    /// Of a row of the reference.
    pub(super) fn of(row: &ReferenceRow, observed: f64, unit: &'static str, measure: Measure) -> Self {
        Self { id: row.id.clone(), observed, unit, measure }
    }

    /// A time.
    pub(super) fn time(id: impl Into<String>, seconds: f64, part: Part, plan: Plan) -> Self {
        Self { id: id.into(), observed: seconds, unit: "s", measure: Measure::Time(part, Box::new(plan)) }
    }

    /// The value under `files`; infinite if that cannot run.
    pub fn simulated(&self, files: &Files) -> f64 {
        // Another device than the one whose constants are fitted stays as it is.
        let device = |plan: &Plan| {
            let own = &plan.machine().device;
            if own.id == files.device.id { files.device.clone() } else { own.clone() }
        };
        let machine = |plan: &Plan| plan.machine().under(device(plan), files.stack.clone());
        let run = |plan: &Plan| -> Option<Record> { plan.run_on(&machine(plan).ok()?).ok() };
        let simulated = match &self.measure {
            Measure::Time(part @ (Part::BesidePacking | Part::Packing), plan) => run(plan).map(|record| {
                let (beside, packing) = table2::parts(&record);
                if *part == Part::Packing { packing.seconds() } else { beside.seconds() }
            }),
            Measure::Time(part, plan) => machine(plan).ok().map(|machine| {
                let scenario = plan.scenario();
                let timed = plan.graph.nodes.iter().enumerate().filter(|(_, node)| part.holds(node.phase));
                let cost = |id| machine.cost(&plan.graph, id, scenario.batch, scenario.precision).alone();
                timed.map(|(id, _)| cost(id)).sum::<Nanos>().seconds()
            }),
            Measure::EnergyOfSum(plan) => machine(plan).ok().map(|machine| {
                let scenario = plan.scenario();
                let cost = |id| machine.cost(&plan.graph, id, scenario.batch, scenario.precision);
                let mut usage = Usage::default();
                for cost in (0..plan.graph.nodes.len()).map(cost) {
                    usage.span += cost.alone();
                    usage.dram += cost.dram;
                }
                usage.cpu_busy = usage.span;
                machine.device.power(machine.cores(), &machine.stack).energy(&usage).total().0
            }),
            Measure::Run(plans) => mean(plans.iter().map(|plan| Some(run(plan)?.iteration.seconds()))),
            Measure::Energy(plans) => mean(plans.iter().map(|plan| Some(run(plan)?.energy.0))),
            Measure::Other(simulated) => Some(simulated(files)),
        };
        simulated.unwrap_or(f64::INFINITY)
    }
}

/// The mean of what every run gives; `None` if one gives nothing.
fn mean(values: impl ExactSizeIterator<Item = Option<f64>>) -> Option<f64> {
    let count = values.len().max(1);
    Some(values.sum::<Option<f64>>()? / count as f64)
}

/// The observations that `calibration` names.
///
/// # Errors
/// An embedded file that is wrong, or a scenario that does not run.
pub fn of(calibration: &Calibration) -> Result<Vec<Observation>, CommandError> {
    match calibration.observations {
        Observations::PytorchTimings => pytorch_timings(calibration),
        Observations::SageTable1 => sage_table1(calibration),
        Observations::DafTable2 => daf_table2(),
        Observations::MandhelingOperators => mandheling::operators(),
        Observations::MandhelingSteps => mandheling::steps(),
        Observations::MandhelingCpu => mandheling::cpu(),
        Observations::MandhelingCpuEnergy => mandheling::energy(false),
        Observations::MandhelingDsp => mandheling::dsp(),
        Observations::MandhelingDspEnergy => mandheling::energy(true),
        Observations::FedhybridFigure2 => fedhybrid::reclaim(),
        Observations::GpuSteps => gpu_steps::rows(calibration, "fit"),
        Observations::PhoneInference => phone_inference::rows(calibration, "fit"),
    }
}

/// The rows of role `check` beside those that are fitted, of observations that belong to no paper; the papers'
/// are shown by `reproduce`.
///
/// # Errors
/// As [`of`].
pub fn checks(calibration: &Calibration) -> Result<Vec<Observation>, CommandError> {
    match calibration.observations {
        Observations::GpuSteps => gpu_steps::rows(calibration, "check"),
        Observations::PhoneInference => phone_inference::rows(calibration, "check"),
        _ => Ok(Vec::new()),
    }
}

fn scenario(calibration: &Calibration, model: &str, batch: u64) -> Scenario {
    Scenario { stack: Some(calibration.stack.clone()), batch, ..Scenario::new(&calibration.device, model) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Timing {
    model: String,
    batch: u64,
    phase: Part,
    seconds: f64,
    #[serde(rename = "source")]
    _source: String,
}

fn pytorch_timings(calibration: &Calibration) -> Result<Vec<Observation>, CommandError> {
    let cache = Cache::new();
    let mut observations = Vec::new();
    for timing in csv::Reader::from_reader(TIMINGS_TEXT.as_bytes()).deserialize() {
        let timing: Timing = timing.map_err(|error| CommandError::failed(format!("{TIMINGS}: {error}")))?;
        let phase = if timing.phase == Part::Forward { "forward" } else { "backward" };
        let plan = Plan::new(&scenario(calibration, &timing.model, timing.batch), &cache)?;
        observations.push(Observation::time(format!("{}/{phase}", timing.model), timing.seconds, timing.phase, plan));
    }
    Ok(observations)
}

/// The latencies of the rows that may be fitted, under the readings that are declared for them.
fn sage_table1(calibration: &Calibration) -> Result<Vec<Observation>, CommandError> {
    let paper = Paper::load("sage")?;
    let batch = paper.number("table1", "latency-batch")? as u64;
    let rows = paper.rows("table1").filter(|(row, _)| row.metric == "latency");
    let mut observations = Vec::new();
    for (row, milliseconds) in rows {
        // The last optimisation of "direct+of+sr" is the one that includes the others.
        let last = row.method.rsplit('+').next();
        let variant = Variant::ALL.into_iter().find(|variant| Some(variant.id()) == last);
        let Some(variant) = variant else {
            return Err(CommandError::failed(format!("{}: not a latency under a variant of the graph", row.id)));
        };
        let mut scenario = scenario(calibration, &row.subject, batch);
        scenario.graph = Some(variant);
        let plan = paper.plan(&scenario)?;
        observations.push(Observation::time(&row.id, milliseconds * 1e-3, Part::Iteration, plan));
    }
    Ok(observations)
}

/// The times of the rows that may be fitted, under the readings that are declared for them; a time of zero says
/// nothing of a rate.
fn daf_table2() -> Result<Vec<Observation>, CommandError> {
    let paper = Paper::load("daf")?;
    let mut observations = Vec::new();
    for (row, milliseconds) in paper.rows("table2").filter(|(_, milliseconds)| *milliseconds > 0.0) {
        let part = match row.metric.as_str() {
            "time" => Part::BesidePacking,
            "time-overhead" => Part::Packing,
            _ => continue,
        };
        let mut scenario =
            table2::packed(|id| Ok(paper.number("table2", id)?), &row.method).map_err(CommandError::failed)?;
        // All iterations are alike: nothing is learned in the first.
        scenario.iterations = 1;
        let plan = paper.plan(&scenario)?;
        observations.push(Observation::time(&row.id, milliseconds * 1e-3, part, plan));
    }
    Ok(observations)
}
