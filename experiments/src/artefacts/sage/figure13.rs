//! Figure 13: energy of an iteration against the memory budget.

use super::setting::{NETWORKS, PHONES, RESNET, S10, scenario};
use super::throughput::budget;
use crate::artefacts::prelude::*;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("device,network,budget_percent,joules_per_sample");
    for &device in PHONES {
        let mut points = Vec::new();
        for network in NETWORKS {
            let mut scenario = under(&scenario(context, device, network)?, "sage", &[]);
            let whole = context.run(&scenario)?.peak_memory;
            for &percent in context.reading_numbers("budgets")? {
                let record = context.within(&scenario, budget(whole, percent))?;
                let energy = record.map(|record| record.energy.0 / scenario.batch as f64);
                outcome.row((device, network.name, percent, energy))?;
                points.push((network.name, percent, energy));
            }
            if network == RESNET && device == S10 {
                scenario.batch = context.reading_number("latency-batch")? as u64;
                let energy = context.run(&scenario)?.energy;
                outcome.number("sage/figure13/resnet50-on-galaxy-s10/sage/energy-per-iteration", energy.0);
            }
        }
        let lines = curves(&points, |point| point.0, |point| Some((point.1, point.2?)));
        let budget = axis("memory budget", "% of unmanaged").log();
        outcome.panel(&spelled(device), lines, budget, from_zero("energy", "J/sample"));
    }
    Ok(outcome)
}
