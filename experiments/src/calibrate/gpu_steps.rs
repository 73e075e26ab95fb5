//! Steps on a GPU that users of timm measured: training and inference of the networks of `reference/gpu-steps.csv`.

use haversack_devices::work::{MemoryFormat, Precision};
use haversack_workloads::autograd::{Attention, Optimiser};
use serde::Deserialize;

use super::declared::Calibration;
use super::observation::{Measure, Observation};
use crate::cache::Cache;
use crate::error::CommandError;
use crate::run::Plan;
use crate::scenario::Scenario;

pub(super) const STEPS: &str = "experiments/reference/gpu-steps.csv";
pub(super) const STEPS_TEXT: &str = include_str!("../../reference/gpu-steps.csv");

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

/// The rows of `role` that were measured on the calibration's device, in mixed precision.
///
/// # Errors
/// No folder of networks, or one that lacks a network of a row.
pub(super) fn rows(calibration: &Calibration, role: &str) -> Result<Vec<Observation>, CommandError> {
    let Some(folder) = &calibration.networks else {
        let message = format!(
            "{} was observed on networks that do not come along; name the folder of their ONNX files by \
                               --networks DIR",
            calibration.device
        );
        return Err(CommandError::input(message));
    };
    let cache = Cache::new();
    let mut observations = Vec::new();
    for step in csv::Reader::from_reader(STEPS_TEXT.as_bytes()).deserialize() {
        let step: Step = step.map_err(|error| CommandError::failed(format!("{STEPS}: {error}")))?;
        if step.device != calibration.device || step.role != role {
            continue;
        }
        let network = folder.join(format!("{}.onnx", step.network));
        let mut scenario = Scenario::new(&calibration.device, network.display().to_string());
        (scenario.stack, scenario.batch) = (Some(calibration.stack.clone()), step.batch);
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
        observations.push(Observation {
            id,
            observed: step.step_ms * 1e-3,
            unit: "s",
            measure: Measure::Run(vec![plan]),
        });
    }
    Ok(observations)
}
