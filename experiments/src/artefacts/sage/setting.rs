//! What Sage's artefacts share: the four networks as the readings declare them, and how one is run.

use haversack_devices::units::Bytes;
use haversack_training::Record;
use haversack_workloads::lowering::{Gradients, Variant};

use crate::reproduce::{ArtefactError, Context};
use crate::run::Plan;
use crate::scenario::{Budget, Scenario};

/// The stack that all of Sage's numbers were taken on.
pub(super) const STACK: &str = "sage-opencl";

/// A network of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    /// Its name in the reference.
    pub(super) subject: &'static str,
    /// Its name for people.
    pub(super) name: &'static str,
}

/// The four networks, in the order of table 1.
pub(super) const NETWORKS: [Network; 4] = [RESNET, DENSENET, MOBILENET, BERT];
/// ResNet-50, on which most of the paper's claims are made.
pub(super) const RESNET: Network = Network { subject: "resnet50", name: "ResNet-50" };
const DENSENET: Network = Network { subject: "densenet121", name: "DenseNet-121" };
/// MobileNetV2, whose input a reading declares.
pub(super) const MOBILENET: Network = Network { subject: "mobilenetv2", name: "MobileNetV2" };
/// BERT-small, whose head a reading may declare.
pub(super) const BERT: Network = Network { subject: "bert-small", name: "BERT-small" };

/// A scenario of `network` on `device`, with what the readings declare for all of the paper.
pub(super) fn scenario(context: &Context<'_>, device: &str, network: Network) -> Result<Scenario, ArtefactError> {
    let model =
        if network == BERT { context.reading_text("bert-head").unwrap_or(BERT.subject) } else { network.subject };
    let mut scenario = Scenario::new(device, model);
    scenario.stack = Some(STACK.to_owned());
    if network == MOBILENET {
        scenario.input = Some(context.reading_text("mobilenet-input")?.parse()?);
    }
    scenario.gradients = match context.reading_text("gradients")? {
        "streamed" => Gradients::Streamed,
        _ => Gradients::Kept,
    };
    scenario.batch = context.reading_number("batch")? as u64;
    scenario.graph = Some(Variant::Reduced);
    Ok(scenario)
}

/// Runs `scenario`.
pub(super) fn run(context: &Context<'_>, scenario: &Scenario) -> Result<Record, ArtefactError> {
    Ok(Plan::new(scenario, context.cache)?.run()?)
}

/// Runs `scenario` with `budget` bytes; nothing where no plan exists.
pub(super) fn run_within(
    context: &Context<'_>,
    scenario: &Scenario,
    budget: Bytes,
) -> Result<Option<Record>, ArtefactError> {
    let mut scenario = scenario.clone();
    scenario.memory_budget = Some(Budget::Bytes(budget));
    match Plan::new(&scenario, context.cache)?.run() {
        Ok(record) => Ok(Some(record)),
        Err(error) if error.is_infeasible() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The least memory that `scenario` runs in.
pub(super) fn least(context: &Context<'_>, scenario: &Scenario) -> Result<Bytes, ArtefactError> {
    Ok(Plan::new(scenario, context.cache)?.least_memory()?)
}

/// `scenario` under another policy, with its parameters.
pub(super) fn under(scenario: &Scenario, policy: &str, set: &[(&str, &str)]) -> Scenario {
    let set = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Scenario { policy: policy.to_owned(), set, ..scenario.clone() }
}
