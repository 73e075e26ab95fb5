//! Figure 2: memory of inference and of training, by weights and activations.

use haversack_devices::units::Bytes;
use haversack_reports::figure::{Axis, Figure, Panel, Stack};
use haversack_reports::table::Table;
use haversack_training::{Job, simulate};
use haversack_workloads::lowering::Variant;
use haversack_workloads::{Phase, Role, TrainingGraph};

use super::setting::{MOBILENET, NETWORKS, scenario};
use crate::reproduce::{Answer, ArtefactError, Context, Outcome};
use crate::run::Plan;

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let batches = context.reading_numbers("figure2-batches")?;
    let mut outcome = Outcome::default();
    let mut table = Table::new(["network", "what", "weights_mb", "rest_mb"]);
    let mut figure = Figure::new("Sage, figure 2: memory of inference and training").panel_size(330, 230).columns(2);
    let mut ratios: Vec<f64> = Vec::new();
    for network in NETWORKS {
        let mut scenario = scenario(context, "galaxy-s10", network)?;
        scenario.graph = Some(Variant::Original);
        let mut names = Vec::new();
        let (mut weights, mut rest) = (Vec::new(), Vec::new());
        let inference = inference_peak(context, &scenario)?;
        let of_weights = Plan::new(&scenario, context.cache)?.graph.bytes_of(Role::is_state).at(1);
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
            let peak = super::setting::run(context, &scenario)?.peak_memory;
            push(format!("training, {batch}"), peak)?;
            ratios.push(peak.as_f64() / inference.as_f64());
            if network == MOBILENET && (batch - context.reading_number("batch")?).abs() < 0.5 {
                outcome.number("sage/figure2/mobilenetv2/training/memory", peak.megabytes() / 1e3);
            }
        }
        let stack = Stack::new(names).part("weights", weights).part("activations and gradients", rest).show_totals();
        figure = figure.panel(Panel::new(stack).title(network.name).y(Axis::new("memory").unit("MB")));
    }
    let (low, high) = ratios.iter().fold((f64::MAX, 0.0f64), |(low, high), &r| (low.min(r), high.max(r)));
    outcome.answer("sage/figure2/all/training/inference/memory-ratio", Answer::Range(low, high));
    outcome.figure = Some(figure);
    outcome.table = Some(table);
    outcome.notes.predicted.push("Every bar: peaks of the unoptimised graph, inference of one sample.".into());
    outcome.notes.misses.push(
        "The ratios of training to inference span 6 to 71, not 5 to 100: the paper does not say which inputs and batches its span is over, and the declared ones do not reach its ends.".into(),
    );
    outcome.notes.left_out.push("The optimiser's share: plain SGD has no state.".into());
    Ok(outcome)
}

/// The peak of the forward pass alone, of one sample.
fn inference_peak(context: &Context<'_>, scenario: &crate::scenario::Scenario) -> Result<Bytes, ArtefactError> {
    let plan = Plan::new(scenario, context.cache)?;
    let mut graph: TrainingGraph = (*plan.graph).clone();
    graph.nodes.retain(|node| node.phase == Phase::Forward);
    let job = Job { graph: &graph, batch: 1, ..plan.job() };
    Ok(simulate(plan.machine(), &job, plan.policy()?.as_mut())?.peak_memory)
}
