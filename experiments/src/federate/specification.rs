//! What a federation is of, as a TOML file says it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use haversack_devices::CoreSelection;
use haversack_devices::text::{alternatives, read_toml};
use haversack_devices::work::Precision;
use haversack_federation::federation::{Aggregation, Buffer, Rules};
use haversack_federation::learning::{Labels, LearningError, LocalSgd, ServerRule, Yogi};
use haversack_federation::population::{Link, MemoryClass, PopulationSetting, Sizes};
use haversack_federation::selection::SelectorKind;
use haversack_policies::registry;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::budgets::Report;
use super::plans::{CLUSTERS, Plans};
use crate::error::CommandError;
use crate::scenario::InputShape;

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

/// When updates are taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum When {
    /// At the end of a round.
    Synchronous,
    /// Once as many as the cohort have come.
    Buffered,
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

/// When phones take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ready {
    /// While they are locked, charge and are on Wi-Fi.
    Sessions,
    /// Whenever they are asked.
    Always,
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
    dealt: Option<bool>,
    selector: SelectorKind,
    aggregator: Option<Aggregator>,
    mode: Option<Mode>,
    cohort: u32,
    over_commit: Option<f64>,
    deadline_s: Option<f64>,
    aggregation: Option<When>,
    concurrency: Option<u32>,
    max_staleness: Option<u32>,
    oracle: Option<bool>,
    rounds: u32,
    local_epochs: Option<u32>,
    local_steps: Option<u32>,
    batch: Option<u64>,
    learning_rate: Option<f32>,
    proximal: Option<f32>,
    server_learning_rate: Option<f32>,
    samples: Option<u32>,
    total_samples: Option<u64>,
    size_alpha: Option<f64>,
    policy: Option<String>,
    cores: Option<String>,
    ready: Option<Ready>,
    set: Option<BTreeMap<String, Setting>>,
    stack: Option<String>,
    precision: Option<String>,
    budget: Option<Report>,
    plans: Option<Plans>,
    clusters: Option<u32>,
    network: String,
    device: Option<String>,
    input: Option<String>,
    link_mbit_per_s: Option<f64>,
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
    /// Whether each sample of the set has one holder.
    pub(super) dealt: bool,
    /// The accuracy with which the federation ends; `None` if it ends after its rounds.
    pub(super) target: Option<f64>,
    /// Every so many rounds accuracy is measured, and after the last.
    pub(super) every: u32,
}

/// A specification.
#[derive(Clone, Debug)]
pub(crate) struct Specification {
    pub(super) phones: u32,
    pub(super) setting: PopulationSetting,
    pub(super) rules: Rules,
    pub(super) rounds: u32,
    pub(super) local_epochs: u32,
    /// Batches of a part in the place of epochs.
    pub(super) local_steps: Option<u32>,
    pub(super) batch: u64,
    /// How many samples phones hold.
    pub(super) sizes: Sizes,
    pub(super) policy: String,
    /// The cores that train, as far as a device has them; `None` for the stack's own.
    pub(super) cores: Option<CoreSelection>,
    pub(super) ready: Ready,
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
    /// The shape of its samples; `None` for its own.
    pub(super) input: Option<InputShape>,
    pub(super) system: String,
    pub(super) traces: Option<PathBuf>,
    /// `None` for time alone.
    pub(super) learning: Option<Learning>,
    pub(super) seed: u64,
}

impl Specification {
    /// What the text of `file` says; `seed` takes the place of its own.
    ///
    /// # Errors
    /// Unknown keys, values that a key cannot have or that contradict each other, with the line.
    pub(crate) fn parse(file: &str, text: &str, seed: Option<u64>) -> Result<Self, CommandError> {
        let asked: Asked = read_toml(file, text).map_err(CommandError::input)?;
        let place = Place { file, text };
        let rules = rules(&asked, &place)?;
        rules.check(asked.population).map_err(|error| place.says(error.field, &error.to_string()))?;
        let mut setting = PopulationSetting::embedded().map_err(CommandError::failed)?;
        if let Some(mix) = &asked.memory_mix {
            mixed(&mut setting, mix).map_err(|why| place.says("memory_mix", &why))?;
            setting.check().map_err(|error| place.says("memory_mix", &error.to_string()))?;
        }
        if let Some(id) = &asked.device {
            let both =
                || place.says("device", "`device` and `memory_mix` both say what phones are; expected one of them");
            asked.memory_mix.as_ref().map_or(Ok(()), |_| Err(both()))?;
            let device = haversack_devices::load(id).map_err(|error| place.says("device", &error.to_string()))?;
            let size_gb = (device.ram().as_f64() / f64::from(1 << 30)).round();
            setting.memory = vec![MemoryClass { size_gb, devices: vec![id.clone()], share: 1.0, speed_spread: 0.0 }];
        }
        if let Some(median_mbit_per_s) = asked.link_mbit_per_s {
            setting.link = Link { median_mbit_per_s, spread: 0.0 };
            setting.check().map_err(|error| place.says("link_mbit_per_s", &error.to_string()))?;
        }
        let input = asked.input.as_deref().map(str::parse::<InputShape>).transpose();
        let input = input.map_err(|error| place.says("input", &error.to_string()))?;
        let at_least_one = |field: &str, value: u64| match value {
            0 => Err(place.says(field, &format!("`{field}` is 0, expected at least 1"))),
            _ => Ok(()),
        };
        let (local_epochs, batch) = (asked.local_epochs.unwrap_or(1), asked.batch.unwrap_or(20));
        let numbers =
            [("rounds", u64::from(asked.rounds)), ("local_epochs", u64::from(local_epochs)), ("batch", batch)];
        if asked.local_epochs.is_some() && asked.local_steps.is_some() {
            let why = "`local_epochs` and `local_steps` both say how long a phone trains; expected one of them";
            return Err(place.says("local_steps", why));
        }
        asked.local_steps.map_or(Ok(()), |steps| at_least_one("local_steps", u64::from(steps)))?;
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
            local_steps: asked.local_steps,
            batch,
            cores: cores(&asked, &place)?,
            ready: asked.ready.unwrap_or(Ready::Sessions),
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
            input,
            system: asked.system.clone().unwrap_or_else(|| "android".to_owned()),
            traces: asked.traces.clone(),
            learning: learning(&asked, &place)?,
            seed: seed.or(asked.seed).unwrap_or(0),
        })
    }

    /// Batches of the part of a phone with so many samples.
    pub(super) fn batches(&self, samples: u32) -> f64 {
        let of_epochs = f64::from(self.local_epochs) * f64::from(samples) / self.batch as f64;
        self.local_steps.map_or(of_epochs, f64::from)
    }

    /// The sizes of memory that phones have, in GB.
    pub(crate) fn memory_sizes(&self) -> Vec<String> {
        self.setting.memory.iter().map(|class| class.size_gb.to_string()).collect()
    }

    /// What says whose a folder is: all that is asked for.
    pub(crate) fn record(&self) -> Map<String, Value> {
        let learning = self.learning.as_ref().map(|learning| {
            let LocalSgd { rate, proximal, .. } = learning.how;
            json!({
                "stand_in": learning.stand_in, "data": learning.data, "learning_rate": rate, "proximal": proximal,
                "aggregator": format!("{:?}", learning.rule), "labels": format!("{:?}", learning.labels), "dealt": learning.dealt,
                "target_accuracy": learning.target, "evaluate_every": learning.every,
            })
        });
        let mix: Map<String, Value> =
            self.setting.memory.iter().map(|class| (class.size_gb.to_string(), json!(class.share))).collect();
        let devices: Vec<&String> = self.setting.memory.iter().flat_map(|class| &class.devices).collect();
        let specification = json!({
            "population": self.phones, "memory_mix": mix, "rules": self.rules, "rounds": self.rounds,
            "local_epochs": self.local_epochs, "local_steps": self.local_steps, "batch": self.batch,
            "sizes": format!("{:?}", self.sizes), "policy": self.policy, "set": self.set, "stack": self.stack,
            "cores": self.cores.map(|cores| cores.to_string()), "ready": self.ready, "precision": self.precision.name(),
            "budget": self.report, "plans": self.plans, "clusters": self.clusters,
            "network": self.network, "input": self.input.as_ref().map(ToString::to_string), "devices": devices,
            "link_mbit_per_s": self.setting.link.median_mbit_per_s, "system": self.system, "traces": self.traces, "learning": learning, "seed": self.seed,
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

/// How rounds are held.
fn rules(asked: &Asked, place: &Place<'_>) -> Result<Rules, CommandError> {
    let refuse = |key: &str, given: bool, why: &str| match given {
        true => Err(place.says(key, &format!("`{key}` {why}"))),
        false => Ok(()),
    };
    let aggregation = if asked.aggregation == Some(When::Buffered) {
        let why = "is of rounds in which all begin at once, but `aggregation` is buffered";
        refuse("over_commit", asked.over_commit.is_some(), why)?;
        refuse("deadline_s", asked.deadline_s.is_some(), why)?;
        let Some(concurrency) = asked.concurrency else {
            let why = "`aggregation` is buffered, which needs `concurrency`: the phones at work at once";
            return Err(place.says("aggregation", why));
        };
        Aggregation::Buffered(Buffer { concurrency, max_staleness: asked.max_staleness })
    } else {
        let why = "needs `aggregation` buffered, but it is synchronous";
        refuse("concurrency", asked.concurrency.is_some(), why)?;
        refuse("max_staleness", asked.max_staleness.is_some(), why)?;
        Aggregation::Synchronous
    };
    let usual = Rules::new(asked.selector, asked.cohort);
    Ok(Rules {
        over_commit: asked.over_commit.unwrap_or(usual.over_commit),
        deadline_s: asked.deadline_s,
        oracle: asked.oracle.unwrap_or(false),
        aggregation,
        ..usual
    })
}

/// How the server takes updates in, and FedProx's μ.
fn aggregator(asked: &Asked, place: &Place<'_>) -> Result<(ServerRule, f32), CommandError> {
    let aggregator = asked.aggregator.unwrap_or(Aggregator::Average);
    if asked.proximal.is_some() && aggregator != Aggregator::Proximal {
        return Err(place.says("proximal", "`proximal` is FedProx's μ; expected aggregator = \"fedprox\" with it"));
    }
    if asked.server_learning_rate.is_some() && aggregator != Aggregator::Yogi {
        let why = "`server_learning_rate` is FedYogi's; expected aggregator = \"fedyogi\" with it";
        return Err(place.says("server_learning_rate", why));
    }
    let yogi = Yogi::default();
    let rate = asked.server_learning_rate.unwrap_or(yogi.rate);
    if !(rate > 0.0 && rate.is_finite()) {
        let why = format!("`server_learning_rate` is {rate}, expected a number above 0");
        return Err(place.says("server_learning_rate", &why));
    }
    Ok(match aggregator {
        Aggregator::Average => (ServerRule::Add, 0.0),
        Aggregator::Proximal => (ServerRule::Add, asked.proximal.unwrap_or(PROXIMAL)),
        Aggregator::Yogi => (ServerRule::Yogi(Yogi { rate, ..yogi }), 0.0),
    })
}

/// The cores that train.
fn cores(asked: &Asked, place: &Place<'_>) -> Result<Option<CoreSelection>, CommandError> {
    let parse = |text: &String| text.parse().map_err(|error| place.says("cores", &format!("`cores`: {error}")));
    asked.cores.as_ref().map(parse).transpose()
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
        contradicts("learning_rate", asked.learning_rate.is_some())?;
        contradicts("proximal", asked.proximal.is_some())?;
        contradicts("server_learning_rate", asked.server_learning_rate.is_some())?;
        contradicts("evaluate_every", asked.evaluate_every.is_some())?;
        contradicts("dealt", asked.dealt.is_some())?;
        return Ok(None);
    }
    let Some(stand_in) = asked.stand_in.clone() else {
        return Err(place.says("mode", "`mode` is learning, which needs `stand_in`"));
    };
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
    let dealt = asked.dealt.unwrap_or(false);
    if dealt && asked.data.as_deref() == Some(super::learner::SYNTHETIC) {
        return Err(place.says("dealt", "`dealt` is of a set, but the `data` are made for each phone; expected a set"));
    }
    labels.check().map_err(|error| place.says("alpha", &error.to_string()))?;
    let (rule, proximal) = aggregator(asked, place)?;
    let epochs = asked.local_epochs.unwrap_or(1);
    let batch = usize::try_from(asked.batch.unwrap_or(20)).unwrap_or(usize::MAX);
    let how = LocalSgd { epochs, steps: asked.local_steps, batch, rate: asked.learning_rate.unwrap_or(0.05), proximal };
    how.check().map_err(|error| {
        let field = if let LearningError::Setting { field, .. } = error { field } else { "learning_rate" };
        place.says(field, &error.to_string())
    })?;
    if let Some(target) = asked.target_accuracy.filter(|target| !(0.0..=1.0).contains(target)) {
        return Err(place.says("target_accuracy", &format!("`target_accuracy` is {target}, expected from 0 to 1")));
    }
    let every = asked.evaluate_every.unwrap_or(5).max(1);
    let (data, target) = (asked.data.clone(), asked.target_accuracy);
    Ok(Some(Learning { stand_in, data, how, rule, labels, dealt, target, every }))
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
    fn all_phones_may_be_one_device_with_one_link() {
        let one = format!("{SPEC}device = \"galaxy-s22\"\ninput = \"1x28x28\"\nlink_mbit_per_s = 80.0\n");
        let found = Specification::parse("f.toml", &one, None).unwrap();
        let [class] = &found.setting.memory[..] else { panic!("{:?}", found.setting.memory) };
        assert_eq!(
            (class.size_gb, class.speed_spread, class.devices.as_slice()),
            (8.0, 0.0, &["galaxy-s22".to_owned()][..])
        );
        // 80 megabits are ten megabytes.
        assert_eq!((found.setting.link.bytes_per_s(), found.setting.link.spread), (1e7, 0.0));
        assert_eq!(found.input, Some(InputShape(vec![1, 28, 28])));
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
        assert!(refused("device = \"galaxy-s2\"").contains("f.toml:6: "), "{}", refused("device = \"galaxy-s2\""));
        assert!(
            refused("device = \"galaxy-s22\"\nmemory_mix = { 8 = 1.0 }")
                .contains("f.toml:6: `device` and `memory_mix`")
        );
        assert!(refused("link_mbit_per_s = 0.0").contains("f.toml:6: `link.median_mbit_per_s` is 0"));
        assert!(refused("input = \"3by3\"").contains("f.toml:6: "), "{}", refused("input = \"3by3\""));
        let many = SPEC.replace("cohort = 10", "cohort = 101");
        let error = Specification::parse("f.toml", &many, None).unwrap_err().to_string();
        assert!(error.contains("f.toml:3: `cohort` is 101, expected from 1 to the 100 phones"), "{error}");
    }
}
