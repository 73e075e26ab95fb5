//! `haversack advise`: every policy for one device and one network, ranked, and why the others do not fit.

mod candidate;
mod text;

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use haversack_devices::units::Bytes;
use haversack_policies::registry::POLICIES;
use haversack_reports::figure::{Axis, Front};
use haversack_reports::{Figure, Panel};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::error::CommandError;
use crate::output::{Format, note, print, print_json};
use crate::plot::Plot;
use crate::run::Status;
use crate::scenario::{Fault, Key, Scenario, ScenarioFlags, size_text, workload};
use candidate::Candidate;

/// What `advise` is asked for.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    haversack advise --device galaxy-s22 --model resnet50 --batch 32 --memory-budget 2GB\n  \
    haversack advise --device pixel-6 --model bert-small --batch 8 --memory-budget 40% --time-budget 20s --by energy\n  \
    haversack advise scenario.toml --plot policies.png --format json\n\n\
    Every policy runs with its defaults. Exits with 3 if none fits; the table is printed all the same.")]
pub struct AdviseOptions {
    /// A scenario file without a policy; flags win over what it says
    #[arg(value_name = "SCENARIO.toml")]
    pub file: Option<PathBuf>,
    /// The keys that are given as flags.
    #[command(flatten)]
    pub scenario: ScenarioFlags,
    /// What those that fit are ranked by
    #[arg(long, value_enum, default_value_t)]
    pub by: By,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Draws time against memory of those that fit into FILE, which ends in .svg or .png
    #[arg(long, value_name = "FILE")]
    pub plot: Option<Plot>,
}

/// What policies are ranked by; less is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// The time of an iteration.
    #[default]
    Time,
    /// The energy of an iteration.
    Energy,
    /// The most memory that is resident.
    Memory,
}

impl By {
    const fn word(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Energy => "energy",
            Self::Memory => "memory",
        }
    }
}

/// The policies, ranked, and what they were asked.
struct Advice {
    scenario: Scenario,
    by: By,
    /// Those that fit first, the best of them in front; then the others in the order of the list of policies.
    candidates: Vec<Candidate>,
}

/// Simulates every policy and prints which fit.
///
/// # Errors
/// A scenario that is wrong for every policy, or that names one; [`CommandError::NoPlan`] if none fits.
pub fn run(options: &AdviseOptions) -> Result<(), CommandError> {
    let scenario = options.scenario.over(options.file.as_deref())?;
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
    match options.format {
        Format::Text => print(&advice.to_text())?,
        Format::Json => print_json(&advice.to_json())?,
    }
    if advice.fitting().next().is_some() { Ok(()) } else { Err(CommandError::NoPlan(advice.least())) }
}

impl Advice {
    fn new(scenario: Scenario, by: By) -> Result<Self, CommandError> {
        let cache = Cache::new();
        let run = |place: usize| {
            let policy = POLICIES[place];
            Candidate::run(policy, &Scenario { policy: policy.id.to_owned(), ..scenario.clone() }, &cache)
        };
        let mut candidates: Vec<Candidate> = (0..POLICIES.len()).into_par_iter().map(run).collect();
        // What every policy is refused for in the same words is wrong in the scenario itself.
        let first = candidates.first().and_then(|candidate| candidate.outcome.reason.clone());
        if candidates.iter().all(|candidate| candidate.is_refused() && candidate.outcome.reason == first) {
            return Err(CommandError::Input(first.unwrap_or_default()));
        }
        // The faster one of those that need as much.
        let order = |a: &Candidate, b: &Candidate| {
            a.rank(by).total_cmp(&b.rank(by)).then(a.rank(By::Time).total_cmp(&b.rank(By::Time)))
        };
        candidates.sort_by(order);
        candidate::mark_best(&mut candidates);
        Ok(Self { scenario, by, candidates })
    }

    fn fitting(&self) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter().filter(|candidate| candidate.outcome.status == Status::Ok)
    }

    /// That none fits, and the least memory budget with which one does.
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
}

impl Advice {
    /// A point for every policy that fits, and the front of all of them.
    fn figure(&self) -> Figure {
        let points = self.fitting().filter_map(|candidate| {
            let results = candidate.fits()?;
            let megabytes = Bytes(results.peak_memory_bytes).megabytes();
            Some((candidate.policy.id, vec![(megabytes, results.iteration_time_s)]))
        });
        let front = points.fold(Front::new().overall(), |front, (policy, point)| front.cloud(policy, point));
        let panel = Panel::new(front)
            .x(Axis::new("peak memory").unit("MB").from_zero())
            .y(Axis::new("iteration").unit("s").from_zero());
        let scenario = &self.scenario;
        let model = workload::called(&scenario.model);
        Figure::new(format!("{model}, batch {}, on {}", scenario.batch, scenario.device)).panel(panel)
    }
}
