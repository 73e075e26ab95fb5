//! Figure 1c: memory in use on a phone that trains.

use haversack_workloads::Role;

use super::setting::{BERT, MOBILENET, OP10P, PICTURES, TEXTS, on_two_phones, scenario, system};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact = on_two_phones("figure1c", "memory in use on a phone that trains", run);

/// The bars: network and samples, and as the reference names them.
const BARS: [((&str, &str), u64, &str); 2] =
    [(MOBILENET, PICTURES, "mobilenetv2-batch-32"), (BERT, TEXTS, "bert-batch-8")];
/// The parts of a bar, from its foot.
const PARTS: [&str; 4] = ["system", "weights and their state", "saved tensors", "all else"];

/// The parts of a bar, in the order of [`PARTS`].
fn parts(context: &Context<'_>, model: &str, batch: u64) -> Result<[Bytes; 4], ArtefactError> {
    let idle = system(context)?.resident().total();
    let plan = context.plan(&scenario(context, OP10P, model, batch, "original")?)?;
    let record = plan.run()?;
    let state = Bytes(plan.graph.bytes_of(Role::is_state).at(batch));
    // What is saved is all there when forward ends, near the peak; by the peak itself backward may have let go of some.
    let saved = record.peak_saved.min(record.peak_memory.saturating_sub(state));
    Ok([idle, state, saved, record.peak_memory.saturating_sub(state + saved)])
}

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut table = Table::new(["network", "batch", "system_gb", "state_gb", "saved_gb", "rest_gb", "total_gb"]);
    let mut names = Vec::new();
    let mut stacked = PARTS.map(|_| Vec::new());
    let mut stated = Vec::new();
    for ((model, name), batch, subject) in BARS {
        let gigabytes = parts(context, model, batch)?.map(|part| part.as_f64() / 1e9);
        let total: f64 = gigabytes.iter().sum();
        let numbers = gigabytes.into_iter().chain([total]).map(Into::into);
        table.push([model.into(), batch.into()].into_iter().chain(numbers))?;
        let label = format!("{name}, batch {batch}");
        let id = format!("fedhybrid/figure1c/{subject}/mnn/memory");
        if let Claim::Min(least) = context.row(&id)?.claim {
            stated.push(format!("over {least} GB for {name}"));
        }
        outcome.remark(id.clone(), format!("the process alone: {:.1} GB", total - gigabytes[0]));
        outcome.number(id, total);
        names.push(label);
        for (values, part) in stacked.iter_mut().zip(gigabytes) {
            values.push(part);
        }
    }
    let mut stack = Stack::new(names).show_totals();
    for (part, values) in PARTS.into_iter().zip(stacked) {
        stack = stack.part(part, values);
    }
    let figure = Figure::new("FedHybrid, figure 1c: memory in use on a phone that trains")
        .note(format!("The paper: {}.", stated.join(", ")))
        .panel_size(540, 340)
        .panel(Panel::new(stack).y(Axis::new("memory").unit("GB").from_zero()));
    Ok(outcome.drawn(figure, table))
}
