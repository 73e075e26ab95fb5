//! Shared by Sage's artefacts; also the numbers of its sections.

use haversack_devices::Precision;
use haversack_workloads::lowering::distinct_kernels;
use haversack_workloads::{Role, Variant};

use crate::artefacts::prelude::*;

/// The stack of all of Sage's numbers.
pub(super) const STACK: &str = "sage-opencl";
/// The phone of most numbers.
pub(super) const S10: &str = "galaxy-s10";
pub(super) const PHONES: &[&str] = &[S10, "galaxy-note20"];
pub(super) const MACHINES: &[&str] = &[S10, "galaxy-note20", "rtx-3090"];

/// The four networks, named as in the reference, in the order of table 1.
pub(super) const NETWORKS: [&str; 4] = [RESNET, "densenet121", "mobilenetv2", BERT];
/// ResNet-50, on which most of the paper's claims are made.
pub(super) const RESNET: &str = "resnet50";
/// BERT-small, whose head and tokens a reading declares.
pub(super) const BERT: &str = "bert-small";

/// A scenario of `network` on `device`, with the readings that are declared for the whole paper.
pub(super) fn scenario(context: &Context<'_>, device: &str, network: &str) -> Result<Scenario> {
    let model = if network == BERT { context.reading_text("bert")? } else { network };
    let mut scenario = Scenario::new(device, model);
    scenario.stack = Some(STACK.to_owned());
    scenario.batch = context.reading_number("batch")? as u64;
    scenario.graph = Some(Variant::Reduced);
    Ok(scenario)
}

/// Memory that no scheme of the paper frees while gradients are accumulated (section 3.4.2).
pub(super) fn is_fixed(role: Role) -> bool {
    matches!(role, Role::Parameter { .. } | Role::ParameterGradient)
}

/// The introduction: training BERT-small takes more than 8 GB.
pub(super) fn introduction(context: &Context<'_>) -> Result<Outcome> {
    let original = Scenario { graph: Some(Variant::Original), ..scenario(context, S10, BERT)? };
    let peak = context.run(&original)?.peak_memory;
    let mut outcome = Outcome::default();
    outcome.number("sage/introduction/bert-small/training/memory", peak.megabytes() / 1e3);
    Ok(outcome)
}

/// Section 3.2.3: kernels are compiled just in time, each distinct one once.
pub(super) fn section3_2_3(context: &Context<'_>) -> Result<Outcome> {
    let plan = context.plan(&scenario(context, "galaxy-note20", RESNET)?)?;
    let kernels = distinct_kernels(&plan.resolved.network, Variant::Reduced)?;
    let stack = context.stack(STACK)?;
    let compile = stack.gpu().map_or(0.0, |gpu| gpu.compile.value.seconds());
    let mut outcome = Outcome::default();
    let id = "sage/section3.2.3/resnet50-on-galaxy-note20/jit/compile-time";
    outcome.number(id, kernels as f64 * compile * 1e3);
    outcome.remark(id, format!("{kernels} distinct kernels"));
    Ok(outcome)
}

/// Section 3.4.3: the micro-batch below which the GPU is under-used.
pub(super) fn section3_4_3(context: &Context<'_>) -> Result<Outcome> {
    let plan = context.plan(&scenario(context, S10, RESNET)?)?;
    let least = plan.machine().filling_micro_batch(&plan.graph, plan.scenario().batch);
    let mut outcome = Outcome::default();
    outcome.number("sage/section3.4.3/resnet50-on-mobile-gpus/under-utilisation-point/micro-batch", least as f64);
    Ok(outcome)
}

/// Section 5: half precision saves about 40 % of the memory.
pub(super) fn section5(context: &Context<'_>) -> Result<Outcome> {
    let mut saved = Vec::new();
    for network in NETWORKS {
        let whole = scenario(context, S10, network)?;
        let half = context.run(&Scenario { precision: Precision::Fp16, ..whole.clone() })?.peak_memory;
        let whole = context.run(&whole)?.peak_memory;
        saved.push((1.0 - half.as_f64() / whole.as_f64()) * 100.0);
    }
    let mut outcome = Outcome::default();
    let id = "sage/section5/all/fp16/memory-reduction";
    outcome.number(id, saved.iter().sum::<f64>() / saved.len() as f64);
    let each: Vec<_> =
        NETWORKS.iter().zip(&saved).map(|(network, saved)| format!("{} {saved:.1} %", spelled(network))).collect();
    outcome.remark(id, each.join(", "));
    Ok(outcome)
}
