//! What a federation is of, as a TOML file says it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haversack_devices::text::read_toml;
use haversack_federation::federation::Rules;
use haversack_federation::learning::{Labels, LocalSgd, ServerRule, Yogi};
use haversack_federation::population::{Link, MemoryClass, PopulationSetting, Sessions};
use haversack_federation::selection::SelectorKind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

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
    policy: Option<String>,
    network: String,
    stand_in: Option<String>,
    data: Option<String>,
    target_accuracy: Option<f64>,
    evaluate_every: Option<u32>,
    traces: Option<PathBuf>,
    system: Option<String>,
    device: Option<String>,
    input: Option<String>,
    link_mbit_per_s: Option<f64>,
    always_ready: Option<bool>,
    seed: Option<u64>,
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
pub(crate) struct Specification {
    pub(super) phones: u32,
    pub(super) setting: PopulationSetting,
    pub(super) rules: Rules,
    pub(super) rounds: u32,
    pub(super) local_epochs: u32,
    pub(super) batch: u64,
    /// The median number of a phone's samples.
    pub(super) samples: u32,
    pub(super) policy: String,
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

    /// The specification that `text` says; `file` is how errors name it.
    ///
    /// # Errors
    /// As [`Specification::read`].
    pub(crate) fn parse(file: &str, text: &str, seed: Option<u64>) -> Result<Self, CommandError> {
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
        if let Some(id) = &asked.device {
            let both =
                || place.says("device", "`device` and `memory_mix` both say what phones are; expected one of them");
            asked.memory_mix.as_ref().map_or(Ok(()), |_| Err(both()))?;
            let device = haversack_devices::load(id).map_err(|error| place.says("device", &error.to_string()))?;
            let size_gb = (device.ram().as_f64() / f64::from(1 << 30)).round();
            setting.memory = vec![MemoryClass { size_gb, devices: vec![id.clone()], share: 1.0, speed_spread: 0.0 }];
        }
        if asked.always_ready == Some(true) {
            setting.sessions = Sessions::without_end();
        }
        if let Some(median_mbit_per_s) = asked.link_mbit_per_s {
            setting.link = Link { median_mbit_per_s, spread: 0.0 };
            setting.check().map_err(|error| place.says("link_mbit_per_s", &error.to_string()))?;
        }
        let at_least_one = |field: &str, value: u64| match value {
            0 => Err(place.says(field, &format!("`{field}` is 0, expected at least 1"))),
            _ => Ok(()),
        };
        let input = asked.input.as_deref().map(str::parse::<InputShape>).transpose();
        let input = input.map_err(|error| place.says("input", &error.to_string()))?;
        let (local_epochs, batch) = (asked.local_epochs.unwrap_or(1), asked.batch.unwrap_or(20));
        let samples = asked.samples.unwrap_or(60);
        let numbers =
            [("rounds", u64::from(asked.rounds)), ("local_epochs", u64::from(local_epochs)), ("batch", batch)];
        numbers.into_iter().try_for_each(|(field, value)| at_least_one(field, value))?;
        at_least_one("samples", u64::from(samples))?;
        Ok(Self {
            phones: asked.population,
            setting,
            rules,
            rounds: asked.rounds,
            local_epochs,
            batch,
            samples,
            policy: asked.policy.clone().unwrap_or_else(|| "original".to_owned()),
            network: asked.network.clone(),
            input,
            system: asked.system.clone().unwrap_or_else(|| "android".to_owned()),
            traces: asked.traces.clone(),
            learning: learning(&asked, &place)?,
            seed: seed.or(asked.seed).unwrap_or(0),
        })
    }

    /// The number of phones.
    pub(crate) const fn phones(&self) -> u32 {
        self.phones
    }

    /// What says whose a folder is: all that is asked for.
    pub(crate) fn record(&self) -> Map<String, Value> {
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
        let devices: Vec<&String> = self.setting.memory.iter().flat_map(|class| &class.devices).collect();
        let specification = json!({
            "population": self.phones, "memory_mix": mix, "rules": self.rules, "rounds": self.rounds,
            "local_epochs": self.local_epochs, "batch": self.batch, "samples": self.samples, "policy": self.policy,
            "network": self.network, "input": self.input.as_ref().map(ToString::to_string), "devices": devices, "link_mbit_per_s": self.setting.link.median_mbit_per_s, "always_ready": self.setting.sessions == Sessions::without_end(), "system": self.system, "traces": self.traces, "learning": learning, "seed": self.seed,
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
        let many = SPEC.replace("cohort = 10", "cohort = 101");
        let error = Specification::parse("f.toml", &many, None).unwrap_err().to_string();
        assert!(error.contains("f.toml:3: `cohort` is 101, expected from 1 to the 100 phones"), "{error}");
    }
}
