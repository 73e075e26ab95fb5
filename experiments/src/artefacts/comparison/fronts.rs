//! Every policy at every budget, on one common engine and on the engine of its paper: memory against time and against
//! energy, with the fronts of each policy and of all.

use std::collections::BTreeMap;

use haversack_reports::pareto::{BOTH_MINIMISED, fair_front};
use haversack_training::{Fidelity, FidelityClass};

use crate::artefacts::mandheling::setting::{BatchCost, BatchQuantity, QUANTITIES, mean_batch, timed};
use crate::artefacts::prelude::*;
use crate::papers::readings::Value;

/// The network, and the mini-batch size.
const MODEL: &str = "mobilenetv2";
const BATCH: u64 = 32;
/// The policies with display names; those after the first four have no budget.
pub(super) const POLICIES: [(&str, &str); 5] = [
    ("daf", "DAF"),
    ("sage", "Sage"),
    ("fedhybrid", "FedHybrid"),
    ("mandheling", "Mandheling"),
    ("original", "no policy"),
];
/// Budgets in percent of the memory that training needs on the same engine without a policy.
const PERCENTS: [f64; 11] = [100.0, 90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 20.0, 15.0, 10.0];
/// MNN's graph on the four fastest cores, as in `FedHybrid`.
const MNN: (&str, &str) = ("mnn-2", "big:4");
/// Sage's engine on the GPU, on which DAF's policy runs too.
const SAGE: &str = "sage-opencl";

/// The engines on which policies are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engines {
    /// One engine for all policies that it can run.
    One,
    /// Each policy's own engine.
    Own,
}

impl Engines {
    pub(super) const BOTH: [(Self, &'static str); 2] =
        [(Self::One, "one engine: MNN on four big cores"), (Self::Own, "each on its paper's engine and processor")];

    /// The stacks and cores for `policy`, one row each; Mandheling sets its own, and runs on no other.
    fn of(self, policy: &str) -> &'static [(Option<&'static str>, Option<&'static str>)] {
        const ON_MNN: (Option<&str>, Option<&str>) = (Some(MNN.0), Some(MNN.1));
        const ON_SAGE: (Option<&str>, Option<&str>) = (Some(SAGE), None);
        match (self, policy) {
            (Self::One, "mandheling") => &[],
            (Self::Own, "mandheling") => &[(None, None)],
            (Self::Own, "original") => &[ON_MNN, ON_SAGE],
            (Self::Own, "daf" | "sage") => &[ON_SAGE],
            _ => &[ON_MNN],
        }
    }
}

/// A policy at a budget.
pub(super) struct PolicyPoint {
    pub(super) engines: Engines,
    pub(super) policy: (&'static str, &'static str),
    /// The stack.
    pub(super) stack: String,
    /// The budget in percent of the need; `None` without one.
    pub(super) percent: Option<f64>,
    /// The cost of an iteration above the idle phone, and the memory of the framework; `None` if no
    /// plan fits the budget.
    pub(super) found: Option<(BatchCost, Bytes)>,
    /// How faithful its gradients are.
    pub(super) fidelity: Fidelity,
}

/// All points on the artefact's phone.
pub(super) fn points(context: &Context<'_>) -> Result<Vec<PolicyPoint>> {
    let mut wanted = Vec::new();
    for (engines, _) in Engines::BOTH {
        for policy in POLICIES {
            for &(stack, cores) in engines.of(policy.0) {
                let scenario = Scenario {
                    seed: context.seed,
                    stack: stack.map(str::to_owned),
                    cores: cores.map(str::parse).transpose()?,
                    ..trained(context.artefact.id, MODEL, policy.0, BATCH)
                };
                let budgets: Vec<Option<f64>> = match policy.0 {
                    "mandheling" | "original" => vec![None],
                    _ => PERCENTS.map(Some).to_vec(),
                };
                wanted.extend(budgets.into_iter().map(|percent| (engines, policy, percent, scenario.clone())));
            }
        }
    }
    let point = |(engines, policy, percent, mut scenario): (_, _, Option<f64>, Scenario)| {
        scenario.memory_budget = percent.map(Budget::Percent);
        let stack = context.plan(&scenario)?.machine().stack.id.clone();
        // The mean over the batches that Mandheling's artefacts use; for every other policy this is one batch.
        let found = mean_batch(context, &timed(&scenario, warm_up(context)?))?;
        let fidelity = context.run_if_it_ends(&scenario)?.map(|record| record.fidelity).unwrap_or_default();
        Ok(PolicyPoint { engines, policy, stack, percent, found, fidelity })
    };
    wanted.into_par_iter().map(point).collect()
}

/// Batches after which Mandheling's scales have settled, from the reading of its own artefacts.
fn warm_up(context: &Context<'_>) -> Result<u64> {
    let settled = context.readings.reading("mandheling", "table7", "settled");
    match settled.map(|reading| &reading.value) {
        Some(Value::Number(batches)) => Ok(*batches as u64),
        _ => bail!("Mandheling's reading `settled` is not a number"),
    }
}

/// The costs that are drawn against memory.
const COSTS: [BatchQuantity; 2] = QUANTITIES;

/// Gigabytes of the framework's memory, and the cost.
fn place(batch: BatchCost, memory: Bytes, cost: BatchQuantity) -> (f64, f64) {
    (memory.as_f64() / 1e9, (cost.of)(batch))
}

pub(super) fn run(context: &Context<'_>) -> Result<Outcome> {
    let points = points(context)?;
    let header = "engines,title,policy,name,stack,budget_percent,memory_gb,time_s,energy_j,on_fronts,gradients";
    let (mut records, mut outcome) = (Records::of(header), Outcome::default());
    for point in &points {
        let place = usize::from(point.engines == Engines::Own);
        let (engines, title) = (["one", "own"][place], Engines::BOTH[place].1);
        let memory = point.found.map(|(_, memory)| memory.as_f64() / 1e9);
        let costs = COSTS.map(|cost| point.found.map(|(batch, _)| (cost.of)(batch)));
        let is_best = |cost| best(&points, point.engines, cost).iter().any(|other| std::ptr::eq(*other, point));
        let fronts: Vec<&str> = COSTS.into_iter().filter(|cost| is_best(*cost)).map(|cost| cost.name).collect();
        let case = ([engines, title, point.policy.0, point.policy.1, point.stack.as_str()], point.percent);
        records.row((case, memory, costs, [fronts.join(" and "), point.fidelity.class().word().to_owned()]))?;
    }
    offer(&mut outcome, &points);
    show(context, records, outcome)
}

/// The points that no other point with the same or smaller losses in the gradients beats, in ascending order of memory.
fn best(points: &[PolicyPoint], engines: Engines, cost: BatchQuantity) -> Vec<&PolicyPoint> {
    let own = points.iter().filter(|point| point.engines == engines);
    let (own, places): (Vec<&PolicyPoint>, Vec<(f64, f64)>) =
        own.filter_map(|point| point.found.map(|(batch, memory)| (point, place(batch, memory, cost)))).unzip();
    let losses: Vec<[u64; 4]> = own.iter().map(|point| point.fidelity.losses()).collect();
    fair_front(&places, &losses, BOTH_MINIMISED).into_iter().map(|index| own[index]).collect()
}

/// The policies of a front, without immediate repetitions.
fn names(front: &[&PolicyPoint]) -> String {
    let mut names: Vec<&str> = front.iter().map(|point| point.policy.1).collect();
    names.dedup();
    names.join(", ")
}

/// Adds the fronts to the summary, and the quantities that the notes quote.
fn offer(outcome: &mut Outcome, points: &[PolicyPoint]) {
    for (engines, title) in Engines::BOTH {
        let of = |cost| {
            let mut classes: BTreeMap<FidelityClass, Vec<&PolicyPoint>> = BTreeMap::new();
            for point in best(points, engines, cost) {
                classes.entry(point.fidelity.class()).or_default().push(point);
            }
            let words = classes.iter().map(|(class, front)| format!("{} {}", class.word(), names(front)));
            words.collect::<Vec<_>>().join("; ")
        };
        let [time, energy] = COSTS.map(of);
        outcome.summary.push(format!(
            "{title}: from the least memory on, by how faithful gradients are, the front of time is {time}; of energy {energy}"
        ));
    }
    let absent = points.iter().filter(|point| point.found.is_none());
    let name = |point: &PolicyPoint| {
        format!("{} at {} % under {}", point.policy.1, point.percent.unwrap_or_default(), point.stack)
    };
    outcome.list("points without a plan", absent.map(name));
}
