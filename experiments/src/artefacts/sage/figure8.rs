//! Figure 8: the least memory that each scheme trains in.

use haversack_workloads::lowering::Gradients;

use super::setting::{NETWORKS, S10, artefact, scenario, unoptimised};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact =
    artefact("figure8", "the least memory that each scheme needs, four networks", run);

const SCHEMES: [&str; 5] = ["baseline", "GO", "DGC", "DGA", "Sage"];

fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("network,scheme,least_memory_mb,reduction");
    let (mut grid, mut worst) = (Grid::default(), f64::MAX);
    for network in NETWORKS {
        let reduced = scenario(context, S10, network)?;
        let baseline = context.run(&unoptimised(context, network)?)?.peak_memory;
        let over = |memory: Bytes| baseline.as_f64() / memory.as_f64();
        let least = |policy| context.least(&under(&reduced, policy, &[]));
        let optimised = context.run(&reduced)?.peak_memory;
        let memory = [baseline, optimised, least("dgc")?, least("dga")?, least("sage")?];
        worst = worst.min(over(memory[4]));
        let id = format!("sage/figure8/{}/sage/minimum-memory-reduction", network.subject);
        if context.row(&id).is_ok() {
            let kept = Scenario { gradients: Gradients::Kept, ..under(&reduced, "sage", &[]) };
            outcome.remark(&id, format!("{:.1} with all gradients held", over(context.least(&kept)?)));
            outcome.number(id, over(memory[4]));
        }
        for (scheme, memory) in SCHEMES.into_iter().zip(memory) {
            outcome.row((network.name, scheme, memory.megabytes(), over(memory)))?;
            grid.put([network.name, scheme, "memory"], Some(memory.megabytes()), None);
        }
    }
    outcome.number("sage/figure8/all/sage/minimum-memory-reduction", worst);
    let bars = grid.bars("memory");
    for series in &bars.series {
        outcome.quantity(&format!("least memory of {}", series.name), "MB", series.values.iter().copied().flatten());
    }
    outcome.bars("", bars, axis("least memory", "MB"));
    context.judge(&mut outcome, "sage/figure8/all/dga>dgc>go/memory-reduction")?;
    Ok(outcome)
}
