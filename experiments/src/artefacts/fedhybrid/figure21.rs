//! Figure 21: energy of training within a memory budget, against training that has enough.

use haversack_devices::units::{Joules, Watts};
use haversack_training::Record;
use rayon::prelude::*;

use super::setting::{FEW_PICTURES, MOBILENET, OP10P, scenario};
use crate::artefacts::prelude::*;

const INCREASE: &str = "fedhybrid/figure21/op10p-mobilenetv2,squeezenet-batch-16/fedhybrid/ideal/energy-increase";
const RATIO: &str = "fedhybrid/figure21/op10p/baselines/fedhybrid/energy-ratio";
/// The networks, and for people.
const NETWORKS: [(&str, &str); 2] = [MOBILENET, ("squeezenet1-1", "SqueezeNet 1.1")];
/// The policies, FedHybrid first, and for people.
const POLICIES: [(&str, &str); 4] =
    [("fedhybrid", "FedHybrid"), ("melon", "Melon"), ("capuchin", "Capuchin"), ("gact", "GACT")];

/// An iteration at a budget.
struct EnergyPoint {
    network: usize,
    policy: usize,
    percent: f64,
    /// Time and energy; `None` if the policy has no plan.
    found: Option<(f64, Joules)>,
    /// The energy over that of training with enough memory.
    increase: Option<f64>,
}

/// All that a power monitor in the battery's place measures: what training draws, and the idle phone beside it.
fn energy(record: &Record, idle: Watts) -> Joules {
    record.energy + idle * record.iteration
}

fn of(context: &Context<'_>, network: usize, idle: Watts) -> Result<Vec<EnergyPoint>> {
    let base = scenario(context, OP10P, NETWORKS[network].0, FEW_PICTURES, "original")?;
    let ideal = energy(&context.run(&base)?, idle);
    let percents = context.reading_numbers("energy-budgets")?;
    let cells: Vec<(usize, f64)> =
        (0..POLICIES.len()).flat_map(|policy| percents.iter().map(move |percent| (policy, *percent))).collect();
    let point = |(policy, percent): (usize, f64)| -> Result<EnergyPoint> {
        let own = scenario(context, OP10P, NETWORKS[network].0, FEW_PICTURES, POLICIES[policy].0)?;
        let record = context.within(&own, Budget::Percent(percent))?;
        let found = record.map(|record| (record.iteration.seconds(), energy(&record, idle)));
        let increase = found.map(|(_, energy)| energy.0 / ideal.0);
        Ok(EnergyPoint { network, policy, percent, found, increase })
    };
    cells.into_par_iter().map(point).collect()
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let idle = context.device(OP10P)?.constants.power.idle.value;
    let mut points = Vec::new();
    for network in 0..NETWORKS.len() {
        points.extend(of(context, network, idle)?);
    }
    let mut outcome = Outcome::of("network,policy,budget_percent,time_s,energy_j,energy_over_ideal,over_fedhybrid");
    for point in &points {
        let found = [point.found.map(|(time, _)| time), point.found.map(|(_, energy)| energy.0)];
        let ratios = [point.increase, against_own(&points, point)];
        outcome.row((NETWORKS[point.network].0, POLICIES[point.policy].0, point.percent, found, ratios))?;
    }
    for (network, (_, title)) in NETWORKS.into_iter().enumerate() {
        let own = points.iter().filter(|point| point.network == network);
        let lines = curves(own, |point| POLICIES[point.policy].1, |point| Some((point.percent, point.increase?)));
        let budget = axis("memory budget, of what training needs", "%");
        outcome.panel(title, lines, budget, axis("energy, over ideal", "x"));
    }
    let own: Vec<f64> = points.iter().filter(|point| point.policy == 0).filter_map(|point| point.increase).collect();
    if let Some(mean) = mean(&own) {
        outcome.number(INCREASE, (mean - 1.0) * 100.0);
        if let Some((least, most)) = range(own.iter().map(|ratio| (ratio - 1.0) * 100.0)) {
            outcome.remark(INCREASE, format!("from {least:.1} to {most:.1} % over budgets and networks"));
        }
    }
    let ratios = points.iter().filter(|point| point.policy > 0).filter_map(|point| against_own(&points, point));
    outcome.range(RATIO, ratios);
    offer(&mut outcome, &points, context.paper(INCREASE)?);
    Ok(outcome)
}

/// A baseline's energy over FedHybrid's at the same budget.
fn against_own(points: &[EnergyPoint], baseline: &EnergyPoint) -> Option<f64> {
    let same = |point: &&EnergyPoint| {
        point.policy == 0 && point.network == baseline.network && point.percent == baseline.percent
    };
    Some(baseline.increase? / points.iter().find(same)?.increase?)
}

/// What the notes quote.
fn offer(outcome: &mut Outcome, points: &[EnergyPoint], paper: Option<f64>) {
    let absent = points.iter().filter(|point| point.found.is_none());
    let name = |point: &EnergyPoint| {
        format!("{} for {} at {} %", POLICIES[point.policy].1, NETWORKS[point.network].1, point.percent)
    };
    outcome.list("points without a plan", absent.map(name));
    let own = points.iter().filter(|point| point.policy == 0).filter_map(|point| point.increase);
    let most = own.fold(1.0, f64::max) * 100.0 - 100.0;
    if paper.is_some_and(|paper| most < paper) {
        outcome.quantity("largest increase of energy", "%", [most]);
    }
    let least = range(points.iter().filter_map(|point| against_own(points, point)));
    if let Some((least, _)) = least.filter(|(least, _)| *least < 1.0) {
        outcome.quantity("least energy over FedHybrid's", "", [least]);
    }
}
