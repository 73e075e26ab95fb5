//! Section 3.4.3: the micro-batch below which the GPU is under-used.

use super::setting::{RESNET, scenario};
use crate::reproduce::{ArtefactError, Context, Outcome};
use crate::run::Plan;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let scenario = scenario(context, "galaxy-s10", RESNET)?;
    let plan = Plan::new(&scenario, context.cache)?;
    let least = plan.machine().filling_micro_batch(&plan.graph, scenario.batch);
    let mut outcome = Outcome::default();
    outcome.number("sage/section3.4.3/resnet50-on-mobile-gpus/under-utilisation-point/micro-batch", least as f64);
    outcome.notes.calibrated.push("Outputs a thread, a register tile of 16: this number chose it.".into());
    Ok(outcome)
}
