//! The numbers of the introduction and of sections 3 and 5.

use haversack_devices::Precision;
use haversack_workloads::lowering::{Variant, distinct_kernels};

use super::setting::{BERT, NETWORKS, RESNET, S10, STACK, scenario, unoptimised};
use crate::artefacts::prelude::*;

/// The introduction: training BERT-small takes more than 8 GB.
pub(super) fn introduction(context: &Context<'_>) -> Result<Outcome> {
    let peak = context.run(&unoptimised(context, BERT)?)?.peak_memory;
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
