//! Inference on phones and boards that ncnn's users measured: the rows of `reference/phone-inference.csv`.

use haversack_devices::processor::CoreSelection;
use haversack_devices::work::Precision;
use serde::Deserialize;

use super::declared::Calibration;
use super::observation::{Observation, Part};
use crate::cache::Cache;
use crate::error::CommandError;
use crate::run::Plan;
use crate::scenario::Scenario;

/// The path of the rows in the project.
pub(super) const TIMES: &str = "experiments/reference/phone-inference.csv";
/// The rows, which come along.
pub(super) const TIMES_TEXT: &str = include_str!("../../reference/phone-inference.csv");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Time {
    device: String,
    cores: String,
    network: String,
    latency_ms: f64,
    role: String,
}

/// The rows of `role` on the CPUs of the calibration's devices: one picture in half precision.
///
/// # Errors
/// An embedded file that is wrong, or a scenario that does not run.
pub(super) fn rows(calibration: &Calibration, role: &str) -> Result<Vec<Observation>, CommandError> {
    let cache = Cache::new();
    let mut observations = Vec::new();
    for time in csv::Reader::from_reader(TIMES_TEXT.as_bytes()).deserialize() {
        let time: Time = time.map_err(|error| CommandError::failed(format!("{TIMES}: {error}")))?;
        let is_of = time.device == calibration.device || calibration.others.contains(&time.device);
        if !is_of || time.role != role {
            continue;
        }
        let cores: CoreSelection = time.cores.parse().map_err(CommandError::failed)?;
        let mut scenario = Scenario::new(&time.device, measured(&time.network));
        (scenario.stack, scenario.cores) = (Some(calibration.stack.clone()), Some(cores));
        (scenario.precision, scenario.batch, scenario.inference) = (Precision::Fp16, 1, true);
        scenario.iterations = 1;
        let plan = Plan::new(&scenario, &cache)?;
        let id = format!("{}/{}/{}", time.device, time.cores, time.network);
        observations.push(Observation::time(id, time.latency_ms * 1e-3, Part::Iteration, plan));
    }
    Ok(observations)
}

/// The network that was measured. What ncnn's `benchmark/resnet50.param` has is the published ResNet-50, whose blocks halve
/// maps in their first convolution, not torchvision's.
fn measured(network: &str) -> &str {
    if network == "resnet50" { "resnet50-v1" } else { network }
}
