//! Figures 20 and 21: the cost of FedHybrid's plans and budgets.

use haversack_devices::units::{Joules, Watts};
use haversack_policies::fedhybrid::Parameters;
use haversack_policies::fedhybrid::plan::{Operations, Plan as MemoryPlan, Planner};
use haversack_policies::fedhybrid::profile::Profile;
use haversack_policies::planning::Room;
use haversack_reports::pareto::{BOTH_MINIMISED, front};
use haversack_training::{Tries, with_setting};
use haversack_workloads::Role;

use super::figure19::traces::{LENGTH, Trace, synthetic};
use super::figure19::training;
use super::setting::{BERT, FEW_PICTURES, MOBILENET, OP10P, PICTURES, S22, TEXTS, on_phone, scenario};
use crate::artefacts::prelude::*;
use crate::federate::{Specification, planning};

/// The policies, with display names.
pub(super) const POLICIES: [(&str, &str); 6] = [
    ("fedhybrid", "FedHybrid"),
    ("melon", "Melon"),
    ("capuchin", "Capuchin"),
    ("gact", "GACT"),
    ("sage", "Sage"),
    ("daf", "DAF"),
];
/// Training with enough memory.
const ORIGINAL: (&str, &str) = ("original", "no policy");

/// The time of an iteration: on a phone in use the mean of all, because apps change between them; otherwise the last,
/// because a policy may spend the first on finding its micro-batch.
fn seconds(record: &Record) -> f64 {
    if record.phone.is_some() { training::round(record) } else { record.iteration.seconds() }
}

pub(super) fn budgets(context: &Context<'_>) -> Result<Outcome> {
    let percents = context.reading_numbers("energy-budgets")?;
    let found = synthetic(context.seed, 1, LENGTH)?;
    let trace = found.first().context("a trace is missing")?;
    let starts = trace.starts(context.full);
    let budgets = || percents.iter().copied().map(Some);
    let wanted = POLICIES.into_iter().flat_map(|policy| budgets().map(move |percent| (policy, percent)));
    let wanted: Vec<_> = wanted.chain([(ORIGINAL, None)]).collect();
    let rounds = context.reading_number("round")? as u32;
    let run = |(policy, percent): ((&str, &str), Option<f64>)| {
        let mut scenario = scenario(context, S22, MOBILENET.0, PICTURES, policy.0)?;
        scenario.memory_budget = percent.map(Budget::Percent);
        let alone: Vec<Record> = context.run_if_it_ends(&scenario)?.into_iter().collect();
        scenario.iterations = Some(rounds);
        let beside =
            |start: &Trace| context.run_if_it_ends(&on_phone(context, scenario.clone(), Some(start.apps.clone()))?);
        let in_use: Vec<Option<Record>> = starts.par_iter().map(beside).collect::<Result<_>>()?;
        Ok([alone, in_use.into_iter().flatten().collect()])
    };
    let found: Vec<[Vec<Record>; 2]> = wanted.par_iter().copied().map(run).collect::<Result<_>>()?;
    let mut records =
        Records::of("phone,policy,name,point,budget_percent,memory_mb,time_s,page_faults,killed,memory_gb");
    let mut places: Vec<(&str, (f64, f64))> = Vec::new();
    for ((policy, percent), found) in wanted.iter().zip(&found) {
        let point = percent.map_or(policy.1.to_owned(), |percent| format!("{} at {percent} %", policy.1));
        for (phone, found) in ["to itself", "in use"].into_iter().zip(found) {
            // The means of runs from several starts; `None` if no run ends.
            let mean_of = |of: fn(&Record) -> f64| mean(&found.iter().map(of).collect::<Vec<_>>());
            let (memory, time) = (mean_of(|record| record.reserved.as_f64()), mean_of(seconds));
            let faults = [training::faults, training::kills].map(|of| mean_of(of).filter(|_| phone == "in use"));
            let place = memory.map(|memory| memory / 1e9).zip(time).filter(|_| phone == "in use");
            places.extend(place.map(|place| (policy.1, place)));
            let head = ([phone, policy.0, policy.1, &point], *percent);
            records.row((
                head,
                [memory.map(|memory| memory * 1e-6), time],
                faults,
                memory.map(|memory| memory / 1e9),
            ))?;
        }
    }
    let coordinates: Vec<(f64, f64)> = places.iter().map(|(_, place)| *place).collect();
    let mut best: Vec<&str> = front(&coordinates, BOTH_MINIMISED).into_iter().map(|index| places[index].0).collect();
    best.dedup();
    let mut outcome = Outcome::default();
    outcome.words("user of the trace", &trace.user);
    outcome.words("front of the phone in use", best.join(", "));
    show(context, records, outcome)
}

const SHARE: &str = "fedhybrid/figure20c/s22/five-regenerations-in-ten-rounds/communication-share";
const PLAN_RATIO: &str = "fedhybrid/figure20c/s22-vs-server/plan-generation/time-ratio";
/// Local rounds, and the number of new plans among them in the row.
const ROUNDS: u64 = 10;
const PLANS: u64 = 5;
/// Networks that plans are made for, and their samples.
const NETWORKS: [((&str, &str), u64); 4] = [
    (MOBILENET, PICTURES),
    (("resnet34", "ResNet-34"), PICTURES),
    (("resnet50", "ResNet-50"), PICTURES),
    (BERT, TEXTS),
];
/// Budgets of plans, in percent of the memory that training needs.
const PERCENTS: [u64; 5] = [90, 80, 70, 60, 50];

/// The cost of communication for plans, in addition to training.
struct Traffic {
    /// The weights.
    weights: Bytes,
    /// The profile to the server and the plan back.
    plan: Bytes,
    /// Bytes per second.
    link: f64,
    /// An iteration with enough memory.
    iteration: Nanos,
    /// Iterations of a round.
    iterations: u64,
}

impl Traffic {
    /// Seconds for `plans` new plans, each with the weights to the server and back.
    fn seconds(&self, plans: u64) -> f64 {
        plans as f64 * (2.0 * self.weights.as_f64() + self.plan.as_f64()) / self.link
    }

    /// Seconds of training with this number of iterations per round.
    fn training(&self, iterations: u64) -> f64 {
        self.iteration.seconds() * (ROUNDS * iterations) as f64
    }

    /// The percentage of communication in the total time.
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
        let found = profile.plan(&plan.graph, room, &Tries::exact(machine, &job)).ok()?;
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

pub(super) fn regeneration(context: &Context<'_>) -> Result<Outcome> {
    let made = NETWORKS.into_iter().map(|(model, batch)| made(context, model, batch)).collect::<Result<Vec<_>>>()?;
    let made: Vec<Made> = made.into_iter().flatten().collect();
    let traffic = traffic(context, &made)?;
    let mut records =
        Records::of("network,budget_percent,scores,operators,plan_bytes,profile_bytes,server_ms,phone_ms,tensors");
    for one in &made {
        let Operations { scores, operators } = one.plan.operations();
        let counts = [scores, operators, one.plan.bytes().0, one.sent.0];
        let spent = one.times.map(|time| time.map(milliseconds));
        records.row((one.name, one.percent, counts, spent, one.treatments.as_str()))?;
    }
    let mut outcome = show(context, records, Outcome::default())?;
    answer_ratio(context, &mut outcome, &made)?;
    outcome.number(SHARE, traffic.share(PLANS, traffic.iterations));
    outcome.remark(
        SHARE,
        format!(
            "{:.1} s of sending and {:.0} s of training; in rounds of one iteration {:.0} %",
            traffic.seconds(PLANS),
            traffic.training(traffic.iterations),
            traffic.share(PLANS, 1)
        ),
    );
    draw_shares(context, &mut outcome, &traffic)?;
    outcome.quantity("weights", "MB", [traffic.weights.megabytes()]);
    outcome.quantity("size of a plan", "kB", [traffic.plan.as_f64() / 1e3]);
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

/// Making a plan is scalar work of one thread: the number of operations is the same on either core.
fn answer_ratio(context: &Context<'_>, outcome: &mut Outcome, made: &[Made]) -> Result<()> {
    let ratios: Vec<f64> = made
        .iter()
        .filter_map(|made| {
            let [server, phone] = made.times;
            Some(phone?.seconds() / server?.seconds())
        })
        .collect();
    let Some(ratio) = median(ratios) else {
        outcome.not_modelled(PLAN_RATIO, "what plans cost is not known, or the CoreMark of the phone's cores is not");
        return Ok(());
    };
    outcome.number(PLAN_RATIO, ratio);
    outcome.remark(PLAN_RATIO, "the same operations on one little core of the phone and on one core of the server");
    if context.paper(PLAN_RATIO)?.is_some_and(|paper| ratio < paper / 1.5) {
        outcome.quantity("a plan takes longer in the paper", "", [ratio]);
    }
    Ok(())
}

pub(super) fn plans(context: &Context<'_>) -> Result<Outcome> {
    let text = context.reading_text("figure20b-federation")?;
    let key = format!("plans of a federation, seed {}", context.seed);
    let found = context.once(key, || {
        Ok(planning(&Specification::parse("figure20b-federation", text, Some(context.seed))?, context.cache)?)
    })?;
    let mut records = Records::of("clients,one_by_one_s,clusters_s,plans_of_clusters,speedup");
    for &clients in context.reading_numbers("clients")? {
        let one_by_one: f64 = found.each_s.iter().take(clients as usize).sum();
        let by_clusters = found.plans_s + found.clustering_s * clients;
        let speedup = one_by_one / by_clusters.max(f64::MIN_POSITIVE);
        records.row(([clients, one_by_one, by_clusters], found.plans as u64, speedup))?;
    }
    show(context, records, Outcome::default())
}

const INCREASE: &str = "fedhybrid/figure21/op10p-mobilenetv2,squeezenet-batch-16/fedhybrid/ideal/energy-increase";
const RATIO: &str = "fedhybrid/figure21/op10p/baselines/fedhybrid/energy-ratio";

/// The energy that a power monitor in place of the battery measures: training, and the idle phone.
fn energy(record: &Record, idle: Watts) -> Joules {
    record.energy + idle * record.iteration
}

pub(super) fn figure21(context: &Context<'_>) -> Result<Outcome> {
    let idle = context.device(OP10P)?.constants.power.idle.value;
    let records = records(context, "time_s,energy_j,energy_over_ideal,increase_percent", |_, ids| {
        let of = |policy: &str| scenario(context, OP10P, &ids[0], FEW_PICTURES, policy);
        let ideal = energy(&context.run(&of("original")?)?, idle);
        let record = context.within(&of(&ids[1])?, Budget::Percent(ids[2].parse()?))?;
        let energy = record.as_ref().map(|record| energy(record, idle).0);
        let over = energy.map(|energy| energy / ideal.0);
        Ok([record.map(|record| record.iteration.seconds()), energy, over, over.map(|over| (over - 1.0) * 100.0)])
    })?;
    let most = records.most("increase_percent", "policy", "fedhybrid")?;
    let mut outcome = show(context, records, Outcome::default())?;
    // The quantities that the notes quote.
    if let (Some(most), Some(paper)) = (most, context.paper(INCREASE)?)
        && most < paper
    {
        outcome.quantity("largest increase of energy", "%", [most]);
    }
    let ratio = outcome.answers.iter().find(|(id, _)| id == RATIO);
    let least = ratio.and_then(|(_, answer)| if let Answer::Range(least, _) = answer { Some(*least) } else { None });
    if let Some(least) = least.filter(|least| *least < 1.0) {
        outcome.quantity("least energy over FedHybrid's", "", [least]);
    }
    Ok(outcome)
}
