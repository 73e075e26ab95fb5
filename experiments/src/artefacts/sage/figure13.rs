//! Figure 13: energy of an iteration against the memory budget.

use super::setting::{NETWORKS, PHONES, RESNET, S10, artefact, scenario};
use super::throughput::budget;
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact = Artefact {
    devices: PHONES,
    ..artefact("figure13", "energy of an iteration against the memory budget, four networks on two phones", run)
};

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut table = Table::new(["device", "network", "budget_percent", "joules_per_sample"]);
    let percents = context.reading_numbers("budgets")?;
    let mut figure =
        Figure::new("Sage, figure 13: energy of a sample under Sage, batch 32").panel_size(420, 300).share_y();
    for device in PHONES {
        let mut lines = Lines::new();
        for network in NETWORKS {
            let mut scenario = under(&scenario(context, device, network)?, "sage", &[]);
            let whole = context.run(&scenario)?.peak_memory;
            let mut points = Vec::new();
            for &percent in percents {
                let record = context.within(&scenario, budget(whole, percent))?;
                let energy = record.map(|record| record.energy.0 / scenario.batch as f64);
                points.extend(energy.map(|energy| (percent, energy)));
                table.push([(*device).into(), network.name.into(), percent.into(), energy.into()])?;
            }
            lines = lines.series(Series::new(network.name, points).ends_low());
            if network == RESNET && *device == S10 {
                scenario.batch = context.reading_number("latency-batch")? as u64;
                let energy = context.run(&scenario)?.energy;
                outcome.number("sage/figure13/resnet50-on-galaxy-s10/sage/energy-per-iteration", energy.0);
            }
        }
        let budget = Axis::new("memory budget").unit("% of unmanaged").log();
        figure = figure
            .panel(Panel::new(lines).title(*device).x(budget).y(Axis::new("energy").unit("J/sample").from_zero()));
    }
    Ok(outcome.drawn(figure, table))
}
