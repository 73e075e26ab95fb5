//! Figure 1c: memory in use on a phone that trains, and that has enough of it.

use haversack_training::{AtRest, watch};
use haversack_workloads::Role;

use super::setting::{BERT, MOBILENET, OP10P, PICTURES, TEXTS};
use super::setting::{from_starts, on_phone, scenario, system};
use crate::artefacts::prelude::*;

/// The bars: network and samples, and as the reference names them.
const BARS: [((&str, &str), u64, &str); 2] =
    [(MOBILENET, PICTURES, "mobilenetv2-batch-32"), (BERT, TEXTS, "bert-batch-8")];
/// A bar.
struct Bar {
    /// From its foot: what an idle phone holds, weights and their state, saved tensors, and all else, in GB.
    parts: [f64; 4],
    /// The most of all memory that could not be had: the mean of all starts, the least and the most, in GB.
    most: [f64; 3],
    /// What the process alone takes of tensors.
    process: f64,
}

/// What could not be had of the phone's memory before anybody trains.
fn idle(plan: &Plan) -> Result<Bytes> {
    let phone = plan.resolved.phone.as_deref().context("the run is on no phone in use")?;
    let seen = watch(AtRest::of(phone)?, phone, Nanos(1))?;
    let seen = seen.first().context("nobody has looked at the phone")?;
    Ok(phone.memory.ram.saturating_sub(seen.available))
}

/// Runs `model` on the phone in use, started over adb as in figure 2.
fn bar(context: &Context<'_>, model: &str, batch: u64) -> Result<Bar> {
    let system = system(context)?;
    let alone = scenario(context, OP10P, model, batch, "original")?;
    let trainer_adj = Some(system.constants.scores.native.value.0);
    let in_use = on_phone(context, Scenario { trainer_adj, ..alone.clone() }, None)?;
    let reports = from_starts(context, &in_use)?;
    let most = || reports.iter().map(|report| report.run.unavailable_peak.as_f64() / 1e9);
    let mean = mean(&most().collect::<Vec<_>>()).context("no run was simulated")?;
    let idle = idle(&context.plan(&in_use)?)?;
    let plan = context.plan(&alone)?;
    let record = plan.run()?;
    let state = Bytes(plan.graph.bytes_of(Role::is_state).at(batch));
    // What is saved is all there when forward ends, near the peak; by the peak itself backward may have let go of some.
    let saved = record.peak_saved.min(record.peak_memory.saturating_sub(state));
    let [idle, state, saved] = [idle, state, saved].map(|bytes| bytes.as_f64() / 1e9);
    Ok(Bar {
        parts: [idle, state, saved, (mean - idle - state - saved).max(0.0)],
        most: [mean, most().fold(f64::INFINITY, f64::min), most().fold(0.0, f64::max)],
        process: record.peak_memory.as_f64() / 1e9,
    })
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut records = Records::of(
        "network,name,batch,subject,system_gb,state_gb,saved_gb,rest_gb,total_gb,least_gb,most_gb,process_gb",
    );
    for ((model, name), batch, subject) in BARS {
        let Bar { parts, most, process } = bar(context, model, batch)?;
        records.row((model, name, batch, subject, parts, most, process))?;
    }
    show(context, records, Outcome::default())
}
