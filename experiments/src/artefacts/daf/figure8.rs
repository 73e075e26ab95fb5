//! Figure 8: how much less memory DAF takes.

use super::accuracy::{self, Learned};
use super::setting::{BOARD, DafNetwork, NETWORKS, of_method, reported, scenario};
use crate::artefacts::learning::Training;
use crate::artefacts::prelude::*;

/// A network, and Original's footprint over a method's memory: DAF's as the paper counts and like for like, and ActNN's.
pub(super) type Reduction = (&'static str, [f64; 3]);

pub(super) fn reductions(context: &Context<'_>) -> Result<Vec<Reduction>> {
    let of_network = |network: DafNetwork| {
        let plain = scenario(context, BOARD, network)?;
        let run = |method: &str| context.run(&of_method(context, network.kind(), &plain, method)?);
        let (original, actnn, daf) = (run("original")?, run("actnn")?, run("daf")?);
        let over = |memory: Bytes| original.reserved.as_f64() / memory.as_f64().max(1.0);
        Ok((network.name, [reported(&daf), daf.reserved, actnn.reserved].map(over)))
    };
    NETWORKS.into_iter().map(of_network).collect()
}

pub(super) fn largest(reductions: &[Reduction]) -> f64 {
    reductions.iter().map(|(_, reduction)| reduction[0]).fold(0.0, f64::max)
}

/// Stand-ins under Original, ActNN and DAF without a budget and with several for activations.
fn learned(context: &Context<'_>) -> Result<Vec<Learned>> {
    let budgets = context.reading_numbers("activation-budgets")?;
    let budgets = if context.full { budgets } else { &budgets[..budgets.len().min(1)] };
    accuracy::learned(context, |kind, stand_in| {
        let way = |name: String, scenario| (name, Training { stand_in: stand_in.clone(), scenario });
        let method = |method: &str| of_method(context, kind, &stand_in.scenario, method);
        let mut ways = vec![
            way("Original".to_owned(), method("original")?),
            way("ActNN".to_owned(), method("actnn")?),
            way("DAF".to_owned(), method("daf")?),
        ];
        for &percent in budgets {
            let activation_budget = Some(Budget::Percent(percent));
            let scenario = Scenario { activation_budget, ..under(&stand_in.scenario, "daf", &[]) };
            ways.push(way(format!("DAF, {percent} % for activations"), scenario));
        }
        Ok(ways)
    })
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let found = reductions(context)?;
    let mut outcome = Outcome::of("network,daf_store,daf_footprint,actnn_footprint");
    outcome.number("daf/figure8/all/daf/memory-reduction", largest(&found));
    for one in &found {
        outcome.row(*one)?;
    }
    let series: [Quantity<Reduction>; 3] = [
        ("DAF's store, as the paper counts", |one| one.1[0]),
        ("DAF, whole footprint", |one| one.1[1]),
        ("ActNN, whole footprint", |one| one.1[2]),
    ];
    let learned = learned(context)?;
    outcome.bars("", columns(found.iter().map(|one| one.0), &found, series), from_zero("reduction", "times"));
    accuracy::draw(context, &mut outcome, &learned)?;
    Ok(outcome)
}
