//! Figure 1a: how much longer training takes than inference, batch 64.

use haversack_workloads::Phase;
use haversack_workloads::counts::count;

use super::setting::{NETWORKS, XIAOMI_10, scenario};
use super::table6::layers;
use crate::artefacts::prelude::*;

const ROW: &str = "mandheling/figure1a/batch-64/training/inference/time-ratio";

/// Inference as the reading has it: the products of the forward pass, prepared before.
fn inference(plan: &Plan) -> Nanos {
    let scenario = plan.scenario();
    let products = plan.graph.nodes.iter().enumerate();
    let products = products.filter(|(_, node)| node.phase == Phase::Forward && node.work.kind.is_dense_product());
    products.map(|(id, _)| plan.machine().cost(&plan.graph, id, scenario.batch, scenario.precision).busy).sum()
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::of("network,training_s,inference_s,ratio,ratio_of_operations");
    let mut ratios = Vec::new();
    for network in NETWORKS {
        let plan = context.plan(&scenario(context, XIAOMI_10, network, "mnn-fp32")?)?;
        let (training, inference) = (plan.run()?.iteration.seconds(), inference(&plan).seconds());
        let counts = count(&layers(context, network)?, 1);
        let ratio = [training / inference, counts.training_flops as f64 / counts.forward_flops as f64];
        outcome.row((network.name, training, inference, ratio))?;
        ratios.push(ratio);
    }
    let means = [0, 1].map(|of| mean(&ratios.iter().map(|ratio| ratio[of]).collect::<Vec<_>>()).unwrap_or_default());
    outcome.number(ROW, means[0]);
    outcome.null(ROW, means[1]);
    outcome.quantity("ratio of operations", "", [means[1]]);
    let training_over_inference = || from_zero("training over inference", "times");
    let each = columns(
        NETWORKS.map(|network| network.name),
        &ratios,
        [("time", |ratio| ratio[0]), ("operations", |ratio| ratio[1])],
    );
    outcome.bars("networks", each, training_over_inference());
    let bars = beside(Bars::new(["mean"]), "time", [means[0]], [context.paper(ROW)?]);
    outcome.bars("mean of the six", bars.series(BarSeries::new("operations", [means[1]])), training_over_inference());
    Ok(outcome)
}
