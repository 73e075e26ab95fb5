//! `haversack advise`: every policy for one device and one network, ranked, and why the others do not fit.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use haversack_devices::{Bytes, Nanos};
use haversack_policies::{Entry, POLICIES};
use haversack_reports::pareto::fair_front;
use haversack_reports::{Axis, BOTH_MINIMISED, Figure, Front, Panel};
use haversack_training::FidelityClass;
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::checked::doubt;
use crate::output::{Format, Plot, check_apart, join, note};
use crate::quantities;
use crate::run::{Outcome, Results, Status};
use crate::scenario::{BudgetReference, Cell, Fault, ScenarioFlags, size_text, workload};
use crate::texts::text;
use crate::{Budget, Cache, CommandError, Key, Plan, Scenario};

/// The options of `advise`.
#[derive(Clone, Debug, Args)]
#[command(after_help = include_str!("../help/advise.txt"))]
pub struct AdviseOptions {
    /// Scenario file without a policy; flags override its keys
    #[arg(value_name = "SCENARIO.toml")]
    pub file: Option<PathBuf>,
    /// Scenario keys given as flags.
    #[command(flatten)]
    pub scenario: ScenarioFlags,
    /// Ranking criterion for the policies that fit
    #[arg(long, value_enum, default_value_t)]
    pub by: By,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Plot time against memory of the policies that fit to FILE (.svg or .png)
    #[arg(long, value_name = "FILE")]
    pub plot: Option<Plot>,
}

/// The quantity that policies are ranked by; less is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum By {
    /// The time of an iteration.
    #[default]
    Time,
    /// The energy of an iteration.
    Energy,
    /// The peak of resident memory.
    Memory,
}

impl By {
    fn word(self) -> &'static str {
        self.into()
    }
}

/// The ranked policies, with the scenario and the options they were simulated for.
struct Advice {
    scenario: Scenario,
    by: By,
    /// Those that fit first, the best of them in front; then the others in the order of the list of policies.
    candidates: Vec<Candidate>,
}

/// Simulates every policy and prints which fit.
///
/// # Errors
/// A scenario that is wrong for every policy, or that names one; [`CommandError::NoPlan`] if no policy fits.
pub fn run(options: &AdviseOptions) -> Result<(), CommandError> {
    let scenario = options.scenario.over(options.file.as_deref())?;
    check_apart([("--plot", options.plot.as_ref().map(Plot::path))], scenario.names(options.file.as_deref()))?;
    for (key, is_given) in
        [(Key::Policy, scenario.origins.contains_key(&Key::Policy)), (Key::Set, !scenario.set.is_empty())]
    {
        if is_given {
            let message = "every policy is tried, with its defaults; leave it out, or use `haversack simulate`";
            return Err(scenario.error(key, Fault::Refused(message.to_owned())).into());
        }
    }
    let advice = Advice::new(scenario, options.by)?;
    let notes: BTreeSet<&String> = advice.fitting().flat_map(|candidate| &candidate.notes).collect();
    notes.into_iter().for_each(|sentence| note(sentence));
    if let Some(plot) = &options.plot
        && advice.fitting().next().is_some()
    {
        plot.draw(&advice.figure())?;
    }
    options.format.print(|| advice.to_text(), || advice.to_json())?;
    if advice.fitting().next().is_some() { Ok(()) } else { Err(CommandError::NoPlan(advice.least())) }
}

impl Advice {
    fn new(mut scenario: Scenario, by: By) -> Result<Self, CommandError> {
        let cache = Cache::new();
        // Percentages refer to the same bytes for all stacks, so that the policies can be ranked.
        let is_percentage = |budget: Option<Budget>| matches!(budget, Some(Budget::Percent(_)));
        let has_percentage = is_percentage(scenario.memory_budget) || is_percentage(scenario.activation_budget);
        if has_percentage && !scenario.origins.contains_key(&Key::BudgetReference) {
            scenario.budget_reference = BudgetReference::StackDefault;
        }
        let run = |place: usize| {
            let policy = POLICIES[place];
            Candidate::run(policy, &Scenario { policy: policy.id.to_owned(), ..scenario.clone() }, &cache)
        };
        let mut candidates: Vec<Candidate> = (0..POLICIES.len()).into_par_iter().map(run).collect();
        // An error that is the same for every policy comes from the scenario itself.
        let first = candidates.first().and_then(|candidate| candidate.outcome.reason.clone());
        if candidates.iter().all(|candidate| candidate.runs_as.is_none() && candidate.outcome.reason == first) {
            return Err(CommandError::Input(first.unwrap_or_default()));
        }
        // Policies of equal rank are ordered by time.
        let order = |a: &Candidate, b: &Candidate| {
            a.rank(by).total_cmp(&b.rank(by)).then(a.rank(By::Time).total_cmp(&b.rank(By::Time)))
        };
        candidates.sort_by(order);
        mark_best(&mut candidates);
        Ok(Self { scenario, by, candidates })
    }

    fn fitting(&self) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter().filter(|candidate| candidate.outcome.status == Status::Ok)
    }

    /// The message that no policy fits, with the least memory budget at which one does.
    fn least(&self) -> String {
        let least = self.candidates.iter().filter_map(|candidate| Some((candidate.outcome.least_memory?, candidate)));
        match least.min_by_key(|(bytes, _)| *bytes) {
            Some((bytes, Candidate { policy, .. })) => format!(
                "no policy fits; the least memory budget with which one does is {bytes}, of {} (--memory-budget {})",
                policy.id,
                size_text(bytes)
            ),
            None => "no policy fits".to_owned(),
        }
    }

    fn to_json(&self) -> Value {
        let mut scenario = self.scenario.to_json(Default::default());
        scenario.retain(|name, _| ![Key::Policy.name(), Key::Set.name()].contains(&name.as_str()));
        let candidates: Vec<Value> = self.candidates.iter().map(Candidate::to_json).collect();
        json!({"scenario": scenario, "by": self.by.word(), "candidates": candidates})
    }

    /// A point for every policy that fits, and the front of each class.
    fn figure(&self) -> Figure {
        let points = self.fitting().filter_map(|candidate| {
            let results = candidate.fits()?;
            let megabytes = Bytes(results.peak_memory_bytes).megabytes();
            Some((candidate.policy.id, results.fidelity.word(), vec![(megabytes, results.iteration_time_s)]))
        });
        let add = |front: Front, (policy, class, point)| front.cloud_of(class, policy, point);
        let mut front = points.fold(Front::new().overall(), add);
        for candidate in self.fitting() {
            let Some(bound) = candidate.fits().and_then(|results| results.lower_bound_s) else { continue };
            let within = candidate.memory_budget.map_or(f64::INFINITY, |budget| budget.megabytes());
            front = front.bound([(within, bound)]);
        }
        let panel = Panel::new(front)
            .x(Axis::new("peak memory").unit("MB").from_zero())
            .y(Axis::new("iteration").unit("s").from_zero());
        let scenario = &self.scenario;
        let model = workload::called(&scenario.model);
        let fastest = self.fitting().min_by(|a, b| a.rank(By::Time).total_cmp(&b.rank(By::Time)));
        let found = fastest.and_then(|candidate| {
            let class = candidate.fits()?.fidelity.word();
            Some(format!(": {} is fastest, with {class} gradients", candidate.policy.id))
        });
        let found = found.unwrap_or_default();
        Figure::new(format!("{model}, batch {}, on {}{found}", scenario.batch, scenario.device)).panel(panel)
    }

    fn to_text(&self) -> String {
        let mut answer = self.to_json();
        join(&mut answer, json!({ "heading": self.heading(), "bound": self.bound() }));
        if let Some(Value::Array(shown)) = answer.get_mut("candidates") {
            for (shown, candidate) in shown.iter_mut().zip(&self.candidates) {
                let gradients = candidate.fits().map(gradients);
                join(shown, json!({ "why": self.why(candidate), "gradients": gradients }));
            }
        }
        text(include_str!("../texts/advise.txt"), &answer)
    }

    /// The lower bound on the time of any exact plan, on the stack of the fastest exact policy.
    fn bound(&self) -> Option<String> {
        let exact = self
            .fitting()
            .filter(|candidate| candidate.fits().is_some_and(|results| results.fidelity == FidelityClass::Exact));
        let fastest = exact.min_by(|a, b| a.rank(By::Time).total_cmp(&b.rank(By::Time)))?;
        let bound = quantities::time(Nanos::from_seconds(fastest.fits()?.lower_bound_s?));
        let within = fastest.memory_budget.map(|budget| format!(" within {}", quantities::size(budget)));
        let (stack, _) = fastest.runs_as.as_ref()?;
        Some(format!("No exact plan trains this{} under {bound} on {stack}.\n", within.unwrap_or_default()))
    }

    fn heading(&self) -> String {
        let scenario = &self.scenario;
        let mut within = Vec::new();
        if let Some(budget) = scenario.memory_budget {
            let sizes: Vec<Bytes> = self.candidates.iter().filter_map(|candidate| candidate.memory_budget).collect();
            // Budgets differ under a trace, or where a percentage refers to the needs of each policy's own stack.
            let one = sizes.first().filter(|first| sizes.iter().all(|size| size == *first));
            let bytes = one.filter(|_| budget.to_string().ends_with('%'));
            let bytes = bytes.map_or_else(String::new, |bytes| format!(" ({})", quantities::size(*bytes)));
            within.push(format!("a memory budget of {budget}{bytes}"));
        }
        if let Some(budget) = scenario.activation_budget {
            within.push(format!("an activation budget of {budget}"));
        }
        if let Some(budget) = scenario.time_budget {
            within.push(format!("a time budget of {}", quantities::time(budget)));
        }
        if let Some(trace) = &scenario.trace {
            within.push(format!("the trace {}", trace.display()));
        }
        let within = if within.is_empty() { String::new() } else { format!(", within {}", within.join(" and ")) };
        let input = match scenario.cell(Key::Input) {
            Cell::Text(Some(input)) => format!(" ({input})"),
            _ => String::new(),
        };
        let (model, batch, device) = (workload::called(&scenario.model), scenario.batch, &scenario.device);
        format!("{model}{input}, batch {batch}, on {device}{within}")
    }

    /// The reason why a policy does not fit, with the least budget at which it would.
    fn why(&self, candidate: &Candidate) -> String {
        let outcome = &candidate.outcome;
        match (&outcome.results, self.scenario.time_budget, &outcome.advice) {
            (Some(results), Some(budget), _) => {
                let (took, budget) = (Nanos::from_seconds(results.iteration_time_s), quantities::time(budget));
                format!("an iteration takes {}, more than the time budget of {budget}", quantities::time(took))
            }
            (None, _, Some(advice)) => advice.clone(),
            _ => outcome.reason.clone().unwrap_or_default(),
        }
    }
}

/// The fidelity of gradients as text.
pub(crate) fn gradients(results: &Results) -> String {
    let class = results.fidelity.word();
    match results.fidelity {
        FidelityClass::Stored => format!("{class}, {} bits", results.least_bits),
        FidelityClass::WeightsSkipped => format!("{class}, {}", results.gradients_given_up),
        _ => class.to_owned(),
    }
}

/// A policy and the outcome of its run.
struct Candidate {
    policy: &'static Entry,
    /// The stack that it runs on, and the number format of its arithmetic; `None` if its scenario is invalid.
    runs_as: Option<(String, &'static str)>,
    outcome: Outcome,
    /// The memory budget, if it has one.
    memory_budget: Option<Bytes>,
    /// Caveats of the run, one sentence each.
    notes: Vec<String>,
    /// Whether no other policy that fits and is as faithful is both faster and smaller.
    is_best: bool,
}

/// The results of a candidate that its JSON has.
const SHOWN: [&str; 9] = [
    "iteration_time_s",
    "samples_per_s",
    "energy_j",
    "peak_memory_bytes",
    "fidelity",
    "gradients_given_up",
    "least_bits",
    "lower_bound_s",
    "optimality_gap",
];

impl Candidate {
    /// Runs `scenario` under `policy`.
    fn run(policy: &'static Entry, scenario: &Scenario, cache: &Cache) -> Self {
        let none =
            |outcome| Self { policy, runs_as: None, outcome, memory_budget: None, notes: Vec::new(), is_best: false };
        match Plan::new(scenario, cache) {
            Err(error) => none(Outcome::refused(&error)),
            Ok(plan) => {
                let resolved = plan.scenario();
                let runs_as = (resolved.stack.clone().unwrap_or_default(), plan.arithmetic().name());
                Self {
                    runs_as: Some(runs_as),
                    memory_budget: plan.budgets.memory,
                    notes: plan.resolved.notes.iter().cloned().chain(doubt(&plan)).collect(),
                    ..none(Outcome::of(&plan, cache))
                }
            }
        }
    }

    /// Its figures, if it fits.
    fn fits(&self) -> Option<&Results> {
        self.outcome.results.as_ref().filter(|_| self.outcome.status == Status::Ok)
    }

    /// The ranking key: less is better, and a policy that does not fit ranks last.
    fn rank(&self, by: By) -> f64 {
        self.fits().map_or(f64::INFINITY, |results| match by {
            By::Time => results.iteration_time_s,
            By::Energy => results.energy_j,
            By::Memory => results.peak_memory_bytes as f64,
        })
    }

    fn to_json(&self) -> Value {
        let (stack, precision) = self.runs_as.as_ref().map(|(stack, precision)| (stack, precision)).unzip();
        let mut answer = json!({
            "policy": self.policy.id, "status": self.outcome.status.word(), "pareto": self.is_best,
            "stack": stack, "precision": precision, "reason": self.outcome.reason,
            "memory_budget_bytes": self.memory_budget.map(|bytes| bytes.0),
            "least_memory_bytes": self.outcome.least_memory.map(|bytes| bytes.0),
        });
        let results = self.outcome.results.as_ref().map(Results::to_json).unwrap_or_default();
        for name in SHOWN {
            answer[name] = results.get(name).cloned().unwrap_or_default();
        }
        answer
    }
}

/// Marks the policies that fit and that no other fitting policy with the same or a smaller loss in the gradients beats
/// in both time and memory.
fn mark_best(candidates: &mut [Candidate]) {
    let place = |candidate: &Candidate| {
        let results = candidate.fits();
        results.map_or((f64::NAN, f64::NAN), |r| (r.peak_memory_bytes as f64, r.iteration_time_s))
    };
    let points: Vec<(f64, f64)> = candidates.iter().map(place).collect();
    let losses: Vec<[u64; 4]> =
        candidates.iter().map(|candidate| candidate.fits().map(Results::losses).unwrap_or_default()).collect();
    // The front has one of several equal points; all of them are as good.
    let best = fair_front(&points, &losses, BOTH_MINIMISED);
    let best: Vec<_> = best.into_iter().map(|place| (points[place], losses[place])).collect();
    for (candidate, point) in candidates.iter_mut().zip(points.into_iter().zip(losses)) {
        candidate.is_best = best.contains(&point);
    }
}
