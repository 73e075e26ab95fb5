//! Figure 8: the least memory that each scheme trains in.

use haversack_workloads::lowering::Gradients;

use super::setting::{NETWORKS, S10, artefact, scenario, unoptimised};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact =
    artefact("figure8", "the least memory that each scheme needs, four networks", run);

const SCHEMES: [&str; 5] = ["baseline", "GO", "DGC", "DGA", "Sage"];

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut table = Table::new(["network", "scheme", "least_memory_mb", "reduction"]);
    let mut bars: Vec<Vec<f64>> = vec![Vec::new(); SCHEMES.len()];
    let mut worst = f64::MAX;
    for network in NETWORKS {
        let reduced = scenario(context, S10, network)?;
        let baseline = context.run(&unoptimised(context, network)?)?.peak_memory;
        let optimised = context.run(&reduced)?.peak_memory;
        let least = |policy| context.least(&under(&reduced, policy, &[]));
        let memory = [baseline, optimised, least("dgc")?, least("dga")?, least("sage")?];
        let reduction = baseline.as_f64() / memory[4].as_f64();
        worst = worst.min(reduction);
        let id = format!("sage/figure8/{}/sage/minimum-memory-reduction", network.subject);
        if context.row(&id).is_ok() {
            let kept = Scenario { gradients: Gradients::Kept, ..under(&reduced, "sage", &[]) };
            let alternative = baseline.as_f64() / context.least(&kept)?.as_f64();
            outcome.remark(&id, format!("{alternative:.1} with all gradients held"));
            outcome.number(id, reduction);
        }
        for (k, (scheme, memory)) in SCHEMES.iter().zip(memory).enumerate() {
            let reduction = baseline.as_f64() / memory.as_f64();
            table.push([network.name.into(), (*scheme).into(), memory.megabytes().into(), reduction.into()])?;
            bars[k].push(memory.megabytes());
        }
    }
    outcome.number("sage/figure8/all/sage/minimum-memory-reduction", worst);
    let mut chart = Bars::new(NETWORKS.map(|network| network.name)).show_values();
    for (scheme, values) in SCHEMES.iter().zip(bars) {
        outcome.quantity(&format!("least memory of {scheme}"), "MB", values.iter().copied());
        chart = chart.series(BarSeries::new(*scheme, values));
    }
    context.judge(&mut outcome, "sage/figure8/all/dga>dgc>go/memory-reduction")?;
    let panel = Panel::new(chart).y(Axis::new("least memory").unit("MB"));
    let figure =
        Figure::new("Sage, figure 8: least memory that each scheme needs, batch 32").panel_size(860, 320).panel(panel);
    Ok(outcome.drawn(figure, table))
}
