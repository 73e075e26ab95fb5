//! Figure 20c: what new plans cost, by making them: the planner's operations on the phone's core for services and on one
//! of the server, and what is sent for a plan.

use haversack_policies::fedhybrid::Parameters;
use haversack_policies::fedhybrid::plan::{Operations, Plan as MemoryPlan, Planner};
use haversack_policies::fedhybrid::profile::Profile;
use haversack_policies::planning::Room;
use haversack_training::{Tries, with_setting};
use haversack_workloads::Role;

use super::super::setting::{BERT, MOBILENET, PICTURES, S22, TEXTS, scenario};
use crate::artefacts::prelude::*;

const SHARE: &str = "fedhybrid/figure20c/s22/five-regenerations-in-ten-rounds/communication-share";
const RATIO: &str = "fedhybrid/figure20c/s22-vs-server/plan-generation/time-ratio";
/// Local rounds, and the new plans among them that the row asks for.
const ROUNDS: u64 = 10;
const PLANS: u64 = 5;
/// Networks that plans are made for, and their samples.
const NETWORKS: [((&str, &str), u64); 4] = [
    (MOBILENET, PICTURES),
    (("resnet34", "ResNet-34"), PICTURES),
    (("resnet50", "ResNet-50"), PICTURES),
    (BERT, TEXTS),
];
/// Budgets that plans are made for, in percent of what training needs.
const PERCENTS: [u64; 5] = [90, 80, 70, 60, 50];

/// What is sent for plans, beside training.
struct Traffic {
    /// The weights.
    weights: Bytes,
    /// The profile there and the plan back.
    plan: Bytes,
    /// Bytes a second.
    link: f64,
    /// An iteration that wants for nothing.
    iteration: Nanos,
    /// Iterations of a round.
    iterations: u64,
}

impl Traffic {
    /// Seconds for `plans` new plans, each with the weights there and back.
    fn seconds(&self, plans: u64) -> f64 {
        plans as f64 * (2.0 * self.weights.as_f64() + self.plan.as_f64()) / self.link
    }

    /// Seconds of training where a round has this number of iterations.
    fn training(&self, iterations: u64) -> f64 {
        self.iteration.seconds() * (ROUNDS * iterations) as f64
    }

    /// The share of communication in all time, in percent.
    fn share(&self, plans: u64, iterations: u64) -> f64 {
        self.seconds(plans) / (self.seconds(plans) + self.training(iterations)) * 100.0
    }
}

/// A plan that was made.
struct Made {
    name: &'static str,
    percent: u64,
    plan: MemoryPlan,
    sent: Bytes,
    /// On the server and on the phone.
    times: [Option<Nanos>; 2],
    treatments: String,
}

/// Plans of a network on the S22 within all budgets that have one.
fn made(context: &Context<'_>, model: (&'static str, &'static str), batch: u64) -> Result<Vec<Made>> {
    let plan = context.plan(&scenario(context, S22, model.0, batch, "original")?)?;
    let needed = plan.run()?.peak_memory;
    let (machine, job) = (plan.machine(), plan.job());
    let profile = with_setting(machine, &job, |setting| Profile::new(setting, Parameters::default()));
    let within = |percent: u64| {
        let room = Room { memory: Some(Bytes(needed.0 / 100 * percent)), activations: None };
        let found = profile.plan(&plan.graph, room, &Tries { machine, job: &job }).ok()?;
        let time = |planner| machine.making_time(planner, found.operations());
        let treatments = found.treatments(&plan.graph);
        let (kept, compressed, recomputed) = (treatments.kept, treatments.compressed, treatments.recomputed);
        Some(Made {
            name: model.1,
            percent,
            sent: profile.bytes(),
            times: [Planner::Server, Planner::Phone].map(time),
            treatments: format!("{kept} kept, {compressed} compressed, {recomputed} computed again"),
            plan: found,
        })
    };
    Ok(PERCENTS.into_iter().filter_map(within).collect())
}

fn traffic(context: &Context<'_>, made: &[Made]) -> Result<Traffic> {
    let plan = context.plan(&scenario(context, S22, MOBILENET.0, PICTURES, "original")?)?;
    let weights = plan.graph.bytes_of(|role| matches!(role, Role::Parameter { .. })).at(PICTURES);
    let largest = made.iter().filter(|made| made.name == MOBILENET.1).map(|made| made.plan.bytes() + made.sent).max();
    let planning =
        plan.machine().stack.constants.planning.as_ref().context("the stack does not say what plans cost")?;
    Ok(Traffic {
        weights: Bytes(weights),
        plan: largest.context("no plan fits")?,
        link: planning.link.value.0,
        iteration: plan.unbounded_time(),
        iterations: context.reading_number("plan")? as u64,
    })
}

pub(in crate::artefacts::fedhybrid) fn regeneration(context: &Context<'_>) -> Result<Outcome> {
    let made: Vec<Made> = NETWORKS
        .into_iter()
        .map(|(model, batch)| made(context, model, batch))
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .flatten()
        .collect();
    let traffic = traffic(context, &made)?;
    let mut outcome =
        Outcome::of("network,budget_percent,scores,operators,plan_bytes,profile_bytes,server_ms,phone_ms,tensors");
    for one in &made {
        let Operations { scores, operators } = one.plan.operations();
        let counts = [scores, operators, one.plan.bytes().0, one.sent.0];
        let spent = one.times.map(|time| time.map(milliseconds));
        outcome.row((one.name, one.percent, counts, spent, one.treatments.as_str()))?;
    }
    answer_ratio(context, &mut outcome, &made)?;
    outcome.number(SHARE, traffic.share(PLANS, traffic.iterations));
    outcome.remark(
        SHARE,
        format!(
            "{:.1} s of sending beside {:.0} s of training; in rounds of one iteration {:.0} %",
            traffic.seconds(PLANS),
            traffic.training(traffic.iterations),
            traffic.share(PLANS, 1)
        ),
    );
    let by_network = curves(&made, |one| one.name, |one| Some((one.percent as f64, milliseconds(one.times[1]?))));
    let budget = axis("memory budget, of what training needs", "%");
    outcome.panel("making a plan on the phone", by_network, budget, from_zero("time", "ms"));
    draw_shares(context, &mut outcome, &traffic)?;
    outcome.quantity("weights", "MB", [traffic.weights.megabytes()]);
    outcome.quantity("size of a plan", "kB", [traffic.plan.as_f64() / 1e3]);
    for (name, place) in [("a plan on the phone", 1), ("a plan on the server", 0)] {
        outcome.quantity(name, "ms", made.iter().filter_map(|one| one.times[place].map(milliseconds)));
    }
    if let Some(bound) = context.paper(SHARE)?.filter(|bound| traffic.share(PLANS, traffic.iterations) > *bound) {
        let least = (traffic.seconds(PLANS) * (100.0 / bound - 1.0) / traffic.training(1)).ceil();
        outcome.quantity("iterations of a round below the bound", "", [least]);
    }
    Ok(outcome)
}

fn draw_shares(context: &Context<'_>, outcome: &mut Outcome, traffic: &Traffic) -> Result<()> {
    let mut points = Vec::new();
    let mut lengths = vec![traffic.iterations, 1];
    lengths.dedup();
    for iterations in lengths {
        let name = match iterations {
            1 => "rounds of one iteration".to_owned(),
            more => format!("rounds of {more} iterations"),
        };
        points.extend((0..=ROUNDS).map(|plans| (name.clone(), plans as f64, traffic.share(plans, iterations))));
    }
    let mut lines = curves(&points, |point| point.0.as_str(), |point| Some((point.1, point.2)));
    if let Some(paper) = context.paper(SHARE)? {
        let bound = Series::new("at most, five new plans", [(0.0, paper), (PLANS as f64, paper)]);
        lines = lines.series(bound.look(Look::Hatched).unmarked());
    }
    outcome.panel("sending", lines, Axis::new("new plans in ten rounds"), from_zero("share of communication", "%"));
    Ok(())
}

/// A plan is one thread's scalar work: the same number of operations on either core.
fn answer_ratio(context: &Context<'_>, outcome: &mut Outcome, made: &[Made]) -> Result<()> {
    let ratios: Vec<f64> = made
        .iter()
        .filter_map(|made| {
            let [server, phone] = made.times;
            Some(phone?.seconds() / server?.seconds())
        })
        .collect();
    let Some(ratio) = median(ratios) else {
        outcome.not_modelled(RATIO, "what plans cost is not known, or the CoreMark of the phone's cores is not");
        return Ok(());
    };
    outcome.number(RATIO, ratio);
    outcome.remark(RATIO, "the same operations on one little core of the phone and on one core of the server");
    if context.paper(RATIO)?.is_some_and(|paper| ratio < paper / 1.5) {
        outcome.quantity("a plan takes longer in the paper", "", [ratio]);
    }
    Ok(())
}
