//! What calibrations are fitted to, by its name: the rows of papers, and those that users and this project measured.

use haversack_devices::processor::CoreSelection;
use haversack_devices::work::{MemoryFormat, Precision};
use haversack_workloads::autograd::{Attention, Optimiser};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::declared::{Calibration, Observations};
use super::observation::{Measure, Observation, Part};
use super::papers;
use crate::cache::Cache;
use crate::error::CommandError;
use crate::run::Plan;

/// The texts of the files of rows that are no paper's, by their path in the project.
pub(super) const FILES: [(&str, &str); 3] = [
    ("experiments/reference/server-core.csv", include_str!("../../reference/server-core.csv")),
    ("experiments/reference/gpu-steps.csv", include_str!("../../reference/gpu-steps.csv")),
    ("experiments/reference/phone-inference.csv", include_str!("../../reference/phone-inference.csv")),
];

/// The observations that `calibration` names.
///
/// # Errors
/// An embedded file that is wrong, or a scenario that does not run.
pub(super) fn of(calibration: &Calibration) -> Result<Vec<Observation>, CommandError> {
    match calibration.observations {
        Observations::PytorchTimings => pytorch_timings(calibration),
        Observations::SageTable1 => papers::sage_table1(calibration),
        Observations::DafTable2 => papers::daf_table2(),
        Observations::MandhelingOperators => papers::mandheling_operators(),
        Observations::MandhelingSteps => papers::mandheling_steps(),
        Observations::MandhelingCpu => papers::mandheling_cpu(),
        Observations::MandhelingCpuEnergy => papers::mandheling_energy(false),
        Observations::MandhelingDsp => papers::mandheling_dsp(),
        Observations::MandhelingDspEnergy => papers::mandheling_energy(true),
        Observations::FedhybridFigure2 => papers::fedhybrid_reclaim(),
        Observations::GpuSteps => gpu_steps(calibration, "fit"),
        Observations::PhoneInference => phone_inference(calibration, "fit"),
    }
}

/// The rows of role `check` beside those that are fitted, of observations that belong to no paper; the papers'
/// are shown by `reproduce`.
///
/// # Errors
/// As [`of`].
pub(super) fn checks(calibration: &Calibration) -> Result<Vec<Observation>, CommandError> {
    match calibration.observations {
        Observations::GpuSteps => gpu_steps(calibration, "check"),
        Observations::PhoneInference => phone_inference(calibration, "check"),
        _ => Ok(Vec::new()),
    }
}

/// The rows of the file that `calibration` is fitted to.
fn rows<T: DeserializeOwned>(calibration: &Calibration) -> Result<Vec<T>, CommandError> {
    let file = &calibration.rows;
    let text = FILES.iter().find(|(own, _)| own == file).map(|(_, text)| *text).unwrap_or_default();
    let rows = csv::Reader::from_reader(text.as_bytes()).into_deserialize();
    rows.collect::<Result<_, _>>().map_err(|error| CommandError::failed(format!("{file}: {error}")))
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

/// Timings of PyTorch on a server core.
fn pytorch_timings(calibration: &Calibration) -> Result<Vec<Observation>, CommandError> {
    let cache = Cache::new();
    let observation = |timing: Timing| {
        let phase = if timing.phase == Part::Forward { "forward" } else { "backward" };
        let plan = Plan::new(&calibration.scenario(&timing.model, timing.batch), &cache)?;
        Ok(Observation::time(format!("{}/{phase}", timing.model), timing.seconds, timing.phase, plan))
    };
    rows(calibration)?.into_iter().map(observation).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    network: String,
    device: String,
    what: String,
    layout: String,
    batch: u64,
    #[serde(rename = "image_side")]
    _image_side: u64,
    step_ms: f64,
    role: String,
}

/// Steps on a GPU that users of timm measured: the rows of `role` on the calibration's device, in mixed precision.
///
/// # Errors
/// No folder of networks, or one that lacks a network of a row.
fn gpu_steps(calibration: &Calibration, role: &str) -> Result<Vec<Observation>, CommandError> {
    let Some(folder) = &calibration.networks else {
        return Err(CommandError::input(format!(
            "{} was observed on networks that do not come along; name the folder of their ONNX files by --networks DIR",
            calibration.device
        )));
    };
    let cache = Cache::new();
    let observation = |step: Step| {
        let network = folder.join(format!("{}.onnx", step.network));
        let mut scenario = calibration.scenario(&network.display().to_string(), step.batch);
        (scenario.precision, scenario.optimizer) = (Precision::Fp16, Optimiser::Momentum);
        scenario.inference = step.what != "training";
        scenario.iterations = 1;
        if step.layout == "nhwc" {
            scenario.memory_format = MemoryFormat::ChannelsLast;
        }
        if step.what == "inference-pytorch-2.4" {
            scenario.attention = Attention::Fused;
        }
        let plan = Plan::new(&scenario, &cache)?;
        let id = format!("{}/{}/{}", step.network, step.what, step.layout);
        Ok(Observation { id, observed: step.step_ms * 1e-3, unit: "s", measure: Measure::Run(vec![plan]) })
    };
    let is_of = |step: &Step| step.device == calibration.device && step.role == role;
    rows(calibration)?.into_iter().filter(is_of).map(observation).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Latency {
    device: String,
    cores: String,
    network: String,
    latency_ms: f64,
    role: String,
}

/// Inference that ncnn's users measured: the rows of `role` on the CPUs of the calibration's devices, one picture in half
/// precision.
fn phone_inference(calibration: &Calibration, role: &str) -> Result<Vec<Observation>, CommandError> {
    let cache = Cache::new();
    let observation = |row: Latency| {
        // ncnn's `benchmark/resnet50.param` is the published ResNet-50, whose blocks halve maps in their first
        // convolution, not torchvision's.
        let network = if row.network == "resnet50" { "resnet50-v1" } else { &row.network };
        let cores: CoreSelection = row.cores.parse().map_err(CommandError::failed)?;
        let mut scenario = calibration.scenario(network, 1);
        (scenario.device, scenario.cores) = (row.device.clone(), Some(cores));
        (scenario.precision, scenario.inference, scenario.iterations) = (Precision::Fp16, true, 1);
        let plan = Plan::new(&scenario, &cache)?;
        let id = format!("{}/{}/{}", row.device, row.cores, row.network);
        Ok(Observation::time(id, row.latency_ms * 1e-3, Part::Iteration, plan))
    };
    let is_of = |row: &Latency| {
        (row.device == calibration.device || calibration.others.contains(&row.device)) && row.role == role
    };
    rows(calibration)?.into_iter().filter(is_of).map(observation).collect()
}
