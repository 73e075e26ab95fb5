//! What a federation is of, as a TOML file says it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use haversack_devices::text::{alternatives, read_toml};
use haversack_devices::work::Precision;
use haversack_federation::federation::Rules;
use haversack_federation::learning::{Labels, LocalSgd, ServerRule, Yogi};
use haversack_federation::population::{PopulationSetting, Sizes};
use haversack_federation::selection::SelectorKind;
use haversack_policies::registry;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::budgets::Report;
use super::plans::{CLUSTERS, Plans};
use crate::error::CommandError;

/// How updates are taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Aggregator {
    #[serde(rename = "fedavg")]
    Average,
    #[serde(rename = "fedprox")]
    Proximal,
    #[serde(rename = "fedyogi")]
    Yogi,
}

/// What is simulated beside time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    /// Nothing: phones compute and send, nobody learns.
    Timing,
    /// Phones learn for real on a stand-in.
    Learning,
}

/// How samples are split among phones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Split {
    /// All hold the classes of the whole set.
    Even,
    /// As the data have it.
    Natural,
}

/// FedProx's μ by default: the best on most of its paper's sets is 0.1 or 1 (Li et al., MLSys 2020, section 5.3).
const PROXIMAL: f32 = 0.1;
/// The concentration of the classes by default.
const ALPHA: f64 = 0.1;

/// The file's keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    population: u32,
    memory_mix: Option<BTreeMap<String, f64>>,
    alpha: Option<f64>,
    split: Option<Split>,
    selector: SelectorKind,
    aggregator: Option<Aggregator>,
    mode: Option<Mode>,
    cohort: u32,
    over_commit: Option<f64>,
    deadline_s: Option<f64>,
    oracle: Option<bool>,
    rounds: u32,
    local_epochs: Option<u32>,
    batch: Option<u64>,
    learning_rate: Option<f32>,
    samples: Option<u32>,
    total_samples: Option<u64>,
    size_alpha: Option<f64>,
    policy: Option<String>,
    set: Option<BTreeMap<String, Setting>>,
    stack: Option<String>,
    precision: Option<String>,
    budget: Option<Report>,
    plans: Option<Plans>,
    clusters: Option<u32>,
    network: String,
    stand_in: Option<String>,
    data: Option<String>,
    target_accuracy: Option<f64>,
    evaluate_every: Option<u32>,
    traces: Option<PathBuf>,
    system: Option<String>,
    seed: Option<u64>,
}

/// A value of a policy's parameter.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a text, a number, true or false")]
enum Setting {
    Switch(bool),
    Whole(i64),
    Real(f64),
    Text(String),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
            Self::Whole(number) => write!(f, "{number}"),
            Self::Real(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// What is learned, and how.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Learning {
    /// The network that learns.
    pub(super) stand_in: String,
    /// The data: a name or a path; `None` for what suits the network.
    pub(super) data: Option<String>,
    /// How a client trains.
    pub(super) how: LocalSgd,
    /// How the server takes updates in.
    pub(super) rule: ServerRule,
    /// How classes differ among phones.
    pub(super) labels: Labels,
    /// The accuracy with which the federation ends; `None` if it ends after its rounds.
    pub(super) target: Option<f64>,
    /// Every so many rounds accuracy is measured, and after the last.
    pub(super) every: u32,
}

/// A specification.
#[derive(Clone, Debug)]
pub(super) struct Specification {
    pub(super) phones: u32,
    pub(super) setting: PopulationSetting,
    pub(super) rules: Rules,
    pub(super) rounds: u32,
    pub(super) local_epochs: u32,
    pub(super) batch: u64,
    /// How many samples phones hold.
    pub(super) sizes: Sizes,
    pub(super) policy: String,
    /// The policy's own parameters.
    pub(super) set: BTreeMap<String, String>,
    /// Whether something gives way where memory is short. If not, training takes what it takes, and the kernel reclaims.
    pub(super) gives_way: bool,
    /// The software that trains; `None` for the policy's or the device's own.
    pub(super) stack: Option<String>,
    pub(super) precision: Precision,
    /// What phones say of their memory.
    pub(super) report: Report,
    /// Whose plans phones get; `None` where the policy makes none.
    pub(super) plans: Option<Plans>,
    /// The most clusters for which the server makes plans.
    pub(super) clusters: u32,
    /// The network whose time and memory are simulated.
    pub(super) network: String,
    pub(super) system: String,
    pub(super) traces: Option<PathBuf>,
    /// `None` for time alone.
    pub(super) learning: Option<Learning>,
    pub(super) seed: u64,
}

impl Specification {
    /// Reads the file at `path`; `seed` takes the place of its own.
    ///
    /// # Errors
    /// A file that cannot be read, unknown keys, values that a key cannot have or that contradict each other, with the line.
    pub(super) fn read(path: &Path, seed: Option<u64>) -> Result<Self, CommandError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| CommandError::input(format!("{file}: cannot be read: {error}")))?;
        Self::parse(&file, &text, seed)
    }

    pub(super) fn parse(file: &str, text: &str, seed: Option<u64>) -> Result<Self, CommandError> {
        let asked: Asked = read_toml(file, text).map_err(CommandError::input)?;
        let place = Place { file, text };
        let rules = Rules {
            selector: asked.selector,
            cohort: asked.cohort,
            over_commit: asked.over_commit.unwrap_or(1.3),
            deadline_s: asked.deadline_s,
            oracle: asked.oracle.unwrap_or(false),
        };
        rules.check(asked.population).map_err(|error| place.says(error.field, &error.to_string()))?;
        let mut setting = PopulationSetting::embedded().map_err(CommandError::failed)?;
        if let Some(mix) = &asked.memory_mix {
            mixed(&mut setting, mix).map_err(|why| place.says("memory_mix", &why))?;
            setting.check().map_err(|error| place.says("memory_mix", &error.to_string()))?;
        }
        let at_least_one = |field: &str, value: u64| match value {
            0 => Err(place.says(field, &format!("`{field}` is 0, expected at least 1"))),
            _ => Ok(()),
        };
        let (local_epochs, batch) = (asked.local_epochs.unwrap_or(1), asked.batch.unwrap_or(20));
        let numbers =
            [("rounds", u64::from(asked.rounds)), ("local_epochs", u64::from(local_epochs)), ("batch", batch)];
        numbers.into_iter().try_for_each(|(field, value)| at_least_one(field, value))?;
        let sizes = sizes(&asked, &place)?;
        let policy = asked.policy.clone().unwrap_or_else(|| "original".to_owned());
        let set: BTreeMap<String, String> =
            asked.set.iter().flatten().map(|(name, value)| (name.clone(), value.to_string())).collect();
        let (gives_way, plans) = managed(&asked, &policy, &set, &place)?;
        let names = || Precision::OF_RUNS.map(Precision::name);
        let precision = match &asked.precision {
            None => Precision::default(),
            Some(text) => Precision::OF_RUNS.into_iter().find(|known| known.name() == text).ok_or_else(|| {
                place.says(
                    "precision",
                    &format!("`precision` is {text}, expected {}", alternatives(names().into_iter())),
                )
            })?,
        };
        Ok(Self {
            phones: asked.population,
            setting,
            rules,
            rounds: asked.rounds,
            local_epochs,
            batch,
            sizes,
            policy,
            set,
            gives_way,
            stack: asked.stack.clone(),
            precision,
            report: asked.budget.unwrap_or_default(),
            plans,
            clusters: asked.clusters.unwrap_or(CLUSTERS),
            network: asked.network.clone(),
            system: asked.system.clone().unwrap_or_else(|| "android".to_owned()),
            traces: asked.traces.clone(),
            learning: learning(&asked, &place)?,
            seed: seed.or(asked.seed).unwrap_or(0),
        })
    }

    /// What says whose a folder is: all that is asked for.
    pub(super) fn record(&self) -> Map<String, Value> {
        let learning = self.learning.as_ref().map(|learning| {
            let LocalSgd { rate, proximal, .. } = learning.how;
            json!({
                "stand_in": learning.stand_in, "data": learning.data, "learning_rate": rate, "proximal": proximal,
                "aggregator": format!("{:?}", learning.rule), "labels": format!("{:?}", learning.labels),
                "target_accuracy": learning.target, "evaluate_every": learning.every,
            })
        });
        let mix: Map<String, Value> =
            self.setting.memory.iter().map(|class| (class.size_gb.to_string(), json!(class.share))).collect();
        let specification = json!({
            "population": self.phones, "memory_mix": mix, "rules": self.rules, "rounds": self.rounds,
            "local_epochs": self.local_epochs, "batch": self.batch, "sizes": format!("{:?}", self.sizes),
            "policy": self.policy, "set": self.set, "stack": self.stack, "precision": self.precision.name(),
            "budget": self.report, "plans": self.plans, "clusters": self.clusters,
            "network": self.network, "system": self.system, "traces": self.traces, "learning": learning, "seed": self.seed,
        });
        let keys = [("command", json!("federate")), ("specification", specification)];
        keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

/// Where a key stands.
struct Place<'a> {
    file: &'a str,
    text: &'a str,
}

impl Place<'_> {
    /// An error about `key`.
    fn says(&self, key: &str, message: &str) -> CommandError {
        let is_key = |line: &str| {
            line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(['=', '.']))
        };
        let line = self.text.lines().position(is_key).map_or_else(String::new, |line| format!("{}:", line + 1));
        CommandError::input(format!("{}:{line} {message}", self.file))
    }
}

/// How many samples phones hold.
fn sizes(asked: &Asked, place: &Place<'_>) -> Result<Sizes, CommandError> {
    let Some(total) = asked.total_samples else {
        if asked.size_alpha.is_some() {
            return Err(place.says("size_alpha", "`size_alpha` says how `total_samples` are split, which is not given"));
        }
        let samples = asked.samples.unwrap_or(60);
        return if samples > 0 {
            Ok(Sizes::Same(samples))
        } else {
            Err(place.says("samples", "`samples` is 0, expected at least 1"))
        };
    };
    if asked.samples.is_some() {
        let message = "`total_samples` and `samples` both say how many samples phones hold; expected one of them";
        return Err(place.says("total_samples", message));
    }
    if total < u64::from(asked.population) {
        let message =
            format!("`total_samples` is {total}, expected one at least for each of {} phones", asked.population);
        return Err(place.says("total_samples", &message));
    }
    match asked.size_alpha {
        Some(alpha) if !(alpha > 0.0 && alpha.is_finite()) => {
            Err(place.says("size_alpha", &format!("`size_alpha` is {alpha}, expected a number above 0")))
        }
        alpha => Ok(Sizes::Split { total, alpha }),
    }
}

/// Whether something gives way, and whose plans phones get; what is said of memory must go with the policy.
fn managed(
    asked: &Asked,
    policy: &str,
    set: &BTreeMap<String, String>,
    place: &Place<'_>,
) -> Result<(bool, Option<Plans>), CommandError> {
    let entry = registry::find(policy).map_err(|error| place.says("policy", &error.to_string()))?;
    let set: Vec<(String, String)> = set.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let built = entry.build(&set).map_err(|error| place.says("set", &error.to_string()))?;
    let oracle = asked.oracle == Some(true);
    for (key, given) in [("budget", asked.budget.is_some()), ("plans", asked.plans.is_some())] {
        if given && oracle {
            return Err(place.says(key, &format!("`{key}` says how memory is kept, but `oracle` makes it no matter")));
        }
    }
    if asked.budget.is_some() && !built.gives_way() {
        let message = format!("`budget` needs a policy that keeps within one; under {policy} nothing gives way");
        return Err(place.says("budget", &message));
    }
    // A policy that makes plans says who makes them.
    let makes_plans = entry.parameters.iter().any(|parameter| parameter.name() == "planner");
    if let (Some(_), false) = (asked.plans, makes_plans) {
        return Err(place.says("plans", &format!("`plans` needs a policy that makes plans ahead; {policy} makes none")));
    }
    let plans = makes_plans.then(|| asked.plans.unwrap_or(Plans::Server));
    match asked.clusters {
        Some(0) => Err(place.says("clusters", "`clusters` is 0, expected at least 1")),
        Some(_) if plans != Some(Plans::Server) => {
            Err(place.says("clusters", "`clusters` needs a policy that makes plans, and `plans` by the server"))
        }
        _ => Ok((built.gives_way(), plans)),
    }
}

/// Shares of memory classes in the place of the setting's; a class that is not named has no phones.
fn mixed(setting: &mut PopulationSetting, mix: &BTreeMap<String, f64>) -> Result<(), String> {
    let sizes: Vec<String> = setting.memory.iter().map(|class| class.size_gb.to_string()).collect();
    if let Some(unknown) = mix.keys().find(|size| !sizes.contains(size)) {
        return Err(format!("`memory_mix` has phones with {unknown} GB, expected {} GB", sizes.join(", ")));
    }
    for (class, size) in setting.memory.iter_mut().zip(&sizes) {
        class.share = mix.get(size).copied().unwrap_or(0.0);
    }
    setting.memory.retain(|class| class.share != 0.0);
    Ok(())
}

/// What is learned; `None` for time alone.
fn learning(asked: &Asked, place: &Place<'_>) -> Result<Option<Learning>, CommandError> {
    let mode = asked.mode.unwrap_or(if asked.stand_in.is_some() { Mode::Learning } else { Mode::Timing });
    let contradicts = |key: &str, given: bool| {
        if given {
            Err(place.says(key, &format!("`{key}` needs `mode` learning, but `mode` is timing")))
        } else {
            Ok(())
        }
    };
    if mode == Mode::Timing {
        contradicts("stand_in", asked.stand_in.is_some())?;
        contradicts("data", asked.data.is_some())?;
        contradicts("target_accuracy", asked.target_accuracy.is_some())?;
        contradicts("aggregator", asked.aggregator.is_some())?;
        contradicts("alpha", asked.alpha.is_some())?;
        contradicts("split", asked.split.is_some())?;
        return Ok(None);
    }
    let Some(stand_in) = asked.stand_in.clone() else {
        return Err(place.says("mode", "`mode` is learning, which needs `stand_in`"));
    };
    if asked.selector == SelectorKind::Heterofl {
        let message = "`selector` is heterofl, whose narrower networks are not learned yet; expected `mode` timing";
        return Err(place.says("selector", message));
    }
    let labels = match (asked.split, asked.alpha) {
        (Some(_), Some(_)) => {
            return Err(place.says("alpha", "`alpha` and `split` both say how samples are split; expected one of them"));
        }
        (Some(Split::Natural), None) if asked.data.as_deref() != Some(super::learner::SYNTHETIC) => {
            return Err(
                place.says("split", "`split` is natural, which only data = \"synthetic\" has; expected even, or alpha")
            );
        }
        (Some(_), None) => Labels::Even,
        (None, alpha) => Labels::Dirichlet { alpha: alpha.unwrap_or(ALPHA) },
    };
    labels.check().map_err(|error| place.says("alpha", &error.to_string()))?;
    let (rule, proximal) = match asked.aggregator.unwrap_or(Aggregator::Average) {
        Aggregator::Average => (ServerRule::Add, 0.0),
        Aggregator::Proximal => (ServerRule::Add, PROXIMAL),
        Aggregator::Yogi => (ServerRule::Yogi(Yogi::default()), 0.0),
    };
    let epochs = asked.local_epochs.unwrap_or(1);
    let batch = usize::try_from(asked.batch.unwrap_or(20)).unwrap_or(usize::MAX);
    let how = LocalSgd { epochs, batch, rate: asked.learning_rate.unwrap_or(0.05), proximal };
    how.check().map_err(|error| place.says("learning_rate", &error.to_string()))?;
    if let Some(target) = asked.target_accuracy.filter(|target| !(0.0..=1.0).contains(target)) {
        return Err(place.says("target_accuracy", &format!("`target_accuracy` is {target}, expected from 0 to 1")));
    }
    let every = asked.evaluate_every.unwrap_or(5).max(1);
    Ok(Some(Learning { stand_in, data: asked.data.clone(), how, rule, labels, target: asked.target_accuracy, every }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "population = 100\nselector = \"random\"\ncohort = 10\nrounds = 3\nnetwork = \"lenet5\"\n";

    fn refused(more: &str) -> String {
        Specification::parse("f.toml", &format!("{SPEC}{more}"), None).unwrap_err().to_string()
    }

    #[test]
    fn what_is_left_out_has_defaults() {
        let found = Specification::parse("f.toml", SPEC, Some(7)).unwrap();
        assert_eq!((found.seed, found.learning, found.rules.over_commit), (7, None, 1.3));
        assert_eq!((found.plans, found.sizes), (None, Sizes::Same(60)));
        let planned = format!("{SPEC}policy = \"fedhybrid\"\nset = {{ compression = false }}\ntotal_samples = 900\n");
        let found = Specification::parse("f.toml", &planned, None).unwrap();
        assert_eq!((found.plans, found.set["compression"].as_str()), (Some(Plans::Server), "off"));
        assert_eq!(found.sizes, Sizes::Split { total: 900, alpha: None });
        let found = Specification::parse("f.toml", &format!("{SPEC}stand_in = \"mlp\"\n"), None).unwrap();
        assert_eq!(found.learning.unwrap().labels, Labels::Dirichlet { alpha: 0.1 });
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        assert!(refused("rouns = 3").contains("rouns"), "{}", refused("rouns = 3"));
        assert!(
            refused("stand_in = \"mlp\"\nalpha = 0.0").contains("f.toml:7: `alpha` is 0, expected a number above 0")
        );
        assert!(
            refused("mode = \"timing\"\nstand_in = \"mlp\"").contains("f.toml:7: `stand_in` needs `mode` learning")
        );
        assert!(refused("mode = \"learning\"").contains("f.toml:6: `mode` is learning, which needs `stand_in`"));
        assert!(
            refused("memory_mix = { 5 = 1.0 }").contains("f.toml:6: `memory_mix` has phones with 5 GB, expected 4")
        );
        assert!(refused("memory_mix = { 4 = 0.5 }").contains("f.toml:6: `memory_mix.share` is 0.5"));
        assert!(refused("over_commit = 0.5").contains("f.toml:6: `over_commit` is 0.5, expected a number from 1"));
        assert!(refused("stand_in = \"mlp\"\nalpha = 0.1\nsplit = \"even\"").contains("expected one of them"));
        assert!(refused("plans = \"phone\"").contains("f.toml:6: `plans` needs a policy that makes plans ahead"));
        assert!(refused("budget = \"available\"").contains("f.toml:6: `budget` needs a policy that keeps within one"));
        assert!(
            refused("policy = \"fedhybrid\"\nplans = \"each\"\nclusters = 3").contains("f.toml:8: `clusters` needs")
        );
        assert!(
            refused("policy = \"fedhybrid\"\noracle = true\nplans = \"each\"").contains("f.toml:8: `plans` says how")
        );
        assert!(refused("policy = \"fedhybrid\"\nset = { compresion = \"off\" }").contains("f.toml:7: "));
        assert!(refused("precision = \"fp33\"").contains("f.toml:6: `precision` is fp33, expected fp32"));
        assert!(
            refused("total_samples = 99").contains("f.toml:6: `total_samples` is 99, expected one at least for each")
        );
        assert!(refused("total_samples = 900\nsamples = 9").contains("f.toml:6: `total_samples` and `samples` both"));
        assert!(
            refused("total_samples = 900\nsize_alpha = 0.0").contains("f.toml:7: `size_alpha` is 0, expected a number")
        );
        assert!(refused("size_alpha = 1.0").contains("f.toml:6: `size_alpha` says how `total_samples` are split"));
        let many = SPEC.replace("cohort = 10", "cohort = 101");
        let error = Specification::parse("f.toml", &many, None).unwrap_err().to_string();
        assert!(error.contains("f.toml:3: `cohort` is 101, expected from 1 to the 100 phones"), "{error}");
    }
}
