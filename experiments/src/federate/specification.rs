//! The specification of a federation, read from a TOML file.

mod keys;
mod learning;
mod phones;

use std::collections::BTreeMap;
use std::path::PathBuf;

use haversack_devices::text::{alternatives, read_toml};
use haversack_devices::units::Nanos;
use haversack_devices::{CoreSelection, Precision, load_stack};
use haversack_federation::federation::Rules;
use haversack_federation::learning::LocalSgd;
use haversack_federation::population::{PopulationSetting, Sizes};
use haversack_policies::registry;
use haversack_workloads::models;
use serde_json::{Map, Value, json};

pub(super) use self::keys::Ready;
use self::keys::{Asked, Place};
pub(super) use self::learning::Learning;
use self::learning::learning;
pub(crate) use self::phones::Phones;
use self::phones::{setting, sizes};
use super::budgets::Report;
use super::plans::{CLUSTERS, Plans};
use crate::error::{CommandError, Result};
use crate::limits::key_beyond;
use crate::scenario::{InputShape, Scenario, parse_span, workload};

/// A specification.
#[derive(Clone, Debug)]
pub(crate) struct Specification {
    pub(super) phones: u32,
    pub(super) setting: PopulationSetting,
    pub(super) rules: Rules,
    pub(super) rounds: u32,
    /// No round begins this long after the first, in seconds; `None` without a limit.
    pub(super) horizon_s: Option<f64>,
    /// The iteration that phones train, without the device and its memory.
    pub(super) trained: Scenario,
    pub(super) local_epochs: u32,
    /// Batches per phone and round, instead of epochs.
    pub(super) local_steps: Option<u32>,
    /// The number of samples per phone.
    pub(super) sizes: Sizes,
    pub(super) ready: Ready,
    /// Whether the policy frees memory when it is short. If not, training takes all it needs, and the kernel reclaims.
    pub(super) gives_way: bool,
    /// The memory that phones report.
    pub(super) report: Report,
    /// The kind of plans for phones; `None` if the policy makes none.
    pub(super) plans: Option<Plans>,
    /// The most clusters the server makes plans for.
    pub(super) clusters: u32,
    pub(super) system: String,
    /// The training process's score for the low-memory killer; `None` for the system's default.
    pub(super) trainer_adj: Option<i32>,
    pub(super) traces: Option<PathBuf>,
    /// `None` if only time is simulated.
    pub(super) learning: Option<Learning>,
    pub(super) seed: u64,
}

impl Specification {
    /// Parses the text of `file`; `seed` overrides its own.
    ///
    /// # Errors
    /// Unknown keys, values that a key cannot have or that contradict each other, with the line.
    pub(crate) fn parse(file: &str, text: &str, seed: Option<u64>) -> Result<Self> {
        let place = Place { file, text };
        place.refuse_gone()?;
        let refuse = |(key, message): (String, String)| Err(place.says(&key, &format!("`{key}`: {message}")));
        key_beyond(text).map_or(Ok(()), refuse)?;
        let asked: Asked = read_toml(file, text).map_err(CommandError::input)?;
        let rules = rules(&asked);
        rules.check(asked.population).map_err(|error| place.says(error.field, &error.to_string()))?;
        let setting = setting(&asked, &place)?;
        for (key, network) in [("network", Some(&asked.network)), ("stand_in", asked.stand_in.as_ref())] {
            let listed = network.filter(|network| !workload::is_file(network)).map(|network| models::named(network));
            listed.transpose().map_err(|error| place.says(key, &format!("`{key}`: {error}")))?;
        }
        let stack = asked.stack.as_deref().map(load_stack).transpose();
        stack.map_err(|error| place.says("stack", &format!("`stack`: {error}")))?;
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
        let seed = seed.or(asked.seed).unwrap_or(0);
        let (stack, cores) = (asked.stack.clone(), cores(&asked, &place)?);
        let plain = Scenario::new("", &asked.network);
        let trained = Scenario { input, batch, policy, set, stack, precision, cores, seed, ..plain };
        Ok(Self {
            phones: asked.population,
            setting,
            rules,
            rounds: asked.rounds,
            horizon_s: horizon_s(&asked, &place)?,
            trained,
            local_epochs,
            local_steps: asked.local_steps,
            sizes,
            ready: asked.ready.unwrap_or(Ready::Sessions),
            gives_way,
            report: asked.budget.unwrap_or_default(),
            plans,
            clusters: asked.clusters.unwrap_or(CLUSTERS),
            system: asked.system.clone().unwrap_or_else(|| "android".to_owned()),
            trainer_adj: asked.trainer_adj,
            traces: asked.traces.clone(),
            learning: learning(&asked, &place)?,
            seed,
        })
    }

    /// The batches of a phone with this number of samples.
    pub(super) fn batches(&self, samples: u32) -> f64 {
        let of_epochs = f64::from(self.local_epochs) * f64::from(samples) / self.trained.batch as f64;
        self.local_steps.map_or(of_epochs, f64::from)
    }

    /// The sizes of memory that phones have, in GB.
    pub(crate) fn memory_sizes(&self) -> Vec<String> {
        self.setting.memory.iter().map(|class| class.size_gb.to_string()).collect()
    }

    /// The record that identifies a folder: the complete specification.
    pub(crate) fn record(&self) -> Map<String, Value> {
        let learning = self.learning.as_ref().map(|learning| {
            let LocalSgd { rate, proximal, .. } = learning.how;
            json!({
                "stand_in": learning.stand_in, "data": learning.data, "learning_rate": rate, "proximal": proximal,
                "aggregator": format!("{:?}", learning.rule), "labels": format!("{:?}", learning.labels), "dealt": learning.dealt,
                "store": if learning.keeps_whole { "whole" } else { "policy" },
                "target_accuracy": learning.target, "evaluate_every": learning.every,
            })
        });
        let mix: Map<String, Value> =
            self.setting.memory.iter().map(|class| (class.size_gb.to_string(), json!(class.share))).collect();
        let devices: Vec<&String> = self.setting.memory.iter().flat_map(|class| &class.devices).collect();
        let Self { trained, .. } = self;
        let mut specification = json!({
            "population": self.phones, "memory_mix": mix, "rules": self.rules, "rounds": self.rounds,
            "local_epochs": self.local_epochs, "local_steps": self.local_steps, "batch": trained.batch,
            "sizes": format!("{:?}", self.sizes), "policy": trained.policy, "set": trained.set, "stack": trained.stack,
            "cores": trained.cores.map(|cores| cores.to_string()), "ready": self.ready, "precision": trained.precision.name(),
            "budget": self.report, "plans": self.plans, "clusters": self.clusters,
            "network": trained.model, "input": trained.input.as_ref().map(ToString::to_string), "devices": devices,
            "link_mbit_per_s": self.setting.link.median_mbit_per_s, "system": self.system, "traces": self.traces, "learning": learning, "seed": self.seed,
        });
        let learned = |of: fn(&Learning) -> f64| self.learning.as_ref().map(of).filter(|value| *value > 0.0);
        let given = [
            ("data_by_memory", learned(|learning| learning.by_memory).map(|apart| json!(apart))),
            ("momentum", learned(|learning| learning.how.momentum.into()).map(|momentum| json!(momentum))),
            ("weight_decay", learned(|learning| learning.how.decay.into()).map(|decay| json!(decay))),
            ("trainer_adj", self.trainer_adj.map(|adj| json!(adj))),
            ("horizon_s", self.horizon_s.map(|end| json!(end))),
        ];
        let given = given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        specification.as_object_mut().into_iter().for_each(|keys| keys.extend(given.clone()));
        serde_json::from_value(json!({ "command": "federate", "specification": specification })).unwrap_or_default()
    }
}

/// Whether the policy frees memory, and the kind of plans; checks that the memory keys fit the policy.
fn managed(
    asked: &Asked,
    policy: &str,
    set: &BTreeMap<String, String>,
    place: &Place<'_>,
) -> Result<(bool, Option<Plans>)> {
    let entry = registry::find(policy).map_err(|error| place.says("policy", &error.to_string()))?;
    let set: Vec<(String, String)> = set.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    registry::build(policy, &set).map_err(|error| place.says("set", &error.to_string()))?;
    let oracle = asked.oracle == Some(true);
    for (key, given) in [("budget", asked.budget.is_some()), ("plans", asked.plans.is_some())] {
        if given && oracle {
            return Err(place.says(key, &format!("`{key}` sets how memory is kept, but `oracle` ignores memory")));
        }
    }
    if asked.budget.is_some() && !entry.gives_way {
        let message = format!("`budget` needs a policy that keeps within one; under {policy} nothing gives way");
        return Err(place.says("budget", &message));
    }
    // A policy that makes plans has a parameter for who makes them.
    let makes_plans = entry.parameters.iter().any(|parameter| parameter.name == "planner");
    if let (Some(_), false) = (asked.plans, makes_plans) {
        return Err(place.says("plans", &format!("`plans` needs a policy that makes plans ahead; {policy} makes none")));
    }
    let plans = makes_plans.then(|| asked.plans.unwrap_or(Plans::Server));
    match asked.clusters {
        Some(0) => Err(place.says("clusters", "`clusters` is 0, expected at least 1")),
        Some(_) if plans != Some(Plans::Server) => {
            Err(place.says("clusters", "`clusters` needs a policy that makes plans, and `plans` by the server"))
        }
        _ => Ok((entry.gives_way, plans)),
    }
}

/// The rules of rounds.
fn rules(asked: &Asked) -> Rules {
    let usual = Rules::new(asked.selector, asked.cohort);
    Rules {
        over_commit: asked.over_commit.unwrap_or(usual.over_commit),
        deadline_s: asked.deadline_s,
        oracle: asked.oracle.unwrap_or(false),
        ..usual
    }
}

/// The latest start of the last round, in seconds: a number of seconds, or a text with a unit.
fn horizon_s(asked: &Asked, place: &Place<'_>) -> Result<Option<f64>> {
    let Some(given) = &asked.horizon else { return Ok(None) };
    let text = given.to_string();
    let seconds = text.parse::<f64>().or_else(|_| parse_span(&text).map(Nanos::seconds));
    let seconds = seconds.map_err(|error| place.says("horizon", &format!("`horizon`: {error}")))?;
    if seconds > 0.0 && seconds.is_finite() {
        return Ok(Some(seconds));
    }
    Err(place.says("horizon", &format!("`horizon` is {text}, expected a time above 0 s")))
}

/// The cores that train.
fn cores(asked: &Asked, place: &Place<'_>) -> Result<Option<CoreSelection>> {
    let parse = |text: &String| text.parse().map_err(|error| place.says("cores", &format!("`cores`: {error}")));
    asked.cores.as_ref().map(parse).transpose()
}

#[cfg(test)]
mod tests {
    use haversack_federation::learning::Labels;

    use super::*;

    const SPEC: &str = "population = 100\nselector = \"random\"\ncohort = 10\nrounds = 3\nnetwork = \"lenet5\"\n";

    fn refused(more: &str) -> String {
        Specification::parse("f.toml", &format!("{SPEC}{more}"), None).unwrap_err().to_string()
    }

    #[test]
    fn what_is_left_out_has_defaults() {
        let found = Specification::parse("f.toml", SPEC, Some(7)).unwrap();
        assert_eq!((found.seed, found.learning, found.rules.over_commit), (7, None, 1.3));
        let until =
            |time: &str| Specification::parse("f.toml", &format!("{SPEC}horizon = {time}\n"), None).unwrap().horizon_s;
        assert_eq!([until("\"2 h\""), until("90")], [Some(7200.0), Some(90.0)]);
        assert_eq!((found.plans, found.sizes), (None, Sizes::Same(60)));
        let planned = format!("{SPEC}policy = \"fedhybrid\"\nset = {{ compression = false }}\ntotal_samples = 900\n");
        let found = Specification::parse("f.toml", &planned, None).unwrap();
        assert_eq!((found.plans, found.trained.set["compression"].as_str()), (Some(Plans::Server), "off"));
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
        assert_eq!(found.trained.input, Some(InputShape(vec![1, 28, 28])));
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
        assert!(refused("horizon = 0").contains("f.toml:6: `horizon` is 0, expected a time above 0 s"));
        assert!(refused("horizon = \"12 parsecs\"").contains("f.toml:6: `horizon`: "));
        assert!(
            refused("stand_in = \"mlp\"\ndata_by_memory = 1.5")
                .contains("f.toml:7: `data_by_memory` is 1.5, expected from 0")
        );
        assert!(refused("over_commit = 0.5").contains("f.toml:6: `over_commit` is 0.5, expected a number from 1"));
        assert!(refused("stand_in = \"mlp\"\nalpha = 0.1\nsplit = \"even\"").contains("expected one of them"));
        assert!(refused("plans = \"phone\"").contains("f.toml:6: `plans` needs a policy that makes plans ahead"));
        assert!(refused("budget = \"available\"").contains("f.toml:6: `budget` needs a policy that keeps within one"));
        assert!(
            refused("policy = \"fedhybrid\"\nplans = \"each\"\nclusters = 3").contains("f.toml:8: `clusters` needs")
        );
        assert!(
            refused("policy = \"fedhybrid\"\noracle = true\nplans = \"each\"").contains("f.toml:8: `plans` sets how")
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
        let other = SPEC.replace("lenet5", "lenet6");
        let error = Specification::parse("f.toml", &other, None).unwrap_err().to_string();
        assert!(error.contains("f.toml:5: `network`: unknown model 'lenet6'; did you mean 'lenet5'?"), "{error}");
        assert!(
            refused("stand_in = \"mlq\"").contains("f.toml:6: `stand_in`: unknown model 'mlq'; did you mean 'mlp'?")
        );
        assert!(refused("stack = \"mnm\"").contains("f.toml:6: `stack`: unknown software stack `mnm`"));
        // A number that no integer of TOML's can be is still a key that does nothing.
        assert!(refused("momentum = 18446744073709551616").contains("f.toml:6: `momentum` needs `mode` learning"));
        assert!(refused("link_mbit_per_s = 0.0").contains("f.toml:6: `link_mbit_per_s` is 0"));
        assert!(refused("input = \"3by3\"").contains("f.toml:6: "), "{}", refused("input = \"3by3\""));
        let many = SPEC.replace("cohort = 10", "cohort = 101");
        let error = Specification::parse("f.toml", &many, None).unwrap_err().to_string();
        assert!(error.contains("f.toml:3: `cohort` is 101, expected from 1 to the 100 phones"), "{error}");
    }

    #[test]
    fn no_text_makes_it_panic() {
        crate::fuzz::against_text("federation", &["examples/federation.toml", "examples/selectors.toml"], |text| {
            let _ = Specification::parse("s.toml", text, None);
        });
    }
}
