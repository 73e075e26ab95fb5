//! Observations that constants are fitted to: a measured value, and its simulation.
//!
//! Also the kinds of observations, by name: rows of papers, and rows of measured sets.
//!
//! Also the declared calibrations: `calibrations.toml`, embedded and parsed strictly.
//!
//! ```toml
//! [[calibration]]
//! device = "server-core"
//! others = ["single-core"]              # optional: further devices that were observed, with constants of the stack alone
//! stack = "pytorch-cpu"
//! observations = "pytorch-timings"   # also the `source` of the constants in their files
//! rows = "experiments/truth/pytorch-cpu/rows.csv"
//! about = "what the observations are"
//! simulated = true                   # optional: rows take long, and the search is short
//! system = "android-testbed"         # optional: the operating system, where constants are of it
//!
//! [[calibration.constant]]
//! of = "stack"                       # or "device" or "system": whose file holds it
//! name = "cpu.efficiency.gemm"       # its dotted name there
//! lower = 0.1                        # in the unit of the file, above zero
//! upper = 1.0
//! prior = { value = 0.7, why = "libraries reach two thirds of the peak" } # where the rows do not decide it
//! ```

use std::fmt::Write as _;

use haversack_devices::registry::digest;
use haversack_devices::text::read_toml;
use haversack_devices::{Nanos, Usage};
use haversack_training::Record;
use haversack_workloads::Phase;
use serde::{Deserialize, Serialize};

use super::papers;
use crate::artefacts::daf::store;
use crate::measured_set::{Row, Set, Subject};
use crate::papers::reference::{ReferenceRow, Role};
use crate::scenario::{Holder, World};
use crate::{Cache, CommandError, Plan, Result, Scenario, truth};

/// The part of an iteration that was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// From the samples to the loss.
    Forward,
    /// From the loss to the gradients.
    Backward,
    /// All of it, including the update.
    #[serde(skip)]
    Iteration,
    /// All of it except packing and unpacking.
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

/// A value simulated with the constants of some files.
pub type Simulated = dyn Fn(&World) -> f64 + Send + Sync;

/// The simulation of an observation with the constants of some files.
pub enum Measure {
    /// The seconds of a part of an iteration: the sum over its operators, which equals the executor's time if
    /// nothing limits the run.
    Time(Part, Box<Plan>),
    /// The seconds of an iteration from the executor, the mean over some runs.
    Run(Vec<Plan>),
    /// The joules of an iteration on a CPU, as the sum over its operators.
    EnergyOfSum(Box<Plan>),
    /// The joules of an iteration from the executor, the mean over some runs.
    Energy(Vec<Plan>),
    /// Anything else.
    Other(Box<Simulated>),
}

/// An observation.
pub struct Observation {
    /// Its display name.
    pub id: String,
    /// The value.
    pub observed: f64,
    /// The unit of the value.
    pub unit: &'static str,
    /// Its simulation.
    pub measure: Measure,
}

impl Observation {
    /// An observation from a row of the reference.
    pub(super) fn of(row: &ReferenceRow, observed: f64, unit: &'static str, measure: Measure) -> Self {
        Self { id: row.id.clone(), observed, unit, measure }
    }

    /// The observation of a time.
    pub(super) fn time(id: impl Into<String>, seconds: f64, part: Part, plan: Plan) -> Self {
        Self { id: id.into(), observed: seconds, unit: "s", measure: Measure::Time(part, Box::new(plan)) }
    }

    /// The value with the constants of `files`; infinite if that cannot run.
    pub fn simulated(&self, files: &World) -> f64 {
        // A device other than the one that is fitted keeps its constants.
        let device = |plan: &Plan| {
            let own = &plan.machine().device;
            if own.id == files.device.id { files.device.clone() } else { own.clone() }
        };
        let machine = |plan: &Plan| plan.machine().under(device(plan), files.stack.clone());
        let run = |plan: &Plan| -> Option<Record> { plan.run_on(&machine(plan).ok()?).ok() };
        let simulated = match &self.measure {
            Measure::Time(part @ (Part::BesidePacking | Part::Packing), plan) => run(plan).map(|record| {
                let (beside, packing) = store::parts(&record);
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

/// The mean over all runs; `None` if one has no value.
fn mean(values: impl ExactSizeIterator<Item = Option<f64>>) -> Option<f64> {
    let count = values.len().max(1);
    Some(values.sum::<Option<f64>>()? / count as f64)
}

/// The observations that `calibration` names.
///
/// # Errors
/// An embedded file that is wrong, or a scenario that does not run.
pub(super) fn of(calibration: &Calibration) -> Result<Vec<Observation>> {
    match calibration.observations {
        Observations::PytorchTimings
        | Observations::GpuSteps
        | Observations::PhoneInference
        | Observations::MnnPhones
        | Observations::JetsonTx2 => measured(calibration, Role::Fit),
        Observations::SageTable1 => papers::sage_table1(calibration),
        Observations::DafTable2 => papers::daf_table2(),
        Observations::MandhelingOperators => papers::mandheling_operators(),
        Observations::MandhelingSteps => papers::mandheling_steps(),
        Observations::MandhelingCpu => papers::mandheling_cpu(),
        Observations::MandhelingCpuEnergy => papers::mandheling_engine(false, false),
        Observations::MandhelingDsp => papers::mandheling_engine(true, true),
        Observations::MandhelingDspEnergy => papers::mandheling_engine(true, false),
        Observations::FedhybridFigure2 => papers::fedhybrid_reclaim(),
    }
}

/// The rows of role `check` among observations that do not come from a paper; `reproduce` shows those of papers.
///
/// # Errors
/// As [`of`].
pub(super) fn checks(calibration: &Calibration) -> Result<Vec<Observation>> {
    match calibration.observations {
        Observations::GpuSteps | Observations::PhoneInference | Observations::MnnPhones | Observations::JetsonTx2 => {
            measured(calibration, Role::Check)
        }
        _ => Ok(Vec::new()),
    }
}

/// The rows of `role` in the measured set of `calibration`, on its devices.
fn measured(calibration: &Calibration, role: Role) -> Result<Vec<Observation>> {
    let set = truth::embedded(&calibration.rows);
    let set = Set::embedded(set.ok_or_else(|| CommandError::failed(format!("{} is missing", calibration.rows)))?)?;
    let cache = Cache::new();
    let observation = |row: Row| {
        let Subject::Training { scenario, .. } = row.subject else {
            return Err(CommandError::failed(format!("{} is not of training", row.id)));
        };
        let plan = Plan::new(&Scenario { iterations: Some(1), ..*scenario }, &cache)?;
        let observed = row.measured.unwrap_or_default() * row.quantity.size;
        let part = match row.quantity.name.as_str() {
            "forward_s" => Part::Forward,
            "backward_s" => Part::Backward,
            _ if matches!(calibration.observations, Observations::GpuSteps | Observations::JetsonTx2) => {
                return Ok(Observation { id: row.id, observed, unit: "s", measure: Measure::Run(vec![plan]) });
            }
            _ => Part::Iteration,
        };
        Ok(Observation::time(row.id, observed, part, plan))
    };
    let is_of = |row: &Row| {
        let Some(scenario) = row.scenario() else { return false };
        let device = &scenario.device;
        let steps = matches!(calibration.observations, Observations::MnnPhones | Observations::JetsonTx2);
        let is_step = row.quantity.name == "iteration_time_s" && !scenario.inference;
        row.role == role
            && (!steps || is_step)
            && (*device == calibration.device || calibration.others.contains(device))
    };
    set.rows.into_iter().filter(is_of).map(observation).collect()
}

/// The path of the declarations in the project.
pub const FILE: &str = "experiments/calibrations.toml";
const TEXT: &str = include_str!("../../calibrations.toml");

/// The observations that constants are fitted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Observations {
    /// Timings of PyTorch on a server core, `truth/pytorch-cpu`.
    PytorchTimings,
    /// The latencies of Sage's table 1 with the role *fit*.
    SageTable1,
    /// The times of DAF's table 2 with the role *fit*.
    DafTable2,
    /// Single operators of Mandheling's paper on the Xiaomi 10, with the role *fit*.
    MandhelingOperators,
    /// The steps of its figure 10, likewise.
    MandhelingSteps,
    /// Times of the paper's CPU engine on the Xiaomi 11 Pro, likewise.
    MandhelingCpu,
    /// Its energies, likewise.
    MandhelingCpuEnergy,
    /// Times of Mandheling itself, likewise.
    MandhelingDsp,
    /// Its energies, likewise.
    MandhelingDspEnergy,
    /// The two phones of FedHybrid's figure 2, likewise.
    FedhybridFigure2,
    /// Steps on an RTX 3090 that users of timm measured, `truth/rtx-3090`, with the role *fit*.
    GpuSteps,
    /// Inference on phones and boards that ncnn's users measured, `truth/ncnn-cpu`, likewise.
    PhoneInference,
    /// Training steps under MNN on two phones, `truth/mnn-phones`, likewise.
    MnnPhones,
    /// Training steps under PyTorch on a board, `truth/jetson-tx2`, likewise.
    JetsonTx2,
}

impl Observations {
    /// The name in the file.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A constant that may move.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// The calibration it belongs to.
    pub of: Holder,
    /// Its dotted name.
    pub name: String,
    /// The least value, in the unit of its file.
    pub lower: f64,
    /// The greatest value.
    pub upper: f64,
    /// Its value if the rows do not identify it.
    pub prior: Prior,
}

/// The assumed value of a constant without any row.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prior {
    /// The value, in the unit of its file.
    pub value: f64,
    /// Its source.
    pub why: String,
}

/// A device under a stack, with observations.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The device.
    pub device: String,
    /// Other observed devices under the stack, which keep their own constants.
    #[serde(default)]
    pub others: Vec<String>,
    /// The stack.
    pub stack: String,
    /// The operating system, if some constants belong to it.
    pub system: Option<String>,
    /// The observations that its constants are fitted to.
    pub observations: Observations,
    /// The file of the rows, in the project.
    pub rows: String,
    /// A description of the observations.
    pub about: String,
    /// Whether every row is simulated batch by batch, which is slow, so that the search uses one start and few steps.
    #[serde(default)]
    pub simulated: bool,
    /// The constants.
    #[serde(rename = "constant")]
    pub constants: Vec<Constant>,
}

impl Calibration {
    /// Its display name: `server-core under pytorch-cpu (pytorch-timings)`.
    pub fn title(&self) -> String {
        title(&self.device, &self.stack, self.observations)
    }

    /// The scenario of a row, before its own settings.
    pub(super) fn scenario(&self, model: &str, batch: u64) -> Scenario {
        Scenario { stack: Some(self.stack.clone()), batch, ..Scenario::new(&self.device, model) }
    }

    /// The files that it names, unchanged.
    ///
    /// # Errors
    /// A file that does not exist or does not follow its schema.
    pub(super) fn world(&self) -> Result<World> {
        let device = haversack_devices::load(&self.device)?;
        let stack = haversack_devices::load_stack(&self.stack)?;
        let system = self.system.as_deref().map(haversack_devices::load_system).transpose()?;
        Ok(World { device, stack, system })
    }

    /// The digest of this declaration, without descriptions.
    pub fn digest(&self) -> String {
        let Self { device, others, stack, system, simulated, .. } = self;
        let mut text = format!("{device} {others:?} {stack} {system:?} {simulated}\n");
        for Constant { of, name, lower, upper, prior } in &self.constants {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "{} {name} {lower} {upper} {}", of, prior.value);
        }
        digest(&text)
    }
}

/// The display name of a calibration.
pub(super) fn title(device: &str, stack: &str, observations: Observations) -> String {
    format!("{device} under {stack} ({})", observations.name())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    calibration: Vec<Calibration>,
}

/// Every declared calibration.
///
/// # Errors
/// A file that does not follow the schema, or bounds that exclude every value.
pub fn all() -> Result<Vec<Calibration>> {
    let file: File = read_toml(FILE, TEXT).map_err(CommandError::failed)?;
    let constants = || file.calibration.iter().flat_map(|calibration| &calibration.constants);
    let holds = |constant: &Constant| {
        let Constant { lower, upper, ref prior, .. } = *constant;
        lower > 0.0 && lower < upper && (lower..=upper).contains(&prior.value)
    };
    if let Some(wrong) = constants().find(|constant| !holds(constant)) {
        let name = &wrong.name;
        return Err(CommandError::failed(format!("{FILE}: {name}: 0 < lower ≤ prior ≤ upper does not hold")));
    }
    Ok(file.calibration)
}
