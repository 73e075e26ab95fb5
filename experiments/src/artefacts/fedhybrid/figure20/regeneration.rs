//! Figure 20c: what new plans cost in communication and in time to make.

use haversack_devices::processor::Frequency;
use haversack_devices::{CoreSelection, Device, ScalarSpeed};
use haversack_workloads::Role;

use super::super::setting::{MOBILENET, PICTURES, S22, scenario};
use crate::artefacts::prelude::*;

const SHARE: &str = "fedhybrid/figure20c/s22/five-regenerations-in-ten-rounds/communication-share";
const RATIO: &str = "fedhybrid/figure20c/s22-vs-server/plan-generation/time-ratio";
/// Wi-Fi, in bytes a second: 100 Mbit/s.
const RATE: f64 = 100e6 / 8.0;
/// Local rounds, and the new plans among them that the row asks for.
const ROUNDS: u64 = 10;
const PLANS: u64 = 5;
/// An entry of a plan: a tensor and the operator before which it goes, four bytes each, and how, one.
const ENTRY: u64 = 9;
/// The server, and the cores on which a plan is made.
pub(super) const SERVER: &str = "server-core";
const LITTLE: &str = "little:1";

/// What is sent for plans, beside training.
struct Traffic {
    /// The weights.
    weights: Bytes,
    /// A plan at its largest: every saved tensor is given up.
    plan: Bytes,
    /// An iteration that wants for nothing.
    iteration: Nanos,
    /// Iterations of a round.
    iterations: u64,
}

impl Traffic {
    /// Seconds for `plans` new plans, each with the weights there and back.
    fn seconds(&self, plans: u64) -> f64 {
        plans as f64 * (2.0 * self.weights.as_f64() + self.plan.as_f64()) / RATE
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

fn traffic(context: &Context<'_>) -> Result<Traffic> {
    let plan = context.plan(&scenario(context, S22, MOBILENET.0, PICTURES, "original")?)?;
    let weights = plan.graph.bytes_of(|role| matches!(role, Role::Parameter { .. })).at(PICTURES);
    let saved = plan.graph.saved().len() as u64;
    Ok(Traffic {
        weights: Bytes(weights),
        plan: Bytes(saved * ENTRY),
        iteration: plan.unbounded_time(),
        iterations: context.reading_number("plan")? as u64,
    })
}

/// The speed of one of `device`'s `cores`; `None` if its CoreMark is not known.
fn speed(device: &Device, cores: CoreSelection) -> Result<Option<ScalarSpeed>> {
    let cpu = device.cpu().with_context(|| format!("{} has no CPU", device.id))?;
    Ok(ScalarSpeed::of(&cpu.choose(cores, Frequency::Highest)?))
}

pub(super) fn regeneration(context: &Context<'_>) -> Result<Outcome> {
    let traffic = traffic(context)?;
    let mut outcome = Outcome::of("new_plans,iterations_of_a_round,communication_s,training_s,share_percent");
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
    answer_ratio(context, &mut outcome)?;
    let mut points = Vec::new();
    let mut lengths = vec![traffic.iterations, 1];
    lengths.dedup();
    for iterations in lengths {
        let name = match iterations {
            1 => "rounds of one iteration".to_owned(),
            more => format!("rounds of {more} iterations"),
        };
        for plans in 0..=ROUNDS {
            let share = traffic.share(plans, iterations);
            outcome.row((plans, iterations, [traffic.seconds(plans), traffic.training(iterations), share]))?;
            points.push((name.clone(), plans as f64, share));
        }
    }
    let mut lines = curves(&points, |point| point.0.as_str(), |point| Some((point.1, point.2)));
    if let Some(paper) = context.paper(SHARE)? {
        let bound = Series::new("at most, five new plans", [(0.0, paper), (PLANS as f64, paper)]);
        lines = lines.series(bound.look(Look::Hatched).unmarked());
    }
    outcome.panel("", lines, Axis::new("new plans in ten rounds"), from_zero("share of communication", "%"));
    outcome.quantity("weights", "MB", [traffic.weights.megabytes()]);
    outcome.quantity("size of a plan", "kB", [traffic.plan.as_f64() / 1e3]);
    if let Some(bound) = context.paper(SHARE)?.filter(|bound| traffic.share(PLANS, traffic.iterations) > *bound) {
        let least = (traffic.seconds(PLANS) * (100.0 / bound - 1.0) / traffic.training(1)).ceil();
        outcome.quantity("iterations of a round below the bound", "", [least]);
    }
    Ok(outcome)
}

/// A plan is one thread's scalar work: the same number of operations on either core.
fn answer_ratio(context: &Context<'_>, outcome: &mut Outcome) -> Result<()> {
    let phone = speed(&context.device(S22)?, LITTLE.parse()?)?;
    let server = speed(&context.device(SERVER)?, CoreSelection::All)?;
    let (Some(phone), Some(server)) = (phone, server) else {
        outcome.not_modelled(
            RATIO,
            "the CoreMark of the server's core is not known, and nothing else measures scalar work",
        );
        return Ok(());
    };
    // Times of the same work, long enough that whole nanoseconds do not round.
    let work = haversack_devices::units::Factor(1e12);
    let ratio = phone.time(work).seconds() / server.time(work).seconds();
    outcome.number(RATIO, ratio);
    outcome.remark(RATIO, "one little core of the phone against one core of the server; the work itself cancels out");
    if context.paper(RATIO)?.is_some_and(|paper| ratio < paper / 1.5) {
        outcome.quantity("a plan takes longer in the paper", "", [ratio]);
    }
    Ok(())
}
