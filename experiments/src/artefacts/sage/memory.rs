//! Figures 2 and 8, and table 1: the memory that networks need.

use haversack_training::{Job, simulate};
use haversack_workloads::lowering::node_counts;
use haversack_workloads::{Phase, Role, TrainingGraph, Variant};

use super::setting::{RESNET, S10, is_fixed, scenario};
use crate::artefacts::prelude::*;
use crate::papers::reference::Reference;

/// Figure 2: inference and training, by weights and activations.
pub(super) fn figure2(context: &Context<'_>) -> Result<Outcome> {
    let records = records(context, "what,weights_mb,rest_mb,peak_gb,ratio", |scenario, ids| {
        let declared = Scenario { batch: context.reading_number("batch")? as u64, ..scenario.clone() };
        let weights = Bytes(context.plan(&declared)?.graph.bytes_of(Role::is_state).at(1)).megabytes();
        let inference = inference_peak(context, &declared)?;
        let (what, peak) = match ids[1].as_str() {
            "inference" => ("inference".to_owned(), None),
            batch => (format!("training, {batch}"), Some(context.run(scenario)?.peak_memory)),
        };
        let rest = peak.unwrap_or(inference).megabytes() - weights;
        let ratio = peak.map(|peak| peak.as_f64() / inference.as_f64());
        Ok((what, [weights, rest], [peak.map(|peak| peak.megabytes() / 1e3), ratio]))
    })?;
    show(context, records, Outcome::default())
}

/// The peak of only the forward pass, for one sample.
fn inference_peak(context: &Context<'_>, scenario: &Scenario) -> Result<Bytes> {
    let plan = context.plan(scenario)?;
    let mut graph: TrainingGraph = (*plan.graph).clone();
    graph.nodes.retain(|node| node.phase == Phase::Forward);
    let job = Job { graph: &graph, batch: 1, ..plan.job() };
    Ok(simulate(plan.machine(), &job, plan.policy()?.as_mut())?.peak_memory)
}

/// Figure 8: the least memory that each scheme trains in.
pub(super) fn figure8(context: &Context<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let baseline = |scenario: &Scenario| {
        let original = Scenario { graph: Some(Variant::Original), ..under(scenario, "original", &[]) };
        Ok::<_, anyhow::Error>(context.run(&original)?.peak_memory)
    };
    let records = records(context, "least_memory_mb,reduction,as_printed", |scenario, ids| {
        let baseline = baseline(scenario)?;
        let over = |memory: Bytes| baseline.as_f64() / memory.as_f64();
        let is_unmanaged = scenario.policy == "original";
        let memory = if is_unmanaged { context.run(scenario)?.peak_memory } else { context.least(scenario)? };
        let id = format!("sage/figure8/{}/sage/minimum-memory-reduction", ids[0]);
        let is_row = scenario.policy == "sage" && context.row(&id).is_ok();
        let as_printed = is_row.then(|| context.least(&with(scenario, &[("floor", "mtp")]))).transpose()?;
        Ok((memory.megabytes(), over(memory), as_printed.map(over)))
    })?;
    let reduced = scenario(context, S10, RESNET)?;
    let (graph, baseline) = (&context.plan(&reduced)?.graph, baseline(&reduced)?.as_f64());
    let alone = |counts: fn(Role) -> bool| [baseline / Bytes(graph.bytes_of(counts).at(1)).as_f64()];
    let weights = alone(|role| matches!(role, Role::Parameter { .. }));
    let with_gradients = alone(is_fixed);
    outcome.quantity("ResNet-50's baseline over its weights", "x", weights);
    outcome.quantity("ResNet-50's baseline over its weights and their gradients", "x", with_gradients);
    show(context, records, outcome)
}

/// Table 1: nodes of the computable graph, memory and latency under each optimisation.
pub(super) fn table1(context: &Context<'_>) -> Result<Outcome> {
    let records = records(context, "nodes,memory_mb,latency_ms", |scenario, _| {
        let plan = context.plan(scenario)?;
        let counts = Variant::ALL.into_iter().zip(node_counts(&plan.resolved.network)?);
        let nodes = counts.into_iter().find(|(variant, _)| Some(*variant) == scenario.graph).map_or(0, |found| found.1);
        let memory = plan.run()?.peak_memory.megabytes();
        let one = Scenario { batch: context.reading_number("latency-batch")? as u64, ..scenario.clone() };
        Ok([nodes as f64, memory, context.run(&one)?.iteration.seconds() * 1e3])
    })?;
    let mut outcome = Outcome::default();
    outcome.nulls_of(&context.rows, |row| null(context.reference, row));
    show(context, records, outcome)
}

/// The model whose ratios are used for the others.
const DONOR: &str = "resnet50";
/// The method that every ratio is relative to.
const ORIGINAL: &str = "original";

/// The model's own *Original* row times ResNet-50's ratio of this row to its Original.
///
/// `None` for ResNet-50 itself and for Original rows, which would be their own baseline, and if a number that is needed
/// is withheld.
pub(super) fn null(reference: &Reference, row: &ReferenceRow) -> Option<f64> {
    if row.subject == DONOR || row.method == ORIGINAL {
        return None;
    }
    let given = |subject: &str, method: &str| {
        let same =
            |other: &&ReferenceRow| other.subject == subject && other.method == method && other.metric == row.metric;
        reference.of(row.paper, &row.artefact).find(same).and_then(ReferenceRow::number)
    };
    let ratio = given(DONOR, &row.method)? / given(DONOR, ORIGINAL)?;
    Some(given(&row.subject, ORIGINAL)? * ratio).filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_models_ratio_is_applied_to_the_models_own_original() {
        let reference = Reference::load().unwrap();
        let null = |id: &str| null(&reference, reference.row(id)?);
        // 290 ms of MobileNet-v2's Original times ResNet-50's 1240 / 1161 = 309.73 ms.
        let direct = null("sage/table1/mobilenetv2/direct/latency").unwrap();
        assert!((direct - 309.73).abs() < 0.01, "{direct}");
        // A withheld row has a baseline too: 5120 nodes of DenseNet-121 times 650 / 1762 = 1888.76.
        let withheld = null("sage/table1/densenet121/direct+of+sr/co-nodes").unwrap();
        assert!((withheld - 1888.76).abs() < 0.01, "{withheld}");
        assert_eq!(null("sage/table1/mobilenetv2/original/latency"), None);
        assert_eq!(null("sage/table1/resnet50/direct/latency"), None);
        assert_eq!(null("sage/table1/nosuch/direct/latency"), None);
    }
}
