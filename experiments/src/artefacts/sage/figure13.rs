//! Figure 13: energy of an iteration against the memory budget.

use haversack_devices::units::Bytes;
use haversack_reports::figure::{Axis, Figure, Lines, Panel, Series};
use haversack_reports::table::Table;

use super::PHONES;
use super::setting::{NETWORKS, RESNET, run as simulate, run_within, scenario, under};
use crate::reproduce::{ArtefactError, Context, Outcome};

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut table = Table::new(["device", "network", "budget_percent", "joules_per_sample"]);
    let percents = context.reading_numbers("budgets")?;
    let mut figure =
        Figure::new("Sage, figure 13: energy of a sample under Sage, batch 32").panel_size(420, 300).share_y();
    for device in PHONES {
        let mut lines = Lines::new();
        for network in NETWORKS {
            let mut scenario = under(&scenario(context, device, network)?, "sage", &[]);
            let whole = simulate(context, &scenario)?.peak_memory.as_f64();
            let mut points = Vec::new();
            for &percent in percents {
                let budget = Bytes((whole * percent / 100.0).ceil() as u64);
                let energy = run_within(context, &scenario, budget)?.map(|r| r.energy.0 / scenario.batch as f64);
                points.extend(energy.map(|energy| (percent, energy)));
                table.push([(*device).into(), network.name.into(), percent.into(), energy.into()])?;
            }
            lines = lines.series(Series::new(network.name, points).ends_low());
            if network == RESNET && *device == "galaxy-s10" {
                scenario.batch = context.reading_number("latency-batch")? as u64;
                let energy = simulate(context, &scenario)?.energy;
                outcome.number("sage/figure13/resnet50-on-galaxy-s10/sage/energy-per-iteration", energy.0);
            }
        }
        let budget = Axis::new("memory budget").unit("% of unmanaged").log();
        figure = figure
            .panel(Panel::new(lines).title(*device).x(budget).y(Axis::new("energy").unit("J/sample").from_zero()));
    }
    outcome.figure = Some(figure);
    outcome.table = Some(table);
    outcome
        .notes
        .calibrated
        .push("The power of the rest of the Galaxy S10's SoC, on the one energy that the paper gives.".into());
    outcome.notes.predicted.push("The other networks, the other phone and how energy grows as memory shrinks.".into());
    outcome.notes.left_out.push("Heat: the paper does not consider it, nor does this figure.".into());
    Ok(outcome)
}
