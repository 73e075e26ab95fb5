//! Figure 14: energy of an iteration under all methods.

use super::figure11::iterations;
use super::setting::{METHODS, RESNET_CIFAR};
use crate::artefacts::prelude::*;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let found = iterations(context, RESNET_CIFAR)?;
    let mut outcome = Outcome::of("method,energy_j,iteration_ms");
    for (method, record) in &found {
        outcome.row((*method, record.energy.0, record.iteration.seconds() * 1e3))?;
        outcome.quantity(&format!("energy of {method}"), "J", [record.energy.0]);
    }
    context.judge(&mut outcome, "daf/figure14/resnet18/original,actnn->-daf/energy")?;
    let bars = columns(METHODS.map(|(_, name)| name), &found, [("energy", |(_, record)| record.energy.0)]);
    outcome.bars("", bars, from_zero("energy", "J"));
    Ok(outcome)
}
