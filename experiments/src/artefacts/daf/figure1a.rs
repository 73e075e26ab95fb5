//! Figure 1a: what the memory of RoBERTa-base's training consists of.

use haversack_workloads::Role;

use super::setting::{BOARD, ROBERTA, scenario};
use crate::artefacts::prelude::*;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let plan = context.plan(&scenario(context, BOARD, ROBERTA)?)?;
    let record = plan.run()?;
    let all = record.reserved.megabytes();
    let activations = record.peak_saved.megabytes();
    let weights = plan.graph.bytes_of(|role| matches!(role, Role::Parameter { .. } | Role::Buffer)).at(1) as f64 * 1e-6;
    let rest = (all - activations - weights).max(0.0);

    let mut outcome = Outcome::of("part,memory_mb");
    outcome.number("daf/figure1a/roberta-base/original/activation-share", activations / all * 100.0);
    let mut stack = Stack::new(["RoBERTa-base, LoRA"]).show_shares();
    for (part, name, value) in [
        ("activations", "activations", activations),
        ("weights", "weights", weights),
        ("rest", "gradients, temporaries, fragments", rest),
    ] {
        outcome.row((part, value))?;
        stack = stack.part(name, vec![value]);
    }
    outcome.panel("", stack, Axis::default(), axis("memory", "MB"));
    Ok(outcome)
}
