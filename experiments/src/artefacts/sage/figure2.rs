//! Figure 2: memory of inference and of training, by weights and activations.

use haversack_training::{Job, simulate};
use haversack_workloads::{Phase, Role, TrainingGraph};

use super::setting::{MOBILENET, NETWORKS, beside_mobilenet, unoptimised};
use crate::artefacts::prelude::*;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("network,what,weights_mb,rest_mb");
    let mut ratios: Vec<f64> = Vec::new();
    for network in NETWORKS {
        let mut scenario = unoptimised(context, network)?;
        let weights = Bytes(context.plan(&scenario)?.graph.bytes_of(Role::is_state).at(1)).megabytes();
        let inference = inference_peak(context, &scenario)?;
        let mut peaks = vec![("inference".to_owned(), weights, inference.megabytes() - weights)];
        for &batch in context.reading_numbers("figure2-batches")? {
            scenario.batch = batch as u64;
            let peak = context.run(&scenario)?.peak_memory;
            peaks.push((format!("training, {batch}"), weights, peak.megabytes() - weights));
            ratios.push(peak.as_f64() / inference.as_f64());
            if network == MOBILENET && (batch - context.reading_number("batch")?).abs() < 0.5 {
                outcome.number("sage/figure2/mobilenetv2/training/memory", peak.megabytes() / 1e3);
            }
        }
        for (what, weights, rest) in &peaks {
            outcome.row((network.name, what.as_str(), *weights, *rest))?;
        }
        let names = peaks.iter().map(|peak| peak.0.as_str());
        let stack = stacks(names, &peaks, [("weights", |peak| peak.1), ("activations and gradients", |peak| peak.2)]);
        outcome.panel(network.name, stack.show_totals(), Axis::default(), axis("memory", "MB"));
    }
    for (setting, scenario) in beside_mobilenet(context)? {
        let peak = context.run(&scenario)?.peak_memory;
        outcome.quantity(&format!("memory {setting}"), "MB", [peak.megabytes()]);
    }
    outcome.range("sage/figure2/all/training/inference/memory-ratio", ratios);
    Ok(outcome)
}

/// The peak of the forward pass alone, of one sample.
fn inference_peak(context: &Context<'_>, scenario: &Scenario) -> Result<Bytes> {
    let plan = context.plan(scenario)?;
    let mut graph: TrainingGraph = (*plan.graph).clone();
    graph.nodes.retain(|node| node.phase == Phase::Forward);
    let job = Job { graph: &graph, batch: 1, ..plan.job() };
    Ok(simulate(plan.machine(), &job, plan.policy()?.as_mut())?.peak_memory)
}
