//! Figure 1c: memory in use on a phone that trains.

use haversack_workloads::Role;

use super::setting::{BERT, MOBILENET, OP10P, PICTURES, TEXTS, on_two_phones, scenario, system};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact = on_two_phones("figure1c", "memory in use on a phone that trains", run);

/// The bars: network and samples, and as the reference names them.
const BARS: [((&str, &str), u64, &str); 2] =
    [(MOBILENET, PICTURES, "mobilenetv2-batch-32"), (BERT, TEXTS, "bert-batch-8")];
/// The parts of a bar, from its foot: the system, weights and their state, saved tensors, and all else.
fn parts(context: &Context<'_>, model: &str, batch: u64) -> Result<[Bytes; 4]> {
    let idle = system(context)?.resident().total();
    let plan = context.plan(&scenario(context, OP10P, model, batch, "original")?)?;
    let record = plan.run()?;
    let state = Bytes(plan.graph.bytes_of(Role::is_state).at(batch));
    // What is saved is all there when forward ends, near the peak; by the peak itself backward may have let go of some.
    let saved = record.peak_saved.min(record.peak_memory.saturating_sub(state));
    Ok([idle, state, saved, record.peak_memory.saturating_sub(state + saved)])
}

fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("network,batch,system_gb,state_gb,saved_gb,rest_gb,total_gb");
    let mut found = Vec::new();
    for ((model, name), batch, subject) in BARS {
        let gigabytes = parts(context, model, batch)?.map(|part| part.as_f64() / 1e9);
        let total: f64 = gigabytes.iter().sum();
        outcome.row((model, batch, gigabytes, total))?;
        let id = format!("fedhybrid/figure1c/{subject}/mnn/memory");
        outcome.remark(id.clone(), format!("the process alone: {:.1} GB", total - gigabytes[0]));
        outcome.number(id, total);
        found.push((format!("{name}, batch {batch}"), gigabytes));
    }
    let parts: [Quantity<(String, [f64; 4])>; 4] = [
        ("system", |one| one.1[0]),
        ("weights and their state", |one| one.1[1]),
        ("saved tensors", |one| one.1[2]),
        ("all else", |one| one.1[3]),
    ];
    let stack = stacks(found.iter().map(|one| one.0.as_str()), &found, parts).show_totals();
    outcome.panel("", stack, Axis::default(), from_zero("memory", "GB"));
    Ok(outcome)
}
