//! Section 3.6: what engines spend on preparing a graph for every batch.

use haversack_training::Machine;

use super::setting::XIAOMI_11_PRO;
use crate::artefacts::prelude::*;
use crate::artefacts::sweep::swept;

/// A batch of VGG-16 under the engine of a row.
pub(crate) fn preparing(engine: &str, batch: u64) -> Scenario {
    Scenario { policy: format!("{engine}-fp32"), batch, ..Scenario::new(XIAOMI_11_PRO, "vgg16-cifar") }
}

/// What the engine spends on preparing the batch's graph, operator by operator.
pub(crate) fn preparation(plan: &Plan, machine: &Machine) -> Nanos {
    let scenario = plan.scenario();
    let launch = |id| machine.cost(&plan.graph, id, scenario.batch, scenario.precision).launch;
    (0..plan.graph.nodes.len()).map(launch).sum()
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let batch = context.reading_number("batch")? as u64;
    swept(context, "operators,preparation_ms", |_, ids| {
        let plan = context.plan(&preparing(&ids[0], batch))?;
        let operators = plan.graph.nodes.iter().filter(|node| node.work.launches > 0).count() as u64;
        Ok((operators, preparation(&plan, plan.machine()).seconds() * 1e3))
    })
}
