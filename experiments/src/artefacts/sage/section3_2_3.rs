//! Section 3.2.3: kernels are compiled just in time, each distinct one once.

use haversack_workloads::lowering::{Variant, distinct_kernels};

use super::setting::{RESNET, STACK, scenario};
use crate::artefacts::prelude::*;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
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
