//! What constants are fitted to: something that was measured, and what simulates it.

use serde::Deserialize;

use haversack_devices::processor::Usage;
use haversack_devices::units::Nanos;
use haversack_training::Record;
use haversack_workloads::Phase;

use crate::artefacts::daf::table2;
use crate::papers::reference::ReferenceRow;
use crate::run::Plan;
use crate::scenario::World;

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
pub type Simulated = dyn Fn(&World) -> f64 + Send + Sync;

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
    pub fn simulated(&self, files: &World) -> f64 {
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
