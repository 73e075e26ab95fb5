//! Table 1: nodes of the computable graph, memory and latency under each optimisation.

use haversack_workloads::lowering::{Variant, node_counts};

use super::null::null;
use super::setting::{MOBILENET, NETWORKS, S10, SageNetwork, beside_mobilenet, scenario};
use crate::artefacts::prelude::*;

/// The rows of the table: as the reference names them, for people, and the graph.
const METHODS: [(&str, &str, Variant); 4] = [
    ("original", "Original", Variant::Original),
    ("direct", "Direct", Variant::Direct),
    ("direct+of", "Direct+OF", Variant::Fused),
    ("direct+of+sr", "Direct+OF+SR", Variant::Reduced),
];
/// The columns: as the reference names them, for people, and their unit.
const METRICS: [(&str, &str, &str); 3] =
    [("co-nodes", "nodes of the graph", ""), ("memory", "memory", "MB"), ("latency", "latency of a sample", "ms")];

/// Nodes, megabytes and milliseconds of one row.
fn measure(context: &Context<'_>, network: SageNetwork, variant: Variant) -> Result<[f64; 3]> {
    measure_in(context, scenario(context, S10, network)?, variant)
}

/// The same in another setting.
fn measure_in(context: &Context<'_>, scenario: Scenario, variant: Variant) -> Result<[f64; 3]> {
    let scenario = Scenario { graph: Some(variant), ..scenario };
    let plan = context.plan(&scenario)?;
    let counts = node_counts(&plan.resolved.network)?;
    let nodes = Variant::ALL.iter().zip(counts).find(|(v, _)| **v == variant).map_or(0, |(_, count)| count);
    let memory = plan.run()?.peak_memory.megabytes();
    let one = Scenario { batch: context.reading_number("latency-batch")? as u64, ..scenario };
    Ok([nodes as f64, memory, context.run(&one)?.iteration.seconds() * 1e3])
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("network,optimisation,nodes,memory_mb,latency_ms");
    let mut grid = Grid::default();
    let (mut own, mut nulls) = (Vec::new(), Vec::new());
    for network in NETWORKS {
        // What Original takes, simulated and in the paper.
        let mut original = None;
        for (method, name, variant) in METHODS {
            let measured = measure(context, network, variant)?;
            outcome.row((network.name, name, measured))?;
            for ((metric, label, _), value) in METRICS.into_iter().zip(measured) {
                let id = format!("sage/table1/{}/{method}/{metric}", network.subject);
                let place = [network.name, name, label];
                let paper = grid.answer(context, &mut outcome, &id, place, value)?;
                let Some(paper) = paper.filter(|_| metric == "memory") else { continue };
                match original {
                    None => original = Some((value, paper)),
                    Some((simulated, stated)) => {
                        own.push(((value / simulated) / (paper / stated) - 1.0).abs() * 100.0);
                        let row = context.row(&id)?;
                        nulls.extend(null(context.reference, row).map(|null| (null / paper - 1.0).abs() * 100.0));
                    }
                }
            }
        }
    }
    for (setting, scenario) in beside_mobilenet(context)? {
        for (_, name, variant) in METHODS {
            let measured = measure_in(context, scenario.clone(), variant)?;
            outcome.row((format!("{} {setting}", MOBILENET.name), name, measured))?;
            if variant == Variant::Original {
                let [_, memory, latency] = measured;
                outcome.quantity(&format!("memory {setting}"), "MB", [memory]);
                outcome.quantity(&format!("latency {setting}"), "ms", [latency]);
            }
        }
    }
    let (rows, null_rows) = (own.len(), nulls.len());
    if let (Some(own), Some(null)) = (median(own), median(nulls)) {
        outcome.summary.push(format!(
            "table 1, memory relative to Original: median error {own:.1} % ({rows} rows); the null baseline has {null:.1} % where it applies ({null_rows} rows)",
        ));
    }
    outcome.nulls_of(&context.rows, |row| null(context.reference, row));
    for (metric, label, unit) in METRICS {
        outcome.compare_with_null(&context.rows, metric, &format!("table 1, {label}"));
        outcome.panel(label, grid.bars(label), Axis::default(), axis(label, unit));
    }
    Ok(outcome)
}
