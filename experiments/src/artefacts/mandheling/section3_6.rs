//! Section 3.6: what engines spend on preparing a graph for every batch.

use haversack_training::Machine;

use super::setting::{MandhelingNetwork, XIAOMI_11_PRO};
use crate::artefacts::prelude::*;

/// The engines, as the reference names them and for people.
const ENGINES: [(&str, &str); 2] = [("tflite", "TFLite"), ("mnn", "MNN")];

/// A batch of VGG-16 under the engine of a row.
pub(crate) fn preparing(engine: &str, batch: u64) -> Scenario {
    let model = MandhelingNetwork::called("vgg16").map_or("vgg16-cifar", |network| network.model);
    Scenario { policy: format!("{engine}-fp32"), batch, ..Scenario::new(XIAOMI_11_PRO, model) }
}

/// What the engine spends on preparing the batch's graph, operator by operator.
pub(crate) fn preparation(plan: &Plan, machine: &Machine) -> Nanos {
    let scenario = plan.scenario();
    let launch = |id| machine.cost(&plan.graph, id, scenario.batch, scenario.precision).launch;
    (0..plan.graph.nodes.len()).map(launch).sum()
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let batch = context.reading_number("batch")? as u64;
    let mut outcome = Outcome::of("engine,operators,preparation_ms");
    let mut grid = Grid::default();
    for (engine, name) in ENGINES {
        let plan = context.plan(&preparing(engine, batch))?;
        let time = preparation(&plan, plan.machine()).seconds() * 1e3;
        let row = format!("mandheling/section3.6/vgg16/{engine}/graph-preparation");
        let operators = plan.graph.nodes.iter().filter(|node| node.work.launches > 0).count() as u64;
        outcome.row((engine, operators, time))?;
        grid.answer(context, &mut outcome, &row, [name, SIMULATED, "time"], time)?;
        outcome.remark(row, format!("{operators} operators"));
    }
    outcome.bars("", grid.bars("time"), from_zero("preparation", "ms"));
    Ok(outcome)
}
