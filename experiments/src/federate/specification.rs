//! What a federation is of, as a TOML file says it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use haversack_devices::text::read_toml;
use haversack_federation::federation::{Aggregation, Buffer, Rules};
use haversack_federation::learning::{Labels, LearningError, LocalSgd, ServerRule, Yogi};
use haversack_federation::population::PopulationSetting;
use haversack_federation::selection::SelectorKind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

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
    policy: Option<String>,
    network: String,
    stand_in: Option<String>,
    data: Option<String>,
    target_accuracy: Option<f64>,
    evaluate_every: Option<u32>,
    traces: Option<PathBuf>,
    system: Option<String>,
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
pub(super) struct Specification {
    pub(super) phones: u32,
    pub(super) setting: PopulationSetting,
    pub(super) rules: Rules,
    pub(super) rounds: u32,
    pub(super) local_epochs: u32,
    /// Batches of a part in the place of epochs.
    pub(super) local_steps: Option<u32>,
    pub(super) batch: u64,
    /// The median number of a phone's samples.
    pub(super) samples: u32,
    pub(super) policy: String,
    /// The network whose time and memory are simulated.
    pub(super) network: String,
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
    pub(super) fn parse(file: &str, text: &str, seed: Option<u64>) -> Result<Self, CommandError> {
        let asked: Asked = read_toml(file, text).map_err(CommandError::input)?;
        let place = Place { file, text };
        let rules = rules(&asked, &place)?;
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
        let samples = asked.samples.unwrap_or(60);
        let numbers =
            [("rounds", u64::from(asked.rounds)), ("local_epochs", u64::from(local_epochs)), ("batch", batch)];
        if asked.local_epochs.is_some() && asked.local_steps.is_some() {
            let why = "`local_epochs` and `local_steps` both say how long a phone trains; expected one of them";
            return Err(place.says("local_steps", why));
        }
        asked.local_steps.map_or(Ok(()), |steps| at_least_one("local_steps", u64::from(steps)))?;
        numbers.into_iter().try_for_each(|(field, value)| at_least_one(field, value))?;
        at_least_one("samples", u64::from(samples))?;
        Ok(Self {
            phones: asked.population,
            setting,
            rules,
            rounds: asked.rounds,
            local_epochs,
            local_steps: asked.local_steps,
            batch,
            samples,
            policy: asked.policy.clone().unwrap_or_else(|| "original".to_owned()),
            network: asked.network.clone(),
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
            "local_epochs": self.local_epochs, "local_steps": self.local_steps, "batch": self.batch, "samples": self.samples, "policy": self.policy,
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
