//! What Sage's artefacts share: machines, and the four networks as the readings declare them.

use haversack_workloads::{Role, Variant};

use crate::artefacts::prelude::*;

/// The stack that all of Sage's numbers were taken on.
pub(super) const STACK: &str = "sage-opencl";
/// The phone of most numbers.
pub(super) const S10: &str = "galaxy-s10";
pub(super) const PHONES: &[&str] = &[S10, "galaxy-note20"];
pub(super) const MACHINES: &[&str] = &[S10, "galaxy-note20", "rtx-3090"];

/// The four networks as the reference calls them, in the order of table 1.
pub(super) const NETWORKS: [&str; 4] = [RESNET, "densenet121", "mobilenetv2", BERT];
/// ResNet-50, on which most of the paper's claims are made.
pub(super) const RESNET: &str = "resnet50";
/// BERT-small, whose head and tokens a reading declares.
pub(super) const BERT: &str = "bert-small";

/// A scenario of `network` on `device`, with what the readings declare for all of the paper.
pub(super) fn scenario(context: &Context<'_>, device: &str, network: &str) -> Result<Scenario> {
    let model = if network == BERT { context.reading_text("bert")? } else { network };
    let mut scenario = Scenario::new(device, model);
    scenario.stack = Some(STACK.to_owned());
    scenario.batch = context.reading_number("batch")? as u64;
    scenario.graph = Some(Variant::Reduced);
    Ok(scenario)
}

/// The same on the original graph, which nothing optimises.
pub(super) fn unoptimised(context: &Context<'_>, network: &str) -> Result<Scenario> {
    Ok(Scenario { graph: Some(Variant::Original), ..scenario(context, S10, network)? })
}

/// What no scheme of the paper gives back where gradients are accumulated (section 3.4.2).
pub(super) fn is_fixed(role: Role) -> bool {
    matches!(role, Role::Parameter { .. } | Role::ParameterGradient)
}
