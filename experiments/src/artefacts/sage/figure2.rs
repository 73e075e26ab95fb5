//! Figure 2: memory of inference and of training, by weights and activations.

use haversack_training::{Job, simulate};
use haversack_workloads::{Phase, Role, TrainingGraph};

use super::setting::{MOBILENET, NETWORKS, artefact, unoptimised};
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact =
    artefact("figure2", "memory of inference and of training at several batches, four networks", run);

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let batches = context.reading_numbers("figure2-batches")?;
    let mut outcome = Outcome::default();
    let mut table = Table::new(["network", "what", "weights_mb", "rest_mb"]);
    let mut figure = Figure::new("Sage, figure 2: memory of inference and training").panel_size(330, 230).columns(2);
    let mut ratios: Vec<f64> = Vec::new();
    for network in NETWORKS {
        let mut scenario = unoptimised(context, network)?;
        let mut names = Vec::new();
        let (mut weights, mut rest) = (Vec::new(), Vec::new());
        let inference = inference_peak(context, &scenario)?;
        let of_weights = context.plan(&scenario)?.graph.bytes_of(Role::is_state).at(1);
        let mut push = |name: String, peak: Bytes| -> Result<(), ArtefactError> {
            let held = Bytes(of_weights).megabytes();
            table.push([network.name.into(), name.as_str().into(), held.into(), (peak.megabytes() - held).into()])?;
            names.push(name);
            weights.push(held);
            rest.push(peak.megabytes() - held);
            Ok(())
        };
        push("inference".to_owned(), inference)?;
        for &batch in batches {
            scenario.batch = batch as u64;
            let peak = context.run(&scenario)?.peak_memory;
            push(format!("training, {batch}"), peak)?;
            ratios.push(peak.as_f64() / inference.as_f64());
            if network == MOBILENET && (batch - context.reading_number("batch")?).abs() < 0.5 {
                outcome.number("sage/figure2/mobilenetv2/training/memory", peak.megabytes() / 1e3);
            }
        }
        let stack = Stack::new(names).part("weights", weights).part("activations and gradients", rest).show_totals();
        figure = figure.panel(Panel::new(stack).title(network.name).y(Axis::new("memory").unit("MB")));
    }
    if let Some((low, high)) = range(ratios) {
        outcome.answer("sage/figure2/all/training/inference/memory-ratio", Answer::Range(low, high));
    }
    Ok(outcome.drawn(figure, table))
}

/// The peak of the forward pass alone, of one sample.
fn inference_peak(context: &Context<'_>, scenario: &Scenario) -> Result<Bytes, ArtefactError> {
    let plan = context.plan(scenario)?;
    let mut graph: TrainingGraph = (*plan.graph).clone();
    graph.nodes.retain(|node| node.phase == Phase::Forward);
    let job = Job { graph: &graph, batch: 1, ..plan.job() };
    Ok(simulate(plan.machine(), &job, plan.policy()?.as_mut())?.peak_memory)
}
