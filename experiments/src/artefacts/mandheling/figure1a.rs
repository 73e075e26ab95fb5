//! Figure 1a: how much longer training takes than inference, batch 64.

use haversack_workloads::Phase;
use haversack_workloads::counts::count;

use super::setting::{NETWORKS, XIAOMI_10, on_xiaomi_10, scenario};
use super::table6::layers;
use crate::artefacts::prelude::*;

pub(super) static ARTEFACT: Artefact =
    Artefact { stacks: &["mnn"], ..on_xiaomi_10("figure1a", "how much longer training takes than inference", run) };

const ROW: &str = "mandheling/figure1a/batch-64/training/inference/time-ratio";

/// Inference as the reading has it: the products of the forward pass, prepared before.
fn inference(plan: &Plan) -> Nanos {
    let scenario = plan.scenario();
    let products = plan.graph.nodes.iter().enumerate();
    let products = products.filter(|(_, node)| node.phase == Phase::Forward && node.work.kind.is_dense_product());
    products.map(|(id, _)| plan.machine().cost(&plan.graph, id, scenario.batch, scenario.precision).busy).sum()
}

fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let mut outcome = Outcome::default();
    let mut table = Table::new(["network", "training_s", "inference_s", "ratio", "ratio_of_operations"]);
    let (mut ratios, mut operations) = (Vec::new(), Vec::new());
    for network in NETWORKS {
        let plan = context.plan(&scenario(context, XIAOMI_10, network, "mnn-fp32")?)?;
        let (training, inference) = (plan.run()?.iteration.seconds(), inference(&plan).seconds());
        let counts = count(&layers(context, network)?, 1);
        let ratio = training / inference;
        let of_operations = counts.training_flops as f64 / counts.forward_flops as f64;
        table.push([network.name.into(), training.into(), inference.into(), ratio.into(), of_operations.into()])?;
        ratios.push(ratio);
        operations.push(of_operations);
    }
    let [mean_time, mean_operations] = [&ratios, &operations].map(|of| mean(of).unwrap_or_default());
    outcome.number(ROW, mean_time);
    outcome.null(ROW, mean_operations);
    outcome.quantity("ratio of operations", "", [mean_operations]);
    let each = Bars::new(NETWORKS.map(|network| network.name))
        .series(BarSeries::new("time", ratios))
        .series(BarSeries::new("operations", operations))
        .show_values();
    let means = Bars::new(["mean"])
        .series(BarSeries::new("time", [mean_time]))
        .series(BarSeries::new("time", [context.row(ROW)?.number()]).look(Look::Hatched))
        .series(BarSeries::new("operations", [mean_operations]))
        .show_values();
    let axis = || Axis::new("training over inference").unit("times").from_zero();
    let figure = Figure::new("Mandheling, figure 1a: training over inference under MNN-FP32, Xiaomi 10, batch 64")
        .panel_size(560, 320)
        .share_y()
        .panel(Panel::new(each).title("networks").y(axis()))
        .panel(Panel::new(means).title("mean of the six").y(axis()));
    Ok(outcome.drawn(figure, table))
}
