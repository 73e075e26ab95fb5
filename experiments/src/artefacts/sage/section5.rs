//! Section 5: half precision saves about 40 % of the memory.

use haversack_devices::work::Precision;

use super::setting::{NETWORKS, S10, scenario};
use crate::artefacts::prelude::*;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
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
    let each: Vec<_> = NETWORKS.iter().zip(&saved).map(|(n, s)| format!("{} {s:.1} %", n.name)).collect();
    outcome.remark(id, each.join(", "));
    Ok(outcome)
}
