//! Section 3.4.3: the micro-batch below which the GPU is under-used.

use super::setting::{RESNET, S10, scenario};
use crate::artefacts::prelude::*;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let plan = context.plan(&scenario(context, S10, RESNET)?)?;
    let least = plan.machine().filling_micro_batch(&plan.graph, plan.scenario().batch);
    let mut outcome = Outcome::default();
    outcome.number("sage/section3.4.3/resnet50-on-mobile-gpus/under-utilisation-point/micro-batch", least as f64);
    Ok(outcome)
}
