//! A policy's entry in the list: its description, and its parameters, each of which defines both help and parsing.

use std::collections::BTreeSet;

use haversack_devices::text::{alternatives, hint, nearest};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::PolicyError;

/// A policy as `policies.toml` lists it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Entry {
    /// The name that scenarios use.
    pub id: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// A paragraph that describes it.
    pub description: &'static str,
    /// The paper that it is from, and the section.
    pub citation: &'static str,
    /// Whether it makes fp32 tensors smaller itself, so that it has nothing to store of a graph in integers.
    #[serde(default)]
    pub stores_floats: bool,
    /// Whether it frees memory when it is short, so that it can train with a budget below its use without one.
    #[serde(default)]
    pub gives_way: bool,
    /// The training engine that it models; `None` if it works with any.
    pub engine: Option<Engine>,
    /// Its parameters, in the order of the list.
    #[serde(default, rename = "parameter")]
    pub parameters: Vec<Parameter>,
}

/// Which processors an engine trains on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineProcessor {
    /// CPU cores.
    Cpu,
    /// The GPU.
    Gpu,
    /// CPU cores and the DSP.
    CpuAndDsp,
}

/// The training engine that a policy models in addition to its decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Engine {
    /// The id of the software stack.
    pub stack: &'static str,
    /// Where it trains.
    pub processor: EngineProcessor,
    /// The CPU cores that it uses by default; `None` if it uses none.
    pub cores: Option<&'static str>,
    /// Whether it trains on the graph that is rewritten in integers.
    #[serde(default)]
    pub eight_bit: bool,
    /// Whether it keeps learning in every iteration, so that its result is a mean over several; others have settled
    /// after the first.
    #[serde(default)]
    pub keeps_learning: bool,
}

/// A parameter of a policy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Parameter {
    /// Its name, as in `--set policy.NAME=value`.
    pub name: &'static str,
    /// One line on what it does.
    #[serde(default)]
    pub about: &'static str,
    /// `None` if they are those of a policy listed before.
    pub(crate) values: Option<Values>,
    default: Option<Value>,
    /// Whether it matters only on a phone in use.
    #[serde(default)]
    pub of_a_phone: bool,
    /// Whether it describes a fact instead of a choice, so that it is not tuned.
    #[serde(default)]
    pub given: bool,
}

/// The allowed values of a parameter.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Values {
    OnOff,
    /// One of a few numbers.
    Among(Vec<u64>),
    /// A number from one to another.
    Within(u64, u64),
    /// A number of at least this.
    From(u64),
    #[serde(borrow)]
    Words(Vec<&'static str>),
    File,
}

impl Values {
    fn text(&self) -> String {
        match self {
            Self::OnOff => "on or off".to_owned(),
            Self::Among(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                alternatives(numbers.iter().map(String::as_str))
            }
            Self::Within(least, most) => format!("a whole number from {least} to {most}"),
            Self::From(least) => format!("a whole number of at least {least}"),
            Self::Words(words) => alternatives(words.iter().copied()),
            Self::File => "a file".to_owned(),
        }
    }

    /// Parses `text` to a value, or returns a description of the expected values.
    fn parse(&self, text: &str) -> Result<Value, String> {
        let number = |holds: &dyn Fn(u64) -> bool| text.parse().ok().filter(|&number| holds(number)).map(Value::from);
        let found = match self {
            Self::OnOff => ["off", "on"].iter().position(|word| *word == text).map(|place| json!(place > 0)),
            Self::Among(numbers) => number(&|number| numbers.contains(&number)),
            Self::Within(least, most) => number(&|number| (*least..=*most).contains(&number)),
            Self::From(least) => number(&|number| number >= *least),
            Self::Words(words) if !words.contains(&text) => {
                return Err(self.text() + &hint(text, words.iter().copied()));
            }
            Self::Words(_) | Self::File => Some(json!(text)),
        };
        found.ok_or_else(|| self.text())
    }

    /// The values worth trying in addition to `default`: all of a list, else some below it and above it.
    fn tries(&self, default: Option<u64>) -> Vec<String> {
        let (least, most) = match self {
            Self::OnOff => return vec!["on".to_owned(), "off".to_owned()],
            Self::Among(numbers) => return numbers.iter().map(u64::to_string).collect(),
            Self::Words(words) => return words.iter().map(|word| (*word).to_owned()).collect(),
            Self::File => return Vec::new(),
            Self::Within(least, most) => (*least, *most),
            Self::From(least) => (*least, u64::MAX),
        };
        let around = |number: u64| vec![number / 4, number / 2, number.saturating_mul(2), number.saturating_mul(4)];
        let numbers = default.map_or_else(|| (0..7).map(|power| 1 << power).collect(), around);
        let numbers: BTreeSet<u64> = numbers.into_iter().map(|number| number.clamp(least, most)).collect();
        numbers.iter().map(u64::to_string).collect()
    }
}

impl Parameter {
    /// Values to try when tuning the policy.
    pub fn tries(&self) -> Vec<String> {
        let values = self.values.as_ref().filter(|_| !self.given && !self.of_a_phone);
        values.map(|values| values.tries(self.default.as_ref().and_then(Value::as_u64))).unwrap_or_default()
    }

    /// A readable description of its allowed values.
    pub fn values(&self) -> String {
        self.values.as_ref().map(Values::text).unwrap_or_default()
    }

    /// Its default value; `None` if it is unset by default.
    pub fn default_text(&self) -> Option<String> {
        Some(match self.default.as_ref()? {
            Value::Bool(on) => if *on { "on" } else { "off" }.to_owned(),
            Value::String(word) => word.clone(),
            number => number.to_string(),
        })
    }
}

impl Entry {
    /// The values of its parameters with `set`, by their names.
    pub(crate) fn settings<'s>(&self, set: &'s [(String, String)]) -> Result<Settings<'s>, PolicyError> {
        let names = || self.parameters.iter().map(|parameter| parameter.name);
        if let Some((found, _)) = set.iter().find(|(name, _)| !names().any(|known| known == name)) {
            let nearest = nearest(found, names()).map(str::to_owned);
            let has = if self.parameters.is_empty() { "none".to_owned() } else { alternatives(names()) };
            let (policy, found, has) = (self.id, found.clone(), format!("it has {has}"));
            return Err(PolicyError::UnknownParameter { policy, found, nearest, has });
        }
        let mut all = Map::new();
        for &Parameter { name, ref values, ref default, .. } in &self.parameters {
            // If set several times, the last value counts.
            let value = match set.iter().rev().find(|(set, _)| set == name).zip(values.as_ref()) {
                Some(((_, found), values)) => Some(values.parse(found).map_err(|expected| {
                    let found = found.clone();
                    PolicyError::BadValue { policy: self.id, parameter: name, found, expected }
                })?),
                None => default.clone(),
            };
            all.extend(value.map(|value| (name.to_owned(), value)));
        }
        Ok(Settings { policy: self.id, set, all: Value::Object(all) })
    }
}

/// The values of a policy's parameters.
pub(crate) struct Settings<'s> {
    policy: &'static str,
    set: &'s [(String, String)],
    all: Value,
}

impl Settings<'_> {
    /// The parameters that `T` has, each by its name.
    pub(crate) fn all<T: DeserializeOwned>(&self) -> Result<T, PolicyError> {
        T::deserialize(&self.all).map_err(|error| PolicyError::Failed(error.to_string()))
    }

    /// The parameter `name`.
    pub(crate) fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, PolicyError> {
        T::deserialize(&self.all[name]).map_err(|error| PolicyError::Failed(error.to_string()))
    }

    /// Refuses `parameters` that are set although another setting makes them useless.
    pub(crate) fn only_with(
        &self,
        other: &'static str,
        is_so: bool,
        parameters: &[&'static str],
    ) -> Result<(), PolicyError> {
        let is_set = |parameter: &&&str| self.set.iter().any(|(name, _)| name == **parameter);
        match parameters.iter().find(is_set) {
            Some(&parameter) if !is_so => Err(PolicyError::Idle { policy: self.policy, parameter, other }),
            _ => Ok(()),
        }
    }
}
