//! The keys of a specification file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use haversack_federation::selection::SelectorKind;
use serde::{Deserialize, Serialize};

use crate::error::{CommandError, Result};
use crate::federate::budgets::Report;
use crate::federate::plans::Plans;

/// The aggregation of updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Aggregator {
    #[serde(rename = "fedavg")]
    Average,
    #[serde(rename = "fedprox")]
    Proximal,
    #[serde(rename = "fedyogi")]
    Yogi,
}

/// The scope of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    /// Only time: phones compute and send, and nothing is learned.
    Timing,
    /// Phones learn for real on a stand-in.
    Learning,
}

/// The split of samples among phones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Split {
    /// Every phone has all classes of the set.
    Even,
    /// The split that the data define.
    Natural,
}

/// The storage of saved tensors, between forward and backward, in learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Store {
    /// As the policy stores them.
    Policy,
    /// Whole, without loss.
    Whole,
}

/// The times when phones can take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::federate) enum Ready {
    /// While they are locked, charging and on Wi-Fi.
    Sessions,
    /// At any time.
    Always,
}

/// The keys of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    pub(super) population: u32,
    pub(super) memory_mix: Option<BTreeMap<String, f64>>,
    pub(super) alpha: Option<f64>,
    pub(super) split: Option<Split>,
    pub(super) data_by_memory: Option<f64>,
    pub(super) dealt: Option<bool>,
    pub(super) selector: SelectorKind,
    pub(super) aggregator: Option<Aggregator>,
    pub(super) mode: Option<Mode>,
    pub(super) cohort: u32,
    pub(super) over_commit: Option<f64>,
    pub(super) deadline_s: Option<f64>,
    pub(super) oracle: Option<bool>,
    pub(super) rounds: u32,
    pub(super) horizon: Option<Setting>,
    pub(super) local_epochs: Option<u32>,
    pub(super) local_steps: Option<u32>,
    pub(super) batch: Option<u64>,
    pub(super) learning_rate: Option<f32>,
    pub(super) proximal: Option<f32>,
    pub(super) momentum: Option<f32>,
    pub(super) weight_decay: Option<f32>,
    pub(super) server_learning_rate: Option<f32>,
    pub(super) samples: Option<u32>,
    pub(super) total_samples: Option<u64>,
    pub(super) size_alpha: Option<f64>,
    pub(super) policy: Option<String>,
    pub(super) cores: Option<String>,
    pub(super) ready: Option<Ready>,
    pub(super) set: Option<BTreeMap<String, Setting>>,
    pub(super) stack: Option<String>,
    pub(super) precision: Option<String>,
    pub(super) budget: Option<Report>,
    pub(super) plans: Option<Plans>,
    pub(super) clusters: Option<u32>,
    pub(super) network: String,
    pub(super) device: Option<String>,
    pub(super) input: Option<String>,
    pub(super) link_mbit_per_s: Option<f64>,
    pub(super) stand_in: Option<String>,
    pub(super) data: Option<String>,
    pub(super) store: Option<Store>,
    pub(super) target_accuracy: Option<f64>,
    pub(super) evaluate_every: Option<u32>,
    pub(super) traces: Option<PathBuf>,
    pub(super) system: Option<String>,
    pub(super) trainer_adj: Option<i32>,
    pub(super) seed: Option<u64>,
}

/// The value of a policy's parameter.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a text, a number, true or false")]
pub(super) enum Setting {
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

/// The position of keys in the file, for errors.
pub(super) struct Place<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

/// Keys that were removed.
const GONE: [&str; 3] = ["aggregation", "concurrency", "max_staleness"];

impl Place<'_> {
    /// # Errors
    /// A key that was removed.
    pub(super) fn refuse_gone(&self) -> Result<()> {
        GONE.iter().try_for_each(|key| match self.line(key) {
            Some(_) => Err(self.says(key, &format!("`{key}` is gone: rounds are synchronous; leave the key out"))),
            None => Ok(()),
        })
    }

    /// An error about `key`.
    pub(super) fn says(&self, key: &str, message: &str) -> CommandError {
        let line = self.line(key).map_or_else(String::new, |line| format!("{line}:"));
        CommandError::input(format!("{}:{line} {message}", self.file))
    }

    /// The line of `key`, from one.
    fn line(&self, key: &str) -> Option<usize> {
        let is_key = |line: &str| {
            line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(['=', '.']))
        };
        self.text.lines().position(is_key).map(|line| line + 1)
    }
}
