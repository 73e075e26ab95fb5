//! Figure 8: the least memory that each scheme trains in.

use haversack_workloads::Role;

use super::setting::{NETWORKS, RESNET, S10, scenario, unoptimised};
use crate::artefacts::prelude::*;

const SCHEMES: [&str; 5] = ["baseline", "GO", "DGC", "DGA", "Sage"];

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
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
            let further = under(&reduced, "sage", &[("floor", "1")]);
            outcome
                .remark(&id, format!("{:.1} if accumulation goes down to one sample", over(context.least(&further)?)));
            outcome.number(id, over(memory[4]));
        }
        if network == RESNET {
            let graph = &context.plan(&reduced)?.graph;
            let alone = |counts: fn(Role) -> bool| over(Bytes(graph.bytes_of(counts).at(1)));
            let weights = alone(|role| matches!(role, Role::Parameter { .. }));
            let with_gradients = alone(|role| matches!(role, Role::Parameter { .. } | Role::ParameterGradient));
            outcome.quantity("ResNet-50's baseline over its weights", "x", [weights]);
            outcome.quantity("ResNet-50's baseline over its weights and their gradients", "x", [with_gradients]);
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
