//! `haversack tune`: searches a policy's parameters by trial runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use haversack_devices::Nanos;
use haversack_policies::{Entry, registry};
use serde_json::{Value, json};

use crate::output::{Format, join};
use crate::run::Results;
use crate::scenario::{Fault, ScenarioFlags, workload};
use crate::texts::text;
use crate::{Cache, CommandError, Key, Plan, Scenario};

/// The options of `tune`.
#[derive(Clone, Debug, Args)]
#[command(after_help = include_str!("../help/tune.txt"))]
pub struct TuneOptions {
    /// Policy to tune, one of `haversack list policies`
    #[arg(value_name = "POLICY")]
    pub tuned: String,
    /// Scenario file without a policy; flags override its keys
    #[arg(value_name = "SCENARIO.toml")]
    pub file: Option<PathBuf>,
    /// Scenario keys given as flags.
    #[command(flatten)]
    pub scenario: ScenarioFlags,
    /// Maximum number of runs
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub tries: u64,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// A policy with its shipped parameters, and tuned.
pub(crate) struct Tuned {
    /// Results with the shipped parameters, and with those that were found; `None` if it does not fit.
    pub(crate) shipped: Option<Results>,
    pub(crate) tuned: Option<Results>,
    /// The policy parameters of `tuned`.
    pub(crate) set: BTreeMap<String, String>,
    /// The number of runs.
    pub(crate) tries: u64,
}

/// Searches the parameters of `entry` with which an iteration of `scenario` is fastest without losing more of the
/// gradients, one parameter after the other, in at most `most` runs.
///
/// # Errors
/// A scenario that is wrong under the policy.
pub(crate) fn tuned(entry: &Entry, scenario: &Scenario, most: u64, cache: &Cache) -> Result<Tuned, CommandError> {
    let under =
        |set: &BTreeMap<String, String>| Scenario { policy: entry.id.to_owned(), set: set.clone(), ..scenario.clone() };
    let mut search = Search { tries: 0, most, losses: None };
    let mut set = scenario.set.clone();
    // An error in the scenario itself occurs with any parameters.
    Plan::new(&under(&set), cache)?;
    let shipped = search.run(&under(&set), cache);
    search.losses = shipped.as_ref().map(|(_, losses)| *losses);
    let mut best = shipped.as_ref().map(|(time, _)| *time);
    let free: Vec<_> = entry.parameters.iter().filter(|parameter| !scenario.set.contains_key(parameter.name)).collect();
    let mut is_better = true;
    while std::mem::take(&mut is_better) {
        for parameter in &free {
            for value in parameter.tries() {
                let now = set.get(parameter.name).cloned().or_else(|| parameter.default_text());
                if now.as_ref() == Some(&value) {
                    continue;
                }
                let mut other = set.clone();
                other.insert(parameter.name.to_owned(), value);
                let found = search.run(&under(&other), cache);
                if let Some((time, _)) = found.filter(|(time, _)| best.is_none_or(|best| *time < best)) {
                    (best, set, is_better) = (Some(time), other, true);
                }
            }
        }
    }
    let results = |set, fits: bool| {
        let plan = Plan::new(&under(set), cache).ok().filter(|_| fits)?;
        Some(Results::new(&plan, &plan.run_within_device(cache).ok()?))
    };
    let (shipped, tuned) = (results(&scenario.set, shipped.is_some()), results(&set, best.is_some()));
    Ok(Tuned { shipped, tuned, set, tries: search.tries })
}

struct Search {
    tries: u64,
    most: u64,
    /// The losses in the gradients with the shipped parameters; `None` if it does not fit.
    losses: Option<[u64; 4]>,
}

impl Search {
    /// The time of an iteration, if the run fits and loses no more of the gradients, and its losses.
    fn run(&mut self, scenario: &Scenario, cache: &Cache) -> Option<(Nanos, [u64; 4])> {
        if self.tries >= self.most {
            return None;
        }
        self.tries += 1;
        let plan = Plan::new(scenario, cache).ok()?;
        let record = plan.run_within_device(cache).ok()?;
        let losses = record.fidelity.losses();
        let gives_up_more = |most: [u64; 4]| losses.iter().zip(most).any(|(loss, most)| *loss > most);
        (!self.losses.is_some_and(gives_up_more)).then_some((record.iteration, losses))
    }
}

/// Tunes a policy and prints the result.
///
/// # Errors
/// A scenario or a policy that is wrong; [`CommandError::NoPlan`] if no tried parameters fit.
pub fn run(options: &TuneOptions) -> Result<(), CommandError> {
    let scenario = options.scenario.over(options.file.as_deref())?;
    if scenario.origins.contains_key(&Key::Policy) {
        let message = format!("the policy that is tuned is {}; leave the key out", options.tuned);
        return Err(scenario.error(Key::Policy, Fault::Refused(message)).into());
    }
    let entry = registry::find(&options.tuned).map_err(|error| CommandError::Input(error.to_string()))?;
    let found = tuned(entry, &scenario, options.tries, &Cache::new())?;
    options.format.print(|| found.to_text(entry, &scenario), || found.to_json(entry, &scenario))?;
    match found.tuned {
        Some(_) => Ok(()),
        None => Err(CommandError::NoPlan(format!("nothing that was tried of {} fits", entry.id))),
    }
}

impl Tuned {
    fn to_text(&self, entry: &Entry, scenario: &Scenario) -> String {
        let mut answer = self.to_json(entry, scenario);
        join(&mut answer, json!({ "model": workload::called(&scenario.model) }));
        text(include_str!("../texts/tune.txt"), &answer)
    }

    fn to_json(&self, entry: &Entry, scenario: &Scenario) -> Value {
        let mut keys = scenario.to_json(Default::default());
        keys.retain(|name, _| ![Key::Policy.name(), Key::Set.name()].contains(&name.as_str()));
        let results = |results: &Option<Results>| results.as_ref().map(Results::to_json);
        json!({
            "scenario": keys, "policy": entry.id, "tries": self.tries, "set": self.set,
            "shipped": results(&self.shipped), "tuned": results(&self.tuned),
        })
    }
}
