//! Figure 21: energy of training within a memory budget, against training that has enough.

use haversack_devices::units::{Joules, Watts};
use haversack_reports::figure::{Axis, Figure, Lines, Panel, Series};
use haversack_reports::table::Table;
use haversack_training::Record;
use rayon::prelude::*;

use super::figure19::training::if_it_ends;
use super::setting::{FEW_PICTURES, MOBILENET, OP10P, scenario};
use crate::artefacts::mandheling::setting::{mean, range};
use crate::reproduce::{Answer, ArtefactError, Context, Outcome};
use crate::run::Plan;
use crate::scenario::{Budget, Scenario};

const INCREASE: &str = "fedhybrid/figure21/op10p-mobilenetv2,squeezenet-batch-16/fedhybrid/ideal/energy-increase";
const RATIO: &str = "fedhybrid/figure21/op10p/baselines/fedhybrid/energy-ratio";
/// The networks, and for people.
const NETWORKS: [(&str, &str); 2] = [MOBILENET, ("squeezenet1-1", "SqueezeNet 1.1")];
/// The policies, FedHybrid first, and for people.
const POLICIES: [(&str, &str); 4] =
    [("fedhybrid", "FedHybrid"), ("melon", "Melon"), ("capuchin", "Capuchin"), ("gact", "GACT")];

/// An iteration at a budget.
struct Point {
    network: usize,
    policy: usize,
    percent: f64,
    /// Time and energy; nothing where the policy has no plan.
    found: Option<(f64, Joules)>,
    /// The energy over that of training with enough memory.
    increase: Option<f64>,
}

/// All that a power monitor in the battery's place measures: what training draws, and the idle phone beside it.
fn energy(record: &Record, idle: Watts) -> Joules {
    record.energy + idle * record.iteration
}

fn of(context: &Context<'_>, network: usize, idle: Watts) -> Result<Vec<Point>, ArtefactError> {
    let base = scenario(context, OP10P, NETWORKS[network].0, FEW_PICTURES, "original")?;
    let ideal = energy(&Plan::new(&base, context.cache)?.run()?, idle);
    let percents = context.reading_numbers("energy-budgets")?;
    let cells: Vec<(usize, f64)> =
        (0..POLICIES.len()).flat_map(|policy| percents.iter().map(move |percent| (policy, *percent))).collect();
    let point = |(policy, percent): (usize, f64)| -> Result<Point, ArtefactError> {
        let own = scenario(context, OP10P, NETWORKS[network].0, FEW_PICTURES, POLICIES[policy].0)?;
        let scenario = Scenario { memory_budget: Some(Budget::Percent(percent)), ..own };
        let record = if_it_ends(Plan::new(&scenario, context.cache)?.run())?;
        let found = record.map(|record| (record.iteration.seconds(), energy(&record, idle)));
        let increase = found.map(|(_, energy)| energy.0 / ideal.0);
        Ok(Point { network, policy, percent, found, increase })
    };
    cells.into_par_iter().map(point).collect()
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome, ArtefactError> {
    let idle = context.device(OP10P)?.constants.power.idle.value;
    let mut points = Vec::new();
    for network in 0..NETWORKS.len() {
        points.extend(of(context, network, idle)?);
    }
    let mut outcome = Outcome::default();
    let own: Vec<f64> = points.iter().filter(|point| point.policy == 0).filter_map(|point| point.increase).collect();
    if let Some(mean) = mean(&own) {
        outcome.number(INCREASE, (mean - 1.0) * 100.0);
        if let Some((least, most)) = range(own.iter().map(|ratio| (ratio - 1.0) * 100.0)) {
            outcome.remark(INCREASE, format!("from {least:.1} to {most:.1} % over budgets and networks"));
        }
    }
    let ratios = points.iter().filter(|point| point.policy > 0).filter_map(|point| against_own(&points, point));
    if let Some((least, most)) = range(ratios) {
        outcome.answer(RATIO, Answer::Range(least, most));
    }
    outcome.table = Some(table(&points)?);
    outcome.figure = Some(figure(&points));
    notes(&mut outcome, &points, context.row(INCREASE)?.number());
    Ok(outcome)
}

/// A baseline's energy over FedHybrid's at the same budget.
fn against_own(points: &[Point], baseline: &Point) -> Option<f64> {
    let same =
        |point: &&Point| point.policy == 0 && point.network == baseline.network && point.percent == baseline.percent;
    Some(baseline.increase? / points.iter().find(same)?.increase?)
}

fn table(points: &[Point]) -> Result<Table, ArtefactError> {
    let mut table = Table::new([
        "network",
        "policy",
        "budget_percent",
        "time_s",
        "energy_j",
        "energy_over_ideal",
        "over_fedhybrid",
    ]);
    for point in points {
        let names = [NETWORKS[point.network].0.into(), POLICIES[point.policy].0.into(), point.percent.into()];
        let found = [point.found.map(|(time, _)| time).into(), point.found.map(|(_, energy)| energy.0).into()];
        let ratios = [point.increase.into(), against_own(points, point).into()];
        table.push(names.into_iter().chain(found).chain(ratios))?;
    }
    Ok(table)
}

fn figure(points: &[Point]) -> Figure {
    let mut figure = Figure::new("FedHybrid, figure 21: energy within a memory budget, batch 16 on the OnePlus 10 Pro")
        .note("Energy of an iteration with the idle phone's, over that of training with enough memory. The paper prints a mean of FedHybrid's and the range of the others against it.")
        .columns(2)
        .share_y()
        .order(POLICIES.map(|(_, name)| name))
        .panel_size(420, 320);
    for (network, (_, title)) in NETWORKS.iter().enumerate() {
        let mut lines = Lines::new();
        for (policy, (_, name)) in POLICIES.iter().enumerate() {
            let own = points.iter().filter(|point| point.network == network && point.policy == policy);
            let curve: Vec<_> = own.clone().filter_map(|point| Some((point.percent, point.increase?))).collect();
            let series = Series::new(*name, curve);
            lines = lines.series(if own.clone().any(|point| point.increase.is_none()) {
                series.ends_low()
            } else {
                series
            });
        }
        let budget = Axis::new("memory budget, of what training needs").unit("%");
        figure = figure.panel(Panel::new(lines).title(*title).x(budget).y(Axis::new("energy, over ideal").unit("x")));
    }
    figure
}

fn notes(outcome: &mut Outcome, points: &[Point], paper: Option<f64>) {
    let absent = points.iter().filter(|point| point.found.is_none());
    let absent: Vec<String> = absent
        .map(|point| format!("{} for {} at {} %", POLICIES[point.policy].1, NETWORKS[point.network].1, point.percent))
        .collect();
    let own = points.iter().filter(|point| point.policy == 0).filter_map(|point| point.increase);
    let most = own.fold(1.0, f64::max) * 100.0 - 100.0;
    let notes = &mut outcome.notes;
    notes.calibrated.push("Nothing on this figure: the power of cores, memory and flash is the phone's.".into());
    notes.predicted.push("All points. A run that takes longer takes more energy, since power hardly changes; one that waits for flash draws less in the meantime.".into());
    notes.left_out.push("The screen, and what a policy's own decisions cost.".into());
    if !absent.is_empty() {
        notes.left_out.push(format!("No plan fits: {}.", absent.join(", ")));
    }
    if paper.is_some_and(|paper| most < paper) {
        notes.misses.push(format!("FedHybrid's energy rises by {most:.1} % at most, less than the paper's mean. What is given up first is cheap to compute again, element by element, and convolutions are not touched; Algorithm 1 gives up no more than memory is short of, and what it does beside, and whether its pool has gaps, is not stated."));
    }
    if points.iter().filter_map(|point| against_own(points, point)).any(|ratio| ratio < 1.0) {
        notes.misses.push("Some baseline takes less than FedHybrid at some budget, in the paper none: swapping that hides behind computation costs cores little here, and GACT's packing streams through memory at full rate, where the paper's re-implementations on MNN may not.".into());
    }
}
