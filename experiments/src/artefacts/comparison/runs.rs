//! Every policy at every budget, on one engine for all and on the engine of its paper.

use haversack_devices::units::Joules;
use rayon::prelude::*;

use crate::artefacts::mandheling::setting::timed;
use crate::artefacts::prelude::*;
use crate::reproduce::readings::Value;

/// The network, and pictures of a mini-batch.
const MODEL: &str = "mobilenetv2";
const BATCH: u64 = 32;
/// The policies, and for people; those after the first four have no budget.
pub(super) const POLICIES: [(&str, &str); 5] = [
    ("daf", "DAF"),
    ("sage", "Sage"),
    ("fedhybrid", "FedHybrid"),
    ("mandheling", "Mandheling"),
    ("original", "no policy"),
];
/// Budgets in percent of what training needs on the same engine without a policy.
const PERCENTS: [f64; 11] = [100.0, 90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 20.0, 15.0, 10.0];
/// MNN's graph on four of the fastest cores, as `FedHybrid` has it.
const MNN: (&str, &str) = ("mnn-2", "big:4");
/// Sage's engine on the GPU, on which DAF's policy runs too.
const SAGE: &str = "sage-opencl";

/// On what policies are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engines {
    /// One for all that it runs.
    One,
    /// Each policy's own.
    Own,
}

impl Engines {
    pub(super) const BOTH: [(Self, &'static str); 2] =
        [(Self::One, "one engine: MNN on four big cores"), (Self::Own, "each on its paper's engine and processor")];

    /// The stack and the cores of `policy`, a row each; Mandheling names its own.
    fn of(self, policy: &str) -> &'static [(Option<&'static str>, Option<&'static str>)] {
        const ON_MNN: (Option<&str>, Option<&str>) = (Some(MNN.0), Some(MNN.1));
        const ON_SAGE: (Option<&str>, Option<&str>) = (Some(SAGE), None);
        match (self, policy) {
            (_, "mandheling") => &[(None, None)],
            (Self::Own, "original") => &[ON_MNN, ON_SAGE],
            (Self::Own, "daf" | "sage") => &[ON_SAGE],
            _ => &[ON_MNN],
        }
    }
}

/// A policy at a budget.
pub(super) struct Point {
    pub(super) engines: Engines,
    pub(super) policy: (&'static str, &'static str),
    /// The stack.
    pub(super) stack: String,
    /// The budget in percent of what is needed; `None` without one.
    pub(super) percent: Option<f64>,
    /// What it came to; `None` if no plan fits the budget.
    pub(super) found: Option<Found>,
}

/// An iteration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// All that the framework holds, in GB.
    pub(super) memory: f64,
    pub(super) time: Nanos,
    /// Above the idle phone.
    pub(super) energy: Joules,
}

/// All points on the artefact's phone.
pub(super) fn points(context: &Context<'_>) -> Result<Vec<Point>, ArtefactError> {
    let mut wanted = Vec::new();
    for (engines, _) in Engines::BOTH {
        for policy in POLICIES {
            for &(stack, cores) in engines.of(policy.0) {
                let scenario = Scenario {
                    policy: policy.0.to_owned(),
                    batch: BATCH,
                    seed: context.seed,
                    stack: stack.map(str::to_owned),
                    cores: cores.map(str::parse).transpose()?,
                    ..Scenario::new(context.artefact.id, MODEL)
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
        let (stack, found) = measure(context, &scenario)?;
        Ok(Point { engines, policy, stack, percent, found })
    };
    wanted.into_par_iter().map(point).collect()
}

/// The stack on which `scenario` runs, and what it comes to: the mean over the batches by which Mandheling's artefacts
/// time it, which for every other policy is one.
fn measure(context: &Context<'_>, scenario: &Scenario) -> Result<(String, Option<Found>), ArtefactError> {
    let stack = context.plan(scenario)?.machine().stack.id.clone();
    let runs = timed(scenario, warm_up(context)?);
    let mut sum = Found { memory: 0.0, time: Nanos::ZERO, energy: Joules(0.0) };
    for run in &runs {
        let Some(record) = context.run_if_it_ends(run)? else { return Ok((stack, None)) };
        sum.memory = sum.memory.max(record.reserved.as_f64() / 1e9);
        sum.time += record.iteration;
        sum.energy += record.energy;
    }
    let count = runs.len().max(1);
    Ok((stack, Some(Found { time: Nanos(sum.time.0 / count as u64), energy: sum.energy / count as f64, ..sum })))
}

/// Batches after which Mandheling's scales have settled, as its own artefacts read it.
fn warm_up(context: &Context<'_>) -> Result<u64, ArtefactError> {
    let settled = context.readings.reading("mandheling", "table7", "settled");
    match settled.map(|reading| &reading.value) {
        Some(Value::Number(batches)) => Ok(*batches as u64),
        _ => anyhow::bail!("Mandheling's reading `settled` is not a number"),
    }
}
