//! What constants are fitted to: a scenario, the part of its iteration that was timed, and the time.

use serde::Deserialize;

use haversack_devices::units::Nanos;
use haversack_training::{Machine, simulate};
use haversack_workloads::Phase;
use haversack_workloads::lowering::{Gradients, Variant};

use super::declared::{Calibration, Observations};
use crate::artefacts::daf::table2;
use crate::cache::Cache;
use crate::error::CommandError;
use crate::reproduce::readings::{Reading, Readings, Value};
use crate::reproduce::reference::{Reference, Role};
use crate::run::Plan;
use crate::scenario::Scenario;

const TIMINGS: &str = "experiments/reference/server-core.csv";
const TIMINGS_TEXT: &str = include_str!("../../reference/server-core.csv");

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

/// A time that was observed, with the run that it is a part of.
pub struct Observation {
    /// What people call it.
    pub id: String,
    /// The time.
    pub seconds: f64,
    /// The part of the run.
    pub part: Part,
    /// The run.
    pub plan: Plan,
}

impl Observation {
    /// The same time on `machine`: the sum of its operators', which is the executor's where nothing is short, or of a
    /// run where packing is to be told apart; infinite where that cannot run.
    #[must_use]
    pub fn simulated(&self, machine: &Machine) -> f64 {
        if matches!(self.part, Part::BesidePacking | Part::Packing) {
            let run = || simulate(machine, &self.plan.job(), self.plan.policy()?.as_mut());
            let parts = run().map(|record| table2::parts(&record));
            return parts.map_or(f64::INFINITY, |(beside, packing)| {
                if self.part == Part::Packing { packing.seconds() } else { beside.seconds() }
            });
        }
        let scenario = self.plan.scenario();
        let graph = &self.plan.graph;
        let timed = graph.nodes.iter().enumerate().filter(|(_, node)| self.part.holds(node.phase));
        let time: Nanos =
            timed.map(|(id, _)| machine.cost(graph, id, scenario.batch, scenario.precision).alone()).sum();
        time.seconds()
    }
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
        observations.push(Observation {
            id: format!("{}/{phase}", timing.model),
            seconds: timing.seconds,
            part: timing.phase,
            plan: Plan::new(&scenario(calibration, &timing.model, timing.batch), &cache)?,
        });
    }
    Ok(observations)
}

/// The latencies of the rows that may be fitted, under the readings that are declared for them.
fn sage_table1(calibration: &Calibration) -> Result<Vec<Observation>, CommandError> {
    let cache = Cache::new();
    let reference = Reference::load().map_err(CommandError::failed)?;
    let readings = Readings::load(&reference).map_err(CommandError::failed)?;
    let reading = |id: &str| {
        let found = readings.reading("sage", "table1", id).map(|reading: &Reading| reading.value.clone());
        found.ok_or_else(|| CommandError::failed(format!("sage/table1 declares no reading '{id}'")))
    };
    let Value::Number(batch) = reading("latency-batch")? else {
        return Err(CommandError::failed("the reading 'latency-batch' of sage/table1 is no number"));
    };
    let input = reading("mobilenet-input")?.to_string();
    let streamed = reading("gradients")?.to_string() == "streamed";
    let rows = reference.of("sage", "table1").filter(|row| row.metric == "latency" && row.role == Role::Fit);
    let mut observations = Vec::new();
    for row in rows {
        // The last optimisation of "direct+of+sr" is the one that includes the others.
        let last = row.method.rsplit('+').next();
        let variant = Variant::ALL.into_iter().find(|variant| Some(variant.id()) == last);
        let (Some(variant), Some(milliseconds)) = (variant, row.number()) else {
            return Err(CommandError::failed(format!("{}: not a latency under a variant of the graph", row.id)));
        };
        let mut scenario = scenario(calibration, &row.subject, batch as u64);
        scenario.graph = Some(variant);
        scenario.gradients = if streamed { Gradients::Streamed } else { Gradients::Kept };
        if row.subject == "mobilenetv2" {
            scenario.input = Some(input.parse().map_err(CommandError::failed)?);
        }
        observations.push(Observation {
            id: row.id.clone(),
            seconds: milliseconds * 1e-3,
            part: Part::Iteration,
            plan: Plan::new(&scenario, &cache)?,
        });
    }
    Ok(observations)
}

/// The times of the rows that may be fitted, under the readings that are declared for them; a time of nought says
/// nothing of a rate.
fn daf_table2() -> Result<Vec<Observation>, CommandError> {
    let cache = Cache::new();
    let reference = Reference::load().map_err(CommandError::failed)?;
    let readings = Readings::load(&reference).map_err(CommandError::failed)?;
    let number = |id: &str| match readings.reading("daf", "table2", id).map(|reading: &Reading| &reading.value) {
        Some(Value::Number(number)) => Ok(*number),
        _ => anyhow::bail!("daf/table2 declares no number '{id}'"),
    };
    let mut observations = Vec::new();
    for row in reference.of("daf", "table2").filter(|row| row.role == Role::Fit) {
        let part = match row.metric.as_str() {
            "time" => Part::BesidePacking,
            "time-overhead" => Part::Packing,
            _ => continue,
        };
        let Some(milliseconds) = row.number().filter(|time| *time > 0.0) else { continue };
        let mut scenario = table2::packed(number, &row.method).map_err(CommandError::failed)?;
        // All iterations are alike: nothing is learned in the first.
        scenario.iterations = 1;
        let plan = Plan::new(&scenario, &cache)?;
        observations.push(Observation { id: row.id.clone(), seconds: milliseconds * 1e-3, part, plan });
    }
    Ok(observations)
}
