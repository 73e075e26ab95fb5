//! Figure 1a: what the memory of RoBERTa-base's training consists of.

use haversack_workloads::Role;

use super::setting::{BOARD, Network, artefact, scenario};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact =
    artefact("figure1a", "what the memory of RoBERTa-base's fine-tuning consists of", run);

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let plan = context.plan(&scenario(context, BOARD, Network::Roberta)?)?;
    let record = plan.run()?;
    let all = record.reserved.megabytes();
    let activations = record.peak_saved.megabytes();
    let weights = plan.graph.bytes_of(|role| matches!(role, Role::Parameter { .. } | Role::Buffer)).at(1) as f64 * 1e-6;
    let rest = (all - activations - weights).max(0.0);

    let mut outcome = Outcome::default();
    outcome.number("daf/figure1a/roberta-base/original/activation-share", activations / all * 100.0);
    let mut table = Table::new(["part", "memory_mb"]);
    for (part, value) in [("activations", activations), ("weights", weights), ("rest", rest)] {
        table.push([part.into(), value.into()])?;
    }
    let stack = Stack::new(["RoBERTa-base, LoRA"])
        .part("activations", vec![activations])
        .part("weights", vec![weights])
        .part("gradients, temporaries, fragments", vec![rest])
        .show_shares();
    let figure = Figure::new("DAF, figure 1a: memory of fine-tuning")
        .panel_size(520, 340)
        .panel(Panel::new(stack).y(Axis::new("memory").unit("MB")));
    Ok(outcome.drawn(figure, table))
}
